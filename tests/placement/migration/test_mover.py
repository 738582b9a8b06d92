"""Which pages change sides, and when; on real memory that is mapped anew."""

import numpy as np
import pytest

from tests.placement.migration.mapped_memory import MIB, begin, filled, memory_of, sides, started


def test_the_input_is_loaded_on_the_host_and_comes_to_the_device(cuda):
    with memory_of(cuda) as memory:
        array, values = filled(memory, "targets.0", 12 * MIB)
        assert sides(memory, "targets.0") == (0, 6)
        memory.mover.begin_cycle(0)
        assert sides(memory, "targets.0") == (6, 0)
        assert np.array_equal(array.values, values)
        assert memory.arenas.resident_bytes == 22 * MIB
    assert {kind for kind, _ in cuda.alive.values()} <= set()


def test_level_one_takes_the_place_of_the_input_which_leaves_for_nothing(cuda):
    with started(cuda) as (memory, array, values):
        arcs, of_level = filled(memory, "targets.1", 13 * MIB, cold=True)
        assert sides(memory, "targets.1") == (7, 0)
        begin(memory, "targets.1", least=0)
        assert sides(memory, "targets.1") == (7, 0)
        assert sides(memory, "targets.0") == (1, 5)
        assert np.array_equal(arcs.values, of_level)
        assert np.array_equal(memory.fetch("targets.0"), values)
        # What the level works with finds room on the device, too.
        filled(memory, "queue", 3 * MIB)
        assert not memory.overflowed
        memory.free("targets.1", "queue")
        memory.mover.begin_cycle(0)
        assert sides(memory, "targets.0") == (6, 0)
        assert np.array_equal(array.values, values)


def test_what_a_level_works_with_goes_before_its_arcs(cuda):
    with started(cuda) as (memory, *_):
        arcs, values = filled(memory, "targets.1", 20 * MIB, cold=True)
        begin(memory, "targets.1", least=8 * MIB)
        assert sides(memory, "targets.1")[1]
        filled(memory, "labels.0.1", 3 * MIB)
        filled(memory, "totals", 3 * MIB)
        assert not memory.overflowed
        assert np.array_equal(arcs.values, values)


