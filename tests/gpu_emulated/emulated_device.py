"""A device for stores of changing graphs: NumPy's arrays, and kernels emulated on the CPU."""

import ctypes
import weakref
from contextlib import nullcontext
from typing import Any

import numpy as np

from louvain_um.dynamic.stores import device_store, options_of
from louvain_um.gpu.dynamic.cuda import Copied
from louvain_um.gpu.runtime import kernel_list
from louvain_um.gpu.runtime.launch import Struct
from louvain_um.placement.memory.vmm import GrowingRange

KINDS = {"": -1, "Unweighted": 0, "u32": 1, "u64": 2}
KINDS |= {name: kind for kind, name in enumerate(kernel_list.HEAPS)}
KINDS |= {f"Spans<{name}>, u64": kind for name, kind in KINDS.items()}

IN = {"merge": "batches", "linked": "batches"}
"""Libraries of sources that have none of their own."""


def address_or_value(argument):
    """Return where an array is, and a scalar as it is."""
    return argument.ctypes.data if isinstance(argument, np.ndarray) else argument


class Emulated:
    """NumPy's arrays, and kernels run by a few emulated blocks."""

    xp = np

    def __init__(self, libraries, blocks, *, maps=False):
        self.libraries, self.blocks, self.maps = libraries, blocks, maps
        self.landing = np.empty(8192, np.uint8)

    def threads(self, source, kernel, types=""):
        return 256 * self.blocks

    def launch(self, source, kernel, types, items, *args, front=""):
        assert types in kernel_list.CATALOGUE[source][kernel]
        if source == "relabel":
            held = [np.array(0 if a is None else address_or_value(a)) for a in args]
            pointers = (ctypes.c_void_p * len(held))(*(each.ctypes.data for each in held))
            library = self.libraries["any_relabelling"]
            assert library.launch_kernel(kernel.encode(), self.blocks, pointers)
            return
        given = [ctypes.c_int(self.blocks), ctypes.c_int(KINDS[types])]
        for arg in args:
            if arg is None:
                given.append(ctypes.c_void_p(None))
            elif isinstance(arg, Struct):
                given.append(ctypes.c_void_p(arg.argument.ctypes.data))
            elif isinstance(arg, np.ndarray):
                assert arg.flags.c_contiguous, kernel
                given.append(ctypes.c_void_p(arg.ctypes.data))
            elif isinstance(arg, np.uint64):
                given.append(ctypes.c_uint64(int(arg)))
            elif isinstance(arg, np.float64):
                given.append(ctypes.c_double(arg))
            else:
                assert isinstance(arg, np.int64)
                given.append(ctypes.c_int64(int(arg)))
        library = self.libraries.fronted(IN.get(source, source), front)
        getattr(library, f"{kernel}_as")(*given)

    def address(self, array):
        return 0 if array is None else array.ctypes.data

    def room(self, name, most):
        """Return memory that grows: mapped by an emulated driver, or copied."""
        return GrowingRange(name, most or 1 << 30, 0) if self.maps else Copied(np)

    def array_in(self, room, places, dtype):
        kind = np.dtype(dtype)
        if isinstance(room, Copied):
            return room.bytes[: places * kind.itemsize].view(kind)
        if not places:
            return np.empty(0, kind)
        held = (ctypes.c_uint8 * (places * kind.itemsize)).from_address(room.address)
        held.owner = room
        return np.frombuffer(held, kind)

    def free_cached(self):
        pass

    def clear(self, array):
        array.fill(0)

    def get(self, array):
        return array.copy()

    def read(self, array):
        landed = self.landing[: array.nbytes]  # as on a device, valid until the next call
        landed[:] = array
        return landed

    def errors(self):
        return nullcontext()


class DeviceArray(np.ndarray[Any, Any]):
    """An array that counts its bytes while it is alive, and their peak, if this test made it."""

    live = peak = tests = 0

    def __array_finalize__(self, other):
        if self.base is None and self.flags.owndata:
            DeviceArray.hold(self.nbytes, DeviceArray.tests)
            weakref.finalize(self, DeviceArray.hold, -self.nbytes, DeviceArray.tests)

    @classmethod
    def start(cls):
        """Begin a test: what others have left, garbage or not, counts no longer."""
        cls.live = cls.peak = 0
        cls.tests += 1

    @classmethod
    def hold(cls, nbytes, test):
        """Count bytes that come, or go."""
        if test == cls.tests:
            cls.live += nbytes
            cls.peak = max(cls.peak, cls.live)


class Counted:
    """NumPy, whose new arrays count their bytes."""

    def __getattr__(self, name):
        return getattr(np, name)

    def empty(self, shape, dtype=float):
        return np.ndarray.__new__(DeviceArray, shape, dtype)

    def zeros(self, shape, dtype=float):
        made = self.empty(shape, dtype)
        made.fill(0)
        return made


class Counting(Emulated):
    """A device whose arrays count their bytes (`DeviceArray`)."""

    xp: Any = Counted()

    def get(self, array):
        return np.array(array)


def on_device(g, device, store, budget=None, share=None):
    rows = g._store.compressed()
    held = device_store(store)(rows, 1, budget, device, share=share, **options_of(store))
    g._hold(held, g._contents.host_loops(), g._contents.host_degrees())
