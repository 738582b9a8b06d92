"""What a batch changes, computed on a device: a few kernels list, sort and net its operations.

The host waits once, for the counts: all that it decides on comes with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from louvain_um.dynamic.batches.batch import (
    Columns,
    Limits,
    columns_of,
    read_batch,
    refuse_options,
    unit_weight,
)
from louvain_um.dynamic.batches.changes import refuse_absent, refuse_below_zero, refuse_heavy
from louvain_um.errors import GraphError
from louvain_um.gpu.dynamic.batch_arrays import COUNTS, MOST_LISTED, batch_struct, scratch_places
from louvain_um.gpu.runtime.launch import Struct

TYPES: Final = {np.dtype(code): i for i, code in enumerate(("u4", "i4", "u8", "i8", "f4", "f8"))}
"""`Column` of batches.cu; columns of other types are copied."""

MOST_SORTED_HERE: Final = 1 << 18
"""Arcs that `sort_keys` sorts; CuPy's radix sort is faster for more."""

EDGE_BYTES: Final = 24
"""Of a change: both ends, and weights before and after."""

NO_ARC: Final = np.uint64(2**64 - 1)
"""Sorted behind every arc; see batch.cuh."""

MOST_WEIGHT: Final = 1 << 42
"""Weights given in all, at most, in units of 2^20: their sums fit 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceChanges:
    """What a batch changes, on a device; `DeviceStore.commit` fills `u` … `after`."""

    edges: Any
    counts: dict[str, int]
    batch: Struct | None = None
    held: tuple[Any, ...] = ()
    directed: bool = False

    @property
    def before(self) -> Any:
        """Weight of each edge before, int64[k]."""
        return self._column(0, np.int64)

    @property
    def after(self) -> Any:
        """Weight of each edge after, int64[k]."""
        return self._column(8, np.int64)

    @property
    def u(self) -> Any:
        """Smaller end of each edge, uint32[k], ascending."""
        return self._column(16, np.uint32)

    @property
    def v(self) -> Any:
        """Larger end of each edge, uint32[k]."""
        return self._column(20, np.uint32)

    @property
    def missing(self) -> int:
        """Edges to delete or decrease that are not there."""
        return self.counts["missing"]

    @property
    def gain(self) -> int:
        """Weight that the graph gains, all arcs."""
        gained = (self.counts["gain_high"] << 20) + self.counts["gain_low"]
        return gained if self.directed else 2 * gained

    def _column(self, begin: int, dtype: Any) -> Any:
        """Return the column behind those that take `begin` bytes of an edge."""
        count = self.counts["edges"]
        return self.edges[count * begin : count * (begin + np.dtype(dtype).itemsize)].view(dtype)


def net_changes_there(
    columns: dict[str, Columns | None],
    duplicates: str | None,
    store: Any,
    limits: Limits,
    *,
    refuse_missing: bool,
) -> DeviceChanges:
    """Return what a batch changes, in arrays on the store's device."""
    refuse_options(columns["decrease"], duplicates, limits)
    kinds = {"delete": "none", "decrease": "needed", "insert": "allowed"}
    parts = {
        what: columns_of(what, columns[what], limits, weights=weights)
        for what, weights in kinds.items()
    }
    sizes = {what: len(part[0]) if part else 0 for what, part in parts.items()}
    listed = sum(sizes.values())
    if listed > MOST_LISTED:
        raise GraphError(f"a batch of {listed:,} edges; at most {MOST_LISTED:,}: split it")
    xp, device = store.xp, store.device
    if listed == 0:
        return _changes(store, dict.fromkeys(COUNTS.names or (), 0))
    one = unit_weight(limits.scale) if limits.weighted else 1
    summing = limits.weighted if duplicates is None else duplicates == "sum"
    weighs = one != 1 or any(part is not None and part[2] is not None for part in parts.values())
    same = sizes["insert"] == listed and not weighs and not summing
    same |= sizes["delete"] == listed
    given = xp.empty(listed, np.int64) if weighs and not same else None
    arcs = listed + listed % 2 if limits.directed else 2 * listed
    keys = xp.empty(arcs, np.uint64)
    if arcs > listed and limits.directed:
        keys[-1:] = NO_ARC
    device.clear(store.counts)
    first = 0
    for part in parts.values():
        if part is not None and len(part[0]):
            u, v, w = (_plain(xp, column) for column in part)
            device.launch(
                "batches", "key_edges", "", len(u), np.int64(len(u)), u, _type(u), v, _type(v), w,
                _type(w), np.int64(one), np.int64(limits.n_vertices),
                store.alive if limits.alive is not None else None, np.float64(limits.scale),
                np.int64(limits.directed), np.int64(first), np.int64(listed), keys, given,
                store.counts,
            )  # fmt: skip
            first += len(u)
    places, size = scratch_places(
        listed, limits.n_vertices, store.n_arcs, weighted=store.weights is not None,
        ordered=not same, paged=store.paged,
    )  # fmt: skip
    scratch = xp.empty(size, np.uint8)
    base, at = device.address(scratch), device.address
    order = None
    if arcs <= MOST_SORTED_HERE:
        order = None if same else xp.empty(arcs, np.int64)
        # These places are written later.
        spare, spare_order = (np.uint64(base + places[name]) for name in ("places", "less"))
        device.launch(
            "batches", "sort_keys", "", arcs, np.int64(arcs), keys, spare, order,
            None if same else spare_order, store.counts,
        )  # fmt: skip
    elif same:
        keys.sort()
    else:
        order = xp.argsort(keys)
        keys = keys[order]
    batch = batch_struct(
        keys=at(keys), order=at(order), given=at(given), listed=arcs // 2,
        deletions=sizes["delete"], decreases=sizes["delete"] + sizes["decrease"],
        summing=int(summing), **store.batch_fields(),
        **{name: base + place for name, place in places.items()},
    )  # fmt: skip
    device.launch("batches", "net_batch", store.types, arcs, batch)
    counts = store.read_counts()
    if counts["faults"] or counts["weight"] >= MOST_WEIGHT:
        on_host = replace(limits, xp=np)
        read_batch(**columns, duplicates=duplicates, limits=on_host)
        raise GraphError("the weights of the batch add up to more than 2^62; split it")
    keep = keys, order, given, scratch
    if counts["first_fault"]:
        _refuse_fault(store, keep, arcs - counts["first_fault"], places)
    if refuse_missing and counts["missing"]:
        absent = arcs - counts["first_absent"]
        refuse_absent(int(keys[absent]), counts["missing"])
    return _changes(store, counts, batch, keep)


