"""The arena on the device that arrays of every group share, whose unused pages others use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from louvain_um.placement.layout import ArenaSpec, size_of
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.arena import FreeList
from louvain_um.placement.migration.mappings import Page, PageSide, runs
from louvain_um.placement.migration.pages import Pages
from louvain_um.placement.migration.span import Span

NO_PAGE: Final = Page(None, 0, "device")
"""Stands where a page was released."""


class SharedSpan(Span):
    """Device pages that many arrays share, and that the pool has where no array is."""

    def __init__(self, spec: ArenaSpec, pages: Pages) -> None:
        # Rounding up must not exceed the budget: the plan has some slack.
        count = min(-(-size_of(spec) // pages.size), pages.count)
        super().__init__(spec, pages, ["device"] * count, pages.count * pages.size)
        self.mapped += [NO_PAGE] * (pages.count - count)
        self.blocks = FreeList(self.nbytes)
        self.released = set[int]()
        self.idle, self.in_order = set[int](), set[int]()
        self._note_released(range(count, pages.count))

    def take(self, nbytes: int, *, high: bool = False) -> int | None:
        """Return the address of a new block, or None if no gap is large enough."""
        offset = self.blocks.take(nbytes, high=high)
        return None if offset is None else self.address + offset

    def give(self, address: int) -> None:
        """Free a block; pages of it that left are released."""
        offset, numbers = address - self.address, list[int]()
        if self.away:
            numbers = [i for i in self._whole(offset) if self.mapped[i].side == "host"]
        self.blocks.give(offset)
        self.idle.discard(offset)
        self.in_order.discard(offset)
        if not numbers:
            return
        cuda_calls.synchronize()
        for first, count in runs(numbers):
            self.pool.mappings.unmap(self.address + first * self.pool.size, count)
            self.pool.give(self.mapped[first : first + count])
            self._note_released(range(first, first + count))
            self.away -= count

    def let_leave(self, address: int, *, in_order: bool = False) -> None:
        """Let the pages of a block leave the device when others need room, or lack it."""
        (self.in_order if in_order else self.idle).add(address - self.address)

    def idle_on(self, side: PageSide) -> list[int]:
        """Return the numbers of pages on a side with idle arrays and nothing else."""
        return self._on(side, self.idle)

    @property
    def in_order_here(self) -> list[int]:
        """Numbers of the device pages with arrays that are read in order, and nothing else."""
        return self._on("device", self.in_order)

    def _on(self, side: PageSide, blocks: Iterable[int]) -> list[int]:
        held = (i for offset in sorted(blocks) for i in self._whole(offset))
        return [i for i in held if self.mapped[i].side == side]

    def shrink(self, address: int, nbytes: int) -> None:
        """Free the end of a block."""
        self.blocks.shrink(address - self.address, nbytes)

    def release(self, count: int, least: int, *, near: Sequence[int] = ()) -> None:
        """Give the pool up to `count` pages, not at those `near`; `least` bytes stay free."""
        size = self.pool.size
        spare = (self.blocks.free - least) // size
        ends = {end for number in near for end in (number * size, (number + 1) * size)}
        for offset, nbytes in sorted(self.blocks.gaps, key=lambda gap: -gap[1]):
            if offset in ends or offset + nbytes in ends:
                continue
            first, last = -(-offset // size), (offset + nbytes) // size
            taken = min(last - first, spare, count)
            if taken > 0:
                first = last - taken
                cuda_calls.synchronize()
                self.pool.mappings.unmap(self.address + first * size, taken)
                self.pool.give(self.mapped[first:last])
                self._note_released(range(first, last))
                spare, count = spare - taken, count - taken

    @property
    def empty_pages(self) -> int:
        """Pages without arrays."""
        size, gaps = self.pool.size, self.blocks.gaps
        return sum(max(0, (at + nbytes) // size - -(-at // size)) for at, nbytes in gaps)

    def missing(self, nbytes: int) -> list[int]:
        """Return the fewest released pages that leave a gap of so many bytes; [] if none do."""
        size, found = self.pool.size, list[list[int]]()
        before = {offset + count: count for offset, count in self.blocks.gaps}
        after = dict(self.blocks.gaps)
        for first, length in runs(self.released):
            run, end = range(first, first + length), first + length
            below, above = before.get(first * size, 0), after.get(end * size, 0)
            for joined, numbers in ((below, list(run)), (above, list(run[::-1]))):
                count = -(-max(nbytes - joined, 1) // size)
                if count <= len(numbers):
                    found.append(sorted(numbers[:count]))
                elif nbytes <= below + len(numbers) * size + above:
                    found.append(sorted(numbers))
        return min(found, key=len, default=[])

    def reclaim(self, numbers: Sequence[int]) -> None:
        """Take back pages that were released, as far as the pool has them."""
        size = self.pool.size
        numbers = numbers[: self.pool.ready("device")]
        for first, count in runs(numbers):
            run = range(first, first + count)
            pages = self.pool.take("device", count, [self.address + i * size for i in run])
            assert pages is not None
            self.mapped[first : first + count] = pages
            self.pool.mappings.map(self.address + first * size, pages)
            for number in run:
                self.released.remove(number)
                self.blocks.give(number * size)

    def _whole(self, offset: int) -> range:
        """Return the numbers of the pages that a block fills."""
        size, nbytes = self.pool.size, self.blocks.taken[offset]
        if nbytes < size:
            return range(0)
        return range(-(-offset // size), (offset + nbytes) // size)

    def _note_released(self, numbers: Iterable[int]) -> None:
        """Note pages that are not mapped."""
        for number in numbers:
            self.blocks.reserve(number * self.pool.size, self.pool.size)
            self.released.add(number)
            self.mapped[number] = NO_PAGE

    def _held(self, first: int) -> list[tuple[int, int]]:
        return runs(i for i in range(first, len(self.mapped)) if self.mapped[i] is not NO_PAGE)

    def _give_back(self, first: int) -> None:
        self.pool.give([page for page in self.mapped[first:] if page is not NO_PAGE])
        self._cut(first)
