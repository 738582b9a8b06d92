"""The counters, on a device that is played by NumPy: what kernels do is done here, slowly."""

from types import SimpleNamespace

import numpy as np
import pytest

from louvain_um.profiling.sources.tracer.histogram import SLACK, Histogram
from louvain_um.profiling.sources.tracer.snippet import COPIES, LOG, USES

EARLY = -(10**18)
"""What the session's clock shows less what the device's does."""


class HostArray(np.ndarray):
    """An array of NumPy's with what the counters use of CuPy's."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self):
        return np.array(self)


class HostDevice:
    id = 0

    def clock_offset(self, clock):
        return EARLY

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype).view(HostArray)


class Run:
    """A histogram, a clock that is set by hand, and kernels' accesses."""

    def __init__(self, **sizes):
        self.now = 5_000_000
        whole = {
            "page_bytes": 4096, "bins": 8, "nbytes": 1 << 20, "seconds": 8e-3, "period": 0,
            "records": 10,
        }  # fmt: skip
        self.histogram = Histogram(
            clock=lambda: self.now, device=HostDevice(), **{**whole, **sizes}
        )

    def access(self, address, use=0, times=1, block=0):
        """Count as `snippet` does."""
        histogram, state = self.histogram, self.histogram.state
        ranges = state["ranges"][: int(state["count"])]
        at = int(np.searchsorted(ranges["start"], address, "right")) - 1
        far = address - int(ranges[at]["start"])
        if far >= int(ranges[at]["nbytes"]):
            at, far = 0, 0
        _, _, row, shift, copies, rows = ranges[at].tolist()
        row += (far >> shift) + (block & copies) * rows
        elapsed = self.now - EARLY - int(state["origin"])
        assert elapsed >= 0
        column = min(elapsed >> int(state["bin_shift"]), int(state["last_bin"]))
        histogram.cells[use, row, column] += times

    def new_counts(self):
        return {each.name: each.counts.tolist() for each in self.histogram.new_counts()}


def test_news_are_of_arrays_and_uses_and_come_once():
    run = Run()
    run.histogram.enter("a", 1 << 20, 10_000)
    run.histogram.enter("b", (1 << 20) + 10_240, 100)
    run.histogram.launch()
    for block in range(2 * COPIES):
        run.access((1 << 20) + 9_999, 0, 3, block)
        run.access((1 << 20) + 10_239, 2, 1, block)
        run.access((1 << 20) + 10_240, 1, 1, block)
    assert run.new_counts() == {
        "a": [6 * COPIES, 0, 0],
        "b": [0, 2 * COPIES, 0],
        "": [0, 0, 2 * COPIES],
    }
    assert run.new_counts() == {}
    run.access(1 << 20, 2)
    assert run.new_counts() == {"a": [0, 0, 1]}


def test_counts_outlive_their_array_and_go_to_its_map():
    run = Run(nbytes=4 * len(USES) * 8 * (COPIES + 8))
    run.histogram.enter("a", 1 << 20, 8192)
    run.histogram.launch()
    run.access(1 << 20, times=5)
    run.now += 3_000_000
    run.access((1 << 20) + 4096, times=7)
    run.histogram.leave("a")
    when = run.now
    run.now += 1000
    # Another in the same place; the counters of the first are needed again.
    run.histogram.enter("b", 1 << 20, 4096)
    run.access(1 << 20, 1, times=2)
    new_counts = run.histogram.new_counts()
    assert {each.name: (each.until, each.counts.tolist()) for each in new_counts} == {
        "a": (when, [12, 0, 0]),
        "b": (0, [0, 2, 0]),
    }
    run.histogram.collect(run.histogram.ranges.known)
    assert run.new_counts() == {}
    assert not run.histogram.cells.any()
    maps = {page.array: page for page in run.histogram.maps.page_maps(run.histogram.edges())}
    assert maps["a"].counts.sum(axis=1).tolist() == [5, 7]
    assert maps["b"].counts.sum(axis=1).tolist() == [2]
    bins = np.searchsorted(maps["a"].edges, [5_000_000, 8_000_000], "right") - 1
    assert maps["a"].counts[0, bins[0]] == 5
    assert maps["a"].counts[1, bins[1]] == 7


def test_bins_are_joined_before_a_launch_that_is_late():
    run = Run(seconds=1e-6)
    run.histogram.enter("a", 1 << 20, 4096)
    for _ in range(50):
        run.histogram.launch()
        state = run.histogram.state
        elapsed = run.now - EARLY - int(state["origin"])
        assert elapsed >> int(state["bin_shift"]) < 4
        run.access(1 << 20)
        run.now += 1_000_000
    run.histogram.collect(run.histogram.ranges.known)
    (page,) = run.histogram.maps.page_maps(run.histogram.edges())
    assert page.total == 50
    assert page.counts.shape[1] <= 8
    assert (np.diff(page.edges) == np.diff(page.edges)[0]).all()
    assert page.edges[0] <= 5_000_000 < page.edges[1] + SLACK


def test_what_was_collected_is_joined_as_well():
    run = Run()
    run.histogram.enter("a", 1 << 20, 4096)
    run.histogram.launch()
    run.access(1 << 20, times=4)
    run.histogram.collect(run.histogram.ranges.known)
    run.now += 100_000_000
    run.histogram.launch()
    (page,) = run.histogram.maps.page_maps(run.histogram.edges())
    assert page.total == 4
    assert page.edges[0] <= 5_000_000 < page.edges[1]


def test_an_array_that_shrinks_and_one_that_comes_again():
    run = Run()
    run.histogram.enter("a", 1 << 20, 8192)
    run.histogram.launch()
    run.histogram.shrink("a", 4096)
    run.access((1 << 20) + 4096)
    run.access(1 << 20)
    run.histogram.enter("a", 1 << 21, 4096)
    run.access(1 << 21, times=2)
    run.access(1 << 20, times=3)
    found = run.histogram.new_counts()
    assert [(each.name, each.address, each.counts[0]) for each in found] == [
        ("a", 1 << 20, 1),
        ("a", 1 << 21, 2),
        ("", 0, 4),
    ]


@pytest.mark.parametrize("taken", [0, 7, 10, 25])
def test_a_log_keeps_what_it_holds_and_counts_the_rest(taken):
    run = Run(period=4)
    log = run.histogram.log.view(LOG)
    log["time"] = 7 * 10**6 - EARLY
    run.histogram.logged[0] = taken
    found, dropped = run.histogram.samples()
    assert len(found) == min(taken, 10)
    assert dropped == max(0, taken - 10)
    assert set(found["time"].tolist()) <= {7 * 10**6}
    assert run.histogram.state["limit"] == 2**30 - 1
