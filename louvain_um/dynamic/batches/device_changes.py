"""What a batch changes, computed on a device: the twin of `changes.py`, array by array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.batches.batch import HALF, Batch
from louvain_um.dynamic.batches.changes import (
    HIGH,
    LOW,
    EdgeChanges,
    refuse_absent,
    refuse_below_zero,
    refuse_heavy,
)
from louvain_um.dynamic.stores.store import NO_CHANGES, ArcChanges


def weights_there(store: Any, loops: NDArray[np.int64], u: Any, v: Any) -> Any:
    """Return the weight of each edge on the device, 0 for none; `loops` are on the host."""
    found = store.find_there(u, v)
    same = store.xp.flatnonzero(u == v)
    if len(same):
        found[same] = store.xp.asarray(loops[store.device.get(u[same])])
    return found


def net_changes_there(
    batch: Batch, store: Any, loops: NDArray[np.int64], *, refuse_missing: bool
) -> EdgeChanges:
    """Return what a batch changes, in arrays on the store's device."""
    xp = store.xp
    if not batch.summing and not len(batch.weights) and not batch.decreases:
        listed = len(batch.keys)
        if batch.deletions in (0, listed) and not (batch.deletions and refuse_missing):
            return _of_one_kind(batch, store, loops)
    keys, deleted, less, more = _reduced(xp, batch)
    u, v = (keys >> HIGH).astype(np.uint32), (keys & LOW).astype(np.uint32)
    before = weights_there(store, loops, u, v)
    absent = (before == 0) & (deleted | (less >= 0))
    missing = int(absent.sum())
    left = xp.where(deleted, 0, before)
    lowers = ~deleted & (less > 0) & (before > 0)
    below = lowers & (less > left)
    if bool(below.any()):
        at = int(xp.argmax(below))
        refuse_below_zero(int(keys[at]), int(before[at]), int(less[at]))
    left = left - xp.where(lowers, less, 0)
    raised = left + more if batch.summing else xp.maximum(left, more)
    after = xp.where(more >= 0, raised, left)
    heavy = after >= HALF
    if bool(heavy.any()):
        refuse_heavy(int(keys[int(xp.argmax(heavy))]))
    if missing and refuse_missing:
        refuse_absent(int(keys[int(xp.argmax(absent))]), missing)
    changed = xp.flatnonzero(before != after)
    keys, before, after = keys[changed], before[changed], after[changed]
    loops_changed = int(((keys >> HIGH) == (keys & LOW)).sum())
    return EdgeChanges(keys=keys, before=before, after=after, missing=missing, loops=loops_changed)


def _of_one_kind(batch: Batch, store: Any, loops: NDArray[np.int64]) -> EdgeChanges:
    """Return what a batch of deletions, or of insertions without weights, changes: fewer steps."""
    xp = store.xp
    keys = xp.sort(batch.keys)
    keys = keys[_firsts(xp, keys)]
    listed = len(keys)
    u, v = (keys >> HIGH).astype(np.uint32), (keys & LOW).astype(np.uint32)
    before = weights_there(store, loops, u, v)
    chosen = xp.flatnonzero(before if batch.deletions else before == 0)
    keys, before, count = keys[chosen], before[chosen], len(chosen)
    return EdgeChanges(
        keys=keys,
        before=before,
        after=xp.zeros(count, np.int64) if batch.deletions else xp.ones(count, np.int64),
        missing=listed - count if batch.deletions else 0,
        loops=int((u[chosen] == v[chosen]).sum()),
        kind=-1 if batch.deletions else 1,
    )


def _reduced(xp: Any, batch: Batch) -> tuple[Any, Any, Any, Any]:
    """Return each edge once, whether it is deleted, and what is subtracted and inserted, or −1."""
    listed = len(batch.keys)
    weights = batch.weights if len(batch.weights) else xp.ones(listed, np.int64)
    place = xp.arange(listed)
    inserts = place >= batch.deletions + batch.decreases
    if batch.summing:
        order = xp.argsort(batch.keys)
    else:
        # The heaviest insertion of an edge comes last.
        value = xp.where(inserts, weights + 1, 0).astype(np.uint64)
        order = xp.lexsort(xp.stack([value, batch.keys]))
    keys = batch.keys[order]
    first = _firsts(xp, keys)
    starts = xp.flatnonzero(first)
    bounds = xp.append(starts, xp.full(1, listed, starts.dtype))

    def sums(values: Any) -> Any:
        """Return the sum of each edge's values."""
        before = xp.zeros(listed + 1, np.int64)
        xp.cumsum(values[order].astype(np.int64), out=before[1:])
        return before[bounds[1:]] - before[bounds[:-1]]

    deletes = place < batch.deletions
    decreases = ~deletes & ~inserts
    less = xp.where(sums(decreases) > 0, sums(xp.where(decreases, weights, 0)), -1)
    some = sums(inserts) > 0
    if batch.summing:
        more = xp.where(some, sums(xp.where(inserts, weights, 0)), -1)
    else:
        more = xp.where(some, weights[order][bounds[1:] - 1], -1)
    return keys[starts], sums(deletes) > 0, less, more


def _firsts(xp: Any, keys: Any) -> Any:
    """Return which of sorted keys differ from the one before."""
    first = xp.ones(len(keys), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    return first


def arc_changes_there(store: Any, edges: EdgeChanges) -> ArcChanges:
    """Mirror changed edges into the rows of both ends, on the store's device, loops left out."""
    xp = store.xp
    keys, before, after = edges.keys, edges.before, edges.after
    if edges.loops:
        proper = xp.flatnonzero((keys >> HIGH) != (keys & LOW))
        keys, before, after = keys[proper], before[proper], after[proper]
    if len(keys) == 0:
        return NO_CHANGES
    both = xp.concatenate([keys, (keys << HIGH) | (keys >> HIGH)])
    plain = edges.kind and store.weights is None
    if plain:
        by_row = xp.sort(both)
        old = xp.full(len(both), int(edges.kind < 0), np.int64)
        new = 1 - old
    else:
        order = xp.argsort(both)
        by_row, edge = both[order], order % len(keys)
        old, new = before[edge], after[edge]
    rows = (by_row >> HIGH).astype(np.uint32)
    starts = xp.flatnonzero(_firsts(xp, rows))
    bounds = xp.append(starts, xp.full(1, len(rows), starts.dtype)).astype(np.int64)

    def sums(values: Any) -> Any:
        before = xp.zeros(len(values) + 1, np.int64)
        xp.cumsum(values, out=before[1:])
        return before[bounds[1:]] - before[bounds[:-1]]

    if plain:
        growth = edges.kind * xp.diff(bounds)
    else:
        growth = sums((old == 0).astype(np.int64) - (new == 0).astype(np.int64))
    return ArcChanges(
        keys=by_row,
        before=old,
        after=new,
        rows=rows[starts],
        starts=bounds,
        growth=growth,
        gains=growth[:0],
        heaviest=1 if plain else int(new.max()),
        arcs=edges.kind * len(both) if edges.kind else int(growth.sum()),
    )
