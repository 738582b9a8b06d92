"""Which pages are on the device now: decided anew whenever a run knows more than before.

The input's arcs are loaded into host pages; what fits is copied to the device, and the host's copy
stays. So device pages of the input leave for nothing when something else needs them, at any time,
and return before the input is read again. A coarse level's arcs are written to device pages; where
these run out, what is finished is copied to the host, since kernels write there at a tenth of the
rate of copies. They settle on the device once the level they were made of is no longer read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from louvain_um.core.ledger import Group
from louvain_um.errors import LouvainUmError
from louvain_um.placement.arena_spec import ArenaSpec, device_bytes
from louvain_um.placement.memory.pages import Pages, PageSide, page_bytes, supported
from louvain_um.placement.memory.span import SharedSpan, Span
from louvain_um.placement.policy.policy import Placement

IN_PAGES = Placement("split", 0.5)
"""Stands for the placement of a span, which changes."""


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

    Attributes
    ----------
    shared : SharedSpan
    inputs : list of Span
        The input's arcs.
    rows : list of Span
        Arcs of coarse levels.
    later : bool
        Whether coarse levels are at work: nobody reads the input's arcs.
    """

    def __init__(self, layout: Sequence[ArenaSpec], budget: PageBudget, device: int) -> None:
        (shared,) = (spec for spec in layout if spec.group is None)
        inputs = [spec for spec in layout if spec.in_pages]
        size = page_bytes(budget.device)
        counts = [-(-spec.capacity // size) for spec in inputs]
        first = sum(counts) * size
        self.later = False
        self.inputs = list[Span]()
        self.rows = list[Span]()
        self.pool = Pages(device, budget.device, first, budget.later, size)
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

    def hold(self, name: str, group: Group, nbytes: int, *, cold: bool, most: int) -> Span:
        """Return pages for an array: of the device if possible, all on one side unless `cold`."""
        count = -(-max(nbytes, 1) // self.pool.size)
        self._demote(count - self.pool.ready("device"))
        if not cold:
            self._spill(count - self.pool.ready("device"))
        here = min(count, self.pool.ready("device"))
        if here < count and not cold:
            here = 0
        spec = ArenaSpec(name=name, group=group, capacity=nbytes, placement=IN_PAGES)
        span = Span(spec, self.pool, _sides(here, count - here), most)
        if cold:
            self.rows = [other for other in self.rows if other.address] + [span]
        return span

    def extend(self, span: Span, nbytes: int, used: int) -> None:
        """Add pages to a span, so that it holds so many bytes; the first `used` are final."""
        count = -(-nbytes // self.pool.size) - len(span.mapped)
        self._demote(count - self.pool.ready("device"))
        missing = count - self.pool.ready("device")
        final = [i for i in span.on("device") if (i + 1) * self.pool.size <= used]
        if missing > 0 and final:
            span.put("host", final[:missing])
        here = max(0, min(count, self.pool.ready("device")))
        span.extend(_sides(here, count - here))

    def room(self) -> int:
        """Return the bytes of free pages of the device."""
        return self.pool.ready("device") * self.pool.size

    def settle(self, spans: Iterable[Span], least: int) -> None:
        """Move spans to the device, as far as pages can be found.

        They come from the input's arcs, which have a copy on the host, and from the shared arena.
        `least` bytes stay free, there or in pages: what the level works with goes first.
        """
        wanted = list(spans)
        # The next level keeps no more arcs: its pages are made beside this level's moving.
        self.pool.expect(sum(span.nbytes for span in wanted))
        spare = max(0, -(-(least - self.shared.blocks.free) // self.pool.size))
        wanted = [span for span in wanted if span.on("host")]
        missing = sum(len(span.on("host")) for span in wanted) + spare
        self._demote(missing - self.pool.ready("device"))
        if missing > self.pool.ready("device"):
            self.shared.lend(missing - self.pool.ready("device"), least)
        for span in wanted:
            numbers = span.on("host")[: max(0, self.pool.ready("device") - spare)]
            if numbers:
                span.put("device", numbers)

    def recall(self) -> None:
        """Bring the input's arcs to the device, each array its planned share first."""
        self.later = False
        self.shared.reclaim()
        for planned in (True, False):
            for span in self.inputs:
                numbers = span.on("host")
                if planned:
                    share = device_bytes(span.spec.placement, span.spec.capacity)
                    share = -(-share // self.pool.size) - len(span.on("device"))
                    numbers = numbers[: max(share, 0)]
                numbers = numbers[: self.pool.ready("device")]
                if numbers:
                    span.put("device", numbers, keep=True)

    def close(self) -> None:
        """Free everything; arrays that were held are closed before."""
        failures = list[LouvainUmError]()
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

    def _spill(self, count: int) -> None:
        """Copy the ends of coarse levels' rows to the host: what a level works with goes first."""
        for span in self.rows if count > 0 else ():
            numbers = span.on("device")[::-1][: max(count, 0)] if span.address else []
            if numbers:
                span.put("host", numbers)
                count -= len(numbers)

    def _demote(self, count: int) -> None:
        """Let device pages of the input go, the last ones first."""
        for span in reversed(self.inputs):
            numbers = span.on("device")[::-1][: max(count, 0)]
            if numbers:
                span.put("host", numbers)
                count -= len(numbers)


def _sides(here: int, there: int) -> list[PageSide]:
    """Return the sides of so many pages of the device and, behind them, of the host."""
    found: list[PageSide] = ["device"] * here
    found += ["host"] * max(there, 0)
    return found


__all__ = ["PageBudget", "Schedule", "supported"]
