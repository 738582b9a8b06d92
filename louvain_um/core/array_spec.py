"""What an engine says about its arrays before it has any: bytes, lifetimes, how they are used.

Plan, cost model and profiler all read the same declarations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from louvain_um.core.ledger import GROUPS, Group

Stage = Literal["load", "move", "refine", "aggregate", "coarse", "fetch"]
"""A stretch of a run. All but "coarse", which is everything on levels above 0, are level 0's."""

STAGES: tuple[Stage, ...] = get_args(Stage)

Use = Literal["stream", "gather", "atomic"]
"""How kernels reach an array: in stretches of it, at random, or at random by atomic updates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """One array that an engine will ask for.

    Parameters
    ----------
    name : str
        As the allocator will hear it.
    group : {"graph", "hash", "community", "scratch"}
    itemsize, size : int
        Bytes of an element, and elements.
    stages : tuple of str
        When it is alive.
    accesses : mapping of (stage, use) to float
        Element accesses expected in a whole run.
    device_only : bool
        Small, and waited for by every block of a grid: never placed elsewhere.

    Examples
    --------
    >>> from louvain_um.core.array_spec import ArraySpec
    >>> ArraySpec(name="labels", group="community", itemsize=4, size=10, stages=("move",)).nbytes
    40
    """

    name: str
    group: Group
    itemsize: int
    size: int
    stages: tuple[Stage, ...]
    accesses: Mapping[tuple[Stage, Use], float] = field(default_factory=dict)
    device_only: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.itemsize * self.size


def peak_bytes(arrays: Iterable[ArraySpec]) -> dict[Group, int]:
    """Return the most bytes that each group's arrays hold at any one stage.

    Examples
    --------
    >>> from louvain_um.core.array_spec import ArraySpec, peak_bytes
    >>> a = ArraySpec(name="a", group="hash", itemsize=4, size=10, stages=("move",))
    >>> b = ArraySpec(name="b", group="hash", itemsize=8, size=10, stages=("refine",))
    >>> peak_bytes([a, b])["hash"]
    80
    """
    found = list(arrays)
    return {
        group: max(
            sum(a.nbytes for a in found if a.group == group and stage in a.stages)
            for stage in STAGES
        )
        for group in GROUPS
    }
