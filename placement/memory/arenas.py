"""The arenas of a run, as its plan lays them out, and the one that each array lies in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final, NamedTuple

from louvain_um.core.ledger import Group, Ledger
from louvain_um.errors import LouvainUmError, MemoryBudgetError
from louvain_um.placement.layout import MANAGED, ArenaSpec, device_bytes
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.arena import Arena, managed_fits, separate_arena
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.migration.mover import Mover
from louvain_um.placement.migration.pages import release_kept, supported
from louvain_um.placement.migration.room import PageBudget
from louvain_um.placement.migration.span import Allocation, Span
from louvain_um.placement.policy.policy import Placement

REMEDY: Final = "raise the budget, or use memory='auto', which moves to the host what does not fit"


class Wanted(NamedTuple):
    """An array that is to get memory: `most` are the bytes that it may come to need."""

    name: str
    group: Group
    nbytes: int
    most: int = 0
    head: int = 0
    short_lived: bool = False
    cold: bool = False


class Arenas:
    """Arenas on one device, in the order of their layout; `mover` has those in pages, if any."""

    def __init__(
        self,
        layout: Sequence[ArenaSpec],
        device: int,
        ledger: Ledger,
        allocations: dict[str, Allocation],
        *,
        budget: int | None = None,
        out_of_core: Mapping[str, int] | None = None,
        pages: PageBudget | None = None,
        peer: int | None = None,
    ) -> None:
        self.device, self.budget, self.peer = device, budget, peer
        self.ledger, self.allocations = ledger, allocations
        self.out_of_core = dict(out_of_core or {})
        self.arenas: list[Arena | Span] = []
        self.arena_of_name: dict[tuple[str, Group, bool], Arena | Span | None] = {}
        self.on_demand: list[ArenaSpec] = []
        self.overflowed: dict[str, str] = {}
        self.mover: Mover | None = None
        try:
            with cuda_calls.current(device):
                self._lay_out(layout, pages)
            if budget is not None and self.resident_bytes > budget:
                held = {arena.spec.name: arena.resident_bytes for arena in self}
                raise MemoryBudgetError(self.resident_bytes, budget, held.items(), REMEDY)
        except BaseException:
            self.close()
            raise

    def _lay_out(self, layout: Sequence[ArenaSpec], pages: PageBudget | None) -> None:
        device, peer = self.device, self.peer
        in_pages = pages is not None and supported(device)
        if not in_pages:
            # What would take pages of both sides lies beyond the device: its part there is of an
            # arena that others share.
            away = Placement("host_mapped" if peer is None else "peer")
            layout = [replace(s, placement=away) if s.on_demand else s for s in layout]
        separate = list(layout)
        managed = managed_fits(layout, device)
        if pages and in_pages:
            self.mover = Mover(layout, pages, device, self.allocations, peer)
            self.arenas = [self.mover.shared, *self.mover.room.inputs]
            self.on_demand = [spec for spec in layout if spec.on_demand]
            separate = [
                s for s in layout if not (s.in_pages or s.on_demand) and s.group is not None
            ]
        elif any(spec.placement.kind != "device" for spec in layout):
            release_kept()  # which no page is made of, for what the host is to hold
        # Allocate first what must be on the device.
        for spec in sorted(separate, key=lambda spec: spec.placement.kind != "device"):
            self.arenas.append(Arena(spec, device, managed=managed, peer=peer))
        self.arenas.sort(key=lambda arena: layout.index(arena.spec))

    def __iter__(self) -> Iterator[Arena | Span]:
        return iter(self.arenas)

    @property
    def all_on_device(self) -> bool:
        """Whether all that was planned is plain device memory, and stays there."""
        return self.mover is None and all(arena.placement.kind == "device" for arena in self)

    @property
    def resident_bytes(self) -> int:
        """Bytes of the device that are or may become occupied."""
        laid_out = sum(
            min(arena.resident_bytes, self.out_of_core.get(arena.spec.name, arena.resident_bytes))
            for arena in self
        )
        separate = sum(arena.resident_bytes for arena in self._alone())
        return laid_out + separate + (self.mover.resident_bytes if self.mover else 0)

    def allocate(self, wanted: Wanted) -> Allocation:
        """Return memory for an array: of its arena, or else of its own."""
        part = self._part_for(wanted.name) if self.on_demand else None
        if part:
            return self._in_pages(wanted._replace(cold=False, most=0, head=0), part)
        arena = self._arena_for(wanted.name, wanted.group)
        # Keep short-lived arrays separate from others.
        joint = arena is not None and arena.spec.group is None
        high = wanted.short_lived or (joint and wanted.group in ("scratch", "hash"))
        # Where an array cannot be enlarged, it takes all it may come to need.
        whole = max(wanted.nbytes, wanted.most) if self.mover else wanted.nbytes
        address = arena.take(whole, high=high) if arena else None
        if arena and address is None and self.mover:
            if joint and not wanted.cold and self.mover.widen(wanted.nbytes):
                address = arena.take(wanted.nbytes, high=high)
        elif arena and address is None:
            arena, address = self._other(arena, wanted.nbytes)
        if arena and address is not None:
            return Allocation(arena, address, whole)
        return self._in_pages(wanted) if self.mover else self._overflow(wanted, arena)

    def share_on_host(self, name: str, group: Group) -> float:
        """Return the share in host memory of the arena that an array would lie in."""
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
        mover, self.mover = self.mover, None
        arenas: list[Arena | Span | Mover] = [
            *self._alone(),
            *(arena for arena in self if not isinstance(arena, Span)),
            *([mover] if mover else []),
        ]
        self.arenas.clear()
        self.arena_of_name.clear()
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

    def _alone(self) -> list[Arena | Span]:
        """Return the arenas of single arrays."""
        return [held.arena for held in self.allocations.values() if held.alone]

    @property
    def _coarse(self) -> bool:
        """Whether a level above 0 has begun, in pages."""
        return self.mover is not None and self.mover.room.coarse

    def _arena_for(self, name: str, group: Group) -> Arena | Span | None:
        which = name, group, self._coarse
        if which not in self.arena_of_name:
            self.arena_of_name[which] = arena_for(self, *which)
        return self.arena_of_name[which]

    def _part_for(self, name: str) -> ArenaSpec | None:
        """Return what a plan says of an array that takes pages of both sides; None of others."""
        if self._coarse and "." not in name:
            return None
        for spec in self.on_demand:
            if any(_is_or_begins(name, member) for member in spec.members or ()):
                return spec
        return None

    def _other(self, full: Arena | Span, nbytes: int) -> tuple[Arena | Span, int | None]:
        """Return an arena of plain device memory that has room in place of one that is full."""
        if _holds_group(full):
            for other in filter(_holds_group, self):
                address = other.take(nbytes, high=True)
                if address is not None:
                    return other, address
        return full, None

    def _in_pages(self, wanted: Wanted, part: ArenaSpec | None = None) -> Allocation:
        """Return pages for an array that finds no room in its arena, or is to have these."""
        assert self.mover is not None
        name, group, nbytes, most, head, _, cold = wanted
        here = device_bytes(part.placement, nbytes) if part else None
        with cuda_calls.current(self.device):
            span = self.mover.hold(name, group, nbytes, cold=cold, most=most, head=head, here=here)
        planned = len(span.mapped) if here is None else here // self.mover.page_bytes
        if not cold and span.here < planned:
            self.overflowed[name] = "pinned" if self.peer is None else "peer"
        address = span.take(nbytes)
        assert address is not None
        return Allocation(span, address, nbytes, alone=True)

    def _overflow(self, wanted: Wanted, arena: Arena | Span | None) -> Allocation:
        """Allocate memory of its own for an array that does not fit into its arena."""
        name, group, nbytes = wanted[:3]
        with cuda_calls.current(self.device):
            room = guard.room(self.device)
            if self.budget is not None:
                room = min(room, self.budget - self.resident_bytes)
            found = separate_arena(name, group, nbytes, room, self.device, self.peer)
        if found is None:
            held = {name: entry.nbytes for name, entry in self.ledger.entries.items()}
            total = sum(held.values())
            sizes = {**held, name: nbytes}.items()
            raise MemoryBudgetError(total + nbytes, total + max(room, 0), sizes, REMEDY)
        span, kind = found
        if arena is not None:
            self.overflowed[name] = kind
        return Allocation(span, span.whole(), nbytes, alone=True)


def arena_for(
    arenas: Iterable[Arena | Span], name: str, group: Group, coarse: bool = False
) -> Arena | Span | None:
    """Return the arena that names an array, or else its group's; None without either."""
    general = None
    for arena in arenas:
        members = arena.spec.members
        named = any(_is_or_begins(name, member) for member in members or ())
        if named and not (coarse and "." not in name):
            return arena
        if members is None and arena.spec.group in (group, None) and general is None:
            general = arena
    return general


def _is_or_begins(name: str, member: str) -> bool:
    """Whether an array is the one named, or one of a kind named."""
    if not name.startswith(f"{member}."):
        return name == member
    _, _, level = name.removeprefix(f"{member}.").partition(".")
    return level in ("", "0")


def _holds_group(arena: Arena | Span) -> bool:
    """Whether an arena is plain device memory for a whole group."""
    return arena.placement.kind == "device" and arena.spec.members is None
