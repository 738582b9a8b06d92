"""Moving, refining and summing the rows of a rank on its GPU.

Between the steps labels and totals are in host memory, as on a rank without a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from louvain_um.core.hierarchy import MoveStats
from louvain_um.cpu.level import I64, U32, CpuLevel, Host
from louvain_um.distributed.communicator import Communicator, gather_columns
from louvain_um.gpu.level import GpuLevel, unsigned
from louvain_um.gpu.move.move import report_sweeps
from louvain_um.gpu.ranks.share import ROOM, Link, Share, arena_bytes
from louvain_um.gpu.ranks.steps import move_shared, refine_shared, sum_local
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.policy.policy import Placement

ROWS: Final = ("offsets", "targets", "weights", "degrees")
"""Arrays of a level whose rows are on the GPU."""

INPUT: Final = "input"
LATER: Final = "later"
"""Whose rows these are: level 0's, which every cycle reads, or those of one later level."""


class StagedLink:
    """Copies arrays to the host, exchanges them there, and copies what arrives to the GPU."""

    def __init__(self, ranks: Communicator) -> None:
        self.ranks, self.sum_exact = ranks, ranks.sum_exact

    def gather(self, columns: Sequence[Any], into: Sequence[Any]) -> int:
        """Fill the beginning of `into` with each column of all ranks; return their entries."""
        found = gather_columns(self.ranks, *(column.get() for column in columns))
        for array, column in zip(into, found, strict=True):
            if len(column):
                array[: len(column)].set(column)
        return len(found[0])

    def or_bits(self, words: Any) -> None:
        """Set an array, of equal length on all ranks, to the bitwise or of all."""
        words.set(self.ranks.or_bits(words.get().view(np.uint8)).view(words.dtype))


class RankDeviceSteps:
    """The steps of a rank on rows in the memory of its GPU, which is current."""

    policy: Final = "device"

    def __init__(self, host: Host, device: int, link: Link) -> None:
        self.host = host
        self.device = f"cuda:{device}"
        self.number = device
        self.link = link
        self.there = RunMemory([], device)
        self.shares: dict[str, tuple[Share, U32]] = {}

    def close(self) -> None:
        """Free the GPU's memory."""
        self.shares.clear()
        self.there.close()

    def put(self, name: str, group: Any, values: Any) -> Any:
        """Return a copy of an array on the GPU."""
        array = self.there.empty(name, group, len(values), values.dtype)
        if len(values):
            self.there.fill(name, np.ascontiguousarray(values))
        return array

    def drop(self, *names: str) -> None:
        """Free those of some arrays that are on the GPU."""
        self.there.free(*(name for name in names if name in self.there.live))

    def share_of(self, level: CpuLevel) -> Share:
        """Return this rank's share of a level; its rows are copied to the GPU once."""
        which = LATER if level.number else INPUT
        held = self.shares.get(which)
        known = held is not None and held[1] is level.targets
        if which == INPUT or not known:
            self.drop_rows(LATER)
        if not known:
            if which == INPUT or not self.fits_with_input(level):
                self.drop_rows(INPUT)
            self.shares[which] = self.new_share(level, which), level.targets
        share, _ = self.shares[which]
        return replace(share, level=replace(share.level, cycle=level.cycle))

    def fits_with_input(self, level: CpuLevel) -> bool:
        """Whether a level, and the work on it, fit where the work on level 0 was."""
        if INPUT not in self.shares:
            return True
        first = self.shares[INPUT][0].level
        arcs, width = len(level.targets), 4 + np.dtype(first.sums).itemsize
        wanted = width * arcs + arena_bytes(level.vertices, arcs, arcs, width)
        return wanted <= arena_bytes(first.vertices, first.arcs, first.arcs, width)

    def new_share(self, level: CpuLevel, which: str) -> Share:
        """Copy local rows, and the degrees of all vertices, to the GPU."""
        first, last = level.local
        arcs, weights = len(level.targets), level.weights
        offsets = np.zeros(level.vertices + 1, np.int64)
        offsets[first:last] = level.bounds[0][first:last]
        offsets[last:] = arcs
        # The same on all ranks, which exchange sums.
        short = weights.dtype == np.uint32 and self.total < 2**32
        sums = np.dtype(np.uint32 if short else np.uint64)

        def put(name: str, group: Any, values: Any) -> Any:
            return self.put(f"{name}.{which}", group, values)

        if not self.there.arenas:
            self.there = RunMemory([self.arena_for(level, 4 + sums.itemsize)], self.number)
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
        kernels.prepare(
            [(name, there.types) for name in ("ranks", "aggregate")], self.host.observer
        )
        return Share(
            device=self.number, memory=self.there, level=there, first=first, last=last, arcs=arcs
        )

    def arena_for(self, level: CpuLevel, width: int) -> ArenaSpec:
        """Return one arena for about what the first level on the GPU, and smaller ones, take."""
        arcs = len(level.targets)
        wanted = width * arcs + arena_bytes(level.vertices, arcs, arcs, width)
        room = int(guard.room(self.number) * ROOM)
        placement = Placement("device")
        return ArenaSpec(name="run", group=None, capacity=min(wanted, room), placement=placement)

    def drop_rows(self, which: str) -> None:
        """Free rows on the GPU."""
        self.shares.pop(which, None)
        self.drop(*(f"{name}.{which}" for name in ROWS))

    @property
    def total(self) -> int:
        """Sum of all degrees, 2m."""
        return int(self.host.problem.objective.total)

    def move(self, level: CpuLevel) -> MoveStats:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        share = self.share_of(level)
        there = share.level
        if level.start is not None:
            there.start = self.put("start", "community", level.start)
        run = ([share], self.host.options, self.total)
        moved, sweeps = move_shared(*run, link=self.link)
        report_sweeps(self.host.observer, level, sweeps)
        name = f"labels.{level.cycle}.{level.number}"
        level.labels = self.fetched(name)
        level.totals = self.there.fetch("totals").astype(np.int64)
        self.drop("start", "totals", name)
        return moved

    def refine(self, level: CpuLevel) -> None:
        """Split communities into sub-communities that are connected."""
        share = self.share_of(level)
        there = share.level
        there.labels = self.put("labels", "community", level.labels)
        there.totals = self.put("totals", "community", level.totals.astype(there.sums))
        refine_shared([share], self.host.options, self.total, self.link)
        name = f"refined.{level.cycle}.{level.number}"
        level.refined = self.fetched(name)
        self.drop("labels", "totals", name)

    def sum_rows(
        self, level: CpuLevel, numbers: U32, offsets: I64, loops: I64
    ) -> tuple[U32, U32 | I64]:
        """Sum local rows by community; fill offsets and return the rows."""
        share = self.share_of(level)
        there = self.put("numbers", "community", numbers)
        offsets[:], targets, weights = sum_local(share, there, len(loops))
        self.drop("numbers")
        self.drop_rows(LATER)
        return targets, weights.astype(self.host.weights(0).dtype, copy=False)

    def fetched(self, name: str) -> U32:
        """Return a copy in host memory of an array on the GPU with an entry per vertex."""
        here: U32 = self.host.memory.empty(name, "community", self.there.live[name].size, np.uint32)
        here[:] = self.there.fetch(name)
        return here

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group, on the GPU."""
        return self.there.peak_bytes
