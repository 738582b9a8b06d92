from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulator_cases import BLOCK, array, run, scan

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.simulator import (
    Access,
    Allocate,
    Array,
    Driver,
    Free,
    HostTouches,
    Launch,
    Prefetch,
    Touches,
    Trace,
    concatenate_touches,
    load_trace,
    simulate,
)


def unrolled(t):
    rows = zip(t.array, t.first, t.length, t.way, t.amount, strict=True)
    return [(a, p, w, m) for a, f, n, w, m in rows for p in range(f, f + n)]


def test_events_are_in_order_where_their_times_are_sums_of_fractions():
    items = array(1.5, name="near", starts="nowhere"), array(4, name="far")
    first = Launch(touches=Touches.runs(0, 682, 1, Access.GATHER), compute_seconds=1e-4, chain=5)
    near = Touches.at_random(0, 479, 2, Access.GATHER, 332)
    far = Touches.runs(1, 44, 650, Access.SCATTER, 32)
    second = Launch(touches=concatenate_touches([near, far]))
    placements = {"near": "prefetched", "far": "pinned"}
    run = simulate(Trace(items, (first, second)), "p4000", placements=placements)
    assert np.all(np.diff(run.events["time"]) >= 0)


def test_what_is_freed_twice_takes_no_memory_from_the_peak():
    items = array(2, name="a"), array(3, name="b")
    ends = Free(array=0), Free(array=0)
    assert Trace(items, ends).peak_bytes == 5 * BLOCK
    assert Trace(items, (*ends, Allocate(array=1))).peak_bytes == 3 * BLOCK
    assert Trace(items, (Free(array=0), Allocate(array=1), Free(array=1))).peak_bytes == 3 * BLOCK
    twice = Trace(items, (Allocate(array=0), Allocate(array=0), *ends, Allocate(array=0)))
    assert twice.peak_bytes == 5 * BLOCK
    placed = simulate(twice, placements={"graph": "device"}, capacity=5 * BLOCK)
    assert placed.peak_bytes == 5 * BLOCK


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4), st.sampled_from(Access))))
def test_compression_keeps_every_touch_and_its_order(rows):
    array_, pages, ways = ([row[i] for row in rows] for i in range(3))
    plain = Touches.runs(array_, pages, 1, np.array(ways, np.uint8))
    packed = plain.compressed() if rows else plain
    assert len(packed) <= len(plain)
    merged = []
    for a, p, w, m in unrolled(plain):
        if merged and merged[-1][:3] == (a, p, w):
            merged[-1] = (a, p, w, merged[-1][3] + m)
        else:
            merged.append((a, p, w, m))
    plain = [row[:3] for row in unrolled(packed)]
    assert [row for i, row in enumerate(plain) if i == 0 or row != plain[i - 1]] == [
        row[:3] for row in merged
    ]
    assert sum(row[3] for row in unrolled(packed)) == sum(row[3] for row in merged)


def test_streams_join_in_order():
    both = concatenate_touches([Touches.runs(0, 1, 2), Touches.runs(0, 9, 1, Access.ATOMIC)])
    assert both.first.tolist() == [1, 9]
    assert both.touches == 3
    assert len(concatenate_touches([])) == 0


def test_a_saved_trace_replays_alike(tmp_path):
    data = array(4)
    launch = Launch(touches=scan(data).touches, kernel="move", phase="move", level=1, iteration=2,
                    compute_seconds=0.5)  # fmt: skip
    steps = (launch, Prefetch(array=0, to="host"), HostTouches(touches=Touches.runs(0, 3, 4)))
    trace = Trace((data,), steps)
    trace.save(tmp_path / "t.npz")
    loaded = load_trace(tmp_path / "t.npz")
    assert loaded.arrays == trace.arrays
    assert simulate(loaded).costs == simulate(trace).costs
    events = simulate(loaded).events
    assert events.kernels == ("move",)
    first = {name: events[name][0] for name in ("kernel", "phase", "level", "iteration")}
    assert events["address"][0] == 0  # a launch is no array's
    assert first == {"kernel": 0, "phase": events.phases.index("move"), "level": 1, "iteration": 2}
    with pytest.raises(LouvainUmError, match="exists"):
        trace.save(tmp_path / "t.npz")


def test_files_that_are_no_traces_are_named(tmp_path):
    (tmp_path / "x.npz").write_text("no")
    np.savez(tmp_path / "y.npz", a=[1])
    for name in ("x.npz", "y.npz", "z.npz"):
        with pytest.raises(LouvainUmError, match=name):
            load_trace(tmp_path / name)


@pytest.mark.parametrize(
    "step",
    [
        Launch(touches=Touches.runs(1, 0, 1)),
        Launch(touches=Touches.runs(0, 511, 2)),
        Launch(touches=Touches.runs(0, -1, 1)),
        HostTouches(touches=Touches.runs(0, 0, 0)),
        Prefetch(array=0, first=500, pages=13),
        Prefetch(array=-1),
        Prefetch(array=0, first=512),
    ],
)
def test_touches_outside_arrays_are_refused(step):
    with pytest.raises(OptionError, match="step 0"):
        Trace((array(),), (step,))


