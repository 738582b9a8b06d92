"""What a store does: hold the arcs of a changing graph, and take the net changes of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.cpu.dynamic.contiguous import RowChanges, Rows
from louvain_um.errors import MemoryBudgetError

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

BINS: Final = 1024
"""Parts of equally many rows that random lengths are worked out for."""

T = TypeVar("T", bound=np.generic)


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
    def arrays(self) -> RowChanges:
        """What kernels take."""
        return RowChanges(self.rows, self.starts, self.keys, self.before, self.after)


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowLengths:
    """The lengths of all rows, each with how many rows have it.

    Parameters
    ----------
    lengths : int64[k]
    counts : int64[k]

    Examples
    --------
    >>> from louvain_um.dynamic.stores.store import RowLengths
    >>> rows = RowLengths.of([3, 0, 3, 2])
    >>> rows.vertices, rows.arcs, rows.held, rows.total(-(-rows.lengths // 2))
    (4, 8, 3, 5)
    """

    lengths: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, lengths: ArrayLike) -> Self:
        """Return the lengths of rows that are listed, int64[n]."""
        values, counts = np.unique(np.asarray(lengths, np.int64), return_counts=True)
        return cls(lengths=values, counts=counts.astype(np.int64))

    @classmethod
    def random(cls, vertices: int, arcs: int) -> Self:
        """Return lengths that are exponentially distributed, as unequal as a guess can be.

        Each of up to 1,024 parts of the rows, by length, has its share of the arcs evenly.
        """
        bins = min(vertices, BINS)
        if not bins:
            return cls.of([])
        rank = np.arange(bins + 1) / bins
        rest = 1 - rank[:-1]
        share = np.append(rank[:-1] + rest * np.log(rest), 1.0)  # the Lorenz curve
        rows = np.diff(np.arange(bins + 1) * vertices // bins)
        held = np.diff(np.rint(share * arcs).astype(np.int64))
        low, longer = held // rows, held % rows
        return cls(lengths=np.append(low, low + 1), counts=np.append(rows - longer, longer))

    @property
    def vertices(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    @property
    def held(self) -> int:
        """Number of rows with arcs."""
        return self.total(self.lengths > 0)

    @property
    def arcs(self) -> int:
        """Arcs of all rows."""
        return self.total(self.lengths)

    def total(self, values: ArrayLike) -> int:
        """Return the sum over all rows of a value for each length."""
        return int((self.counts * np.asarray(values)).sum())

    def grown(self, factor: float) -> Self:
        """Return rows that are so many times as long, rounded up."""
        lengths = np.ceil(self.lengths * factor).astype(np.int64)
        return type(self)(lengths=lengths, counts=self.counts)


class Growing(Generic[T]):
    """An array with room behind its end, so that growing copies each item a few times at most."""

    __slots__ = ("_room", "items")

    def __init__(self, items: NDArray[T]) -> None:
        self._room = self.items = items

    def __reduce__(self) -> tuple[Any, ...]:
        # Separate copies of `items` and of the room would share no memory.
        return type(self), (self.items,)

    def reserve(self, count: int, places: int | None = None) -> None:
        """Make room for `count` more items: by default a quarter more than needed, or `places`."""
        size = len(self.items) + count
        if size > len(self._room):
            self._room = longer(self.items, places or size + size // 4)
            self.items = self._room[: len(self.items)]

    def extend(self, count: int, values: Any) -> None:
        """Append `count` items: an array, or one value for all."""
        self.reserve(count)
        old, size = len(self.items), len(self.items) + count
        self._room[old:size] = values
        self.items = self._room[:size]

    def drop(self, count: int) -> None:
        """Remove the last `count` items."""
        self.items = self.items[: len(self.items) - count]


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


def afford(budget: int | None, arc_bytes: int, row_bytes: int) -> None:
    """Raise a MemoryBudgetError if arcs and rows are beyond a budget."""
    needed = arc_bytes + row_bytes
    if budget is not None and needed > budget:
        parts = [("arcs", arc_bytes), ("rows", row_bytes)]
        remedy = "raise device_budget, or delete edges and compact()"
        raise MemoryBudgetError(needed, budget, parts, remedy)


def given(weights: Weights | None) -> Weights:
    """Return weights as kernels take them: empty where each is 1."""
    return EMPTY_U32 if weights is None else weights


def longer(array: NDArray[Any], size: int, dtype: Any = None) -> NDArray[Any]:
    """Return a copy with room for so many items."""
    grown = np.empty(size, dtype or array.dtype)
    grown[: len(array)] = array
    return grown


def offsets_of(lengths: Any) -> I64:
    """Return where rows of these lengths begin, and their sum."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
