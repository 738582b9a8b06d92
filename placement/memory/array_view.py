"""CuPy arrays over memory that CuPy did not allocate."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike


class OnDevice(Protocol):
    """Memory that belongs to a device."""

    device: int


def view(address: int, shape: int, dtype: DTypeLike, memory: OnDevice, owner: object = None) -> Any:
    """Return a one-dimensional CuPy array at an address; it keeps `owner`, or `memory`, alive.

    Parameters
    ----------
    address : int
    shape : int
        Elements.
    dtype : dtype
    memory : Arena, Span or another range of addresses
        What the address lies in.
    owner : object, optional
    """
    import cupy

    kind = np.dtype(dtype)
    nbytes = max(shape * kind.itemsize, 1)
    unowned = cupy.cuda.UnownedMemory(address, nbytes, owner or memory, memory.device)
    return cupy.ndarray((shape,), kind, cupy.cuda.MemoryPointer(unowned, 0))
