"""A free list: which parts of a range of bytes are taken."""

from __future__ import annotations

from bisect import bisect_left, insort

from louvain_um.placement.hardware import ALIGNED


class FreeList:
    """Blocks cut from a range of bytes by best fit; neighbours that are free are joined."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity // ALIGNED * ALIGNED
        self.taken: dict[int, int] = {}
        # Gaps as (offset, bytes), by offset. A run has dozens of arrays, not thousands.
        self.gaps: list[tuple[int, int]] = [(0, self.capacity)] if self.capacity else []
        self.in_use = 0
        self.peak = 0

    def take(self, nbytes: int, *, high: bool = False) -> int | None:
        """Return the offset of a new block, or None if no gap is large enough."""
        gaps, wanted = self.gaps, rounded(nbytes)
        fitting = [i for i, gap in enumerate(gaps) if gap[1] >= wanted]
        if not fitting:
            return None
        # Of equals, the first that is looked at.
        at = min(reversed(fitting) if high else fitting, key=lambda i: gaps[i][1])
        offset, size = gaps[at]
        left = size - wanted
        if left:  # which stays in its place among the others
            gaps[at] = (offset if high else offset + wanted), left
        else:
            del gaps[at]
        offset += left if high else 0
        self.taken[offset] = wanted
        self._count(wanted)
        return offset

    def reserve(self, offset: int, nbytes: int) -> None:
        """Take a block at an offset; both are multiples of the grain."""
        for begin, size in self.gaps:
            if begin <= offset and offset + nbytes <= begin + size:
                break
        else:
            raise ValueError(f"{nbytes} bytes at {offset} are not free")
        self.gaps.remove((begin, size))
        for gap in ((begin, offset - begin), (offset + nbytes, begin + size - offset - nbytes)):
            if gap[1]:
                insort(self.gaps, gap)
        self.taken[offset] = nbytes
        self._count(nbytes)

    def give(self, offset: int) -> None:
        """Free a block."""
        size = self.taken.pop(offset)
        self._count(-size)
        self._add_gap(offset, size)

    def shrink(self, offset: int, nbytes: int) -> None:
        """Free the end of a block, so that `nbytes` of it are left."""
        size, wanted = self.taken[offset], rounded(nbytes)
        if wanted > size:
            raise ValueError(f"a block of {size} bytes cannot shrink to {nbytes}")
        if wanted < size:
            self.taken[offset] = wanted
            self._count(wanted - size)
            self._add_gap(offset + wanted, size - wanted)

    @property
    def free(self) -> int:
        """Bytes that are not taken."""
        return self.capacity - self.in_use

    @property
    def largest(self) -> int:
        """Bytes of the largest gap."""
        return max((nbytes for _, nbytes in self.gaps), default=0)

    def _count(self, change: int) -> None:
        self.in_use += change
        if self.in_use > self.peak:
            self.peak = self.in_use

    def _add_gap(self, offset: int, size: int) -> None:
        """Add a gap, joined with those that it touches."""
        gaps = self.gaps
        at = bisect_left(gaps, (offset, 0))
        if at < len(gaps) and offset + size == gaps[at][0]:
            size += gaps.pop(at)[1]
        if at:
            before, length = gaps[at - 1]
            if before + length == offset:
                gaps[at - 1] = before, length + size
                return
        gaps.insert(at, (offset, size))


def rounded(nbytes: int) -> int:
    """Return bytes as whole grains; an empty array takes one, so that it has an address."""
    return -(-max(nbytes, 1) // ALIGNED) * ALIGNED
