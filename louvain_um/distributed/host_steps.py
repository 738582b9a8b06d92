"""Moving, refining and summing the rows of a rank on its cores, with the CPU engine's steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from louvain_um.core import parallel, rules
from louvain_um.core.compiled import atomic_add, kernel
from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.rules import SUB_ROUNDS
from louvain_um.cpu import aggregate
from louvain_um.cpu.level import I64, U32, CpuLevel, Host, LevelRows, NeighbourTable, of_thread
from louvain_um.cpu.move import (
    STAYS,
    MovePhase,
    MoveState,
    SweepQueue,
    activate_claimed,
    apply,
    decide_claimed,
)
from louvain_um.cpu.refine import Joins, RefinePhase, root_of
from louvain_um.cpu.rule import ACTIVE, ScoreRule, bucket
from louvain_um.distributed.communicator import Communicator, gather_columns


class RankHostSteps:
    """The steps of a rank on rows in its host memory."""

    device: Final = "cpu"
    policy: Final = "host"

    def __init__(self, host: Host, ranks: Communicator) -> None:
        self.host = host
        self.ranks = ranks

    def move(self, level: CpuLevel) -> MoveStats:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        phase = MovePhase(self.host, level)
        active = phase.state.active
        while not phase.done:
            parallel.run(mark_others, self.host.threads, *level.local, active, phase.salt)
            sweep = phase.begin_sweep()
            self.sweep(phase, sweep)
            if sweep.prunes:
                bits = self.ranks.or_bits(np.packbits(active == ACTIVE))
                active[np.unpackbits(bits, count=len(active)).view(np.bool_)] = ACTIVE
            found = self.ranks.sum_exact([*sweep.result, phase.arcs])
            phase.end_sweep(sweep, *found.tolist())
        return phase.close()

    def sweep(self, phase: MovePhase, sweep: SweepQueue) -> None:
        """Run all sub-rounds, each with the moves of all ranks."""
        threads, plain = self.host.threads, tuple(sweep)
        rows, state, tables, rule = phase.plain
        for r in range(SUB_ROUNDS):
            first, last = sweep.starts[r : r + 2].tolist()
            parallel.run(decide_local, threads, rows, state, tables, rule, plain, r)
            proposed = phase.state.proposed[first:last]
            moved = proposed != STAYS
            vertices, targets = gather_columns(
                self.ranks, sweep.queue[first:last][moved], proposed[moved]
            )
            applied = tuple(phase.state._replace(proposed=targets))
            parallel.run(apply_all, threads, phase.level.degrees, applied, vertices)
            if sweep.prunes:
                parallel.run(activate_local, threads, rows, state, tables, plain, r)

    def refine(self, level: CpuLevel) -> None:
        """Split communities into sub-communities that are connected."""
        phase = RefinePhase(self.host, level)
        weights, (first, last) = phase.parts.external_weight, level.local
        weights[:] = np.concatenate(self.ranks.allgatherv(weights[first:last]))
        for r in range(rules.SUB_ROUNDS):
            phase.apply(Joins(*gather_columns(self.ranks, *phase.decide(r))))
        phase.close()

    def sum_rows(
        self, level: CpuLevel, numbers: U32, offsets: I64, loops: I64
    ) -> tuple[U32, U32 | I64]:
        """Sum local rows by community; fill offsets and loops, and return the rows."""
        return aggregate.coarse_rows(self.host, level, numbers, offsets, loops)

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group."""
        return self.host.memory.peak_bytes


@kernel()
def mark_others(t, threads, low, high, active, salt):
    """Store the sub-round of every active vertex outside low … high − 1, or 0, as queueing does."""
    n = len(active)
    for v in range(n * t // threads, n * (t + 1) // threads):
        if v < low or v >= high:
            if active[v] == ACTIVE:
                active[v] = bucket(np.uint32(v), salt, SUB_ROUNDS) + 1
            else:
                active[v] = 0


@kernel()
def decide_local(t, threads, rows, state, tables, rule, sweep, r):
    """Decide for the vertices of a sub-round whose rows are here; add up moves and gains."""
    rows, state, rule, sweep = (
        LevelRows(*rows), MoveState(*state), ScoreRule(*rule), SweepQueue(*sweep),
    )  # fmt: skip
    table = of_thread(NeighbourTable(*tables), t)
    found = decide_claimed(threads, rows, state, table, rule, None, sweep, r)
    atomic_add(sweep.result, 0, found[0])
    atomic_add(sweep.result, 1, found[1])


@kernel()
def apply_all(t, threads, degrees, state, vertices):
    """Carry out the moves of all ranks' vertices, whose targets are the proposals of `state`."""
    n = len(vertices)
    state = MoveState(*state)
    apply(degrees, state, vertices, n * t // threads, n * (t + 1) // threads, None)


@kernel()
def activate_local(t, threads, rows, state, tables, sweep, r):
    """Activate the neighbours that vertices with rows here left behind in a sub-round."""
    rows, state, sweep = LevelRows(*rows), MoveState(*state), SweepQueue(*sweep)
    names = of_thread(NeighbourTable(*tables), t).names
    activate_claimed(threads, rows, state, names, sweep, r)


@kernel()
def join_trees(vertices, roots, parents):
    """Unite each vertex with its root; every root becomes the smallest vertex of its tree."""
    for i in range(len(vertices)):
        a, b = root_of(parents, np.int64(vertices[i])), root_of(parents, np.int64(roots[i]))
        parents[max(a, b)] = min(a, b)
    for v in range(len(parents)):
        parents[v] = root_of(parents, v)
