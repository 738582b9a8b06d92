"""One arena of a plan: its size and its placement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from louvain_um.core.ledger import Group
from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.policy.policy import ELSEWHERE, KINDS, Placement

MANAGED: Final = frozenset(KINDS) - {"device", "pinned", "peer"}
"""Kinds of managed memory."""

SLACK: Final = 64 << 10
"""Bytes on top of a plan's capacity: arrays begin at multiples of `ALIGNED`, plans count bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaSpec:
    """One arena of a plan's layout."""

    name: str
    group: Group | None
    capacity: int
    placement: Placement
    members: tuple[str, ...] | None = None
    out_of_core: bool = False
    lenient: bool = False
    in_pages: bool = False
    kept: bool = False
    on_demand: bool = False


def cut(capacity: int, fraction: float) -> int:
    """Return how many bytes of a split arena are the device's: whole blocks, rounded down."""
    return capacity if fraction >= 1 else int(capacity * fraction) // BLOCK * BLOCK


def device_bytes(placement: Placement, capacity: int) -> int:
    """Return how many bytes of an arena occupy the device when all of it is in use."""
    if placement.kind in ELSEWHERE:
        return 0
    return cut(capacity, placement.fraction) if placement.kind == "split" else capacity


def size_of(spec: ArenaSpec) -> int:
    """Return the bytes of memory that an arena takes; managed ones are whole blocks."""
    nbytes = spec.capacity + SLACK
    return nbytes if spec.placement.kind == "device" else -(-nbytes // BLOCK) * BLOCK


def guarded_bytes(layout: Iterable[ArenaSpec]) -> int:
    """Return the bytes that must be free on the device for managed memory that must be."""
    specs = list(layout)
    loose = [s for s in specs if s.placement.kind == "split" or _stood_in(s)]
    held = [s for s in specs if s not in loose and s.placement.kind not in ("pinned", "peer")]
    if all(spec.placement.kind == "device" for spec in held):
        return 0
    return sum(map(size_of, held)) + sum(device_bytes(s.placement, s.capacity) for s in loose)


def _stood_in(spec: ArenaSpec) -> bool:
    return spec.lenient and spec.placement.kind == "host_mapped"
