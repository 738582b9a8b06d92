"""What a changing graph holds: arcs in a store, and the loops and degrees of its vertices."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from louvain_um.cpu.dynamic import net
from louvain_um.dynamic.batches.batch import Limits, read_batch
from louvain_um.dynamic.batches.changes import EdgeChanges, arc_changes, net_changes, weights_before
from louvain_um.dynamic.stores.store import I64, U32, Growing, Store


class Contents(Protocol):
    """What a changing graph holds; the stores of a device hold all of it."""

    xp: Any
    """NumPy, or the library of the device's arrays."""

    @property
    def store(self) -> Any:
        """The store of the arcs."""

    def host_loops(self) -> I64:
        """Return the weight of each vertex's loop in host memory, int64[n]."""

    def host_degrees(self) -> I64:
        """Return the weighted degree of each vertex in host memory, int64[n]."""

    def find(self, u: U32, v: U32) -> I64:
        """Return the weight of each edge, 0 where there is none."""

    def net(
        self, columns: dict[str, Any], duplicates: str | None, limits: Limits, *,
        refuse_missing: bool,
    ) -> Any:  # fmt: skip
        """Return what a batch changes, in arrays where the graph is."""

    def reserve(self, edges: Any) -> Any:
        """Take the memory that changes need; return what `commit` takes."""

    def commit(self, edges: Any, reserved: Any) -> None:
        """Carry changes out; this cannot fail."""

    def add_vertices(self, count: int) -> None:
        """Append vertices without edges: all of them, or none."""

    def drop_vertices(self, count: int) -> None:
        """Remove the last vertices, which have no edges."""

    def mark_alive(self, ids: U32, alive: int) -> None:
        """Record whether some vertices are alive."""

    def errors(self) -> AbstractContextManager[None]:
        """Turn failures of a device within a block into errors of this package."""


class HostContents:
    """Contents in host memory."""

    xp: Any = np

    def __init__(self, store: Store, loops: I64, degrees: I64) -> None:
        self.store = store
        self._loops, self._degrees = Growing(loops), Growing(degrees)

    def host_loops(self) -> I64:
        """Return the weight of each vertex's loop."""
        return self._loops.items

    def host_degrees(self) -> I64:
        """Return the weighted degree of each vertex."""
        return self._degrees.items

    def find(self, u: U32, v: U32) -> I64:
        """Return the weight of each edge, 0 where there is none."""
        return weights_before(self.store, self._loops.items, u, v)

    def net(
        self, columns: dict[str, Any], duplicates: str | None, limits: Limits, *,
        refuse_missing: bool,
    ) -> EdgeChanges:  # fmt: skip
        """Return what a batch changes."""
        batch = read_batch(**columns, duplicates=duplicates, limits=limits)
        return net_changes(batch, self.store, self._loops.items, refuse_missing=refuse_missing)

    def reserve(self, edges: EdgeChanges) -> Any:
        """Take the memory that changes need."""
        arcs = arc_changes(edges)
        return arcs, self.store.reserve(arcs)

    def commit(self, edges: EdgeChanges, reserved: Any) -> None:
        """Carry changes out."""
        arcs, held = reserved
        self.store.commit(arcs, held)
        degrees = self._degrees.items
        net.add_at(degrees, arcs.rows, arcs.gains)
        if edges.loops:
            same = edges.u == edges.v
            rows, after = edges.u[same], edges.after[same]
            self._loops.items[rows] = after
            degrees[rows] += 2 * (after - edges.before[same])

    def add_vertices(self, count: int) -> None:
        """Append vertices without edges: all of them, or none."""
        for array in (self._loops, self._degrees):
            array.reserve(count)
        self.store.add_vertices(count)
        for array in (self._loops, self._degrees):
            array.extend(count, 0)

    def drop_vertices(self, count: int) -> None:
        """Remove the last vertices, which have no edges."""
        for array in (self._loops, self._degrees):
            array.drop(count)
        self.store.drop_vertices(count)

    def mark_alive(self, ids: U32, alive: int) -> None:
        """Record nothing: the graph knows."""

    def errors(self) -> AbstractContextManager[None]:
        """Return a block in which nothing is done."""
        return nullcontext()
