"""How long rows are: what the memory of a store depends on before there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

BINS: Final = 1024
"""Parts of equally many rows that random lengths are worked out for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowLengths:
    """The lengths of all rows, each with how many rows have it.

    Parameters
    ----------
    lengths : int64[k]
    counts : int64[k]

    Examples
    --------
    >>> from louvain_um.dynamic.stores.row_lengths import RowLengths
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
