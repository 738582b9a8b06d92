"""What moves bytes during a run: asked before every step, it places what the step needs.

The input's arcs are loaded into host pages; what fits is copied to the device, and the host's copy
stays. So device pages of the input leave without copying when something else needs them, at any
time, and return as soon as no level needs them, during the last levels. A coarse level's arcs come
to the device once they are written (`RowGrowth`), and the level
that they were made of is no longer read. What a step works with has its room before any arcs. A
finished level's labels, which nothing reads before the end of a cycle, leave for whatever a later
level reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from louvain_um.core.ledger import Group
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.migration.mappings import PageSide
from louvain_um.placement.migration.room import LEAST_WINDOW, PageBudget, Room
from louvain_um.placement.migration.span import SPARE, Allocation, Copy, SharedSpan, Span, sides
from louvain_um.placement.policy.policy import Placement

IN_PAGES = Placement("split", 0.5)
"""Stands for the placement of a span, which changes."""

STAYING: Final = 2
"""Share of new rows, 1 / 2, that are written before arcs of the input leave again that were brought
to the device to be read: those that would leave earlier are better read where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a step needs of the device: bytes to work with, then a level's arrays in pages."""

    # Where rows begin is read `in_order`, once, or looked up.

    least: int
    arrays: Sequence[str] = ()
    reads_input: bool = False
    in_order: bool = False
    row_bytes: int = 0
    backs_up: bool = True


