"""Which community is which: ids that persist from batch to batch, and what became of each.

A community inherits the id whose members weigh most in it (weight of members: their degrees; their
number where those are equal). Where several communities could inherit one id, the one with the most
of its weight does; the others get new ids. Ties go to the smaller id, and among communities to
that whose smallest member is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import number_by_size
from louvain_um.cpu import follow, inherit
from louvain_um.dynamic.change import Change

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

NO_ID: Final = -1

KINDS: Final = ("grew", "shrank", "continued", "born", "split", "died", "merged")
"""What may happen to a community, in the order of the constants in `louvain_um.cpu.inherit`."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Ids of the communities of a partition.

    Parameters
    ----------
    names : uint32[n]
        Community of each vertex, named after its smallest member.
    alive : bool[n]
        Which vertices were not removed; others have no id.
    of_name : int64[n]
        Id of the community of each name; −1 where no community has that name.
    sizes, weights : int64[n]
        Members and their degrees, by name.
    communities : int
        Communities that have members.
    next_id : int
        Ids below it have been given; none is given twice.
    """

    names: U32
    alive: NDArray[np.bool_]
    of_name: I64
    sizes: I64
    weights: I64
    communities: int
    next_id: int

    @classmethod
    def of(cls, names: U32, alive: NDArray[np.bool_], degrees: I64) -> Self:
        """Return first ids: 0 … k − 1 by descending size."""
        of_name = np.full(len(names), NO_ID, np.int64)
        if alive.any():
            of_name[names[alive]] = number_by_size(names[alive])
        return cls.restored(names, alive, degrees, of_name, int(of_name.max(initial=-1)) + 1)

    @classmethod
    def restored(
        cls, names: U32, alive: NDArray[np.bool_], degrees: I64, of_name: I64, next_id: int
    ) -> Self:
        """Return ids that were saved."""
        sizes, weights = members_of(names, alive, degrees)
        return cls(
            names=names,
            alive=alive,
            of_name=of_name,
            sizes=sizes,
            weights=weights,
            communities=int(np.count_nonzero(sizes)),
            next_id=next_id,
        )

    @property
    def ids(self) -> I64:
        """Id of each vertex's community, int64[n]; −1 for removed vertices."""
        return self.of_name[self.names]


def members_of(names: U32, alive: NDArray[np.bool_], degrees: I64) -> tuple[I64, I64]:
    """Return members and their degrees by name."""
    sizes, weights = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    follow.add_members(names, alive, degrees, sizes, weights)
    return sizes, weights


def padded(array: I64, length: int, value: int) -> I64:
    """Return a copy of an array, as long as asked for."""
    copied = np.empty(length, np.int64)
    copied[: len(array)], copied[len(array) :] = array, value
    return copied


def succeed(
    before: Identity, names: U32, alive: NDArray[np.bool_], degrees: I64, change: Change
) -> tuple[Identity, U32, NDArray[np.void]]:
    """Return ids of the next partition, the vertices whose id changed, and the events.

    Parameters
    ----------
    before : Identity
    names : uint32[n]
        The next partition; vertices beyond those of `before` are new.
    alive : bool[n]
        Which vertices are not removed.
    degrees : int64[n]
        Degrees after the batch.
    change : Change
        The batch.
    """
    n = len(names)
    of_name = padded(before.of_name, n, NO_ID)
    sizes, weights = padded(before.sizes, n, 0), padded(before.weights, n, 0)
    states = before.names, names, before.alive, alive
    listed = np.empty(n, np.int64)
    listed = listed[: inherit.list_differing(*states, listed)]
    # Communities none of whose vertices is listed are as they were, but for degrees.
    index, concerned = np.full(n, -1, np.int32), np.empty(min(n, 2 * len(listed)), np.int64)
    concerned = concerned[: inherit.list_concerned(listed, before.names, names, index, concerned)]
    ids, old_sizes, old_weights = of_name[concerned], sizes[concerned], weights[concerned]
    inherit.add_degrees(change.u, change.v, change.before, change.after, before.names, weights)
    inherit.add_moves(listed, *states, degrees, sizes, weights)
    now, then = np.flatnonzero(sizes[concerned] > 0), np.flatnonzero(ids != NO_ID)
    found, next_id, events = succession(
        Concerned(
            sizes=sizes[concerned[now]],
            weights=weights[concerned[now]],
            old_ids=ids[then],
            old_sizes=old_sizes[then],
            old_weights=old_weights[then],
            overlaps=overlaps_of(
                listed, states, degrees, index, (sizes[concerned], weights[concerned]), now, then
            ),
        ),
        before.next_id,
    )
    fresh = np.full(len(concerned), NO_ID, np.int64)
    fresh[now] = found
    of_name[concerned] = fresh
    changed = np.empty(n, np.uint32)
    count = inherit.list_changed(before.names, names, index, ids, fresh, changed)
    after = Identity(
        names=names,
        alive=alive,
        of_name=of_name,
        sizes=sizes,
        weights=weights,
        communities=before.communities + len(now) - len(then),
        next_id=next_id,
    )
    return after, changed[:count].copy(), events


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
        """Return overlaps from some members each: those of one pair are added up.

        The arrays, int64[k], are overwritten.
        """
        slots = np.full(1 << (2 * len(news)).bit_length(), -1, np.int64)
        count = int(follow.add_up_pairs(news, olds, weights, sizes, slots))
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


def overlaps_of(
    listed: I64,
    states: tuple[U32, U32, NDArray[np.bool_], NDArray[np.bool_]],
    degrees: I64,
    index: NDArray[np.int32],
    sums: tuple[I64, I64],
    now: I64,
    then: I64,
) -> Overlaps:
    """Return what the concerned communities have of those before.

    Vertices that are not listed kept the name of their community: they are what is left of it.
    `sums` are members and their degrees after the batch, which are overwritten; `now` and `then`
    the concerned communities that there are after it, and were before.
    """
    places = np.full((2, len(sums[0])), -1, np.int64)
    places[0, now], places[1, then] = np.arange(len(now)), np.arange(len(then))
    columns = [np.empty(len(sums[0]) + len(listed), np.int64) for _ in range(4)]
    count = inherit.list_shared(listed, *states, degrees, index, *sums, places, *columns)
    return Overlaps.of_pairs(*(column[:count] for column in columns))


def succession(concerned: Concerned, next_id: int) -> tuple[I64, int, NDArray[np.void]]:
    """Return the ids of the communities after a batch, the next free one, and the events.

    A vertex alone is no community in events: one is born when it has two members, split from
    another if most of it comes from there, and dies, or is merged into another, when fewer than
    two stay.
    """
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
    told = np.empty((len(ids) + len(old_ids), len(EVENT.names or ())), np.int64)
    count = inherit.tell(
        (news, olds, weights),
        (ids, concerned.sizes, concerned.weights),
        (old_ids, concerned.old_sizes, concerned.old_weights),
        claims, heirs, successors, told,
    )  # fmt: skip
    return ids, next_id, events_of(told[:count])


def events_of(told: I64) -> NDArray[np.void]:
    """Return events by id from rows of their fields, kinds by number."""
    told = told[np.argsort(told[:, 1])]
    events = np.zeros(len(told), EVENT)
    events["kind"] = np.array(KINDS)[told[:, 0]]
    for column, name in enumerate(EVENT.names or ()):
        if column:
            events[name] = told[:, column]
    return events
