"""Arrays for the next level's arcs: allocated before their number is known, then cut to size."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.core.ledger import Group
from louvain_um.gpu.aggregate.limits import WeightForm
from louvain_um.gpu.memory import packed
from louvain_um.placement.memory.run_memory import RunMemory

MOST_VERTICES: Final = 1 << 24
"""Vertices whose numbers have 24 bits."""

SPARE24: Final = 8
"""Bytes after targets of 24 bits: the last read may reach there."""


class RowArray(NamedTuple):
    """Name, length and type of one of the arrays."""

    name: str
    size: int
    dtype: np.dtype[Any]


class CoarseRows:
    """Targets and weights of a level's rows, in arrays that may be longer than needed."""

    def __init__(
        self,
        memory: RunMemory,
        tag: str,
        group: Group,
        capacity: int,
        sums: DTypeLike,
        weights: WeightForm | None = None,
        most: int = 0,
        *,
        targets24: bool = False,
    ) -> None:
        self.memory = memory
        self.growth = memory.mover.growth if memory.mover else None
        self.page_bytes = memory.mover.page_bytes if memory.mover else 0
        self.group: Group = group
        self.names = f"targets.{tag}", f"weights.{tag}"
        self.heavy_slots = weights.heavy_slots if weights else 0
        self.short_bytes = weights.width if weights and self.heavy_slots else 0
        self.dtype = np.dtype(f"u{self.short_bytes}" if self.heavy_slots else sums)
        head = packed.head_bytes(self.heavy_slots) if self.heavy_slots else 0
        self.head = head // self.dtype.itemsize
        self.targets24 = targets24
        self.target_bytes = 3 if targets24 else 4
        self.target_type = np.dtype(np.uint8 if targets24 else np.uint32)
        self.most = most
        self.capacity = capacity = self.filling(capacity)
        targets, others = self.shapes(capacity)
        most_targets, most_weights = (each.size if most else 0 for each in self.shapes(most))
        # The larger array comes last: what `cut` frees of it joins the free memory after it.
        last = memory.empty(
            others.name, group, others.size, others.dtype, cold=True, most=most_weights, head=head
        )
        first = memory.empty(
            targets.name, group, targets.size, targets.dtype, cold=True, most=most_targets
        )
        self.arrays = [first, last]

    def shapes(self, arcs: int) -> tuple[RowArray, RowArray]:
        """Return the arrays of targets and of weights for so many arcs."""
        (targets, weights), (entries, others) = self.names, self.elements(arcs)
        spare = SPARE24 if self.targets24 else 0
        return (
            RowArray(targets, entries + spare, self.target_type),
            RowArray(weights, others, self.dtype),
        )  # fmt: skip

    def elements(self, arcs: int) -> tuple[int, int]:
        """Return, for each array, the elements up to the end of the first so many arcs."""
        return self.target_bytes // self.target_type.itemsize * arcs, self.head + arcs

    @property
    def targets(self) -> Any:
        """uint32[capacity], or uint8[3·capacity + SPARE24]."""
        return self.arrays[0]

    @property
    def weights(self) -> Any:
        """Weights, one per arc, after the table of heavy arcs."""
        return self.arrays[1][self.head :]

    def filling(self, arcs: int) -> int:
        """Return how many arcs the pages hold that so many arcs take; that many without pages."""
        page = self.page_bytes
        if not page:
            return arcs
        held = [self.most]
        widths = self.target_bytes, self.dtype.itemsize
        for (_, size, dtype), width in zip(self.shapes(arcs), widths, strict=True):
            held.append(arcs + -size * dtype.itemsize % page // width)
        return max(arcs, min(held))

    def within(self, wanted: int, least: int, used: int) -> int:
        """Return how many arcs the arrays can hold on the device: at most `wanted`."""
        reach = self.growth.reach(self.finals(used)) if self.growth else 0
        return min(wanted, max(self.capacity + self.arcs_in(reach), least))

    @property
    def width(self) -> int:
        """Bytes of an arc."""
        return self.target_bytes + self.dtype.itemsize

    @property
    def wasted(self) -> int:
        """Bytes of pages that may be wasted: either array wastes part of one."""
        return len(self.names) * self.page_bytes

    def arcs_in(self, nbytes: int) -> int:
        """Return how many arcs so many bytes of pages hold."""
        return max(nbytes - self.wasted, 0) // self.width

    def missing(self, arcs: int) -> int:
        """Return the bytes by which the arrays are to grow for so many arcs, at most."""
        return (arcs - self.capacity) * self.width + self.wasted if arcs > self.capacity else 0

    def free_early(self, wanted: int, used: int) -> None:
        """Free some of what `grow_during_kernel` takes, before a kernel is launched."""
        missing = self.missing(wanted)
        if self.growth and missing:
            self.growth.free_early(self.finals(used), missing)

    def grow_during_kernel(self, wanted: int, used: int) -> None:
        """Enlarge the arrays while a kernel fills them, if they are to hold more."""
        if self.growth is None:
            return
        missing = self.missing(wanted)
        self.growth.back_up(self.finals(used), missing)
        if missing and (more := self.arcs_in(self.growth.leave(self.names, missing))):
            self.grow(min(wanted, self.capacity + more), used)
        self.growth.map_early(self.names)

    def finals(self, used: int) -> dict[str, int]:
        """Return, for each array, the bytes up to the end of the first `used` arcs."""
        targets, weights = self.elements(used)
        ends = targets * self.target_type.itemsize, weights * self.dtype.itemsize
        return dict(zip(self.names, ends, strict=True))

    def grow(self, capacity: int, used: int) -> None:
        """Enlarge the arrays, to whole pages; the first `used` arcs stay."""
        capacity = self.filling(capacity)
        shapes, final = self.shapes(capacity), self.elements(used)
        if self.growth:
            sizes = {name: size * dtype.itemsize for name, size, dtype in shapes}
            self.growth.make_room(sizes, self.finals(used))
        for i, (name, size, dtype) in enumerate(shapes):
            kept = final[i]
            longer = self.memory.extend(name, size, kept)
            if longer is not None:
                self.arrays[i] = longer
                continue
            copied = self.memory.empty("copied_rows", "scratch", kept, dtype)
            copy(self.arrays[i][:kept], copied)
            self.arrays[i] = None
            self.memory.free(name)
            self.arrays[i] = self.memory.empty(name, self.group, size, dtype)
            copy(copied, self.arrays[i])
            del copied
            self.memory.free("copied_rows")
        self.capacity = capacity

    def cut(self, arcs: int) -> tuple[Any, Any]:
        """Free what so many arcs do not need; return their targets and weights."""
        if arcs < self.capacity:
            for i, (name, size, _) in enumerate(self.shapes(arcs)):
                self.arrays[i] = None
                self.arrays[i] = self.memory.shrink(name, size)
            self.capacity = arcs
        return self.targets, self.weights

    def free(self) -> None:
        """Free both arrays."""
        self.arrays.clear()
        self.memory.free(*self.names)


def copy(source: Any, target: Any) -> None:
    """Copy an array to the start of another of the same type."""
    if source.nbytes:
        target.data.copy_from_device_async(source.data, source.nbytes)


def whole_targets(nbytes: int) -> int:
    """Return of how many targets both words that they are read from are in the first bytes."""
    return max(0, nbytes - 5) // 3
