"""Times on the H200 that the profile's fault costs were fitted to, and one they were not."""

import numpy as np
import pytest

from louvain_um.profiling.simulator import Access, Array, Launch, Touches, Trace, simulate

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
