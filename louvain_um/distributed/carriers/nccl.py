"""Ranks with a GPU each, in processes of their own: arrays travel from GPU to GPU through NCCL.

NCCL has neither gathering of unequal lengths nor an or of bits: both are made of groups of sends
and receives, so that only integers are ever added up by it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core.threads import start_thread
from louvain_um.distributed.communicator import Array, Communicator
from louvain_um.errors import WorkerLostError
from louvain_um.formats.file_types import first_line_of
from louvain_um.gpu.aggregate.coarse_rows import copy
from louvain_um.placement.memory import cuda_calls

EAGER_SECONDS: Final = 1e-3
PAUSE_SECONDS: Final = 1e-4
"""How long to poll without a pause, longer than a small exchange takes; the pause after that."""

CONNECT_SECONDS: Final = 0.01
"""Between looks at the other ranks while NCCL connects with them."""


class NcclCommunicator(Communicator):
    """One rank's end of the connections between the GPUs of all ranks."""

    def __init__(self, ranks: Communicator) -> None:
        from cupy.cuda import nccl

        super().__init__(ranks.rank, ranks.size)
        self.ranks = ranks
        self.patience = ranks.patience
        self.nccl = nccl
        # CuPy raises a KeyError for errors of NCCL that it has no name for; before 13.4 these are
        # those of other ranks, too.
        self.errors = nccl.NcclError, KeyError
        self.lost = False
        try:
            self.connection = self.connected(shared_id(ranks))
        except self.errors as error:
            raise failed(error) from error

    def connected(self, run_id: Any) -> Any:
        """Return the connection, made in another thread: NCCL waits for all ranks for ever."""
        import cupy

        device, found = cupy.cuda.Device().id, Future[Any]()

        def connect() -> None:
            try:
                cuda_calls.bind(device)
                connection = self.nccl.NcclCommunicator(self.size, run_id, self.rank)
            except BaseException as error:
                if found.set_running_or_notify_cancel():
                    found.set_exception(error)
                return
            if found.set_running_or_notify_cancel():
                found.set_result(connection)
            else:
                connection.abort()

        thread = start_thread(connect, "louvain-um-nccl")
        since = time.monotonic()
        try:
            while not found.done():
                thread.join(CONNECT_SECONDS)
                self.check()
                self.lose_patience(since)
            return found.result()
        except BaseException:
            if not found.cancel() and found.exception() is None:
                found.result().abort()
            raise

    def exchange(self, arrays: list[Array]) -> list[Array]:
        """Send array r to rank r; return what each rank sent here, by rank."""
        return self.pass_on([on_device(array) for array in arrays], arrays[0].dtype)

    def gather(self, array: Array) -> list[Array]:
        """Return every rank's array, by rank."""
        return self.pass_on([on_device(array)] * self.size, array.dtype)

    def pass_on(self, sent: list[Any], dtype: Any) -> list[Array]:
        """Send array r, of bytes on the GPU, to rank r; return what came, on the host."""
        import cupy

        lengths = self.lengths([array.nbytes for array in sent])
        received = [cupy.empty(length, np.uint8) for length in lengths]
        self.swap([[array] for array in sent], [[array] for array in received])
        return [array.get().view(dtype) for array in received]

    def lengths(self, local: Sequence[int]) -> list[int]:
        """Send number r to rank r; return what each rank sent."""
        import cupy

        sent, received = on_device(np.array(local, np.int64)), cupy.empty(8 * self.size, np.uint8)
        parts = [slice(8 * rank, 8 * rank + 8) for rank in range(self.size)]
        self.swap([[sent[part]] for part in parts], [[received[part]] for part in parts])
        found: list[int] = received.get().view(np.int64).tolist()
        return found

    def swap(self, sent: Sequence[Sequence[Any]], received: Sequence[Sequence[Any]]) -> None:
        """Send rank r the arrays `sent[r]`; fill `received[r]` with those that it sends."""
        import cupy

        stream, kind = cupy.cuda.get_current_stream().ptr, self.nccl.NCCL_UINT8
        with self.or_abort():
            self.nccl.groupStart()
            try:
                for other in range(self.size):
                    if other == self.rank:
                        continue
                    for array in sent[other]:
                        if array.nbytes:
                            self.connection.send(array.data.ptr, array.nbytes, kind, other, stream)
                    for array in received[other]:
                        if array.nbytes:
                            self.connection.recv(array.data.ptr, array.nbytes, kind, other, stream)
            finally:
                self.nccl.groupEnd()
            for source, target in zip(sent[self.rank], received[self.rank], strict=True):
                if source.data.ptr != target.data.ptr:
                    copy(source, target)
            self.wait()

    def sum_exact(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the sums of all ranks' int64 arrays of equal length."""
        import cupy

        since = time.perf_counter()
        local = np.ascontiguousarray(values, np.int64)
        sums = on_device(local)
        if local.size:
            stream, at = cupy.cuda.get_current_stream().ptr, sums.data.ptr
            kind, add = self.nccl.NCCL_INT64, self.nccl.NCCL_SUM
            with self.or_abort():
                self.connection.allReduce(at, at, local.size, kind, add, stream)
                self.wait()
        others = local.nbytes * (self.size - 1)
        self.note(others, others, since)
        found: NDArray[np.int64] = sums.get().view(np.int64).reshape(local.shape)
        return found

    def wait(self) -> None:
        """Wait for the GPU, without ever waiting longer for a rank than its patience."""
        import cupy

        event = cupy.cuda.Event(disable_timing=True)
        event.record()
        since = time.monotonic()
        while not cuda_calls.has_ended(event.ptr):
            if time.monotonic() - since < EAGER_SECONDS:
                continue
            self.check()
            self.connection.check_async_error()
            self.lose_patience(since)
            time.sleep(PAUSE_SECONDS)

    def lose_patience(self, since: float) -> None:
        """Raise if the ranks' patience has passed since a time of the monotonic clock."""
        if time.monotonic() - since > self.patience:
            raise WorkerLostError(f"a rank did not answer for {self.patience:g} s")

    @contextmanager
    def or_abort(self) -> Iterator[None]:
        """Abort the connection if an exchange fails or is interrupted."""
        try:
            yield
        except BaseException as error:
            self.lost = True
            self.connection.abort()
            if isinstance(error, self.errors):
                raise failed(error) from error
            raise

    def check(self) -> None:
        """Raise if the run was aborted."""
        self.ranks.check()

    def abort(self, reason: str) -> None:
        """Make every rank's collectives raise, now and later."""
        self.ranks.abort(reason)

    def __enter__(self) -> NcclCommunicator:
        return self

    def __exit__(self, kind: object, *failure: object) -> None:
        # To give connections up in order waits for all ranks of a machine to do so, for ever.
        if kind is None and self.all_leave():
            self.connection.destroy()
        else:
            self.connection.abort()

    def all_leave(self) -> bool:
        """Wait until every rank gives its connections up in order; return whether they all do."""
        try:
            lost = self.ranks.allgatherv(np.array([self.lost], np.uint8))
        except WorkerLostError:
            return False
        return not np.any(lost)


class NcclLink:
    """Exchanges arrays that are on the GPUs of all ranks (`louvain_um.gpu.ranks.share.Link`)."""

    def __init__(self, ranks: NcclCommunicator) -> None:
        self.ranks, self.sum_exact = ranks, ranks.sum_exact

    def gather(self, columns: Sequence[Any], into: Sequence[Any]) -> int:
        """Fill the beginning of `into` with each column of all ranks; return their entries."""
        ranks, since = self.ranks, time.perf_counter()
        counts = ranks.lengths([columns[0].size] * ranks.size)
        starts = np.concatenate(([0], np.cumsum(counts))).tolist()
        parts = [[array[low:high] for array in into] for low, high in pairwise(starts)]
        ranks.swap([columns] * ranks.size, parts)
        width = sum(column.itemsize for column in columns)
        others = starts[-1] - counts[ranks.rank]
        ranks.note(width * counts[ranks.rank] * (ranks.size - 1), width * others, since)
        return int(starts[-1])

    def or_bits(self, words: Any) -> None:
        """Set an array, of equal length on all ranks, to the bitwise or of all."""
        import cupy

        ranks, since = self.ranks, time.perf_counter()
        bounds = [words.size * rank // ranks.size for rank in range(ranks.size + 1)]
        parts = [words[low:high] for low, high in pairwise(bounds)]
        local = parts[ranks.rank]
        found = [cupy.empty(local.size, local.dtype) for _ in parts]
        ranks.swap([[part] for part in parts], [[array] for array in found])
        for array in found:
            local |= array
        ranks.swap([[local]] * ranks.size, [[part] for part in parts])
        others = words.nbytes - local.nbytes
        each = local.nbytes * (ranks.size - 1)
        ranks.note(others + each, each + others, since)


def on_device(array: Array) -> Any:
    """Return the bytes of an array on the current GPU."""
    import cupy

    return cupy.asarray(np.ascontiguousarray(array).view(np.uint8))


def shared_id(ranks: Communicator) -> Any:
    """Return NCCL's id of the first rank: bytes, or in CuPy before 14 a tuple of numbers."""
    from cupy.cuda import nccl

    local = np.zeros(0, np.int16)
    if ranks.rank == 0:
        made = nccl.get_unique_id()
        local = np.array([isinstance(made, bytes), *made], np.int16)
    as_bytes, *numbers = ranks.allgatherv(local)[0].tolist()
    return bytes(numbers) if as_bytes else tuple(numbers)


def failed(error: Exception) -> WorkerLostError:
    """Return the error of a run whose GPUs NCCL does not connect any more."""
    what = f"error {error}" if isinstance(error, KeyError) else first_line_of(error)
    return WorkerLostError(f"NCCL failed ({what}); see NCCL_DEBUG=INFO, or use exchange='host'")
