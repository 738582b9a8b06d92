"""What kernels wait for: steps in a row, barriers on the host, calls; each term in sight."""

from dataclasses import replace

import numpy as np
import pytest

from louvain_um.errors import OptionError
from louvain_um.generators import lfr, rmat
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.access.counting import (
    aggregation_waits,
    batches_of,
    blocks_for,
    sweep_steps,
)
from louvain_um.profiling.access.recorder import record
from louvain_um.profiling.simulator import (
    Access,
    Array,
    Launch,
    Prefetch,
    Touches,
    Trace,
    load_trace,
    simulate,
)

H200 = load_machine("h200")
DATA = Array(name="data", group="scratch", nbytes=4 << 20)
SCAN = Touches.runs(0, 0, DATA.pages)
ON_DEVICE = {"scratch": "device"}
ON_HOST = {"scratch": "host_mapped"}


def run(*steps, placements=ON_DEVICE, machine=H200):
    return simulate(Trace((DATA,), steps), machine, placements=placements, record=False)


def test_steps_in_a_row_take_their_time_unless_computing_takes_longer():
    short = run(Launch(touches=SCAN, chain=100))
    compute = short.costs["compute"]
    assert compute + short.costs["waiting"] == pytest.approx(100 * H200.step_seconds)
    steps = int(compute / H200.step_seconds)
    assert run(Launch(touches=SCAN, chain=steps)).costs["waiting"] == 0
    assert short.seconds == pytest.approx(sum(short.costs.values()))


def test_a_barrier_costs_by_its_blocks_where_its_memory_is_on_the_host():
    arrive = Launch(touches=Touches.runs(0, 0, 1, Access.BARRIER, 660))
    there = run(arrive, placements=ON_HOST)
    assert there.costs["remote_barrier"] == pytest.approx(660 * H200.arrival_seconds)
    assert there.costs["remote_atomic"] == 0
    small = replace(H200, faults_in_flight=28)
    most = run(replace(arrive, chain=1), placements=ON_HOST, machine=small)
    assert most.costs["remote_barrier"] == pytest.approx(70 * H200.arrival_seconds)
    assert run(arrive).costs["remote_barrier"] == 0 == run(arrive).costs["compute"]


def test_what_the_host_does_for_a_launch_and_for_a_prefetch_is_in_their_terms():
    plain, prepared = run(Launch(touches=SCAN)), run(Launch(touches=SCAN, host_seconds=1e-3))
    assert prepared.costs["launch"] - plain.costs["launch"] == pytest.approx(1e-3)
    nothing = {"scratch": "managed"}
    calls = [Prefetch(array=0, to="gpu"), Prefetch(array=0, to="gpu")]
    one, two = run(calls[0], placements=nothing), run(*calls, placements=nothing)
    took = two.costs["prefetch"] - one.costs["prefetch"]
    assert took == pytest.approx(H200.prefetch_call_seconds)


def test_the_driver_wakes_once_for_what_it_serves_in_a_row():
    asleep = replace(H200, fault_wake_seconds=0.0)
    managed = {"scratch": "managed"}
    launch = Launch(touches=SCAN)
    awake = run(launch, placements=managed)
    more = awake.costs["faults"] - run(launch, placements=managed, machine=asleep).costs["faults"]
    assert awake.batches > awake.services == 1
    assert more == pytest.approx(H200.fault_wake_seconds)


def test_only_figures_that_others_contain_may_be_nothing():
    assert load_machine("p4000").fault_wake_seconds == 0
    with pytest.raises(OptionError, match="step_seconds must be positive"):
        replace(H200, step_seconds=0.0)
    with pytest.raises(OptionError, match="fault_wake_seconds must lie in 0"):
        replace(H200, fault_wake_seconds=-1.0)


def test_waits_are_kept_in_a_file(tmp_path):
    launch = Launch(touches=SCAN, chain=7, host_seconds=0.25)
    Trace((DATA,), (launch,)).save(tmp_path / "t.npz")
    (again,) = load_trace(tmp_path / "t.npz").steps
    assert (again.chain, again.host_seconds) == (7, 0.25)


def test_a_sweep_has_a_step_for_each_class_of_vertices_in_each_sub_round():
    starts = [0, 2, 2, 2, 2, 2, 2, 2, 3]
    alike, wide = np.array([3, 3, 3]), np.array([3, 3, 5000])
    assert sweep_steps(alike, starts, 4, activates=False) == 3 + 2 * (1 + 1)
    assert sweep_steps(alike, starts, 4, activates=True) == 3 + 2 * (1 + 1 + 3)
    assert sweep_steps(wide, starts, 4, activates=False) == 3 + (1 + 1) + (4 + 1)


def test_adding_up_waits_by_blocks_and_batches_of_hubs():
    small = aggregation_waits(100, np.full(10, 200), np.full(10, 9), 4)
    assert (small.chain, small.arrivals, small.plan_reads) == (20, 0, 0)
    alone = aggregation_waits(1 << 20, np.zeros(1 << 20, np.int64), np.zeros(1 << 20), 4)
    assert (
        aggregation_waits(
            1 << 20, np.zeros(1 << 20, np.int64), np.zeros(1 << 20), 4, coarse=True
        ).seconds
        < alone.seconds
    )
    large = aggregation_waits(1 << 20, np.full(1 << 14, 500), np.full(1 << 14, 9), 4)
    assert large.arrivals == large.chain * blocks_for(1 << 30) == 20 * 660
    twice = aggregation_waits(1 << 20, np.full(1 << 14, 1000), np.full(1 << 14, 9), 4)
    assert twice.chain == 25  # two chunks
    hubs = np.full(1 << 14, 500)
    hubs[:8] = 1 << 20
    wide = aggregation_waits(1 << 20, hubs, np.full(1 << 14, 9), 4)
    assert wide.chain > large.chain
    assert wide.plan_reads == 8 * 7 * 660
    assert batches_of(np.array([], np.int64), 100) == []
    assert batches_of(np.full(600, 32), 1 << 30) == [(0, 256), (256, 512), (512, 600)]


@pytest.mark.parametrize("graph", [lfr(20_000, seed=1).graph, rmat(14, seed=1).graph])
def test_scratch_on_the_host_costs_barriers_and_nothing_else_does(graph):
    trace = record(graph)
    costs = {
        group: simulate(trace, "h200", placements={group: "host_mapped"}, record=False).costs
        for group in ("scratch", "graph", "hash", "community")
    }
    assert costs["scratch"]["remote_barrier"] > 1e-3
    assert all(costs[g]["remote_barrier"] == 0 for g in costs if g != "scratch")
    assert all(cost["waiting"] > 0 for cost in costs.values())
