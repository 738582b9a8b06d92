"""Which community is which: ids that persist from batch to batch, and what became of each.

A community inherits the id whose members weigh most in it (weight of members: their degrees; their
number where those are equal). Where several communities could inherit one id, the one with the most
of its weight does; the others get new ids. Ties go to the smaller id, and among communities to
that whose smallest member is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import number_by_size
from louvain_um.cpu.dynamic import inherit

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

NO_ID: Final = -1

NONE: Final = 0xFFFFFFFF
"""Name before the batch of a vertex that is new."""

NOW: Final = 1
BEFORE: Final = 2
"""Bits of `Differences.living`: whether vertices are alive after the batch, and before."""

KINDS: Final = ("grew", "shrank", "continued", "born", "split", "died", "merged")
"""What may happen to a community, in the order of the constants in `cpu.dynamic.inherit`."""

EVENT: Final = np.dtype(
    [
        ("kind", "U9"),
        ("id", np.int64),
        ("other", np.int64),
        ("size_before", np.int64),
        ("size", np.int64),
        ("weight_before", np.int64),
        ("weight", np.int64),
        ("joined", np.int64),
        ("left", np.int64),
    ]
)
"""One event of a batch.

`id` is the community's; `other` the one it split from or merged into, −1 for the other kinds.
Sizes are members, weights their degrees (integers, times the graph's scale) before and after the
batch; `joined` and `left` are the weight that came from and went to other communities.
"""

NO_EVENTS: Final = np.zeros(0, EVENT)

AT_ONCE: Final = 1 << 18
"""Vertices whose ids are compared at a time where memory is short."""


class ArrayMemory(Protocol):
    """Where communities are."""

    xp: Any

    def get(self, array: Any) -> Any:
        """Return an array in host memory."""


class HostMemory:
    """Arrays of NumPy."""

    xp: Any = np

    def get(self, array: Any) -> Any:
        """Return an array as it is."""
        return array

    def __reduce__(self) -> str:
        return "HOST"


HOST: Final = HostMemory()


class ListedVertices(Protocol):
    """The vertices whose community has another name than before a batch."""

    @property
    def waiting_bytes(self) -> int:
        """Bytes on the graph's device."""

    def fetched(self, memory: ArrayMemory) -> ListedVertices:
        """Return the same in host memory."""

    def steps(self, names: int, memory: ArrayMemory, room: int | None) -> IdentitySteps:
        """Return how ids are found: where the graph is, or on the host where that takes less.

        `names` is above every name; `room` is the memory that may be taken where the graph is.
        """


class Mentioned(NamedTuple):
    """Communities that listed vertices are or were in: names, ids before, and who there is now."""

    names: Any
    ids: Any
    now: Any
    concerned: Concerned


class IdentitySteps(Protocol):
    """What finding the ids after a batch takes; arrays are of `xp`."""

    @property
    def xp(self) -> Any:
        """NumPy, or the library of the device's arrays."""

    def mentioned(self, of_name: Any, memory: ArrayMemory) -> Mentioned:
        """Return the communities that a batch may have changed, by name."""

    def succession(self, concerned: Concerned, next_id: int) -> tuple[Any, int, NDArray[np.void]]:
        """Return ids, the next free one, and events; see `succession`."""

    def renamed(self, ids: Any, fresh: Any) -> U32 | None:
        """Return which vertices have another id, if listed vertices say that.

        They do not where an id went from one name to another: vertices that are not listed have
        another id then, too.
        """


@dataclass(frozen=True, slots=True)
class CommunityIds:
    """Ids of the communities of a partition, by name; −1 where no community has that name."""

    of_name: Any
    next_id: int
    """Ids below it have been given; none is given twice."""
    memory: ArrayMemory = HOST

    @classmethod
    def first(cls, names: U32, alive: NDArray[np.bool_], memory: ArrayMemory = HOST) -> Self:
        """Return first ids: 0 … k − 1 by descending size; removed vertices have none."""
        of_name = np.full(len(names), NO_ID, np.int64)
        if alive.any():
            of_name[names[alive]] = number_by_size(names[alive])
        return cls(memory.xp.asarray(of_name), int(of_name.max(initial=-1)) + 1, memory)

    def follow(
        self, listed: ListedVertices, before: Any, after: Any, room: int | None = None
    ) -> tuple[CommunityIds, U32, NDArray[np.void]]:
        """Return the ids after a batch, the vertices whose id changed, and the events."""
        # `before` and `after` are the partitions' names; vertices beyond those of `before` are new.
        # `room` is the memory that may be taken where they are.
        xp, of_name = self.memory.xp, self.of_name
        if len(after) > len(of_name):
            new = xp.full(len(after) - len(of_name), NO_ID, np.int64)
            of_name = xp.concatenate([of_name, new])
        steps = listed.steps(len(of_name), self.memory, room)
        names, ids, now, concerned = steps.mentioned(of_name, self.memory)
        fresh = steps.xp.full(len(ids), NO_ID, np.int64)
        fresh[now], next_id, events = steps.succession(concerned, self.next_id)
        later = of_name.copy()
        later[xp.asarray(names)] = xp.asarray(fresh)
        changed = steps.renamed(ids, fresh)
        if changed is None:
            step = max(1, len(after)) if room is None else AT_ONCE
            parts = [
                self._changed(of_name, later, before, after, slice(k, k + step))
                for k in range(0, max(1, len(after)), step)
            ]
            changed = np.concatenate(parts)
        return CommunityIds(later, next_id, self.memory), changed, events

    def _changed(self, ids: Any, later: Any, before: Any, after: Any, part: slice) -> U32:
        """Return the vertices of a part whose id changed, by ids of names before and after."""
        xp, found, old = self.memory.xp, later[after[part]], ids[before[part]]
        other = xp.concatenate([found[: len(old)] != old, found[len(old) :] != NO_ID])
        places = self.memory.get(xp.flatnonzero(other).astype(np.uint32))
        vertices: U32 = places + np.uint32(part.start)
        return vertices


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Listed vertices, one by one or in groups, and the communities that they were and are in."""

    # Of the vertices, or groups: a vertex, the numbers of its names after the batch and before it
    # (−1 for none), whether it lives, members and their degrees. Of the communities: their names,
    # ascending, and members and degrees after the batch and before it, int64[4, c].

    vertices: U32
    current: I64
    old: I64
    living: I64
    members: I64
    degrees: I64
    names: I64
    sums: I64
    grouped: bool = False

    @property
    def waiting_bytes(self) -> int:
        """Bytes on a device: none."""
        return 0

    def fetched(self, memory: ArrayMemory) -> Differences:
        """Return the same: it is in host memory."""
        return self

    def steps(self, names: int, memory: ArrayMemory, room: int | None) -> Differences:
        """Return the steps on the host, which these are."""
        return self

    @property
    def xp(self) -> Any:
        """NumPy."""
        return np

    def mentioned(self, of_name: Any, memory: ArrayMemory) -> Mentioned:
        """Return the communities that a batch may have changed, by name."""
        ids: I64 = memory.get(of_name[memory.xp.asarray(self.names)])
        now, then = np.flatnonzero(self.sums[0] > 0), np.flatnonzero(ids != NO_ID)
        return Mentioned(self.names, ids, now, self.concerned(ids, now, then))

    def succession(self, concerned: Concerned, next_id: int) -> tuple[I64, int, NDArray[np.void]]:
        """Return ids, the next free one, and events."""
        return succession(concerned, next_id)

    def renamed(self, ids: I64, fresh: I64) -> U32 | None:
        """Return which vertices have another id, unless others may have, too."""
        if self.grouped or ((ids != fresh) & (ids != NO_ID) & (fresh != NO_ID)).any():
            return None
        changed = np.empty(len(self.vertices), np.uint32)
        count = inherit.list_renamed(self.vertices, self.current, self.old, ids, fresh, changed)
        return np.sort(changed[:count])

    def concerned(self, ids: I64, now: I64, then: I64) -> Concerned:
        """Return the communities that there are after the batch, and those that were before."""
        count = len(ids)
        places = np.full((2, count), -1, np.int64)
        places[0, now], places[1, then] = np.arange(len(now)), np.arange(len(then))
        pairs = np.empty((4, count + len(self.current)), np.int64)
        shared = inherit.list_stayed(
            self.current, self.old, self.living, self.members, self.degrees, self.sums[:2].copy(),
            places, pairs,
        )  # fmt: skip
        return Concerned(
            sizes=self.sums[0, now],
            weights=self.sums[1, now],
            old_ids=ids[then],
            old_sizes=self.sums[2, then],
            old_weights=self.sums[3, then],
            overlaps=Overlaps.of_pairs(*pairs[:, :shared]),
        )


def numbered(current: I64, old: I64, most: int) -> tuple[I64, I64, I64]:
    """Return the names below `most` that are mentioned, ascending, and the number of each."""
    if 32 * len(current) < most:
        names, numbers = np.unique(np.concatenate([current, old]), return_inverse=True)
        count = len(names) - bool(len(names) and names[-1] == NONE)
        numbers[numbers == count] = -1
        return names[:count], numbers[: len(current)], numbers[len(current) :]
    index, names = np.full(most, -1, np.int64), np.empty(min(most, 2 * len(current)), np.int64)
    names = names[: inherit.list_names(current, old, index, names)]
    known = index[np.where(old == NONE, 0, old)]
    return names, index[current], np.where(old == NONE, -1, known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaps:
    """Members that a community after a batch shares with one before it, one row per pair.

    Parameters
    ----------
    news, olds : int64[p]
        The communities after and before, by index among those concerned.
    weights, sizes : int64[p]
        Degrees of the shared members, after the batch, and their number.
    """

    news: I64
    olds: I64
    weights: I64
    sizes: I64

    @classmethod
    def of_pairs(cls, news: I64, olds: I64, weights: I64, sizes: I64) -> Self:
        """Return overlaps from some members each: those of one pair are added up."""
        # The arrays, int64[k], are overwritten.
        slots = np.full(1 << (2 * len(news)).bit_length(), -1, np.int64)
        count = int(inherit.add_up_pairs(news, olds, weights, sizes, slots))
        return cls(
            news=news[:count], olds=olds[:count], weights=weights[:count], sizes=sizes[:count]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Concerned:
    """The communities that a batch may have changed.

    Parameters
    ----------
    sizes, weights : int64[c]
        Of communities after the batch that have living members, by ascending names.
    old_ids, old_sizes, old_weights : int64[k]
        Communities before the batch.
    overlaps : Overlaps
        Indexed by the order of these.
    """

    sizes: I64
    weights: I64
    old_ids: I64
    old_sizes: I64
    old_weights: I64
    overlaps: Overlaps


def succession(concerned: Concerned, next_id: int) -> tuple[I64, int, NDArray[np.void]]:
    """Return the ids of the communities after a batch, the next free one, and the events."""
    # A vertex alone is no community in events: one is born when it has two members, split from
    # another if most of it comes from there, and dies, or is merged into another, when fewer than
    # two stay.
    overlaps, old_ids = concerned.overlaps, concerned.old_ids
    news, olds, weights, sizes = overlaps.news, overlaps.olds, overlaps.weights, overlaps.sizes
    ids = np.full(len(concerned.sizes), NO_ID, np.int64)
    claims, heirs, successors = (
        np.full(len(each), -1, np.int64) for each in (ids, old_ids, old_ids)
    )
    # Each community claims one id, the heaviest part of it; each id goes to its heaviest claim.
    inherit.heaviest(news, old_ids[olds], weights, sizes, claims)
    next_id = int(inherit.inherit(news, olds, weights, sizes, claims, old_ids, heirs, ids, next_id))
    inherit.heaviest(olds, ids[news], weights, sizes, successors)
    rows = np.empty((len(ids) + len(old_ids), len(EVENT.names or ())), np.int64)
    count = inherit.list_events(
        (news, olds, weights),
        (ids, concerned.sizes, concerned.weights),
        (old_ids, concerned.old_sizes, concerned.old_weights),
        claims, heirs, successors, rows,
    )  # fmt: skip
    return ids, next_id, events_of(rows[:count])


def events_of(rows: I64) -> NDArray[np.void]:
    """Return events by id from rows of their fields, kinds by number."""
    rows = rows[np.argsort(rows[:, 1])]
    events = np.zeros(len(rows), EVENT)
    events["kind"] = np.array(KINDS)[rows[:, 0]]
    for column, name in enumerate(EVENT.names or ()):
        if column:
            events[name] = rows[:, column]
    return events
