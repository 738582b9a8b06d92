"""The room that a level has on the device: what each step works with, and what lies beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from louvain_um.events import Phase
from louvain_um.gpu.aggregate.limits import Limits
from louvain_um.gpu.aggregate.targets24 import MOST_VERTICES
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory.planning import (
    ahead_bytes,
    hosted_work_bytes,
    more_for_chunks,
    queued_within,
    work_bytes,
)
from louvain_um.gpu.runtime.launch import queued_at_once
from louvain_um.placement.memory.allocator import Allocator
from louvain_um.placement.planner import Plan

SETTLING: Final = ("offsets", "degrees", "weights", "targets")
"""Arrays of a level's graph that may have pages of their own, those first that vertices look up,
then those of fewer bytes per arc, of which a read over the bus brings fewer that are used."""


IDLE_SHARE: Final = 3
"""Share, 1 / 3, of idle memory for chunks of new rows; the rest is for the rows themselves."""

HEAVY_BYTES: Final = 0.25
"""Bytes per arc that addresses of new rows are reserved for in front of short weights."""


def settling(level: GpuLevel) -> list[str]:
    """Return the names of arrays of a coarse level's graph that may have pages of their own."""
    return [f"{name}.{level.tag}" for name in SETTLING] if level.number else []


@dataclass(slots=True)
class LevelRoom:
    """Settles levels in pages, where memory has any; without, all of it lies still."""

    memory: Allocator
    plan: Plan | None
    limits: Limits
    low_scratch: bool
    hosted: dict[Phase, int] = field(init=False)

    def __post_init__(self) -> None:
        # Before the run: it waits for what the host does between two steps.
        steps: tuple[Phase, ...] = ("move", "refine", "aggregate")
        paged = self.plan if self.memory.schedule else None
        self.hosted = {step: hosted_work_bytes(paged, step) if paged else 0 for step in steps}

    def settle(self, level: GpuLevel, step: Phase, *, backs_up: bool) -> None:
        """Place a level's graph anew, for a step that begins: what it works with goes first."""
        self.memory.settle(
            *settling(level),
            least=self.work_bytes(level, step),
            later=level.number > 0,
            grows=step == "aggregate",
            backs_up=backs_up,
        )

    def prepare(self, level: GpuLevel, step: Phase) -> None:
        """Use the time in which level 0 moves to map what the next step and new rows will need."""
        if self.memory.schedule is None:
            return
        short = 1 if level.weights is None else 2
        rows = [int(width * level.arcs) for width in (short + HEAVY_BYTES, 4)]
        least, more = self.work_bytes(level, step), 0
        if step == "refine":  # sub-communities stay
            kept = level.vertices * np.dtype(np.uint32).itemsize
            least = max(least, kept + self.work_bytes(level, "aggregate"))
            idle = max(0, self.memory.idle - least)
            more = min(more_for_chunks(level, self.limits), idle // IDLE_SHARE)
        self.memory.prepare(least, more, rows)

    def settle_input(self, source: GpuLevel, level: GpuLevel) -> None:
        """Let kernels read the input's arcs, to make a later level of them."""
        if not self.limits.short_weights:
            width = 4 + np.dtype(source.sums).itemsize
        elif source.weights is not None:
            width = 6
        else:  # targets that may not fit take 24 bits (`new_rows`)
            width = 4 if level.vertices <= MOST_VERTICES else 5
        self.memory.settle(
            least=self.work_bytes(source, "aggregate"),
            grows=True,
            reads_input=True,
            nbytes=width * level.arcs,
        )

    def work_bytes(self, level: GpuLevel, step: Phase) -> int:
        """Return the bytes of the device that a step on a level works with; 0 without pages."""
        if self.memory.schedule is None or self.plan is None:
            return 0
        found = work_bytes(level, step, self.limits, low_scratch=self.low_scratch)
        return found if level.number else max(0, found - self.hosted[step])

    def queued(self, level: GpuLevel, step: Phase) -> int:
        """Return how many sub-rounds to queue at a time: in pages, as many as there is room for."""
        if self.memory.schedule is None:
            return queued_at_once(level.vertices, low_scratch=self.low_scratch)
        return queued_within(level, step, self.memory.spare - self.work_bytes(level, step))

    def holds_ahead(self, level: GpuLevel, *, leiden: bool, at_once: bool = True) -> bool:
        """Return whether nothing leaves for what is launched while a level's vertices move."""
        hole = self.memory.hole
        if hole is None:
            return True
        scratch = self.low_scratch
        return ahead_bytes(level, leiden=leiden, low_scratch=scratch, at_once=at_once) <= hole
