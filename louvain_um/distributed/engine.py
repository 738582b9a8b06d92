"""Louvain and Leiden on rows dealt over ranks: every rank runs the same level loop.

Labels, community totals, degrees and states of all vertices lie on every rank; rows on one. A rank
decides for the vertices whose rows it has and sends the others which moved; all carry out all
moves. What decides a label is the sum of integers and the same frozen state, so labels are those of
one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.numbering import add_masses
from louvain_um.core.objective import Problem, Sums, problem_of
from louvain_um.cpu.engine import CpuEngine, start_next
from louvain_um.cpu.level import I64, U32, CpuLevel, max_degree
from louvain_um.distributed.checkpoint import Checkpoint
from louvain_um.distributed.communicator import Communicator, gather_columns
from louvain_um.distributed.host_steps import RankHostSteps, join_trees
from louvain_um.distributed.partition import (
    RankGraph,
    RankRows,
    cut_rows,
    exchange_rows,
    gather_rows,
    merge_pieces,
)

if TYPE_CHECKING:
    from louvain_um.distributed.device_steps import RankDeviceSteps

COLLAPSE_ARCS = 1 << 20
"""Arcs up to which every rank computes a level alone: a core visits these in less time than the
collectives of a sweep take."""


@dataclass(slots=True)
class RankLevel(CpuLevel):
    """A level whose rows are dealt over ranks, or lie on every rank once it is small."""

    cuts: I64 | None = None
    rank: int = 0

    @property
    def local(self) -> tuple[int, int]:
        """First vertex whose row lies here, and the one behind the last."""
        if self.cuts is None:
            return 0, self.vertices
        return int(self.cuts[self.rank]), int(self.cuts[self.rank + 1])


class RankEngine:
    """The engine of one rank: its steps read rows that are dealt over ranks."""

    # Levels that every rank computes alone are its local engine's.

    def __init__(
        self,
        local: CpuEngine,
        steps: RankHostSteps | RankDeviceSteps,
        ranks: Communicator,
        *,
        collapse_arcs: int = COLLAPSE_ARCS,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.local = local
        self.steps = steps
        self.ranks = ranks
        self.collapse_arcs = collapse_arcs
        self.checkpoint = checkpoint
        self.replayed = 0
        self.memory = local.memory
        self.restart = local.restart
        self.prepare_restart = local.prepare_restart
        self.discard_move = local.discard_move
        self.coarse_vertices = local.coarse_vertices
        self.coarse_labels = local.coarse_labels
        self.labels = local.labels

    @property
    def problem(self) -> Problem:
        """What the run is to find."""
        return self.local.problem

    def load(self, graph: RankGraph) -> CpuLevel:
        """Return level 0 from this rank's part of a graph."""
        host, block = self.local.host, graph.block
        host.problem = problem_of(graph, host.options)
        weights = host.weights(0) if block.weights is None else block.weights
        rows = RankRows(block.offsets, block.targets, weights, block.loops)
        return self.level_of(0, 0, rows, graph.degrees, graph.cuts, graph.n_arcs)

    def level_of(
        self, cycle: int, number: int, rows: RankRows, degrees: I64, cuts: I64, arcs: int
    ) -> RankLevel:
        """Return a level of this rank's rows, or of all where it is small."""
        rank, vertices, shared = self.ranks.rank, len(degrees), arcs > self.collapse_arcs
        if not shared and self.ranks.size > 1:
            rows = gather_rows(self.ranks, rows)
        first = int(cuts[rank]) if shared else 0
        for name, array in rows._asdict().items():
            self.memory.ledger.add(f"{name}.{number}", "graph", array.nbytes, array.ctypes.data)
        if number == 0:
            address = degrees.ctypes.data
            self.memory.ledger.add("degrees.0", "community", degrees.nbytes, address)
        return RankLevel(
            cycle,
            number,
            np.zeros(0, np.int64),
            rows.targets,
            rows.weights,
            spread(vertices, first, rows.loops),
            degrees,
            max_degree(rows.offsets),
            arcs,
            spread=(
                spread(vertices, first, rows.offsets[:-1]),
                spread(vertices, first, rows.offsets[1:]),
            ),
            cuts=cuts if shared else None,
            rank=rank,
        )

    def max_degree(self, level: CpuLevel) -> int:
        """Return the largest number of arcs of a vertex of any rank."""
        local = np.array([level.max_degree], np.int64)
        return int(np.concatenate(self.ranks.allgatherv(local)).max())

    def move(self, level: CpuLevel) -> MoveStats:
        """Sweep until a sweep gains too little, or load what an earlier run moved."""
        found = self.load_step("move", level)
        if found is None:
            moved = self.steps.move(level) if is_shared(level) else self.local.move(level)
            if moved.moves:
                self.save_step("move", level, level.labels, asdict(moved))
            return moved
        level.labels = self.vertex_array("labels", level, found[0])
        level.totals = np.zeros(level.vertices, np.int64)
        add_masses(level.degrees, level.labels, level.totals)
        return MoveStats(**found[1])

    def refine(self, level: CpuLevel) -> None:
        """Split communities into connected ones, or load what an earlier run refined."""
        found = self.load_step("refine", level)
        if found is not None:
            level.refined = self.vertex_array("refined", level, found[0])
            return
        if level.whole:
            level.refined = self.vertex_array("refined", level, level.labels)
            self.split(level, level.refined)
        elif is_shared(level):
            self.steps.refine(level)
        else:
            self.local.refine(level)
        if level.refined is not None:
            self.save_step("refine", level, level.refined, {})

    def vertex_array(self, name: str, level: CpuLevel, values: U32) -> U32:
        """Return an array of a level, an entry per vertex, with these values."""
        tagged = f"{name}.{level.cycle}.{level.number}"
        array: U32 = self.memory.empty(tagged, "community", level.vertices, np.uint32)
        array[:] = values
        return array

    def load_step(self, step: str, level: CpuLevel) -> tuple[U32, dict[str, int]] | None:
        """Return what an earlier run found in a step of a level."""
        if self.checkpoint is None:
            return None
        key = f"{step}.{level.cycle}.{level.number}"
        found = self.checkpoint.load(key, shared=is_shared(level))
        self.replayed += found is not None
        return found

    def save_step(
        self, step: str, level: CpuLevel, values: U32, numbers: Mapping[str, int]
    ) -> None:
        """Save what a step of a level found."""
        if self.checkpoint is not None:
            first, last = level.local
            key, shared = f"{step}.{level.cycle}.{level.number}", is_shared(level)
            self.checkpoint.save(key, first, values[first:last], numbers, shared=shared)

    def aggregate(self, level: CpuLevel) -> CpuLevel:
        """Return the next level; vertices that share a label (or sub-community) become one."""
        if not is_shared(level):
            return self.local.aggregate(level)
        grouping = self.local.group(level)
        degrees = grouping.masses["degrees"]
        count = len(degrees)
        offsets, halved = np.empty(count + 1, np.int64), np.empty(count, np.int64)
        sums = self.steps.sum_rows(level, grouping.numbers, offsets, halved)
        cuts = cut_rows(self.ranks, offsets)
        pieces = exchange_rows(self.ranks, offsets, *sums, cuts)
        first, last = int(cuts[self.ranks.rank]), int(cuts[self.ranks.rank + 1])
        most = int(np.diff(pieces.starts, axis=1).sum(axis=0).max(initial=0))
        host = self.local.host
        tables = host.tables(level, max(min(most, count), 1))
        rows = merge_pieces(host.threads, pieces, degrees[first:last], tables)
        host.free_tables()
        arcs = int(self.ranks.sum_exact([len(rows.targets)])[0])
        coarse = self.level_of(level.cycle, level.number + 1, rows, degrees, cuts, arcs)
        return start_next(level, coarse, grouping)

    def sums(self, level: CpuLevel) -> Sums:
        """Return the sums of the communities a level starts in."""
        local = self.local.sums(level)
        if not is_shared(level):
            return local
        return Sums(int(self.ranks.sum_exact([local.inside])[0]), local.squares, local.communities)

    def split_disconnected(self, level: CpuLevel) -> None:
        """Make every connected component of a community a community of its own."""
        if level.start is not None:
            self.split(level, level.start)

    def split(self, level: CpuLevel, labels: U32) -> None:
        """Label each connected component of a community with its smallest member, in place."""
        self.local.split(level, labels)
        if not is_shared(level):
            return
        alone = np.arange(level.vertices, dtype=np.uint32)
        joined = labels != alone
        vertices, roots = gather_columns(self.ranks, alone[joined], labels[joined])
        join_trees(vertices, roots, alone)
        labels[:] = alone

    def release(self, level: CpuLevel) -> None:
        """Free the graph of a level, except the input's, which every cycle needs."""
        self.local.release(level)
        if level.number:
            level.spread = None

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group."""
        return self.steps.peak_bytes

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget, threads, ranks."""
        where = {"device": self.steps.device, "policy": self.steps.policy}
        return {**self.local.provenance, **where, "ranks": self.ranks.size}


def is_shared(level: CpuLevel) -> TypeGuard[RankLevel]:
    """Return whether a level's rows are dealt over ranks."""
    return isinstance(level, RankLevel) and level.cuts is not None


def spread(vertices: int, first: int, values: I64) -> I64:
    """Return an array with one entry per vertex: values from `first` on, else 0."""
    array = np.zeros(vertices, np.int64)
    array[first : first + len(values)] = values
    return array
