"""Declarations of an engine's arrays: bytes, roles, lifetimes, accesses.

Plan, cost model and profiler all read the same declarations. They tell arrays apart by role and
level, never by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from louvain_um.core.array_names import Role
from louvain_um.core.ledger import GROUPS, Group

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
