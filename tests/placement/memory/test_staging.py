import ctypes
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from fake_cuda import FakeError

from louvain_um.placement.memory import copies, cuda_calls, host
from louvain_um.placement.memory.cuda_calls import kernel_stream


@pytest.fixture
def streams(cuda, monkeypatch):
    """Copies move real bytes; the streams that are left are counted."""
    left = []

    def new(flags):
        left.append(len(left) + 1)
        return left[-1]

    monkeypatch.setattr(copies, "FREE", [])
    monkeypatch.setattr(copies, "PIECE", 1000)
    monkeypatch.setattr(copies, "LEAST", 4000)
    monkeypatch.setenv("LOUVAIN_UM_THREADS", "3")
    cuda.runtime.memcpy = lambda to, of, nbytes, _: ctypes.memmove(to, of, nbytes)
    cuda.runtime.memcpyAsync = lambda to, of, nbytes, *_: ctypes.memmove(to, of, nbytes)
    cuda.runtime.streamCreateWithFlags = new
    cuda.runtime.streamDestroy = left.remove
    return left


@pytest.mark.parametrize("way", [copies.to_device, copies.to_host])
@pytest.mark.parametrize("size", [0, 1, 3999, 4000, 4001, 123_456])
def test_every_byte_is_copied(cuda, streams, way, size):
    source = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    target = np.full(size + 1, 7, np.uint8)
    way(target.ctypes.data, source.ctypes.data, size)
    assert np.array_equal(target[:-1], source)
    assert target[-1] == 7
    assert len(cuda.alive) == len(copies.FREE) == (size >= 4000)
    assert not streams


def test_copies_at_the_same_time_have_buffers_of_their_own(cuda, streams, monkeypatch):
    values = np.arange(50_000, dtype=np.uint8)
    targets = [np.zeros_like(values) for _ in range(2)]
    make, both = copies._buffers, threading.Barrier(2, timeout=10)

    def made():
        buffers = make()
        both.wait()
        return buffers

    def copied(target):
        copies.to_device(target.ctypes.data, values.ctypes.data, len(values))

    monkeypatch.setattr(copies, "_buffers", made)
    threads = [threading.Thread(target=copied, args=[target]) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(target, values) for target in targets)
    assert len(copies.FREE) == 2


def test_a_copy_that_fails_gives_buffers_and_streams_back(cuda, streams):
    values = np.zeros(50_000, np.uint8)

    def fails(to, *_):
        if to - values.ctypes.data == 31_000:
            raise FakeError("cudaErrorIllegalAddress", 700)

    cuda.runtime.memcpyAsync = fails
    with pytest.raises(cuda_calls.CudaError, match="memcpyAsync"):
        copies.to_device(values.ctypes.data, values.ctypes.data, len(values))
    assert len(cuda.alive) == len(copies.FREE) == 1
    assert not streams


def test_a_copy_that_is_interrupted_ends_before_its_buffers_are_used_again(
    cuda, streams, monkeypatch
):
    values = np.arange(50_000, dtype=np.uint8)
    target = np.zeros_like(values)
    go, waits = threading.Event(), list[int]()
    move = cuda.runtime.memcpyAsync

    def held(*args):
        assert go.wait(10)
        move(*args)

    def interrupted(running):
        waits.append(len(copies.FREE))
        if len(waits) <= 2:
            raise KeyboardInterrupt
        go.set()
        return wait(running)

    wait = copies.wait
    cuda.runtime.memcpyAsync = held
    monkeypatch.setattr(copies, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        copies.to_device(target.ctypes.data, values.ctypes.data, len(values))
    assert waits == [0, 0, 0]
    assert np.array_equal(target, values)
    assert len(copies.FREE) == 1


def test_a_copy_without_memory_for_buffers_is_made_by_cuda(cuda, streams, monkeypatch):
    def none_left(nbytes):
        raise MemoryError

    monkeypatch.setattr(host, "PageLocked", none_left)
    values = np.arange(50_000, dtype=np.uint8)
    target = np.zeros_like(values)
    copies.to_host(target.ctypes.data, values.ctypes.data, len(values))
    assert np.array_equal(target, values)
    assert not copies.FREE


@pytest.mark.parametrize(("given", "used"), [(0, 7), (5, 5)])
def test_pages_are_copied_behind_kernels_unless_another_stream_is_given(
    cuda, monkeypatch, given, used
):
    found = ModuleType("cupy.cuda")
    found.get_current_stream = lambda: SimpleNamespace(ptr=7)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    monkeypatch.setitem(sys.modules, "cupy.cuda", found)
    monkeypatch.setattr(cuda_calls, "kernel_stream", kernel_stream)
    streams = list[int]()
    cuda.runtime.memcpyAsync = lambda to, of, nbytes, kind, stream: streams.append(stream)
    copies.copy_pages(4096, 8192, 64, 32, given)
    assert streams == [used, used]


def test_what_threads_read_is_sent_and_a_failure_leaves_nothing(cuda, streams):
    values = np.random.default_rng(1).integers(0, 256, 100_000, np.uint8)
    target, ends = np.zeros_like(values), range(0, 100_000, 700)

    def read(begin):
        def fill(buffer):
            part = values[begin : begin + len(buffer)]
            buffer[: len(part)] = part
            return len(part)

        return fill

    with copies.sending(900) as send, ThreadPoolExecutor(20) as pool:
        at = target.ctypes.data
        counts = [*pool.map(lambda begin: send(at + begin, 700, read(begin)), ends)]
        assert len(streams) == copies.MOST_THREADS * copies.PIECE // 900
    assert counts == [700] * 142 + [600]
    assert np.array_equal(target, values)
    with pytest.raises(OSError, match="no more"), copies.sending(900) as send:
        send(at, 700, Mock(side_effect=OSError("no more")))
    assert len(cuda.alive) == len(copies.FREE) == 1
    assert not streams
