"""Copies between ordinary host memory and a device, by several threads side by side.

The bus takes page-locked memory alone at its full rate, and one thread copies more slowly than the
bus sends. So each thread has a page-locked buffer, through which it takes piece after piece;
while one thread's piece is sent, the others fill or empty theirs.
"""

from __future__ import annotations

import ctypes
from concurrent.futures import Future, wait
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.memory import cuda_calls, host

PIECE: Final = 4 << 20
"""Bytes of each thread's buffer: large enough that starting a copy takes little of its time."""

MOST_THREADS: Final = 8
"""More threads fill buffers no faster than the bus takes them."""

LEAST: Final = 8 << 20
"""Bytes below which CUDA's own copy is as fast."""

FREE: Final = list[host.PageLocked]()
"""Buffers for all threads of a copy, kept for the next: making them takes as long as filling them
many times. There are as many as copies ever ran at once."""


def to_device(target: int, source: int, nbytes: int) -> None:
    """Copy ordinary host memory to the current device; returns when the values are there."""
    _copy(target, source, nbytes, up=True)


def to_host(target: int, source: int, nbytes: int) -> None:
    """Copy memory of the current device to ordinary host memory; returns when it is there."""
    _copy(target, source, nbytes, up=False)


def sent(values: NDArray[Any]) -> Any:
    """Return a CuPy array of the current device with the values of one in host memory."""
    import cupy

    if values.nbytes < LEAST or not values.flags.c_contiguous:
        return cupy.asarray(values)
    array = cupy.empty(values.shape, values.dtype)
    cuda_calls.synchronize()  # its memory may have been another array's
    to_device(array.data.ptr, values.ctypes.data, values.nbytes)
    return array


def fetched(array: Any) -> NDArray[Any]:
    """Return the values of a CuPy array in ordinary host memory."""
    if array.nbytes < LEAST or not array.flags.c_contiguous:
        found: NDArray[Any] = array.get()
        return found
    values = np.empty(array.shape, array.dtype)
    with cuda_calls.current(array.device.id):
        cuda_calls.synchronize()
        to_host(values.ctypes.data, array.data.ptr, values.nbytes)
    return values


def _copy(target: int, source: int, nbytes: int, *, up: bool) -> None:
    threads = min(MOST_THREADS, host.threads_for(nbytes, PIECE))
    if nbytes < LEAST or threads <= 1:
        cuda_calls.copy(target, source, nbytes)
        return
    device, buffers = cuda_calls.current_device(), _buffers()
    if buffers is None:
        cuda_calls.copy(target, source, nbytes)
        return
    running = list[Future[None]]()
    try:
        for number in range(threads):
            buffer = buffers.address + number * PIECE
            running.append(
                host.pool().submit(
                    _pieces, number, threads, buffer, target, source, nbytes, device, up
                )
            )
        wait(running)
    finally:
        # Until all have ended, buffers and target are in use, even if one failed.
        _end(running)
        FREE.append(buffers)
    for each in running:
        each.result()


def _end(running: list[Future[None]]) -> None:
    """Wait until all have ended; being interrupted does not shorten that."""
    while True:
        try:
            wait(running)
            return
        except KeyboardInterrupt:
            continue


def _buffers() -> host.PageLocked | None:
    """Return buffers that no other copy uses; None if there is no memory for them."""
    try:
        return FREE.pop()
    except IndexError:
        pass
    try:
        return host.PageLocked(MOST_THREADS * PIECE)
    except (MemoryError, cuda_calls.CudaError):
        return None


def _pieces(
    first: int, step: int, buffer: int, target: int, source: int, nbytes: int, device: int, up: bool
) -> None:
    """Copy every so many-th piece through a buffer."""
    with cuda_calls.current(device):
        stream = cuda_calls.new_stream()
        try:
            for begin in range(first * PIECE, nbytes, step * PIECE):
                count = min(PIECE, nbytes - begin)
                if up:
                    ctypes.memmove(buffer, source + begin, count)
                    cuda_calls.copy_later(target + begin, buffer, count, stream)
                else:
                    cuda_calls.copy_later(buffer, source + begin, count, stream)
                cuda_calls.wait_for(stream)
                if not up:
                    ctypes.memmove(target + begin, buffer, count)
        finally:
            cuda_calls.drop_stream(stream)
