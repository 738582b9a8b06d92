"""Declarations of an engine's arrays: names, roles, bytes, lifetimes, accesses.

A name is a stem in snake case, and what distinguishes arrays of one stem behind dots:
``targets.0`` is a level's, ``labels.1.0`` a cycle's and a level's, ``targets.1.3`` those of level
3 in the memory region of level 1. Plan, cost model and profiler all read the same declarations.
They distinguish arrays by role and level only; whatever else reads a name is a user's policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, TypedDict, get_args

from louvain_um.core.ledger import GROUPS, Group

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


class ArrayIdentity(TypedDict):
    """Name, role and level of an array, as `ArraySpec` takes them."""

    name: str
    role: Role
    level: int | None


def identity(name: str) -> ArrayIdentity:
    """Return the name, role and level of an engine's array."""
    return {"name": name, "role": role_of(name), "level": level_of(name)}


Stage = Literal["load", "move", "refine", "aggregate", "coarse", "fetch"]
"""A stage of a run. "coarse" is everything on levels above 0; all others are of level 0."""

STAGES: tuple[Stage, ...] = get_args(Stage)

Use = Literal["stream", "gather", "atomic"]
"""How kernels access an array: streaming, at random, or at random by atomic updates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """One array that an engine will allocate."""

    name: str
    group: Group
    itemsize: float
    size: int
    stages: tuple[Stage, ...]
    role: Role = "other"
    level: int | None = None
    accesses: Mapping[tuple[Stage, Use], float] = field(default_factory=dict)
    device_only: bool = False
    estimated: bool = False
    by_length: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.ceil(self.itemsize * self.size)

    @property
    def holds_input_arcs(self) -> bool:
        """Whether it holds targets or weights of level 0."""
        return self.role in ("targets", "weights") and self.level == 0

    @property
    def holds_coarse_arcs(self) -> bool:
        """Whether it holds targets or weights of a later level."""
        return self.role in ("targets", "weights") and self.level != 0


def peak_bytes(arrays: Iterable[ArraySpec]) -> dict[Group, int]:
    """Return the most bytes that each group's arrays hold at any one stage."""
    declared = list(arrays)
    return {
        group: max(
            sum(a.nbytes for a in declared if a.group == group and stage in a.stages)
            for stage in STAGES
        )
        for group in GROUPS
    }
