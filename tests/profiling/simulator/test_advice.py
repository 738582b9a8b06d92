"""The advice table: what the GPU's touch of a host page does, and what happens after eviction."""

import numpy as np
import pytest
from simulator_cases import BLOCK, KIB, PAGES, array, run, scan, touch

from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.simulator import Access, Driver, HostTouches, Launch, Prefetch, Touches
from louvain_um.profiling.simulator.initial_state import _roots
from louvain_um.profiling.simulator.layout import lay_out

WRITTEN_BY_HOST = HostTouches(touches=Touches.runs(0, 0, PAGES, Access.WRITE))


@pytest.mark.parametrize("advice", ["host_mapped", "pinned", "peer"])
@pytest.mark.parametrize("way", list(Access))
def test_zero_copy_never_faults(advice, way):
    data = array(8)
    result = run(data, [scan(data, way=way)] * 2, placements={"graph": advice}, capacity=2 * BLOCK)
    assert result.batches == 0
    assert result.bytes_to_device == result.bytes_to_host == 0
    each = data.nbytes if way <= Access.WRITE else data.pages * 32
    assert result.bytes_remote == 2 * each


def test_preferring_the_host_maps_one_page_a_fault():
    result = run(array(), [touch(*range(100))] * 2, placements={"data": "preferred_host"})
    assert result.total("faults") == result.total("remote_maps") == 100
    assert result.bytes_to_device == 0


def test_fresh_memory_that_prefers_the_host_begins_there():
    data = array(starts="nowhere")
    advice = {"data": "host_mapped"}
    result = run(data, [touch(3), scan(data)], placements=advice, window=1)
    assert (result.total("faults"), result.bytes_to_device) == (1, 0)


def test_accessed_by_alone_stays_on_the_host_until_an_explicit_prefetch():
    data = array(4)
    advice = {"data": "accessed_by"}
    assert run(data, [scan(data)], placements=advice).batches == 0
    moved = run(data, [Prefetch(array=0), scan(data)], placements=advice)
    assert (moved.bytes_to_device, moved.bytes_remote) == (data.nbytes, 0)
    steps = [Prefetch(array=0), scan(data)]
    evicted = run(data, steps, placements=advice, capacity=2 * BLOCK)
    assert evicted.batches == 0
    assert evicted.bytes_remote == 2 * BLOCK


def test_no_advice_migrates_and_migrates_back_after_eviction():
    data = array(4)
    result = run(data, [scan(data)] * 2, capacity=2 * BLOCK)
    assert result.bytes_to_device == 8 * BLOCK
    assert result.total("bytes_out_eviction") == 6 * BLOCK  # clean pages are copied, too


def test_preferring_the_gpu_does_not_protect_from_eviction():
    data = array(4)
    result = run(data, [scan(data)] * 2, capacity=2 * BLOCK, placements={"data": "preferred_gpu"})
    assert result.total("evictions") == 6


def test_evicting_read_mostly_moves_nothing():
    data = array(4)
    result = run(data, [scan(data)] * 3, capacity=2 * BLOCK, placements={"data": "read_mostly"})
    assert result.total("evictions") == 10
    assert result.bytes_to_host == 0
    assert result.bytes_to_device == 12 * BLOCK


def test_prefetching_read_mostly_to_the_host_drops_nothing():
    data = array()
    steps = [Prefetch(array=0), Prefetch(array=0, to="host"), scan(data)]
    result = run(data, steps, placements={"data": "read_mostly"})
    assert (result.batches, result.bytes_to_host, result.bytes_to_device) == (0, 0, BLOCK)


def test_writing_a_duplicate_drops_the_other_copy():
    data = array()
    steps = [scan(data), scan(data, way=Access.WRITE), HostTouches(touches=Touches.runs(0, 0, 1))]
    result = run(data, steps, placements={"data": "read_mostly"})
    assert result.bytes_to_device == BLOCK
    assert result.total("bytes_copies_dropped") == BLOCK
    assert result.total("host_faults") == 1
    assert result.bytes_to_host > 0


def test_a_host_read_of_read_mostly_leaves_the_gpu_copy():
    data = array(starts="nowhere")
    steps = [
        scan(data, way=Access.WRITE),
        HostTouches(touches=Touches.runs(0, 0, PAGES)),
        scan(data),
    ]
    result = run(data, steps, placements={"data": "read_mostly"})
    assert (result.bytes_to_host, result.bytes_to_device) == (BLOCK, 0)


def test_reads_map_for_writing_when_nobody_else_may_write():
    data = array()
    assert run(data, [scan(data), scan(data, way=Access.ATOMIC)]).batches == 2


