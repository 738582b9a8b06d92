"""What the steps of a run change about arrays in pages: growing, settling, leaving, coming back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from louvain_um.core.ledger import Listener
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.live_arrays import Allocation, LiveArrays
from louvain_um.placement.memory.paging.mappings import PageSide
from louvain_um.placement.memory.paging.schedule import Schedule
from louvain_um.placement.memory.paging.span import Span


class PagedArrays(LiveArrays):
    """Arrays of which some may lie in pages that change sides."""

    def __init__(self, device: int, listener: Listener | None = None) -> None:
        super().__init__(device, listener)
        self.schedule: Schedule | None = None

    def extend(self, name: str, shape: int, used: int) -> Any:
        """Return an array with more elements at the same address; None if it cannot grow there."""
        old, allocation = self.live[name], self.allocations[name]
        nbytes = shape * old.itemsize
        span = allocation.arena
        if self.schedule and allocation.own and isinstance(span, Span) and nbytes <= span.reserved:
            with cuda_calls.current(self.device):
                self.schedule.extend(span, nbytes, used * old.itemsize)
            span.in_use = span.peak = nbytes
            self.allocations[name] = Allocation(span, allocation.address, nbytes, own=True)
        elif nbytes > allocation.nbytes:
            return None
        self.ledger.grow(name, nbytes)
        return self.show(name, shape, old.dtype)

    def make_room(self, shapes: Mapping[str, tuple[int, int]]) -> None:
        """Let others leave the device so that arrays in pages can be extended together."""
        rows = list[tuple[Span, int, int]]()
        for name, counts in shapes.items():
            held, width = self.allocations[name], self.live[name].itemsize
            if self.schedule and held.own and isinstance(held.arena, Span):
                rows.append((held.arena, counts[0] * width, counts[1] * width))
        if self.schedule and rows:
            with cuda_calls.current(self.device):
                self.schedule.make_room(rows)

    @property
    def page_bytes(self) -> int:
        """Bytes of a page that may change sides; 0 where there are none."""
        return self.schedule.pool.size if self.schedule else 0

    @property
    def spare(self) -> int:
        """Bytes of the device without arrays, also beside some in a page; 0 without such pages."""
        return self.schedule.spare() if self.schedule else 0

    @property
    def idle(self) -> int:
        """Bytes of the device's pages in which no array lies; 0 without such pages."""
        return self.schedule.idle() if self.schedule else 0

    @property
    def hole(self) -> int | None:
        """Bytes that arrays find in one piece, without others leaving; None without such pages."""
        return self.schedule.shared.blocks.largest if self.schedule else None

    @property
    def copied(self) -> dict[PageSide, int]:
        """Bytes of pages that were copied to each side."""
        return self.schedule.pool.copied if self.schedule else {"device": 0, "host": 0}

    def open_rows(self, nbytes: int) -> None:
        """Free pages for new rows of so many bytes, once a step has all that it works with."""
        if self.schedule:
            with cuda_calls.current(self.device):
                self.schedule.open_rows(nbytes)

    def reach(self, finals: Mapping[str, int]) -> int:
        """Return the bytes by which arrays in pages can grow on the device."""
        if self.schedule is None:
            return 0
        return self.schedule.reach(self._growing(finals))

    def work_beside(self, finals: Mapping[str, int] | None = None, nbytes: int = 0) -> None:
        """Do, once a kernel was launched, what would take time between kernels."""
        if self.schedule:
            with cuda_calls.current(self.device):
                self.schedule.work_beside(self._growing(finals or {}), nbytes)

    def leave_beside(self, *names: str, nbytes: int) -> int:
        """Let what growing arrays have a copy of leave, beside the kernel that fills them."""
        rows = [span for span, _ in self._growing(dict.fromkeys(names, 0))]
        if self.schedule is None or len(rows) < len(names):
            return 0
        with cuda_calls.current(self.device):
            return self.schedule.leave_beside(rows, nbytes)

    def free_ahead(self, finals: Mapping[str, int], nbytes: int) -> None:
        """Free bytes for arrays that grow beside the next kernel."""
        rows = self._growing(finals)
        if self.schedule and len(rows) == len(finals):
            with cuda_calls.current(self.device):
                self.schedule.free_ahead(rows, nbytes)

    def dress_beside(self, *names: str) -> None:
        """Map, as long as a kernel runs, what left of arrays that grow."""
        if self.schedule:
            with cuda_calls.current(self.device):
                rows = [span for span, _ in self._growing(dict.fromkeys(names, 0))]
                self.schedule.dress_beside(rows)

    def dress(self, *names: str) -> None:
        """Let kernels read arrays that have grown."""
        if self.schedule:
            with cuda_calls.current(self.device):
                self.schedule.dress(span for span, _ in self._growing(dict.fromkeys(names, 0)))

    def settle(
        self,
        *names: str,
        least: int,
        later: bool = True,
        grows: bool = False,
        backs_up: bool = True,
        reads_input: bool = False,
        nbytes: int = 0,
    ) -> None:
        """Place what the next step needs: `least` bytes to work with, then arrays in pages."""
        if self.schedule is None:
            return
        self.schedule.later = self.schedule.later or later
        with cuda_calls.current(self.device):
            if reads_input:
                self.schedule.open_input()
            own, found = self._in_pages(names)
            nbytes = nbytes or found
            self.schedule.settle(own, least, grows=grows, nbytes=nbytes, backs_up=backs_up)

    def prepare(self, least: int, more: int, rows: Sequence[int]) -> None:
        """Map beside a kernel what the next step will need, as far as nothing has to leave."""
        if self.schedule:
            with cuda_calls.current(self.device):
                self.schedule.prepare(least, more, rows)

    def lacks(self, *names: str, least: int) -> bool:
        """Return whether the device has no room for as many arcs again beside a coarse level's."""
        _, nbytes = self._in_pages(names)
        return self.schedule is not None and nbytes > self.schedule.beside(least)

    def set_aside(self, *names: str, in_order: bool = False) -> None:
        """Let arrays leave the device when others need room; `bring_back` before they are read."""
        if self.schedule is None:
            return
        for name in names:
            held = self.allocations[name]
            if held.arena is self.schedule.shared:
                self.schedule.shared.set_aside(held.address, in_order=in_order)

    def bring_back(self) -> None:
        """Bring arrays that were set aside back to the device."""
        if self.schedule:
            with cuda_calls.current(self.device):
                self.schedule.bring_back()

    def recall_beside(self, least: int) -> None:
        """Begin to bring the input's arcs back, beside what the host reads; `recall` ends it."""
        if self.schedule:
            with cuda_calls.current(self.device):
                self.schedule.recall_beside(least)

    def recall(self, least: int = 0) -> None:
        """Bring the input's arcs back to the device, except for `least` bytes to work with."""
        if self.schedule:
            with cuda_calls.current(self.device):
                self.schedule.recall(least)

    def apart(self, name: str) -> tuple[int, int]:
        """Return the bytes at an array's address, and the address of a copy of all its bytes."""
        held = self.allocations.get(name)
        if held is None or not isinstance(held.arena, Span) or not held.arena.bare:
            return 0, 0
        return min(held.arena.bare) * held.arena.pool.size, held.arena.copy_address

    def _widened(self, nbytes: int) -> bool:
        """Whether arcs made room in the shared arena for an array."""
        if self.schedule is None:
            return False
        with cuda_calls.current(self.device):
            return self.schedule.widen(nbytes)

    def _growing(self, finals: Mapping[str, int]) -> list[tuple[Span, int]]:
        """Return the pages of arrays that have some of their own, with what goes with each."""
        held = [(self.allocations[name], used) for name, used in finals.items()]
        return [(a.arena, used) for a, used in held if a.own and isinstance(a.arena, Span)]

    def _in_pages(self, names: Sequence[str]) -> tuple[list[Span], int]:
        """Return the pages of arrays that have some of their own, and the bytes of all."""
        own = [self.allocations[name] for name in names if name in self.allocations]
        spans = [held.arena for held in own if held.own and isinstance(held.arena, Span)]
        return spans, sum(held.nbytes for held in own)
