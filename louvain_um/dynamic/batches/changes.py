"""From a batch to its net changes: per edge, then per arc and row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from louvain_um.cpu.dynamic import net
from louvain_um.dynamic.batches.batch import HALF, Batch
from louvain_um.dynamic.stores.store import EMPTY_I64, NO_CHANGES, ArcChanges, Store
from louvain_um.errors import GraphError


class EdgeError(GraphError):
    """An error about an edge: `text` has ``{edge}`` where its ends stand, which `key` packs."""

    def __init__(self, text: str, key: int = 0) -> None:
        self.text, self.key = text, key
        super().__init__(text.replace("{edge}", f"({key >> 32}, {key & 0xFFFFFFFF})"))

    def named(self, names: Sequence[Any]) -> GraphError:
        """Return the error with the names of the ends."""
        u, v = names[self.key >> 32], names[self.key & 0xFFFFFFFF]
        return GraphError(self.text.replace("{edge}", f"({u!r}, {v!r})"))


LOW = np.uint64(0xFFFFFFFF)
HIGH = np.uint64(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeChanges:
    """The edges that a batch changes, ascending by key, with their weights before and after."""

    keys: NDArray[np.uint64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    missing: int
    loops: int

    @property
    def gain(self) -> int:
        """Weight that the graph gains, both directions."""
        gains = self.after - self.before
        rough = float(gains.sum(dtype=np.float64))  # the integer sum may overflow
        return 2 * (int(gains.sum()) if abs(rough) < 2.0**60 else int(rough))

    @property
    def u(self) -> NDArray[np.uint32]:
        """Smaller end of each edge."""
        return (self.keys >> HIGH).astype(np.uint32)

    @property
    def v(self) -> NDArray[np.uint32]:
        """Larger end of each edge."""
        return (self.keys & LOW).astype(np.uint32)


def weights_before(
    store: Store, loops: NDArray[np.int64], u: NDArray[np.uint32], v: NDArray[np.uint32]
) -> NDArray[np.int64]:
    """Return the weight of each edge, 0 where there is none; loops are looked up, too."""
    found = store.find(u, v)
    same = u == v
    if same.any():
        found[same] = loops[u[same]]
    return found


def net_changes(
    batch: Batch, store: Store, loops: NDArray[np.int64], *, refuse_missing: bool
) -> EdgeChanges:
    """Return what a batch changes; an error names an edge of it and leaves all as it is."""
    if batch.deletions == batch.decreases == 0 and not len(batch.weights) and not batch.summing:
        keys = np.sort(batch.keys)
        keys = keys[: net.unique(keys)]
        deleted, less = np.zeros(len(keys), np.uint8), np.full(len(keys), -1, np.int64)
        more = np.ones(len(keys), np.int64)
    else:
        size = len(batch.keys)
        keys, deleted = np.empty(size, np.uint64), np.empty(size, np.uint8)
        less, more = np.empty(size, np.int64), np.empty(size, np.int64)
        cuts = (batch.deletions, batch.deletions + batch.decreases)
        order = np.argsort(batch.keys)
        count = net.reduce(
            batch.keys, order, cuts, batch.weights, batch.summing, keys, deleted, less, more
        )
        keys, deleted, less, more = keys[:count], deleted[:count], less[:count], more[:count]
    edges = EdgeChanges(keys=keys, before=EMPTY_I64, after=EMPTY_I64, missing=0, loops=0)
    before = weights_before(store, loops, edges.u, edges.v)
    after = np.empty(len(keys), np.int64)
    missing, first, fault, at = net.net_weights(
        before, deleted, less, more, batch.summing, HALF, after
    )
    if fault == net.BELOW_ZERO:
        refuse_below_zero(int(keys[at]), int(before[at]), int(less[at]))
    if fault == net.TOO_HEAVY:
        refuse_heavy(int(keys[at]))
    if missing and refuse_missing:
        refuse_absent(int(keys[first]), missing)
    count, loops_changed = net.keep_changes(keys, before, after)
    return EdgeChanges(
        keys=keys[:count],
        before=before[:count],
        after=after[:count],
        missing=missing,
        loops=loops_changed,
    )


def refuse_below_zero(key: int, weight: int, less: int) -> NoReturn:
    """Raise for an edge of which more is to be subtracted than is there."""
    raise EdgeError(
        f"decrease: edge {{edge}} has weight {weight}, and {less} are to be subtracted; use "
        "delete to remove it",
        key,
    )


def refuse_heavy(key: int) -> NoReturn:
    """Raise for an edge that would become too heavy."""
    raise EdgeError("edge {edge} would weigh more than 2^52; use smaller weights", key)


def refuse_absent(key: int, count: int) -> NoReturn:
    """Raise for edges that are not there."""
    raise EdgeError(
        f"{count:,} of the edges to delete, decrease or edit are not in the graph, first "
        "{edge}; pass missing='count' to apply, or leave them out",
        key,
    )


def arc_changes(edges: EdgeChanges) -> ArcChanges:
    """Mirror changed edges into the rows of both ends, loops left out."""
    keys, before, after = edges.keys, edges.before, edges.after
    if edges.loops:
        proper = edges.u != edges.v
        keys, before, after = keys[proper], before[proper], after[proper]
    if len(keys) == 0:
        return NO_CHANGES
    arcs = 2 * len(keys)
    both = np.empty(arcs, np.uint64)
    net.mirror(keys, both)
    if (before == before[0]).all() and (after == after[0]).all():
        by_row = np.sort(both)  # several times as fast as finding the order
        old, new = np.full(arcs, before[0]), np.full(arcs, after[0])
    else:
        order = np.argsort(both)
        by_row = np.empty(arcs, np.uint64)
        old, new = np.empty(arcs, np.int64), np.empty(arcs, np.int64)
        net.sort_arcs(both, order, before, after, by_row, old, new)
    rows, starts = np.empty(arcs, np.uint32), np.empty(arcs + 1, np.int64)
    growth, gains = np.empty(arcs, np.int64), np.empty(arcs, np.int64)
    count, heaviest, gained = net.cut(by_row, old, new, rows, starts, growth, gains)
    return ArcChanges(
        keys=by_row,
        before=old,
        after=new,
        rows=rows[:count],
        starts=starts[: count + 1],
        growth=growth[:count],
        gains=gains[:count],
        heaviest=heaviest,
        arcs=gained,
    )
