"""Which pages are on the device now: decided anew whenever a run knows more than before.

The input's arcs are loaded into host pages; what fits is copied to the device, and the host's copy
stays. So device pages of the input leave for nothing when something else needs them, at any time,
and return as soon as no level needs them, beside the last levels. A coarse level's arcs settle on
the device once they are written (`louvain_um.placement.memory.paging.growth`), and the level that
they were made of is no longer read. What a step works with has its room before any arcs. A finished
level's labels, which nothing reads before the end of a cycle, leave for whatever a later level
reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from louvain_um.core.ledger import Group
from louvain_um.placement.arena_spec import ArenaSpec
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.paging.growth import LEAST_WINDOW, Growth
from louvain_um.placement.memory.paging.mappings import Page
from louvain_um.placement.memory.paging.span import SPARE, Span, sides
from louvain_um.placement.policy.policy import Placement

IN_PAGES = Placement("split", 0.5)
"""Stands for the placement of a span, which changes."""

STAYING: Final = 2
"""Share of new rows, 1 / 2, that are written before arcs of the input leave again that were brought
to the device to be read: those that would leave earlier are better read where they are."""


class Schedule(Growth):
    """Decides what is where, before every step."""

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
        count = -(-max(nbytes, 1) // self.pool.size)
        wanted = count if here is None else here // self.pool.size
        if not cold and wanted > self.pool.ready("device"):
            # Several holes of the shared arena are as good as one, and nothing leaves for them.
            self.shared.lend(wanted - self.pool.ready("device"), 0)
        self._free_up(wanted, rows="copied" if cold else "all", begins=not cold)
        found = min(wanted, self.pool.ready("device"))
        if found < count and not cold and here is None:
            found = 0
        spec = ArenaSpec(name=name, group=group, capacity=nbytes, placement=IN_PAGES)
        span = Span(spec, self.pool, sides(found, count - found), most, head)
        if cold:
            held = self.rows if most else self.looked_up
            held[:] = [*(other for other in held if other.address), span]
        return span

    def widen(self, nbytes: int) -> bool:
        """Return whether the shared arena now has a hole of so many bytes: others make room."""
        numbers = self.shared.missing(nbytes)
        if len(numbers) > self.pool.ready("device"):
            self.shared.lend(len(numbers) - self.pool.ready("device"), 0, beside=numbers)
        self._demote(len(numbers) - self.pool.ready("device"))
        if self.idle() < nbytes:
            self._free_up(len(numbers), begins=True)
        if not numbers or len(numbers) > self.pool.ready("device"):
            return False
        self.shared.reclaim(numbers)
        return True

    def settle(
        self,
        spans: Iterable[Span],
        least: int,
        *,
        grows: bool = False,
        nbytes: int = 0,
        backs_up: bool = True,
    ) -> None:
        """Place what the next step needs: what it works with first, then a level's arcs."""
        wanted = list(spans)
        self.reading, self.growing = self.reading and grows, grows
        if numbers := self._lacking(least):
            self._free_up(len(numbers), begins=True)
            self.shared.reclaim(numbers)
        if not self.later:
            self._bring_begins(least)
        if grows:
            self._open_window(least)
            if self.reading:
                self._bring_to_stay(nbytes, least)
            return
        kept = -(-nbytes // self.pool.size) + LEAST_WINDOW // 2
        away = any(span.away for span in self.inputs) and self.pool.ready("device") > kept
        if self.later and not wanted and not away:
            return  # a small level, for which nothing moves
        missing = sum(span.away for span in wanted)
        self._free_up(missing, rows="none")
        if missing > self.pool.ready("device"):
            self.shared.lend(missing - self.pool.ready("device"), least)
        cuda_calls.synchronize()
        copies = list[tuple[Page, Page]]()
        for span in wanted:
            numbers = span.returning[: self.pool.ready("device")]
            copies += span.remap("device", numbers, keep=True)
        self.dress(wanted)
        # All is mapped before anything is copied; what the step reads comes first.
        others = self._map_input(self.pool.ready("device") - kept) if self.later else []
        self.shared.carry(copies, "device")
        if self.later:
            self._carry_beside(others)
            self._back_up(wanted if backs_up else [], kept)

    def _lacking(self, least: int) -> list[int]:
        """Return the lent pages that the shared arena lacks for so many bytes to work with."""
        short = least - self.shared.blocks.free
        if short <= 0:
            return []
        count = -(-short // self.pool.size)
        numbers = self.shared.missing(self.shared.blocks.largest + short)
        if len(numbers) > count:
            # A step's arrays fit into several holes, too, and nothing more leaves for one.
            numbers = sorted(self.shared.lent)[:count]
        return numbers

    def prepare(self, least: int, more: int, rows: Sequence[int]) -> None:
        """Map free pages beside a kernel: in the shared arena, and where new rows will be."""
        for nbytes in (least + more, least):
            numbers = self._lacking(nbytes)
            if len(numbers) <= self.pool.ready("device"):
                self.shared.reclaim(numbers)
                break
        count, total = self.pool.ready("device"), max(sum(rows), 1)
        for nbytes in rows:
            self._map_ahead(nbytes, count * nbytes // total)

    def _map_ahead(self, nbytes: int, count: int) -> None:
        """Leave free pages mapped where an array of so many bytes will have its addresses."""
        size, mappings = self.pool.size, self.pool.mappings
        most = -(-nbytes // size)
        pages = self.pool.take("device", min(count, most)) or []
        address = mappings.reserve((most + SPARE) * size)
        mappings.map(address, pages)
        mappings.unmap(address, len(pages))
        self.pool.give(pages)
        mappings.release(address)

    def bring_back(self) -> None:
        """Bring arrays that were set aside back to the device, as far as there is room."""
        numbers = self.shared.aside_on("host")
        if numbers:
            self.shared.put("device", numbers[: self._made_ready(len(numbers), 0)])
        self.shared.aside.clear()

    def open_input(self) -> None:
        """Let a step read the input's arcs, once it has settled."""
        self.reading = True
        self._wait()

    def open_rows(self, nbytes: int) -> None:
        """Take pages from the shared arena's holes for new rows of so many bytes."""
        missing = -(-nbytes // self.pool.size) - self.pool.ready("device")
        if missing > 0:
            self.shared.lend(missing, 0)

    def beside(self, least: int) -> int:
        """Return the bytes of the device for new rows, beside those of the level before."""
        inputs = sum(span.here for span in self.leaving)
        aside = len(self.shared.aside_on("device"))
        return max(0, self.spare() - least) + (inputs + aside) * self.pool.size

    def _bring_to_stay(self, nbytes: int, least: int) -> None:
        """Bring of the input what need not leave soon for rows of so many bytes; map the others."""
        missing = sum(span.away for span in self.inputs)
        # Half of new rows is written before arcs leave that were brought: while most of these are
        # still to be read, rows leave instead, through two windows.
        kept = min(nbytes // STAYING // self.pool.size, 2 * self._window) + LEAST_WINDOW
        if missing + kept > self.pool.ready("device"):
            self.shared.lend(missing + kept - self.pool.ready("device"), least)
        self._bring(self.pool.ready("device") - kept)
        self._dress()

    def recall_beside(self, least: int) -> None:
        """Begin to bring the input's arcs back, beside what the host reads; `recall` ends it."""
        if not self.unread:
            return
        self._wait()
        cuda_calls.synchronize()
        kept = len(self.shared.aside_on("host"))
        short = sum(span.away for span in self.inputs) + kept - self.pool.ready("device")
        if short > 0:
            self.shared.lend(short, least)
        self._carry_beside(self._map_input(self.pool.ready("device") - kept))

    def recall(self, least: int) -> None:
        """Bring the input's arcs to the device; `least` bytes of the shared arena stay free."""
        self.later = self.reading = self.growing = False
        self.pool.finish()
        self._wait()
        self.settle([], least)
        missing = sum(span.away for span in self.inputs)
        if missing > self.pool.ready("device"):
            self.shared.lend(missing - self.pool.ready("device"), least)
        self._bring(self.pool.ready("device"))
        self._dress()
        cuda_calls.synchronize()
