from dataclasses import replace

import numpy as np
import pytest

from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.generators import lfr
from louvain_um.gpu.memory.array_specs import declare
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.planning import measure, plan
from louvain_um.profiling.access.out_of_core import in_vertex_blocks
from louvain_um.profiling.access.recorded_plans import plan_of
from louvain_um.profiling.access.recorder import record
from louvain_um.profiling.simulator import (
    Access,
    Allocate,
    Array,
    Driver,
    Launch,
    Prefetch,
    Touches,
    Trace,
    simulate,
)
from louvain_um.profiling.sweep.replay import run

PROGRAM = Driver(eviction="program")
BLOCK = 2 << 20


@pytest.fixture(scope="module")
def graph():
    return lfr(150_000, seed=1).graph


@pytest.fixture(scope="module")
def trace(graph):
    return record(graph)


def budget(trace):
    """Return a budget with which only some of the arcs are on the device."""
    capacity = trace.peak_bytes * 2
    while True:
        plan = plan_of(trace.about, find_policy("base"), load_machine("h200"), capacity)
        if plan.out_of_core:
            return capacity
        capacity -= 2 << 20


def touched(trace, *, but=()):
    sums = np.zeros(len(trace.arrays), np.int64)
    for step in trace.steps:
        if isinstance(step, Launch) and step.kernel not in but:
            t = step.touches
            np.add.at(sums, t.array, t.length * t.amount)
    return dict(zip((a.name for a in trace.arrays), sums.tolist(), strict=True))


