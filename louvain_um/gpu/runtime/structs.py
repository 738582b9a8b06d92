"""C structures that kernels take by value: their layouts, and how they are filled.

`static_assert` on the device and `tests/gpu_host/test_mirrors.py` hold both sides equal.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["Struct", "address", "layout", "pointers"]

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


class Struct:
    """A structure that kernels take by value.

    Parameters
    ----------
    layout : dtype
    values
        One per field: a number, an array on the device for its address, or None for null.

    Attributes
    ----------
    argument : void[()]
        What a kernel takes. It is plain bytes, because CuPy would look at every field of a
        structured value at each launch.
    """

    __slots__ = ("argument", "record")

    def __init__(self, layout: np.dtype[Any], **values: Any) -> None:
        if values.keys() != set(layout.names or ()):
            raise TypeError(f"fields {sorted(values)} do not fit {layout.names}")
        self.record = np.zeros(1, layout)
        self.argument = self.record.view(np.dtype((np.void, layout.itemsize))).reshape(())
        self.set(**values)

    def set(self, **values: Any) -> None:
        """Set some fields; the next launch takes them."""
        for name, value in values.items():
            self.record[name] = value if isinstance(value, NUMBERS) else address(value)


def address(array: Any) -> int:
    """Return the address of an array on the device; 0 for None."""
    return 0 if array is None else int(array.data.ptr)
