"""Counters of arrays: rows of a table on the device, and maps of pages × time on the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.hardware import ALIGNED as UNIT
from louvain_um.placement.memory.arena import FreeList
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.sources.tracer.snippet import COPIES, RANGE, RANGES, USES

U64 = NDArray[np.uint64]

SPREAD: Final = 1024
"""Counters of an array with fewer pages, as copies of its rows."""

NOWHERE: Final = 63
"""log2 of the bytes of the largest page: all addresses outside arrays share one."""

U32 = NDArray[np.uint32]

MOST = np.iinfo(np.uint32).max


@dataclass(slots=True, kw_only=True)
class CountedArray:
    """An array and its counters."""

    name: str
    address: int
    nbytes: int
    row: int
    rows: int
    copies: int
    shift: int
    reported: U64 = field(default_factory=lambda: np.zeros(len(USES), np.uint64))
    until: int = 0

    @property
    def all_rows(self) -> slice:
        """Rows of all copies."""
        return slice(self.row, self.row + self.rows * self.copies)


class CounterRows:
    """Arrays, each with rows of counters, which it keeps when it is freed until they are read."""

    def __init__(self, page_bytes: int, rows: int) -> None:
        self.shift = page_bytes.bit_length() - 1
        self.free = FreeList((rows - COPIES) * UNIT)
        self.live: dict[str, CountedArray] = {}
        self.retired: list[CountedArray] = []

    def enter(self, name: str, address: int, nbytes: int) -> CountedArray | None:
        """Return the counters of a new array, None if none are left."""
        if len(self.live) == RANGES - 1:
            return None
        most = max(1, (self.free.capacity - self.free.in_use) // (2 * UNIT))
        shift = self.shift
        while True:
            rows = max(1, -(-nbytes >> shift))
            copies = self._copies(rows, most)
            taken = self.free.take(rows * copies * UNIT) if rows <= most else None
            if taken is not None:
                break
            if rows == 1:
                return None
            shift += 1
        row = COPIES + taken // UNIT
        self.live[name] = CountedArray(
            name=name,
            address=address,
            nbytes=nbytes,
            row=row,
            rows=rows,
            copies=copies,
            shift=shift,
        )
        return self.live[name]

    def _copies(self, rows: int, most: int) -> int:
        """Return how many copies to make of few rows."""
        copies = 1
        while copies < COPIES and 2 * copies * rows <= min(most, SPREAD):
            copies *= 2
        return copies

    def leave(self, name: str, now: int) -> None:
        """Stop counting for an array; its counters stay as they are."""
        gone = self.live.pop(name)
        gone.until = now
        self.retired.append(gone)

    def release(self, known: CountedArray) -> None:
        """Free the counters of an array."""
        self.free.give((known.row - COPIES) * UNIT)
        if self.live.get(known.name) is known:
            del self.live[known.name]
        else:
            self.retired.remove(known)

    @property
    def known(self) -> list[CountedArray]:
        """The arrays that have counters."""
        return [*self.retired, *self.live.values()]

    @property
    def crowded(self) -> bool:
        """Whether the counters of freed arrays take more than a quarter of all."""
        return sum(gone.rows * gone.copies for gone in self.retired) * UNIT * 4 > self.free.capacity

    def overlapping(self, address: int, nbytes: int) -> list[str]:
        """Return the live arrays that share bytes with a range."""
        end = address + max(nbytes, 1)
        return [
            known.name
            for known in self.live.values()
            if known.address < end and address < known.address + known.nbytes
        ]

    @property
    def end(self) -> int:
        """Return the row behind the last in use."""
        return max((known.all_rows.stop for known in self.known), default=COPIES)

    def pack(self) -> tuple[NDArray[Any], int]:
        """Return the table of live ranges for the device, by address, and how many there are."""
        table = np.zeros(RANGES, RANGE)
        table[0] = (0, 0, 0, NOWHERE, COPIES - 1, 1)
        live = [each for each in self.live.values() if each.nbytes]
        live.sort(key=lambda each: each.address)
        for at, each in enumerate(live, 1):
            table[at] = (
                each.address,
                each.nbytes,
                each.row,
                each.shift,
                each.copies - 1,
                each.rows,
            )
        return table, 1 + len(live)


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
