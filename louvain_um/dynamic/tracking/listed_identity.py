"""Identities of communities on a device: from the vertices whose community changed its name.

The twin of `louvain_um.dynamic.tracking.identity`, which looks at every vertex. Ids stay on the
host by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.tracking.identity import (
    NO_ID,
    Concerned,
    Overlaps,
    inherit,
)

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

NONE: Final = 0xFFFFFFFF
"""Name before the batch of a vertex that is new."""

NOW: Final = 1
BEFORE: Final = 2
"""Bits of `living`: whether a vertex is alive after the batch, and before."""


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
        self, listed: NDArray[np.void], n: int, names: Callable[[], U32]
    ) -> tuple[U32, NDArray[np.void]]:
        """Take a batch; return the vertices whose id changed, and the events.

        Parameters
        ----------
        listed : Differing[k]
            Vertices whose community has another name than before, or that were added, removed or
            revived (`louvain_um.gpu.dynamic.follow_arrays.DIFFERING`).
        n : int
            Vertices after the batch.
        names : callable
            Returns the names of all vertices after the batch: rarely needed.
        """
        of_name = self.of_name
        if n > len(of_name):
            of_name = np.concatenate([of_name, np.full(n - len(of_name), NO_ID, np.int64)])
        new = listed["name_before"] == NONE
        older = listed[~new] if new.any() else listed
        ids_before = np.full(len(listed), NO_ID, np.int64)
        ids_before[~new] = of_name[older["name_before"]]
        names_of_both = np.concatenate([listed["name"], older["name_before"]])
        touched, places, index = places_of(names_of_both, n)
        concerned = concerned_of(listed, older, touched, places, index, of_name)
        before, after = of_name[touched], np.full(len(touched), NO_ID, np.int64)
        ids, next_id, events = inherit(concerned, self.next_id)
        after[index[concerned.names]] = ids
        changed = np.sort(listed["vertex"][after[index[listed["name"]]] != ids_before])
        # Living members that are not listed were in the community before and are after.
        renamed = touched[(before != after) & (before != NO_ID) & (after != NO_ID)]
        if len(renamed):
            changed = np.union1d(changed, self._members(renamed, listed, names()))
        of_name[touched] = after  # nothing fails from here on
        self.of_name, self.next_id = of_name, next_id
        return changed.astype(np.uint32), events

    def _members(self, communities: U32, listed: NDArray[np.void], names: U32) -> U32:
        """Return members of communities that kept their name, but not their id."""
        wanted = np.zeros(len(names), np.bool_)
        wanted[communities] = True
        inside = wanted[names]
        inside[listed["vertex"]] = False
        return np.flatnonzero(inside).astype(np.uint32)


def places_of(names: U32, n: int) -> tuple[U32, I64, I64]:
    """Return names below n, each once, ascending, and a place of each among those given.

    The third array, int64[n], has the index of each such name, and anything elsewhere.
    """
    index = np.empty(n, np.int64)  # pages that nothing writes take no memory
    index[names] = np.arange(len(names))
    once = np.zeros(n, np.bool_)
    once[names] = True
    each = np.flatnonzero(once).astype(np.uint32)
    places = index[each]
    index[each] = np.arange(len(each))
    return each, places, index


def concerned_of(
    listed: NDArray[np.void],
    older: NDArray[np.void],
    names: U32,
    places: I64,
    index: I64,
    ids: I64,
) -> Concerned:
    """Return the communities that a batch may have changed, from the vertices listed.

    Parameters
    ----------
    listed, older : Differing[k]
        All vertices listed, and those that are not new.
    names : uint32[c]
        Names after the batch, and before it of older vertices: each once, ascending.
    places : int64[c]
        Where each comes among these.
    index : int64[n]
        Index of each of these names.
    ids : int64[n]
        Ids before the batch, by name.
    """

    def by_name(own: str, old: str) -> I64:
        found: I64 = np.concatenate([listed[own], older[old]])[places].astype(np.int64)
        return found

    sizes, weights = by_name("size", "old_size"), by_name("mass", "old_mass")
    old_sizes = by_name("size_before", "old_size_before")
    old_weights = by_name("mass_before", "old_mass_before")
    now = sizes > 0
    ids_then = ids[names]
    then = ids_then != NO_ID
    return Concerned(
        names=names[now].astype(np.int64),
        sizes=sizes[now],
        weights=weights[now],
        old_ids=ids_then[then],
        old_sizes=old_sizes[then],
        old_weights=old_weights[then],
        overlaps=overlaps_of(listed, names.astype(np.int64), index, sizes, weights, ids),
    )


def overlaps_of(
    listed: NDArray[np.void], names: I64, index: I64, sizes: I64, weights: I64, ids: I64
) -> Overlaps:
    """Return what the communities after a batch share with those before it.

    Vertices that are not listed kept the name of their community: they are what is left of it.
    """
    living = listed["living"] & NOW != 0
    places = index[listed["name"]]
    left_sizes, left_weights = sizes.copy(), weights.copy()
    np.subtract.at(left_sizes, places, living.astype(np.int64))
    np.subtract.at(left_weights, places, listed["degree"].astype(np.int64))
    kept = (left_sizes > 0) & (ids[names] != NO_ID)

    stayed = listed["living"] == NOW | BEFORE
    moved = listed if stayed.all() else listed[stayed]
    return Overlaps.of_pairs(
        np.concatenate([moved["name"].astype(np.int64), names[kept]]),
        np.concatenate([ids[moved["name_before"]], ids[names[kept]]]),
        np.concatenate([moved["degree"].astype(np.int64), left_weights[kept]]),
        np.concatenate([np.ones(len(moved), np.int64), left_sizes[kept]]),
    )
