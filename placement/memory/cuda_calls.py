"""Every call to CUDA that this package makes about memory, each checked, in one place.

Memory comes and goes through CuPy's runtime, advice through ``cuda.bindings``: CuPy cannot name
the host as a place on CUDA 13. Locations are device numbers, and `HOST`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final

from louvain_um.errors import DeviceUnavailableError, LouvainUmError

HOST: Final = -1
"""The host as a location, as CUDA counts it when it is asked."""

NOWHERE: Final = -2
"""No location: nothing was preferred, or nothing was prefetched."""

OUT_OF_MEMORY: Final = 2
"""cudaErrorMemoryAllocation."""

NO_SUCH_DEVICE: Final = 101
"""cudaErrorInvalidDevice."""

PEER_ENABLED: Final = 704
"""cudaErrorPeerAccessAlreadyEnabled."""

ATTACH_GLOBAL: Final = 1
PORTABLE_MAPPED: Final = 1 | 2
"""Flags of managed memory that every stream may touch, and of pinned memory on every device."""

COPY_DEFAULT: Final = 4
"""cudaMemcpyDefault: the addresses say which way."""

HOST_POINTERS: Final = 91
"""cudaDevAttrCanUseHostPointerForRegisteredMem."""

NON_BLOCKING: Final = 1
"""cudaStreamNonBlocking."""

NOT_READY: Final = 600
"""cudaErrorNotReady."""

MANAGED_MEMORY: Final = 83
CONCURRENT_MANAGED_ACCESS: Final = 89
"""Device attributes of `cudaDeviceGetAttribute`."""


class CudaError(LouvainUmError):
    """A call to CUDA failed; `name` is CUDA's name for the reason, `code` its number."""

    def __init__(self, call: str, name: str, code: int) -> None:
        super().__init__(f"{call} failed ({name}); see whether nvidia-smi works, or use the CPU")
        self.call = call
        self.name = name
        self.code = code

    def __reduce__(self) -> tuple[type[CudaError], tuple[str, str, int]]:
        return type(self), (self.call, self.name, self.code)


@cache
def bindings() -> Any:
    """Return the module ``cuda.bindings.runtime``."""
    try:
        from cuda.bindings import runtime
    except ImportError:
        raise DeviceUnavailableError(
            "memory advice needs cuda.bindings; pip install 'louvain-um[cuda13]' (or [cuda12]), "
            "or use memory='device'"
        ) from None
    return runtime


@cache
def driver() -> Any:
    """Return the module ``cuda.bindings.driver``."""
    bindings()
    from cuda.bindings import driver

    return driver


def driver_call(call: str, *args: Any) -> Any:
    """Call a function of the driver; return its value, if it has one."""
    return _checked(driver(), call, args)


@cache
def cupy_runtime() -> Any:
    """Return the module ``cupy.cuda.runtime``."""
    from cupy.cuda import runtime

    return runtime


def current_device() -> int:
    """Return the number of the device that is current in this thread."""
    return int(_cupy("getDevice"))


@contextmanager
def current(device: int) -> Iterator[None]:
    """Make a device current; afterwards whatever was current before is so again."""
    before = current_device()
    if before == device:
        yield
        return
    _cupy("setDevice", device)
    try:
        yield
    finally:
        with suppress(CudaError):
            _cupy("setDevice", before)


def reaches(device: int, other: int) -> bool:
    """Whether a device can read and write another's memory; it cannot its own, or none."""
    try:
        return bool(_cupy("deviceCanAccessPeer", device, other))
    except CudaError as error:
        if error.code != NO_SUCH_DEVICE:
            raise
        return False


def enable_peer(device: int, other: int) -> None:
    """Map another device's memory for a device, unless it is mapped already."""
    with current(device):
        try:
            _cupy("deviceEnablePeerAccess", other)
        except CudaError as error:
            if error.code != PEER_ENABLED:
                raise


def bind(device: int) -> None:
    """Make a device current in a new thread, for the driver too: there it has no context yet."""
    _cupy("setDevice", device)


def allocate(call: str, *args: int) -> int:
    """Return the address that an allocating function of CuPy's runtime returns."""
    return int(_cupy(call, *args))


def release(call: str, address: int) -> None:
    """Free memory by a function of CuPy's runtime."""
    _cupy(call, address)


def register(address: int, nbytes: int) -> None:
    """Page-lock host memory and let every device reach it under its own address."""
    _cupy("hostRegister", address, nbytes, PORTABLE_MAPPED)


def unregister(address: int) -> None:
    """Undo `register`."""
    _cupy("hostUnregister", address)


def copy(target: int, source: int, nbytes: int) -> None:
    """Copy between any two addresses and wait for it."""
    _cupy("memcpy", target, source, nbytes, COPY_DEFAULT)


