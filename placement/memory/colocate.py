"""Compute co-location: values are written by the side that their bytes live on.

What lives on the host is filled by the host's threads and never goes to the device (copy
elimination); what lives on the device is copied there through page-locked buffers, or written
by a kernel if the values are on the device already.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from louvain_um.placement.memory import advise, cuda_calls, host, staging
from louvain_um.placement.memory.advise import Extent, Part


def fill(parts: Iterable[Part], source: Any, device: int) -> None:
    """Write values into parts of an arena, one after the other."""
    here = not isinstance(source, np.ndarray)
    if not here:
        # Host threads and separate streams do not wait for running kernels by themselves.
        cuda_calls.synchronize()
    done = 0
    for address, nbytes, side in parts:
        if here:
            _write(address, nbytes, source, done)
            if side == "moving":
                # Moving bytes start on the host, on whichever side they were written.
                cuda_calls.prefetch(address, nbytes, cuda_calls.HOST)
        else:
            at = source.ctypes.data + done
            if side in ("device", "peer"):
                staging.to_device(address, at, nbytes)
            else:
                host.copy(address, at, nbytes)
            if side == "both":
                whole = Extent(0, nbytes, side)
                advise.bring("read_mostly", address, whole, device)
        done += nbytes
    cuda_calls.synchronize()


def fetch(parts: Iterable[Part], target: NDArray[Any]) -> None:
    """Copy values out of parts of an arena: the host's threads read what lives there."""
    cuda_calls.synchronize()
    at = target.ctypes.data
    for address, nbytes, side in parts:
        if side == "host":
            host.copy(at, address, nbytes)
        elif side in ("device", "peer"):
            staging.to_host(at, address, nbytes)
        else:
            cuda_calls.copy(at, address, nbytes)
        at += nbytes


def initialise(parts: Iterable[Part], dtype: DTypeLike, value: Any) -> None:
    """Set every element of parts of an arena to a value, on the side where it lives."""
    for address, nbytes, side in parts:
        if side in ("device", "peer"):
            _elements(address, nbytes, dtype).fill(value)
        else:
            host.fill(address, nbytes, dtype, value)


def copy_pages(target: int, source: int, nbytes: int, page: int, stream: int = 0) -> None:
    """Copy whole pages by the copy engine, in the order of a stream: 0 is that of the kernels."""
    behind = stream or cuda_calls.kernel_stream()
    for begin in range(0, nbytes, page):
        cuda_calls.copy_later(target + begin, source + begin, page, behind)


def _elements(address: int, nbytes: int, dtype: DTypeLike) -> Any:
    """Return a CuPy array over addresses that the current device reaches."""
    import cupy

    kind = np.dtype(dtype)
    memory = cupy.cuda.UnownedMemory(address, nbytes, None, cupy.cuda.runtime.getDevice())
    return cupy.ndarray((nbytes // kind.itemsize,), kind, cupy.cuda.MemoryPointer(memory, 0))


def _write(address: int, nbytes: int, source: Any, offset: int) -> None:
    """Let a kernel of the current device copy values: to the host at the bus's full speed."""
    values = source.view(np.uint8)[offset : offset + nbytes]
    target = _elements(address, nbytes, np.uint8)
    whole = nbytes // 16 * 16 if (address | values.data.ptr) % 16 == 0 else 0
    for begin, end, dtype in ((0, whole, np.complex128), (whole, nbytes, np.uint8)):
        if begin < end:
            _copier()(values[begin:end].view(dtype), target[begin:end].view(dtype))


@cache
def _copier() -> Any:
    import cupy

    return cupy.ElementwiseKernel("T value", "T place", "place = value", "louvain_um_place")
