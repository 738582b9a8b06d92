"""The whole engine without a device: kernels run emulated, memory is the host's."""

import ctypes
import os
import sys
import threading
from contextlib import contextmanager, nullcontext
from itertools import cycle
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from louvain_um.gpu.ranks import share
from louvain_um.gpu.runtime.compile import using
from louvain_um.gpu.runtime.kernel_list import LISTED, expression
from louvain_um.placement.memory import copies, cuda_calls, run_memory
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.migration import pages, span
from louvain_um.placement.migration.mappings import Mappings

SHARED, ANONYMOUS = 0x11, 0x32
"""MAP_SHARED | MAP_FIXED; MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED."""

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]

LIBRARIES = {
    **dict.fromkeys(("move", "refine", "listed_move", "operators"), "moving"),
    "ranks": "ranks", "relabel": "relabelling",
}  # fmt: skip
PLAIN_TYPES = ("", "Unweighted, u32", "u32, u32", "u32, u64", "u64, u64")
WIDE_TYPES = ("Unweighted, u64", "Extended")
BLOCKS = 2
ROOM = 1 << 33


def map_at(address, nbytes, flags, file):
    """Map a file, or fresh memory, at an address that is in use already."""
    return int(libc.mmap(address, nbytes, 3, flags, file, 0))


class Hidden(Mappings):
    """Pages that stay mapped, except that who reads them there finds nothing."""

    def map(self, address, pages):
        for number, page in enumerate(pages):
            at = address + number * self.size
            if self.stale.get(at) == page:
                map_at(at, self.size, SHARED, page.handle)
        super().map(address, pages)

    def unmap(self, address, count):
        super().unmap(address, count)
        for at in range(address, address + count * self.size, self.size):
            if at in self.stale:
                map_at(at, self.size, ANONYMOUS, -1)


class Pointer:
    """A place in memory of the host, with what the engine uses of CuPy's pointers."""

    def __init__(self, ptr):
        self.ptr = ptr

    def __sub__(self, nbytes):
        return Pointer(self.ptr - nbytes)

    def memset_async(self, value, nbytes):
        cuda_calls.cupy_runtime().end_copies(0)
        ctypes.memset(self.ptr, value, nbytes)

    def copy_from_device_async(self, source, nbytes):
        cuda_calls.cupy_runtime().end_copies(0)
        ctypes.memmove(self.ptr, source.ptr, nbytes)


class HostArray(np.ndarray):
    """An array of the host with what the engine uses of CuPy's."""

    device = SimpleNamespace(id=0)

    @property
    def data(self):
        return Pointer(np.ndarray.__getattribute__(self, "ctypes").data)

    def get(self):
        return np.array(self)

    def set(self, values):
        self[:] = values


class EmulatedKernels:
    """Kernels that libraries compiled for the CPU run."""

    def __init__(self, emulated, runtime):
        self.runtime = runtime
        self.emulated = emulated
        self.launched = list[tuple[int, str]]()
        self.turn = threading.Lock()  # the emulator runs one kernel at a time

    def prepare(self, units, observer=None):
        pass

    def resident_blocks(self, kernel, threads, shared=0):
        return BLOCKS

    def get(self, source, kernel, types="", observer=None):
        name = expression(kernel, types)
        which = "any" if types in PLAIN_TYPES else "packed"
        which = "extended" if types.endswith(WIDE_TYPES) else which
        which = "listed" if types == LISTED or source == "operators" else which
        library = self.emulated[f"{which}_{LIBRARIES.get(source, 'aggregating')}"]

        def launch(grid, block, args, shared=0):
            self.launched.append((cuda_calls.cupy_runtime().getDevice(), kernel))
            self.runtime.end_copies(0)
            held = [held_bytes(value) for value in args]
            pointers = (ctypes.c_void_p * len(held))(*(each.ctypes.data for each in held))
            with self.turn:
                assert library.launch_kernel(name.encode(), grid[0], pointers), name

        return launch


