"""Where bytes really are under each placement, and what is left when a run has ended."""

import ctypes
import gc
from collections.abc import Callable

import numpy as np
import pytest

from louvain_um.errors import MemoryBudgetError
from louvain_um.gpu.runtime.device import capabilities
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.machine.calibrate import Probes
from louvain_um.placement.memory import advise, cuda_calls
from louvain_um.placement.memory.cuda_calls import HOST, NOWHERE
from louvain_um.placement.memory.guard import guard, peer_for
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.policy.policy import KINDS, Placement

pytestmark = [pytest.mark.gpu, pytest.mark.alone]

MIB = 1 << 20
BYTES = 512 * MIB
SMALL = 320 * MIB
"""Bytes that the driver may take or give for purposes of its own, 128 MiB at a time."""

BUS = 150e9
"""Bytes/s between what a bus carries and what the memory of any device does."""


def spec(kind, capacity=BYTES, name="graph"):
    placement = Placement(kind, 0.5) if kind == "split" else Placement(kind)
    return ArenaSpec(name=name, group="graph", capacity=capacity, placement=placement)


def neighbour():
    """Return another device whose memory the first one reads; skip a test where there is none."""
    if len(capabilities()) < 2:
        pytest.skip("there is one device only")
    found = peer_for("cuda:1", 0)
    assert found is not None
    return found


@pytest.fixture
def free(gpu):
    """Free bytes before the test; as many must be free after it, or more.

    Other processes of the tests wait meanwhile, but may give back what they do not need.
    """
    import cupy

    gc.collect()
    cupy.zeros(1).sum().get()
    cupy.get_default_memory_pool().free_all_blocks()
    before, _ = cuda_calls.free_memory()
    yield before
    after, _ = cuda_calls.free_memory()
    assert before - after < SMALL
    assert not guard.ranges


@pytest.fixture
def run(free):
    """Make allocators that are closed when the test has ended, however it ended."""
    made = []

    def allocator(*layout):
        on_peer = any(each.placement.kind == "peer" for each in layout)
        made.append(RunMemory(layout, 0, peer=neighbour() if on_peer else None))
        return made[-1]

    yield allocator
    for memory in made:
        memory.close()


Run = Callable[..., RunMemory]


def on_device(address, nbytes):
    """Say whether bytes are on a device, by how fast one reads them; it does so four times."""
    return nbytes / Probes(0).read(address, nbytes) > BUS


SIDES = {
    # where bytes are that the host filled, and the device has read since
    "device": [True],
    "prefetched": [True],
    "managed": [True],
    "read_mostly": [True],
    "host_mapped": [False],
    "pinned": [False],
    "split": [True, False],
    "peer": [True],  # a link between devices is faster than the bus, too
}


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_where_the_placement_says(kind, run):
    memory = run(spec(kind))
    array = memory.empty("targets", "graph", BYTES // 4, np.uint32)
    memory.fill("targets", np.full(array.size, 3, np.uint32))
    found = [on_device(address, nbytes) for address, nbytes, _ in memory.sides("targets")]
    assert found == SIDES[kind]
    array.fill(5)
    assert int(array.max()) == int(array.min()) == 5
    found = [on_device(address, nbytes) for address, nbytes, _ in memory.sides("targets")]
    assert found == SIDES[kind]


def test_reading_over_the_bus_takes_no_device_memory(run, free):
    memory = run(spec("host_mapped", 1024 * MIB))
    array = memory.empty("targets", "graph", 256 * MIB, np.uint32)
    array.fill(1)
    assert int(array.max()) == 1
    cuda_calls.synchronize()
    assert free - cuda_calls.free_memory()[0] < SMALL


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 1000, 6 * MIB + 3, 160 * MIB + 1])
def test_values_come_from_the_host_and_from_the_device(kind, size, run):
    import cupy

    values = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    memory = run(spec(kind))
    memory.empty("first", "graph", 123, np.uint8)
    array = memory.empty("values", "graph", size + 5, np.uint8)
    for source in (values, cupy.asarray(values)):
        array.fill(9)
        memory.fill("values", source)
        found = memory.fetch("values")
        assert np.array_equal(array.get(), found)
        assert np.array_equal(found[:-5], values)
        assert set(found[-5:]) == {9}


