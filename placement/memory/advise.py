"""Advice: given to the driver about a managed range before its first access.

Every piece of advice is read back and compared; what the driver refuses, or takes back, stops
the run under its own name rather than letting it continue under another placement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from louvain_um.errors import PlacementError
from louvain_um.placement.layout import cut
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.cuda_calls import HOST, NOWHERE
from louvain_um.placement.policy.policy import Placement

Side = Literal["device", "host", "both", "moving", "peer"]
"""Where bytes are: on one side, copied to both, or wherever last touched."""

ACCESSORS = 8
"""Locations asked for when reading back which devices access a range."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of an arena that follow each other, on one side."""

    offset: int
    nbytes: int
    side: Side


class PartAtSide(NamedTuple):
    """Bytes at an address, on one side."""

    address: int
    nbytes: int
    side: Side


@dataclass(frozen=True, slots=True)
class RangeAdvice:
    """Attributes of a managed range, as the driver reports them; locations as in `cuda_calls`."""

    preferred: int
    accessed_by: tuple[int, ...]
    read_mostly: bool
    last_prefetch: int


SIDES: dict[str, Side] = {
    "device": "device",
    "prefetched": "device",
    "managed": "moving",
    "read_mostly": "both",
    "host_mapped": "host",
    "pinned": "host",
    "peer": "peer",
}


def extents(placement: Placement, capacity: int, nbytes: int) -> tuple[Extent, ...]:
    """Return the extents of an arena of `nbytes`, of which `capacity` were planned."""
    if placement.kind != "split":
        return (Extent(0, nbytes, SIDES[placement.kind]),)
    here = nbytes if placement.fraction >= 1 else cut(capacity, placement.fraction)
    parts = (Extent(0, here, "device"), Extent(here, nbytes - here, "host"))
    return tuple(part for part in parts if part.nbytes)


def wanted(side: Side, device: int) -> RangeAdvice:
    """Return the attributes that an extent should have before any prefetch."""
    match side:
        case "device":
            return RangeAdvice(device, (), False, NOWHERE)
        case "host":
            return RangeAdvice(HOST, (device,), False, NOWHERE)
        case "both":
            return RangeAdvice(NOWHERE, (), True, NOWHERE)
    return RangeAdvice(NOWHERE, (), False, NOWHERE)


def apply(arena: str, address: int, part: Extent, device: int) -> None:
    """Advise the driver about one extent, and read the advice back."""
    goal = wanted(part.side, device)
    steps: list[tuple[str, int]] = []
    if goal.read_mostly:
        steps.append(("SetReadMostly", device))
    if goal.preferred != NOWHERE:
        steps.append(("SetPreferredLocation", goal.preferred))
    steps += [("SetAccessedBy", accessor) for accessor in goal.accessed_by]
    for advice, location in steps:
        _checked_call(
            arena, f"{advice}={place(location)}", cuda_calls.advise, address, part, advice, location
        )
    found = attributes(address + part.offset, part.nbytes)
    for name in ("preferred", "accessed_by", "read_mostly"):
        if getattr(found, name) != getattr(goal, name):
            raise PlacementError(
                f"arena {arena!r}: advised {name}={getattr(goal, name)}, but the driver reports "
                f"{getattr(found, name)}; use another memory policy, or memory='device'"
            )


def withdraw(arena: str, address: int, part: Extent, device: int) -> None:
    """Withdraw the advice that `apply` gave."""
    goal = wanted(part.side, device)
    if goal.read_mostly:
        _checked_call(
            arena, "UnsetReadMostly", cuda_calls.advise, address, part, "UnsetReadMostly", device
        )
    if goal.preferred != NOWHERE:
        undo = "UnsetPreferredLocation"
        _checked_call(arena, undo, cuda_calls.advise, address, part, undo, goal.preferred)
    for accessor in goal.accessed_by:
        _checked_call(
            arena, "UnsetAccessedBy", cuda_calls.advise, address, part, "UnsetAccessedBy", accessor
        )


def bring(arena: str, address: int, part: Extent, location: int) -> None:
    """Prefetch an extent, and have the driver confirm where to."""
    where = place(location)
    _checked_call(arena, f"prefetch to {where}", cuda_calls.prefetch, address, part, location)
    found = cuda_calls.range_attribute(address + part.offset, part.nbytes, "LastPrefetchLocation")
    if found != location:
        raise PlacementError(
            f"arena {arena!r}: prefetched to {where}, but the driver reports "
            f"{place(found)}; use another memory policy, or memory='device'"
        )


def attributes(address: int, nbytes: int) -> RangeAdvice:
    """Return the attributes that the driver reports for a managed range."""
    accessors = cuda_calls.range_attribute(address, nbytes, "AccessedBy", 4 * ACCESSORS)
    return RangeAdvice(
        cuda_calls.range_attribute(address, nbytes, "PreferredLocation"),
        tuple(device for device in accessors if device != NOWHERE),
        bool(cuda_calls.range_attribute(address, nbytes, "ReadMostly")),
        cuda_calls.range_attribute(address, nbytes, "LastPrefetchLocation"),
    )


def place(location: int) -> str:
    """Return a location in words."""
    return {HOST: "host", NOWHERE: "nowhere"}.get(location, f"cuda:{location}")


def _checked_call(arena: str, what: str, call: Any, address: int, part: Extent, *args: Any) -> None:
    """Make a call about an extent; name what the driver rejects."""
    try:
        call(address + part.offset, part.nbytes, *args)
    except cuda_calls.CudaError as error:
        raise PlacementError(
            f"arena {arena!r}: the driver rejected {what} ({error.name}); use another memory "
            "policy, or memory='device'"
        ) from error
