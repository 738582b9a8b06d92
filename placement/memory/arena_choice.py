"""Which arena an array lies in, and which lends it room if that one is full."""

from __future__ import annotations

from collections.abc import Iterable

from louvain_um.core.ledger import Group
from louvain_um.placement.arena_spec import ArenaSpec
from louvain_um.placement.memory.arena import Arena
from louvain_um.placement.memory.paging.span import Span


def arena_for(
    arenas: Iterable[Arena | Span], name: str, group: Group, *, later: bool = False
) -> Arena | Span | None:
    """Return the arena that names an array, or else its group's; None without either."""
    general = None
    for arena in arenas:
        members = arena.spec.members
        named = any(_is_or_begins(name, member) for member in members or ())
        if named and not (later and "." not in name):
            return arena
        if members is None and arena.spec.group in (group, None) and general is None:
            general = arena
    return general


def part_for(parts: Iterable[ArenaSpec], name: str, *, later: bool = False) -> ArenaSpec | None:
    """Return the spec, of arrays that take pages when they are made, that names an array."""
    if later and "." not in name:
        return None
    for spec in parts:
        if any(_is_or_begins(name, member) for member in spec.members or ()):
            return spec
    return None


def lent(
    arenas: Iterable[Arena | Span], full: Arena | Span, nbytes: int
) -> tuple[Arena | Span, int | None]:
    """Return an arena of plain device memory that has room in place of one that is full."""
    if _lends(full):
        for other in filter(_lends, arenas):
            address = other.take(nbytes, high=True)
            if address is not None:
                return other, address
    return full, None


def _is_or_begins(name: str, member: str) -> bool:
    """Whether an array is the one named, or one of a kind named."""
    if not name.startswith(f"{member}."):
        return name == member
    _, _, level = name.removeprefix(f"{member}.").partition(".")
    return level in ("", "0")


def _lends(arena: Arena | Span) -> bool:
    """Whether an arena is plain device memory for a whole group."""
    return arena.placement.kind == "device" and arena.spec.members is None
