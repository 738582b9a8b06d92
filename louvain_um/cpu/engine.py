"""The CPU engine: arrays, threads and the order in which the compiled steps run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.core import parallel, rules
from louvain_um.core.headroom import check_host_memory
from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.ledger import HostAllocator
from louvain_um.core.numbering import number_by_size
from louvain_um.core.objectives.community_sums import add_masses, sum_of_squares
from louvain_um.core.objectives.objective import Sums, masses_of
from louvain_um.core.objectives.problem import Problem, problem_of
from louvain_um.cpu import aggregate, move, refine
from louvain_um.cpu.extended import ACTIVE, extended_of, new_bytes
from louvain_um.cpu.hash_table import EMPTY, slots_for
from louvain_um.cpu.level import (
    EMPTY_I64,
    EMPTY_U8,
    EMPTY_U32,
    I64,
    U8,
    U32,
    CpuLevel,
    max_degree,
)
from louvain_um.events import Event, Observer, Phase, array_listener
from louvain_um.graph.graph import Graph
from louvain_um.graph.row_view import RowView
from louvain_um.options import Options

VERTEX_BYTES: Final = 25
"""Bytes per vertex that moving on level 0 takes: labels, totals, sizes, queue, moves, flags."""


class CpuEngine:
    """Louvain and Leiden with Numba on all cores of the machine."""

    def __init__(self, options: Options, observer: Observer) -> None:
        self.options = options
        self.observer = observer
        self.threads = options.threads or parallel.default_threads()
        self.memory = HostAllocator(array_listener(observer))
        self.problem: Problem

    def load(self, graph: Graph | RowView) -> CpuLevel:
        """Return level 0 with the communities its vertices start in; shares the graph's arrays."""
        if isinstance(graph, Graph):
            view, offsets, apart = RowView.of(graph), graph.offsets, None
            rows = {"offsets": offsets}
        else:
            view, offsets, apart = graph, EMPTY_I64, (graph.begins, graph.ends)
            rows = {"begins": graph.begins, "ends": graph.ends}
        enter = self.memory.ledger.add
        check_host_memory(
            VERTEX_BYTES * len(view.degrees),
            f"a run on {len(view.degrees):,} vertices",
            "use a machine with more memory",
        )
        self.problem = problem = problem_of(graph, self.options)
        weights = self.weights(0) if view.weights is None else view.weights
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
        level = CpuLevel(0, 0, *arrays, view.max_degree, view.n_arcs, apart)
        level.start = None if problem.start is None else problem.start.copy()
        level.second = EMPTY_I64 if second is None else second
        level.fixed = EMPTY_U8 if problem.fixed is None else problem.fixed
        if problem.max_size is not None:
            level.members = np.ones(level.vertices, np.int64)
        for name, array in level.masses.items():
            enter(f"{name}.0", "community", array.nbytes, array.ctypes.data)
        return level

    def weights(self, arcs: int) -> U32 | I64:
        """Return an array for weights, of one type at every level so that Numba compiles once."""
        objective = self.problem.objective
        if objective.total < 2**32 and not objective.signed:
            return np.empty(arcs, np.uint32)
        return np.empty(arcs, np.int64)

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

    def size(self, level: CpuLevel) -> tuple[int, int]:
        """Return vertices and arcs of a level."""
        return level.vertices, level.arcs

    def max_degree(self, level: CpuLevel) -> int:
        """Return the largest number of arcs of a vertex."""
        return level.max_degree

    def move(self, level: CpuLevel) -> MoveStats:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        n, empty = level.vertices, self.memory.empty
        first, last = level.own
        number, tag = level.number, f"{level.cycle}.{level.number}"
        labels = empty(f"labels.{tag}", "community", n, np.uint32)
        labels[:] = np.arange(n, dtype=np.uint32) if level.start is None else level.start
        totals = empty("totals", "community", n, np.int64)
        sizes = empty("sizes", "community", n, np.uint32)
        active = empty("active", "scratch", n, np.uint8)
        queue = empty("queue", "scratch", last - first, np.uint32)
        proposed = empty("proposed", "scratch", last - first, np.uint32)
        tallies = self.tallies(level, min(level.max_degree, n))
        state = (labels, totals, sizes, active, proposed)
        if level.start is None:
            totals[:], sizes[:] = level.degrees, 1
        else:
            move.start(level.degrees, labels, totals, sizes)
        active[:] = ACTIVE
        if level.active is not None:
            active *= level.active
        if self.problem.extended:
            level.extended = extended_of(level, labels, self.problem)
            self.memory.ledger.add("extended", "community", new_bytes(level.extended))

        iteration, visited, moves, gains, before = 0, 0, 0, 0, 0
        while iteration < rules.MAX_ITERATIONS:
            salt = np.uint32(rules.salt(level.cycle, iteration, self.options.seed))
            starts, arcs = self.enqueue(level, active, proposed, queue, salt)
            prunes = rules.prunes(level.start is None, iteration)
            iteration += 1
            count, gain, arcs = self.sweep(level, state, tallies, queue, starts, arcs, prunes)
            moves, gains, visited = moves + count, gains + gain, visited + arcs
            if not prunes:
                active[:] = ACTIVE
            self.show(
                "move",
                level,
                iteration=iteration - 1,
                queue=queue,
                starts=starts,
                proposed=proposed,
            )
            self.observer(
                Event(
                    kind="iteration",
                    phase="move",
                    level=number,
                    iteration=iteration - 1,
                    vertices=n,
                    arcs=level.arcs,
                    moved=count,
                )
            )
            if count == 0 or rules.is_last_sweep(number, iteration - 1, gain, before):
                break
            before = gain
        level.labels, level.totals = labels, totals
        if level.extended is not None:
            level.second_totals, level.extended = level.extended.second_totals, None
            self.memory.free("extended")
        self.memory.free("totals", "sizes", "active", "queue", "proposed")
        self.free_tallies()
        return MoveStats(iteration, moves, visited, gains)

    def sweep(
        self, level: CpuLevel, state: Any, tallies: Any, queue: U32, starts: I64, arcs: int,
        prunes: bool,
    ) -> tuple[int, int, int]:  # fmt: skip
        """Run all sub-rounds; return moves, the sum of their gains, and arcs visited."""
        graph = (*level.rows, level.targets, level.weights, level.degrees)
        objective, seed = self.problem.objective, np.uint32(self.options.seed)
        progress, result = np.zeros(2 * move.STAGES, np.int64), np.zeros(2, np.int64)
        parallel.run(
            move.sweep, self.threads if arcs >= move.SERIAL_ARCS else 1, graph, state, tallies,
            queue, starts, objective.rate, float(objective.total), seed, prunes, level.extended,
            progress, result,
        )  # fmt: skip
        moves, gain = result.tolist()
        return moves, gain, arcs

    def show(self, phase: Phase, level: CpuLevel, iteration: int = -1, **step: Any) -> None:
        """Show the observer the arrays of a step."""
        arrays, k = level.observed | step, level.number
        self.observer(Event(kind="step", phase=phase, level=k, iteration=iteration, step=arrays))

    def enqueue(
        self, level: CpuLevel, active: U8, listed: U32, queue: U32, salt: np.uint32
    ) -> tuple[I64, int]:
        """Queue the active vertices; return where each sub-round starts, and their arcs."""
        first, last = level.own
        threads = self.threads if last - first >= move.SERIAL_ARCS else 1
        counts = np.empty((threads, rules.SUB_ROUNDS + 1), np.int64)
        arcs, starts = np.empty(threads, np.int64), np.empty(rules.SUB_ROUNDS + 1, np.int64)
        parallel.run(
            move.list_active, threads, first, last, *level.rows, active, salt, level.sub_rounds,
            listed, counts, arcs,
        )  # fmt: skip
        parallel.run(move.fill_queue, threads, first, last, active, listed, counts, queue, starts)
        return starts, int(arcs.sum())

    def tallies(self, level: CpuLevel, distinct: int) -> tuple[U32, I64, U32, U32, U32 | I64]:
        """Return hash tables for `distinct` communities, one row per thread."""
        shape = (self.threads, -1)

        def table(name: str, items: int, dtype: DTypeLike) -> Any:
            size = self.threads * items
            return self.memory.empty(f"tally_{name}", "hash", size, dtype).reshape(shape)

        slots = slots_for(distinct)
        keys, sums = table("keys", slots, np.uint32), table("sums", slots, np.int64)
        keys[:] = EMPTY
        names = table("names", level.max_degree + 1, np.uint32)
        weighted = len(level.weights) > 0
        loads = table("loads", level.max_degree + 1 if weighted else 0, level.weights.dtype)
        return keys, sums, table("used", distinct + 1, np.uint32), names, loads

    def free_tallies(self) -> None:
        """Free the hash tables."""
        self.memory.free(*(f"tally_{name}" for name in ("keys", "sums", "used", "names", "loads")))

    def refine(self, level: CpuLevel) -> None:
        """Split communities into sub-communities that are connected (`level.refined`)."""
        if level.whole:
            self.components(level)
            return
        n, empty, threads = level.vertices, self.memory.empty, self.threads
        first, last = level.own
        refined = empty(f"refined.{level.cycle}.{level.number}", "community", n, np.uint32)
        sub_totals = empty("refined_totals", "community", n, np.int64)
        sub_sizes = empty("refined_sizes", "community", n, np.uint32)
        external_weight = empty("external_weight", "community", n, np.int64)
        queue = empty("queue", "scratch", last - first, np.uint32)
        moved = empty("moved", "scratch", last - first, np.uint32)
        proposed = empty("proposed", "scratch", last - first, np.uint32)
        weight_to_target = empty("weight_to_target", "scratch", last - first, np.int64)
        tallies = self.tallies(level, min(level.max_degree, n))
        graph = (*level.rows, level.targets, level.weights, level.degrees)
        parallel.run(
            refine.start,
            threads,
            graph,
            level.labels,
            refined,
            sub_totals,
            sub_sizes,
            external_weight,
        )
        self.share_rows(level, external_weight)
        all_active = np.full(n, ACTIVE, np.uint8)
        salt = np.uint32(rules.salt(level.cycle, rules.REFINE_SWEEP, self.options.seed))
        starts, _ = self.enqueue(level, all_active, proposed, queue, salt)
        state = (
            level.labels, level.totals, refined, sub_totals, sub_sizes, external_weight, moved,
            proposed, weight_to_target,
        )  # fmt: skip
        claim = np.zeros(3, np.int64)
        rate, seed, second = self.problem.objective.rate, np.uint32(self.options.seed), None
        if len(level.second):
            masses = (level.second, level.second_totals, level.second.copy())
            second = (*masses, self.problem.objective.second_rate)
        for r in range(rules.SUB_ROUNDS):
            claim[:] = 0
            parallel.run(
                refine.decide, threads, graph, state, tallies, salt, rules.SUB_ROUNDS, r, queue,
                starts[r], starts[r + 1], rate, seed, second, claim,
            )  # fmt: skip
            self.apply_refined(level, graph, state, second, claim)
        level.refined = refined
        self.show("refine", level, queue=queue, starts=starts, refined=refined)
        self.memory.free("refined_totals", "refined_sizes", "external_weight", "weight_to_target")
        self.memory.free("queue", "moved", "proposed")
        self.free_tallies()

    def components(self, level: CpuLevel) -> None:
        """Split communities into their connected components (`level.refined`)."""
        name = f"refined.{level.cycle}.{level.number}"
        level.refined = self.memory.empty(name, "community", level.vertices, np.uint32)
        level.refined[:] = level.labels
        self.split(level, level.refined)

    def share_rows(self, level: CpuLevel, values: I64) -> None:
        """Complete values that were computed from rows; all rows lie here."""

    def apply_refined(
        self, level: CpuLevel, graph: Any, state: Any, second: Any, claim: I64
    ) -> None:
        """Carry out the moves that a sub-round of refinement listed."""
        parallel.run(refine.apply, self.threads, graph, state, second, claim)

    def aggregate(self, level: CpuLevel) -> CpuLevel:
        """Return the next level; vertices that share a label (or sub-community) become one."""
        n, empty, tag = level.vertices, self.memory.empty, f"{level.cycle}.{level.number + 1}"
        ranks = empty("ranks", "scratch", n, np.uint32)
        numbers = level.labels if level.refined is None else level.refined
        start = None
        count = aggregate.renumber(numbers, ranks)
        if level.refined is not None:
            start = empty(f"start.{tag}", "community", count, np.uint32)
            refine.relabel_communities(level.labels, numbers, ranks, start)
        self.memory.free("ranks")
        masses: dict[str, Any] = {}
        for name, array in level.masses.items():
            tagged = f"{name}.{level.number + 1}"
            masses[name] = empty(tagged, "community", count, array.dtype)
            masses[name][:] = 0
            if name == "fixed":
                masses[name][numbers[array > 0]] = 1
            else:
                add_masses(array, numbers, masses[name])
        coarse = replace(self.coarse_level(level, numbers, masses["degrees"]), **masses)
        coarse.start = start
        # Levels stay alive until the end of the cycle; keep only what the result needs.
        level.numbers, level.labels = numbers, EMPTY_U32
        level.totals, level.second_totals, level.refined = EMPTY_I64, EMPTY_I64, None
        return coarse

    def coarse_level(self, level: CpuLevel, numbers: U32, degrees: I64) -> CpuLevel:
        """Return the next level from each vertex's number in it."""
        number, count, empty = level.number + 1, len(degrees), self.memory.empty
        offsets = empty(f"offsets.{number}", "graph", count + 1, np.int64)
        loops = empty(f"loops.{number}", "graph", count, np.int64)
        targets, weights = self.coarse_rows(level, numbers, offsets, loops)
        self.memory.ledger.add(f"targets.{number}", "graph", targets.nbytes, targets.ctypes.data)
        self.memory.ledger.add(f"weights.{number}", "graph", weights.nbytes, weights.ctypes.data)
        arrays = (offsets, targets, weights, loops, degrees)
        return CpuLevel(level.cycle, number, *arrays, max_degree(offsets), len(targets))

    def coarse_rows(
        self, level: CpuLevel, numbers: U32, offsets: I64, loops: I64
    ) -> tuple[U32, U32 | I64]:
        """Fill offsets and loops of the next level's rows from the rows here; return the rows."""
        (first, last), empty = level.own, self.memory.empty
        begins, ends = (row[first:last] for row in level.rows)
        count = len(loops)
        members = empty("members", "scratch", last - first, np.uint32)
        starts = empty("member_starts", "scratch", count + 1, np.int64)
        arc_starts = empty("rooms", "scratch", count + 1, np.int64)
        most = aggregate.group_members(
            begins, ends, numbers[first:last], members, starts, arc_starts
        )
        arcs = int(arc_starts[-1])
        tallies = self.tallies(level, min(most, count))
        targets, weights = np.empty(arcs, np.uint32), self.weights(arcs)
        graph = (
            begins, ends, level.targets, level.weights, level.degrees[first:last],
            level.loops[first:last],
        )  # fmt: skip
        kept = aggregate.write_rows(
            self.threads if arcs > move.SERIAL_ARCS else 1, graph, numbers, members, starts,
            arc_starts, tallies, targets, weights, loops, offsets,
        )  # fmt: skip
        self.show(
            "aggregate", level, numbers=numbers, members=members, member_starts=starts,
            coarse_offsets=offsets,
        )  # fmt: skip
        # Shrinking in place frees the unused tail without a copy.
        targets.resize(kept, refcheck=False)
        weights.resize(kept, refcheck=False)
        self.memory.free("members", "member_starts", "rooms")
        self.free_tallies()
        return targets, weights

    def discard_move(self, level: CpuLevel) -> None:
        """Free temporaries after a move phase without moves."""
        level.labels, level.totals, level.second_totals = EMPTY_U32, EMPTY_I64, EMPTY_I64

    def sums(self, level: CpuLevel) -> Sums:
        """Return the sums of the communities a level starts in."""
        if level.start is None:
            squares, second = sum_of_squares(level.degrees), sum_of_squares(level.second)
            return Sums(2 * int(level.loops.sum()), squares, level.vertices, second)
        totals, second_totals = np.zeros(level.vertices, np.int64), np.zeros_like(level.second)
        graph = (*level.rows, level.targets, level.weights, level.degrees, level.loops)
        inside = move.weigh(graph, level.start, totals)
        # Marked, not sorted or hashed: np.unique takes minutes for 10⁸ communities.
        used = np.zeros(level.vertices, np.bool_)
        used[level.start] = True
        if len(level.second):
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
        refine.split(*level.rows, level.targets, labels, parents, level.fixed)

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
        return {"device": "cpu", "policy": "host", "budget_bytes": None, "threads": self.threads}