GOALS = {
    "managed": [(NOWHERE, (), False, NOWHERE)],
    "read_mostly": [(NOWHERE, (), True, NOWHERE)],
    "prefetched": [(0, (), False, 0)],
    "host_mapped": [(HOST, (0,), False, NOWHERE)],
    "split": [(0, (), False, 0), (HOST, (0,), False, NOWHERE)],
}


@pytest.mark.parametrize("kind", GOALS)
def test_the_driver_reports_the_advice_it_got(kind, run):
    memory = run(spec(kind, 64 * MIB))
    (arena,) = memory.arenas
    found = [advise.attributes(arena.address + p.offset, p.nbytes) for p in arena.extents]
    assert found == [advise.RangeAdvice(*goal) for goal in GOALS[kind]]


@pytest.mark.parametrize("kind", ["managed", "prefetched", "host_mapped", "read_mostly", "split"])
def test_both_sides_see_one_array(kind, run):
    memory = run(spec(kind, 16 * MIB))
    array = memory.empty("targets", "graph", 4 * MIB, np.uint32)
    there = np.ctypeslib.as_array((ctypes.c_uint32 * array.size).from_address(array.data.ptr))
    there[:] = np.arange(array.size, dtype=np.uint32)
    assert int(array.astype(np.uint64).sum()) == array.size * (array.size - 1) // 2
    array += np.uint32(1)
    cuda_calls.synchronize()
    assert there[-1] == array.size
    del there


def test_another_placement_moves_bytes_and_keeps_values(run):
    memory = run(spec("host_mapped"))
    array = memory.empty("targets", "graph", BYTES // 4, np.uint32)
    array.fill(7)
    assert not on_device(array.data.ptr, BYTES)
    (arena,) = memory.arenas
    arena.place(Placement("prefetched"))
    assert int(array.max()) == int(array.min()) == 7
    assert on_device(array.data.ptr, BYTES)
    arena.place(Placement("host_mapped"))
    assert not on_device(array.data.ptr, BYTES)
    assert int(array.max()) == int(array.min()) == 7


def test_a_failure_half_way_leaves_the_device_usable(run, free):
    layout = tuple(spec(kind, 32 * MIB, kind) for kind in KINDS if kind != "peer")
    with pytest.raises(MemoryBudgetError):
        run(*layout, spec("device", 1 << 50, "scratch"))
    assert free - cuda_calls.free_memory()[0] < SMALL
    memory = run(*layout)
    memory.empty("targets", "graph", 1000, np.uint32).fill(1)


def test_two_runs_have_arenas_of_their_own(run):
    one, two = (run(spec("split", 16 * MIB)) for _ in range(2))
    a, b = (memory.empty("targets", "graph", 1000, np.uint32) for memory in (one, two))
    a.fill(1)
    b.fill(2)
    one.close()
    assert int(b.sum()) == 2000


def test_more_managed_memory_than_is_free_is_refused_before_it_is_asked_for(run, free, monkeypatch):
    monkeypatch.setattr(cuda_calls, "free_memory", lambda: (free, free))
    with pytest.raises(MemoryBudgetError, match="evict"):
        run(spec("managed", free + MIB))
    monkeypatch.undo()


def test_a_split_without_managed_memory(run, monkeypatch):
    monkeypatch.setattr(guard, "allows", lambda nbytes, device: False)
    memory = run(spec("split", 64 * MIB))
    (arena,) = memory.arenas
    assert not arena.managed
    array = memory.empty("targets", "graph", 16 * MIB, np.uint32)
    values = np.random.default_rng(0).integers(0, 1 << 32, array.size, np.uint32)
    memory.fill("targets", values)
    parts = memory.sides("targets")
    assert [on_device(address, nbytes) for address, nbytes, _ in parts] == [True, False]
    assert np.array_equal((array + np.uint32(1)).get(), values + np.uint32(1))
    assert np.array_equal(memory.fetch("targets"), values)
    array.fill(3)
    assert int(array.astype(np.uint64).sum()) == 3 * array.size
    there = np.ctypeslib.as_array((ctypes.c_uint32 * 4).from_address(parts[1][0]))
    cuda_calls.synchronize()
    assert there.tolist() == [3] * 4
