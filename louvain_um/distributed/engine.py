"""The CPU engine on rows dealt over ranks: every rank runs the same level loop.

Labels, community totals, degrees and states of all vertices lie on every rank; rows on one. A rank
decides for its own vertices and tells the others which moved; all carry out all moves. What decides
a label is the sum of integers and the same frozen state, so labels are those of one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from louvain_um.core import parallel, rules
from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.objectives.community_sums import add_masses
from louvain_um.core.objectives.objective import Sums
from louvain_um.core.objectives.problem import problem_of
from louvain_um.cpu import move
from louvain_um.cpu.engine import CpuEngine
from louvain_um.cpu.extended import ACTIVE
from louvain_um.cpu.level import I64, U8, U32, CpuLevel, max_degree
from louvain_um.distributed import kernels
from louvain_um.distributed.checkpoint import Checkpoint
from louvain_um.distributed.coarse_rows import (
    Rows,
    cut_rows,
    exchange_rows,
    gather_rows,
    merge_pieces,
)
from louvain_um.distributed.communicator import Communicator, gather_columns
from louvain_um.distributed.level import RankLevel, spread
from louvain_um.distributed.partition import RankGraph
from louvain_um.events import Observer
from louvain_um.options import Options

COLLAPSE_ARCS = 1 << 20
"""Arcs of a level below which every rank computes it alone.