WHOLE = (np.int16, np.int64, np.int64, np.uint8, np.int64)


def columns(*values, kinds=WHOLE):
    return Touches(*(np.array(each, kind) for each, kind in zip(values, kinds, strict=True)))


@pytest.mark.parametrize(("column", "row"), [("array", (1 << 16, 0, 1)), ("way", (0, 0, 1, 256))])
def test_numbers_that_a_column_cannot_hold_are_refused(column, row):
    with pytest.raises(OptionError, match=f"column {column} of touches must lie in"):
        Touches.runs(*row)


@pytest.mark.parametrize(
    "touches",
    [
        columns([0], [(1 << 63) - 1], [1], [0], [1]),  # its end overflows
        columns([0], [1], [(1 << 63) - 1], [0], [1]),
        columns([0, 0], [1], [1], [0], [1]),
        columns([0], [1], [1], [0, 0], [1]),
        columns([[0]], [[1]], [[1]], [[0]], [[1]]),
        columns([0], [1], [1], [0], [1], kinds=(np.int16, np.float64, *WHOLE[2:])),
        columns([0], [1], [1], [0], [1], kinds=(np.int64, *WHOLE[1:])),
        columns([0], [1], [1], [99], [1]),
        columns([0], [1], [1], [0], [1 << 62]),
        columns([0, 0], [1, 1], [500, 500], [0, 0], [1 << 50, 1 << 51]),
    ],
)
def test_touches_that_compiled_code_cannot_take_are_refused(touches):
    for step in (Launch(touches=touches), HostTouches(touches=touches)):
        with pytest.raises(OptionError, match="not a valid trace"):
            Trace((array(),), (step,))


@pytest.mark.parametrize(
    "change",
    [
        {"nbytes": -1},
        {"nbytes": 1 << 62},
        {"nbytes": 4096.5},
        {"itemsize": 0},
        {"group": 3},
        {"starts": "nothere"},
        {"name": 3},
    ],
)
def test_arrays_that_are_none_are_refused(change):
    with pytest.raises(OptionError, match="array 0"):
        Trace((replace(array(), **change),), ())


@pytest.mark.parametrize(
    "change",
    [
        {"phase": 3},
        {"level": 1 << 20},
        {"compute_seconds": float("nan")},
        {"compute_seconds": -1.0},
        {"host_seconds": 1e300},
        {"chain": -1},
        {"kernel": None},
    ],
)
def test_launches_that_are_none_are_refused(change):
    with pytest.raises(OptionError, match="step 0"):
        Trace((array(),), (replace(scan(array()), **change),))


@pytest.mark.parametrize("hidden", [float("nan"), -1, 2, "all", None])
def test_shares_that_are_none_are_refused(hidden):
    with pytest.raises(OptionError, match="hidden"):
        Trace((array(),), (), hidden)


def test_a_simulation_beyond_the_hosts_memory_is_refused_before_it_allocates():
    huge = Array(name="huge", group="graph", nbytes=1 << 51)
    with pytest.raises(LouvainUmError, match=r"needs [\d,]+ bytes of host memory, [\d,]+ are free"):
        simulate(Trace((huge,), ()), capacity=1 << 52)


def test_simulated_time_that_overflows_is_refused():
    slow = replace(load_machine("h200"), **{"launch_seconds": 1e6})
    steps = (Launch(touches=concatenate_touches([]), host_seconds=1e9),) * 5
    with pytest.raises(LouvainUmError, match="check the rates"):
        simulate(Trace((), steps), slow)


def test_names_of_arrays_are_unique():
    with pytest.raises(OptionError, match="unique"):
        Trace((array(), array()), ())


@pytest.mark.parametrize(
    "options", [{"eviction": "mru"}, {"density_percent": 101}, {"batch_size": 0}, {"version": "1"}]
)
def test_drivers_are_checked(options):
    with pytest.raises(OptionError):
        Driver(**options)


def test_measured_compute_time_replaces_the_modelled():
    data = array()
    slow = Launch(touches=scan(data).touches, compute_seconds=2.0)
    result = run(data, [slow, slow], placements={"data": "host_mapped"})
    assert result.costs["compute"] == 4.0
    assert result.costs["hidden"] == pytest.approx(result.costs["remote_sequential"])
    assert result.seconds == pytest.approx(4.0, rel=1e-3)


def test_an_empty_program_takes_no_time():
    empty = simulate(Trace((), ()))
    assert (empty.seconds, len(empty.events)) == (0.0, 0)
    nothing = Launch(touches=concatenate_touches([]))
    one = simulate(Trace((Array(name="a", group="hash", nbytes=0),), (nothing,)))
    assert one.seconds == pytest.approx(3.7e-6)


def test_a_full_event_buffer_is_emptied_not_lost():
    data = array(4)
    pages = np.tile(np.arange(4) * 512, 40_000)
    steps = [Launch(touches=Touches.runs(0, pages, 1))]
    result = run(data, steps, capacity=2 << 21, window=1)
    assert result.dropped_events == 0
    assert len(result.events) > 1 << 18
    assert result.total("evictions") == (result.events["kind"] == 67).sum()