def test_free_memory_of_the_shared_arena_is_reserved_and_comes_back(cuda):
    with started(cuda, MIB) as (memory, *_):
        arcs, values = filled(memory, "targets.1", 21 * MIB, cold=True)
        begin(memory, "targets.1", least=2 * MIB)
        assert sides(memory, "targets.1") == (10, 1)
        assert memory.mover.shared.blocks.free == 2 * MIB
        assert np.array_equal(arcs.values, values)
        memory.free("targets.1")
        memory.mover.begin_cycle(5 * MIB)
        assert memory.mover.shared.blocks.free >= 5 * MIB
        memory.empty("labels.1.0", "community", 5 * MIB // 4, np.uint32)
        assert not memory.overflowed


def test_scratch_of_level_0_sends_the_end_of_the_input_away(cuda):
    with started(cuda) as (memory, array, values):
        filled(memory, "aggregate_members", 13 * MIB)
        assert not memory.overflowed
        # The shared arena is wider by four pages, of which two were free.
        assert memory.allocations["aggregate_members"].arena is memory.mover.shared
        assert sides(memory, "targets.0") == (4, 2)
        assert np.array_equal(array.values, values)


def test_without_room_scratch_is_on_the_host_and_reported(cuda):
    with memory_of(cuda, arcs=MIB) as memory:
        filled(memory, "targets.0", MIB)
        filled(memory, "aggregate_members", 40 * MIB)
        assert memory.overflowed == {"aggregate_members": "pinned"}
        # More than was foreseen: the pool made pages in the middle of the run, and says so.
        assert memory.mover.room.pool.late


def test_the_shared_arena_widens_for_what_a_step_works_with(cuda):
    with started(cuda, MIB) as (memory, *_):
        arcs, values = filled(memory, "targets.1", 14 * MIB, cold=True)
        scratch = memory.empty("queue", "scratch", 13 * MIB // 4, np.uint32)
        assert memory.allocations["queue"].arena is memory.mover.shared
        assert sides(memory, "targets.1")[1] == 3
        scratch.values[:] = 7
        assert np.array_equal(arcs.values, values)
        memory.free("queue")
        begin(memory, "targets.1", least=0)
        assert sides(memory, "targets.1") == (7, 0)
        assert np.array_equal(arcs.values, values)


def test_what_was_set_aside_leaves_for_rows_and_comes_back(cuda):
    with started(cuda, MIB) as (memory, *_):
        labels, kept = filled(memory, "labels.0.0", 9 * MIB)
        arcs, values = filled(memory, "targets.1", 16 * MIB, cold=True)
        assert sides(memory, "targets.1")[1] == 2
        begin(memory, "targets.1", least=0)
        assert sides(memory, "targets.1")[1] == 2  # the labels are still in use
        memory.mover.let_leave("labels.0.0")
        begin(memory, "targets.1", least=0)
        assert sides(memory, "targets.1") == (8, 0)
        assert memory.host_share("labels.0.0") > 0
        assert np.array_equal(labels.values, kept)
        assert np.array_equal(arcs.values, values)
        memory.free("targets.1")
        memory.mover.return_idle()
        assert memory.host_share("labels.0.0") == 0
        assert np.array_equal(labels.values, kept)
        # Nothing is set aside any more.
        filled(memory, "targets.2", 20 * MIB, cold=True)
        assert memory.host_share("labels.0.0") == 0


def test_what_is_read_in_order_leaves_before_anything_overflows(cuda):
    with started(cuda, MIB) as (memory, *_):
        members, values = filled(memory, "aggregate_members", 9 * MIB)
        memory.mover.let_leave("aggregate_members", in_order=True)
        filled(memory, "targets.1", 16 * MIB, cold=True)
        assert memory.host_share("aggregate_members") == 0  # rows do not take its place
        filled(memory, "aggregate_rooms", 14 * MIB)
        assert not memory.overflowed
        assert memory.host_share("aggregate_rooms") == 0
        assert memory.host_share("aggregate_members") > 0
        # It is read where it is, and its pages are reserved once it is freed.
        assert np.array_equal(members.values, values)
        memory.mover.return_idle()
        assert memory.host_share("aggregate_members") > 0
        memory.free("aggregate_members")
        assert memory.mover.shared.on("host") == []


def test_pages_of_what_was_set_aside_are_reserved_when_it_is_freed(cuda):
    with started(cuda, MIB) as (memory, *_):
        filled(memory, "labels.0.0", 9 * MIB)
        memory.mover.let_leave("labels.0.0")
        arcs, values = filled(memory, "targets.1", 20 * MIB, cold=True)
        assert memory.host_share("labels.0.0") > 0.5
        memory.free("labels.0.0")
        assert memory.mover.shared.on("host") == []
        assert np.array_equal(arcs.values, values)
        memory.free("targets.1")
        again, fresh = filled(memory, "labels.1.0", 13 * MIB)
        assert memory.allocations["labels.1.0"].arena is memory.mover.shared
        assert not memory.overflowed
        assert np.array_equal(again.values, fresh)


@pytest.mark.parametrize("used", [0, 2 * MIB, 4 * MIB])
def test_a_step_that_is_short_of_a_page_does_not_send_the_input_away(cuda, used):
    with memory_of(cuda, arcs=10 * MIB) as memory:
        array, values = filled(memory, "targets.0", 10 * MIB)
        # Next to the remaining gap there is an array, and no reserved page.
        memory.empty("aggregate_members", "scratch", 9 * MIB // 4, np.uint32)
        memory.free("aggregate_members")
        memory.empty("labels.0.0", "community", MIB // 4, np.uint32, short_lived=True)
        memory.empty("queue", "scratch", used // 4, np.uint32)
        memory.mover.begin_cycle(memory.mover.shared.blocks.free)
        assert sides(memory, "targets.0") == (5, 0)
        least = memory.mover.shared.blocks.free + MIB
        assert len(memory.mover.shared.missing(memory.mover.shared.blocks.largest + MIB)) > 2
        begin(memory, least=least, level=0)
        assert memory.mover.shared.blocks.free >= least
        assert sides(memory, "targets.0") == (5, 0)
        assert np.array_equal(array.values, values)


def test_pages_of_other_gaps_make_one_gap_before_the_input_leaves(cuda):
    with memory_of(cuda, arcs=10 * MIB) as memory:
        array, values = filled(memory, "targets.0", 10 * MIB)
        memory.mover.begin_cycle(12 * MIB)
        assert sides(memory, "targets.0") == (5, 0)
        filled(memory, "labels.0.0", 4 * MIB)
        totals, kept = filled(memory, "totals", 2 * MIB)
        memory.free("labels.0.0")
        # Two gaps; pages next to the larger one are reserved.
        assert [nbytes for _, nbytes in memory.mover.shared.blocks.gaps] == [4 * MIB, 6 * MIB]
        queue, written = filled(memory, "queue", 8 * MIB)
        assert memory.allocations["queue"].arena is memory.mover.shared
        assert sides(memory, "targets.0") == (5, 0)
        assert [nbytes for _, nbytes in memory.mover.shared.blocks.gaps] == [2 * MIB]
        # What the other gaps lack, arcs give.
        more, last = filled(memory, "proposed", 5 * MIB)
        assert memory.allocations["proposed"].arena is memory.mover.shared
        assert sides(memory, "targets.0") == (3, 2)
        for held, expected in ((array, values), (totals, kept), (queue, written), (more, last)):
            assert np.array_equal(held.values, expected)


def test_the_input_returns_with_small_levels_and_leaves_again(cuda):
    with started(cuda) as (memory, array, values):
        filled(memory, "targets.1", 20 * MIB, cold=True)
        begin(memory, "targets.1", least=0)
        assert sides(memory, "targets.0") == (0, 6)
        memory.free("targets.1")
        filled(memory, "targets.2", 2 * MIB, cold=True)
        begin(memory, "targets.2", least=0)
        assert sides(memory, "targets.0") == (6, 0)
        assert memory.mover.room.copying
        filled(memory, "queue", 13 * MIB)
        # Pages that are still coming are waited for before they leave.
        assert not memory.mover.room.copying
        assert ("synchronize", memory.mover.room.stream) in cuda.log
        assert np.array_equal(memory.fetch("targets.0"), values)
        memory.free("queue")
        memory.mover.begin_cycle(0)
        assert sides(memory, "targets.0") == (6, 0)
        assert np.array_equal(array.values, values)
