"""How a coarse level's arcs are written to pages: a window of the device at a time.

Where device pages run out, what is finished is copied to the host, since kernels write there at a
tenth of the rate of copies. Copies, and mapping, take place beside the kernel that fills the pages
before: neither touches what it reads or writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.paging.mappings import Page
from louvain_um.placement.memory.paging.movement import Movement
from louvain_um.placement.memory.paging.span import Span, sides

WINDOW: Final = 10
"""Share of the device, 1 / 10, by which rows grow at a time, and through which they go to the host:
a smaller one takes more launches, a larger one more room from what is read meanwhile."""

LEAST_WINDOW: Final = 4
"""Pages of it at least: two for each array of a level's arcs."""


class Growth(Movement):
    """The pages of a run, some of which hold rows that grow."""

    def extend(self, span: Span, nbytes: int, used: int) -> None:
        """Add pages to a span, so that it holds so many bytes; the first `used` are final."""
        self.make_room([(span, nbytes, used)])
        count = -(-nbytes // self.pool.size) - len(span.mapped)
        here = max(0, min(count, self.pool.ready("device")))
        span.extend(sides(here, count - here))

    def make_room(self, rows: Sequence[tuple[Span, int, int]]) -> None:
        """Free device pages so that some rows can grow together."""
        size = self.pool.size
        count = sum(max(0, -(-nbytes // size) - len(span.mapped)) for span, nbytes, _ in rows)
        self._free_up(count, rows="none")
        self._leave(rows, count - self.pool.ready("device"), copied=True)
        self._spill(count - self.pool.ready("device"), copied=True)
        self._leave(rows, count - self.pool.ready("device"))

    def _leave(
        self, rows: Sequence[tuple[Span, int, int]], count: int, *, copied: bool = False
    ) -> None:
        """Let up to `count` pages of growing rows go that are final, or have a copy already."""
        copies = list[tuple[Page, Page]]()
        for span, _, used in rows:
            numbers = span.backed_up if copied else span.final(used)
            numbers = numbers[: max(0, count)]
            if numbers:
                self._wait()
                copies += span.remap("host", numbers, bare=True)
                count -= len(numbers)
        self.shared.carry(copies, "host")

    def work_beside(self, finals: Sequence[tuple[Span, int]] = (), nbytes: int = 0) -> None:
        """Do beside a kernel that runs what would take time between kernels."""
        if not nbytes:  # it would hold up what is mapped for rows
            self.pool.unmap_released()
        count = min(self._window, -(-nbytes // self.pool.size))
        count -= self.pool.ready("device") + self._leaving_pages()
        for span, used in finals:
            numbers = [i for i in span.final(used) if i not in span.twins]
            numbers = numbers[: max(0, min(count, self.pool.ready("host")))]
            if numbers:
                span.back_up(numbers, self._stream())
                self.coming = True
                count -= len(numbers)

    def leave_beside(self, rows: Iterable[Span], nbytes: int) -> int:
        """Evict growing rows that have a copy while the kernel writes what follows."""
        count = -(-nbytes // self.pool.size)
        missing = count - self.pool.ready("device")
        self._leave([(span, 0, 0) for span in rows], missing, copied=True)
        enough = self.pool.ready("device") >= min(count, self._window // 2)
        return self.room() if enough else 0

    def free_ahead(self, finals: Sequence[tuple[Span, int]], nbytes: int) -> None:
        """Free pages for rows that are to grow beside the next kernel."""
        count = min(self._window, -(-nbytes // self.pool.size))
        self._demote(count - self.pool.ready("device"))
        rows = [(span, 0, used) for span, used in finals]
        self._leave(rows, count - self.pool.ready("device"), copied=True)
        self._spill(count - self.pool.ready("device"), copied=True)

    def dress_beside(self, rows: Iterable[Span]) -> None:
        """Map pages of growing rows that will stay on the host, as long as a kernel runs."""
        spans, shared = list(rows), self.shared
        used = shared.blocks.in_use // self.pool.size - len(shared.lent)
        staying = sum(len(span.mapped) for span in spans) - (self.pool.count - used)
        staying -= sum(span.away - len(span.bare) for span in spans)
        for span in spans:
            while span.bare and staying > 0 and cuda_calls.is_busy(cuda_calls.kernel_stream()):
                span.dress(1)
                staying -= 1

    def dress(self, rows: Iterable[Span]) -> None:
        """Map pages of rows that left the device while these grew."""
        for span in rows:
            span.dress()

    def room(self) -> int:
        """Return the bytes of free pages of the device."""
        return self.pool.ready("device") * self.pool.size

    def spare(self) -> int:
        """Return the bytes of the device that hold nothing."""
        return self.room() + self.shared.blocks.free

    def idle(self) -> int:
        """Return the bytes of the device's pages in which no array lies."""
        return self.room() + self.shared.lendable * self.pool.size

    def reach(self, finals: Iterable[tuple[Span, int]]) -> int:
        """Return the bytes by which rows can grow on the device."""
        count = len(self.shared.aside_on("device"))
        leaving = self._leaving_pages()
        if self.unread:
            unread = sum(span.here for span in self.leaving)
            count, leaving = count + unread, leaving - unread
        # What is read leaves a window at a time: while it stays, it is not read over the bus.
        window = self._window
        count += min(leaving, window)
        if leaving < window:
            # The first half: the others are copied beside the kernel that fills their place.
            copied = [i in span.twins for span, used in finals for i in span.final(used)]
            count += max(0, -(-len(copied) // 2) - sum(copied))
        return self.room() + count * self.pool.size

    @property
    def _window(self) -> int:
        """Pages through which new rows go to the host."""
        return max(LEAST_WINDOW, self.pool.count // WINDOW)

    def _open_window(self, least: int) -> None:
        """Free pages for new rows; those of the input can be had at any time."""
        count = self._window - self._leaving_pages()
        if count > self.pool.ready("device"):
            self.shared.lend(count - self.pool.ready("device"), least)
            self._free_up(count)
