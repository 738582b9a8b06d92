import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulator_cases import BLOCK, PAGES, Access, array, run, scan, touch

from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.simulator import (
    Array,
    Discard,
    Driver,
    HostTouches,
    Launch,
    Prefetch,
    Touches,
    Trace,
    simulate,
)
from louvain_um.profiling.simulator.driver.user_functions import EVICTIONS

ADVICE = ["none", "preferred_host", "host_mapped", "accessed_by", "preferred_gpu", "prefetched",
          "read_mostly", "pinned", "device"]  # fmt: skip


def one_page_a_block(blocks):
    return [touch(block * PAGES) for block in blocks]


def test_small_blocks_share_root_chunks():
    small = Array(name="a0", group="graph", nbytes=305 * 4096, starts="host")
    steps = [
        HostTouches(touches=Touches.runs(0, 0, 208)),
        Prefetch(array=0, to="gpu"),
        Prefetch(array=0, to="gpu"),
        touch(0),
    ]
    found = run(small, steps, placements={"a0": "prefetched"}, capacity=BLOCK)
    assert found.peak_bytes == BLOCK
    assert found.total("evictions") == 0


@pytest.mark.parametrize("room", [2, 5, 7])
def test_a_cyclic_scan_that_does_not_fit_never_hits(room):
    steps = one_page_a_block(list(range(8)) * 4)
    result = run(array(8), steps, capacity=room * BLOCK)
    assert result.batches == len(steps)
    assert run(array(8), steps, capacity=8 * BLOCK).batches == 8


def test_hot_blocks_age_all_the_same():
    # Block 0 is touched before every other one; the driver's order does not see it.
    blocks = [b for other in range(1, 9) for b in (0, other)]
    driver = run(array(9), one_page_a_block(blocks), capacity=3 * BLOCK)
    watching = run(
        array(9), one_page_a_block(blocks), capacity=3 * BLOCK, driver=Driver(eviction="lru")
    )
    assert watching.batches == 9
    assert driver.batches > watching.batches


def test_second_chance_and_frequency_keep_the_hot_block():
    blocks = [b for other in range(1, 9) for b in (0, other)]
    for policy in ("second_chance", "lfu"):
        kept = run(
            array(9), one_page_a_block(blocks), capacity=3 * BLOCK, driver=Driver(eviction=policy)
        )
        assert kept.batches < run(array(9), one_page_a_block(blocks), capacity=3 * BLOCK).batches


def test_migration_renews_a_block_s_place():
    # Blocks 0 and 1 come; then another page of 0 does; so 1 is evicted for 2, and 0 still hits.
    steps = [touch(0), touch(PAGES), touch(256), touch(2 * PAGES), touch(0)]
    assert run(array(3), steps, capacity=2 * BLOCK).batches == 4


def test_a_split_block_does_not_renew_its_place():
    # The same with block 0 cut by its advice: its second migration leaves it the oldest.
    cut = {"data": [(384, "none"), (PAGES, "read_mostly"), (3 * PAGES, "none")]}
    steps = [touch(0), touch(PAGES), touch(256), touch(2 * PAGES), touch(0)]
    capacity = BLOCK + 64 * 4096
    result = run(array(3), steps, capacity=capacity, placements=cut)
    assert result.batches == 5


def test_held_groups_go_last():
    hot, cold = array(2, name="hot", group="hash"), array(6, name="cold")
    steps = [scan(hot, 0), *[scan(cold, 1)] * 3, scan(hot, 0)]
    held = run((hot, cold), steps, capacity=4 * BLOCK, driver=Driver(hold=("hash",)))
    assert held.by_group()["hash"]["evictions"] == 0
    assert run((hot, cold), steps, capacity=4 * BLOCK).by_group()["hash"]["evictions"] > 0
    tight = run((hot, cold), steps, capacity=BLOCK, driver=Driver(hold=("hash", "graph")))
    assert tight.total("evictions") > 0


def test_tree_pre_eviction_makes_room_early():
    data = array(16)
    driver = run(data, [scan(data)], capacity=8 * BLOCK)
    early = run(data, [scan(data)], capacity=8 * BLOCK, driver=Driver(eviction="tree_pre"))
    assert early.total("evictions") >= driver.total("evictions")
    assert early.peak_bytes <= 8 * BLOCK


def test_one_resident_page_takes_a_whole_chunk():
    assert run(array(4), one_page_a_block([0, 1, 2])).peak_bytes == 3 * BLOCK
    small = [array(0.25, name=name) for name in "abcdef"]
    touched = [touch(0, number=number) for number in range(len(small))]
    assert run(small, touched).peak_bytes == BLOCK
    assert run(small, [scan(each, n) for n, each in enumerate(small)]).peak_bytes == 2 * BLOCK


def test_more_faults_than_a_batch_holds_come_again():
    scattered = Touches.runs(0, np.arange(600) * 16, 1)
    result = run(array(20), [Launch(touches=scattered)], window=600)
    assert result.replayed > 0
    assert result.fetched_faults >= result.total("faults")
    groups = result.events.where(Kind.GPU_FAULT_GROUP)
    assert result.events["count"][groups].max() <= 256


