"""How a coarse level's arcs are written to pages: a window of the device at a time.

Where device pages run out, what is finished is copied to the host, since kernels write there at a
fraction of the rate of copies. Copies, and mapping, take place during the kernel that fills the
pages before: neither touches what it reads or writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.migration.room import Room
from louvain_um.placement.migration.span import Allocation, Copy, Span, sides

Rows = Sequence[tuple[Span, int]]
"""Arrays that grow, each with its bytes that are final."""


class RowGrowth:
    """Arrays of a run that grow in pages of their own; methods ignore those in other memory."""

    def __init__(self, room: Room, allocations: Mapping[str, Allocation]) -> None:
        self.room, self.allocations = room, allocations

    def reach(self, final: Mapping[str, int]) -> int:
        """Return the bytes by which rows can grow on the device."""
        room = self.room
        count, leaving = len(room.shared.idle_on("device")), room.leaving_pages
        if room.unread:
            unread = sum(span.here for span in room.leaving)
            count, leaving = count + unread, leaving - unread
        # What is read leaves a window at a time: while it stays, it is not read over the bus.
        count += min(leaving, room.window)
        if leaving < room.window:
            # The first half: the others are copied during the kernel that fills their place.
            copied = [
                i in span.host_copies for span, used in self._rows(final) for i in span.final(used)
            ]
            count += max(0, -(-len(copied) // 2) - sum(copied))
        return room.free + count * room.pool.size

    def make_room(self, sizes: Mapping[str, int], final: Mapping[str, int]) -> None:
        """Let others leave the device so that arrays can be extended together to some bytes."""
        rows = self._rows(final)
        if rows:
            size = self.room.pool.size
            pages = (-(-sizes[s.spec.name] // size) - len(s.mapped) for s, _ in rows)
            self._make_room(rows, sum(max(0, count) for count in pages))

    def extend(self, span: Span, nbytes: int, final: int) -> None:
        """Add pages to a span, so that it holds so many bytes; the first `final` stay."""
        count = -(-nbytes // self.room.pool.size) - len(span.mapped)
        self._make_room([(span, final)], max(0, count))
        here = max(0, min(count, self.room.ready))
        span.extend(sides(here, count - here))

    def free_early(self, final: Mapping[str, int], nbytes: int) -> None:
        """Free pages for rows that are to grow by so many bytes during the next kernel."""
        rows, room = self._rows(final), self.room
        if len(rows) < len(final):
            return
        count = min(room.window, -(-nbytes // room.pool.size))
        room.demote(count - room.ready)
        self._leave(rows, count - room.ready, copied=True)
        room.spill(count - room.ready, copied=True)

    def back_up(self, final: Mapping[str, int], nbytes: int = 0) -> None:
        """Do during a kernel what would take time between kernels: unmap, or copy final rows."""
        room = self.room
        if not nbytes:  # it would hold up what is mapped for rows
            room.pool.unmap_released()
        count = min(room.window, -(-nbytes // room.pool.size))
        count -= room.ready + room.leaving_pages
        for span, used in self._rows(final):
            numbers = [i for i in span.final(used) if i not in span.host_copies]
            numbers = numbers[: max(0, min(count, room.pool.ready("host")))]
            count -= room.copy_out(span, numbers)

    def leave(self, names: Sequence[str], nbytes: int) -> int:
        """Evict rows that have a copy during the kernel that writes what follows."""
        room, rows = self.room, self._rows(dict.fromkeys(names, 0))
        if len(rows) < len(names):
            return 0
        count = -(-nbytes // room.pool.size)
        self._leave(rows, count - room.ready, copied=True)
        return room.free if room.ready >= min(count, room.window // 2) else 0

    def map_early(self, names: Sequence[str]) -> None:
        """Map pages of growing rows that will stay on the host, as long as a kernel runs."""
        spans, room = self.spans(names), self.room
        used = room.shared.blocks.in_use // room.pool.size - len(room.shared.released)
        staying = sum(len(span.mapped) for span in spans) - (room.pool.count - used)
        staying -= sum(span.away - len(span.unmapped) for span in spans)
        for span in spans:
            while span.unmapped and staying > 0:
                if not cuda_calls.is_busy(cuda_calls.kernel_stream()):
                    break
                span.map_unmapped(1)
                staying -= 1

    def spans(self, names: Iterable[str]) -> list[Span]:
        """Return those of some live arrays that have pages of their own."""
        held = [self.allocations[name] for name in names]
        return [each.arena for each in held if each.own and isinstance(each.arena, Span)]

    def _rows(self, final: Mapping[str, int]) -> Rows:
        return [(span, final[span.spec.name]) for span in self.spans(final)]

    def _make_room(self, rows: Rows, count: int) -> None:
        """Free device pages so that some rows can grow together."""
        room = self.room
        room.free_up(count, rows="none")
        self._leave(rows, count - room.ready, copied=True)
        room.spill(count - room.ready, copied=True)
        self._leave(rows, count - room.ready)

    def _leave(self, rows: Rows, count: int, *, copied: bool = False) -> None:
        """Let up to `count` pages of growing rows go that are final, or have a copy already."""
        copies = list[Copy]()
        for span, used in rows:
            numbers = span.backed_up if copied else span.final(used)
            numbers = numbers[: max(0, count)]
            if numbers:
                self.room.wait()
                copies += span.remap("host", numbers, unmapped=True)
                count -= len(numbers)
        self.room.shared.copy(copies, "host")
