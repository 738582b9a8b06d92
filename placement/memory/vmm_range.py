"""One range of addresses over memory of several places: devices, and the host."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from louvain_um.errors import MemoryBudgetError, PlacementError
from louvain_um.placement.arena_spec import BLOCK
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.cuda_calls import HOST

CHUNK: Final = 256 << 20
"""Bytes of host memory that are allocated at a time."""


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
            self.address = int(self._call("cuMemAddressReserve", self.nbytes, BLOCK, 0, 0))
            for place, nbytes in parts:
                chunk = CHUNK if place == HOST else max(nbytes, 1)
                for at in range(0, nbytes, chunk):
                    self._map(min(chunk, nbytes - at), place)
            for device in dict.fromkeys(devices) if self.mapped else ():
                self._open(self.address, self.mapped, device)
            begin = self.address
            for place, nbytes in parts:
                if place == HOST and nbytes:
                    self._open(begin, nbytes, HOST)
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
            self._call("cuMemUnmap", address, self.mapped)
        while self.handles:
            self._call("cuMemRelease", self.handles.pop())
        self._call("cuMemAddressFree", address, self.nbytes)

    def _map(self, nbytes: int, place: int) -> None:
        """Allocate memory in a place, behind what is mapped already."""
        handle = self._create(nbytes, place)
        self.handles.append(handle)
        self._call("cuMemMap", self.address + self.mapped, nbytes, 0, handle, 0)
        self.mapped += nbytes

    def _create(self, nbytes: int, place: int) -> Any:
        """Return new physical memory of a place."""
        wanted = cuda_calls.driver().CUmemAllocationProp()
        wanted.type = cuda_calls.driver().CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location.type, wanted.location.id = _location(place)
        return self._call("cuMemCreate", nbytes, wanted, 0)

    def _open(self, address: int, nbytes: int, to: int) -> None:
        """Let a place read and write a range."""
        access = cuda_calls.driver().CUmemAccessDesc()
        access.location.type, access.location.id = _location(to)
        access.flags = cuda_calls.driver().CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        self._call("cuMemSetAccess", address, nbytes, [access], 1)

    def _call(self, call: str, *args: Any) -> Any:
        try:
            return cuda_calls.driver_call(call, *args)
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
                f"({call}: {error.name}); place it in pinned memory, or use memory='device'"
            ) from None


class VmmSplit(VmmRange):
    """Device memory followed by host memory that the device reads over the bus."""

    def __init__(self, name: str, here: int, there: int, device: int) -> None:
        super().__init__(name, [(device, here), (HOST, there)], [device])


def _location(place: int) -> tuple[Any, int]:
    """Return a place as the driver names it."""
    kinds = cuda_calls.driver().CUmemLocationType
    if place == HOST:
        return kinds.CU_MEM_LOCATION_TYPE_HOST_NUMA, 0
    return kinds.CU_MEM_LOCATION_TYPE_DEVICE, place