def _changes(
    store: Any, counts: dict[str, int], batch: Struct | None = None, held: tuple[Any, ...] = ()
) -> DeviceChanges:
    """Return changes with room for the edges."""
    edges = counts["edges"]
    return DeviceChanges(
        edges=store.xp.empty(EDGE_BYTES * edges, np.uint8),
        counts=counts,
        batch=batch if edges else None,
        held=held,
        directed=store.directed,
    )


def _plain(xp: Any, column: Any) -> Any:
    """Return a column on the device, of a type that kernels read."""
    if column is None or (isinstance(column, xp.ndarray) and _read_as_it_is(column)):
        return column
    if column.dtype not in TYPES:
        column = column.astype(np.float64 if column.dtype.kind == "f" else np.int64)
    return xp.ascontiguousarray(xp.asarray(column))


def _read_as_it_is(column: Any) -> bool:
    return column.dtype in TYPES and column.flags.c_contiguous


def _type(column: Any) -> np.int64:
    return np.int64(0 if column is None else TYPES[column.dtype])


def _refuse_fault(store: Any, held: tuple[Any, ...], place: int, places: dict[str, int]) -> None:
    """Raise for the first edge that would be below zero or too heavy."""
    keys, order, _, scratch = held
    key = int(keys[place])
    wide = np.int64 if store.weights is not None else np.int8

    def entry(name: str, dtype: Any) -> int:
        begin = places[name] + place * np.dtype(dtype).itemsize
        return int(scratch[begin : begin + np.dtype(dtype).itemsize].view(dtype)[0])

    if order is not None:
        before, less = entry("old", wide), entry("less", np.int64)
        before = ~before if before < 0 else before  # of a loop
        deleted = entry("asked", np.uint32) & 1
        if less > before > 0 and not deleted:
            refuse_below_zero(key, before, less)
    refuse_heavy(key)
