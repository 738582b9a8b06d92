"""Memory and seconds of a run on several GPUs of one host, from the size of a graph alone.

Seconds are fitted to one and two H200 (`benchmarks/results/devices_h200.json`); a test holds
them to a fifth of what was measured there. More than two are modelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from louvain_um.distributed.plan_sizes import (
    DEFAULT_KIND,
    PlanOfOne,
    counts_to,
    kind_among,
    refuse_sizes,
)
from louvain_um.gpu.ranks.loading import arena_bytes

RATES: Final[Mapping[str, float]] = {
    "community_structured": 3.5e9,
    "power_law": 1.8e9,
    "mesh": 2.55e9,
}
"""Arcs of the graph per second of one H200: LFR 24, R-MAT 24, stencil 560."""

ALONE: Final[Mapping[str, float]] = {
    "community_structured": 0.05,
    "power_law": 0.02,
    "mesh": 0.012,
}
"""Share of these seconds on levels that are too small to be shared."""

REPEATED: Final = 0.21
"""Share of all other seconds that do not become less with more devices: applying moves, grouping
vertices, exchange and waiting. One number for all graphs, fitted to two devices."""

MEASURED: Final = 2
"""Most devices that anything was measured on."""

LARGE: Final = 10**8
"""Arcs from which launches and small exchanges, which the model leaves out, matter little."""

MOST_DEVICES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlan(PlanOfOne):
    """What each of several devices takes."""

    devices: int
    row_bytes: int
    state_bytes: int
    seconds: dict[str, float]
    evidence: str

    @property
    def nbytes(self) -> int:
        """Bytes reserved on a device."""
        return self.row_bytes + self.state_bytes


def plan_devices(
    vertices: int,
    arcs: int,
    *,
    devices: int,
    weighted: bool = False,
    kind: str | None = None,
) -> DevicePlan:
    """Return what each of several H200 of one host takes."""
    refuse_sizes("devices", devices, MOST_DEVICES, vertices, arcs)
    kind = kind_among(RATES, kind)
    whole = arcs / RATES[kind]
    shared = whole * (1 - ALONE[kind])
    own = arcs // devices
    # Sums of weights above 2³² take eight bytes.
    width = 12 if weighted or arcs >= 1 << 32 else 8
    return DevicePlan(
        devices=devices,
        row_bytes=(8 if weighted else 4) * own,
        state_bytes=arena_bytes(vertices, arcs, own, width),
        seconds={
            "own": shared * (1 - REPEATED) / devices,
            "repeated": shared * REPEATED,
            "alone": whole * ALONE[kind],
        },
        evidence="fitted" if devices <= MEASURED and arcs >= LARGE else "modelled",
    )


def device_choices(vertices: int, arcs: int, most: int, **values: Any) -> list[DevicePlan]:
    """Return plans for 1, 2, 4, … devices, and for `most`."""
    # The most first: if there are too many, the error names those asked for.
    counts = reversed(counts_to(most))
    return [plan_devices(vertices, arcs, devices=count, **values) for count in counts][::-1]


def most_speedup(kind: str | None = None) -> float:
    """Return how many times as fast as one any number of devices is at most.

    Examples
    --------
    >>> from louvain_um.distributed.device_plan import most_speedup
    >>> 4 < most_speedup("mesh") < 5
    True
    """
    alone = ALONE[kind or DEFAULT_KIND]
    return 1 / (alone + (1 - alone) * REPEATED)
