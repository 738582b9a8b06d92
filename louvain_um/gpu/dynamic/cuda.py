"""Kernels of the current CUDA device for stores, and arrays that grow, if need be on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from louvain_um.errors import DeviceUnavailableError, MemoryBudgetError
from louvain_um.gpu.dynamic.batch_arrays import MOST_BLOCKS
from louvain_um.gpu.level import or_null
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.runtime.device import Choice
from louvain_um.gpu.runtime.launch import Launcher, Struct
from louvain_um.placement.hardware import THREADS
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.host import available
from louvain_um.placement.memory.vmm import HOST_SHARE, GrowingRange
from louvain_um.placement.migration.pages import supported


class CudaDevice:
    """The current device: CuPy's arrays, and the kernels of changing graphs."""

    def __init__(self) -> None:
        import cupy

        self.xp: Any = cupy
        self.device = int(cupy.cuda.runtime.getDevice())
        self.maps = supported(self.device)
        self.landing: Any = None
        self.launches: dict[tuple[str, ...], Launcher] = {}

    def threads(self, source: str, kernel: str, types: str = "") -> int:
        """Return how many threads of a kernel are resident at once, at most."""
        return self._launch(source, kernel, types).blocks * THREADS

    def launch(
        self, source: str, kernel: str, types: str, items: int, *args: Any, front: str = ""
    ) -> None:
        """Run a kernel with a thread per item, but no more than are resident."""
        self._refuse_others()
        given = (arg.argument if isinstance(arg, Struct) else or_null(arg) for arg in args)
        self._launch(source, kernel, types, front)(*given, items=items)

    def address(self, array: Any) -> int:
        """Return where an array is; 0 for None."""
        return 0 if array is None else int(array.data.ptr)

    def clear(self, array: Any) -> None:
        """Fill an array with zero bytes."""
        array.data.memset_async(0, array.nbytes)

    def room(self, name: str, most: int | None) -> Copied | GrowingRange:
        """Return memory that grows, to `most` bytes or as far as device and host reach."""
        if not self.maps:
            return Copied(self.xp)
        if most is None:
            most = cuda_calls.free_memory()[1] + int(HOST_SHARE * (available() or 0))
        return GrowingRange(name, most, self.device)

    def array_in(self, room: Any, places: int, dtype: Any) -> Any:
        """Return an array over the beginning of such memory."""
        if isinstance(room, GrowingRange):
            from louvain_um.placement.memory.run_memory import view

            return view(room.address, places, dtype, room)
        return room.bytes[: places * np.dtype(dtype).itemsize].view(dtype)

    def free_cached(self) -> None:
        """Give memory that CuPy caches back to the driver."""
        self.xp.get_default_memory_pool().free_all_blocks()

    def get(self, array: Any) -> np.ndarray[Any, Any]:
        """Copy to the host."""
        copied: np.ndarray[Any, Any] = self.xp.asnumpy(array)
        return copied

    def read(self, array: Any) -> np.ndarray[Any, Any]:
        """Copy a few bytes to the host; they are valid until the next call."""
        if self.landing is None or len(self.landing) < array.nbytes:
            memory = self.xp.cuda.alloc_pinned_memory(max(array.nbytes, 512))
            self.landing = np.frombuffer(memory, np.uint8)
        stream = self.xp.cuda.get_current_stream()
        array.data.copy_to_host_async(self.landing.ctypes.data, array.nbytes, stream)
        stream.synchronize()
        landed: np.ndarray[Any, Any] = self.landing[: array.nbytes]
        return landed

    def _launch(self, source: str, kernel: str, types: str, front: str = "") -> Launcher:
        """Return a kernel and its largest grid."""
        key = source, kernel, types, front
        if kernels.substituted or key not in self.launches:
            found = Launcher(source, kernel, types, front=front, most=MOST_BLOCKS)
            if kernels.substituted:
                return found
            self.launches[key] = found
        return self.launches[key]

    def _refuse_others(self) -> None:
        """Raise unless the device is current."""
        if int(self.xp.cuda.runtime.getDevice()) != self.device:
            raise DeviceUnavailableError(
                f"this memory is on cuda:{self.device}, which is not the current device; call "
                f"inside `with cupy.cuda.Device({self.device}):`"
            )

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what CuPy raises within a block into errors of this package."""
        from louvain_um.gpu.runtime.device import device_errors

        self._refuse_others()
        with device_errors(Choice("cuda", self.device, "")):
            try:
                yield
            except self.xp.cuda.memory.OutOfMemoryError as error:
                free, wanted = cuda_calls.free_memory()[0], max(1, getattr(error, "_size", 1))
                remedy = "split the batch, delete edges and compact(), or use device='cpu'"
                raise MemoryBudgetError(free + wanted, free, (), remedy) from error

    def free_bytes(self) -> int:
        """Return how much of the device's memory is free, without what CuPy caches."""
        return cuda_calls.reclaimed_memory()[0]


