"""The arcs of a level to come: written one behind the other, in one place, then cut to size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.core.ledger import Group
from louvain_um.gpu.memory import weights8
from louvain_um.placement.memory.allocator import Allocator


class CoarseRows:
    """Targets and weights of a level's rows, in arrays of which not all may be needed.

    Parameters
    ----------
    memory : Allocator
    tag : str
        The arrays are called ``targets.{tag}`` and ``weights.{tag}``.
    group : str
    capacity : int
        Arcs there is room for at first.
    sums : dtype
        Of the weights, unless they are narrow.
    wide : int
        Entries for heavy arcs (`narrow.py`); 0: weights are not narrow.
    """

    def __init__(
        self,
        memory: Allocator,
        tag: str,
        group: Group,
        capacity: int,
        sums: DTypeLike,
        wide: int,
    ) -> None:
        self.memory = memory
        self.group: Group = group
        self.names = f"targets.{tag}", f"weights.{tag}"
        self.kind = np.dtype(np.uint8 if wide else sums)
        self.wide = wide
        self.head = weights8.head_bytes(wide) if wide else 0
        self.capacity = capacity
        targets, weights = self.shapes(capacity)
        # What `cut` gives back of the larger one, behind the other, joins what is free there.
        last = memory.empty(weights[0], group, *weights[1:])
        self.arrays = [memory.empty(targets[0], group, *targets[1:]), last]

    def shapes(self, arcs: int) -> list[tuple[str, int, Any]]:
        """Return names, lengths and types of the arrays for so many arcs."""
        targets, weights = self.names
        return [(targets, arcs, np.uint32), (weights, self.head + arcs, self.kind)]

    @property
    def targets(self) -> Any:
        """uint32[capacity]."""
        return self.arrays[0]

    @property
    def weights(self) -> Any:
        """Weights, one an arc, behind the table of the heavy ones."""
        return self.arrays[1][self.head :]

    def grow(self, capacity: int, used: int) -> None:
        """Make room for more arcs; the first `used` of them stay."""
        for i, (name, size, kind) in enumerate(self.shapes(capacity)):
            kept = used + (self.head if i else 0)
            aside = self.memory.empty("rows aside", "scratch", kept, kind)
            copy(self.arrays[i][:kept], aside)
            self.arrays[i] = None
            self.memory.free(name)
            self.arrays[i] = self.memory.empty(name, self.group, size, kind)
            copy(aside, self.arrays[i])
            del aside
            self.memory.free("rows aside")
        self.capacity = capacity

    def cut(self, arcs: int) -> tuple[Any, Any]:
        """Give back what is not needed; return targets and weights of so many arcs."""
        if arcs < self.capacity:
            for i, (name, size, _) in enumerate(self.shapes(arcs)):
                self.arrays[i] = None
                self.arrays[i] = self.memory.shrink(name, size)
            self.capacity = arcs
        return self.targets, self.weights

    def free(self) -> None:
        """Give everything back."""
        self.arrays.clear()
        self.memory.free(*self.names)


def copy(source: Any, target: Any) -> None:
    """Copy an array to the beginning of another of its type."""
    if source.nbytes:
        target.data.copy_from_device_async(source.data, source.nbytes)