def held_bytes(value):
    """Return memory that holds an argument: a scalar, a structure, or an array's address."""
    if isinstance(value, HostArray):
        return np.array(value.data.ptr, np.uint64)
    return np.array(value)


class HostRuntime(SimpleNamespace):
    """Memory and devices of CUDA's runtime and driver, on the host."""

    def __init__(self, devices):
        own = threading.local()  # as CUDA has it
        nothing = lambda *_: None  # noqa: E731
        super().__init__(
            held=dict[int, Any](),
            queries=cycle([cuda_calls.NOT_READY, cuda_calls.NOT_READY, 0]),
            waiting=list[tuple[int, int, int, int]](),
            files=set[int](),
            taken=[0] * devices,
            created=list[tuple[int, int, int]](),
            getDevice=lambda: getattr(own, "device", 0),
            setDevice=lambda device: setattr(own, "device", device),
            malloc=self.plain,
            free=self.give,
            memGetInfo=lambda: (ROOM, ROOM),
            deviceGetAttribute=lambda number, device: 1,
            deviceSynchronize=lambda: self.end_copies(),
            getDeviceProperties=lambda device: {"name": b"emulated"},
            deviceCanAccessPeer=lambda one, other: one != other and max(one, other) < devices,
            deviceEnablePeerAccess=nothing,
            streamCreateWithFlags=lambda flags: 1,
            streamSynchronize=lambda stream: self.end_copies(stream),
            streamWaitEvent=nothing,
            streamQuery=lambda stream: next(self.queries),
            streamDestroy=nothing,
            memcpy=lambda to, source, nbytes, kind: ctypes.memmove(to, source, nbytes),
            memcpyAsync=lambda to, at, nbytes, kind, stream: ctypes.memmove(to, at, nbytes),
        )

    def end_copies(self, *streams):
        """End late copies between pages: of these streams, or all."""
        ended = [copy for copy in self.waiting if not streams or copy[0] in streams]
        self.waiting[:] = [copy for copy in self.waiting if copy not in ended]
        for _, to, at, nbytes in ended:
            ctypes.memmove(to, at, nbytes)

    def plain(self, nbytes):
        self.taken[self.getDevice()] += nbytes
        return self.take(nbytes)

    def take(self, nbytes, aligned=256):
        buffer = np.empty(nbytes + 2 * aligned, np.uint8)
        buffer[: 1 << 22] = 0xA5
        address = -(-buffer.ctypes.data // aligned) * aligned
        self.held[address] = buffer
        return address

    def give(self, address):
        del self.held[address]


def driver_of(runtime):
    """Return the functions of the driver that map memory."""
    named = SimpleNamespace(type=None, location=SimpleNamespace(type=None, id=None))

    def create(nbytes, wanted, flags):
        file = os.memfd_create("page")
        os.ftruncate(file, nbytes)
        runtime.created.append((wanted.location.type, wanted.location.id, nbytes))
        runtime.files.add(file)
        return 0, file

    def release(file):
        runtime.files.remove(file)
        os.close(file)
        return (0,)

    mapped = dict[int, int]()

    def covers(address, nbytes):
        """Return the mappings that a range consists of; a driver takes no other ranges."""
        found, end = list[int](), address + nbytes
        while address < end and address in mapped:
            found.append(address)
            address += mapped[address]
        return found if address == end else []

    def place(address, nbytes, offset, file, flags):
        assert address not in mapped
        mapped[address] = nbytes
        return (0 if map_at(address, nbytes, SHARED, file) == address else 1,)

    def remove(address, nbytes):
        found = covers(address, nbytes)
        assert found
        for part in found:
            del mapped[part]
        return (0 if map_at(address, nbytes, ANONYMOUS, -1) == address else 1,)

    def open_to(address, nbytes, *_):
        assert covers(address, nbytes)
        return (0,)

    return SimpleNamespace(
        CUmemLocationType=SimpleNamespace(
            CU_MEM_LOCATION_TYPE_DEVICE=1, CU_MEM_LOCATION_TYPE_HOST_NUMA=3
        ),
        CUmemAllocationType=SimpleNamespace(CU_MEM_ALLOCATION_TYPE_PINNED=1),
        CUmemAccess_flags=SimpleNamespace(CU_MEM_ACCESS_FLAGS_PROT_READWRITE=3),
        CUmemAllocationProp=lambda: named,
        CUmemAccessDesc=lambda: named,
        cuMemAddressReserve=lambda nbytes, *_: (0, runtime.take(nbytes, 2 << 20)),
        cuMemAddressFree=lambda address, nbytes: (0, runtime.give(address)),
        cuMemCreate=create,
        cuMemRelease=release,
        cuMemMap=place,
        cuMemUnmap=remove,
        cuMemSetAccess=open_to,
    )


@contextmanager
def emulated_devices(monkeypatch, emulated, devices, *, late=False):
    """Let the engine run on so many emulated devices; all memory is freed at the end.

    With `late`, copies between pages end no sooner than something waits for their stream.
    """
    runtime = HostRuntime(devices)

    def copy_pages(to, at, nbytes, page, stream=0):
        runtime.waiting.append((stream, to, at, nbytes))
        if not late:
            runtime.end_copies()

    kernels = EmulatedKernels(emulated, runtime)
    with monkeypatch.context() as patch:
        patch.setattr(cuda_calls, "cupy_runtime", lambda: runtime)
        driver = driver_of(runtime)
        patch.setattr(cuda_calls, "driver", lambda: driver)
        patch.setattr(guard, "ranges", {})
        patch.setattr(guard, "permitted", {})
        patch.setattr(copies, "fill", fill)
        patch.setattr(run_memory, "fill", fill)
        patch.setattr(span, "copy_pages", copy_pages)
        patch.setattr(pages, "Mappings", Hidden)
        for module in (run_memory, share):
            patch.setattr(module, "view", view)
        patch.setitem(sys.modules, "cupy", cupy_of(runtime))
        patch.setitem(sys.modules, "cupy.cuda", sys.modules["cupy"].cuda)
        with using(kernels):
            yield kernels
        pages.release_kept()
    assert not runtime.waiting
    assert not runtime.held
    assert not runtime.files


def view(address, shape, dtype, arena, owner=None):
    kind = np.dtype(dtype)
    whole = (ctypes.c_uint8 * max(shape * kind.itemsize, 1)).from_address(address)
    return np.frombuffer(whole, kind, shape).view(HostArray)


def fill(parts, source, device):
    done = 0
    for address, nbytes, _ in parts:
        ctypes.memmove(address, source.ctypes.data + done, nbytes)
        done += nbytes


def cupy_of(runtime):
    cupy = ModuleType("cupy")
    nothing = lambda *_: None  # noqa: E731
    event = SimpleNamespace(record=nothing)
    stream = SimpleNamespace(ptr=0, wait_event=nothing, synchronize=nothing)
    cupy.cuda = SimpleNamespace(
        runtime=runtime,
        Device=lambda: SimpleNamespace(id=runtime.getDevice()),
        Event=lambda **_: event,
        get_current_stream=lambda: stream,
        using_allocator=lambda take: nullcontext(),
        get_elapsed_time=lambda begin, end: 1.0,
    )
    cupy.get_default_memory_pool = lambda: SimpleNamespace(free_all_blocks=nothing)
    cupy.subtract = np.subtract
    cupy.ndarray = lambda shape, dtype, at: view(at.ptr, *shape, dtype, None)
    for name in ("zeros", "empty", "arange"):
        make = getattr(np, name)
        made = lambda *given, make=make, **how: make(*given, **how).view(HostArray)  # noqa: E731
        setattr(cupy, name, made)
    cupy.cumsum = np.cumsum
    cupy.asarray = lambda values: np.array(values).view(HostArray)
    return cupy
