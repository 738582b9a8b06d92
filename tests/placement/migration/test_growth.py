"""Rows of a new level grow, leave the device and come back, in pages on real memory."""

import ctypes

import numpy as np

from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.migration import room
from tests.placement.migration.mapped_memory import MIB, PAGE, begin, filled, sides, started


def test_new_rows_grow_in_place_and_are_cut(cuda):
    with started(cuda) as (memory, *_):
        arcs, values = filled(memory, "targets.1", 7 * MIB, cold=True, most=5 * MIB)
        longer = memory.extend("targets.1", 18 * MIB // 4, arcs.size)
        # The input has left; then rows that are finished went to the host, not those to come.
        assert sides(memory, "targets.0") == (0, 6)
        assert memory.allocations["targets.1"].arena.on("host") == [0]
        memory.mover.map_all(["targets.1"])
        assert longer.data.ptr == arcs.data.ptr
        assert np.array_equal(longer.values[: len(values)], values)
        shorter = memory.shrink("targets.1", 4 * MIB // 4)
        assert sum(sides(memory, "targets.1")) == 2
        assert np.array_equal(shorter.values, values[: shorter.size])
        assert memory.extend("targets.1", 100 * MIB, 0) is None
        assert memory.extend("targets.0", 100 * MIB, 0) is None


def test_rows_begin_on_the_device_where_those_before_them_fill_it(cuda, monkeypatch):
    with started(cuda) as (memory, *_):
        before, values = filled(memory, "targets.1", 22 * MIB, cold=True)
        begin(memory, "targets.1", least=0)
        begin(memory, "targets.1", least=2 * MIB, step="aggregate")
        assert memory.mover.room.free >= 4 * PAGE
        rows, fresh = filled(memory, "targets.2", 4 * MIB, cold=True, most=6 * MIB)
        assert sides(memory, "targets.2") == (2, 0)
        # Half of what is final leaves through these pages, and what follows is written there.
        reach = memory.mover.growth.reach({"targets.2": 4 * MIB})
        assert reach == 3 * PAGE
        longer = memory.extend("targets.2", (4 * MIB + reach) // 4, rows.size)
        assert memory.allocations["targets.2"].arena.on("host") == [0]
        # The other half is copied while the kernel writes it, and then leaves without a copy.
        memory.mover.growth.back_up({"targets.2": 4 * MIB}, 8 * MIB)
        assert memory.allocations["targets.2"].arena.backed_up == [1]
        rows_in = memory.allocations["targets.2"].arena
        assert rows_in.unmapped == {0}
        # That is before it ends: what it does not write makes room for what follows.
        assert memory.mover.growth.leave(["targets.2"], 8 * MIB) == 0
        monkeypatch.setattr(room, "LEAST_WINDOW", 2)  # one page is half of it
        assert memory.mover.growth.leave(["targets.2"], 8 * MIB) == PAGE
        assert rows_in.on("host") == [0, 1]
        longest = memory.extend("targets.2", 12 * MIB // 4, 4 * MIB // 4)
        assert sides(memory, "targets.2") == (4, 2)
        assert rows_in.unmapped == {0, 1}
        longer.values[len(fresh) :] = 5
        memory.mover.growth.map_early(["targets.2"])
        assert rows_in.unmapped == {0, 1}  # they have room when the level is placed
        with monkeypatch.context() as smaller:
            smaller.setattr(memory.mover.room.pool, "count", 4)
            memory.mover.growth.map_early(["targets.2"])
        assert rows_in.unmapped == {1}  # the kernel has ended
        longest.values[10 * MIB // 4 :] = 6
        memory.mover.map_all(["targets.2"])
        cuda_calls.synchronize()
        assert (longest.values[10 * MIB // 4 :] == 6).all()
        assert (longest.values[len(fresh) : 10 * MIB // 4] == 5).all()
        assert np.array_equal(longer.values[: len(fresh)], fresh)
        assert np.array_equal(before.values, values)


def test_rows_are_copied_to_the_host_during_kernels_and_leave_without_a_copy(cuda):
    with started(cuda, MIB) as (memory, *_):
        before, values = filled(memory, "targets.1", 16 * MIB, cold=True, most=4 * MIB)
        begin(memory, "targets.1", least=0)
        rows, pool = memory.allocations["targets.1"].arena, memory.mover.room.pool
        assert sides(memory, "targets.1") == (8, 0)
        assert memory.mover.room.copying
        # The next level has as many rows at most, and there is no other room for them.
        assert rows.backed_up == list(range(8))
        copied = pool.copied["host"]
        begin(memory, "targets.1", least=2 * MIB, step="aggregate")
        fresh, first = filled(memory, "targets.2", 4 * MIB, cold=True, most=4 * MIB)
        assert memory.mover.growth.reach({"targets.2": 4 * MIB}) >= 8 * MIB
        memory.mover.growth.make_room({"targets.2": 12 * MIB}, {"targets.2": 4 * fresh.size})
        longer = memory.extend("targets.2", 3 * MIB, fresh.size)
        assert sides(memory, "targets.2") == (6, 0)
        assert sides(memory, "targets.1")[1] > 0
        assert pool.copied["host"] == copied
        assert not memory.mover.room.copying
        assert np.array_equal(before.values, values)
        assert np.array_equal(longer.values[: len(first)], first)
        memory.free("targets.1")
        assert rows.host_copies == {}
        memory.free("targets.2")
        assert pool.ready("host") == sum(page.side == "host" for page in pool.made) - 1


def test_what_nothing_reads_is_not_mapped_until_it_may_be_read(cuda):
    with started(cuda) as (memory, array, values):
        filled(memory, "targets.1", 13 * MIB, cold=True)
        begin(memory, "targets.1", least=0)
        arena = memory.allocations["targets.0"].arena
        before = len(arena.on("host"))
        filled(memory, "queue", 7 * MIB)
        assert len(arena.on("host")) > before
        assert len(arena.unmapped) == len(arena.on("host")) - before
        assert np.array_equal(memory.fetch("targets.0"), values)
        memory.mover.begin_cycle(0)  # with less room than before
        assert sides(memory, "targets.0")[1] > 0
        assert not arena.unmapped
        assert np.array_equal(array.values, values)
    assert {kind for kind, _ in cuda.alive.values()} <= set()


def test_the_input_returns_while_a_cycle_is_read(cuda):
    with started(cuda) as (memory, array, values):
        here, copied = sides(memory, "targets.0"), memory.mover.room.pool.copied
        _, rows = filled(memory, "targets.1", 13 * MIB, cold=True)
        begin(memory, "targets.1", least=0)
        gone, before = sides(memory, "targets.0"), copied["device"]
        assert gone[1] > here[1]
        memory.mover.start_return(4 * MIB)  # in addition to what is still there
        assert np.array_equal(memory.fetch("targets.1"), rows)
        memory.free("targets.1")
        memory.mover.start_return(0)
        assert memory.mover.room.copying
        assert sides(memory, "targets.0") == here
        came = copied["device"]
        assert came > before
        memory.mover.begin_cycle(0)
        assert not memory.mover.room.copying
        assert copied["device"] == came
        assert np.array_equal(array.values, values)


def test_arcs_that_leave_while_a_level_is_made_are_read_in_the_hosts_copy(cuda):
    with started(cuda) as (memory, array, values):
        assert memory.mover.unmapped_from("targets.0") == (0, 0)
        begin(memory, least=0, step="aggregate", level=0)
        filled(memory, "targets.1", 13 * MIB, cold=True)
        near, far = memory.mover.unmapped_from("targets.0")
        assert (sides(memory, "targets.0"), near) == ((1, 5), 2 * MIB)
        assert np.array_equal(array.values[: near // 4], values[: near // 4])
        copy = (ctypes.c_uint32 * (3 * MIB)).from_address(far)
        assert np.array_equal(np.ctypeslib.as_array(copy), values)
        memory.free("targets.1")
        memory.mover.begin_cycle(0)
        assert memory.mover.unmapped_from("targets.0") == (0, 0)
        assert np.array_equal(array.values, values)


def test_new_rows_find_pages_that_were_mapped_early(cuda):
    with started(cuda, 4 * MIB) as (memory, *_):
        free = memory.mover.room.pool.ready("device")
        memory.mover.prepare(0, 0, (4 * MIB, 8 * MIB))
        assert memory.mover.room.pool.ready("device") == free == 6
        mapped = set(cuda.mapped)
        weights, _ = filled(memory, "weights.1", 4 * MIB, cold=True, most=MIB)
        targets, values = filled(memory, "targets.1", 8 * MIB, cold=True, most=2 * MIB)
        assert cuda.mapped == mapped
        weights.values[:] = 3
        assert np.array_equal(targets.values, values)


def test_what_has_a_copy_leaves_for_rows_that_grow(cuda):
    with started(cuda) as (memory, _, arcs):
        begin(memory, least=0, step="aggregate", level=0)
        filled(memory, "targets.1", 4 * MIB, cold=True, most=6 * MIB)
        assert sides(memory, "targets.0") == (6, 0)
        assert memory.mover.room.free == 0
        memory.mover.growth.free_early({"targets.1": 4 * MIB}, 8 * MIB)
        assert sides(memory, "targets.0") == (2, 4)
        memory.mover.growth.back_up({"targets.1": 4 * MIB}, 8 * MIB)
        # Enough leaves without a copy of these rows.
        assert memory.allocations["targets.1"].arena.backed_up == []
        assert memory.mover.growth.leave(["targets.1"], 8 * MIB) == 4 * PAGE
        assert np.array_equal(memory.fetch("targets.0"), arcs)
