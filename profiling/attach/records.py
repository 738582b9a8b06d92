"""What the library wrote: records of one process, by kind; those that are whole are read."""

from __future__ import annotations

import struct
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import LouvainUmError


class Record(IntEnum):
    """Kinds of records, as `inject.c` numbers them."""

    PROCESS = 1
    STACK = 2
    ALLOC = 3
    FREE = 4
    COPY = 5
    SET = 6
    ADVISE = 7
    PREFETCH = 8
    NAME = 9
    LAUNCH = 10
    COUNTER = 11
    KERNEL = 12
    NOTE = 13
    REFUSED = 14
    PLACED = 15
    STREAM = 16
    END = 17
    COUNTED = 18
    TRACED = 19
    COUNTS = 20
    TAKEN = 21
    MORE = 255


MEMORY: Final = ("managed", "device", "pinned", "pool")
"""Kinds of memory, as `inject.c` numbers them."""

MAGIC: Final = 0x31484341545441
SLOT: Final = np.dtype(
    [("kind", "<u2"), ("more", "<u2"), ("thread", "<u4"), ("time", "<u8"), ("a", "<u8"),
     ("b", "<u8"), ("c", "<u8"), ("d", "<i4"), ("e", "<i4"), ("f", "<i4"), ("g", "<i4"),
     ("h", "<u8")]
)  # fmt: skip
PAYLOAD: Final = 56
"""Bytes of data of each slot after a record's first."""

ADDRESS: Final = (1 << 56) - 1
"""Bits of a launch's argument that are the array's address; those above number the argument."""


class Records:
    """The records of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        raw = np.fromfile(path, np.uint8)
        slots = raw[: len(raw) // SLOT.itemsize * SLOT.itemsize].view(SLOT)
        begun = np.flatnonzero(slots["kind"])
        self.slots = slots[: int(begun[-1]) + 1] if len(begun) else slots[:0]
        if not len(self.slots) or self.slots["a"][0] != MAGIC:
            raise LouvainUmError(f"{path}: holds no records; run the program again")

    def __getitem__(self, kind: Record) -> NDArray[Any]:
        """Return the first slots of all records of a kind."""
        found: NDArray[Any] = self.slots[self._at(kind)]
        return found

    def _at(self, kind: Record) -> NDArray[np.int64]:
        return np.flatnonzero(self.slots["kind"] == kind)

    def payload(self, at: int) -> bytes:
        """Return the data that follows the slot at an index."""
        more = int(self.slots["more"][at])
        rows = self.slots[at + 1 : at + 1 + more].view(np.uint8).reshape(-1, SLOT.itemsize)
        return rows[:, SLOT.itemsize - PAYLOAD :].tobytes()

    def texts(self, kind: Record) -> dict[int, str]:
        """Return the texts of a kind by their numbers."""
        found = {}
        for at in self._at(kind).tolist():
            row = self.slots[at]
            text = self.payload(at)[: int(row["e"])]
            found[int(row["d"])] = text.decode(errors="replace")
        return found

    @cached_property
    def arguments(self) -> list[tuple[int, ...]]:
        """The arrays that each launch got: addresses, with the number of the argument above."""
        at = self._at(Record.LAUNCH)
        return [
            struct.unpack_from(f"<{many}Q", self.payload(each)) if many else ()
            for each, many in zip(at.tolist(), self.slots["f"][at].tolist(), strict=True)
        ]

    @property
    def dropped(self) -> int:
        """Records that found no room in the file, or that CUPTI lost."""
        return int(self.slots["h"][0])

    @property
    def complete(self) -> bool:
        """Whether the process ended by itself."""
        return bool(self.slots["g"][0])

    @property
    def process(self) -> int:
        """Number of the process."""
        return int(self.slots["b"][0])