SLACK: Final = 1 / 16
"""Of what is needed, so much more is mapped: each step costs some calls to the driver."""


class Pool:
    """Targets, and weights at the same places, if there are any, on a `CudaDevice`."""

    def __init__(self, device: Any, dtypes: Sequence[Any], most: int | None) -> None:
        self.device, self.dtypes = device, [np.dtype(dtype) for dtype in dtypes]
        self.item = sum(dtype.itemsize for dtype in self.dtypes)
        self.places = 0
        self.rooms = [
            device.room(name, None if most is None else most // self.item * dtype.itemsize)
            for name, dtype in zip(("targets", "weights"), self.dtypes, strict=False)
        ]
        self.arrays: list[Any] = []
        self._show(0)

    def grow(self, places: int, here: int) -> None:
        """Have so many places; what is beyond `here` bytes is on the host."""
        if places <= self.places:
            return
        most = max(places, here // self.item)
        slack = min(places + int(SLACK * places), most)
        for wanted in (slack, slack, places):
            try:
                self._grow(wanted, here)
            except MemoryBudgetError:
                if wanted == places:
                    raise
                self.device.free_cached()
            else:
                self._show(wanted)
                return

    def bring(self, here: int) -> None:
        """Move what is on the host to the device, up to `here` bytes."""
        for room, dtype in zip(self.rooms, self.dtypes, strict=True):
            room.bring(here // self.item * dtype.itemsize)

    def fetched(self, places: int) -> list[Any]:
        """Return copies of the arrays' beginnings in host memory."""
        found = [np.empty(places, dtype) for dtype in self.dtypes]
        for room, target in zip(self.rooms, found, strict=True):
            room.fetch(target)
        return found

    @property
    def on_host(self) -> int:
        """Bytes that are on the host."""
        return sum(room.on_host for room in self.rooms)

    @property
    def on_device(self) -> int:
        """Bytes that are on the device."""
        return sum(room.on_device for room in self.rooms)

    def _grow(self, places: int, here: int) -> None:
        for room, dtype in zip(self.rooms, self.dtypes, strict=True):
            room.grow(places * dtype.itemsize, here // self.item * dtype.itemsize)

    def _show(self, places: int) -> None:
        self.places = places
        self.arrays = [
            self.device.array_in(room, places, dtype)
            for room, dtype in zip(self.rooms, self.dtypes, strict=True)
        ]


class Copied:
    """Memory of a device that maps none: growing copies it."""

    on_host = 0

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.bytes = xp.empty(0, np.uint8)

    def grow(self, nbytes: int, here: int) -> None:
        """Have so many bytes; values stay."""
        held = len(self.bytes)
        if nbytes > held:
            grown = self.xp.empty(max(nbytes, held + held // 4), np.uint8)
            grown[:held] = self.bytes
            self.bytes = grown

    def bring(self, here: int) -> None:
        """Nothing is on the host."""

    def fetch(self, target: Any) -> None:
        """Copy the beginning into an array in host memory."""
        target.view(np.uint8)[:] = self.xp.asnumpy(self.bytes[: target.nbytes])

    @property
    def on_device(self) -> int:
        """All bytes."""
        return len(self.bytes)
