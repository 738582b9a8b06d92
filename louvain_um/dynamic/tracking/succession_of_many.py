"""Which community inherits which id, for many communities: by whole arrays, on a device or not.

The twin of `succession` in `louvain_um.dynamic.tracking.identity`, whose loops are in
`louvain_um.cpu.inherit`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.cpu.inherit import BORN, CONTINUED, DIED, GREW, MERGED, SHRANK, SPLIT
from louvain_um.dynamic.tracking.identity import Concerned, Overlaps


def succession_of_many(xp: Any, concerned: Concerned, next_id: int) -> tuple[Any, int, Any]:
    """Return the ids of the communities after a batch, the next free one, and the events."""
    old_ids, count = concerned.old_ids, len(concerned.sizes)
    news, olds = concerned.overlaps.news, concerned.overlaps.olds
    weights, sizes = concerned.overlaps.weights, concerned.overlaps.sizes
    claims = heaviest(xp, news, old_ids[olds], weights, sizes, count)
    claiming = xp.flatnonzero(claims >= 0)
    own = claims[claiming]
    # Communities come in the order of their names: ties go to the first.
    heirs = heaviest(xp, olds[own], claiming, weights[own], sizes[own], len(old_ids))
    inherited = heirs >= 0
    heirs = xp.where(inherited, own[heirs], -1)
    ids = xp.full(count, -1, np.int64)
    ids[news[heirs[inherited]]] = old_ids[inherited]
    fresh = ids < 0
    new = xp.flatnonzero(fresh)
    ids[new] = xp.arange(next_id, next_id + len(new))
    successors = heaviest(xp, olds, ids[news], weights, sizes, len(old_ids))
    told = (ends(xp, concerned, ids, heirs, successors), starts(xp, concerned, ids, fresh, claims))
    return ids, next_id + len(new), xp.concatenate(told)


def heaviest(xp: Any, keys: Any, ties: Any, weights: Any, sizes: Any, count: int) -> Any:
    """Return the pair of each key that shares the most, ties to the smaller value of `ties`."""
    order = xp.lexsort(xp.stack([ties, -sizes, -weights, keys]))
    own = keys[order]
    first = xp.ones(len(keys), np.bool_)
    first[1:] = own[1:] != own[:-1]
    best = xp.full(count, -1, np.int64)
    best[own[first]] = order[first]
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
