"""A rank's engine on a GPU: what reads the rows of a level that is dealt over ranks runs there.

Between the steps, labels and totals are in host memory, as on a rank without a GPU: checkpoints,
the exchange of coarse rows and levels that every rank computes alone are those of `RankEngine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from louvain_um.core.hierarchy import MoveStats
from louvain_um.cpu.level import I64, U32, CpuLevel
from louvain_um.distributed.communicator import Communicator
from louvain_um.distributed.engine import RankEngine, is_shared
from louvain_um.events import Observer
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.move.move import tell_sweeps
from louvain_um.gpu.ranks.aggregate import sum_own
from louvain_um.gpu.ranks.link import Link
from louvain_um.gpu.ranks.loading import ROOM, arena_bytes
from louvain_um.gpu.ranks.share import Share
from louvain_um.gpu.ranks.steps import move_shared, refine_shared
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.runtime.preflight import refuse_high_degrees
from louvain_um.options import Options
from louvain_um.placement.arena_spec import ArenaSpec
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.policy.policy import Placement

ROWS: Final = ("offsets", "targets", "weights", "degrees")
"""Arrays of a level whose rows are on the GPU."""

INPUT: Final = "input"
LATER: Final = "later"
"""Whose rows these are: level 0's, which every cycle reads, or those of one later level."""


