"""One arena of a plan: its size and its placement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from louvain_um.core.ledger import Group
from louvain_um.placement.policy.policy import ELSEWHERE, KINDS, Placement

MANAGED: Final = frozenset(KINDS) - {"device", "pinned", "peer"}
"""Kinds of managed memory."""

BLOCK: Final = 2 << 20
"""Bytes of the driver's blocks: advice that ends inside one splits it."""


SLACK: Final = 64 << 10
"""Bytes on top of a plan's capacity: arrays begin at multiples of 256, plans count bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaSpec:
    """One arena of a plan's layout.

    Parameters
    ----------
    name : str
    group : {"graph", "hash", "community", "scratch"} or None
        Whose arrays it holds; None for those of every group.
    capacity : int
        Bytes that its arrays take at most at any one time.
    placement : Placement
    members : tuple of str, optional
        Names of the arrays in it, or what stands before the first "." of their names; None for
        all of the group that no other arena names.
    out_of_core : bool
        It holds arcs of level 0, which can be transferred in vertex blocks.
    lenient : bool
        Whether its host part may be page-locked memory where managed memory cannot be had; it
        is what "auto" lays out, which did not ask for one or the other.
    in_pages : bool
        Its pages change sides during the run (`louvain_um.placement.memory.paging.pages`).
    kept : bool
        These leave the device only once the input's arcs are not read any more.
    on_demand : bool
        One array, which takes pages of both sides when it is made: those of the device are of what
        all groups share.
    """

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
    """Return how many bytes of a split arena are the device's: whole blocks, rounded down.

    Examples
    --------
    >>> from louvain_um.placement.arena_spec import cut
    >>> cut(7 << 20, 0.5) >> 20, cut(7 << 20, 1.0) >> 20
    (2, 7)
    """
    return capacity if fraction >= 1 else int(capacity * fraction) // BLOCK * BLOCK


def device_bytes(placement: Placement, capacity: int) -> int:
    """Return how many bytes of an arena occupy the device when all of it is in use.

    Examples
    --------
    >>> from louvain_um.placement.policy.policy import Placement
    >>> from louvain_um.placement.arena_spec import device_bytes
    >>> device_bytes(Placement("host_mapped"), 100 << 20)
    0
    """
    if placement.kind in ELSEWHERE:
        return 0
    return cut(capacity, placement.fraction) if placement.kind == "split" else capacity


def size_of(spec: ArenaSpec) -> int:
    """Return the bytes of memory that an arena takes; managed ones are whole blocks."""
    nbytes = spec.capacity + SLACK
    return nbytes if spec.placement.kind == "device" else -(-nbytes // BLOCK) * BLOCK


def guarded_bytes(layout: Iterable[ArenaSpec]) -> int:
    """Return the bytes that must be free on the device for managed memory that must be.

    Splits, and host memory that may be of another sort, need the device's part alone. Nothing,
    where there is no such managed memory.
    """
    specs = list(layout)
    loose = [s for s in specs if s.placement.kind == "split" or _stood_in(s)]
    held = [s for s in specs if s not in loose and s.placement.kind not in ("pinned", "peer")]
    if all(spec.placement.kind == "device" for spec in held):
        return 0
    return sum(map(size_of, held)) + sum(device_bytes(s.placement, s.capacity) for s in loose)


def _stood_in(spec: ArenaSpec) -> bool:
    return spec.lenient and spec.placement.kind == "host_mapped"