def test_with_a_budget_the_program_moves_blocks_and_the_driver_evicts(trace):
    machine, capacity = load_machine("h200"), budget(trace)
    ours = run(trace, find_policy("base"), machine, capacity, PROGRAM)
    theirs = run(trace, find_policy("base"), machine, trace.peak_bytes // 2, Driver())
    assert ours.total("bytes_out_user") > 0 == ours.total("bytes_out_eviction")
    assert theirs.total("bytes_out_eviction") > 0 == theirs.total("bytes_out_user")
    whole = run(trace, find_policy("base"), machine, 1 << 40, PROGRAM)
    assert whole.bytes_to_host == 0


def test_auto_is_refused_where_its_plan_is(trace):
    machine = load_machine("h200")
    with pytest.raises(MemoryBudgetError) as planned:
        plan_of(trace.about, find_policy("auto"), machine, 1024)
    with pytest.raises(MemoryBudgetError, match="the least for auto") as simulated:
        run(trace, "auto", machine, 1024, PROGRAM)
    assert str(simulated.value) == str(planned.value)
    assert run(trace, "auto", machine, 1 << 20, PROGRAM).seconds > 0
    assert run(trace, "auto", machine, 1024, Driver()).seconds > 0
    with pytest.raises(OptionError, match="needs a recording"):
        run(replace(trace, about=None), "auto", machine, 1 << 30, PROGRAM)


def test_shares_of_memory_are_of_what_a_measured_run_s_budget_is_of(trace):
    from louvain_um.profiling.access.recorded_plans import peak_of
    from louvain_um.profiling.sweep.replay import Point, replay

    peak = peak_of(trace)
    plan = plan_of(trace.about, find_policy("base"), load_machine("h200"), peak)
    assert plan.device_bytes == plan.limit == plan.in_core_bytes == peak > trace.peak_bytes
    unplanned = replace(trace, about=None)
    assert peak_of(unplanned) == trace.peak_bytes
    point = Point(graph="g", policy="base", oversubscription=0.0, gpu="h200")
    row, found = replay(trace, point, load_machine("h200"), driver=PROGRAM)
    assert (row["budget_bytes"], row["feasible"], row["evictions"]) == (peak, True, 0)
    assert found.bytes_to_host == 0
    budgets = {
        replay(trace, replace(point, oversubscription=30.0), load_machine("h200"), driver=how)[0][
            "budget_bytes"
        ]
        for how in (PROGRAM, Driver(), None)
    }
    assert budgets == {int(0.7 * peak)}


@pytest.mark.parametrize("share", [1.0, 0.7])
@pytest.mark.parametrize("policy", ["base", "adv2", "adv7"])
def test_plans_of_a_recording_are_those_of_its_graph(graph, trace, policy, share):
    from louvain_um.profiling.access.recorded_plans import peak_of

    room = int(share * peak_of(trace))
    ours = plan_of(trace.about, find_policy(policy), load_machine("h200"), room)
    theirs = plan(graph, memory=policy, device_budget=room, machine="h200")
    assert ours.layout == theirs.layout
    assert (ours.out_of_core, ours.low_scratch, ours.device_bytes) == (
        theirs.out_of_core, theirs.low_scratch, theirs.device_bytes,
    )  # fmt: skip
    whole = plan(graph, memory=policy, device_budget="100%", machine="h200")
    assert whole.limit == peak_of(trace)


def test_tables_of_hubs_are_as_large_as_the_engine_s(graph, monkeypatch):
    monkeypatch.setattr(
        "louvain_um.gpu.move.hub_tables.SMALL_LEVEL_SLOTS", 1
    )  # which small graphs never exceed
    recorded = {array.name: array.nbytes for array in record(graph).arrays}
    for array in declare(measure(graph, "louvain").shape):
        if array.name in ("hub_keys", "hub_sums"):
            assert recorded[array.name] == array.nbytes > 0


def test_times_of_iterations_hold_what_blocks_cost(trace):
    from louvain_um.profiling.sweep.replay_tables import iterations

    found = run(trace, find_policy("base"), load_machine("h200"), budget(trace), PROGRAM)
    assert len(found.trace.steps) > len(trace.steps)
    rows = iterations("g", found, 50.0)
    assert sum(row["seconds"] for row in rows) == pytest.approx(found.seconds, rel=0.05)


def test_a_block_comes_before_it_is_read_and_room_is_kept(trace):
    room, number = 8 * BLOCK, 1
    assert trace.arrays[number].name == "targets.0"
    placements = dict.fromkeys((a.name for a in trace.arrays), "managed")
    paged, own = in_vertex_blocks(trace, placements, room, "fault")
    here = np.zeros(-(-trace.arrays[number].pages // 512), bool)
    for step in paged.steps:
        if isinstance(step, Prefetch):
            assert step.to == "host"
            here[step.first // 512 : -(-(step.first + step.pages) // 512)] = False
        elif isinstance(step, Launch):
            mine = step.touches.array == number
            first, end = step.touches.first[mine], (step.touches.first + step.touches.length)[mine]
            for low, high in zip(first // 512, -(-end // 512), strict=True):
                if step.kernel == "touch_pages":
                    here[low:high] = True
                assert here[low:high].all()
            assert here.sum() * BLOCK <= room
    before, after = touched(trace), touched(paged, but=("touch_pages",))
    # Each block is added up by itself, with barriers of its own.
    assert after.pop("aggregate_state") > before.pop("aggregate_state")
    assert {n: v for n, v in after.items() if n != "targets.0"} == {
        n: v for n, v in before.items() if n != "targets.0"
    }
    assert simulate(paged, placements=own, capacity=1 << 40, driver=PROGRAM).bytes_to_host > 0


def test_blocks_that_are_prefetched_fault_nowhere(trace):
    placements = dict.fromkeys((a.name for a in trace.arrays), "managed")
    paged, _ = in_vertex_blocks(
        trace, placements | {"targets.0": "prefetched"}, 8 * BLOCK, "prefetch"
    )
    kinds = {s.to for s in paged.steps if isinstance(s, Prefetch)}
    assert kinds == {"gpu", "host"}
    assert all(s.kernel != "touch_pages" for s in paged.steps if isinstance(s, Launch))


def test_what_a_plan_follows_from_is_kept_in_files(trace, tmp_path):
    from louvain_um.profiling.simulator import load_trace

    trace.save(tmp_path / "t.npz")
    again = load_trace(tmp_path / "t.npz")
    assert (again.about, again.hidden) == (trace.about, trace.hidden)


@pytest.mark.parametrize(("pages", "there"), [(257, 512), (1, 16), (184, 256), (256, 256)])
def test_what_the_host_writes_brings_the_rest_of_a_dense_block_along(pages, there):
    given = Array(name="given", group="graph", nbytes=4096 * pages)
    later = Array(name="later", group="graph", nbytes=4 << 20, starts="nowhere")
    scan = Launch(touches=Touches.runs(0, 0, pages))
    steps = (scan, Allocate(array=1), Launch(touches=Touches.runs(1, 0, 1024, Access.WRITE)))
    trace = Trace((given, later), steps)
    program = simulate(trace, "h200", driver=PROGRAM)
    assert program.bytes_to_device == 4096 * there
    assert simulate(trace, "h200").bytes_to_device == given.nbytes
    plain = replace(PROGRAM, prefetcher=False)
    assert simulate(trace, "h200", driver=plain).bytes_to_device == given.nbytes


def test_sweeps_that_wake_nobody_have_no_pass_behind_their_last_sub_round(trace):
    placements = dict.fromkeys((a.name for a in trace.arrays), "managed")
    paged, _ = in_vertex_blocks(trace, placements, 8 * BLOCK, "fault")
    number = [array.name for array in trace.arrays].index("targets.0")
    reads, brought = dict[int, int](), dict[int, list[int]]()
    begun = 0
    for step in paged.steps:
        begun += isinstance(step, Launch) and (step.kernel, step.level) == ("begin", 0)
        if begun > 1:
            break  # a second cycle wakes from its first sweep on
        if not isinstance(step, Launch) or step.level != 0 or step.phase != "move":
            continue
        mine = step.touches.array == number
        if step.kernel == "move" and mine.any():
            reads[step.iteration] = reads.get(step.iteration, 0) + 1
            first = int(step.touches.first[mine].min())
            brought.setdefault(step.iteration, []).append(first)
    blocks, rest = divmod(reads[0], 8)
    assert rest == 0
    assert reads[1] == reads[0]
    assert 8 * blocks < reads[2] <= 9 * blocks
    # What would have been that pass turns around: the next goes the way that the last one went.
    last, then = brought[0][-blocks:], brought[1][:blocks]
    assert (last[0] < last[-1]) == (then[0] < then[-1])
