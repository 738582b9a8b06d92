"""Identities of communities on a device: from the vertices whose community changed its name.

The twin of `louvain_um.dynamic.tracking.identity`, which looks at every vertex. Ids by name stay on
the device. Few communities are looked at on the host, many on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.cpu import inherit
from louvain_um.dynamic.tracking.identity import (
    NO_ID,
    Concerned,
    Overlaps,
    events_of,
    succession,
)
from louvain_um.dynamic.tracking.succession_of_many import (
    overlaps_of_many,
    succession_of_many,
    sums_of,
)
from louvain_um.gpu.dynamic.follow_arrays import DIFFERING

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

NONE: Final = 0xFFFFFFFF
"""Name before the batch of a vertex that is new."""

NOW: Final = 1
BEFORE: Final = 2
"""Bits of `living`: whether a vertex is alive after the batch, and before."""

FIELDS: Final[Mapping[str, Any]] = DIFFERING.fields or {}

MOST_HERE: Final = 1 << 16
"""Entries that are looked at on the host; more are on the device, by some fifty operations.

One core takes about a millisecond for 8,500 entries, and time in proportion to them; an H200 took
7.4 ms for 9,600 and 23 ms for 2 million.
"""

LOOKUP_BYTES: Final = 512
"""Bytes per entry that looking at them on the device takes at most.

Arrays come to 280, entries that were on the host to 80; sorts hold copies of what they sort.
"""

STRETCH: Final = 1 << 18
"""Vertices whose ids are compared at a time where memory is short."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The vertices whose community has another name than before a batch."""

    entries: Any
    grouped: bool = False
    on_host: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        held: int = self.entries.nbytes
        return held


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of `Differing`, int64[k], where they are looked at."""

    xp: Any
    entries: Any

    def __len__(self) -> int:
        return len(self.entries) // DIFFERING.itemsize

    def __getitem__(self, name: str) -> Any:
        kind, offset = FIELDS[name][:2]
        words = self.entries.view(kind).reshape(-1, DIFFERING.itemsize // kind.itemsize)
        return words[:, offset // kind.itemsize].astype(np.int64)


@dataclass(slots=True)
class ListedIdentity:
    """Ids of communities by name."""

    device: Any
    of_name: Any
    next_id: int

    def ids_of(self, names: Any) -> NDArray[np.int64]:
        """Return the id of each vertex's community, on the host."""
        xp = self.device.xp
        ids: NDArray[np.int64] = self.device.get(self.of_name[xp.asarray(names)])
        return ids

    def follow(
        self, listed: Listed, before: Any, after: Any, room: int | None = None
    ) -> tuple[U32, NDArray[np.void]]:
        """Take a batch; return the vertices whose id changed, and the events."""
        device, there = self.device, self.device.xp
        of_name = self.of_name
        if len(after) > len(of_name):
            new = there.full(len(after) - len(of_name), NO_ID, np.int64)
            of_name = there.concatenate([of_name, new])
        count = listed.nbytes // DIFFERING.itemsize
        few = count <= MOST_HERE or (room is not None and count * LOOKUP_BYTES > room)
        if few:
            entries = device.get(listed.entries).view(DIFFERING)
            names, own, old = numbers_in(entries)
            at = there.asarray(names)
            ids = device.get(of_name[at])
            concerned, now = concerned_here(entries, own, old, ids)
        else:
            table = Table(there, there.asarray(listed.entries))
            at, places, find = names_in(table)
            ids = of_name[at]
            concerned, now = concerned_of(table, at, places, find, ids, grouped=listed.grouped)
        fresh = (np if few else there).full(len(ids), NO_ID, np.int64)
        if few or not len(concerned.overlaps.news):
            here = concerned if few else on_host(concerned, device.get)
            found, next_id, events = succession(here, self.next_id)
            fresh[now] = found if few else there.asarray(found)
        else:
            fresh[now], next_id, told = succession_of_many(there, concerned, self.next_id)
            events = events_of(device.get(told))
        # Living members that are not listed were in the community before and are after.
        renamed = bool(((ids != fresh) & (ids != NO_ID) & (fresh != NO_ID)).any())
        if renamed or listed.grouped or not few:
            later = of_name.copy()
            later[at] = there.asarray(fresh)
            stretch = max(1, len(after)) if room is None else STRETCH
            parts = []
            for k in range(0, max(1, len(after)), stretch):
                span = slice(k, k + stretch)
                changed = changes(there, of_name, later, before[span], after[span])
                parts.append(
                    device.get(there.flatnonzero(changed).astype(np.uint32)) + np.uint32(k)
                )
            vertices = np.concatenate(parts)
            of_name = later
        else:
            vertices = np.empty(count, np.uint32)
            vertices = vertices[: inherit.list_renamed(entries, own, old, ids, fresh, vertices)]
            vertices.sort()
            of_name[at] = there.asarray(fresh)
        self.of_name, self.next_id = of_name, next_id
        return vertices, events


def changes(xp: Any, ids: Any, later: Any, before: Any, after: Any) -> Any:
    """Return whether the id of each vertex changed, by ids of names before a batch and after it."""
    found = later[after]
    old = len(before)
    return xp.concatenate([found[:old] != ids[before], found[old:] != NO_ID])


