"""NCCL between threads: what is sent arrives when its receiver waits for its device."""

import ctypes
import sys
import threading
import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np

from louvain_um.placement.memory import cuda_calls
from tests.gpu_emulated.emulated_engine import HostArray

BYTES = {0: 1, 4: 8}
"""Bytes of a number of NCCL's types, of which two are used."""


class NcclError(RuntimeError):
    """What NCCL's functions raise."""


class EmulatedNccl(SimpleNamespace):
    """The module `cupy.cuda.nccl`, for ranks that are threads of this process."""

    def __init__(self, *, as_bytes=False):
        mine = threading.local()
        number = bytes(range(128)) if as_bytes else tuple(range(-64, 64))

        class Connection:
            """One rank's end; the n-th message to a rank is received by its n-th receive."""

            def __init__(self, size, id_, rank):
                assert id_ == number
                if gate:
                    assert gate[0].wait(30)
                self.size, self.rank, self.live = size, rank, True
                made.append(self)

            def send(self, at, count, kind, other, stream):
                assert mine.grouped
                if unsendable:
                    raise unsendable[0]
                sent.setdefault((self.rank, other), deque()).append(read(at, count * BYTES[kind]))

            def recv(self, at, count, kind, other, stream):
                assert mine.grouped
                queue, size = sent.setdefault((other, self.rank), deque()), count * BYTES[kind]
                self.later(lambda: write(at, queue.popleft(), size) if queue else False)

            def allReduce(  # noqa: N802 - as CuPy has it
                self, at, to, count, kind, add, stream
            ):
                assert (kind, add) == (4, 0)
                turn = mine.__dict__.setdefault("turn", 0)
                mine.turn += 1
                found = sums.setdefault(turn, {})
                found[self.rank] = np.frombuffer(read(at, 8 * count), np.int64)

                def finish():
                    if len(found) < self.size:
                        return False
                    total = np.sum(list(found.values()), axis=0, dtype=np.int64)
                    return write(to, total.tobytes(), 8 * count)

                self.later(finish)

            def later(self, step):
                mine.__dict__.setdefault("pending", deque()).append(step)

            def check_async_error(self):
                if failing:
                    raise failing[0]

            def abort(self):
                self.live = False

            def destroy(self):
                """End once all ranks come here, as NCCL does on one machine."""
                leaving.append(self.rank)
                until = time.monotonic() + 30
                while len(leaving) < self.size:
                    assert time.monotonic() < until, "the others never gave their connections up"
                    time.sleep(0.001)
                self.abort()

        def query(event):
            """Say that an event has come once all that was received before it has arrived."""
            pending = mine.__dict__.setdefault("pending", deque())
            while pending and pending[0]():
                pending.popleft()
            return faults[0] if faults else cuda_calls.NOT_READY * bool(pending)

        def check_status(status):
            error = RuntimeError("cudaErrorIllegalAddress: an illegal memory access")
            error.status = status
            raise error

        sent: dict[tuple[int, int], deque[bytes]] = {}
        sums: dict[int, dict[int, Any]] = {}
        made, failing, unsendable = list[Connection](), list[Exception](), list[BaseException]()
        faults = list[int]()
        gate, leaving = list[threading.Event](), list[int]()
        super().__init__(
            NCCL_UINT8=0, NCCL_INT64=4, NCCL_SUM=0, available=True, made=made, failing=failing,
            unsendable=unsendable, faults=faults, gate=gate, mine=mine, NcclError=NcclError,
            query=query, check_status=check_status, NcclCommunicator=Connection,
            get_version=lambda: 22800,
            get_unique_id=lambda: number,
            groupStart=lambda: setattr(mine, "grouped", True),
            groupEnd=lambda: setattr(mine, "grouped", False),
        )  # fmt: skip

    def install(self, monkeypatch):
        """Let the emulated CuPy have it."""
        cupy = sys.modules["cupy"]
        monkeypatch.setattr(cupy.cuda, "nccl", self, raising=False)
        runtime = cuda_calls.cupy_runtime()
        monkeypatch.setattr(runtime, "eventQuery", self.query, raising=False)
        monkeypatch.setattr(runtime, "check_status", self.check_status, raising=False)
        event = SimpleNamespace(ptr=0, record=lambda: None)
        monkeypatch.setattr(cupy.cuda, "Event", lambda **_: event)
        cupy.cuda.get_current_stream().ptr = 0
        cupy.empty = lambda size, dtype: np.full(size, 0xA5, dtype).view(HostArray)
        cupy.asarray = lambda array: np.array(array).view(HostArray)


def read(address, nbytes):
    return ctypes.string_at(address, nbytes)


def write(address, held, nbytes):
    assert len(held) == nbytes  # NCCL would hang, or write behind the end
    ctypes.memmove(address, held, nbytes)
    return True
