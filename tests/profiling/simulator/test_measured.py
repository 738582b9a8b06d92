"""Times on the H200 that the profile's fault costs were fitted to, and one they were not."""

from dataclasses import replace

import numpy as np
import pytest

from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.simulator import Access, Array, Driver, Launch, Touches, Trace, simulate

GIB = 1 << 30
PAGES = GIB // 4096
RANDOM = np.random.default_rng(0)
SCAN = Touches.runs(0, 0, PAGES)


@pytest.mark.parametrize(
    ("starts", "advice", "touches", "measured"),
    [
        ("host", "none", SCAN, GIB / 12.9e9),
        (
            "host",
            "none",
            Touches.runs(0, RANDOM.integers(0, PAGES, 500_000), 1, Access.GATHER),
            0.098,
        ),
        ("host", "none", Touches.runs(0, RANDOM.integers(0, PAGES, 4096), 1, Access.GATHER), 0.035),
        ("nowhere", "none", Touches.runs(0, 0, PAGES, Access.WRITE), GIB / 24.9e9),
        ("host", "preferred_gpu", SCAN, GIB / 13.7e9),
        ("host", "read_mostly", SCAN, GIB / 10.1e9),
        ("host", "host_mapped", SCAN, GIB / 51.3e9),
        (
            "host",
            "host_mapped",
            Touches.runs(0, 0, PAGES, Access.ATOMIC, 1024),
            PAGES * 1024 / 396e6,
        ),
    ],
)
def test_modelled_times_are_near_the_measured_ones(starts, advice, touches, measured):
    data = Array(name="data", group="graph", nbytes=GIB, starts=starts)
    run = simulate(Trace((data,), (Launch(touches=touches),)), "h200",
                   placements={"graph": advice}, record=False)  # fmt: skip
    assert run.seconds == pytest.approx(measured, rel=0.25)


def test_the_range_is_what_runs_at_either_end_take():
    data = Array(name="data", group="graph", nbytes=8 << 20)
    scan = Launch(touches=Touches.runs(0, 0, data.pages, Access.WRITE))
    trace, machine = Trace((data,), (scan,) * 4), load_machine("h200")
    service = "fault_batch_seconds", "block_service_seconds", "fault_wake_seconds"
    ends = []
    for by, evicting in ((0.5, machine.copy_to_host), (2.0, machine.evict_to_host / 2)):
        slower = {name: by * getattr(machine, name) for name in service}
        at_end = replace(machine, evict_to_host=evicting, **slower)
        ends.append(simulate(trace, at_end, capacity=4 << 20).seconds)
    run = simulate(trace, machine, capacity=4 << 20)
    assert run.total("evictions") > 0
    assert run.seconds_range == pytest.approx(ends)
    assert ends[0] < run.seconds < ends[1]


def test_random_accesses_fill_batches_where_streams_do_not():
    data = Array(name="data", group="graph", nbytes=64 << 20)
    pages = RANDOM.permutation(data.pages)[:4096]
    streamed, gathered = (
        simulate(Trace((data,), (Launch(touches=Touches.runs(0, pages, 1, way)),)), "p4000",
                 driver=Driver(prefetcher=False))
        for way in (Access.READ, Access.GATHER)
    )  # fmt: skip
    assert gathered.batches == 4096 / 256
    assert streamed.batches > 4 * gathered.batches
