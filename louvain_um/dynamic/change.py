"""What a batch changed: one entry per edge, before and after."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

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