class DeviceRankEngine(RankEngine):
    """Louvain and Leiden on the rows of one rank, with a GPU, which is current."""

    def __init__(
        self,
        options: Options,
        observer: Observer,
        ranks: Communicator,
        *,
        device: int,
        link: Link,
        **values: Any,
    ) -> None:
        super().__init__(options, observer, ranks, **values)
        self.device = device
        self.link = link
        self.there = RunMemory([], device)
        self.shares: dict[str, tuple[Share, U32]] = {}

    def close(self) -> None:
        """Free the GPU's memory."""
        self.shares.clear()
        self.there.close()

    def load(self, graph: Any) -> CpuLevel:
        """Return level 0 from this rank's part of a graph, a `RankGraph`."""
        refuse_high_degrees(graph.block)
        level = super().load(graph)
        if is_shared(level):
            self.own_share(level)
        return level

    def put(self, name: str, group: Any, values: Any) -> Any:
        """Return a copy of an array on the GPU."""
        array = self.there.empty(name, group, len(values), values.dtype)
        if len(values):
            self.there.fill(name, np.ascontiguousarray(values))
        return array

    def drop(self, *names: str) -> None:
        """Free those of some arrays that are on the GPU."""
        self.there.free(*(name for name in names if name in self.there.live))

    def own_share(self, level: CpuLevel) -> Share:
        """Return a level's share of this rank; its rows are copied to the GPU once."""
        which = LATER if level.number else INPUT
        held = self.shares.get(which)
        known = held is not None and held[1] is level.targets
        if which == INPUT or not known:
            self.drop_rows(LATER)
        if not known:
            if which == INPUT or not self.fits_beside_input(level):
                self.drop_rows(INPUT)
            self.shares[which] = self.new_share(level, which), level.targets
        share, _ = self.shares[which]
        return replace(share, level=replace(share.level, cycle=level.cycle))

    def fits_beside_input(self, level: CpuLevel) -> bool:
        """Whether a level, and the work on it, fit where the work on level 0 was."""
        if INPUT not in self.shares:
            return True
        first = self.shares[INPUT][0].level
        arcs, width = len(level.targets), 4 + np.dtype(first.sums).itemsize
        wanted = width * arcs + arena_bytes(level.vertices, arcs, arcs, width)
        return wanted <= arena_bytes(first.vertices, first.arcs, first.arcs, width)

    def new_share(self, level: CpuLevel, which: str) -> Share:
        """Copy own rows, and the degrees of all vertices, to the GPU."""
        first, last = level.own
        arcs, weights = len(level.targets), level.weights
        offsets = np.zeros(level.vertices + 1, np.int64)
        offsets[first:last] = level.rows[0][first:last]
        offsets[last:] = arcs
        # The same on all ranks, which exchange sums.
        short = weights.dtype == np.uint32 and self.total < 2**32
        sums = np.dtype(np.uint32 if short else np.uint64)

        def put(name: str, group: Any, values: Any) -> Any:
            return self.put(f"{name}.{which}", group, values)

        if not self.there.arenas:
            self.there = RunMemory([self.arena_for(level, 4 + sums.itemsize)], self.device)
        there = GpuLevel(
            cycle=level.cycle,
            number=level.number,
            vertices=level.vertices,
            arcs=arcs,
            sums=sums,
            offsets=put("offsets", "graph", offsets),
            targets=put("targets", "graph", level.targets),
            weights=put("weights", "graph", unsigned(weights)) if len(weights) else None,
            loops=None,
            degrees=put("degrees", "community", level.degrees.astype(sums)),
            max_degree=level.max_degree,
        )
        kernels.prepare([(name, there.types) for name in ("ranks", "aggregate")], self.observer)
        return Share(
            device=self.device, memory=self.there, level=there, first=first, last=last, arcs=arcs
        )

    def arena_for(self, level: CpuLevel, width: int) -> ArenaSpec:
        """Return one arena for about what the first level on the GPU, and smaller ones, take."""
        arcs = len(level.targets)
        wanted = width * arcs + arena_bytes(level.vertices, arcs, arcs, width)
        room = int(guard.room(self.device) * ROOM)
        placement = Placement("device")
        return ArenaSpec(name="run", group=None, capacity=min(wanted, room), placement=placement)

    def drop_rows(self, which: str) -> None:
        """Free rows on the GPU."""
        self.shares.pop(which, None)
        self.drop(*(f"{name}.{which}" for name in ROWS))

    @property
    def total(self) -> int:
        """Sum of all degrees, 2m."""
        return int(self.problem.objective.total)

    def sweeps(self, level: CpuLevel) -> MoveStats:
        """Move the vertices of a level that is dealt over ranks on the GPU."""
        if not is_shared(level):
            return super().sweeps(level)
        share = self.own_share(level)
        there = share.level
        if level.start is not None:
            there.start = self.put("start", "community", level.start)
        run = (kernels, [share], self.options, self.total)
        moved, sweeps = move_shared(*run, link=self.link)
        tell_sweeps(self.observer, level.number, level.vertices, level.arcs, sweeps)
        name = f"labels.{level.cycle}.{level.number}"
        level.labels = self.fetched(name)
        level.totals = self.there.fetch("totals").astype(np.int64)
        self.drop("start", "totals", name)
        return moved

    def refinement(self, level: CpuLevel) -> None:
        """Refine a level that is dealt over ranks on the GPU."""
        if level.whole or not is_shared(level):
            super().refinement(level)
            return
        share = self.own_share(level)
        there = share.level
        there.labels = self.put("labels", "community", level.labels)
        there.totals = self.put("totals", "community", level.totals.astype(there.sums))
        refine_shared(kernels, [share], self.options, self.total, self.link)
        name = f"refined.{level.cycle}.{level.number}"
        level.refined = self.fetched(name)
        self.drop("labels", "totals", name)

    def coarse_rows(
        self, level: CpuLevel, numbers: U32, offsets: I64, loops: I64
    ) -> tuple[U32, U32 | I64]:
        """Sum own rows by community on the GPU; fill offsets and return the rows."""
        if not is_shared(level):
            return super().coarse_rows(level, numbers, offsets, loops)
        share = self.own_share(level)
        there = self.put("numbers", "community", numbers)
        offsets[:], targets, weights = sum_own(kernels, share, there, len(loops))
        self.drop("numbers")
        self.drop_rows(LATER)
        return targets, weights.astype(self.weights(0).dtype, copy=False)

    def fetched(self, name: str) -> U32:
        """Return a copy in host memory of an array on the GPU with an entry per vertex."""
        here: U32 = self.memory.empty(name, "community", self.there.live[name].size, np.uint32)
        here[:] = self.there.fetch(name)
        return here

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group, on the GPU."""
        return self.there.peak_bytes

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget, threads, ranks."""
        return {**super().provenance, "device": f"cuda:{self.device}", "policy": "device"}


def unsigned(weights: Any) -> Any:
    """Return weights as kernels read them."""
    return weights.view(np.uint64) if weights.dtype == np.int64 else weights
