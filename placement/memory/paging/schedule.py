"""Which pages are on the device now: decided anew whenever a run knows more than before.

The input's arcs are loaded into host pages; what fits is copied to the device, and the host's copy
stays. So device pages of the input leave for nothing when something else needs them, at any time,
and return as soon as no level needs them, beside the last levels. A coarse level's arcs are written
to device pages; where these run out, what is finished is copied to the host, since kernels write
there at a tenth of the rate of copies. They settle on the device once the level they were made of
is no longer read. What a step works with has its room before any arcs. A finished level's labels,
which nothing reads before the end of a cycle, leave for whatever a later level reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from louvain_um.core.ledger import Group
from louvain_um.errors import LouvainUmError
from louvain_um.placement.arena_spec import ArenaSpec, device_bytes
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.paging.pages import Pages, page_bytes
from louvain_um.placement.memory.paging.shared_span import SharedSpan
from louvain_um.placement.memory.paging.span import Span, sides
from louvain_um.placement.policy.policy import Placement

IN_PAGES = Placement("split", 0.5)
"""Stands for the placement of a span, which changes."""

WINDOW: Final = 6
"""Share of the device, 1 / 6, through which new rows go to the host where they do not fit: a
smaller one is emptied more often, which takes a launch each time."""

FAR: Final = 4
"""Pages of one new hole, by those that are short, above which several holes do."""

SPARE_COPIES: Final = 8
"""Share of the device, 1 / 8, for which host pages stay free when rows are copied beside kernels:
a page that is made while kernels wait takes ten times as long as the copy."""

LEAST_WINDOW: Final = 4
"""Pages of it at least: two for each array of a level's arcs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBudget:
    """Bytes of a run's pages.

    Parameters
    ----------
    device : int
        Those of the device.
    later : int
        Those of the host that coarse levels may need at once.
    """

    device: int
    later: int


