"""Memory in pages without a device: real memory that is mapped anew, and arrays over it."""

import ctypes
import mmap
import os
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
from fake_cuda import FakeCuda, Status

from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration.mover import Needs
from louvain_um.placement.migration.room import PageBudget
from louvain_um.placement.policy.policy import Placement

MIB = 1 << 20
PAGE = 2 * MIB

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
NONE, FIXED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0x10


class Mapped(FakeCuda):
    """A driver that maps real memory: a page is a part of a file in memory."""

    def __init__(self):
        super().__init__()
        self.file = os.memfd_create("pages")
        self.sizes: dict[int, int] = {}
        self.mapped = set[int]()

    def _driver(self):
        driver = super()._driver()
        driver.cuMemMap = self._step("cuMemMap", self._map)
        driver.cuMemUnmap = self._unmap
        driver.cuMemAddressFree = self._step("cuMemAddressFree", self._free_addresses)
        return driver

    def _reserve(self, nbytes, *_):
        address = libc.mmap(None, nbytes + PAGE, 0, NONE, -1, 0)
        address = -(-address // PAGE) * PAGE
        self.alive[address] = ("reserved", nbytes)
        return address

    def _create(self, nbytes, wanted, flags):
        handle = super()._create(nbytes, wanted, flags)
        self.sizes[handle] = nbytes
        os.ftruncate(self.file, (self.handles + 1) * PAGE)
        return handle

    def _map(self, address, nbytes, offset, handle, flags):
        assert nbytes == self.sizes[handle] == PAGE
        both = mmap.PROT_READ | mmap.PROT_WRITE
        where = libc.mmap(address, nbytes, both, mmap.MAP_SHARED | FIXED, self.file, handle * PAGE)
        assert where == address
        assert address not in self.mapped
        self.mapped.add(address)

    def _unmap(self, address, nbytes):
        """Unmap pages of one range of addresses; refuse others, as the driver may."""
        reserved = ((a, n) for a, (kind, n) in [*self.alive.items()] if kind == "reserved")
        begin, whole = max((a, n) for a, n in reserved if a <= address)
        pages = set(range(address, address + nbytes, PAGE))
        if not pages <= self.mapped or address + nbytes > begin + whole:
            return (Status(1),)
        self.mapped -= pages
        assert libc.mmap(address, nbytes, 0, NONE | FIXED, -1, 0) == address
        return (Status(0),)

    def _free_addresses(self, address, nbytes):
        assert not self.mapped & set(range(address, address + nbytes, PAGE))
        assert self.alive.pop(address) == ("reserved", nbytes)


class Late:
    """Copies between pages that end no sooner than something waits for their stream."""

    def __init__(self):
        self.waiting = []

    def end(self, *streams):
        ended = [copy for copy in self.waiting if not streams or copy[0] in streams]
        self.waiting = [copy for copy in self.waiting if copy not in ended]
        for _, to, of, nbytes in ended:
            ctypes.memmove(to, of, nbytes)


class Viewed:
    """Values at an address, and what the allocator asks of CuPy's arrays.

    Who reads or writes them does as a kernel: behind copies of the first stream.
    """

    def __init__(self, values, address, late):
        self.late, self.held, self.size, self.dtype = late, values, values.size, values.dtype
        self.itemsize, self.nbytes = values.itemsize, values.nbytes
        self.data = SimpleNamespace(ptr=address)

    @property
    def values(self):
        if self.late is not None:
            self.late.end(0)
        return self.held


def layout(arcs):
    here = Placement("device")
    return (
        ArenaSpec(
            name="targets.0", group="graph", capacity=arcs, placement=here, members=("targets.0",),
            in_pages=True,
        ),
        ArenaSpec(name="device", group=None, capacity=5 * MIB, placement=Placement("device")),
    )  # fmt: skip


def begin(memory, *names, least, step="move", level=1):
    memory.mover.begin(step, level, Needs(least=least, arrays=names))


def memory_of(cuda, arcs=12 * MIB):
    budget = PageBudget(device=22 * MIB, later=24 * MIB)
    return RunMemory(layout(arcs), 0, budget=budget.device, pages=budget)


@contextmanager
def started(cuda, arcs=12 * MIB):
    """Yield memory whose input is filled when the first cycle begins, the input, and its values."""
    with memory_of(cuda, arcs) as memory:
        array, values = filled(memory, "targets.0", arcs)
        memory.mover.begin_cycle(0)
        yield memory, array, values


def filled(memory, name, nbytes, **more):
    array = memory.empty(name, "graph", nbytes // 4, np.uint32, **more)
    array.values[:] = np.random.default_rng(nbytes).integers(0, 1 << 31, array.size, np.uint32)
    return array, array.values.copy()


def sides(memory, name):
    arena = memory.allocations[name].arena
    return len(arena.on("device")), len(arena.on("host"))
