"""An array's range of addresses over pages of both sides, alone or shared with other arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from louvain_um.placement.layout import ArenaSpec, size_of
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.advise import Extent, PartAtSide, Side
from louvain_um.placement.memory.arena import Arena, FreeList
from louvain_um.placement.memory.copies import copy_pages
from louvain_um.placement.migration.mappings import Page, PageSide, runs
from louvain_um.placement.migration.pages import PhysicalPages
from louvain_um.placement.policy.policy import Kind, Placement

SPARE: Final = 2
"""Pages of addresses beyond those asked for: a range that is cut and extended keeps its address."""

Copy = tuple[Page, Page]
"""A page to copy to, and the page to copy."""


class Span:
    """Addresses that pages are mapped to, for one array; used like an arena."""

    managed = False

    def __init__(
        self,
        spec: ArenaSpec,
        pages: PhysicalPages,
        sides: Sequence[PageSide],
        most: int = 0,
        head: int = 0,
    ) -> None:
        self.spec, self.pool, self.device, self.head = spec, pages, pages.device, head
        count = max(-(-max(most, spec.capacity, 1) // pages.size), len(sides)) + SPARE
        self.reserved = count * pages.size
        self.mapped: list[Page] = []
        self.host_copies: dict[int, Page] = {}
        self.unmapped = set[int]()
        self.in_use = self.peak = self.away = 0
        self.address = pages.mappings.reserve(self.reserved)
        try:
            self.extend(sides)
        except BaseException:
            self.close()
            raise

    def extend(self, sides: Sequence[PageSide]) -> None:
        """Map more pages behind the others."""
        if (len(self.mapped) + len(sides)) * self.pool.size > self.reserved:
            raise ValueError(f"array {self.spec.name!r} has no more addresses")
        for side, run in groupby(sides):
            count, at = len(list(run)), self.address + len(self.mapped) * self.pool.size
            taken = self.pool.take(side, count, [at + i * self.pool.size for i in range(count)])
            if taken is None:
                raise ValueError(f"array {self.spec.name!r} wants more pages than there are")
            self.mapped += taken
            self.away += count if side == "host" else 0
            self.pool.mappings.map(at, taken)

    def take(self, nbytes: int, *, high: bool = False) -> int | None:
        """Return the address, if nothing has been taken."""
        if self.in_use or nbytes > self.nbytes:
            return None
        self.in_use = self.peak = nbytes
        return self.address

    def whole(self) -> int:
        """Return the address of what was planned."""
        address = self.take(self.spec.capacity)
        assert address is not None
        return address

    def give(self, address: int) -> None:
        """Free what was taken."""
        self.in_use = 0

    def shrink(self, address: int, nbytes: int) -> None:
        """Give back the pages behind so many bytes."""
        keep = -(-max(nbytes, 1) // self.pool.size)
        cuda_calls.synchronize()
        self._drop(keep)
        self.in_use = nbytes

    def on(self, side: PageSide) -> list[int]:
        """Return the numbers of the pages on a side."""
        if self.away == (0 if side == "host" else len(self.mapped)):
            return []
        return [i for i, page in enumerate(self.mapped) if page.side == side]

    @property
    def returning(self) -> list[int]:
        """Numbers of the pages on the host: first those not mapped, which need not be then."""
        return sorted(self.on("host"), key=lambda i: i not in self.unmapped)

    @property
    def here(self) -> int:
        """Pages of the device."""
        return len(self.mapped) - self.away

    def final(self, used: int) -> list[int]:
        """Return the device pages of which all bytes are among the first `used`, not the head."""
        size = self.pool.size
        return [i for i in self.on("device") if self.head <= i * size and (i + 1) * size <= used]

    def put(
        self, side: PageSide, numbers: Iterable[int], *, keep: bool = False, unmapped: bool = False
    ) -> None:
        """Move pages to a side; the range keeps its addresses and its values."""
        cuda_calls.synchronize()
        copies = self.remap(side, numbers, keep=keep, unmapped=unmapped)
        self.copy(copies, side)
        if side == "device" and not keep:
            # Others may write to what is still read, in streams of their own.
            cuda_calls.synchronize()

    def remap(
        self, side: PageSide, numbers: Iterable[int], *, keep: bool = False, unmapped: bool = False
    ) -> list[Copy]:
        """Map pages of a side in place of others, which stay as copies on the host if `keep`."""
        chosen = sorted(numbers)
        fresh = [i for i in chosen if side == "device" or i not in self.host_copies]
        size = self.pool.size
        taken = self.pool.take(side, len(fresh), [self.address + i * size for i in fresh])
        if taken is None:
            raise ValueError(f"no {len(fresh)} pages for array {self.spec.name!r}")
        new = dict(zip(fresh, taken, strict=True))
        copies = [(page, self.mapped[i]) for i, page in new.items()]
        were_mapped = runs(i for i in chosen if i not in self.unmapped)
        others = runs(i for i in chosen if i in self.unmapped)
        for first, count in sorted([*were_mapped, *others]):
            at, numbers = self.address + first * size, range(first, first + count)
            if first not in self.unmapped:
                self.pool.mappings.unmap(at, count)
            self.unmapped.difference_update(numbers)
            pages = [new.get(i) or self.host_copies.pop(i) for i in numbers]
            for i, page in zip(numbers, pages, strict=True):
                old, self.mapped[i] = self.mapped[i], page
                self.away += (page.side == "host") - (old.side == "host")
                if keep and side == "device":
                    self.host_copies[i] = old
                else:
                    self.pool.give([old])
            if unmapped:
                self.unmapped.update(numbers)
            else:
                self.pool.mappings.map(at, pages)
        return copies

    def map_unmapped(self, count: int | None = None) -> None:
        """Map the pages that are not, or so many of them."""
        chosen = sorted(self.unmapped)[:count]
        self.unmapped.difference_update(chosen)
        for first, length in runs(chosen):
            self.pool.mappings.map(
                self.address + first * self.pool.size, self.mapped[first : first + length]
            )

    @property
    def copy_address(self) -> int:
        """Where the host's copy of all pages is, of an array that was made there."""
        first = self.host_copies.get(0, self.mapped[0])
        return first.address

    def back_up(self, numbers: Iterable[int], stream: int) -> None:
        """Copy device pages to the host, behind a stream."""
        fresh = sorted(numbers)
        taken = self.pool.take("host", len(fresh)) or []
        self.host_copies.update(zip(fresh, taken, strict=True))
        copies = [(page, self.mapped[i]) for i, page in zip(fresh, taken, strict=True)]
        self.copy(copies, "host", stream)

    def copy(self, copies: Sequence[Copy], side: PageSide, stream: int = 0) -> None:
        """Copy pages to others of a side, behind a stream, or behind kernels (0)."""
        size = self.pool.size
        for to, of in copies:
            copy_pages(to.address, of.address, size, size, stream)
            self.pool.copied[side] += size

    @property
    def backed_up(self) -> list[int]:
        """Numbers of the device pages that have a copy on the host."""
        return [i for i in self.on("device") if i in self.host_copies]

    def sides(self, address: int, nbytes: int) -> tuple[PartAtSide, ...]:
        """Return where a part lives: at addresses at which either side may copy."""
        found = list[PartAtSide]()
        end = address + nbytes
        while address < end:
            number, inside = divmod(address - self.address, self.pool.size)
            page = self.mapped[number]
            count = min(self.pool.size - inside, end - address)
            begin, before = page.address + inside, found[-1] if found else None
            side: Side = "device" if page.side == "device" else self.pool.far
            if before and before.side == side and before.address + before.nbytes == begin:
                found[-1] = PartAtSide(before.address, before.nbytes + count, side)
            else:
                found.append(PartAtSide(begin, count, side))
            address += count
        return tuple(found)

    def close(self) -> None:
        """Give all pages back, and the addresses."""
        address, self.address = self.address, 0
        if not address:
            return
        if self.mapped:
            cuda_calls.synchronize()
        for at, count in self._held(0):
            self.pool.mappings.unmap(address + at * self.pool.size, count)
        self._give_back(0)
        self.pool.mappings.release(address)

    @property
    def nbytes(self) -> int:
        """Bytes that are mapped."""
        return len(self.mapped) * self.pool.size

    @property
    def placement(self) -> Placement:
        """Where its pages are now."""
        if self.away in (0, len(self.mapped)):
            there: Kind = "pinned" if self.pool.peer is None else "peer"
            return Placement(there if self.away else "device")
        return Placement("split", self.here / len(self.mapped))

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Pages of one side after the other."""
        size, found = self.pool.size, list[Extent]()
        for side, run in groupby(range(len(self.mapped)), key=lambda i: self.mapped[i].side):
            numbers = list(run)
            where: Side = "device" if side == "device" else self.pool.far
            found.append(Extent(numbers[0] * size, len(numbers) * size, where))
        return tuple(found)

    @property
    def resident_bytes(self) -> int:
        """0: the pool counts its pages."""
        return 0

    def _drop(self, first: int) -> None:
        """Unmap the pages from a number on, and give them back."""
        for at, count in self._held(first):
            self.pool.mappings.unmap(self.address + at * self.pool.size, count)
        self._give_back(first)

    def _held(self, first: int) -> list[tuple[int, int]]:
        """Return runs of mapped pages from a number on."""
        return runs(i for i in range(first, len(self.mapped)) if i not in self.unmapped)

    def _give_back(self, first: int) -> None:
        """Give the pages from a number on to the pool."""
        gone = [self.host_copies.pop(i) for i in list(self.host_copies) if i >= first]
        self.unmapped = {i for i in self.unmapped if i < first}
        self.pool.give([*self.mapped[first:], *gone])
        self._cut(first)

    def _cut(self, first: int) -> None:
        self.away -= sum(page.side == "host" for page in self.mapped[first:])
        del self.mapped[first:]


# A run asks for hundreds of arrays while the device waits: a tuple is made faster than an object.
class Allocation(NamedTuple):
    """Where a live array lies: its arena, its block there, and whether the arena is its own."""

    arena: Arena | Span
    address: int
    nbytes: int
    alone: bool = False


def sides(here: int, there: int) -> list[PageSide]:
    """Return the sides of so many pages of the device and, behind them, of the host."""
    found: list[PageSide] = ["device"] * here
    found += ["host"] * max(there, 0)
    return found


NO_PAGE: Final = Page(None, 0, "device")
"""Stands where a page was released."""


class SharedSpan(Span):
    """Device pages that many arrays share, and that the pool has where no array is."""

    def __init__(self, spec: ArenaSpec, pages: PhysicalPages) -> None:
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
