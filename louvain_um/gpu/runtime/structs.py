"""C structures that kernels take by value: their layouts, and how they are filled.

`static_assert` on the device and `tests/gpu_host/test_mirrors.py` hold both sides equal.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np

__all__ = ["Struct", "address", "layout", "pointers"]

CODES: Final = {np.dtype(code).str: struct.Struct(f"={code}") for code in "bBhHiIqQfd"}
"""How a number of a NumPy type is packed. Layouts, not packing, put fields at their places."""

Packer = tuple[struct.Struct, int]

POINTER: Final = np.uint64
NUMBERS: Final = (int, float, np.generic)


def layout(**fields: Any) -> np.dtype[Any]:
    """Return the layout that a C compiler gives a structure of these fields.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.gpu.runtime.structs import layout
    >>> layout(seed=np.uint32, rate=np.float64).fields["rate"][1]
    8
    """
    return np.dtype(list(fields.items()), align=True)


def pointers(*names: str) -> dict[str, Any]:
    """Return fields that are pointers."""
    return dict.fromkeys(names, POINTER)


@cache
def packers(layout: np.dtype[Any]) -> dict[str, Packer]:
    """Return, by field, how it is packed and where it stands."""
    fields: Mapping[str, Any] = layout.fields or {}
    return {name: (CODES[field[0].str], field[1]) for name, field in fields.items()}


class Struct:
    """A structure that kernels take by value.

    Parameters
    ----------
    layout : dtype
    **values
        One per field: a number, an array on the device for its address, or None for null.

    Attributes
    ----------
    argument : void[()]
        What a kernel takes. It is plain bytes, because CuPy would look at every field of a
        structured value at each launch.
    """

    # Levels below the first take a millisecond; packing a field must not cost more than passing
    # an argument did.
    __slots__ = ("argument", "content", "fields")

    def __init__(self, layout: np.dtype[Any], **values: Any) -> None:
        self.fields = packers(layout)
        if values.keys() != self.fields.keys():
            raise TypeError(f"fields {sorted(values)} do not fit {layout.names}")
        self.content = bytearray(layout.itemsize)
        plain = np.dtype((np.void, layout.itemsize))
        self.argument = np.frombuffer(self.content, plain).reshape(())
        self.set(**values)

    def set(self, **values: Any) -> None:
        """Set some fields; the next launch takes them."""
        content, fields = self.content, self.fields
        for name, value in values.items():
            packer, at = fields[name]
            number = value if isinstance(value, NUMBERS) else address(value)
            packer.pack_into(content, at, number)

    def value(self, name: str) -> int | float:
        """Return a field: a number or an address."""
        packer, at = self.fields[name]
        value: int | float = packer.unpack_from(self.content, at)[0]
        return value


def address(array: Any) -> int:
    """Return the address of an array on the device; 0 for None."""
    return 0 if array is None else int(array.data.ptr)
