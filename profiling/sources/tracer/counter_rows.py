"""Assignment of counters to arrays: rows of a table, allocated and freed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.memory.free_list import GRAIN as UNIT
from louvain_um.placement.memory.free_list import FreeList
from louvain_um.profiling.sources.tracer.state import COPIES, RANGE, RANGES, USES

U64 = NDArray[np.uint64]

SPREAD: Final = 1024
"""Counters of an array with fewer pages, as copies of its rows."""

NOWHERE: Final = 63
"""log2 of the bytes of the largest page: all addresses outside arrays share one."""


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
        """Return the live arrays that share bytes with a stretch."""
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
