"""Ranges of addresses over physical memory of several places: devices, and the host.

A place is the number of a device, or `cuda_calls.HOST`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from numpy.typing import NDArray

from louvain_um.errors import LouvainUmError, MemoryBudgetError, PlacementError
from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.cuda_calls import HOST
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.memory.host import available

CHUNK: Final = 256 << 20
"""Bytes of host memory that are allocated at a time."""

MOST_CHUNK: Final = 64 << 20
CHUNKS: Final = 16
"""Host memory of a growing range is allocated in so many pieces, of so many bytes at most: each is
brought to the device by itself. Larger pieces take no less time."""

HOST_SHARE: Final = 0.5
"""Share of the host's free memory that is page-locked at most."""


def location(place: int) -> tuple[Any, int]:
    """Return a place as the driver names it."""
    kinds = cuda_calls.driver().CUmemLocationType
    if place == HOST:
        return kinds.CU_MEM_LOCATION_TYPE_HOST_NUMA, 0
    return kinds.CU_MEM_LOCATION_TYPE_DEVICE, place


def create(nbytes: int, place: int) -> Any:
    """Return new physical memory of a place."""
    driver = cuda_calls.driver()
    wanted = driver.CUmemAllocationProp()
    wanted.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location.type, wanted.location.id = location(place)
    return cuda_calls.driver_call("cuMemCreate", nbytes, wanted, 0)


def reserve(nbytes: int) -> int:
    """Return addresses for so many bytes, which begin at a block of the driver."""
    return int(cuda_calls.driver_call("cuMemAddressReserve", nbytes, BLOCK, 0, 0))


def open_to(address: int, nbytes: int, place: int) -> None:
    """Let a place read and write a mapped range."""
    driver = cuda_calls.driver()
    access = driver.CUmemAccessDesc()
    access.location.type, access.location.id = location(place)
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    cuda_calls.driver_call("cuMemSetAccess", address, nbytes, [access], 1)