def copy_later(target: int, source: int, nbytes: int, stream: int) -> None:
    """Copy between any two addresses in the order of a stream."""
    _cupy("memcpyAsync", target, source, nbytes, COPY_DEFAULT, stream)


def kernel_stream() -> int:
    """Return the stream that this thread launches kernels in."""
    from cupy.cuda import get_current_stream

    return int(get_current_stream().ptr)


def new_stream() -> int:
    """Return a stream that does not wait for others."""
    return int(_cupy("streamCreateWithFlags", NON_BLOCKING))


def wait_for(stream: int) -> None:
    """Wait for everything in a stream."""
    _cupy("streamSynchronize", stream)


def is_busy(stream: int) -> bool:
    """Whether anything in a stream has not ended."""
    return _pending("streamQuery", stream)


def drop_stream(stream: int) -> None:
    """Undo `new_stream`."""
    _cupy("streamDestroy", stream)


def has_ended(event: int) -> bool:
    """Whether all that was in a stream before an event has ended."""
    return not _pending("eventQuery", event)


def _pending(query: str, what: int) -> bool:
    """Ask CUDA whether something has not ended."""
    status = int(_cupy(query, what))
    if status not in (0, NOT_READY):
        _cupy("check_status", status)
    return status == NOT_READY


def free_memory() -> tuple[int, int]:
    """Return free and total bytes of the current device."""
    free, total = _cupy("memGetInfo")
    return int(free), int(total)


def reclaimed_memory(enough: int | None = None) -> tuple[int, int]:
    """Return free and total bytes; what CuPy caches is freed first, unless enough is free."""
    # Freeing it takes milliseconds, and allocating it again does, too.
    free, total = free_memory()
    if (enough is None or free < enough) and (cupy := sys.modules.get("cupy")) is not None:
        cupy.get_default_memory_pool().free_all_blocks()
        free, total = free_memory()
    return free, total


def attribute(number: int, device: int) -> int:
    """Return an attribute of a device."""
    return int(_cupy("deviceGetAttribute", number, device))


def synchronize() -> None:
    """Wait for everything that runs on the current device."""
    _cupy("deviceSynchronize")


def advise(address: int, nbytes: int, advice: str, location: int) -> None:
    """Advise the driver about a managed range; `advice` as in ``cudaMemAdvise<advice>``."""
    runtime = bindings()
    what = getattr(runtime.cudaMemoryAdvise, f"cudaMemAdvise{advice}")
    # CUDA 12 kept the plain name for device numbers; CUDA 13 gave it the locations.
    name = "cudaMemAdvise_v2" if hasattr(runtime, "cudaMemAdvise_v2") else "cudaMemAdvise"
    _bound(name, address, nbytes, what, _location(location))


def prefetch(address: int, nbytes: int, location: int, stream: int = 0) -> None:
    """Move or populate a managed range, in the order of a stream."""
    runtime = bindings()
    newer = "cudaMemPrefetchAsync_v2"
    name = newer if hasattr(runtime, newer) else "cudaMemPrefetchAsync"
    _bound(name, address, nbytes, _location(location), 0, stream)


def range_attribute(address: int, nbytes: int, attribute: str, size: int = 4) -> Any:
    """Return what ``cudaMemRangeAttribute<attribute>`` says of a managed range."""
    runtime = bindings()
    what = getattr(runtime.cudaMemRangeAttribute, f"cudaMemRangeAttribute{attribute}")
    return _bound("cudaMemRangeGetAttribute", size, what, address, nbytes)


def _location(place: int) -> Any:
    runtime = bindings()
    kinds = runtime.cudaMemLocationType
    location = runtime.cudaMemLocation()
    on_host = place == HOST
    location.type = kinds.cudaMemLocationTypeHost if on_host else kinds.cudaMemLocationTypeDevice
    location.id = 0 if on_host else place
    return location


def _bound(call: str, *args: Any) -> Any:
    """Call a function of the runtime in cuda.bindings; return its value, if it has one."""
    return _checked(bindings(), call, args)


def _checked(module: Any, call: str, args: tuple[Any, ...]) -> Any:
    status, *values = getattr(module, call)(*args)
    if int(status) != 0:
        raise CudaError(call, status.name, int(status))
    return values[0] if values else None


def _cupy(call: str, *args: Any) -> Any:
    """Call a function of CuPy's runtime, whose errors are exceptions with a status."""
    try:
        return getattr(cupy_runtime(), call)(*args)
    except RuntimeError as error:
        code = getattr(error, "status", None)
        if code is None:
            raise
        raise CudaError(call, f"{error}".partition(":")[0], int(code)) from None
