"""Rows of a graph on the device, as kernels take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime import structs
from louvain_um.gpu.runtime.structs import Struct, layout, pointers
from louvain_um.placement.hardware import PAGE
from louvain_um.placement.program.blocking import Slice

STATE_WORDS: Final = 8
"""Of the control block, for barriers and counters; partial sums of blocks follow."""

CONTROL_WORDS: Final = 2048
"""Of the control block. An H200 holds 1,056 blocks of so many threads at once."""

NULL: Final = np.uint64(0)

FIELDS: Final = {"n": np.int64, **pointers("begins", "ends", "targets", "weights")}
ROW_VIEW: Final = layout(**FIELDS)
"""`RowView` of row_view.cuh."""

HOST_ROWS: Final = layout(**FIELDS, pages=np.uint32, group_bytes=np.uint32)
"""`HostRows` of host_rows.cuh."""

LINKED_ROWS: Final = layout(**FIELDS, linked=np.int64)
"""`LinkedRows` of linked_rows.cuh."""

LISTS: Final = "firsts", "places", "owners"
LISTED_ROWS: Final = layout(**FIELDS, linked=np.int64, **pointers(*LISTS))
"""`ListedRows` of linked_rows.cuh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRows:
    """The rows of a graph in the memory of the current device, or slices of them that `bring`."""

    begins: Any
    ends: Any
    targets: Any
    weights: Any
    loops: Any
    n_arcs: int
    total_weight: int
    pages: int = 0
    on_demand: bool = False
    linked: int = 0
    """How rows are linked, for kernels that walk them; 0 for contiguous rows."""
    lists: tuple[Any, ...] = ()
    """The blocks of a frontier's linked rows, for `ListedRows`."""
    slices: tuple[Slice, ...] = ()
    bring: Callable[[Slice, tuple[str, ...]], int] | None = None

    def parts(self, *names: str) -> Iterator[tuple[KernelRows, int]]:
        """Yield rows for each launch, with these arrays on the device, and where they begin."""
        if self.bring is None:
            yield self, 0
            return
        for part in self.slices:
            arc, rows = self.bring(part, names), slice(part.begin, part.end)
            yield replace(
                self, begins=self.begins[rows], ends=self.ends[rows],
                targets=shifted(self.targets, arc), weights=shifted(self.weights, arc),
                loops=from_row(self.loops, part.begin), bring=None,
            ), part.begin  # fmt: skip

    def arrived(self) -> KernelRows:
        """Return the rows after a pass over all: what came on demand is on the device now."""
        return replace(self, pages=0) if self.on_demand else self

    @classmethod
    def of(cls, graph: DeviceGraph) -> KernelRows:
        """Return a view of a graph's compressed rows."""
        return cls(
            begins=graph.offsets[:-1],
            ends=graph.offsets[1:],
            targets=graph.targets,
            weights=graph.weights,
            loops=graph.loops,
            n_arcs=graph.n_arcs,
            total_weight=graph.total_weight,
        )

    @property
    def n_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        return len(self.begins)

    @property
    def types(self) -> str:
        """The type of weights, as kernels are named by it."""
        if self.weights is None:
            return "Unweighted"
        return "u32" if self.weights.itemsize == 4 else "u64"

    @property
    def kind(self) -> str:
        """Of rows, as kernels are named by it that are made for rows in host memory, too."""
        if self.lists:
            return "ListedRows"
        return "HostRows" if self.pages else "LinkedRows" if self.linked else "RowView"

    @property
    def anywhere(self) -> KernelRows:
        """Return the same rows for kernels that read all memory alike."""
        return replace(self, pages=0)

    def argument(self, *, weighted: bool = True) -> Any:
        """Return the structure that kernels take of rows of this kind."""
        fields = {
            "n": self.n_vertices,
            "begins": self.begins,
            "ends": self.ends,
            "targets": self.targets,
            "weights": self.weights if weighted else None,
        }
        if self.lists:
            lists = dict(zip(LISTS, self.lists, strict=True))
            return Struct(LISTED_ROWS, **fields, linked=self.linked, **lists).argument
        if self.linked:
            return Struct(LINKED_ROWS, **fields, linked=self.linked).argument
        if not self.pages:
            return Struct(ROW_VIEW, **fields).argument
        mean = 4 * 32 * self.n_arcs // max(1, self.n_vertices)
        blocking = {"pages": self.pages, "group_bytes": min(max(1, mean), PAGE)}
        return Struct(HOST_ROWS, **fields, **blocking).argument

    @property
    def loops_argument(self) -> Any:
        """Return the loops, or a null pointer."""
        return NULL if self.loops is None else self.loops


class Shifted(int):
    """The address at which item 0 would be, of an array that begins with a later one."""

    itemsize: int


def shifted(array: Any, first: int) -> Shifted | None:
    """Return where item 0 of an array would be that begins with this item; None for none."""
    if array is None:
        return None
    found = Shifted(structs.address(array) - first * array.itemsize)
    found.itemsize = array.itemsize
    return found


def from_row(array: Any, first: int) -> Any:
    """Return an array from this item on; None for none."""
    return array[first:] if first and array is not None else array
