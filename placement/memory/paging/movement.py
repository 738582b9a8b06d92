"""How pages of a run change sides: the input stays on the host, coarse levels leave for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from louvain_um.errors import LouvainUmError
from louvain_um.placement.arena_spec import ArenaSpec, device_bytes
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.paging.mappings import Page
from louvain_um.placement.memory.paging.pages import Pages, page_bytes
from louvain_um.placement.memory.paging.shared_span import SharedSpan
from louvain_um.placement.memory.paging.span import Span

SPARE_COPIES: Final = 8
"""Share of the device, 1 / 8, for which host pages stay free when rows are copied beside kernels:
a page that is made while kernels wait takes ten times as long as the copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBudget:
    """Bytes of a run's pages."""

    device: int
    later: int


class Movement:
    """The pages of one run, on either side."""

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
        self.later = self.reading = self.growing = self.coming = False
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

    def _leaving_pages(self) -> int:
        """Return how many device pages of arcs have a copy on the host."""
        inputs = sum(span.here for span in self.leaving)
        return inputs + sum(len(span.backed_up) for span in self.rows if span.address)

    def _back_up(self, spans: Sequence[Span], count: int) -> None:
        """Copy to the host, beside kernels, what the next level's rows will take the place of."""
        count -= self.pool.ready("device") + self._leaving_pages()
        for span in reversed([span for span in spans if span in self.rows]):
            numbers = [i for i in span.on("device")[::-1] if i not in span.twins]
            room = self.pool.ready("host") - self.pool.count // SPARE_COPIES
            numbers = numbers[: max(0, min(count, room))]
            if numbers:
                span.back_up(numbers, self._stream())
                self.coming = True
                count -= len(numbers)

    def _bring(self, count: int) -> None:
        """Bring up to `count` pages of the input to the device, and wait for them."""
        cuda_calls.synchronize()
        self.shared.carry(self._map_input(count), "device")

    def _map_input(self, count: int) -> list[tuple[Page, Page]]:
        """Map device pages for up to `count` of the input's, its arrays' planned shares first."""
        copies = list[tuple[Page, Page]]()
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

    def _carry_beside(self, copies: Sequence[tuple[Page, Page]]) -> None:
        """Copy pages to the device beside kernels."""
        if copies:
            self.shared.carry(copies, "device", self._stream())
            self.coming = True

    def _dress(self) -> None:
        """Map the input's pages that were not, but for arcs that are read in the host's copy."""
        for span in self.inputs:
            if span.spec.kept or not self.growing:
                span.dress()

    def _bring_begins(self, least: int) -> None:
        """Bring back where the input's rows begin, as far as there is room."""
        for span in self.inputs:
            numbers = span.on("host") if span.spec.kept else []
            if numbers:
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
        """Make so many pages free: of the input, what was set aside, rows, and where rows begin."""
        if count <= self.pool.ready("device"):
            return
        self._demote(count - self.pool.ready("device"))
        self._put_aside(count, self.shared.aside_on("device"))
        if rows != "none":
            self._spill(count - self.pool.ready("device"), copied=rows == "copied")
        if begins:
            self._demote(count - self.pool.ready("device"), self.inputs)
            self._put_aside(count, self.shared.in_order_here)

    def _put_aside(self, count: int, numbers: list[int]) -> None:
        """Let pages of the shared arena go until so many pages are free."""
        numbers = numbers[: max(0, count - self.pool.ready("device"))]
        if numbers:
            self.shared.put("host", numbers)

    def _spill(self, count: int, *, copied: bool = False) -> None:
        """Let the ends of coarse levels' rows go, the last first."""
        held = [span for span in (*self.rows[::-1], *self.looked_up[::-1]) if span.address]
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
                bare = self.unread or (self.growing and not span.spec.kept)
                span.put("host", numbers, bare=bare)
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
