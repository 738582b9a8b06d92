"""Names and roles of the engines' arrays, the one place where a name says what an array is for.

A name is a stem in snake case, and what sets arrays of one stem apart behind dots:
``targets.0`` is a level's, ``labels.1.0`` a cycle's and a level's, ``targets.1.3`` those of level
3 in the memory region of level 1. Plans, models and replays look at a role and a level only
(`louvain_um.core.array_spec.ArraySpec`); whatever else reads a name is a user's policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal, TypedDict

Role = Literal[
    "offsets",
    "heads",
    "targets",
    "weights",
    "loops",
    "degrees",
    "labels",
    "start",
    "refined",
    "totals",
    "sizes",
    "queue",
    "proposed",
    "active",
    "next_active",
    "hash_keys",
    "hash_sums",
    "members",
    "chunk",
    "other",
]
"""What an array is for: rows of a level's graph, degrees, communities of its vertices (now, at its
start, refined), sums by community, work of a sweep, hash tables, members of communities with the
arcs before each, rows of a chunk of communities."""

_SAME: Final[tuple[Role, ...]] = (
    *("offsets", "heads", "targets", "weights", "loops", "degrees"),
    *("labels", "start", "refined", "totals", "sizes"),
    *("queue", "proposed", "active", "next_active"),
)

ROLES: Final[Mapping[str, Role]] = {
    **{role: role for role in _SAME},
    "refined_totals": "totals",
    "refined_sizes": "sizes",
    "hub_keys": "hash_keys",
    "hub_sums": "hash_sums",
    "aggregate_keys": "hash_keys",
    "aggregate_sums": "hash_sums",
    "aggregate_members": "members",
    "aggregate_low": "members",
    "aggregate_chunk_targets": "chunk",
    "aggregate_chunk_weights": "chunk",
    "aggregate_chunk": "chunk",
    "aggregate_rooms": "chunk",
}
"""Roles by stem; any other stem is "other"."""

STREAMED: Final = frozenset(("targets", "weights", "queue", "proposed", "active", "chunk"))
"""Roles of arrays that kernels stream through; others of this package are read at random."""


@lru_cache(4096)
def role_of(name: str) -> Role:
    """Return what an engine's array is for."""
    return ROLES.get(name.partition(".")[0], "other")


@lru_cache(4096)
def level_of(name: str) -> int | None:
    """Return the level that an array is planned for; None for arrays of no one level."""
    stem, dot, number = name.partition(".")
    if stem not in ROLES:
        return None
    if not dot:
        return 0
    return int(number) if number.isdecimal() else None


class Identity(TypedDict):
    """Name, role and level of an array, as `ArraySpec` takes them."""

    name: str
    role: Role
    level: int | None


def identity(name: str) -> Identity:
    """Return the name, role and level of an engine's array.

    Examples
    --------
    >>> from louvain_um.core.array_names import identity
    >>> identity("targets.0")
    {'name': 'targets.0', 'role': 'targets', 'level': 0}
    """
    return {"name": name, "role": role_of(name), "level": level_of(name)}
