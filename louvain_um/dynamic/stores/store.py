"""What a store does: hold the arcs of a changing graph, and take the net changes of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.stores.row_lengths import RowLengths

EMPTY_U32 = np.zeros(0, np.uint32)
EMPTY_I64 = np.zeros(0, np.int64)
EMPTY_U64 = np.zeros(0, np.uint64)

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
Weights = NDArray[np.uint32] | NDArray[np.int64]

NARROW = 2**32
"""Weights below this fit uint32."""

ROW_BYTES: Final = 17
"""Bytes of a row's begin, end and class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArcChanges:
    """The arcs that a batch changes, in the order of their keys, cut by row.

    Parameters
    ----------
    keys : uint64[a]
        Row in the upper, target in the lower half; ascending, without repetition or loops.
    before, after : int64[a]
        Weights, 0 where there is no arc; they differ.
    rows : uint32[r]
        Rows touched, ascending.
    starts : int64[r + 1]
        Where each row's changes begin in `keys`.
    growth, gains : int64[r]
        Arcs and weight that each row gains.
    heaviest : int
        Largest new weight.
    arcs : int
        Arcs gained by all rows.
    """

    keys: NDArray[np.uint64]
    before: I64
    after: I64
    rows: U32
    starts: I64
    growth: I64
    gains: I64
    heaviest: int
    arcs: int

    @property
    def arrays(self) -> tuple[U32, I64, NDArray[np.uint64], I64, I64]:
        """Rows, starts, keys, before and after: what kernels take."""
        return self.rows, self.starts, self.keys, self.before, self.after


NO_CHANGES = ArcChanges(
    keys=EMPTY_U64, before=EMPTY_I64, after=EMPTY_I64, rows=EMPTY_U32, starts=np.zeros(1, np.int64),
    growth=EMPTY_I64, gains=EMPTY_I64, heaviest=0, arcs=0,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Arcs as compressed rows, in arrays of their own; see `Graph`."""

    offsets: I64
    targets: U32
    weights: Weights | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Contiguous ascending rows as they lie in a store; see `louvain_um.graph.row_view.RowView`."""

    begins: I64
    ends: I64
    targets: U32
    weights: Weights | None


class Store(Protocol):
    """The arcs of an undirected graph, without loops, in the rows of both ends.

    `reserve` takes all memory that a batch will need, or raises and leaves the contents as they
    were; `commit` cannot fail. Weights are None in an unweighted store.
    """

    name: ClassVar[str]
    n_arcs: int
    budget: int | None
    moved_bytes: int
    """Bytes of rows that batches copied from one place to another, in all."""

    def __init__(self, rows: Compressed, threads: int, budget: int | None) -> None:
        """Build a store from compressed rows, within `budget` bytes."""

    @classmethod
    def sizes(cls, rows: RowLengths, item: int) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""

    def find(self, u: U32, v: U32) -> I64:
        """Return the weight of each arc u → v, int64[b]; 0 where there is none."""

    def reserve(self, changes: ArcChanges) -> Any:
        """Take the memory that a batch needs; return what `commit` takes.

        Raises
        ------
        MemoryBudgetError
            The batch does not fit.
        """

    def commit(self, changes: ArcChanges, reserved: Any) -> None:
        """Carry a batch out."""

    def add_vertices(self, count: int) -> None:
        """Append rows without arcs."""

    def drop_vertices(self, count: int) -> None:
        """Remove the last rows, which have no arcs."""

    def arcs_of(self, ids: U32) -> tuple[U32, U32]:
        """Return source and target of all arcs of some vertices."""

    def rows(self) -> Rows | None:
        """Return the rows where they lie; None for a store that keeps them otherwise."""

    def compressed(self) -> Compressed:
        """Return a copy as compressed rows."""

    def traverse(self) -> int:
        """Return the sum of all targets, read where they lie."""

    def compact(self) -> None:
        """Drop unused places."""

    def check(self) -> None:
        """Raise AssertionError unless the store's own structure is sound."""

    @property
    def live_bytes(self) -> int:
        """Bytes of the arcs themselves."""

    @property
    def held_bytes(self) -> int:
        """Bytes that arcs occupy or occupied, free places included."""

    @property
    def row_bytes(self) -> int:
        """Bytes of what finds the rows."""
