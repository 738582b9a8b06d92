"""Page touches in time order, as runs of neighbouring pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core.compiled import kernel
from louvain_um.errors import OptionError
from louvain_um.profiling.simulator.driver.constants import PAGE_BYTES, SCATTERED


class Access(IntEnum):
    """Kind of access to a page: streamed, at random, atomic, or contended atomic."""

    READ = 0
    WRITE = 1
    GATHER = 2
    SCATTER = 3
    ATOMIC = 4
    CONTENDED = 5
    BARRIER = 6


COLUMN_TYPES: Final[tuple[Any, ...]] = (np.int16, np.int64, np.int64, np.uint8, np.int64)


@dataclass(frozen=True, slots=True)
class Touches:
    """Runs of page touches.

    Parameters
    ----------
    array : int16[n]
        Index of the array that a run lies in.
    first, length : int64[n]
        First page of the run, counted from the array's beginning, and its pages.
    way : uint8[n]
        An `Access`; with 128 added, the run's pages are accessed one by one in random order.
    amount : int64[n]
        Bytes read or written on each page (streamed), or accesses to each page (at random); of a
        run in random order, the accesses to all of its pages.

    Examples
    --------
    >>> from louvain_um.profiling.simulator import Touches, Access
    >>> stream = Touches.of(0, [7, 8, 9, 3, 3], Access.GATHER)
    >>> len(stream), stream.first.tolist(), stream.length.tolist(), stream.amount.tolist()
    (2, [7, 3], [3, 1], [1, 2])
    """

    array: NDArray[np.int16]
    first: NDArray[np.int64]
    length: NDArray[np.int64]
    way: NDArray[np.uint8]
    amount: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)

    @property
    def touches(self) -> int:
        """Number of single page touches."""
        return int(np.where(self.scattered, self.amount, self.length).sum())

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """The `Access` of each run, in order or not."""
        return self.way & np.uint8(SCATTERED - 1)

    @property
    def scattered(self) -> NDArray[np.bool_]:
        """Which runs are accessed in random order."""
        return self.way >= SCATTERED

    @property
    def totals(self) -> NDArray[np.int64]:
        """Bytes (streamed), or accesses (at random), of each run."""
        return np.where(self.scattered, self.amount, self.length * self.amount)

    def check(self) -> None:
        """Raise ValueError where columns differ in length or are not of their types.

        Compiled code reads them without looking.
        """
        lengths = {getattr(getattr(self, name), "shape", None) for name in self.__slots__}
        if len(lengths) > 1 or self.first.ndim != 1:
            raise ValueError("columns of touches differ in shape")
        for name, kind in zip(self.__slots__, COLUMN_TYPES, strict=True):
            if getattr(self, name).dtype != kind:
                raise ValueError(f"column {name} of touches is not of type {np.dtype(kind)}")

    def select(self, rows: Any) -> Touches:
        """Return some of the runs, by slice, mask or index."""
        return Touches(*(getattr(self, name)[rows] for name in self.__slots__))

    @classmethod
    def from_columns(cls, *columns: NDArray[Any]) -> Touches:
        """Return touches from columns of a file, or raise ValueError if they are none."""
        touches = cls(*(np.ascontiguousarray(column) for column in columns))
        touches.check()
        return touches

    @classmethod
    def runs(
        cls,
        array: ArrayLike,
        first: ArrayLike,
        length: ArrayLike,
        way: ArrayLike = Access.READ,
        amount: ArrayLike | None = None,
    ) -> Touches:
        """Return touches from runs; single values stand for all rows.

        `amount` is a page's bytes for streamed touches and 1 for others, unless given.

        Raises
        ------
        OptionError
            A number does not fit the type of its column.
        """
        ways = np.asarray(way)
        if amount is None:
            amount = np.where(ways <= Access.WRITE, PAGE_BYTES, 1)
        given = np.atleast_1d(array, first, length, ways, np.asarray(amount))
        for name, each, kind in zip(cls.__slots__, given, COLUMN_TYPES, strict=True):
            safe = np.can_cast(each.dtype, kind)
            if not safe and each.dtype.kind in "iu" and not np.array_equal(each.astype(kind), each):
                ends = f"{np.iinfo(kind).min:,} … {np.iinfo(kind).max:,}"
                raise OptionError(remedy=f"column {name} of touches must lie in {ends}")
        shape = np.broadcast_shapes(*(each.shape for each in given))
        return cls(
            *(
                np.ascontiguousarray(each, kind)
                if each.shape == shape
                else np.full(shape, each, kind)
                for each, kind in zip(given, COLUMN_TYPES, strict=True)
            )
        )

    @classmethod
    def at_random(
        cls, array: int, first: int, length: int, way: Access, accesses: ArrayLike
    ) -> Touches:
        """Return single accesses, each of a random page of a run."""
        return cls.runs(array, first, length, int(way) | SCATTERED, accesses)

    @classmethod
    def of(
        cls,
        array: ArrayLike,
        pages: ArrayLike,
        way: ArrayLike = Access.READ,
        amount: ArrayLike | None = None,
    ) -> Touches:
        """Return touches of single pages, in time order, compressed to runs.

        Neighbouring pages touched one after the other alike become a run; the same page touched
        again at once adds up.
        """
        single = cls.runs(array, pages, 1, way, amount)
        return single if len(single) < 2 else single.compressed()

    def compressed(self) -> Touches:
        """Return the same touches in as few runs as their order allows."""
        return Touches(*compress(self.array, self.first, self.length, self.way, self.amount))


def concatenate_touches(parts: Iterable[Touches]) -> Touches:
    """Return the touches of all parts, one after the other."""
    streams = list(parts)
    if not streams:
        return Touches.runs([], [], [], np.empty(0, np.uint8), [])
    columns = zip(*((t.array, t.first, t.length, t.way, t.amount) for t in streams), strict=True)
    return Touches(*(np.concatenate(column) for column in columns))


@kernel()
def compress(array, first, length, way, amount):
    """Return the columns of `Touches` with rows merged that continue or repeat the last."""
    out_array = array.copy()
    out_first = first.copy()
    out_length = length.copy()
    out_way = way.copy()
    out_amount = amount.copy()
    last = -1
    for i in range(len(first)):
        alike = last >= 0 and array[i] == out_array[last] and way[i] == out_way[last]
        if alike and way[i] < SCATTERED:
            next_page = out_first[last] + out_length[last]
            if first[i] == next_page and amount[i] == out_amount[last]:
                out_length[last] += length[i]
                continue
            if length[i] == 1 and out_length[last] == 1 and first[i] == out_first[last]:
                out_amount[last] += amount[i]
                continue
        last += 1
        out_array[last] = array[i]
        out_first[last] = first[i]
        out_length[last] = length[i]
        out_way[last] = way[i]
        out_amount[last] = amount[i]
    end = last + 1
    return (
        out_array[:end].copy(),
        out_first[:end].copy(),
        out_length[:end].copy(),
        out_way[:end].copy(),
        out_amount[:end].copy(),
    )
