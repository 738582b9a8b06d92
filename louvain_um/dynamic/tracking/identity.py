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
from louvain_um.cpu import follow

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

NO_ID: Final = -1

KINDS: Final = ("born", "split", "merged", "died", "grew", "shrank", "continued")
"""What may happen to a community; `kind` of an event counts from 0 in this order."""

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
    next_id : int
        Ids below it have been given; none is given twice.
    """

    names: U32
    alive: NDArray[np.bool_]
    of_name: I64
    sizes: I64
    weights: I64
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


def succeed(
    before: Identity, names: U32, alive: NDArray[np.bool_], degrees: I64
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
    """
    old, n = before.names, len(names)
    sizes, weights = members_of(names, alive, degrees)
    of_name = np.full(n, NO_ID, np.int64)
    # Communities none of whose members changed its name are as they were.
    differs = np.ones(n, np.bool_)
    differs[: len(old)] = (old != names[: len(old)]) | (before.alive != alive[: len(old)])
    concerned = np.zeros(n, np.bool_)
    concerned[names[differs]] = True
    concerned[old[differs[: len(old)]]] = True
    kept = np.flatnonzero(~concerned[: len(old)] & (before.of_name >= 0))
    of_name[kept] = before.of_name[kept]
    now = np.flatnonzero(concerned & (sizes > 0))
    then = np.flatnonzero(concerned[: len(old)] & (before.of_name >= 0))
    of_name[now], next_id, events = inherit(
        Concerned(
            names=now,
            sizes=sizes[now],
            weights=weights[now],
            old_ids=before.of_name[then],
            old_sizes=before.sizes[then],
            old_weights=before.weights[then],
            overlaps=overlaps_of(before, names, alive, degrees, concerned),
        ),
        before.next_id,
    )
    after = Identity(
        names=names, alive=alive, of_name=of_name, sizes=sizes, weights=weights, next_id=next_id
    )
    ids = after.ids
    moved = ids != NO_ID
    moved[: len(old)] = before.ids != ids[: len(old)]
    return after, np.flatnonzero(moved).astype(np.uint32), events


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaps:
    """Members that a community after a batch shares with one before it, one row per pair.

    Parameters
    ----------
    names : int64[p]
        The community after.
    ids : int64[p]
        Id of the community before.
    weights, sizes : int64[p]
        Degrees of the shared members, after the batch, and their number.
    """

    names: I64
    ids: I64
    weights: I64
    sizes: I64

    @classmethod
    def of_pairs(cls, names: I64, ids: I64, weights: I64, sizes: I64) -> Self:
        """Return overlaps from some members each: those of one pair are added up.

        The arrays, int64[k], are overwritten.
        """
        slots = np.full(1 << (2 * len(names)).bit_length(), -1, np.int64)
        count = int(follow.add_up_pairs(names, ids, weights, sizes, slots))
        order = np.lexsort((ids[:count], names[:count]))
        return cls(names=names[order], ids=ids[order], weights=weights[order], sizes=sizes[order])


@dataclass(frozen=True, slots=True, kw_only=True)
class Concerned:
    """The communities that a batch may have changed.

    Parameters
    ----------
    names, sizes, weights : int64[c]
        Communities after the batch that have living members, ascending, and what these add up to.
    old_ids, old_sizes, old_weights : int64[k]
        Communities before the batch.
    overlaps : Overlaps
    """

    names: I64
    sizes: I64
    weights: I64
    old_ids: I64
    old_sizes: I64
    old_weights: I64
    overlaps: Overlaps


def inherit(concerned: Concerned, next_id: int) -> tuple[I64, int, NDArray[np.void]]:
    """Return the ids of the communities after a batch, the next free one, and the events."""
    overlaps = concerned.overlaps
    ids = np.full(len(concerned.names), NO_ID, np.int64)
    heirs = heirs_of(overlaps)
    ids[np.searchsorted(concerned.names, overlaps.names[heirs])] = overlaps.ids[heirs]
    fresh = np.flatnonzero(ids < 0)
    ids[fresh] = next_id + np.arange(len(fresh))
    return ids, next_id + len(fresh), events_of(concerned, ids)