A core visits these in little time; a sweep's ten collectives take as long over Dask's connections
before anything is computed.
"""


class RankEngine(CpuEngine):
    """Louvain and Leiden on the rows of one rank."""

    def __init__(
        self,
        options: Options,
        observer: Observer,
        ranks: Communicator,
        *,
        collapse_arcs: int = COLLAPSE_ARCS,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        super().__init__(options, observer)
        self.ranks = ranks
        self.collapse_arcs = collapse_arcs
        self.checkpoint = checkpoint
        self.replayed = 0

    def close(self) -> None:
        """Free what is not in this process' memory: nothing."""

    def load(self, graph: Any) -> CpuLevel:
        """Return level 0 from this rank's part of a graph, a `RankGraph`."""
        part: RankGraph = graph
        block = part.block
        self.problem = problem_of(part, self.options)
        weights = self.weights(0) if block.weights is None else block.weights
        rows = Rows(block.offsets, block.targets, weights, block.loops)
        return self.level_of(0, 0, rows, part.degrees, part.cuts, part.n_arcs)

    def level_of(
        self, cycle: int, number: int, rows: Rows, degrees: I64, cuts: I64, arcs: int
    ) -> RankLevel:
        """Return a level of this rank's rows, or of all where it is small."""
        rank, vertices, shared = self.ranks.rank, len(degrees), arcs > self.collapse_arcs
        if not shared and self.ranks.size > 1:
            rows = gather_rows(self.ranks, rows)
        first = int(cuts[rank]) if shared else 0
        held: dict[str, Any] = {
            "offsets": rows.offsets,
            "targets": rows.targets,
            "weights": rows.weights,
            "loops": rows.loops,
        }
        for name, array in held.items():
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
            apart=(
                spread(vertices, first, rows.offsets[:-1]),
                spread(vertices, first, rows.offsets[1:]),
            ),
            cuts=cuts if shared else None,
            rank=rank,
        )

    def max_degree(self, level: CpuLevel) -> int:
        """Return the largest number of arcs of a vertex of any rank."""
        own = np.array([level.max_degree], np.int64)
        return int(np.concatenate(self.ranks.allgatherv(own)).max())

    def show(self, phase: Any, level: CpuLevel, iteration: int = -1, **step: Any) -> None:
        """Show nothing: observers of steps read whole graphs."""

    def move(self, level: CpuLevel) -> MoveStats:
        """Move as the CPU engine does, or load what an earlier run moved."""
        found = self.load_step("move", level)
        if found is None:
            moved = self.sweeps(level)
            if moved.moves:
                self.save_step("move", level, level.labels, asdict(moved))
            return moved
        name, n = f"labels.{level.cycle}.{level.number}", level.vertices
        level.labels = self.memory.empty(name, "community", n, np.uint32)
        level.labels[:] = found[0]
        level.totals = np.zeros(n, np.int64)
        add_masses(level.degrees, level.labels, level.totals)
        return MoveStats(**found[1])

    def refine(self, level: CpuLevel) -> None:
        """Refine as the CPU engine does, or load what an earlier run refined."""
        found = self.load_step("refine", level)
        if found is None:
            self.refinement(level)
            if level.refined is not None:
                self.save_step("refine", level, level.refined, {})
            return
        name = f"refined.{level.cycle}.{level.number}"
        level.refined = self.memory.empty(name, "community", level.vertices, np.uint32)
        level.refined[:] = found[0]

    def sweeps(self, level: CpuLevel) -> MoveStats:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        return super().move(level)

    def refinement(self, level: CpuLevel) -> None:
        """Split communities into sub-communities that are connected."""
        super().refine(level)

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
            first, last = level.own
            key, shared = f"{step}.{level.cycle}.{level.number}", is_shared(level)
            self.checkpoint.save(key, first, values[first:last], numbers, shared=shared)

    def enqueue(
        self, level: CpuLevel, active: U8, listed: U32, queue: U32, salt: np.uint32
    ) -> tuple[I64, int]:
        """Queue own active vertices; mark those of other ranks."""
        if is_shared(level):
            first, last = level.own
            parallel.run(kernels.mark_others, self.threads, first, last, active, salt)
        return super().enqueue(level, active, listed, queue, salt)

    def sweep(
        self, level: CpuLevel, state: Any, tallies: Any, queue: U32, starts: I64, arcs: int,
        prunes: bool,
    ) -> tuple[int, int, int]:  # fmt: skip
        """Run all sub-rounds with the other ranks; return all ranks' moves, gains and arcs."""
        if not is_shared(level):
            return super().sweep(level, state, tallies, queue, starts, arcs, prunes)
        labels, totals, sizes, active, proposed = state
        graph = (*level.rows, level.targets, level.weights, level.degrees)
        objective, seed = self.problem.objective, np.uint32(self.options.seed)
        result = np.zeros(2, np.int64)
        for r in range(rules.SUB_ROUNDS):
            first, last = int(starts[r]), int(starts[r + 1])
            parallel.run(
                kernels.decide, self.threads, graph, state, tallies, queue, first, last,
                objective.rate, float(objective.total), seed, np.zeros(1, np.int64), result,
            )  # fmt: skip
            moved = proposed[first:last] != move.STAYS
            columns = queue[first:last][moved], proposed[first:last][moved]
            vertices, targets = gather_columns(self.ranks, *columns)
            applied = (labels, totals, sizes, active, targets)
            parallel.run(kernels.apply, self.threads, level.degrees, applied, vertices)
            if prunes:
                parallel.run(
                    kernels.activate, self.threads, graph, state, tallies, queue, first, last, r,
                    np.zeros(1, np.int64),
                )  # fmt: skip
        if prunes:
            bits = self.ranks.or_bits(np.packbits(active == ACTIVE))
            active[np.unpackbits(bits, count=len(active)).view(np.bool_)] = ACTIVE
        moves, gain, visited = self.ranks.sum_exact([*result, arcs]).tolist()
        return moves, gain, visited

    def share_rows(self, level: CpuLevel, values: I64) -> None:
        """Complete values that each rank computed for its own vertices."""
        if is_shared(level):
            first, last = level.own
            values[:] = np.concatenate(self.ranks.allgatherv(values[first:last]))

    def apply_refined(
        self, level: CpuLevel, graph: Any, state: Any, second: Any, claim: I64
    ) -> None:
        """Carry out the moves that all ranks listed."""
        if is_shared(level):
            listed = gather_columns(self.ranks, *(column[: claim[1]] for column in state[6:]))
            state, claim = (*state[:6], *listed), np.array([0, len(listed[0]), 0], np.int64)
        super().apply_refined(level, graph, state, second, claim)

    def coarse_level(self, level: CpuLevel, numbers: U32, degrees: I64) -> CpuLevel:
        """Return the next level from each vertex's number in it."""
        if not is_shared(level):
            return super().coarse_level(level, numbers, degrees)
        count = len(degrees)
        offsets, halved = np.empty(count + 1, np.int64), np.empty(count, np.int64)
        targets, weights = self.coarse_rows(level, numbers, offsets, halved)
        cuts = cut_rows(self.ranks, offsets)
        starts, targets, weights = exchange_rows(self.ranks, offsets, targets, weights, cuts)
        first, last = int(cuts[self.ranks.rank]), int(cuts[self.ranks.rank + 1])
        most = int(np.diff(starts, axis=1).sum(axis=0).max(initial=0))
        tallies = self.tallies(level, max(min(most, count), 1))
        own = degrees[first:last]
        rows = merge_pieces(self.threads, starts, targets, weights, own, tallies)
        self.free_tallies()
        arcs = int(self.ranks.sum_exact([len(rows.targets)])[0])
        return self.level_of(level.cycle, level.number + 1, rows, degrees, cuts, arcs)

    def sums(self, level: CpuLevel) -> Sums:
        """Return the sums of the communities a level starts in."""
        own = super().sums(level)
        if not is_shared(level):
            return own
        return Sums(int(self.ranks.sum_exact([own.inside])[0]), own.squares, own.communities)

    def split(self, level: CpuLevel, labels: U32) -> None:
        """Label each connected component of a community with its smallest member, in place."""
        super().split(level, labels)
        if not is_shared(level):
            return
        alone = np.arange(level.vertices, dtype=np.uint32)
        joined = labels != alone
        vertices, roots = gather_columns(self.ranks, alone[joined], labels[joined])
        kernels.join_trees(vertices, roots, alone)
        labels[:] = alone

    def release(self, level: CpuLevel) -> None:
        """Free the graph of a level, except the input's, which every cycle needs."""
        super().release(level)
        if level.number:
            level.apart = None

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget, threads, ranks."""
        return {**super().provenance, "ranks": self.ranks.size}


def is_shared(level: CpuLevel) -> bool:
    """Return whether a level's rows are dealt over ranks."""
    return isinstance(level, RankLevel) and level.cuts is not None
