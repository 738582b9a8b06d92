"""Counts on the host: for each array a map of pages × time, of bounded size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session import PageMap

U32 = NDArray[np.uint32]
MOST = np.iinfo(np.uint32).max


class Maps:
    """Maps of arrays by name; what an array's namesakes counted before is added to its own."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.found: dict[str, tuple[int, U32]] = {}
        self.saturated = False

    def add(self, name: str, shift: int, counts: NDArray[Any]) -> None:
        """Add counts [rows, bins] of pages of 2**shift bytes."""
        counts = self._narrow(counts)
        known = self.found.get(name)
        if known is not None:
            coarse = max(shift, known[0])
            few, many = sorted(
                (self._join(*known, coarse), self._join(shift, counts, coarse)), key=len
            )
            sums = many[: len(few)] + few
            over = sums < few
            if over.any():
                self.saturated = True
                sums[over] = MOST
            many[: len(few)] = sums
            shift, counts = coarse, many
        self.found[name] = shift, counts
        while sum(counts.nbytes for _, counts in self.found.values()) > self.nbytes:
            largest = max(self.found, key=lambda each: self.found[each][1].size)
            shift, counts = self.found[largest]
            if len(counts) < 2:
                break
            self.found[largest] = shift + 1, self._join(shift, counts, shift + 1)

    def fold(self) -> None:
        """Join bins in pairs; the second half is left empty."""
        for name, (shift, counts) in self.found.items():
            pairs = counts[:, ::2].astype(np.uint64) + counts[:, 1::2]
            folded = np.zeros_like(counts)
            folded[:, : pairs.shape[1]] = self._narrow(pairs)
            self.found[name] = shift, folded

    def page_maps(self, edges: NDArray[np.int64]) -> tuple[PageMap, ...]:
        """Return the maps, cut to the bins from the first to the last that counted anything."""
        used = [np.flatnonzero(counts.any(axis=0)) for _, counts in self.found.values()]
        begin = min((int(bins[0]) for bins in used if len(bins)), default=0)
        end = max((int(bins[-1]) + 1 for bins in used if len(bins)), default=begin)
        return tuple(
            PageMap(
                array=name,
                page_bytes=1 << shift,
                edges=edges[begin : end + 1],
                counts=np.ascontiguousarray(counts[:, begin:end]),
            )
            for name, (shift, counts) in self.found.items()
        )

    def _join(self, shift: int, counts: U32, coarse: int) -> U32:
        """Return counts of pages of 2**coarse bytes."""
        if shift == coarse:
            return counts
        starts = np.arange(0, len(counts), 1 << (coarse - shift))
        return self._narrow(np.add.reduceat(counts, starts, axis=0, dtype=np.uint64))

    def _narrow(self, counts: NDArray[Any]) -> U32:
        """Return counts in 32 bits; one that is too large is noted and cut."""
        if counts.dtype == np.uint32:
            return counts
        if counts.size and counts.max() > MOST:
            self.saturated = True
            counts = np.minimum(counts, MOST)
        return counts.astype(np.uint32)