class Mover:
    """Decides which pages are on the device, before every step."""

    def __init__(
        self,
        layout: Sequence[ArenaSpec],
        budget: PageBudget,
        device: int,
        allocations: Mapping[str, Allocation],
        peer: int | None = None,
    ) -> None:
        self.room = Room(layout, budget, device, peer)
        self.growth = RowGrowth(self.room, allocations)
        self.allocations = allocations

    @property
    def shared(self) -> SharedSpan:
        """The arena that arrays share."""
        return self.room.shared

    @property
    def page_bytes(self) -> int:
        """Bytes of a page."""
        return self.room.pool.size

    @property
    def resident_bytes(self) -> int:
        """Bytes of the device that its pages occupy."""
        return self.room.pool.count * self.room.pool.size

    @property
    def largest_gap(self) -> int:
        """Bytes that arrays find in one piece, without others leaving."""
        return self.shared.blocks.largest

    @property
    def copied(self) -> dict[PageSide, int]:
        """Bytes of pages that were copied to each side."""
        return self.room.pool.copied

    def close(self) -> None:
        """Free everything; arrays that were held are closed before."""
        self.room.close()

    def begin(self, step: str, level: int, needs: Needs) -> None:
        """Place what a step on a level needs; "aggregate" writes rows of the next level."""
        room = self.room
        room.coarse = room.coarse or level > 0 or needs.reads_input
        if needs.reads_input:
            room.reading = True
            room.wait()
        spans, nbytes = self._spans(needs.arrays)
        room.growing, room.in_order = step == "aggregate", needs.in_order
        room.reading = room.reading and room.growing
        self._make_work_room(needs.least)
        if room.growing:
            self._open_window(needs.least)
            if room.reading:
                self._bring_to_stay(needs.row_bytes or nbytes, needs.least)
        else:
            self._bring_level(spans, nbytes, needs)

    def begin_cycle(self, least: int) -> None:
        """Bring the input's arcs to the device; `least` bytes of the shared arena stay free."""
        room = self.room
        room.coarse = room.reading = room.growing = room.in_order = False
        room.pool.finish()
        room.wait()
        self._make_work_room(least)
        self._bring_level([], 0, Needs(least=least))
        room.take_from_shared(sum(span.away for span in room.inputs), least)
        self._bring(room.ready)
        cuda_calls.synchronize()

    def start_return(self, least: int) -> None:
        """Begin to bring the input back while the host reads results; `begin_cycle` ends it."""
        room = self.room
        if not room.unread:
            return
        room.wait()
        cuda_calls.synchronize()
        kept = len(self.shared.idle_on("host"))
        room.take_from_shared(sum(span.away for span in room.inputs) + kept, least)
        room.copy_in(room.map_input(room.ready - kept))

    def return_idle(self) -> None:
        """Bring idle arrays back to the device, as far as there is room, before they are read."""
        numbers = self.shared.idle_on("host")
        if numbers:
            self.shared.put("device", numbers[: self.room.made_free(len(numbers), 0)])
        self.shared.idle.clear()

    def prepare(self, least: int, more: int, rows: Sequence[int]) -> None:
        """Map free pages during a kernel: in the shared arena, and where new rows will be."""
        room = self.room
        for nbytes in (least + more, least):
            numbers = room.missing(nbytes)
            if len(numbers) <= room.ready:
                self.shared.reclaim(numbers)
                break
        count, total = room.ready, max(sum(rows), 1)
        for nbytes in rows:
            self._map_early(nbytes, count * nbytes // total)

    def unmap_released(self) -> None:
        """Unmap, during a kernel, pages of the host that nothing uses where they are mapped."""
        self.room.pool.unmap_released()

    def let_leave(self, *names: str, in_order: bool = False) -> None:
        """Let arrays leave the device if others need room: idle ones, or ones read in order."""
        for name in names:
            held = self.allocations[name]
            if held.arena is self.shared:
                self.shared.let_leave(held.address, in_order=in_order)

    def open_rows(self, nbytes: int) -> None:
        """Take pages from the shared arena's gaps for new rows of so many bytes."""
        self.room.take_from_shared(-(-nbytes // self.page_bytes), 0)

    def map_all(self, names: Sequence[str]) -> None:
        """Let kernels read arrays that have grown."""
        for span in self.growth.spans(names):
            span.map_unmapped()

    def lacks_room(self, names: Sequence[str], least: int) -> bool:
        """Whether the device has no room for as many arcs again as a coarse level has."""
        room = self.room
        inputs = sum(span.here for span in room.leaving)
        pages = inputs + len(self.shared.idle_on("device"))
        _, nbytes = self._spans(names)
        return nbytes > max(0, room.spare - least) + pages * self.page_bytes

    def unmapped_from(self, name: str) -> tuple[int, int]:
        """Return the bytes mapped at an array's address, and the address of a copy of them all."""
        held = self.allocations.get(name)
        if held is None or not isinstance(held.arena, Span) or not held.arena.unmapped:
            return 0, 0
        return min(held.arena.unmapped) * self.page_bytes, held.arena.copy_address

    def hold(
        self,
        name: str,
        group: Group,
        nbytes: int,
        *,
        cold: bool,
        most: int,
        head: int = 0,
        here: int | None = None,
    ) -> Span:
        """Return pages for an array: of the device if possible, all on one side unless `cold`."""
        room, size = self.room, self.page_bytes
        count = -(-max(nbytes, 1) // size)
        wanted = count if here is None else here // size
        if not cold:
            # Several gaps of the shared arena are as good as one, and nothing leaves for them.
            room.take_from_shared(wanted, 0)
        if not (cold and room.in_order):  # nothing leaves for what would leave next
            room.free_up(wanted, rows="copied" if cold else "all", begins=not cold)
        found = min(wanted, room.ready)
        if found < count and not cold and here is None:
            found = 0
        spec = ArenaSpec(name=name, group=group, capacity=nbytes, placement=IN_PAGES)
        span = Span(spec, room.pool, sides(found, count - found), most, head)
        if cold:
            held = room.rows if most else room.looked_up
            held[:] = [*(other for other in held if other.address), span]
        return span

    def widen(self, nbytes: int) -> bool:
        """Return whether the shared arena now has a gap of so many bytes: others make room."""
        room = self.room
        numbers = self.shared.missing(nbytes)
        if len(numbers) > room.ready:
            self.shared.release(len(numbers) - room.ready, 0, near=numbers)
        room.demote(len(numbers) - room.ready)
        if room.idle < nbytes:
            room.free_up(len(numbers), begins=True)
        if not numbers or len(numbers) > room.ready:
            return False
        self.shared.reclaim(numbers)
        return True

    def _make_work_room(self, least: int) -> None:
        """Let the shared arena have so many free bytes, and let level 0 have where rows begin."""
        room = self.room
        if numbers := room.missing(least):
            room.free_up(len(numbers), begins=True)
            self.shared.reclaim(numbers)
        if not (room.coarse or room.in_order):
            for span in room.inputs:
                numbers = span.on("host") if span.spec.kept else []
                if numbers:
                    span.put("device", numbers[: room.made_free(len(numbers), least)], keep=True)

    def _open_window(self, least: int) -> None:
        """Free pages for new rows; those of the input can be had at any time."""
        room = self.room
        count = room.window - room.leaving_pages
        if count > room.ready:
            self.shared.release(count - room.ready, least)
            room.free_up(count)

    def _bring_level(self, spans: Sequence[Span], nbytes: int, needs: Needs) -> None:
        """Bring a level's arcs to the device, and back of the input what fits with them."""
        room = self.room
        kept = -(-nbytes // self.page_bytes) + LEAST_WINDOW // 2
        away = any(span.away for span in room.inputs) and room.ready > kept
        if room.coarse and not spans and not away:
            return  # a small level, for which nothing moves
        missing = sum(span.away for span in spans)
        room.free_up(missing, rows="none")
        room.take_from_shared(missing, needs.least)
        cuda_calls.synchronize()
        copies = list[Copy]()
        for span in spans:
            copies += span.remap("device", span.returning[: room.ready], keep=True)
        for span in spans:
            span.map_unmapped()
        # All is mapped before anything is copied; what the step reads comes first.
        others = room.map_input(room.ready - kept) if room.coarse else []
        self.shared.copy(copies, "device")
        if room.coarse:
            room.copy_in(others)
            room.back_up(spans if needs.backs_up else [], kept)

    def _bring_to_stay(self, nbytes: int, least: int) -> None:
        """Bring of the input what need not leave soon for rows of so many bytes; map the others."""
        room = self.room
        missing = sum(span.away for span in room.inputs)
        # Half of new rows is written before arcs leave that were brought: while most of these are
        # still to be read, rows leave instead, through two windows.
        kept = min(nbytes // STAYING // self.page_bytes, 2 * room.window) + LEAST_WINDOW
        room.take_from_shared(missing + kept, least)
        self._bring(room.ready - kept)

    def _bring(self, count: int) -> None:
        """Bring up to `count` pages of the input to the device, and map those that are not."""
        room = self.room
        cuda_calls.synchronize()
        self.shared.copy(room.map_input(count), "device")
        for span in room.inputs:
            # Arcs that leave while rows grow are read in the host's copy.
            if span.spec.kept or not room.growing:
                span.map_unmapped()

    def _map_early(self, nbytes: int, count: int) -> None:
        """Leave free pages mapped where an array of so many bytes will have its addresses."""
        pool = self.room.pool
        most = -(-nbytes // pool.size)
        pages = pool.take("device", min(count, most)) or []
        address = pool.mappings.reserve((most + SPARE) * pool.size)
        pool.mappings.map(address, pages)
        pool.mappings.unmap(address, len(pages))
        pool.give(pages)
        pool.mappings.release(address)

    def _spans(self, names: Sequence[str]) -> tuple[list[Span], int]:
        """Return the pages of arrays that have some of their own, and the bytes of all."""
        there = [name for name in names if name in self.allocations]
        return self.growth.spans(there), sum(self.allocations[name].nbytes for name in there)


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
        return [each.arena for each in held if each.alone and isinstance(each.arena, Span)]

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
