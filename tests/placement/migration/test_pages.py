"""Pages keep values and addresses, whatever fails; on real memory that is mapped anew."""

import os
import time
from threading import Event

import numpy as np
import pytest
from fake_cuda import Status, install

from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.arena import FreeList
from louvain_um.placement.memory.cuda_calls import CudaError
from louvain_um.placement.migration.pages import PhysicalPages
from tests.placement.migration.mapped_memory import (
    MIB,
    PAGE,
    Mapped,
    begin,
    filled,
    memory_of,
    started,
)


def test_values_are_written_and_read_where_they_are(cuda):
    with started(cuda) as (memory, *_):
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
            assert memory.mover is None
        return
    with pytest.raises(Exception, match=call):
        PhysicalPages(0, 4 * MIB, 0, 0, PAGE)
    cuda.reject = None


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["cuMemMap", "cuMemUnmap", "cuMemSetAccess"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, CudaError("the driver", "out of memory", 2)])
def test_what_was_interrupted_while_it_mapped_pages_is_closed(cuda, monkeypatch, error, call, when):
    """An interrupt from the keyboard is seen as soon as a call has returned."""
    with started(cuda) as (memory, *_):
        arena, real, calls = memory.allocations["targets.0"].arena, getattr(cuda.driver, call), []

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
    pool = PhysicalPages(0, 8 * MIB, 0, 0, PAGE)
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
    pool = PhysicalPages(0, 4 * MIB, 4 * MIB, 0, PAGE)
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


def test_a_run_of_a_free_list_is_taken_where_it_is():
    blocks = FreeList(4096)
    blocks.reserve(1024, 512)
    assert blocks.gaps == [(0, 1024), (1536, 2560)]
    with pytest.raises(ValueError, match="not free"):
        blocks.reserve(1280, 512)
    blocks.give(1024)
    assert (blocks.gaps, blocks.free) == ([(0, 4096)], 4096)


def test_pages_stay_mapped_until_others_take_their_place(cuda):
    def opened():
        return sum(entry[0] == "cuMemSetAccess" for entry in cuda.log)

    with memory_of(cuda) as memory:
        filled(memory, "targets.0", 2 * MIB)
        memory.mover.begin_cycle(0)
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
        memory.mover.begin_cycle(0)
        filled(memory, "targets.1", 20 * MIB, cold=True)
        begin(memory, "targets.1", least=0)
        memory.free("targets.1")
        filled(memory, "targets.2", 2 * MIB, cold=True)
        begin(memory, "targets.2", least=0)
        assert memory.mover.room.copying
        room, dropped = memory.mover.room, []

        def fails(stream):
            raise CudaError("cudaStreamSynchronize", "cudaErrorIllegalAddress", 700)

        monkeypatch.setattr(cuda_calls, "wait_for", fails)
        monkeypatch.setattr(cuda_calls, "drop_stream", dropped.append)
        stream = room.stream
        with pytest.raises(CudaError, match="cudaErrorIllegalAddress"):
            room.close()
    assert dropped == [stream]
    assert (room.stream, room.copying) == (0, False)
    assert not cuda.alive


def test_host_pages_are_made_before_they_are_wanted(cuda):
    with memory_of(cuda) as memory:
        pool = memory.mover.room.pool
        memory.mover.begin_cycle(0)
        made = len(pool.made)
        filled(memory, "targets.0", 12 * MIB)
        filled(memory, "targets.1", 30 * MIB, cold=True)
        assert (len(pool.made), pool.late) == (made, 0)


def test_pages_that_may_be_wanted_leave_half_of_the_host(cuda, monkeypatch):
    monkeypatch.setattr("louvain_um.placement.migration.pages.available", lambda: 16 * MIB)
    pool = PhysicalPages(0, 4 * MIB, 2 * MIB, 64 * MIB, PAGE)
    try:
        pool.finish()
        assert pool.ready("host") == 4
        # What turns out to be needed is made nevertheless.
        assert len(pool.take("host", 6)) == 6
        assert pool.late == 2
    finally:
        pool.close()