def test_host_touches_bring_pages_back():
    data = array()
    result = run(data, [scan(data), WRITTEN_BY_HOST, scan(data)])
    assert result.bytes_to_host == BLOCK
    assert result.bytes_to_device == 2 * BLOCK
    assert 1 <= result.total("host_faults") <= 6
    assert result.events.total(Kind.CPU_FAULT, column="count") == result.total("host_faults")


def test_a_coherent_host_reads_the_gpu_in_place():
    data = array(starts="nowhere")
    steps = [scan(data, way=Access.WRITE), HostTouches(touches=Touches.runs(0, 0, PAGES))]
    advice = {"data": "preferred_gpu"}
    assert run(data, steps, placements=advice).bytes_to_host == BLOCK
    assert run(data, steps, placements=advice, coherent=True).bytes_to_host == 0


def test_explicit_prefetch_and_write_back_have_the_user_as_cause():
    data = array(3)
    result = run(data, [Prefetch(array=0), scan(data), Prefetch(array=0, to="host")])
    assert result.batches == 0
    assert result.events.total(Kind.HTOD, Cause.USER) == data.nbytes
    assert result.events.total(Kind.DTOH, Cause.USER) == data.nbytes  # clean pages, too


def test_a_prefetch_that_does_not_fit_moves_twice():
    data = array(4)
    result = run(data, [Prefetch(array=0)], capacity=3 * BLOCK)
    assert result.bytes_to_device > data.nbytes


def test_advice_that_ends_inside_a_block_splits_it():
    data = array()
    ranges = {"data": [(100, "host_mapped"), (PAGES, "none")]}
    result = run(data, [scan(data)], placements=ranges)
    assert result.bytes_remote == 100 * 4 * KIB
    assert result.bytes_to_device == 412 * 4 * KIB


def test_split_keeps_its_first_part_on_the_device():
    data = array(4)
    result = run(data, [scan(data)], placements={"data": "split(0.5)"}, capacity=2 * BLOCK)
    assert (result.batches, result.bytes_remote, result.peak_bytes) == (0, 2 * BLOCK, 2 * BLOCK)


def test_device_arrays_that_do_not_fit_are_refused():
    with pytest.raises(MemoryBudgetError, match="data"):
        run(array(4), [], placements={"data": "device"}, capacity=3 * BLOCK)


def test_device_arrays_that_the_host_takes_need_a_block_to_return():
    placed = {"placements": {"data": "device"}, "capacity": BLOCK}
    assert run(array(), [scan(array()), WRITTEN_BY_HOST], **placed).bytes_to_host == BLOCK
    with pytest.raises(MemoryBudgetError):
        run(array(), [WRITTEN_BY_HOST, scan(array())], **placed)


def test_small_device_arrays_that_the_host_takes_have_room_to_return():
    items = [array(2 / PAGES, name=f"a{number}") for number in range(200)]
    use = Touches.runs(range(200), 0, 2, Access.WRITE)
    layout = lay_out(items, {"graph": "device"})
    for placed in (layout, layout.seen_by(1, linked=True)):  # as its own GPU and another see it
        assert _roots(placed.blocks) * PAGES >= 400
    steps = [HostTouches(touches=use), Launch(touches=use)]
    result = run(items, steps, placements={"graph": "device"})
    assert result.bytes_to_host == 400 * 4096
    assert result.bytes_to_device == 2 * 400 * 4096  # loaded, and brought again


def test_the_array_s_own_placement_comes_before_its_group_s():
    data = array()
    result = run(data, [scan(data)], placements={"graph": "none", "data": "pinned"})
    assert result.batches == 0


@pytest.mark.parametrize(
    "placements", [{"nobody": "none"}, {"data": "floating"}, {"data": [(5, "none")]},
                   {"data": "split(2)"}, {"data": "split(1e)"}, {"data": 5}, ["data"]],
)  # fmt: skip
def test_unknown_placements_are_refused(placements):
    with pytest.raises(OptionError):
        run(array(), [], placements=placements)


@pytest.mark.parametrize(
    "setting", [{"batch_size": 1.5}, {"access_counters": 1.5}, {"prefetcher": "no"},
                {"hold": "graph"}, {"thrash_window_seconds": -1.0}],
)  # fmt: skip
def test_settings_of_the_driver_of_another_type_are_refused(setting):
    with pytest.raises(OptionError, match=f"driver.{next(iter(setting))} must"):
        Driver(**setting)


def test_random_touches_of_host_memory_cost_a_sector_each():
    data = array()
    pages = np.arange(PAGES)[::-1]
    launch = scan(data).__class__(touches=Touches.of(0, pages, Access.GATHER, 10))
    result = run(data, [launch], placements={"data": "host_mapped"})
    assert result.bytes_remote == PAGES * 10 * 32
    assert result.costs["remote_random"] == pytest.approx(PAGES * 10 / 567e6)
