"""The arrays of a run, cut from the arenas that its plan lays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.core.ledger import Group, Listener
from louvain_um.errors import LouvainUmError, MemoryBudgetError
from louvain_um.placement.arena_spec import MANAGED, ArenaSpec, device_bytes
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.arena import Arena, arena_beside
from louvain_um.placement.memory.arena_choice import arena_for, lent, part_for
from louvain_um.placement.memory.backing import managed_fits
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.memory.live_arrays import Allocation
from louvain_um.placement.memory.paging.kept_pages import release_kept
from louvain_um.placement.memory.paging.movement import PageBudget
from louvain_um.placement.memory.paging.paged_arrays import PagedArrays
from louvain_um.placement.memory.paging.pages import supported
from louvain_um.placement.memory.paging.schedule import Schedule
from louvain_um.placement.memory.paging.span import Span
from louvain_um.placement.policy.policy import Placement

REMEDY: Final = "raise the budget, or use memory='auto', which moves to the host what does not fit"


class Allocator(PagedArrays):
    """Arrays of one run on one device, under the placements of its plan."""

    def __init__(
        self,
        layout: Sequence[ArenaSpec],
        device: int,
        *,
        budget: int | None = None,
        out_of_core: Mapping[str, int] | None = None,
        pages: PageBudget | None = None,
        peer: int | None = None,
        listener: Listener | None = None,
    ) -> None:
        super().__init__(device, listener)
        self.budget = budget
        self.peer = peer
        self.out_of_core = dict(out_of_core or {})
        self.arenas: list[Arena | Span] = []
        self.arena_of_name: dict[tuple[str, Group, bool], Arena | Span | None] = {}
        self.parts: list[ArenaSpec] = []
        self.overflowed: dict[str, str] = {}
        try:
            with cuda_calls.current(device):
                in_pages = pages is not None and supported(device)
                if not in_pages:
                    # What would take pages of both sides lies beyond the device: its part there is
                    # of an arena that others share.
                    away = Placement("host_mapped" if peer is None else "peer")
                    layout = [replace(s, placement=away) if s.on_demand else s for s in layout]
                apart = list(layout)
                managed = managed_fits(layout, device)
                if pages and in_pages:
                    self.schedule = Schedule(layout, pages, device, peer)
                    self.arenas = [self.schedule.shared, *self.schedule.inputs]
                    self.parts = [s for s in layout if s.on_demand]
                    apart = [
                        s for s in layout if not (s.in_pages or s.on_demand) and s.group is not None
                    ]
                elif any(spec.placement.kind != "device" for spec in layout):
                    release_kept()  # which no page is made of, for what the host is to hold
                # Allocate first what must be on the device.
                for spec in sorted(apart, key=lambda spec: spec.placement.kind != "device"):
                    self.arenas.append(Arena(spec, device, managed=managed, peer=peer))
            self.arenas.sort(key=lambda arena: layout.index(arena.spec))
            if budget is not None and self.resident_bytes > budget:
                raise self._over_budget(budget)
        except BaseException:
            self.close()
            raise

    def empty(
        self,
        name: str,
        group: Group,
        shape: int,
        dtype: DTypeLike,
        *,
        short_lived: bool = False,
        cold: bool = False,
        most: int = 0,
        head: int = 0,
    ) -> Any:
        """Return an uninitialised one-dimensional array."""
        kind = np.dtype(dtype)
        nbytes = shape * kind.itemsize
        if name in self.allocations:
            raise KeyError(f"array {name!r} is live already")
        part = self._part_for(name) if self.parts else None
        if part:
            allocation = self._paged(name, group, nbytes, cold=False, part=part)
            return self.keep(name, group, allocation, shape, kind)
        arena = self._arena_for(name, group)
        # Keep short-lived arrays apart from others.
        joint = arena is not None and arena.spec.group is None
        high = short_lived or (joint and group in ("scratch", "hash"))
        # Where an array cannot be enlarged, it takes all it may come to need.
        whole = max(nbytes, most * kind.itemsize) if self.schedule else nbytes
        address = arena.take(whole, high=high) if arena else None
        if arena and address is None and joint and not cold and self._widened(nbytes):
            address = arena.take(nbytes, high=high)
        if arena and address is None and not self.schedule:
            arena, address = lent(self.arenas, arena, nbytes)
        if arena and address is not None:
            allocation = Allocation(arena, address, whole)
        elif self.schedule:
            bytes_later = most * kind.itemsize
            allocation = self._paged(name, group, nbytes, cold=cold, most=bytes_later, head=head)
        else:
            allocation = self._overflow(name, group, nbytes, arena)
        return self.keep(name, group, allocation, shape, kind)

    def placed_on_host(self, name: str, group: Group) -> float:
        """Return the share of an array in host memory, or of the arena that it would lie in."""
        if name in self.allocations:
            return self.host_share(name)
        part = self._part_for(name)
        if part:
            return 1 - part.placement.on_device
        arena = self._arena_for(name, group)
        return 1 - arena.placement.on_device if arena else 0.0

    def follow(self, layout: Sequence[ArenaSpec]) -> bool:
        """Place the arenas as another layout has them; return whether that could be done."""
        changes = list[tuple[Arena, Placement]]()
        for arena, spec in zip(self.arenas, layout, strict=False):
            if isinstance(arena, Span):
                return False
            same = (arena.spec.name, arena.spec.members) == (spec.name, spec.members)
            fixed = not arena.managed or spec.placement.kind not in MANAGED
            if not same or (fixed and arena.placement != spec.placement):
                return False
            if arena.placement != spec.placement:
                changes.append((arena, spec.placement))
        if len(layout) != len(self.arenas):
            return False
        changes.sort(key=lambda change: change[1].on_device - change[0].placement.on_device)
        with cuda_calls.current(self.device):
            for arena, placement in changes:
                arena.place(placement)
        return True

    def close(self) -> None:
        """Free everything; every arena is tried, then the first failure is raised."""
        schedule, self.schedule = self.schedule, None
        arenas: list[Arena | Span | Schedule] = [
            *self._own_arenas(),
            *(a for a in self.arenas if not isinstance(a, Span)),
            *([schedule] if schedule else []),
        ]
        self.arenas.clear()
        self.arena_of_name.clear()
        self.live.clear()
        self.allocations.clear()
        for name in list(self.ledger.entries):
            self.ledger.remove(name)
        failures: list[LouvainUmError] = []
        with ExitStack() as stack:
            try:
                stack.enter_context(cuda_calls.current(self.device))
            except LouvainUmError as error:  # most of it can be freed nevertheless
                failures.append(error)
            for arena in arenas:
                try:
                    arena.close()
                except LouvainUmError as error:
                    failures.append(error)
        if failures:
            raise failures[0]

    def __enter__(self) -> Allocator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def resident_bytes(self) -> int:
        """Bytes of the device that are or may become occupied."""
        laid_out = sum(
            min(arena.resident_bytes, self.out_of_core.get(arena.spec.name, arena.resident_bytes))
            for arena in self.arenas
        )
        apart = sum(arena.resident_bytes for arena in self._own_arenas())
        return laid_out + apart + (self.schedule.resident_bytes if self.schedule else 0)

    def _arena_for(self, name: str, group: Group) -> Arena | Span | None:
        which = name, group, self.schedule is not None and self.schedule.later
        if which not in self.arena_of_name:
            self.arena_of_name[which] = arena_for(self.arenas, name, group, later=which[2])
        return self.arena_of_name[which]

    def _part_for(self, name: str) -> ArenaSpec | None:
        """Return what a plan says of an array that takes pages of both sides; None of others."""
        return part_for(self.parts, name, later=self.schedule is not None and self.schedule.later)

    def _paged(
        self,
        name: str,
        group: Group,
        nbytes: int,
        *,
        cold: bool,
        most: int = 0,
        head: int = 0,
        part: ArenaSpec | None = None,
    ) -> Allocation:
        """Return pages for an array that finds no room in its arena, or is to have these."""
        assert self.schedule is not None
        here = device_bytes(part.placement, nbytes) if part else None
        with cuda_calls.current(self.device):
            span = self.schedule.hold(
                name, group, nbytes, cold=cold, most=most, head=head, here=here
            )
        planned = len(span.mapped) if here is None else here // self.page_bytes
        if not cold and span.here < planned:
            self.overflowed[name] = "pinned" if self.peer is None else "peer"
        address = span.take(nbytes)
        assert address is not None
        return Allocation(span, address, nbytes, own=True)

    def _overflow(
        self, name: str, group: Group, nbytes: int, arena: Arena | Span | None
    ) -> Allocation:
        """Allocate memory of its own for an array that does not fit into its arena."""
        with cuda_calls.current(self.device):
            room = guard.room(self.device)
            if self.budget is not None:
                room = min(room, self.budget - self.resident_bytes)
            found = arena_beside(name, group, nbytes, room, self.device, self.peer)
        if found is None:
            held = {name: entry.nbytes for name, entry in self.ledger.entries.items()}
            total = sum(held.values())
            sizes = {**held, name: nbytes}.items()
            raise MemoryBudgetError(total + nbytes, total + max(room, 0), sizes, REMEDY)
        own, kind = found
        if arena is not None:
            self.overflowed[name] = kind
        return Allocation(own, own.whole(), nbytes, own=True)

    def _over_budget(self, budget: int) -> MemoryBudgetError:
        """Return the error of a layout that is larger than the budget."""
        held = {arena.spec.name: arena.resident_bytes for arena in self.arenas}
        return MemoryBudgetError(self.resident_bytes, budget, held.items(), REMEDY)
