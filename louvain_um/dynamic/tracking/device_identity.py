"""Identities of communities on a device: the steps by whole arrays of many of them at once.

Kernels that follow a graph list the vertices whose community changed its name (`follow.cu`). Few of
them are looked at on the host (`identity.py`), many on the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.cpu.dynamic.inherit import BORN, CONTINUED, DIED, GREW, MERGED, SHRANK, SPLIT
from louvain_um.dynamic.tracking.identity import (
    BEFORE,
    NO_ID,
    NONE,
    NOW,
    ArrayMemory,
    Concerned,
    Differences,
    IdentitySteps,
    Mentioned,
    Overlaps,
    events_of,
    numbered,
    succession,
)
from louvain_um.gpu.dynamic.follow_arrays import DIFFERING

FIELDS: Final[Mapping[str, Any]] = DIFFERING.fields or {}

MOST_HERE: Final = 1 << 16
"""Entries that are looked at on the host, in time proportional to them; more are on the device, by
some fifty operations."""

LOOKUP_BYTES: Final = 512
"""Bytes per entry that looking at them on the device takes at most.

Arrays come to 280, entries that were on the host to 80; sorts hold copies of what they sort.
"""


class DifferingTable(NamedTuple):
    """Columns of `Differing`, int64[k], where they are looked at."""

    xp: Any
    entries: Any

    def __getitem__(self, name: Any) -> Any:
        kind, offset = FIELDS[name][:2]
        words = self.entries.view(kind).reshape(-1, DIFFERING.itemsize // kind.itemsize)
        return words[:, offset // kind.itemsize].astype(np.int64)


@dataclass(frozen=True, slots=True)
class DeviceListed:
    """The vertices whose community has another name than before a batch, as `Differing`."""

    entries: Any
    grouped: bool = False
    on_host: bool = False

    @property
    def waiting_bytes(self) -> int:
        """Bytes on the device."""
        return 0 if self.on_host else int(self.entries.nbytes)

    def fetched(self, memory: ArrayMemory) -> DeviceListed:
        """Return the same in host memory."""
        return replace(self, entries=memory.get(self.entries), on_host=True)

    def steps(self, names: int, memory: ArrayMemory, room: int | None) -> IdentitySteps:
        """Return the steps on the host where few vertices are listed or memory is short."""
        count = self.entries.nbytes // DIFFERING.itemsize
        if count <= MOST_HERE or (room is not None and count * LOOKUP_BYTES > room):
            return self.differences(memory, names)
        return ManyListed(
            DifferingTable(memory.xp, memory.xp.asarray(self.entries)), self.grouped, memory
        )

    def differences(self, memory: ArrayMemory, most: int) -> Differences:
        """Return the entries by columns in host memory, and what they say of communities."""
        entries = (self.entries if self.on_host else memory.get(self.entries)).view(DIFFERING)
        column = {name: entries[name].astype(np.int64) for name in FIELDS}
        names, current, old = numbered(column["name"], column["name_before"], most)
        sums = np.empty((4, len(names)), np.int64)
        there = old >= 0
        for row, name in zip(sums, ("size", "mass", "size_before", "mass_before"), strict=True):
            row[old[there]] = column[f"old_{name}"][there]
            row[current] = column[name]
        return Differences(
            vertices=entries["vertex"].copy(), current=current, old=old, living=column["living"],
            members=column["members"], degrees=column["degree"], names=names, sums=sums,
            grouped=self.grouped,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ManyListed:
    """The steps by whole arrays, where the graph is."""

    table: DifferingTable
    grouped: bool
    memory: ArrayMemory

    @property
    def xp(self) -> Any:
        """The library of the arrays."""
        return self.memory.xp

    def mentioned(self, of_name: Any, memory: ArrayMemory) -> Mentioned:
        """Return the communities that a batch may have changed, by name."""
        xp, table = self.xp, self.table
        current, old = table["name"], table["name_before"]
        older = xp.flatnonzero(old != NONE)
        names, places = xp.unique(xp.concatenate([current, old[older]]), return_index=True)
        ids = of_name[names]
        after = places < len(current)
        here, there = places[after], older[places[~after] - len(current)]

        def by_name(name: str) -> Any:
            found = xp.empty(len(places), np.int64)
            found[after], found[~after] = table[name][here], table[f"old_{name}"][there]
            return found

        sizes, weights = by_name("size"), by_name("mass")
        now, then = xp.flatnonzero(sizes > 0), xp.flatnonzero(ids != NO_ID)
        concerned = Concerned(
            sizes=sizes[now],
            weights=weights[now],
            old_ids=ids[then],
            old_sizes=by_name("size_before")[then],
            old_weights=by_name("mass_before")[then],
            overlaps=self._overlaps(names, sizes, weights, now, then),
        )
        return Mentioned(names, ids, now, concerned)

    def succession(self, concerned: Concerned, next_id: int) -> tuple[Any, int, NDArray[np.void]]:
        """Return ids, the next free one, and events."""
        if len(concerned.overlaps.news):
            ids, next_id, rows = succession_of_many(self.xp, concerned, next_id)
            return ids, next_id, events_of(self.memory.get(rows))
        found, next_id, events = succession(fetched(concerned, self.memory), next_id)
        return self.xp.asarray(found), next_id, events

    def renamed(self, ids: Any, fresh: Any) -> None:
        """Return nothing: ids of all vertices are compared."""

    def _overlaps(self, names: Any, sizes: Any, weights: Any, now: Any, then: Any) -> Overlaps:
        """Return what communities after a batch share with those before it, by their indices."""
        xp, table, count = self.xp, self.table, len(sizes)
        current, degrees, members = table["name"], table["degree"], table["members"]
        places, living = xp.searchsorted(names, current), table["living"]
        left_sizes = sizes - sums_of(xp, places, members * (living & NOW), count)
        left_weights = weights - sums_of(xp, places, degrees, count)
        indices = []
        for some in (now, then):
            index = xp.full(count, -1, np.int64)
            index[some] = xp.arange(len(some))
            indices.append(index)
        kept = xp.flatnonzero((left_sizes > 0) & (indices[1] >= 0))
        stayed = living == NOW | BEFORE
        before = xp.searchsorted(names, table["name_before"][stayed])
        pairs = {
            "news": indices[0][xp.concatenate([places[stayed], kept])],
            "olds": indices[1][xp.concatenate([before, kept])],
            "weights": xp.concatenate([degrees[stayed], left_weights[kept]]),
            "sizes": xp.concatenate([members[stayed], left_sizes[kept]]),
        }
        if self.grouped or not len(pairs["news"]):
            return Overlaps(**pairs)
        return overlaps_of_many(xp, **pairs)


def fetched(concerned: Concerned, memory: ArrayMemory) -> Concerned:
    """Return the same with arrays in host memory."""
    pairs, get = concerned.overlaps, memory.get
    columns = {name: get(getattr(pairs, name)) for name in Overlaps.__slots__}
    others = {
        name: get(getattr(concerned, name)) for name in Concerned.__slots__ if name != "overlaps"
    }
    return Concerned(**others, overlaps=Overlaps(**columns))


def succession_of_many(xp: Any, concerned: Concerned, next_id: int) -> tuple[Any, int, Any]:
    """Return the ids of the communities after a batch, the next free one, and the events."""
    old_ids, count = concerned.old_ids, len(concerned.sizes)
    news, olds = concerned.overlaps.news, concerned.overlaps.olds
    weights, sizes = concerned.overlaps.weights, concerned.overlaps.sizes
    claims = heaviest(xp, news, old_ids[olds], weights, sizes, count)
    claiming = xp.flatnonzero(claims >= 0)
    current = claims[claiming]
    # Communities come in the order of their names: ties go to the first.
    heirs = heaviest(xp, olds[current], claiming, weights[current], sizes[current], len(old_ids))
    inherited = heirs >= 0
    heirs = xp.where(inherited, current[heirs], -1)
    ids = xp.full(count, -1, np.int64)
    ids[news[heirs[inherited]]] = old_ids[inherited]
    fresh = ids < 0
    new = xp.flatnonzero(fresh)
    ids[new] = xp.arange(next_id, next_id + len(new))
    successors = heaviest(xp, olds, ids[news], weights, sizes, len(old_ids))
    rows = (ends(xp, concerned, ids, heirs, successors), starts(xp, concerned, ids, fresh, claims))
    return ids, next_id + len(new), xp.concatenate(rows)


def heaviest(xp: Any, keys: Any, ties: Any, weights: Any, sizes: Any, count: int) -> Any:
    """Return the pair of each key that shares the most, ties to the smaller value of `ties`."""
    order = xp.lexsort(xp.stack([ties, -sizes, -weights, keys]))
    current = keys[order]
    first = xp.ones(len(keys), np.bool_)
    first[1:] = current[1:] != current[:-1]
    best = xp.full(count, -1, np.int64)
    best[current[first]] = order[first]
    return best


def ends(xp: Any, concerned: Concerned, ids: Any, heirs: Any, successors: Any) -> Any:
    """Return the events of communities that there were before."""
    overlaps, old_sizes = concerned.overlaps, concerned.old_sizes
    went = sums_of(xp, overlaps.olds, overlaps.weights, len(old_sizes))
    inherited, followed = heirs >= 0, successors >= 0
    heir = overlaps.news[heirs]  # of no meaning where there is none, as below
    size = xp.where(inherited, concerned.sizes[heir], 0)
    mass = xp.where(inherited, concerned.weights[heir], 0)
    stayed = xp.where(inherited, overlaps.weights[heirs], 0)
    joined, left = mass - stayed, went - stayed
    successor = overlaps.news[successors]
    gone, merged = size < 2, (size == 0) & followed & (concerned.sizes[successor] > 1)
    kind = xp.where(joined > left, GREW, xp.where(joined < left, SHRANK, CONTINUED))
    kind = xp.where(gone, xp.where(merged, MERGED, DIED), kind)
    kind = xp.where(old_sizes < 2, BORN, kind)
    other = xp.where(kind == MERGED, ids[successor], -1)
    columns = (
        kind, concerned.old_ids, other, old_sizes, size, concerned.old_weights, mass, joined, left,
    )  # fmt: skip
    return xp.stack(columns, axis=1)[xp.maximum(size, old_sizes) >= 2]


def starts(xp: Any, concerned: Concerned, ids: Any, fresh: Any, claims: Any) -> Any:
    """Return the events of communities that inherited no id."""
    sizes, mass = concerned.sizes, concerned.weights
    origin, none = concerned.overlaps.olds[claims], xp.zeros(len(ids), np.int64)
    split = (claims >= 0) & (concerned.old_sizes[origin] > 1)
    kind = xp.where(split, SPLIT, BORN)
    other = xp.where(split, concerned.old_ids[origin], -1)
    columns = kind, ids, other, none, sizes, none, mass, mass, none
    return xp.stack(columns, axis=1)[fresh & (sizes >= 2)]


def sums_of(xp: Any, keys: Any, values: Any, count: int) -> Any:
    """Return the sums of integers by key; those are below 2⁵³, so that doubles are exact."""
    return xp.bincount(keys, weights=values.astype(np.float64), minlength=count).astype(np.int64)


def overlaps_of_many(xp: Any, news: Any, olds: Any, weights: Any, sizes: Any) -> Overlaps:
    """Return overlaps from some members each: those of one pair are added up."""
    pairs = news * (olds.max() + 1) + olds
    each, first, pair = xp.unique(pairs, return_index=True, return_inverse=True)
    return Overlaps(
        news=news[first],
        olds=olds[first],
        weights=sums_of(xp, pair, weights, len(each)),
        sizes=sums_of(xp, pair, sizes, len(each)),
    )
