"""Values are written by the side that their bytes live on, and copied by several threads.

What lives on the host is filled by the host's threads and never goes to the device (copy
elimination); what lives on the device is copied there, or written by a kernel if the values are on
the device already.

The bus takes page-locked memory alone at its full rate, and one thread copies more slowly than the
bus sends. So each thread has a page-locked buffer, through which it takes piece after piece;
while one thread's piece is sent, the others fill or empty theirs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from louvain_um.placement.memory import advise, cuda_calls, host
from louvain_um.placement.memory.advise import Extent, PartAtSide


def fill(parts: Iterable[PartAtSide], source: Any, device: int) -> None:
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
                to_device(address, at, nbytes)
            else:
                host.copy(address, at, nbytes)
            if side == "both":
                whole = Extent(0, nbytes, side)
                advise.bring("read_mostly", address, whole, device)
        done += nbytes
    cuda_calls.synchronize()


def fetch(parts: Iterable[PartAtSide], target: NDArray[Any]) -> None:
    """Copy values out of parts of an arena: the host's threads read what lives there."""
    cuda_calls.synchronize()
    at = target.ctypes.data
    for address, nbytes, side in parts:
        if side == "host":
            host.copy(at, address, nbytes)
        elif side in ("device", "peer"):
            to_host(at, address, nbytes)
        else:
            cuda_calls.copy(at, address, nbytes)
        at += nbytes


def initialise(parts: Iterable[PartAtSide], dtype: DTypeLike, value: Any) -> None:
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


Send = Callable[[int, int, Callable[[NDArray[np.uint8]], int]], int]
"""Sends to an address what a function reads into so many bytes; returns how many it read."""


@contextmanager
def sending(nbytes: int) -> Iterator[Send | None]:
    """Give threads what sends up to so many bytes at a time to the current device as they read."""
    # None without memory for buffers. All calls must have ended before the block does.
    device, buffers = cuda_calls.current_device(), _buffers()
    if buffers is None:
        yield None
        return
    cuda_calls.synchronize()  # memory that is sent to may have been another array's
    free = SimpleQueue[tuple[int, int]]()
    streams = list[int]()

    def send(target: int, count: int, read: Callable[[NDArray[np.uint8]], int]) -> int:
        buffer, stream = free.get()
        try:
            place = (ctypes.c_uint8 * count).from_address(buffer)
            count = read(np.frombuffer(memoryview(place), np.uint8))
            with cuda_calls.current(device):
                cuda_calls.copy_later(target, buffer, count, stream)
                cuda_calls.wait_for(stream)
            return count
        finally:
            free.put((buffer, stream))

    try:
        for number in range(MOST_THREADS * PIECE // nbytes):
            streams.append(cuda_calls.new_stream())
            free.put((buffers.address + number * nbytes, streams[-1]))
        yield send
    finally:
        for stream in streams:
            cuda_calls.drop_stream(stream)
        FREE.append(buffers)


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
