"""Pages that change sides keep values and addresses; on real memory that is mapped anew."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
from fake_cuda import FakeCuda, Status, install

from louvain_um.placement.arena_spec import ArenaSpec
from louvain_um.placement.memory import cuda_calls, live_arrays
from louvain_um.placement.memory.allocator import Allocator
from louvain_um.placement.memory.cuda_calls import CudaError
from louvain_um.placement.memory.free_list import FreeList
from louvain_um.placement.memory.paging import schedule, span
from louvain_um.placement.memory.paging.movement import PageBudget
from louvain_um.placement.memory.paging.pages import Pages
from louvain_um.placement.policy.policy import Placement

MIB = 1 << 20
PAGE = 2 * MIB

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
NONE, FIXED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0x10


class Mapped(FakeCuda):
    """A driver that maps real memory: a page is a stretch of a file in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.file = os.memfd_create("pages")
        self.sizes: dict[int, int] = {}
        self.mapped = set[int]()

    def _driver(self) -> SimpleNamespace:
        driver = super()._driver()
        driver.cuMemMap = self._step("cuMemMap", self._map)
        driver.cuMemUnmap = self._unmap
        driver.cuMemAddressFree = self._step("cuMemAddressFree", self._free_addresses)
        return driver

    def _reserve(self, nbytes: int, *_: int) -> int:
        address = libc.mmap(None, nbytes + PAGE, 0, NONE, -1, 0)
        address = -(-address // PAGE) * PAGE
        self.alive[address] = ("reserved", nbytes)
        return address

    def _create(self, nbytes: int, wanted: object, flags: int) -> int:
        handle = super()._create(nbytes, wanted, flags)
        self.sizes[handle] = nbytes
        os.ftruncate(self.file, (self.handles + 1) * PAGE)
        return handle

    def _map(self, address: int, nbytes: int, offset: int, handle: int, flags: int) -> None:
        assert nbytes == self.sizes[handle] == PAGE
        both = mmap.PROT_READ | mmap.PROT_WRITE
        where = libc.mmap(address, nbytes, both, mmap.MAP_SHARED | FIXED, self.file, handle * PAGE)
        assert where == address
        assert address not in self.mapped
        self.mapped.add(address)

    def _unmap(self, address: int, nbytes: int) -> tuple[Status]:
        """Unmap pages of one range of addresses; refuse others, as the driver may."""
        reserved = ((a, n) for a, (kind, n) in [*self.alive.items()] if kind == "reserved")
        begin, whole = max((a, n) for a, n in reserved if a <= address)
        pages = set(range(address, address + nbytes, PAGE))
        if not pages <= self.mapped or address + nbytes > begin + whole:
            return (Status(1),)
        self.mapped -= pages
        assert libc.mmap(address, nbytes, 0, NONE | FIXED, -1, 0) == address
        return (Status(0),)

    def _free_addresses(self, address: int, nbytes: int) -> None:
        assert not self.mapped & set(range(address, address + nbytes, PAGE))
        assert self.alive.pop(address) == ("reserved", nbytes)


@pytest.fixture(params=["at once", "late"])
def cuda(monkeypatch, request):
    fake = install(monkeypatch, Mapped())
    late = Late() if request.param == "late" else None
    fake.late = late

    def view(address, shape, dtype, arena, owner=None):
        kind = np.dtype(dtype)
        raw = (ctypes.c_uint8 * max(shape * kind.itemsize, 1)).from_address(address)
        array = np.ctypeslib.as_array(raw)[: shape * kind.itemsize].view(kind)
        return Viewed(array, address, late)

    monkeypatch.setattr(live_arrays, "view", view)

    def copy_pages(to, of, nbytes, page, stream=0):
        if late is None:
            ctypes.memmove(to, of, nbytes)
        else:
            late.waiting.append((stream, to, of, nbytes))

    monkeypatch.setattr(span, "copy_pages", copy_pages)
    if late is not None:
        synchronize, wait_for = cuda_calls.synchronize, cuda_calls.wait_for
        monkeypatch.setattr(cuda_calls, "synchronize", lambda: late.end() or synchronize())
        monkeypatch.setattr(cuda_calls, "wait_for", lambda s: late.end(s) or wait_for(s))
    for call in ("copy", "copy_later"):
        monkeypatch.setattr(
            cuda_calls, call, lambda to, of, nbytes, *_: ctypes.memmove(to, of, nbytes)
        )
    yield fake
    os.close(fake.file)


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


def memory_of(cuda, arcs=12 * MIB):
    budget = PageBudget(device=22 * MIB, later=24 * MIB)
    return Allocator(layout(arcs), 0, budget=budget.device, pages=budget)


def filled(memory, name, nbytes, **more):
    array = memory.empty(name, "graph", nbytes // 4, np.uint32, **more)
    array.values[:] = np.random.default_rng(nbytes).integers(0, 1 << 31, array.size, np.uint32)
    return array, array.values.copy()


def sides(memory, name):
    arena = memory.arena_of(name)
    return len(arena.on("device")), len(arena.on("host"))


def test_the_input_is_loaded_on_the_host_and_comes_to_the_device(cuda):
    with memory_of(cuda) as memory:
        array, values = filled(memory, "targets.0", 12 * MIB)
        assert sides(memory, "targets.0") == (0, 6)
        memory.recall()
        assert sides(memory, "targets.0") == (6, 0)
        assert np.array_equal(array.values, values)
        assert memory.resident_bytes == 22 * MIB
    assert {kind for kind, _ in cuda.alive.values()} <= set()


def test_level_one_takes_the_place_of_the_input_which_leaves_for_nothing(cuda):
    with memory_of(cuda) as memory:
        array, values = filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        arcs, of_level = filled(memory, "targets.1", 13 * MIB, cold=True)
        assert sides(memory, "targets.1") == (7, 0)
        memory.settle("targets.1", least=0)
        assert sides(memory, "targets.1") == (7, 0)
        assert sides(memory, "targets.0") == (1, 5)
        assert np.array_equal(arcs.values, of_level)
        assert np.array_equal(memory.fetch("targets.0"), values)
        # What the level works with finds room on the device, too.
        filled(memory, "queue", 3 * MIB)
        assert not memory.overflowed
        memory.free("targets.1", "queue")
        memory.recall()
        assert sides(memory, "targets.0") == (6, 0)
        assert np.array_equal(array.values, values)


def test_what_a_level_works_with_goes_before_its_arcs(cuda):
    with memory_of(cuda) as memory:
        filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        arcs, values = filled(memory, "targets.1", 20 * MIB, cold=True)
        memory.settle("targets.1", least=8 * MIB)
        assert sides(memory, "targets.1")[1]
        filled(memory, "labels.0.1", 3 * MIB)
        filled(memory, "totals", 3 * MIB)
        assert not memory.overflowed
        assert np.array_equal(arcs.values, values)


def test_free_memory_of_the_shared_arena_is_lent_and_comes_back(cuda):
    with memory_of(cuda, arcs=MIB) as memory:
        filled(memory, "targets.0", MIB)
        memory.recall()
        arcs, values = filled(memory, "targets.1", 21 * MIB, cold=True)
        memory.settle("targets.1", least=2 * MIB)
        assert sides(memory, "targets.1") == (10, 1)
        assert memory.schedule.shared.blocks.free == 2 * MIB
        assert np.array_equal(arcs.values, values)
        memory.free("targets.1")
        memory.recall(least=5 * MIB)
        assert memory.schedule.shared.blocks.free >= 5 * MIB
        memory.empty("labels.1.0", "community", 5 * MIB // 4, np.uint32)
        assert not memory.overflowed


def test_new_rows_grow_in_place_and_are_cut(cuda):
    with memory_of(cuda) as memory:
        filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        arcs, values = filled(memory, "targets.1", 7 * MIB, cold=True, most=5 * MIB)
        longer = memory.extend("targets.1", 18 * MIB // 4, arcs.size)
        # The input has left; then rows that are finished went to the host, not those to come.
        assert sides(memory, "targets.0") == (0, 6)
        assert memory.arena_of("targets.1").on("host") == [0]
        memory.dress("targets.1")
        assert longer.data.ptr == arcs.data.ptr
        assert np.array_equal(longer.values[: len(values)], values)
        shorter = memory.shrink("targets.1", 4 * MIB // 4)
        assert sum(sides(memory, "targets.1")) == 2
        assert np.array_equal(shorter.values, values[: shorter.size])
        assert memory.extend("targets.1", 100 * MIB, 0) is None
        assert memory.extend("targets.0", 100 * MIB, 0) is None


def test_scratch_of_level_0_sends_the_end_of_the_input_away(cuda):
    with memory_of(cuda) as memory:
        array, values = filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        filled(memory, "aggregate_members", 13 * MIB)
        assert not memory.overflowed
        # The shared arena is wider by four pages, of which two were free.
        assert memory.arena_of("aggregate_members") is memory.schedule.shared
        assert sides(memory, "targets.0") == (4, 2)
        assert np.array_equal(array.values, values)


def test_without_room_scratch_is_on_the_host_and_told(cuda):
    with memory_of(cuda, arcs=MIB) as memory:
        filled(memory, "targets.0", MIB)
        filled(memory, "aggregate_members", 40 * MIB)
        assert memory.overflowed == {"aggregate_members": "pinned"}
        # More than was foreseen: the pool made pages in the middle of the run, and says so.
        assert memory.schedule.pool.late


def test_values_are_written_and_read_where_they_are(cuda):
    with memory_of(cuda) as memory:
        filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        arcs, values = filled(memory, "targets.1", 18 * MIB, cold=True)
        assert np.array_equal(memory.fetch("targets.1"), values)
        assert sum(n for _, n, _ in memory.sides("targets.1")) == 18 * MIB
        assert {side for _, _, side in memory.sides("targets.1")} == {"device", "host"}
        assert memory.name_of(arcs) == "targets.1"


@pytest.mark.parametrize("call", ["cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_a_driver_that_maps_no_pages_leaves_nothing_behind(cuda, call):
    cuda.reject = call
    if call == "cuMemCreate":  # then there are arenas as before
        with memory_of(cuda) as memory:
            assert memory.schedule is None
            assert memory.arena_of
        return
    with pytest.raises(Exception, match=call):
        Pages(0, 4 * MIB, 0, 0, PAGE)
    cuda.reject = None


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["cuMemMap", "cuMemUnmap", "cuMemSetAccess"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, CudaError("the driver", "out of memory", 2)])
def test_what_was_interrupted_while_it_mapped_pages_is_closed(cuda, monkeypatch, error, call, when):
    """An interrupt from the keyboard is seen as soon as a call has returned."""
    with memory_of(cuda) as memory:
        filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        arena, real, calls = memory.arena_of("targets.0"), getattr(cuda.driver, call), []

        def interrupted(*given):
            calls.append(given)
            found = real(*given) if when == "after" or len(calls) < 2 else None
            if len(calls) == 2:
                raise error
            return found

        with monkeypatch.context() as patch:
            patch.setattr(cuda.driver, call, interrupted)
            with pytest.raises((KeyboardInterrupt, CudaError)):
                arena.put("host", [0, 1, 2, 4, 5], keep=True)
    assert not cuda.alive
    assert not cuda.mapped


def test_what_is_unmapped_at_once_is_of_one_range_of_addresses(cuda, monkeypatch):
    pool = Pages(0, 8 * MIB, 0, 0, PAGE)
    mappings, free = pool.mappings, pool.take("device", 4)
    ends = [cuda._reserve(8 * PAGE)]
    del cuda.alive[ends[0]]

    def one_behind_the_other(nbytes, *_):
        cuda.alive[ends[-1]] = ("reserved", nbytes)
        ends.append(ends[-1] + nbytes)
        return Status(0), ends[-2]

    monkeypatch.setattr(cuda.driver, "cuMemAddressReserve", one_behind_the_other)
    ranges = [mappings.reserve(2 * PAGE) for _ in range(2)]
    for number, address in enumerate(ranges):
        mappings.map(address, free[2 * number : 2 * number + 2])
        mappings.unmap(address, 2)
    # Pages of the other range are mapped in either.
    for number, address in enumerate(ranges):
        mappings.map(address, free[2 - 2 * number : 4 - 2 * number])
    pool.close()
    assert not cuda.alive
    assert not cuda.mapped


def test_addresses_are_released_while_a_thread_unmaps_what_stayed_there(monkeypatch):
    cuda = install(monkeypatch, Mapped())
    pool = Pages(0, 4 * MIB, 4 * MIB, 0, PAGE)
    try:
        mappings, unmapped = pool.mappings, Event()
        address = mappings.reserve(2 * PAGE)
        real = cuda.driver.cuMemUnmap

        def slow(*given):
            unmapped.set()
            time.sleep(0.05)
            return real(*given)

        monkeypatch.setattr(cuda.driver, "cuMemUnmap", slow)
        mappings.map(address, pool.take("host", 2))
        mappings.unmap(address, 2)
        mappings.release(address)
        assert mappings.due == [address, address + PAGE]
        pool.unmap_released()
        assert unmapped.wait(10)
        # While the thread is at it, another takes the addresses, and is gone at once.
        assert mappings.reserve(2 * PAGE) == address
        mappings.release(address)
        assert not mappings.stale
        assert not mappings.due
    finally:
        pool.close()
    assert pool.failure is None
    assert not cuda.alive
    os.close(cuda.file)


def test_a_stretch_of_a_free_list_is_taken_where_it_is():
    blocks = FreeList(4096)
    blocks.reserve(1024, 512)
    assert blocks.holes == [(0, 1024), (1536, 2560)]
    with pytest.raises(ValueError, match="not free"):
        blocks.reserve(1280, 512)
    blocks.give(1024)
    assert (blocks.holes, blocks.free) == ([(0, 4096)], 4096)


def test_rows_begin_on_the_device_where_those_before_them_fill_it(cuda, monkeypatch):
    with memory_of(cuda) as memory:
        filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        before, values = filled(memory, "targets.1", 22 * MIB, cold=True)
        memory.settle("targets.1", least=0)
        memory.settle("targets.1", least=2 * MIB, grows=True)
        assert memory.schedule.room() >= 4 * PAGE
        rows, fresh = filled(memory, "targets.2", 4 * MIB, cold=True, most=6 * MIB)
        assert sides(memory, "targets.2") == (2, 0)
        # Half of what is final leaves through these pages, and what follows is written there.
        reach = memory.reach({"targets.2": 4 * MIB})
        assert reach == 3 * PAGE
        longer = memory.extend("targets.2", (4 * MIB + reach) // 4, rows.size)
        assert memory.arena_of("targets.2").on("host") == [0]
        # The other half is copied beside the kernel that writes it, which then leaves for nothing.
        memory.work_beside({"targets.2": 4 * MIB}, 8 * MIB)
        assert memory.arena_of("targets.2").backed_up == [1]
        rows_in = memory.arena_of("targets.2")
        assert rows_in.bare == {0}
        # That is before it ends: what it does not write makes room for what follows.
        assert memory.leave_beside("targets.2", nbytes=8 * MIB) == 0
        monkeypatch.setattr(schedule, "LEAST_WINDOW", 2)  # one page is half of it
        assert memory.leave_beside("targets.2", nbytes=8 * MIB) == PAGE
        assert rows_in.on("host") == [0, 1]
        longest = memory.extend("targets.2", 12 * MIB // 4, 4 * MIB // 4)
        assert sides(memory, "targets.2") == (4, 2)
        assert rows_in.bare == {0, 1}
        longer.values[len(fresh) :] = 5
        memory.dress_beside("targets.2")
        assert rows_in.bare == {0, 1}  # they have room when the level settles
        with monkeypatch.context() as smaller:
            smaller.setattr(memory.schedule.pool, "count", 4)
            memory.dress_beside("targets.2")
        assert rows_in.bare == {1}  # the kernel has ended
        longest.values[10 * MIB // 4 :] = 6
        memory.dress("targets.2")
        cuda_calls.synchronize()
        assert (longest.values[10 * MIB // 4 :] == 6).all()
        assert (longest.values[len(fresh) : 10 * MIB // 4] == 5).all()
        assert np.array_equal(longer.values[: len(fresh)], fresh)
        assert np.array_equal(before.values, values)


def test_the_shared_arena_widens_for_what_a_step_works_with(cuda):
    with memory_of(cuda, arcs=MIB) as memory:
        filled(memory, "targets.0", MIB)
        memory.recall()
        arcs, values = filled(memory, "targets.1", 14 * MIB, cold=True)
        scratch = memory.empty("queue", "scratch", 13 * MIB // 4, np.uint32)
        assert memory.arena_of("queue") is memory.schedule.shared
        assert sides(memory, "targets.1")[1] == 3
        scratch.values[:] = 7
        assert np.array_equal(arcs.values, values)
        memory.free("queue")
        memory.settle("targets.1", least=0)
        assert sides(memory, "targets.1") == (7, 0)
        assert np.array_equal(arcs.values, values)


def test_what_was_set_aside_leaves_for_rows_and_comes_back(cuda):
    with memory_of(cuda, arcs=MIB) as memory:
        filled(memory, "targets.0", MIB)
        memory.recall()
        labels, kept = filled(memory, "labels.0.0", 9 * MIB)
        arcs, values = filled(memory, "targets.1", 16 * MIB, cold=True)
        assert sides(memory, "targets.1")[1] == 2
        memory.settle("targets.1", least=0)
        assert sides(memory, "targets.1")[1] == 2  # the labels are still in use
        memory.set_aside("labels.0.0")
        memory.settle("targets.1", least=0)
        assert sides(memory, "targets.1") == (8, 0)
        assert memory.host_share("labels.0.0") > 0
        assert np.array_equal(labels.values, kept)
        assert np.array_equal(arcs.values, values)
        memory.free("targets.1")
        memory.bring_back()
        assert memory.host_share("labels.0.0") == 0
        assert np.array_equal(labels.values, kept)
        # Nothing is set aside any more.
        filled(memory, "targets.2", 20 * MIB, cold=True)
        assert memory.host_share("labels.0.0") == 0


def test_what_is_read_in_order_leaves_before_anything_overflows(cuda):
    with memory_of(cuda, arcs=MIB) as memory:
        filled(memory, "targets.0", MIB)
        memory.recall()
        members, values = filled(memory, "aggregate_members", 9 * MIB)
        memory.set_aside("aggregate_members", in_order=True)
        filled(memory, "targets.1", 16 * MIB, cold=True)
        assert memory.host_share("aggregate_members") == 0  # rows do not take its place
        filled(memory, "aggregate_rooms", 14 * MIB)
        assert not memory.overflowed
        assert memory.host_share("aggregate_rooms") == 0
        assert memory.host_share("aggregate_members") > 0
        # It is read where it is, and its pages are lent once it is gone.
        assert np.array_equal(members.values, values)
        memory.bring_back()
        assert memory.host_share("aggregate_members") > 0
        memory.free("aggregate_members")
        assert memory.schedule.shared.on("host") == []


def test_pages_of_what_was_set_aside_are_lent_when_it_is_freed(cuda):
    with memory_of(cuda, arcs=MIB) as memory:
        filled(memory, "targets.0", MIB)
        memory.recall()
        filled(memory, "labels.0.0", 9 * MIB)
        memory.set_aside("labels.0.0")
        arcs, values = filled(memory, "targets.1", 20 * MIB, cold=True)
        assert memory.host_share("labels.0.0") > 0.5
        memory.free("labels.0.0")
        assert memory.schedule.shared.on("host") == []
        assert np.array_equal(arcs.values, values)
        memory.free("targets.1")
        again, fresh = filled(memory, "labels.1.0", 13 * MIB)
        assert memory.arena_of("labels.1.0") is memory.schedule.shared
        assert not memory.overflowed
        assert np.array_equal(again.values, fresh)


def test_a_step_that_is_short_of_a_page_does_not_send_the_input_away(cuda):
    with memory_of(cuda, arcs=10 * MIB) as memory:
        array, values = filled(memory, "targets.0", 10 * MIB)
        # Beside the hole that is left there is an array, and no page that is lent.
        memory.empty("aggregate_members", "scratch", 9 * MIB // 4, np.uint32)
        memory.free("aggregate_members")
        memory.empty("labels.0.0", "community", MIB // 4, np.uint32, short_lived=True)
        memory.recall(least=memory.schedule.shared.blocks.free)
        assert sides(memory, "targets.0") == (5, 0)
        least = memory.schedule.shared.blocks.free + MIB
        memory.settle(least=least, later=False)
        assert memory.schedule.shared.blocks.free >= least
        assert sides(memory, "targets.0") == (5, 0)
        assert np.array_equal(array.values, values)


def test_the_input_returns_beside_small_levels_and_leaves_again(cuda):
    with memory_of(cuda) as memory:
        array, values = filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        filled(memory, "targets.1", 20 * MIB, cold=True)
        memory.settle("targets.1", least=0)
        assert sides(memory, "targets.0") == (0, 6)
        memory.free("targets.1")
        filled(memory, "targets.2", 2 * MIB, cold=True)
        memory.settle("targets.2", least=0)
        assert sides(memory, "targets.0") == (6, 0)
        assert memory.schedule.coming
        filled(memory, "queue", 13 * MIB)
        # Pages that are still coming are waited for before they leave.
        assert not memory.schedule.coming
        assert ("synchronize", memory.schedule.stream) in cuda.log
        assert np.array_equal(memory.fetch("targets.0"), values)
        memory.free("queue")
        memory.recall()
        assert sides(memory, "targets.0") == (6, 0)
        assert np.array_equal(array.values, values)


def test_rows_are_copied_to_the_host_beside_kernels_and_leave_for_nothing(cuda):
    with memory_of(cuda, arcs=MIB) as memory:
        filled(memory, "targets.0", MIB)
        memory.recall()
        before, values = filled(memory, "targets.1", 16 * MIB, cold=True, most=4 * MIB)
        memory.settle("targets.1", least=0)
        rows, pool = memory.arena_of("targets.1"), memory.schedule.pool
        assert sides(memory, "targets.1") == (8, 0)
        assert memory.schedule.coming
        # The next level has as many rows at most, and there is no other room for them.
        assert rows.backed_up == list(range(8))
        copied = pool.copied["host"]
        memory.settle("targets.1", least=2 * MIB, grows=True)
        fresh, first = filled(memory, "targets.2", 4 * MIB, cold=True, most=4 * MIB)
        assert memory.reach({"targets.2": 4 * MIB}) >= 8 * MIB
        memory.make_room({"targets.2": (3 * MIB, fresh.size)})
        longer = memory.extend("targets.2", 3 * MIB, fresh.size)
        assert sides(memory, "targets.2") == (6, 0)
        assert sides(memory, "targets.1")[1] > 0
        assert pool.copied["host"] == copied
        assert not memory.schedule.coming
        assert np.array_equal(before.values, values)
        assert np.array_equal(longer.values[: len(first)], first)
        memory.free("targets.1")
        assert rows.twins == {}
        memory.free("targets.2")
        assert pool.ready("host") == sum(page.side == "host" for page in pool.made) - 1


def test_what_nothing_reads_is_not_mapped_until_it_may_be_read(cuda):
    with memory_of(cuda) as memory:
        array, values = filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        filled(memory, "targets.1", 13 * MIB, cold=True)
        memory.settle("targets.1", least=0)
        arena = memory.arena_of("targets.0")
        before = len(arena.on("host"))
        filled(memory, "queue", 7 * MIB)
        assert len(arena.on("host")) > before
        assert len(arena.bare) == len(arena.on("host")) - before
        assert np.array_equal(memory.fetch("targets.0"), values)
        memory.recall()  # with less room than before
        assert sides(memory, "targets.0")[1] > 0
        assert not arena.bare
        assert np.array_equal(array.values, values)
    assert {kind for kind, _ in cuda.alive.values()} <= set()


def test_arcs_that_leave_while_a_level_is_made_are_read_in_the_hosts_copy(cuda):
    with memory_of(cuda) as memory:
        array, values = filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        assert memory.apart("targets.0") == (0, 0)
        memory.settle(least=0, later=False, grows=True)
        filled(memory, "targets.1", 13 * MIB, cold=True)
        near, far = memory.apart("targets.0")
        assert (sides(memory, "targets.0"), near) == ((1, 5), 2 * MIB)
        assert np.array_equal(array.values[: near // 4], values[: near // 4])
        copy = (ctypes.c_uint32 * (3 * MIB)).from_address(far)
        assert np.array_equal(np.ctypeslib.as_array(copy), values)
        memory.free("targets.1")
        memory.recall()
        assert memory.apart("targets.0") == (0, 0)
        assert np.array_equal(array.values, values)


def test_pages_stay_mapped_until_others_take_their_place(cuda):
    def opened():
        return sum(entry[0] == "cuMemSetAccess" for entry in cuda.log)

    with memory_of(cuda) as memory:
        filled(memory, "targets.0", 2 * MIB)
        memory.recall()
        first, _ = filled(memory, "targets.1", 10 * MIB, cold=True)
        memory.free("targets.1")
        before = opened()
        # As many pages of addresses, all of which are mapped there still.
        again, values = filled(memory, "targets.2", 8 * MIB, cold=True)
        assert again.data.ptr == first.data.ptr
        assert opened() == before
        assert np.array_equal(again.values, values)
        # Other pages are mapped there once those are in use elsewhere.
        memory.free("targets.2")
        rows = [filled(memory, f"targets.{i}", 8 * MIB, cold=True) for i in (3, 4)]
        assert opened() > before
        assert all(np.array_equal(array.values, values) for array, values in rows)
    assert {kind for kind, _ in cuda.alive.values()} <= set()


def test_a_stream_that_fails_leaves_no_pages(cuda, monkeypatch):
    memory = memory_of(cuda)
    with memory:
        filled(memory, "targets.0", 12 * MIB)
        memory.recall()
        filled(memory, "targets.1", 20 * MIB, cold=True)
        memory.settle("targets.1", least=0)
        memory.free("targets.1")
        filled(memory, "targets.2", 2 * MIB, cold=True)
        memory.settle("targets.2", least=0)
        assert memory.schedule.coming
        schedule, dropped = memory.schedule, []

        def fails(stream):
            raise CudaError("cudaStreamSynchronize", "cudaErrorIllegalAddress", 700)

        monkeypatch.setattr(cuda_calls, "wait_for", fails)
        monkeypatch.setattr(cuda_calls, "drop_stream", dropped.append)
        stream = schedule.stream
        with pytest.raises(CudaError, match="cudaErrorIllegalAddress"):
            schedule.close()
    assert dropped == [stream]
    assert (schedule.stream, schedule.coming) == (0, False)
    assert not cuda.alive


def test_host_pages_are_made_before_they_are_wanted(cuda):
    with memory_of(cuda) as memory:
        pool = memory.schedule.pool
        memory.recall()
        made = len(pool.made)
        filled(memory, "targets.0", 12 * MIB)
        filled(memory, "targets.1", 30 * MIB, cold=True)
        assert (len(pool.made), pool.late) == (made, 0)


def test_pages_that_may_be_wanted_leave_half_of_the_host(cuda, monkeypatch):
    monkeypatch.setattr("louvain_um.placement.memory.paging.pages.available", lambda: 16 * MIB)
    pool = Pages(0, 4 * MIB, 2 * MIB, 64 * MIB, PAGE)
    try:
        pool.finish()
        assert pool.ready("host") == 4
        # What turns out to be needed is made nevertheless.
        assert len(pool.take("host", 6)) == 6
        assert pool.late == 2
    finally:
        pool.close()