class Schedule:
    """The pages of one run.

    Parameters
    ----------
    layout : sequence of ArenaSpec
        A shared arena on the device, and those whose pages change sides.
    budget : PageBudget
    device : int
        The CUDA device, which is current.
    peer : int, optional
        Device that pages of the host are taken from instead.

    Attributes
    ----------
    shared : SharedSpan
    inputs : list of Span
        The input's arcs.
    rows, looked_up : list of Span
        Arcs of coarse levels, and arrays of their vertices.
    later : bool
        Whether coarse levels are at work, and the input's arcs are not read.
    reading : bool
        Whether a step reads them nevertheless, to make a later level of them.
    coming : bool
        Whether copies beside kernels are under way.
    """

    def __init__(
        self,
        layout: Sequence[ArenaSpec],
        budget: PageBudget,
        device: int,
        peer: int | None = None,
    ) -> None:
        (shared,) = (spec for spec in layout if spec.group is None)
        inputs = [spec for spec in layout if spec.in_pages]
        size = page_bytes(budget.device)
        counts = [-(-spec.capacity // size) for spec in inputs]
        first = sum(counts) * size
        self.later = self.reading = self.coming = False
        self.stream = 0
        self.inputs = list[Span]()
        self.rows, self.looked_up = list[Span](), list[Span]()
        self.pool = Pages(device, budget.device, first, budget.later, size, peer)
        try:
            self.shared = SharedSpan(shared, self.pool)
            for spec, count in zip(inputs, counts, strict=True):
                self.inputs.append(Span(spec, self.pool, ["host"] * count))
        except BaseException:
            self.close()
            raise

    @property
    def resident_bytes(self) -> int:
        """Bytes of the device that its pages occupy."""
        return self.pool.count * self.pool.size

    @property
    def unread(self) -> bool:
        """Whether nothing reads the input's arcs."""
        return self.later and not self.reading

    @property
    def leaving(self) -> list[Span]:
        """Arrays of the input that may leave: not where rows begin, while any is read."""
        return [span for span in self.inputs if self.unread or not span.spec.kept]

    def hold(self, name: str, group: Group, nbytes: int, *, cold: bool, most: int) -> Span:
        """Return pages for an array: of the device if possible, all on one side unless `cold`."""
        count = -(-max(nbytes, 1) // self.pool.size)
        if not cold and count > self.pool.ready("device"):
            # Several holes of the shared arena are as good as one, and nothing leaves for them.
            self.shared.lend(count - self.pool.ready("device"), 0)
        self._free_up(count, rows="copied" if cold else "all", begins=not cold)
        here = min(count, self.pool.ready("device"))
        if here < count and not cold:
            here = 0
        spec = ArenaSpec(name=name, group=group, capacity=nbytes, placement=IN_PAGES)
        span = Span(spec, self.pool, sides(here, count - here), most)
        if cold:
            held = self.rows if most else self.looked_up
            held[:] = [*(other for other in held if other.address), span]
        return span

    def widen(self, nbytes: int) -> bool:
        """Return whether the shared arena now has a hole of so many bytes: others make room.

        Beside arcs, nothing leaves for one hole where several have as much room (`hold`).
        """
        numbers = self.shared.missing(nbytes)
        self._demote(len(numbers) - self.pool.ready("device"))
        if self.room() + self.shared.lendable * self.pool.size < nbytes:
            self._free_up(len(numbers), begins=True)
        if not numbers or len(numbers) > self.pool.ready("device"):
            return False
        self.shared.reclaim(numbers)
        return True

    def extend(self, span: Span, nbytes: int, used: int) -> None:
        """Add pages to a span, so that it holds so many bytes; the first `used` are final."""
        self.make_room([(span, nbytes, used)])
        count = -(-nbytes // self.pool.size) - len(span.mapped)
        here = max(0, min(count, self.pool.ready("device")))
        span.extend(sides(here, count - here))

    def make_room(self, rows: Sequence[tuple[Span, int, int]]) -> None:
        """Free device pages so that some rows can grow together.

        Parameters
        ----------
        rows : sequence of (Span, int, int)
            Rows, bytes that they are to hold, and how many of their first bytes are final: what
            has no copy on the host leaves last.
        """
        size = self.pool.size
        count = sum(max(0, -(-nbytes // size) - len(span.mapped)) for span, nbytes, _ in rows)
        self._free_up(count, rows="copied")
        for span, _, used in rows:
            numbers = span.final(used)[: max(0, count - self.pool.ready("device"))]
            if numbers:
                span.put("host", numbers)

    def room(self) -> int:
        """Return the bytes of free pages of the device."""
        return self.pool.ready("device") * self.pool.size

    def spare(self) -> int:
        """Return the bytes of the device that hold nothing."""
        return self.room() + self.shared.blocks.free

    def reach(self, finals: Iterable[tuple[Span, int]]) -> int:
        """Return the bytes by which rows can grow on the device.

        Parameters
        ----------
        finals : iterable of (Span, int)
            Rows, and their bytes that are final.
        """
        count = len(self.shared.aside_on("device"))
        leaving = self._leaving_pages()
        if self.unread:
            unread = sum(len(span.on("device")) for span in self.leaving)
            count, leaving = count + unread, leaving - unread
        # What is read leaves a window at a time: while it stays, it is not read over the bus.
        window = max(LEAST_WINDOW, self.pool.count // WINDOW)
        count += min(leaving, window)
        if leaving < window:
            count += sum(len(span.final(used)) for span, used in finals)
        return self.room() + count * self.pool.size

    def settle(
        self,
        spans: Iterable[Span],
        least: int,
        *,
        grows: bool = False,
        nbytes: int = 0,
        backs_up: bool = True,
    ) -> None:
        """Place what the next step needs: what it works with first, then a level's arcs.

        Parameters
        ----------
        spans : iterable of Span
            The level's arcs. The device pages for them come from the input's arcs, which have a
            copy on the host, and from the shared arena.
        least : int
            Bytes of the shared arena that the step works with; arcs leave for these if they must.
        grows : bool
            Whether the step writes the next level's arcs, which begin on the device.
        nbytes : int
            Bytes of the level's arcs, wherever they are: the next level has no more.
        backs_up : bool
            Whether these are copied to the host as far as the next level's will take their place.
        """
        wanted = list(spans)
        self.reading = self.reading and grows
        short = least - self.shared.blocks.free
        if short > 0:
            largest = max((nbytes for _, nbytes in self.shared.blocks.holes), default=0)
            numbers, count = self.shared.missing(largest + short), -(-short // self.pool.size)
            arcs = sum(len(span.on("device")) for span in self.leaving)
            if len(numbers) > min(FAR * count, self.pool.ready("device") + arcs):
                # None is beside the largest hole, or others would have to leave for one: a step's
                # arrays fit into several holes, too.
                numbers = sorted(self.shared.lent)[:count]
            self._free_up(len(numbers), begins=True)
            self.shared.reclaim(numbers)
        if not self.later:
            self._bring_begins(least)
        if grows:
            self._open_window(least)
            return
        missing = sum(len(span.on("host")) for span in wanted)
        self._free_up(missing, rows="none")
        if missing > self.pool.ready("device"):
            self.shared.lend(missing - self.pool.ready("device"), least)
        for span in wanted:
            numbers = span.on("host")[: self.pool.ready("device")]
            if numbers:
                span.put("device", numbers, keep=True)
        if self.later:
            kept = -(-nbytes // self.pool.size) + LEAST_WINDOW // 2
            self._bring(self.pool.ready("device") - kept, self._stream())
            self._back_up(wanted if backs_up else [], kept)

    def bring_back(self) -> None:
        """Bring arrays that were set aside back to the device, as far as there is room."""
        numbers = self.shared.aside_on("host")
        if numbers:
            self.shared.put("device", numbers[: self._made_ready(len(numbers), 0)])
        self.shared.aside.clear()

    def open_input(self) -> None:
        """Let a step read the input's arcs wherever they are."""
        self.reading = True
        self._wait()
        self._dress()

    def beside(self, least: int) -> int:
        """Return the bytes of the device for new rows, beside those of the level before."""
        inputs = sum(len(span.on("device")) for span in self.leaving)
        aside = len(self.shared.aside_on("device"))
        return max(0, self.spare() - least) + (inputs + aside) * self.pool.size

    def recall(self, least: int) -> None:
        """Bring the input's arcs to the device; `least` bytes of the shared arena stay free."""
        self.later = self.reading = False
        self.pool.finish()
        self._wait()
        self.settle([], least)
        missing = sum(len(span.on("host")) for span in self.inputs)
        if missing > self.pool.ready("device"):
            self.shared.lend(missing - self.pool.ready("device"), least)
        self._bring(self.pool.ready("device"))
        self._dress()
        cuda_calls.synchronize()

    def close(self) -> None:
        """Free everything; arrays that were held are closed before."""
        failures = list[LouvainUmError]()
        stream, self.stream, self.coming = self.stream, 0, False
        for undo in (cuda_calls.wait_for, cuda_calls.drop_stream) if stream else ():
            try:
                undo(stream)
            except LouvainUmError as error:
                failures.append(error)
        spans: list[Span | Pages] = [*self.inputs]
        if hasattr(self, "shared"):
            spans.append(self.shared)
        for one in (*spans, self.pool):
            try:
                one.close()
            except LouvainUmError as error:
                failures.append(error)
        self.inputs.clear()
        if failures:
            raise failures[0]

    def _open_window(self, least: int) -> None:
        """Free pages for new rows; those of the input can be had at any time."""
        count = max(LEAST_WINDOW, self.pool.count // WINDOW)
        count -= self._leaving_pages()
        if count > self.pool.ready("device"):
            self.shared.lend(count - self.pool.ready("device"), least)
            self._free_up(count)

    def _leaving_pages(self) -> int:
        """Return how many device pages of arcs have a copy on the host."""
        inputs = sum(len(span.on("device")) for span in self.leaving)
        return inputs + sum(len(span.backed_up) for span in self.rows if span.address)

    def _back_up(self, spans: Sequence[Span], count: int) -> None:
        """Copy to the host, beside kernels, what the next level's rows will take the place of.

        These may need `count` pages.
        """
        count -= self.pool.ready("device") + self._leaving_pages()
        for span in reversed([span for span in spans if span in self.rows]):
            numbers = [i for i in span.on("device")[::-1] if i not in span.twins]
            room = self.pool.ready("host") - self.pool.count // SPARE_COPIES
            numbers = numbers[: max(0, min(count, room))]
            if numbers:
                # Kernels that wrote these pages have run.
                cuda_calls.synchronize()
                span.back_up(numbers, self._stream())
                self.coming = True
                count -= len(numbers)

    def _bring(self, count: int, stream: int = 0) -> None:
        """Bring up to `count` pages of the input to the device, its arrays' planned shares first.

        With a stream, copies may be under way when this returns.
        """
        for planned in (True, False):
            for span in self.inputs:
                numbers = span.on("host")
                if planned:
                    share = device_bytes(span.spec.placement, span.spec.capacity)
                    share = -(-share // self.pool.size) - len(span.on("device"))
                    numbers = numbers[: max(share, 0)]
                numbers = numbers[: max(count, 0)]
                if numbers:
                    # What was in these pages may still be read.
                    cuda_calls.synchronize()
                    span.put("device", numbers, keep=True, stream=stream)
                    self.coming = self.coming or bool(stream)
                    count -= len(numbers)

    def _dress(self) -> None:
        """Map the input's pages that were not."""
        for span in self.inputs:
            span.dress()

    def _bring_begins(self, least: int) -> None:
        """Bring back where the input's rows begin, as far as there is room."""
        for span in self.inputs:
            numbers = span.on("host") if span.spec.kept else []
            if numbers:
                cuda_calls.synchronize()
                span.put("device", numbers[: self._made_ready(len(numbers), least)], keep=True)

    def _made_ready(self, count: int, least: int) -> int:
        """Free up to so many pages of arcs and of the shared arena's holes; return how many are."""
        self._demote(count - self.pool.ready("device"))
        if count > self.pool.ready("device"):
            self.shared.lend(count - self.pool.ready("device"), least)
        return min(count, self.pool.ready("device"))

    def _free_up(
        self, count: int, *, rows: Literal["all", "copied", "none"] = "all", begins: bool = False
    ) -> None:
        """Make so many pages free: of the input, what was set aside, rows, and where rows begin.

        Rows: all, those that have a copy on the host, or none.
        """
        self._demote(count - self.pool.ready("device"))
        numbers = self.shared.aside_on("device")[: max(0, count - self.pool.ready("device"))]
        if numbers:
            self.shared.put("host", numbers)
        if rows != "none":
            self._spill(count - self.pool.ready("device"), copied=rows == "copied")
        if begins:
            self._demote(count - self.pool.ready("device"), self.inputs)

    def _spill(self, count: int, *, copied: bool = False) -> None:
        """Let the ends of coarse levels' rows go, the last first, then what is looked up for them.

        First what has a copy on the host; only that, if `copied`.
        """
        held = [span for span in (*self.rows[::-1], *self.looked_up) if span.address]
        for backed in (True,) if copied else (True, False):
            for span in held if count > 0 else []:
                numbers = span.backed_up if backed else span.on("device")
                numbers = numbers[::-1][: max(count, 0)]
                if numbers:
                    self._wait()
                    span.put("host", numbers)
                    count -= len(numbers)

    def _demote(self, count: int, spans: Sequence[Span] | None = None) -> None:
        """Let device pages of the input go, the last ones first."""
        for span in reversed(self.leaving if spans is None else spans):
            numbers = span.on("device")[::-1][: max(count, 0)]
            if numbers:
                self._wait()
                span.put("host", numbers, bare=self.unread)
                count -= len(numbers)

    def _stream(self) -> int:
        """Return a stream for copies that run beside kernels."""
        if not self.stream:
            self.stream = cuda_calls.new_stream()
        return self.stream

    def _wait(self) -> None:
        """Wait for copies that run beside kernels."""
        if self.coming:
            cuda_calls.wait_for(self.stream)
            self.coming = False
