"""From a batch to its net changes: per edge, as a `Change` of the graph, then per arc and row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from louvain_um.cpu.dynamic import net
from louvain_um.dynamic.batches.batch import HALF, Batch
from louvain_um.dynamic.stores.store import EMPTY_I64, NO_CHANGES, ArcChanges, Store
from louvain_um.errors import GraphError

NO_VERTICES = np.zeros(0, np.uint32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """The net changes of one batch.

    Edges are ascending by `u`, then by `v`, each once; loops have ``u == v``. Edges that end as
    they were are left out, so applying the same batches in another order of their edges gives the
    same changes.

    Parameters
    ----------
    epoch : int
        Batches applied to the graph so far, this one included.
    u, v : uint32[k]
        Smaller and larger end.
    before, after : int64[k]
        Integer weights (1 in an unweighted graph); 0 where there is no edge.
    missing : int
        Edges to delete or decrease that were not there.
    total_weight : int
        2m after the batch.
    removed : uint32[r]
        Vertices that were removed, ascending.
    origin : str
        `origin` of the graph.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.DynamicGraph(4)
    >>> change = g.apply(insert=([0, 1, 1], [1, 2, 0]))
    >>> change
    Change(epoch 1: 2 edges inserted)
    >>> g.apply(insert=([2], [3]), delete=([0], [1])).after.tolist()
    [0, 1]
    """

    epoch: int
    u: NDArray[np.uint32]
    v: NDArray[np.uint32]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    missing: int = 0
    total_weight: int
    removed: NDArray[np.uint32] = field(default_factory=lambda: NO_VERTICES)
    origin: str = ""

    @property
    def inserted(self) -> NDArray[np.bool_]:
        """Which edges are new, bool[k]."""
        return np.equal(self.before, 0)

    @property
    def deleted(self) -> NDArray[np.bool_]:
        """Which edges are gone, bool[k]."""
        return np.equal(self.after, 0)

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Which edges were there and have another weight, bool[k]."""
        return (self.before > 0) & (self.after > 0)

    @property
    def changed_weight(self) -> int:
        """Weight of all changes: twice the sum of all differences, as in 2m."""
        return 2 * int(np.abs(self.after - self.before).sum())

    def to_host(self) -> Change:
        """Return the change with NumPy arrays; itself if they are."""
        columns = {name: getattr(self, name) for name in ("u", "v", "before", "after")}
        if all(isinstance(column, np.ndarray) for column in columns.values()):
            return self
        return replace(self, **{name: column.get() for name, column in columns.items()})

    def __len__(self) -> int:
        return len(self.u)

    def __repr__(self) -> str:
        counts = {
            "inserted": int(self.inserted.sum()),
            "deleted": int(self.deleted.sum()),
            "changed": int(self.changed.sum()),
            "missing": self.missing,
        }
        parts = [
            f"{count:,} {'edge' if count == 1 else 'edges'} {what}"
            for what, count in counts.items()
            if count
        ]
        if count := len(self.removed):
            parts.append(f"{count:,} {'vertex' if count == 1 else 'vertices'} removed")
        return f"Change(epoch {self.epoch}: {', '.join(parts) or 'nothing changed'})"


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
    directed: bool

    @property
    def gain(self) -> int:
        """Weight that the graph gains, all arcs; a loop counts twice."""
        gains = self.after - self.before
        if self.directed:
            gains <<= self.u == self.v
        rough = float(gains.sum(dtype=np.float64))  # the integer sum may overflow
        return (2 - self.directed) * (int(gains.sum()) if abs(rough) < 2.0**60 else int(rough))

    @property
    def u(self) -> NDArray[np.uint32]:
        """Smaller end of each edge."""
        return (self.keys >> HIGH).astype(np.uint32)

    @property
    def v(self) -> NDArray[np.uint32]:
        """Larger end of each edge."""
        return (self.keys & LOW).astype(np.uint32)


def weights_before(
    store: Store, loops: NDArray[np.int64], u: NDArray[np.uint32], v: NDArray[np.uint32],
    asked: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:  # fmt: skip
    """Return the weight of each edge asked for, 0 where there is none; loops are looked up, too."""
    found = store.find(u, v) if asked is None else np.zeros(len(u), np.int64)
    if asked is not None:
        found[asked] = store.find(u[asked], v[asked])
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
    edges = EdgeChanges(
        keys=keys, before=EMPTY_I64, after=EMPTY_I64, missing=0, loops=0, directed=batch.directed
    )
    asked = (deleted > 0) | (less >= 0) if getattr(store, "unchecked", False) else None
    before = weights_before(store, loops, edges.u, edges.v, asked)
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
    return replace(
        edges, keys=keys[:count], before=before[:count], after=after[:count], missing=missing,
        loops=loops_changed,
    )  # fmt: skip


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
    """Mirror changed edges into the rows of both ends, loops left out; not directed ones."""
    keys, before, after = edges.keys, edges.before, edges.after
    if edges.loops:
        proper = edges.u != edges.v
        keys, before, after = keys[proper], before[proper], after[proper]
    if len(keys) == 0:
        return NO_CHANGES
    arcs = (2 - edges.directed) * len(keys)
    both = np.empty(arcs, np.uint64)
    if edges.directed:
        both[:] = keys
    else:
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
