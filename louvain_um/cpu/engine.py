"""The CPU engine: arrays, threads and the order in which the compiled steps run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.headroom import check_host_memory
from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.ledger import HostAllocator
from louvain_um.core.numbering import add_masses, number_by_size, sum_of_squares
from louvain_um.core.objective import Problem, Sums, masses_of, problem_of
from louvain_um.cpu import aggregate, move, refine
from louvain_um.cpu.level import EMPTY_I64, EMPTY_U8, EMPTY_U32, U32, CpuLevel, Host, max_degree
from louvain_um.events import Observer, array_listener
from louvain_um.graph.graph import Graph
from louvain_um.graph.row_view import RowView
from louvain_um.options import Options

VERTEX_BYTES: Final = 25
"""Bytes per vertex that moving on level 0 takes: labels, totals, sizes, queue, moves, flags."""


class Grouping(NamedTuple):
    """The next level's vertices: each vertex's number there, its start communities and masses."""

    numbers: U32
    start: U32 | None
    masses: dict[str, NDArray[Any]]


class CpuEngine:
    """Louvain and Leiden with Numba on all cores of the machine."""

    def __init__(self, options: Options, observer: Observer, *, shows: bool = True) -> None:
        self.options = options
        self.memory = HostAllocator(array_listener(observer))
        threads = options.threads or parallel.default_threads()
        self.host = Host(options, observer, threads, self.memory, shows)

    @property
    def problem(self) -> Problem:
        """What the run is to find."""
        return self.host.problem

    def load(self, graph: Graph | RowView) -> CpuLevel:
        """Return level 0 with the communities its vertices start in; shares the graph's arrays."""
        if isinstance(graph, Graph):
            view, offsets, spread = RowView.of(graph), graph.offsets, None
            rows = {"offsets": offsets}
        else:
            view, offsets, spread = graph, EMPTY_I64, (graph.begins, graph.ends)
            rows = {"begins": graph.begins, "ends": graph.ends}
        enter = self.memory.ledger.add
        check_host_memory(
            VERTEX_BYTES * len(view.degrees),
            f"a run on {len(view.degrees):,} vertices",
            "use a machine with more memory",
        )
        self.host.problem = problem = problem_of(graph, self.options)
        weights = self.host.weights(0) if view.weights is None else view.weights
        held: dict[str, Any] = {
            **rows,
            "targets": view.targets,
            "weights": weights,
            "loops": view.loops,
        }
        for name, array in held.items():
            enter(f"{name}.0", "graph", array.nbytes, array.ctypes.data)
        degrees, second = masses_of(graph, problem.objective.name)
        arrays = (offsets, view.targets, weights, view.loops, degrees)
        level = CpuLevel(0, 0, *arrays, view.max_degree, view.n_arcs, spread)
        level.blocks = view.blocks
        level.start = None if problem.start is None else problem.start.copy()
        level.second = EMPTY_I64 if second is None else second
        level.fixed = EMPTY_U8 if problem.fixed is None else problem.fixed
        if problem.max_size is not None:
            level.members = np.ones(level.vertices, np.int64)
        for name, array in level.masses.items():
            enter(f"{name}.0", "community", array.nbytes, array.ctypes.data)
        return level

    def prepare_restart(self, path: list[CpuLevel]) -> None:
        """Do nothing: all stays where it is."""

    def restart(self, path: list[CpuLevel]) -> CpuLevel:
        """Return level 0 of the next cycle, its vertices in the communities of a path."""
        first = path[0]
        start = self.memory.empty(
            f"start.{first.cycle + 1}.0", "community", first.vertices, np.uint32
        )
        start[:] = self.compose(path)
        return replace(first, cycle=first.cycle + 1, start=start)

    def max_degree(self, level: CpuLevel) -> int:
        """Return the largest number of arcs of a vertex."""
        return level.max_degree

    def move(self, level: CpuLevel) -> MoveStats:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        phase = move.MovePhase(self.host, level)
        if phase.small:
            phase.run_all()
            return phase.close()
        while not phase.done:
            sweep = phase.begin_sweep()
            phase.run(sweep)
            self.host.show(
                "move", level, phase.iteration, queue=sweep.queue, starts=sweep.starts,
                proposed=phase.state.proposed,
            )  # fmt: skip
            moves, gain = sweep.result.tolist()
            phase.end_sweep(sweep, moves, gain, phase.arcs)
        return phase.close()

    def refine(self, level: CpuLevel) -> None:
        """Split communities into sub-communities that are connected (`level.refined`)."""
        if level.whole:
            self.components(level)
            return
        phase = refine.RefinePhase(self.host, level)
        phase.run()
        refined = phase.parts.refined
        self.host.show("refine", level, queue=phase.queue, starts=phase.starts, refined=refined)
        phase.close()

    def components(self, level: CpuLevel) -> None:
        """Split communities into their connected components (`level.refined`)."""
        name = f"refined.{level.cycle}.{level.number}"
        level.refined = self.memory.empty(name, "community", level.vertices, np.uint32)
        level.refined[:] = level.labels
        self.split(level, level.refined)

    def aggregate(self, level: CpuLevel) -> CpuLevel:
        """Return the next level; vertices that share a label (or sub-community) become one."""
        grouping = self.group(level)
        number, empty, degrees = level.number + 1, self.memory.empty, grouping.masses["degrees"]
        offsets = empty(f"offsets.{number}", "graph", len(degrees) + 1, np.int64)
        loops = empty(f"loops.{number}", "graph", len(degrees), np.int64)
        rows = aggregate.coarse_rows(self.host, level, grouping.numbers, offsets, loops)
        for name, array in zip(("targets", "weights"), rows, strict=True):
            address = array.ctypes.data
            self.memory.ledger.add(f"{name}.{number}", "graph", array.nbytes, address)
        arrays = (offsets, *rows, loops, degrees)
        coarse = CpuLevel(level.cycle, number, *arrays, max_degree(offsets), len(rows[0]))
        return start_next(level, coarse, grouping)

    def group(self, level: CpuLevel) -> Grouping:
        """Return the next level's vertices, numbered, with their masses."""
        n, empty, tag = level.vertices, self.memory.empty, f"{level.cycle}.{level.number + 1}"
        ranks = empty("ranks", "scratch", n, np.uint32)
        numbers = level.labels if level.refined is None else level.refined
        start = None
        count = aggregate.renumber(numbers, ranks)
        if level.refined is not None:
            start = empty(f"start.{tag}", "community", count, np.uint32)
            refine.relabel_communities(level.labels, numbers, ranks, start)
        self.memory.free("ranks")
        masses: dict[str, NDArray[Any]] = {}
        for name, array in level.masses.items():
            tagged = f"{name}.{level.number + 1}"
            masses[name] = empty(tagged, "community", count, array.dtype)
            masses[name][:] = 0
            if name == "fixed":
                masses[name][numbers[array > 0]] = 1
            else:
                add_masses(array, numbers, masses[name])
        return Grouping(numbers, start, masses)

    def discard_move(self, level: CpuLevel) -> None:
        """Free temporaries after a move phase without moves."""
        level.labels, level.totals, level.second_totals = EMPTY_U32, EMPTY_I64, EMPTY_I64

    def sums(self, level: CpuLevel) -> Sums:
        """Return the sums of the communities a level starts in."""
        if level.start is None:
            squares, second = sum_of_squares(level.degrees), sum_of_squares(level.second)
            return Sums(2 * int(level.loops.sum()), squares, level.vertices, second)
        totals, second_totals = np.zeros(level.vertices, np.int64), level.second
        inside = move.weigh(tuple(level.rows), level.start, totals)
        # Marked, not sorted or hashed: np.unique takes minutes for 10⁸ communities.
        used = np.zeros(level.vertices, np.bool_)
        used[level.start] = True
        if len(level.second):
            second_totals = np.zeros_like(level.second)
            add_masses(level.second, level.start, second_totals)
        squares, second = sum_of_squares(totals), sum_of_squares(second_totals)
        return Sums(int(inside), squares, int(np.count_nonzero(used)), second)

    def split_disconnected(self, level: CpuLevel) -> None:
        """Make every connected component of a community a community of its own."""
        if level.start is not None:
            self.split(level, level.start)

    def split(self, level: CpuLevel, labels: U32) -> None:
        """Label each connected component of a community with its smallest member, in place."""
        parents = np.empty_like(labels)
        refine.split(*level.bounds, level.targets, labels, parents, level.fixed)

    def release(self, level: CpuLevel) -> None:
        """Free the graph of a level, except the input's, which every cycle needs."""
        k = level.number
        if k == 0:
            return
        self.memory.free(*(f"{name}.{k}" for name in ("offsets", "targets", "weights", "loops")))
        self.memory.free(*(f"{name}.{k}" for name in level.masses))
        level.offsets = level.degrees = level.second = level.members = EMPTY_I64
        level.fixed = EMPTY_U8
        level.targets, level.weights = EMPTY_U32, EMPTY_I64

    def coarse_vertices(self, path: list[CpuLevel]) -> tuple[U32, ...]:
        """Return each level's map to the next."""
        return tuple(level.numbers for level in path[:-1])

    def coarse_labels(self, path: list[CpuLevel]) -> tuple[U32, ...]:
        """Return, for each level but the first, the communities its vertices start in."""
        return tuple(level.start for level in path[1:] if level.start is not None)

    def labels(self, path: list[CpuLevel]) -> U32:
        """Return the communities of the input's vertices, numbered by size."""
        return number_by_size(self.compose(path))

    def compose(self, path: list[CpuLevel]) -> U32:
        """Return the community of each of the input's vertices at the end of a path."""
        last = path[-1]
        alone = np.arange(last.vertices, dtype=np.uint32)
        labels = alone if last.start is None else last.start
        for map_ in reversed(self.coarse_vertices(path)):
            # Indexing crashes where memory runs out in the midst of it (NumPy 2.4); this raises.
            labels = labels.take(map_)
        return labels

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group."""
        return self.memory.peak_bytes

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget, threads."""
        threads = self.host.threads
        return {"device": "cpu", "policy": "host", "budget_bytes": None, "threads": threads}


def start_next(level: CpuLevel, coarse: CpuLevel, grouping: Grouping) -> CpuLevel:
    """Return the next level with its masses and start; leave its map alone on this one."""
    masses: dict[str, Any] = grouping.masses
    for name, array in masses.items():
        setattr(coarse, name, array)
    coarse.start = grouping.start
    # Levels stay alive until the end of the cycle; keep only what the result needs.
    level.numbers, level.labels = grouping.numbers, EMPTY_U32
    level.totals, level.second_totals, level.refined = EMPTY_I64, EMPTY_I64, None
    return coarse
