"""One range of addresses over memory of both sides, without managed memory.

What a split placement is made of where the driver's managed memory will not do: on devices that
have none, and for ranges larger than the device's free memory, which the guard refuses.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from louvain_um.errors import MemoryBudgetError, PlacementError
from louvain_um.placement.arena_spec import BLOCK
from louvain_um.placement.memory import cuda_calls

CHUNK: Final = 256 << 20
"""Bytes of host memory that are allocated at a time."""


class VmmSplit:
    """Device memory followed by host memory that the device reads over the bus.

    Kernels see one range. CUDA's copies do not: one that crosses from one memory to the other
    ends the process (seen with driver 580), so values are copied by `Allocator.fill` and
    `Allocator.fetch`, which copy each side by itself.

    Parameters
    ----------
    name : str
        For messages.
    here, there : int
        Bytes on the device and on the host; whole blocks of 2 MiB.
    device : int

    Raises
    ------
    MemoryBudgetError
        One of the sides has no such memory left.
    PlacementError
        The driver cannot do this: it is older than CUDA 12.2, or no Linux driver.
    """

    def __init__(self, name: str, here: int, there: int, device: int) -> None:
        self.name = name
        self.nbytes = here + there
        self.address = 0
        self.mapped = 0
        self.handles: list[Any] = []
        driver = cuda_calls.driver()
        kinds = driver.CUmemLocationType
        on_device, on_host = (kinds.CU_MEM_LOCATION_TYPE_DEVICE, device), (
            kinds.CU_MEM_LOCATION_TYPE_HOST_NUMA, 0
        )  # fmt: skip
        try:
            self.address = int(self._call("cuMemAddressReserve", self.nbytes, BLOCK, 0, 0))
            if here:
                self._map(here, on_device)
            for at in range(0, there, CHUNK):
                self._map(min(CHUNK, there - at), on_host)
            self._open(self.address, self.nbytes, on_device)
            if there:
                self._open(self.address + here, there, on_host)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free both sides and the addresses."""
        address, self.address = self.address, 0
        if not address:
            return
        if self.mapped:
            self._call("cuMemUnmap", address, self.mapped)
        while self.handles:
            self._call("cuMemRelease", self.handles.pop())
        self._call("cuMemAddressFree", address, self.nbytes)

    def _map(self, nbytes: int, where: tuple[Any, int]) -> None:
        """Allocate memory in a place, behind what is mapped already."""
        driver = cuda_calls.driver()
        wanted = driver.CUmemAllocationProp()
        wanted.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location.type, wanted.location.id = where
        handle = self._call("cuMemCreate", nbytes, wanted, 0)
        self.handles.append(handle)
        self._call("cuMemMap", self.address + self.mapped, nbytes, 0, handle, 0)
        self.mapped += nbytes

    def _open(self, address: int, nbytes: int, to: tuple[Any, int]) -> None:
        """Let a place read and write a range."""
        driver = cuda_calls.driver()
        access = driver.CUmemAccessDesc()
        access.location.type, access.location.id = to
        access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
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
                f"arena {self.name!r}: this driver does not join device and host memory "
                f"({call}: {error.name}); place it in pinned memory, or use memory='device'"
            ) from None