def test_a_service_takes_so_many_batches_at_most():
    batches = 45
    scattered = Launch(touches=Touches.runs(0, np.arange(256 * batches) * 16, 1))
    for most, services in ((20, 3), (45, 1), (1, 45)):
        ways = Driver(batches_per_service=most) if most != 20 else Driver()
        result = run(array(8 * batches), [scattered], window=256 * batches, driver=ways)
        assert (result.batches, result.services) == (batches, services)


def test_faults_on_one_page_are_one():
    same = run(array(), [Launch(touches=Touches.runs(0, [3] * 40, 1))])
    assert (same.fetched_faults, same.total("faults")) == (1, 1)
    assert same.total("touches") == 40


@st.composite
def programs(draw):
    sizes = draw(st.lists(st.integers(1, 5 * PAGES), min_size=1, max_size=3))
    items = tuple(
        Array(name=f"a{i}", group=draw(st.sampled_from(["graph", "hash"])), nbytes=size * 4096,
              starts=draw(st.sampled_from(["host", "nowhere"])))
        for i, size in enumerate(sizes)
    )  # fmt: skip
    steps = []
    for _ in range(draw(st.integers(1, 6))):
        kinds = ["launch", "launch", "launch", "host", "gpu", "back", "discard"]
        kind = draw(st.sampled_from(kinds))
        number = draw(st.integers(0, len(items) - 1))
        if kind == "discard":
            first = draw(st.integers(0, sizes[number] - 1))
            steps.append(Discard(array=number, first=first))
            continue
        if kind in ("gpu", "back"):
            steps.append(Prefetch(array=number, to="gpu" if kind == "gpu" else "host"))
            continue
        rows = draw(st.lists(st.tuples(st.integers(0, sizes[number] - 1), st.integers(1, 700),
                                       st.integers(0, 4)), min_size=1, max_size=12))  # fmt: skip
        first = [row[0] for row in rows]
        length = [min(row[1], sizes[number] - row[0]) for row in rows]
        stream = Touches.runs(number, first, length, [row[2] for row in rows])
        steps.append(Launch(touches=stream) if kind == "launch" else HostTouches(touches=stream))
    placements = {item.name: draw(st.sampled_from(ADVICE)) for item in items}
    on_device = sum(-(-item.pages // PAGES) for item in items if placements[item.name] == "device")
    room = (on_device + draw(st.integers(1, 6))) * BLOCK
    driver = Driver(eviction=draw(st.sampled_from(EVICTIONS)), hold=draw(st.sampled_from(
        [(), (items[0].name,)])))  # fmt: skip
    return Trace(items, tuple(steps)), placements, room, driver


@pytest.mark.parametrize(("pages", "kept"), [(None, 0), (3 * PAGES, 1), (3 * PAGES + 100, 1)])
def test_what_is_discarded_is_not_copied(pages, kept):
    items = [array(4, name="a", starts="nowhere"), array(4, name="b", starts="nowhere")]
    steps = [
        scan(items[0], way=Access.WRITE),
        Discard(array=0, pages=pages),
        scan(items[1], number=1, way=Access.WRITE),
    ]
    result = run(items, steps, capacity=4 * BLOCK)
    assert result.peak_bytes == 4 * BLOCK
    rest = 0 if pages is None else 4 * PAGES - pages
    assert result.bytes_to_host == rest * 4096
    assert result.total("evictions") == kept
    assert run(items, steps[::2], capacity=4 * BLOCK).bytes_to_host == 4 * BLOCK
    again = run(items, [*steps[:2], scan(items[0])], capacity=4 * BLOCK)
    assert again.bytes_to_device == 0
    assert again.total("evictions") == 0


def test_a_small_block_evicts_its_pieces_with_those_of_others():
    items = [array(231 / PAGES, name="a"), array(282 / PAGES, name="b")]
    steps = [
        Prefetch(array=0, to="gpu"),
        touch(0),
        touch(0),
        Launch(touches=Touches.runs(1, [0], [129])),  # the prefetcher brings all 282
    ]
    result = run(items, steps, capacity=BLOCK)
    assert result.total("evictions") == 1
    assert result.peak_bytes == BLOCK


@settings(max_examples=60)
@given(programs())
def test_whatever_runs_stays_within_its_room_and_repeats_itself(program):
    trace, placements, room, driver = program
    first = simulate(trace, placements=placements, capacity=room, driver=driver)
    again = simulate(trace, placements=placements, capacity=room, driver=driver)
    assert first.peak_bytes <= room
    assert first.dropped_events == 0
    assert first.total("touches") == trace.touches
    assert first.bytes_to_device == first.events.total(Kind.HTOD)
    assert first.bytes_to_host == first.events.total(Kind.DTOH)
    assert first.bytes_remote == first.events.total(Kind.REMOTE_ACCESS)
    assert first.total("faults") == first.events.total(Kind.GPU_FAULT_GROUP, column="count")
    assert first.total("evictions") == first.events.where(Kind.EVICTION).sum()
    assert np.all(np.diff(first.events["time"]) >= 0)
    assert first.seconds >= first.launch_seconds.sum() - 1e-12
    assert again.costs == first.costs
    assert np.array_equal(again.by_array, first.by_array)
    assert all(np.array_equal(again.events[n], first.events[n]) for n in first.events.columns)
