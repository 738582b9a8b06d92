"""Which pages of a run leave the device when others need room, and in which order.

Pages that have a copy on the host, or that nothing reads soon, leave first: the input's arcs, idle
arrays, ends of coarse levels' rows. The beginnings of the input's rows leave last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from louvain_um.errors import LouvainUmError
from louvain_um.placement.layout import ArenaSpec, device_bytes
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.migration.pages import PhysicalPages, page_bytes
from louvain_um.placement.migration.span import Copy, SharedSpan, Span

SPARE_COPIES: Final = 8
"""Share of the device, 1 / 8, for which host pages stay free when rows are copied during kernels:
a page that is made while kernels wait takes longer than the copy."""

WINDOW: Final = 10
"""Share of the device, 1 / 10, by which rows grow at a time, and through which they go to the host:
a smaller one takes more launches, a larger one more room from what is read meanwhile."""

LEAST_WINDOW: Final = 4
"""Pages of it at least: two for each array of a level's arcs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBudget:
    """Bytes of a run's pages."""

    device: int
    later: int


class Room:
    """The pages of one run: which arrays have them, and which give some up."""

    def __init__(
        self, layout: Sequence[ArenaSpec], budget: PageBudget, device: int, peer: int | None = None
    ) -> None:
        (shared,) = (spec for spec in layout if spec.group is None)
        inputs = [spec for spec in layout if spec.in_pages]
        size = page_bytes(budget.device)
        counts = [-(-spec.capacity // size) for spec in inputs]
        # Whether a coarse level is at work, whether it reads the input's arcs, and writes rows.
        self.coarse = self.reading = self.growing = False
        # Whether the step reads where the input's rows begin in order, once.
        self.in_order = False
        self.copying, self.stream = False, 0
        self.inputs, self.rows, self.looked_up = list[Span](), list[Span](), list[Span]()
        self.pool = PhysicalPages(
            device, budget.device, sum(counts) * size, budget.later, size, peer
        )
        try:
            self.shared = SharedSpan(shared, self.pool)
            for spec, count in zip(inputs, counts, strict=True):
                self.inputs.append(Span(spec, self.pool, ["host"] * count))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free everything; arrays that were held are closed before."""
        failures = list[LouvainUmError]()
        stream, self.stream, self.copying = self.stream, 0, False
        for undo in (cuda_calls.wait_for, cuda_calls.drop_stream) if stream else ():
            try:
                undo(stream)
            except LouvainUmError as error:
                failures.append(error)
        spans: list[Span | PhysicalPages] = [*self.inputs]
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

    @property
    def ready(self) -> int:
        """Pages of the device that are free."""
        return self.pool.ready("device")

    @property
    def free(self) -> int:
        """Bytes of free pages of the device."""
        return self.ready * self.pool.size

    @property
    def spare(self) -> int:
        """Bytes of the device without arrays, also those next to some in a page."""
        return self.free + self.shared.blocks.free

    @property
    def idle(self) -> int:
        """Bytes of the device's pages in which no array lies."""
        return self.free + self.shared.empty_pages * self.pool.size

    @property
    def window(self) -> int:
        """Pages through which new rows go to the host."""
        return max(LEAST_WINDOW, self.pool.count // WINDOW)

    @property
    def unread(self) -> bool:
        """Whether nothing reads the input's arcs."""
        return self.coarse and not self.reading

    @property
    def leaving(self) -> list[Span]:
        """Arrays of the input that may leave, last ones first: not where rows are looked up."""
        if self.in_order:
            return sorted(self.inputs, key=lambda span: span.spec.kept)
        return [span for span in self.inputs if self.unread or not span.spec.kept]

    @property
    def leaving_pages(self) -> int:
        """Device pages of arcs that have a copy on the host."""
        inputs = sum(span.here for span in self.leaving)
        return inputs + sum(len(span.backed_up) for span in self.rows if span.address)

    def missing(self, least: int) -> list[int]:
        """Return the pages that the shared arena lacks for so many bytes to work with."""
        short = least - self.shared.blocks.free
        if short <= 0:
            return []
        count = -(-short // self.pool.size)
        numbers = self.shared.missing(self.shared.blocks.largest + short)
        if len(numbers) > count:
            # A step's arrays fit into several gaps, too, and nothing more leaves for one.
            numbers = sorted(self.shared.released)[:count]
        return numbers

    def take_from_shared(self, count: int, least: int) -> None:
        """Make so many pages free, as far as the shared arena has them beyond `least` bytes."""
        if count > self.ready:
            self.shared.release(count - self.ready, least)

    def made_free(self, count: int, least: int) -> int:
        """Free up to so many pages of arcs and of the shared arena's gaps; return how many are."""
        self.demote(count - self.ready)
        self.take_from_shared(count, least)
        return min(count, self.ready)

    def free_up(
        self, count: int, *, rows: Literal["all", "copied", "none"] = "all", begins: bool = False
    ) -> None:
        """Make so many pages free: of the input, idle arrays, rows, and where rows begin."""
        if count <= self.ready:
            return
        self.demote(count - self.ready)
        self._send_shared(count, self.shared.idle_on("device"))
        if rows != "none":
            self.spill(count - self.ready, copied=rows == "copied")
        if begins:
            self.demote(count - self.ready, self.inputs)
            self._send_shared(count, self.shared.in_order_here)

    def _send_shared(self, count: int, numbers: list[int]) -> None:
        """Let pages of the shared arena go until so many pages are free."""
        numbers = numbers[: max(0, count - self.ready)]
        if numbers:
            self.shared.put("host", numbers)

    def demote(self, count: int, spans: Sequence[Span] | None = None) -> None:
        """Let device pages of the input go, the last ones first."""
        for span in reversed(self.leaving if spans is None else spans):
            numbers = span.on("device")[::-1][: max(count, 0)]
            if numbers:
                self.wait()
                unmapped = self.unread or (self.growing and not span.spec.kept)
                span.put("host", numbers, unmapped=unmapped)
                count -= len(numbers)

    def spill(self, count: int, *, copied: bool = False) -> None:
        """Let the ends of coarse levels' rows go, the last first."""
        held = [span for span in (*self.rows[::-1], *self.looked_up[::-1]) if span.address]
        for backed in (True,) if copied else (True, False):
            for span in held if count > 0 else []:
                numbers = span.backed_up if backed else span.on("device")
                numbers = numbers[::-1][: max(count, 0)]
                if numbers:
                    self.wait()
                    span.put("host", numbers)
                    count -= len(numbers)

    def map_input(self, count: int) -> list[Copy]:
        """Map device pages for up to `count` of the input's, its arrays' planned shares first."""
        copies = list[Copy]()
        for planned in (True, False):
            for span in self.inputs:
                numbers = span.on("host")
                if planned:
                    share = device_bytes(span.spec.placement, span.spec.capacity)
                    share = -(-share // self.pool.size) - span.here
                    numbers = numbers[: max(share, 0)]
                numbers = numbers[: max(count, 0)]
                if numbers:
                    copies += span.remap("device", numbers, keep=True)
                    count -= len(numbers)
        return copies

    def back_up(self, spans: Iterable[Span], count: int) -> None:
        """Copy to the host, during kernels, what the next level's rows will take the place of."""
        count -= self.ready + self.leaving_pages
        for span in reversed([span for span in spans if span in self.rows]):
            numbers = [i for i in span.on("device")[::-1] if i not in span.host_copies]
            room = self.pool.ready("host") - self.pool.count // SPARE_COPIES
            count -= self.copy_out(span, numbers[: max(0, min(count, room))])

    def copy_out(self, span: Span, numbers: Sequence[int]) -> int:
        """Copy pages to the host during kernels; return how many."""
        if numbers:
            span.back_up(numbers, self.copy_stream())
            self.copying = True
        return len(numbers)

    def copy_in(self, copies: Sequence[Copy]) -> None:
        """Copy pages to the device during kernels."""
        if copies:
            self.shared.copy(copies, "device", self.copy_stream())
            self.copying = True

    def copy_stream(self) -> int:
        """Return a stream for copies during kernels."""
        if not self.stream:
            self.stream = cuda_calls.new_stream()
        return self.stream

    def wait(self) -> None:
        """Wait for copies that run during kernels."""
        if self.copying:
            cuda_calls.wait_for(self.stream)
            self.copying = False