def overlaps_of(
    before: Identity,
    names: U32,
    alive: NDArray[np.bool_],
    degrees: I64,
    concerned: NDArray[np.bool_],
) -> Overlaps:
    """Return what the concerned communities have of those before."""
    n = len(before.names)
    vertices = np.flatnonzero(concerned[names[:n]] & before.alive & alive[:n])
    return Overlaps.of_pairs(
        names[vertices].astype(np.int64),
        before.of_name[before.names[vertices]],
        degrees[vertices],
        np.ones(len(vertices), np.int64),
    )


def heirs_of(overlaps: Overlaps) -> I64:
    """Return the rows of the overlaps by which a community inherits an id."""
    rows = np.arange(len(overlaps.names))
    # Each community claims one id: the heaviest part of it, ties to the smaller id.
    order = np.lexsort((overlaps.ids, -overlaps.sizes, -overlaps.weights, overlaps.names))
    claims = rows[order][first_of(overlaps.names[order])]
    # Each id goes to one claim: the heaviest, ties to the smaller name.
    order = np.lexsort(
        (
            overlaps.names[claims],
            -overlaps.sizes[claims],
            -overlaps.weights[claims],
            overlaps.ids[claims],
        )
    )
    claims = claims[order]
    return claims[first_of(overlaps.ids[claims])]


def first_of(keys: I64) -> NDArray[np.bool_]:
    """Return which items of a sorted array differ from the one before."""
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return first


def events_of(concerned: Concerned, new_ids: I64) -> NDArray[np.void]:
    """Return what happened to the concerned communities, by id.

    A vertex alone is no community here: one is born when it has two members, split from another
    if most of it comes from there, and dies, or is merged into another, when fewer than two stay.
    """
    overlaps = concerned.overlaps
    ids = np.union1d(new_ids, concerned.old_ids)
    events = np.zeros(len(ids), EVENT)
    events["id"] = ids
    events["other"] = NO_ID
    now = np.searchsorted(ids, new_ids)
    events["size"][now], events["weight"][now] = concerned.sizes, concerned.weights
    then = np.searchsorted(ids, concerned.old_ids)
    events["size_before"][then] = concerned.old_sizes
    events["weight_before"][then] = concerned.old_weights

    successor = new_ids[np.searchsorted(concerned.names, overlaps.names)]
    stayed = np.zeros(len(ids), np.int64)
    same = successor == overlaps.ids
    stayed[np.searchsorted(ids, successor[same])] = overlaps.weights[same]
    went = np.zeros(len(ids), np.int64)
    np.add.at(went, np.searchsorted(ids, overlaps.ids), overlaps.weights)
    events["joined"] = events["weight"] - stayed
    events["left"] = went - stayed

    born = (events["size_before"] < 2) & (events["size"] > 1)
    died = (events["size"] < 2) & (events["size_before"] > 1)
    kind = np.where(
        events["joined"] > events["left"],
        "grew",
        np.where(events["joined"] < events["left"], "shrank", "continued"),
    )
    kind[born], kind[died] = "born", "died"
    for rows, keys, values, name, size in (
        (born & (events["size_before"] == 0), successor, overlaps.ids, "split", "size_before"),
        (died & (events["size"] == 0), overlaps.ids, successor, "merged", "size"),
    ):
        keys, values = heaviest(keys, values, overlaps)
        shared = events[size][np.searchsorted(ids, values)] > 1
        keys, values = keys[shared], values[shared]
        known = rows & np.isin(ids, keys)
        events["other"][known] = values[np.searchsorted(keys, ids[known])]
        kind[known] = name
    events["kind"] = kind
    told: NDArray[np.void] = events[np.maximum(events["size"], events["size_before"]) > 1]
    return told


def heaviest(keys: I64, values: I64, overlaps: Overlaps) -> tuple[I64, I64]:
    """Return each key once, ascending, with the value it shares the most weight with."""
    order = np.lexsort((values, -overlaps.sizes, -overlaps.weights, keys))
    first = first_of(keys[order])
    return keys[order][first], values[order][first]
