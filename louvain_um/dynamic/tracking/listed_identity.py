"""Identities of communities on a device: from the vertices whose community changed its name.

The twin of `louvain_um.dynamic.tracking.identity`, which looks at every vertex. Ids stay on the
host by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.tracking.identity import NO_ID, Concerned, Overlaps, succession

Flags = NDArray[np.bool_]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

NONE: Final = 0xFFFFFFFF
"""Name before the batch of a vertex that is new."""

NOW: Final = 1
BEFORE: Final = 2
"""Bits of `living`: whether a vertex is alive after the batch, and before."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The vertices whose community has another name than before a batch.

    Also those that were added, removed or revived. Arrays are on the device or the host.

    Parameters
    ----------
    entries : Differing[k]
        As bytes: a vertex each, or those of one community before that are in one after
        (`louvain_um.gpu.dynamic.follow_arrays.DIFFERING`).
    vertices : uint32[m], optional
        Those of all entries, one entry after another; by default each entry's own.
    """

    entries: Any
    vertices: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        held: int = self.entries.nbytes
        return held if self.vertices is None else held + int(self.vertices.nbytes)

    def copied(self, get: Callable[[Any], Any]) -> Listed:
        """Return the same with arrays that `get` copied."""
        return Listed(get(self.entries), None if self.vertices is None else get(self.vertices))

    def vertices_of(
        self, get: Callable[[Any], Any], entries: NDArray[np.void], wanted: Flags
    ) -> U32:
        """Return the vertices of some of the entries, which `get` has copied to the host."""
        if self.vertices is None or not wanted.any():
            own: U32 = entries["vertex"][wanted]
            return own
        found: U32 = get(self.vertices)[np.repeat(wanted, entries["members"])]
        return found


@dataclass(slots=True)
class ListedIdentity:
    """Ids of communities by name.

    Parameters
    ----------
    of_name : int64[n]
        −1 where no community has that name.
    next_id : int
        Ids below it have been given.
    """

    of_name: I64
    next_id: int

    def follow(
        self,
        listed: NDArray[np.void],
        n: int,
        vertices: Callable[[Flags], U32],
        others: Callable[[U32], U32],
        *,
        grouped: bool,
    ) -> tuple[U32, NDArray[np.void]]:
        """Take a batch; return the vertices whose id changed, and the events.

        Parameters
        ----------
        listed : Differing[k]
            Entries of a `Listed`.
        n : int
            Vertices after the batch.
        vertices : callable
            Returns the vertices of some entries.
        others : callable
            Returns the vertices of communities, named as after the batch, that are not listed.
        grouped : bool
            Whether entries are all that came from one community to another, not a vertex each.
        """
        of_name = self.of_name
        if n > len(of_name):
            of_name = np.concatenate([of_name, np.full(n - len(of_name), NO_ID, np.int64)])
        new = listed["name_before"] == NONE
        older = listed[~new] if new.any() else listed
        ids_before = np.full(len(listed), NO_ID, np.int64)
        ids_before[~new] = of_name[older["name_before"]]
        names_of_both = np.concatenate([listed["name"], older["name_before"]])
        touched, places, find = places_of(names_of_both, n)
        concerned, now = concerned_of(
            listed, older, touched, places, find, of_name, grouped=grouped
        )
        before, after = of_name[touched], np.full(len(touched), NO_ID, np.int64)
        after[now], next_id, events = succession(concerned, self.next_id)
        changed = vertices(after[find(listed["name"])] != ids_before)
        # Living members that are not listed were in the community before and are after.
        renamed = touched[(before != after) & (before != NO_ID) & (after != NO_ID)]
        if len(renamed):
            changed = np.concatenate([changed, others(renamed)])
        of_name[touched] = after  # nothing fails from here on
        self.of_name, self.next_id = of_name, next_id
        return np.sort(changed), events


def others_of(xp: Any, listed: Any, names: Any, communities: U32) -> Any:
    """Return which vertices of some communities are not among those listed, bool[n].

    Parameters
    ----------
    xp : module
        NumPy, or that of the other arrays.
    listed : uint32[m]
    names : uint32[n]
        Community of each vertex.
    communities : uint32[c]
    """
    wanted = xp.zeros(len(names), np.bool_)
    wanted[xp.asarray(communities)] = True
    found = wanted[names]
    found[listed] = False
    return found


def places_of(names: U32, n: int) -> tuple[U32, I64, Callable[[U32], I64]]:
    """Return names below n, each once, ascending, and a place of each among those given.

    The function returned finds the index of such names. Tables of n entries take longer than a
    sort of few names, since their memory is new.
    """
    if len(names) < n >> 6:
        each, places = np.unique(names, return_index=True)
        return each, places, lambda wanted: np.searchsorted(each, wanted).astype(np.int64)
    index = np.empty(n, np.int64)
    index[names] = np.arange(len(names))
    once = np.zeros(n, np.bool_)
    once[names] = True
    each = np.flatnonzero(once).astype(np.uint32)
    places = index[each]
    index[each] = np.arange(len(each))
    return each, places, index.__getitem__


def concerned_of(
    listed: NDArray[np.void],
    older: NDArray[np.void],
    names: U32,
    places: I64,
    find: Callable[[U32], I64],
    ids: I64,
    *,
    grouped: bool,
) -> tuple[Concerned, I64]:
    """Return the communities that a batch may have changed, and which of `names` are after it.

    Parameters
    ----------
    listed, older : Differing[k]
        All vertices listed, and those that are not new.
    names : uint32[c]
        Names after the batch, and before it of older vertices: each once, ascending.
    places : int64[c]
        Where each comes among these.
    find : callable
        Returns the index of names among these.
    ids : int64[n]
        Ids before the batch, by name.
    grouped : bool
        Whether no two entries are of the same communities before and after.
    """
    after = places < len(listed)
    here, there = places[after], places[~after] - len(listed)

    def by_name(own: str, old: str) -> I64:
        found = np.empty(len(places), np.int64)
        found[after], found[~after] = listed[own][here], older[old][there]
        return found

    sizes, weights = by_name("size", "old_size"), by_name("mass", "old_mass")
    old_sizes = by_name("size_before", "old_size_before")
    old_weights = by_name("mass_before", "old_mass_before")
    ids_then = ids[names]
    now, then = np.flatnonzero(sizes > 0), np.flatnonzero(ids_then != NO_ID)
    overlaps = overlaps_of(listed, find, sizes, weights, ids_then != NO_ID, grouped=grouped)
    concerned = Concerned(
        sizes=sizes[now],
        weights=weights[now],
        old_ids=ids_then[then],
        old_sizes=old_sizes[then],
        old_weights=old_weights[then],
        overlaps=overlaps.indexed(now, then, np.empty(len(names), np.int64)),
    )
    return concerned, now


def overlaps_of(
    listed: NDArray[np.void],
    find: Callable[[U32], I64],
    sizes: I64,
    weights: I64,
    then: Flags,
    *,
    grouped: bool,
) -> Overlaps:
    """Return what the communities after a batch share with those before it.

    Vertices that are not listed kept the name of their community: they are what is left of it.
    """
    places = find(listed["name"])
    degrees, members = listed["degree"].astype(np.int64), listed["members"].astype(np.int64)
    left_sizes, left_weights = sizes.copy(), weights.copy()
    np.subtract.at(left_sizes, places, np.where(listed["living"] & NOW, members, 0))
    np.subtract.at(left_weights, places, degrees)
    kept = np.flatnonzero((left_sizes > 0) & then)

    stayed = listed["living"] == NOW | BEFORE
    pairs = {
        "news": np.concatenate([places[stayed], kept]),
        "olds": np.concatenate([find(listed["name_before"][stayed]), kept]),
        "weights": np.concatenate([degrees[stayed], left_weights[kept]]),
        "sizes": np.concatenate([members[stayed], left_sizes[kept]]),
    }
    return Overlaps(**pairs) if grouped else Overlaps.of_pairs(**pairs)
