"""Memory of the host as other machines and allocators have it."""

from dataclasses import replace

import pytest

from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.simulator import (
    TOTALS,
    Access,
    Allocate,
    Array,
    Driver,
    Free,
    HostTouches,
    Prefetch,
    Touches,
    Trace,
    load_trace,
    simulate,
)
from tests.profiling.simulator.simulator_cases import BLOCK, PAGES, array, scan, touch

GH200 = load_machine("gh200")
SMALL_PAGES = replace(GH200, host_page_bytes=4096)
PLAIN = Driver(prefetcher=False)
COUNTED = 256


def on(machine, items, steps, placement="managed", **options):
    trace = Trace(tuple(items), tuple(steps))
    placements = {item.name: placement for item in items}
    return simulate(trace, machine, placements=placements, **options)


@pytest.mark.parametrize(("machine", "pages"), [(GH200, 16), (SMALL_PAGES, 1)])
def test_the_host_s_pages_are_mapped_and_fault_whole(machine, pages):
    item = array(name="data")
    mapped = on(machine, [item], [touch(3, way=Access.GATHER)], "preferred_host")
    assert mapped.total("remote_maps") == pages
    twice = on(machine, [item], [touch(3), touch(4)], "preferred_host")
    assert twice.total("faults") == (1 if pages > 1 else 2)
    brought = on(machine, [item], [touch(3)], driver=PLAIN)
    assert brought.bytes_to_device == 4096 * pages
    back = HostTouches(touches=Touches.runs(0, 0, item.pages))
    pcie = replace(machine, coherent=False)
    returned = on(pcie, [item], [scan(item), back], driver=PLAIN)
    assert returned.total("host_faults") == PAGES / pages
    assert returned.bytes_to_host == BLOCK


def test_what_malloc_gave_is_mapped_on_coherent_machines_until_counters_move_it():
    item = array(name="data")
    few = on(GH200, [item], [touch(0, way=Access.GATHER)] * (COUNTED - 1), "malloc")
    assert (few.total("faults"), few.bytes_to_device) == (0, 0)
    many = on(GH200, [item], [touch(0, way=Access.GATHER)] * COUNTED, "malloc")
    assert many.total("faults") == 0
    assert many.bytes_to_device == 16 * 4096
    ignored = on(SMALL_PAGES, [item], [touch(0, way=Access.GATHER)] * COUNTED, "malloc")
    assert ignored.bytes_to_device == 0
    fresh = array(name="data", starts="nowhere")
    first = on(GH200, [fresh], [scan(fresh, way=Access.WRITE)], "malloc")
    assert first.total("remote_accesses") == first.bytes_to_device == 0  # where it is written first


def test_what_malloc_gave_migrates_as_managed_memory_over_pcie():
    items = [array(4, name="data"), array(4, name="more", starts="nowhere")]
    steps = [scan(items[0]), scan(items[1], 1, Access.WRITE), scan(items[0])]
    runs = [on("h200", items, steps, where, capacity=5 * BLOCK) for where in ("malloc", "managed")]
    assert runs[0].total("evictions") > 0
    assert runs[0].by_array.tolist() == runs[1].by_array.tolist()
    assert runs[0].seconds == runs[1].seconds


def pooled(pool):
    """Return two arrays of a pool, one after the other, and a third one that needs the memory."""
    items = [Array(name=name, group="scratch", nbytes=4 * BLOCK, starts="nowhere", pool=pool)
             for name in ("one", "two")]  # fmt: skip
    other = array(4, name="other")
    steps = [scan(items[0], 0, Access.WRITE), Free(array=0), Allocate(array=1),
             scan(items[1], 1, Access.WRITE), Free(array=1), scan(other, 2)]  # fmt: skip
    return [*items, other], steps


def test_a_pool_keeps_pages_and_copies_what_is_not_needed():
    runs = [on("h200", *pooled(pool), capacity=5 * BLOCK) for pool in ("pool", None)]
    faults = TOTALS.index("faults")
    assert [run.by_array[1, faults] > 0 for run in runs] == [False, True]
    # The driver does not know that nobody needs what the pool holds.
    assert [run.bytes_to_host for run in runs] == [3 * BLOCK, 0]
    assert [run.total("evictions") for run in runs] == [3, 0]


def test_pools_and_batches_come_back_from_files(tmp_path):
    items, steps = pooled("pool")
    trace = Trace(tuple(items), (*steps, Prefetch(array=2), Prefetch(array=2, batched=True)))
    trace.save(tmp_path / "t.npz")
    again = load_trace(tmp_path / "t.npz")
    assert (again.arrays, again.steps[-2:]) == (trace.arrays, trace.steps[-2:])


def test_a_batch_of_prefetches_is_one_call():
    item = array(8, name="data")
    parts = [
        [Prefetch(array=0, first=PAGES * at, pages=PAGES, batched=batched and at > 0)
         for at in range(8)]
        for batched in (False, True)
    ]  # fmt: skip
    separate, together = (on("h200", [item], steps) for steps in parts)
    assert together.bytes_to_device == separate.bytes_to_device == 8 * BLOCK
    saved = 7 * load_machine("h200").prefetch_call_seconds
    assert separate.seconds - together.seconds == pytest.approx(saved)
