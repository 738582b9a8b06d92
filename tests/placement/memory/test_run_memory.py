from dataclasses import replace

import numpy as np
import pytest
from fake_cuda import GIB

from louvain_um.errors import MemoryBudgetError, PlacementError
from louvain_um.gpu.memory.array_specs import declare
from louvain_um.gpu.memory.run_plan import declare_compact
from louvain_um.placement.detection_plan import make_plan
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.memory.guard import MARGIN, guard
from louvain_um.placement.memory.host import PageLocked
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.policy.auto import DeclaredRun
from louvain_um.placement.policy.policy import Placement
from louvain_um.planning import shape_of_size

MIB = 1 << 20


def spec(name, group, capacity, kind="device", fraction=1.0, members=None):
    placement = Placement(kind, fraction)
    return ArenaSpec(
        name=name, group=group, capacity=capacity, placement=placement, members=members
    )


LAYOUT = (
    spec("graph", "graph", 4 * MIB, "host_mapped"),
    spec("targets", "graph", 8 * MIB, "split", 0.5, ("targets.0",)),
    spec("hash", "hash", MIB),
)


def test_an_array_goes_to_the_arena_that_names_it_or_to_its_groups(cuda):
    memory = RunMemory(LAYOUT, 0)
    memory.empty("targets.0", "graph", 2 * MIB, np.uint32)
    memory.empty("weights.0", "graph", 100, np.uint32)
    assert memory.allocations["targets.0"].arena.spec.name == "targets"
    assert memory.allocations["weights.0"].arena.spec.name == "graph"
    assert [side for _, _, side in memory.sides("targets.0")] == ["device", "host"]
    assert memory.arenas.resident_bytes == 5 * MIB
    assert memory.peak_bytes["graph"] == 8 * MIB + 400
    memory.close()
    assert not cuda.alive
    assert not guard.ranges


def test_what_was_planned_for_the_first_level_is_not_taken_by_later_ones(cuda):
    layout = (
        spec("start", "community", MIB, "host_mapped", members=("start",)),
        spec("community", "community", MIB),
    )
    memory = RunMemory(layout, 0)
    for name, where in (
        ("start.0.0", "start"), ("start.1.0", "start"), ("start.0.1", "community"),
        ("starting", "community"),
    ):  # fmt: skip
        memory.empty(name, "community", 100, np.uint32)
        assert memory.allocations[name].arena.spec.name == where, name
    assert memory.overflowed == {}
    memory.close()


def test_arenas_of_device_memory_cost_one_allocation_each(cuda):
    memory = RunMemory((spec("hash", "hash", MIB), spec("graph", "graph", MIB)), 0)
    for number in range(100):
        memory.empty(f"a{number}", "hash", 1000, np.uint8)
        memory.empty(f"b{number}", "graph", 1000, np.uint8)
    assert [name for name, *_ in cuda.log] == ["malloc", "malloc"]


def test_listeners_hear_of_every_array(cuda):
    heard = []
    memory = RunMemory(LAYOUT, 0, listener=lambda *event: heard.append(event))
    array = memory.empty("keys", "hash", 10, np.uint32)
    smaller = memory.shrink("keys", 4)
    memory.free("keys")
    at = array.data.ptr
    assert (smaller.size, smaller.data.ptr) == (4, at)
    assert heard == [
        ("array", "keys", "hash", at, 40),
        ("freed", "keys", "hash", at + 16, 24),
        ("freed", "keys", "hash", at, 16),
    ]


def test_names_are_used_once_and_arrays_do_not_grow(cuda):
    memory = RunMemory(LAYOUT, 0)
    memory.empty("keys", "hash", 10, np.uint32)
    with pytest.raises(KeyError, match="live already"):
        memory.empty("keys", "hash", 1, np.uint8)
    with pytest.raises(ValueError, match="fewer than 11"):
        memory.shrink("keys", 11)


def test_what_finds_no_room_goes_to_the_device_then_to_the_host(cuda):
    memory = RunMemory((spec("hash", "hash", MIB),), 0, budget=4 * MIB)
    memory.empty("a", "hash", MIB, np.uint8)
    memory.empty("b", "hash", 2 * MIB, np.uint8)
    memory.empty("c", "hash", 2 * MIB, np.uint8)
    assert memory.overflowed == {"b": "device", "c": "host_mapped"}
    assert memory.arenas.resident_bytes == 3 * MIB
    memory.free("b")
    assert memory.arenas.resident_bytes == MIB
    assert len(cuda.alive) == 2
    memory.free("a")
    memory.empty("d", "hash", MIB, np.uint8)
    assert memory.allocations["d"].arena.spec.name == "hash"
    memory.close()
    assert not cuda.alive


def test_overflow_without_managed_memory_is_pinned(cuda):
    cuda.attributes[89] = 0
    memory = RunMemory((spec("hash", "hash", MIB),), 0, budget=MIB)
    memory.empty("a", "hash", 2 * MIB, np.uint8)
    assert memory.overflowed == {"a": "pinned"}


def test_no_room_anywhere_is_an_error_that_names_the_array(cuda):
    memory = RunMemory((spec("hash", "hash", MIB),), 0, budget=MIB)
    memory.empty("labels", "hash", MIB, np.uint8)
    cuda.fail_after = 0
    with pytest.raises(MemoryBudgetError, match="largest: table") as caught:
        memory.empty("table", "hash", 2 * MIB, np.uint8)
    assert (caught.value.needed, caught.value.budget) == (3 * MIB, MIB)
    assert memory.live.keys() == {"labels"}


def test_a_layout_above_the_budget_is_refused(cuda):
    with pytest.raises(MemoryBudgetError, match="largest: targets"):
        RunMemory(LAYOUT, 0, budget=5 * MIB - 1)
    assert not cuda.alive
    RunMemory(LAYOUT, 0, budget=5 * MIB).close()