def numbers_in(entries: NDArray[np.void]) -> tuple[I64, I64, I64]:
    """Return the names that entries mention, ascending, and which each mentions."""
    both = np.concatenate([entries["name"], entries["name_before"]])
    names, numbers = np.empty(len(both), np.int64), np.empty(len(both), np.int64)
    count = inherit.number_names(both, np.argsort(both), names, numbers)
    own, old = np.split(numbers, 2)
    return names[:count], own, old


def concerned_here(
    entries: NDArray[np.void], own: I64, old: I64, ids: I64
) -> tuple[Concerned, I64]:
    """Return the communities that a batch may have changed, and which names are after it."""
    count = len(ids)
    sums = np.empty((4, count), np.int64)
    inherit.list_sums(entries, own, old, sums)
    now, then = np.flatnonzero(sums[0] > 0), np.flatnonzero(ids != NO_ID)
    sizes, weights = sums[:2, now]
    old_sizes, old_weights = sums[2:, then]
    places = np.full((2, count), -1, np.int64)
    places[0, now], places[1, then] = np.arange(len(now)), np.arange(len(then))
    pairs = np.empty((4, count + len(entries)), np.int64)
    shared = inherit.list_stayed(entries, own, old, sums[:2], places, pairs)
    concerned = Concerned(
        sizes=sizes, weights=weights, old_ids=ids[then], old_sizes=old_sizes,
        old_weights=old_weights, overlaps=Overlaps.of_pairs(*pairs[:, :shared]),
    )  # fmt: skip
    return concerned, now


def on_host(concerned: Concerned, get: Callable[[Any], Any]) -> Concerned:
    """Return the same with arrays on the host."""
    pairs, of = concerned.overlaps, concerned
    return Concerned(
        sizes=get(of.sizes), weights=get(of.weights), old_ids=get(of.old_ids),
        old_sizes=get(of.old_sizes), old_weights=get(of.old_weights),
        overlaps=Overlaps(
            news=get(pairs.news), olds=get(pairs.olds), weights=get(pairs.weights),
            sizes=get(pairs.sizes),
        ),
    )  # fmt: skip


def names_in(table: Table) -> tuple[Any, Any, Callable[[Any], Any]]:
    """Return the names that entries mention, ascending, and a place of each."""
    xp, own, old = table.xp, table["name"], table["name_before"]
    both = xp.concatenate([own, old[old != NONE]])
    each, places = xp.unique(both, return_index=True)
    return each, places, lambda wanted: xp.searchsorted(each, wanted)


def concerned_of(
    table: Table,
    names: Any,
    places: Any,
    find: Callable[[Any], Any],
    ids: Any,
    *,
    grouped: bool,
) -> tuple[Concerned, Any]:
    """Return the communities that a batch may have changed, and which of `names` are after it."""
    xp, listed = table.xp, len(table["name"])
    older = xp.flatnonzero(table["name_before"] != NONE)
    after = places < listed
    here, there = places[after], older[places[~after] - listed]

    def by_name(own: str, old: str) -> Any:
        found = xp.empty(len(places), np.int64)
        found[after], found[~after] = table[own][here], table[old][there]
        return found

    sizes, weights = by_name("size", "old_size"), by_name("mass", "old_mass")
    old_sizes = by_name("size_before", "old_size_before")
    old_weights = by_name("mass_before", "old_mass_before")
    now, then = xp.flatnonzero(sizes > 0), xp.flatnonzero(ids != NO_ID)
    concerned = Concerned(
        sizes=sizes[now],
        weights=weights[now],
        old_ids=ids[then],
        old_sizes=old_sizes[then],
        old_weights=old_weights[then],
        overlaps=overlaps_of(table, find, sizes, weights, (now, then), grouped=grouped),
    )
    return concerned, now


def overlaps_of(
    table: Table,
    find: Callable[[Any], Any],
    sizes: Any,
    weights: Any,
    among: tuple[Any, Any],
    *,
    grouped: bool,
) -> Overlaps:
    """Return what the communities after a batch share with those before it, by their indices."""
    xp, count = table.xp, len(sizes)
    places, degrees, members = find(table["name"]), table["degree"], table["members"]
    living = table["living"]
    left_sizes = sizes - sums_of(xp, places, members * (living & NOW), count)
    left_weights = weights - sums_of(xp, places, degrees, count)
    now, then = (xp.full(count, -1, np.int64) for _ in among)
    for index, some in zip((now, then), among, strict=True):
        index[some] = xp.arange(len(some))
    kept = xp.flatnonzero((left_sizes > 0) & (then >= 0))
    stayed = living == NOW | BEFORE
    pairs = {
        "news": now[xp.concatenate([places[stayed], kept])],
        "olds": then[xp.concatenate([find(table["name_before"][stayed]), kept])],
        "weights": xp.concatenate([degrees[stayed], left_weights[kept]]),
        "sizes": xp.concatenate([members[stayed], left_sizes[kept]]),
    }
    grouped = grouped or not len(pairs["news"])
    return Overlaps(**pairs) if grouped else overlaps_of_many(xp, **pairs)
