"""The arrays of a run, cut from the arenas that its plan lays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from louvain_um.core.ledger import Group, Ledger, Listener
from louvain_um.errors import LouvainUmError, MemoryBudgetError
from louvain_um.placement.arena_spec import MANAGED, ArenaSpec
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.advise import Side
from louvain_um.placement.memory.arena import Arena, arena_beside
from louvain_um.placement.memory.arena_choice import arena_for, lent
from louvain_um.placement.memory.array_view import view
from louvain_um.placement.memory.backing import managed_fits
from louvain_um.placement.memory.colocate import fetch, fill
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.memory.paging.movement import PageBudget
from louvain_um.placement.memory.paging.pages import PageSide, supported
from louvain_um.placement.memory.paging.schedule import Schedule
from louvain_um.placement.memory.paging.span import Span
from louvain_um.placement.policy.policy import Placement

if TYPE_CHECKING:
    import cupy

REMEDY: Final = "raise the budget, or use memory='auto', which moves to the host what does not fit"


# A run asks for hundreds of arrays while the device waits: a tuple is made faster than an object.
class Allocation(NamedTuple):
    """Where a live array lies: its arena, its block there, and whether the arena is its own."""

    arena: Arena | Span
    address: int
    nbytes: int
    own: bool = False


class Allocator:
    """Arrays of one run on one device, under the placements of its plan.

    An array that does not fit into its arena takes room in another one, if both are plain device
    memory. Otherwise it overflows: to plain device memory of its own if the budget (or, without
    one, the device) has enough free bytes, else to host memory that the device reads over the bus.
    Allocators share no state.

    With a page budget, arcs of the input and what overflows lie in pages that change sides
    (`louvain_um.placement.memory.paging.schedule`).

    Parameters
    ----------
    layout : sequence of ArenaSpec
        The arenas; none at all makes every array one plain allocation.
    device : int
        The CUDA device.
    budget : int, optional
        Bytes of the device that arenas and overflowing arrays may occupy.
    out_of_core : mapping of str to int, optional
        Out-of-core arenas, and the bytes of each that are on the device at a time.
    pages : PageBudget, optional
        Ignored where the driver does not map pages.
    peer : int, optional
        Device whose memory stands in for the host's: far parts of splits, pages, and what
        overflows.
    listener : callable, optional
        Called for each array allocated or freed: "array" or "freed", name, group, address,
        bytes.

    Raises
    ------
    MemoryBudgetError
        The arenas do not fit; nothing is left allocated.
    PlacementError
        The device or its driver does not carry out a placement; nothing is left allocated.

    Attributes
    ----------
    live : dict of str to cupy.ndarray
        Arrays by name.
    overflowed : dict of str to str
        Arrays that did not fit into their arena, and the kind of memory they are in.
    """

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
        self.device = device
        self.budget = budget
        self.peer = peer
        self.out_of_core = dict(out_of_core or {})
        self.ledger = Ledger(listener)
        self.live: dict[str, cupy.ndarray] = {}
        self.allocations: dict[str, Allocation] = {}
        self.arenas: list[Arena | Span] = []
        self.arena_of_name: dict[tuple[str, Group, bool], Arena | Span | None] = {}
        self.schedule: Schedule | None = None
        self.overflowed: dict[str, str] = {}
        try:
            with cuda_calls.current(device):
                apart = list(layout)
                managed = managed_fits(layout, device)
                if pages and supported(device):
                    self.schedule = Schedule(layout, pages, device, peer)
                    self.arenas = [self.schedule.shared, *self.schedule.inputs]
                    apart = [s for s in layout if not s.in_pages and s.group is not None]
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
        """Return an uninitialised one-dimensional array.

        Parameters
        ----------
        name, group, shape, dtype
        short_lived : bool
            It is freed before others of its group: it is at the arena's far end.
        cold : bool
            It may wait in pages of the host until `settle`.
        most : int
            Elements up to which `extend` may enlarge it in place.
        head : int
            Bytes at its beginning that change for as long as it grows.

        Raises
        ------
        MemoryBudgetError
            Neither device nor host has enough free memory.
        """
        kind = np.dtype(dtype)
        nbytes = shape * kind.itemsize
        if name in self.allocations:
            raise KeyError(f"array {name!r} is live already")
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
        self.allocations[name] = allocation
        self.ledger.add(name, group, nbytes, allocation.address)
        self.live[name] = view(allocation.address, shape, kind, allocation.arena)
        return self.live[name]

    def free(self, *names: str) -> None:
        """Give arrays back; the caller drops its own references."""
        for name in names:
            self.live.pop(name, None)
            allocation = self.allocations.get(name)
            if allocation and allocation.own:
                with cuda_calls.current(self.device):
                    allocation.arena.close()
            # The ledger may have arrays that another allocator made.
            self.allocations.pop(name, None)
            self.ledger.remove(name)
            if allocation and not allocation.own:
                allocation.arena.give(allocation.address)

    def shrink(self, name: str, shape: int) -> Any:
        """Return the first `shape` elements of an array, which gives the rest back.

        Raises
        ------
        ValueError
            The array has fewer.
        """
        old, allocation = self.live[name], self.allocations[name]
        nbytes = shape * old.itemsize
        if nbytes > allocation.nbytes:
            raise ValueError(f"array {name!r} has {old.size} elements, fewer than {shape}")
        allocation.arena.shrink(allocation.address, nbytes)
        self.allocations[name] = Allocation(
            allocation.arena, allocation.address, nbytes, allocation.own
        )
        self.ledger.shrink(name, nbytes)
        self.live[name] = view(allocation.address, shape, old.dtype, allocation.arena)
        return self.live[name]

    def extend(self, name: str, shape: int, used: int) -> Any:
        """Return an array with more elements at the same address; None if it cannot grow there.

        The first `used` elements are final.
        """
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
        self.live[name] = view(allocation.address, shape, old.dtype, span)
        return self.live[name]

    def make_room(self, shapes: Mapping[str, tuple[int, int]]) -> None:
        """Let others leave the device so that arrays in pages can be extended together.

        Parameters
        ----------
        shapes : mapping of str to (int, int)
            Arrays, elements that they are to hold, and how many of the first are final.
        """
        rows = list[tuple[Span, int, int]]()
        for name, counts in shapes.items():
            held, width = self.allocations[name], self.live[name].itemsize
            if self.schedule and held.own and isinstance(held.arena, Span):
                rows.append((held.arena, counts[0] * width, counts[1] * width))
        if self.schedule and rows:
            with cuda_calls.current(self.device):
                self.schedule.make_room(rows)

    def _widened(self, nbytes: int) -> bool:
        """Whether arcs made room in the shared arena for an array."""
        if self.schedule is None:
            return False
        with cuda_calls.current(self.device):
            return self.schedule.widen(nbytes)

    @property
    def page_bytes(self) -> int:
        """Bytes of a page that may change sides; 0 where there are none."""
        return self.schedule.pool.size if self.schedule else 0

    @property
    def spare(self) -> int:
        """Bytes of the device without arrays; 0 without pages that change sides."""
        return self.schedule.spare() if self.schedule else 0

    def reach(self, finals: Mapping[str, int]) -> int:
        """Return the bytes by which arrays in pages can grow on the device.

        Parameters
        ----------
        finals : mapping of str to int
            Arrays, and the first bytes of each that do not change any more.
        """
        if self.schedule is None:
            return 0
        return self.schedule.reach(self._growing(finals))

    def _growing(self, finals: Mapping[str, int]) -> list[tuple[Span, int]]:
        """Return the pages of arrays that have some of their own, with what goes with each."""
        held = [(self.allocations[name], used) for name, used in finals.items()]
        return [(a.arena, used) for a, used in held if a.own and isinstance(a.arena, Span)]

    def work_beside(self, finals: Mapping[str, int] | None = None) -> None:
        """Do, once a kernel was launched, what would take time between kernels.

        Parameters
        ----------
        finals : mapping of str to int, optional
            Arrays that grow, and the first bytes of each that the kernel does not change.
        """
        if self.schedule:
            with cuda_calls.current(self.device):
                self.schedule.work_beside(self._growing(finals or {}))

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
        """Place what the next step needs: `least` bytes to work with, then arrays in pages.

        Parameters
        ----------
        names : str
            A coarse level's arcs.
        least : int
        later : bool
            Whether the input's arcs are not read before `recall`, but where this is called with
            `reads_input`.
        grows : bool
            Whether the step writes the next level's arcs.
        backs_up : bool
            Whether arcs that the next level's will take the place of are copied to the host.
        reads_input : bool
            Whether the step reads the input's arcs nevertheless.
        nbytes : int
            Bytes that the next level's arcs may take, if the step makes these of the input's.
        """
        if self.schedule is None:
            return
        self.schedule.later = self.schedule.later or later
        with cuda_calls.current(self.device):
            if reads_input:
                self.schedule.open_input()
            own, found = self._in_pages(names)
            nbytes = nbytes or found
            self.schedule.settle(own, least, grows=grows, nbytes=nbytes, backs_up=backs_up)

    def lacks(self, *names: str, least: int) -> bool:
        """Return whether the device has no room for as many arcs again beside a coarse level's.

        `least` bytes are worked with.
        """
        _, nbytes = self._in_pages(names)
        return self.schedule is not None and nbytes > self.schedule.beside(least)

    def _in_pages(self, names: Sequence[str]) -> tuple[list[Span], int]:
        """Return the pages of arrays that have some of their own, and the bytes of all."""
        own = [self.allocations[name] for name in names if name in self.allocations]
        spans = [held.arena for held in own if held.own and isinstance(held.arena, Span)]
        return spans, sum(held.nbytes for held in own)

    def set_aside(self, *names: str, in_order: bool = False) -> None:
        """Let arrays leave the device when others need room; `bring_back` before they are read.

        Those that are read in order leave before others overflow, and are read where they are.
        """
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

    def name_of(self, array: Any) -> str | None:
        """Return the name of a live array in pages, whose values `fetch` reads; else None."""
        if self.schedule:
            for name, held in self.allocations.items():
                if held.address == array.data.ptr and isinstance(held.arena, Span):
                    return name
        return None

    def recall(self, least: int = 0) -> None:
        """Bring the input's arcs back to the device, except for `least` bytes to work with."""
        if self.schedule:
            with cuda_calls.current(self.device):
                self.schedule.recall(least)

    def arena_of(self, name: str) -> Arena | Span:
        """Return the arena that a live array lies in."""
        return self.allocations[name].arena

    def sides(self, name: str) -> tuple[tuple[int, int, Side], ...]:
        """Return where a live array's bytes live: address, bytes and side of each stretch."""
        allocation = self.allocations[name]
        return allocation.arena.sides(allocation.address, allocation.nbytes)

    def placed_on_host(self, name: str, group: Group) -> float:
        """Return the share of an array in host memory, or of the arena that it would lie in."""
        if name in self.allocations:
            return self.host_share(name)
        arena = self._arena_for(name, group)
        return 1 - arena.placement.on_device if arena else 0.0

    def host_share(self, name: str) -> float:
        """Return the share of a live array in host or a peer's memory; 0 if there is none such.

        Managed memory that moves on demand is on neither side.
        """
        if name not in self.allocations:
            return 0.0
        parts = self.sides(name)
        there = sum(nbytes for _, nbytes, side in parts if side in ("host", "peer"))
        return there / max(sum(nbytes for _, nbytes, _ in parts), 1)

    def fill(self, name: str, source: Any) -> None:
        """Copy values into a live array, each to the side where its bytes are.

        Parameters
        ----------
        name : str
        source : numpy.ndarray or cupy.ndarray
            One-dimensional and contiguous, of the array's dtype and no longer than it.
        """
        array = self.live[name]
        if source.dtype != array.dtype or source.size > array.size:
            raise ValueError(
                f"array {name!r} holds {array.size} {array.dtype}, not {source.size} {source.dtype}"
            )
        if not source.flags.c_contiguous:
            raise ValueError(f"array {name!r} takes contiguous values only")
        allocation = self.allocations[name]
        with cuda_calls.current(self.device):
            fill(allocation.arena.sides(allocation.address, source.nbytes), source, self.device)

    def fetch(self, name: str) -> NDArray[Any]:
        """Return a live array's values in host memory, read by the side where they live."""
        array, allocation = self.live[name], self.allocations[name]
        values = np.empty(array.size, array.dtype)
        with cuda_calls.current(self.device):
            fetch(allocation.arena.sides(allocation.address, values.nbytes), values)
        return values

    def follow(self, layout: Sequence[ArenaSpec]) -> bool:
        """Place the arenas as another layout has them; return whether that could be done.

        This requires the same arenas; those placed elsewhere must be managed before and after.
        Values are kept. Moves to the host come first.
        """
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

    @property
    def copied(self) -> dict[PageSide, int]:
        """Bytes of pages that were copied to each side."""
        return self.schedule.pool.copied if self.schedule else {"device": 0, "host": 0}

    def __enter__(self) -> Allocator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def peak_bytes(self) -> Mapping[Group, int]:
        """Largest number of bytes each group held at any one time."""
        return self.ledger.peak_bytes

    @property
    def resident_bytes(self) -> int:
        """Bytes of the device that are or may become occupied."""
        laid_out = sum(
            min(arena.resident_bytes, self.out_of_core.get(arena.spec.name, arena.resident_bytes))
            for arena in self.arenas
        )
        apart = sum(arena.resident_bytes for arena in self._own_arenas())
        return laid_out + apart + (self.schedule.resident_bytes if self.schedule else 0)

    def _own_arenas(self) -> list[Arena | Span]:
        """Return the arenas of single arrays."""
        return [allocation.arena for allocation in self.allocations.values() if allocation.own]

    def _arena_for(self, name: str, group: Group) -> Arena | Span | None:
        which = name, group, self.schedule is not None and self.schedule.later
        if which not in self.arena_of_name:
            self.arena_of_name[which] = arena_for(self.arenas, name, group, later=which[2])
        return self.arena_of_name[which]

    def _paged(
        self, name: str, group: Group, nbytes: int, *, cold: bool, most: int, head: int
    ) -> Allocation:
        """Return pages for an array that finds no room in its arena."""
        assert self.schedule is not None
        with cuda_calls.current(self.device):
            span = self.schedule.hold(name, group, nbytes, cold=cold, most=most, head=head)
        if not cold and span.on("host"):
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