class VmmRange:
    """Memory of several places, one behind the other."""

    def __init__(
        self, name: str, parts: Sequence[tuple[int, int]], devices: Sequence[int], most: int = 0
    ) -> None:
        self.name = name
        self.nbytes = max(sum(nbytes for _, nbytes in parts), most)
        self.device = devices[0]
        self.address = 0
        self.mapped = 0
        self.handles: list[Any] = []
        try:
            self.address = self._call(reserve, self.nbytes)
            for place, nbytes in parts:
                chunk = CHUNK if place == HOST else max(nbytes, 1)
                for at in range(0, nbytes, chunk):
                    self._map(min(chunk, nbytes - at), place)
            for device in dict.fromkeys(devices) if self.mapped else ():
                self._call(open_to, self.address, self.mapped, device)
            begin = self.address
            for place, nbytes in parts:
                if place == HOST and nbytes:
                    self._call(open_to, begin, nbytes, HOST)
                begin += nbytes
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free all parts and the addresses."""
        address, self.address = self.address, 0
        if not address:
            return
        if self.mapped:
            self._driver("cuMemUnmap", address, self.mapped)
        while self.handles:
            self._driver("cuMemRelease", self.handles.pop())
        self._driver("cuMemAddressFree", address, self.nbytes)

    def _map(self, nbytes: int, place: int) -> None:
        """Allocate memory in a place, behind what is mapped already."""
        handle = self._call(create, nbytes, place)
        self.handles.append(handle)
        self._driver("cuMemMap", self.address + self.mapped, nbytes, 0, handle, 0)
        self.mapped += nbytes

    def _driver(self, call: str, *args: Any) -> Any:
        return self._call(cuda_calls.driver_call, call, *args)

    def _call(self, step: Any, *args: Any) -> Any:
        try:
            return step(*args)
        except cuda_calls.CudaError as error:
            if error.code == cuda_calls.OUT_OF_MEMORY:
                free = 0
                with suppress(cuda_calls.CudaError):
                    free, _ = cuda_calls.free_memory()
                raise MemoryBudgetError(
                    self.nbytes, min(free, self.nbytes - 1), [(self.name, self.nbytes)],
                    "choose another memory policy, or a machine with more memory",
                ) from None  # fmt: skip
            raise PlacementError(
                f"arena {self.name!r}: this driver does not join memory of several places "
                f"({error.call}: {error.name}); place it in pinned memory, or use memory='device'"
            ) from None


class GrowingRange(VmmRange):
    """A range whose memory is mapped in steps of 2 MiB as it is needed: nothing is copied."""

    def __init__(self, name: str, most: int, device: int) -> None:
        self.parts: list[tuple[int, int]] = []
        super().__init__(name, [], [device], most=whole_blocks(max(most, 1)))

    def grow(self, nbytes: int, here: int) -> None:
        """Map memory until there are so many bytes; what there is stays where it is."""
        missing, count = whole_blocks(nbytes) - self.mapped, len(self.parts)
        if missing <= 0:
            return
        if self.mapped + missing > self.nbytes:
            raise self._ended(self.mapped + missing)
        on_device = min(missing, max(0, here // BLOCK * BLOCK - self.on_device))
        try:
            if on_device:
                guard.check_plain(self.name, on_device, self.device)
                self._add(on_device, self.device)
            self._refuse_host(missing - on_device)
            chunk = min(MOST_CHUNK, whole_blocks((missing - on_device) // CHUNKS + 1))
            for at in range(on_device, missing, chunk):
                self._add(min(chunk, missing - at), HOST)
        except BaseException:
            self._drop(count)
            raise

    def bring(self, here: int) -> None:
        """Replace memory of the host by the device's, up to `here` bytes of it; values stay."""
        at = self.address
        for i, (place, nbytes) in enumerate(self.parts):
            if place == HOST and self.on_device + nbytes <= here:
                with (
                    suppress(MemoryBudgetError),
                    GrowingRange(self.name, nbytes, self.device) as fresh,
                ):
                    fresh.grow(nbytes, nbytes)
                    cuda_calls.copy(fresh.address, at, nbytes)
                    self._exchange(i, at, fresh)
            at += nbytes

    def _exchange(self, i: int, at: int, fresh: GrowingRange) -> None:
        """Map the memory of a fresh range instead of a piece, which it gets."""
        (_, nbytes), old = self.parts[i], self.handles[i]
        cuda_calls.synchronize()
        self._driver("cuMemUnmap", at, nbytes)
        try:
            self._driver("cuMemMap", at, nbytes, 0, fresh.handles[0], 0)
        except LouvainUmError:
            self._driver("cuMemMap", at, nbytes, 0, old, 0)
        else:
            self.handles[i], fresh.handles[0] = fresh.handles[0], old
            self.parts[i] = self.device, nbytes
        self._call(open_to, at, nbytes, self.device)

    def fetch(self, target: NDArray[Any]) -> None:
        """Copy the beginning into an array in host memory, piece by piece."""
        cuda_calls.synchronize()
        done = 0
        for _, nbytes in self.parts:
            count = min(nbytes, target.nbytes - done)
            if count > 0:
                cuda_calls.copy(target.ctypes.data + done, self.address + done, count)
            done += nbytes

    @property
    def on_device(self) -> int:
        """Bytes of the device."""
        return sum(nbytes for place, nbytes in self.parts if place != HOST)

    @property
    def on_host(self) -> int:
        """Bytes of the host."""
        return self.mapped - self.on_device

    def close(self) -> None:
        """Free the memory and the addresses, once kernels have ended."""
        if self.mapped:
            cuda_calls.synchronize()
        super().close()

    def __enter__(self) -> GrowingRange:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the process the driver may be gone
            self.close()

    def _add(self, nbytes: int, place: int) -> None:
        """Map new memory of a place behind the other; the device, and copies, reach it."""
        self._map(nbytes, place)
        self.parts.append((place, nbytes))
        for side in dict.fromkeys((self.device, place)):
            self._call(open_to, self.address + self.mapped - nbytes, nbytes, side)

    def _drop(self, count: int) -> None:
        """Free what is mapped behind the first `count` pieces."""
        while len(self.handles) > count:
            keep = sum(nbytes for _, nbytes in self.parts[: len(self.handles) - 1])
            with suppress(LouvainUmError):
                if self.mapped > keep:
                    self._driver("cuMemUnmap", self.address + keep, self.mapped - keep)
                self._driver("cuMemRelease", self.handles[-1])
            self.mapped = keep
            self.handles.pop()
        del self.parts[count:]

    def _refuse_host(self, nbytes: int) -> None:
        """Raise a MemoryBudgetError if that is more of the host than may be page-locked."""
        room = available()
        if nbytes and room is not None and nbytes > HOST_SHARE * room:
            raise MemoryBudgetError(
                nbytes, int(HOST_SHARE * room), [(f"{self.name}, on the host", nbytes)],
                "raise device_budget, or use a machine with more host memory",
            )  # fmt: skip

    def _ended(self, nbytes: int) -> MemoryBudgetError:
        return MemoryBudgetError(nbytes, self.nbytes, [(self.name, nbytes)], "raise device_budget")


def whole_blocks(nbytes: int) -> int:
    """Return bytes rounded up to whole blocks of 2 MiB."""
    return -(-nbytes // BLOCK) * BLOCK
