"""A free list: which parts of a range of bytes are taken."""

from __future__ import annotations

from bisect import bisect_left, insort

GRAIN = 256
"""Bytes that every block is a multiple of: what cudaMalloc aligns to."""


class FreeList:
    """Blocks cut from a range of bytes by best fit; neighbours that are free are joined."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity // GRAIN * GRAIN
        self.taken: dict[int, int] = {}
        # Holes as (offset, bytes), by offset. A run has dozens of arrays, not thousands.
        self.holes: list[tuple[int, int]] = [(0, self.capacity)] if self.capacity else []
        self.in_use = 0
        self.peak = 0

    def take(self, nbytes: int, *, high: bool = False) -> int | None:
        """Return the offset of a new block, or None if no hole is large enough."""
        holes, wanted = self.holes, rounded(nbytes)
        fitting = [i for i, hole in enumerate(holes) if hole[1] >= wanted]
        if not fitting:
            return None
        # Of equals, the first that is looked at.
        at = min(reversed(fitting) if high else fitting, key=lambda i: holes[i][1])
        offset, size = holes[at]
        left = size - wanted
        if left:  # which stays in its place among the others
            holes[at] = (offset if high else offset + wanted), left
        else:
            del holes[at]
        offset += left if high else 0
        self.taken[offset] = wanted
        self._count(wanted)
        return offset

    def reserve(self, offset: int, nbytes: int) -> None:
        """Take a block at an offset; both are multiples of the grain."""
        for begin, size in self.holes:
            if begin <= offset and offset + nbytes <= begin + size:
                break
        else:
            raise ValueError(f"{nbytes} bytes at {offset} are not free")
        self.holes.remove((begin, size))
        for hole in ((begin, offset - begin), (offset + nbytes, begin + size - offset - nbytes)):
            if hole[1]:
                insort(self.holes, hole)
        self.taken[offset] = nbytes
        self._count(nbytes)

    def give(self, offset: int) -> None:
        """Free a block."""
        size = self.taken.pop(offset)
        self._count(-size)
        self._hole(offset, size)

    def shrink(self, offset: int, nbytes: int) -> None:
        """Free the end of a block, so that `nbytes` of it are left."""
        size, wanted = self.taken[offset], rounded(nbytes)
        if wanted > size:
            raise ValueError(f"a block of {size} bytes cannot shrink to {nbytes}")
        if wanted < size:
            self.taken[offset] = wanted
            self._count(wanted - size)
            self._hole(offset + wanted, size - wanted)

    @property
    def free(self) -> int:
        """Bytes that are not taken."""
        return self.capacity - self.in_use

    @property
    def largest(self) -> int:
        """Bytes of the largest hole."""
        return max((nbytes for _, nbytes in self.holes), default=0)

    def _count(self, change: int) -> None:
        self.in_use += change
        if self.in_use > self.peak:
            self.peak = self.in_use

    def _hole(self, offset: int, size: int) -> None:
        """Add a hole, joined with those that it touches."""
        holes = self.holes
        at = bisect_left(holes, (offset, 0))
        if at < len(holes) and offset + size == holes[at][0]:
            size += holes.pop(at)[1]
        if at:
            before, length = holes[at - 1]
            if before + length == offset:
                holes[at - 1] = before, length + size
                return
        holes.insert(at, (offset, size))


def rounded(nbytes: int) -> int:
    """Return bytes as whole grains; an empty array takes one, so that it has an address."""
    return -(-max(nbytes, 1) // GRAIN) * GRAIN
