"""The plan that a run follows, and how long it is predicted to take: before it and during it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from louvain_um.core.hierarchy import MoveStats
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory.in_place import InPlace
from louvain_um.gpu.preparation import Prepared
from louvain_um.gpu.runtime.device import name_of
from louvain_um.placement.migration.block_cache import BlockTraffic
from louvain_um.placement.model.remaining import Found, Remaining


class FollowedPlan:
    """The plan of a prepared run, corrected by what the run finds; none if all is on devices."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared, self.memory = prepared, prepared.run.memory
        self.plan = plan = prepared.planned.plan if prepared.planned else None
        self.before = None if plan is None else (plan.seconds, plan.seconds_range)
        self.corrected: float | None = None
        self.uncorrected: tuple[MoveStats, float] | None = None
        self.remaining: Remaining | None = None
        self.after_cycle_0: float | None = None
        self.began = self.visited = 0.0

    @property
    def stays_on_device(self) -> bool:
        """Whether everything is on the device, where it stays."""
        return self.plan is None or (self.plan.in_core and not self.plan.pages)

    @property
    def keeps_layout(self) -> bool:
        """Whether no other layout is followed: all stays on the device, or pages are scheduled."""
        return self.stays_on_device or self.memory.mover is not None

    def begin(self) -> None:
        """Note that the first move phase begins."""
        self.began = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the first move phase began."""
        return time.perf_counter() - self.began

    def moved(self, moved: MoveStats, arcs: int) -> None:
        """Note that the first move phase, on so many arcs, is over."""
        self.uncorrected = moved, self.elapsed
        self.visited = moved.arcs_visited / max(arcs, 1)
        # Where nothing follows from it, it is found while level 1 moves.
        if not self.keeps_layout:
            self.correct()

    def correct(self) -> None:
        """Correct the plan by the first move phase, once; follow its layout where possible."""
        plan, choosing = self.plan, not self.keeps_layout
        if plan is None or self.uncorrected is None:
            return
        (moved, seconds), self.uncorrected = self.uncorrected, None
        visited = [moved.arcs_visited]
        found = plan.corrected(visited, seconds, choosing=choosing)
        if found.layout != plan.layout:
            if found.compact == plan.compact and self.memory.arenas.follow(found.layout):
                self.plan = found
            else:
                found = plan.corrected(visited, seconds, choosing=False)
        self.corrected = found.seconds

    def aggregated(self, coarse: GpuLevel) -> None:
        """Predict what follows from level 1."""
        if self.plan is None or self.prepared.planned is None:
            return
        sums, shape = coarse.start_sums, self.prepared.planned.shape
        found = Found(
            seconds=self.elapsed,
            visited=self.visited,
            arcs=coarse.arcs,
            vertices=coarse.vertices,
            communities=coarse.vertices if sums is None else sums.communities,
            isolated=shape.isolated,
            skew=shape.skew,
            max_degree=shape.max_degree or 0,
        )
        self.remaining = self.plan.remaining(found)

    def cycle_ended(self) -> None:
        """Predict how long further cycles take: the first one is over."""
        if self.remaining:
            self.after_cycle_0 = self.remaining.after_cycle(self.elapsed)

    @property
    def traffic(self) -> dict[str, int]:
        """Bytes of vertex blocks, or of pages, that the run moved between host and device."""
        blocks, mover = self.prepared.blocks, self.memory.mover
        moved = blocks.cache.traffic if blocks else BlockTraffic()
        pages = mover.copied if mover else {"device": 0, "host": 0}
        return {
            "to_device": moved.to_device + pages["device"],
            "to_host": moved.to_host + pages["host"],
        }

    def provenance(self, in_place: InPlace) -> Mapping[str, Any]:
        """Return device, policy and budget, what was predicted, and what was moved and read."""
        import cupy

        self.correct()
        planned, plan, blocks = self.prepared.planned, self.plan, self.prepared.blocks
        device = cupy.cuda.Device().id
        where = f"cuda:{device} ({name_of(device)})"
        if planned is None or plan is None or self.before is None:
            return {"device": where, "policy": "device", "budget_bytes": None, "threads": None}
        seconds, known = self.before
        predicted = {
            "seconds": seconds,
            "seconds_range": known and [known.low, known.expected, known.high],
            "seconds_corrected": self.corrected,
            "seconds_after_level_0": self.remaining and self.remaining.seconds,
            "seconds_after_cycle_0": self.after_cycle_0,
            "kept": plan.kept,
            "device_bytes": plan.device_bytes,
            "packed": plan.compact,
            "target_bytes": planned.shape.target_bytes if plan.compact else 4,
            "pages_a_warp": blocks.touch.factor if blocks else None,
        }
        return {
            "device": where,
            "policy": plan.policy,
            "placements": {group: str(where) for group, where in plan.placements.items()},
            "budget_bytes": plan.budget,
            "overflowed": dict(self.memory.overflowed),
            "peer_memory": None if planned.peer is None else f"cuda:{planned.peer}",
            "plan": predicted,
            "launches": {"before": plan.launches_before, "after": blocks.count if blocks else 1},
            "traffic_bytes": self.traffic,
            "read_in_place": in_place.summary(),
            "touched_bytes": self.memory.ledger.peak_total,
            "threads": None,
        }