def test_a_paged_arena_counts_with_its_share(cuda):
    layout = (spec("targets", "graph", 64 * MIB, "managed"),)
    with pytest.raises(MemoryBudgetError):
        RunMemory(layout, 0, budget=16 * MIB)
    memory = RunMemory(layout, 0, budget=16 * MIB, out_of_core={"targets": 10 * MIB})
    assert memory.arenas.resident_bytes == 10 * MIB


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_failure_half_way_frees_everything(cuda, after):
    cuda.fail_after = after
    with pytest.raises((MemoryBudgetError, PlacementError)):
        RunMemory((*LAYOUT, spec("scratch", "scratch", 9 * GIB)), 0)
    assert not cuda.alive
    assert not guard.ranges


def test_two_runs_in_one_process_share_nothing(cuda):
    one, two = RunMemory(LAYOUT, 0), RunMemory(LAYOUT, 0)
    a = one.empty("targets.0", "graph", MIB, np.uint32)
    b = two.empty("targets.0", "graph", MIB, np.uint32)
    assert a.data.ptr != b.data.ptr
    one.close()
    assert two.allocations["targets.0"].arena.address in cuda.alive
    two.close()
    assert not cuda.alive


def test_without_a_layout_each_array_is_an_allocation(cuda):
    memory = RunMemory((), 0)
    memory.empty("a", "scratch", 1000, np.uint8)
    assert [kind for kind, _ in cuda.alive.values()] == ["malloc"]
    assert not memory.overflowed
    memory.free("a")
    assert not cuda.alive


def lenient(*specs):
    """Return arenas as "auto" lays them out."""
    return tuple(replace(each, lenient=True) for each in specs)


BEYOND = (
    spec("targets.1", "graph", 2 * MIB, "host_mapped", members=("targets.1",)),
    spec("targets.0", "graph", 24 * MIB, "split", 0.5, ("targets.0",)),
    spec("weights.0", "graph", 12 * MIB, "split", 0.5, ("weights.0",)),
    spec("device", None, 12 * MIB),
)
"""On the device 30 MiB, with the host's parts 50."""


@pytest.mark.parametrize("why", ["no managed memory", "more than is free"])
def test_auto_does_without_managed_memory_where_it_must(cuda, why):
    cuda.free_bytes = MARGIN + 32 * MIB
    if why == "no managed memory":
        cuda.free_bytes, cuda.attributes[89] = GIB, 0
    memory = RunMemory(lenient(*BEYOND), 0, budget=30 * MIB)
    assert not any(name == "mallocManaged" for name, *_ in cuda.log)
    assert [arena.spec.name for arena in memory.arenas] == [each.name for each in BEYOND]
    assert [arena.placement for arena in memory.arenas] == [each.placement for each in BEYOND]
    assert isinstance(next(iter(memory.arenas)).memory, PageLocked)
    assert memory.arenas.resident_bytes == 30 * MIB
    memory.empty("targets.0", "graph", 20 * MIB, np.uint8)
    assert [side for _, _, side in memory.sides("targets.0")] == ["device", "host"]
    memory.close()
    assert not cuda.alive


def test_managed_memory_is_what_auto_takes_where_it_may(cuda):
    memory = RunMemory(lenient(*BEYOND), 0, budget=30 * MIB)
    assert [arena.managed for arena in memory.arenas] == [True, True, True, False]
    memory.close()
    assert not guard.ranges


@pytest.mark.parametrize("why", ["no managed memory", "more than is free"])
def test_what_a_policy_asks_for_by_name_is_not_replaced(cuda, why):
    cuda.free_bytes = MARGIN + MIB
    if why == "no managed memory":
        cuda.free_bytes, cuda.attributes[89] = GIB, 0
    with pytest.raises((MemoryBudgetError, PlacementError), match="pinned"):
        RunMemory(BEYOND[:1], 0)
    assert not cuda.alive


def test_a_layout_is_not_followed_where_memory_cannot(cuda):
    cuda.attributes[89] = 0
    memory = RunMemory(lenient(*BEYOND), 0)
    other = [replace(each, placement=Placement("split", 0.25)) for each in BEYOND[1:2]]
    assert not memory.arenas.follow(lenient(BEYOND[0], *other, *BEYOND[2:]))
    assert memory.arenas.follow(lenient(*BEYOND))
    memory.close()


@pytest.mark.parametrize("managed", [True, False])
@pytest.mark.parametrize(
    ("vertices", "arcs"), [(1 << 20, 50_000_000), (1 << 20, 120_000_000), (4_000_000, 30_000_000)]
)
def test_a_graph_that_does_not_fit_the_device_gets_its_arenas(cuda, vertices, arcs, managed):
    """Without a budget, with as little memory as a device that is nearly full."""
    cuda.free_bytes = MARGIN + 300 * MIB
    cuda.attributes[89] = int(managed)
    shape = shape_of_size(vertices, arcs, False, "louvain")
    declared = DeclaredRun(
        arrays=lambda low_scratch: declare(replace(shape, low_scratch=low_scratch)),
        compact=declare_compact(shape),
    )
    plan = make_plan(declared, "auto", H200, free=cuda.free_bytes - MARGIN)
    assert not plan.fits
    memory = RunMemory(
        plan.layout, 0, budget=plan.limit, out_of_core=plan.out_of_core, pages=plan.pages
    )
    assert bool(memory.mover) == plan.in_pages
    assert memory.arenas.resident_bytes <= plan.limit
    assert not any(arena.managed for arena in memory.arenas)
    assert plan.in_pages or any("no managed memory" in note for note in plan.notes)
    memory.close()
    assert not cuda.alive
