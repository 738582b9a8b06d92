"""Launching kernels: blocks, grids, scratch memory in one piece, and structures given by value.

`static_assert` on the device and `tests/gpu_host/test_mirrors.py` hold both sides of a structure
equal.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.events import Observer, announce
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.runtime.kernel_list import expression
from louvain_um.placement.hardware import ALIGNED, THREADS
from louvain_um.placement.memory.run_memory import RunMemory


class Launcher:
    """A kernel and its grid: as many blocks as the current device holds at once, or `most`."""

    # `source` is a file without ``.cu``, `front` text before it, such as a user's functor.

    __slots__ = ("blocks", "kernel")

    def __init__(
        self,
        source: str,
        name: str,
        types: str = "",
        *,
        front: str = "",
        most: int | None = None,
        observer: Observer = announce,
    ) -> None:
        if front:
            self.kernel = kernels.written(source, expression(name, types), front)
        else:
            self.kernel = kernels.get(source, name, types, observer)
        resident = kernels.resident_blocks(self.kernel, THREADS)
        self.blocks = resident if most is None else max(1, min(resident, most))

    def __call__(self, *arguments: Any, items: int | None = None) -> None:
        """Launch, with a thread per item at most; returns before the kernel has run."""
        needed = self.blocks if items is None else max(1, -(-items // THREADS))
        self.kernel((min(self.blocks, needed),), (THREADS,), arguments)


def carve(memory: RunMemory, name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the addresses of parts, of so many bytes each, of one array of scratch memory."""
    found, end = {}, 0
    for part, nbytes in sizes.items():
        found[part] = end
        end += -(-nbytes // ALIGNED) * ALIGNED
    begin = address(memory.empty(name, "scratch", end, np.uint8))
    return {part: begin + at for part, at in found.items()}


__all__ = ["COLUMNS", "Struct", "address", "column_type", "layout", "pointers"]

CODES: Final = {np.dtype(code).str: code for code in "bBhHiIqQfd"}
"""How a number of a NumPy type is packed. Layouts, not packing, put fields at their places."""

POINTER: Final = np.uint64
NUMBERS: Final = (int, float, np.generic)

COLUMNS: Final = {
    np.dtype(kind): number
    for number, kind in enumerate(
        (np.uint32, np.int32, np.uint64, np.int64, np.float32, np.float64)
    )
}
"""`Column` of columns.cuh."""


def column_type(column: Any) -> np.int64:
    """Return the type of a column of numbers as kernels take it; 0 of None."""
    return np.int64(0 if column is None else COLUMNS[column.dtype])


def layout(**fields: Any) -> np.dtype[Any]:
    """Return the layout that a C compiler gives a structure of these fields."""
    return np.dtype(list(fields.items()), align=True)


def pointers(*names: str) -> dict[str, Any]:
    """Return fields that are pointers."""
    return dict.fromkeys(names, POINTER)


class Packing(NamedTuple):
    """How the fields of a layout are packed: all at once, and each at its place."""

    whole: struct.Struct
    fields: dict[str, tuple[struct.Struct, int]]


@cache
def packing(layout: np.dtype[Any]) -> Packing:
    """Return how a layout is packed."""
    fields: Mapping[str, Any] = layout.fields or {}
    codes, end, single = [], 0, {}
    for name, (kind, at, *_) in fields.items():
        code = CODES[kind.str]
        codes.append(f"{at - end}x{code}")
        single[name] = struct.Struct(f"={code}"), at
        end = at + kind.itemsize
    return Packing(struct.Struct(f"={''.join(codes)}{layout.itemsize - end}x"), single)


class Struct:
    """A structure that kernels take by value."""

    # Levels below the first take a millisecond; packing a field must not cost more than passing
    # an argument did. Hence a whole structure at once.
    __slots__ = ("argument", "content", "fields")

    def __init__(self, layout: np.dtype[Any], **values: Any) -> None:
        whole, self.fields = packing(layout)
        if values.keys() != self.fields.keys():
            raise TypeError(f"fields {sorted(values)} do not fit {layout.names}")
        given = (values[name] for name in self.fields)
        plain = [value if type(value) is int else number(value) for value in given]
        self._hold(bytearray(whole.pack(*plain)))

    @classmethod
    def zeroed(cls, layout: np.dtype[Any], **values: Any) -> Struct:
        """Return a structure of which all other fields are zero or null."""
        found = cls.__new__(cls)
        found.fields = packing(layout).fields
        found._hold(bytearray(layout.itemsize))
        found.set(**values)
        return found

    def _hold(self, content: bytearray) -> None:
        self.content = content
        self.argument = np.frombuffer(content, f"V{len(content)}").reshape(())

    def set(self, **values: Any) -> None:
        """Set some fields; the next launch takes them."""
        for name, value in values.items():
            packer, at = self.fields[name]
            packer.pack_into(self.content, at, number(value))

    def value(self, name: str) -> int | float:
        """Return a field: a number or an address."""
        packer, at = self.fields[name]
        value: int | float = packer.unpack_from(self.content, at)[0]
        return value


def number(value: Any) -> Any:
    """Return what a field holds: a number itself, the address of an array."""
    return value if isinstance(value, NUMBERS) else address(value)


def address(array: Any) -> int:
    """Return the address of an array on the device; 0 for None."""
    return 0 if array is None else int(array.data.ptr)
