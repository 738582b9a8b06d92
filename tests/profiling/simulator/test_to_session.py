from dataclasses import replace

import pytest

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.profiling import load
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.simulator import Access, Array, Launch, Touches, Trace, simulate
from louvain_um.profiling.simulator.result import CONFORMANCE
from louvain_um.profiling.simulator.to_session import session_of
from louvain_um.profiling.simulator.touches import concatenate_touches
from louvain_um.profiling.simulator.trace import Allocate, Free
from louvain_um.profiling.views.html import render
from louvain_um.profiling.views.session import over_time
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.compare import overall
from louvain_um.profiling.views.session.verdict import verdict
from louvain_um.profiling.views.table import format_value

MIB = 1 << 20


def scans(times):
    """Return a program that reads 32 MiB again and again, with a queue for a while."""
    data = Array(name="targets.0", group="graph", nbytes=32 * MIB)
    queue = Array(name="queue", group="scratch", nbytes=2 * MIB, starts="nowhere")
    scan = Touches.runs(0, 0, data.pages)
    launches = tuple(
        Launch(touches=scan, kernel="move_tile", phase="move", level=0, iteration=at)
        for at in range(times)
    )
    last = Launch(touches=scan, kernel="sums", phase="aggregate", level=0)
    return Trace((data, queue), (Allocate(array=1), *launches, Free(array=1), last))


def test_a_simulated_run_is_a_session():
    trace = scans(3)
    run = simulate(trace, "h200", capacity=16 * MIB)
    session = session_of(trace, run, policy="base")
    figures = session.summary()
    assert figures["bytes_to_device"] == run.bytes_to_device > 64 * MIB
    assert figures["bytes_to_host"] == run.bytes_to_host
    assert figures["seconds"] == run.seconds
    assert session.unattributed == 0
    spans = [(s.phase, s.iteration) for s in session.phases]
    assert spans == [("move", -1), ("move", 0), ("move", 1), ("move", 2), ("aggregate", -1)]
    assert session.phases[-1].end_ns == pytest.approx(run.seconds * 1e9, rel=0.02)
    queue = next(life for life in session.lifetimes if life.name == "queue")
    assert (queue.level, queue.end_ns) == (-1, session.phases[0].end_ns)
    kernels = session.events["duration"][session.events["kind"] == Kind.KERNEL]
    assert kernels.sum() == pytest.approx(run.seconds * 1e9, rel=0.02)


def test_its_report_says_modelled():
    trace = scans(4)
    session = session_of(trace, simulate(trace, "p4000", capacity=16 * MIB), policy="base")
    found = verdict(SessionAnalysis(session))
    assert found.finding.startswith("Eviction held the run back")
    assert "adv2" in found.remedy
    assert "modelled (simulator)" in found.grounds
    assert "costs modelled" in found.grounds
    page = render([session])
    assert "measured (" not in page
    assert "modelled (simulator)" in page
    assert "Cost breakdown" in page
    assert session.metadata["terms"].keys() >= {"faults", "migration", "write_back"}
    assert CONFORMANCE in page


def test_compared_runs_have_their_ranges(tmp_path):
    trace = scans(4)
    runs = [simulate(trace, "p4000", capacity=size * MIB) for size in (16, 64)]
    sessions = [session_of(trace, run) for run in runs]
    table = overall([SessionAnalysis(session) for session in sessions])
    rows = {row["what"]: row for row in table.rows}
    for end, at in (("least", 0), ("most", 1)):
        for number, run in enumerate(runs, 1):
            expected = format_value(run.seconds_range[at], "seconds")
            assert rows[f"run, at {end}"][f"run {number}"] == expected
    assert CONFORMANCE in table.evidence
    unknown = replace(sessions[0], metadata={"seconds": 1.0})
    assert "at least" not in str(overall([SessionAnalysis(unknown)] * 2))
    damaged = replace(unknown, metadata={"seconds": 1.0, "seconds_range": ["soon", 2.0]})
    damaged.save(tmp_path / "damaged.npz")
    with pytest.raises(LouvainUmError, match="damaged"):
        load(tmp_path / "damaged.npz")


def test_without_events_there_is_no_session():
    trace = scans(1)
    with pytest.raises(OptionError, match="record=True"):
        session_of(trace, simulate(trace, "h200", record=False))


def test_an_array_lives_as_often_as_it_is_allocated():
    kept = Array(name="kept", group="graph", nbytes=4 * MIB)
    brief = Array(name="brief", group="scratch", nbytes=8 * MIB, starts="nowhere")
    other = Array(name="other", group="scratch", nbytes=1 * MIB, starts="nowhere")
    scan, scan_kept = Touches.runs(1, 0, brief.pages), Touches.runs(0, 0, kept.pages)
    steps = (
        Allocate(array=1), Launch(touches=scan), Free(array=1),
        Allocate(array=2), Launch(touches=scan_kept), Allocate(array=1), Launch(touches=scan),
    )  # fmt: skip
    trace = Trace((kept, brief, other), steps)
    run = simulate(trace, "p4000", capacity=64 * MIB)
    session = session_of(trace, run, policy="base")
    ends = [round(1e9 * run.launch_seconds[:at].sum()) for at in range(len(steps) + 1)]
    lives = sorted((life.name, life.start_ns, life.end_ns) for life in session.lifetimes)
    assert lives == [
        ("brief", 0, ends[2]),
        ("brief", ends[5], ends[7]),
        ("kept", 0, ends[7]),
        ("other", ends[3], ends[7]),
    ]
    assert session.metadata["peak_bytes"] == {"graph": 4 * MIB, "scratch": 9 * MIB}
    assert "9.0 MiB" in render([session])
    with pytest.raises(OptionError, match=r"must be one of .*evictions"):
        run.total("bytes_to_device")


def test_a_group_of_faults_is_a_batch_whichever_arrays_it_has_faults_of():
    first = Array(name="first", group="graph", nbytes=1 * MIB)
    second = Array(name="second", group="scratch", nbytes=1 * MIB)
    both = concatenate_touches([Touches.runs(0, 0, 8), Touches.runs(1, 0, 8)])
    trace = Trace((first, second), (Launch(touches=both),))
    run = simulate(trace, "h200")
    figures = session_of(trace, run, policy="base").summary()
    assert figures["gpu_fault_groups"] == run.batches == run.summary()["fault_groups"] == 1
    assert figures["gpu_faults"] == run.total("faults") == 16
    groups = {name: group["gpu_faults"] for name, group in figures["by_group"].items()}
    assert groups == {"graph": 8, "scratch": 8}


def test_launches_follow_what_is_loaded_before_them():
    trace = scans(2)
    run = simulate(trace, "p4000", policy="device", capacity=64 * MIB)
    session = session_of(trace, run, policy="device")
    loaded = round(run.load_seconds * 1e9)
    assert loaded > 0
    kernels = session.events["time"][session.events["kind"] == Kind.KERNEL]
    assert loaded == session.phases[0].start_ns <= kernels.min() <= loaded + 10_000
    assert session.phases[-1].end_ns == pytest.approx(run.seconds * 1e9, abs=2)
    assert min(page.edges[0] for page in session.maps) >= loaded
    assert {life.name: life.start_ns for life in session.lifetimes} == {"targets.0": 0, "queue": 0}
    assert session.unattributed == 0


@pytest.mark.parametrize(("policy", "most"), [("base", 28 * MIB), ("device", 12 * MIB)])
def test_freed_arrays_are_no_longer_resident(policy, most):
    kept = Array(name="kept", group="graph", nbytes=4 * MIB)
    brief = Array(name="brief", group="graph", nbytes=8 * MIB)
    made = Array(name="made", group="graph", nbytes=16 * MIB, starts="nowhere")
    scans = [Launch(touches=Touches.runs(at, 0, 1024 << at)) for at in range(3)]
    trace = Trace((kept, brief, made), (*scans, Free(array=2), Free(array=1), scans[0]))
    run = simulate(trace, "p4000", policy=policy, capacity=64 * MIB)
    curves = over_time.resident(SessionAnalysis(session_of(trace, run, policy=policy)))
    assert list(curves.values) == ["graph"]
    # Pages of `made` are first touched on the device, unless it is allocated there.
    assert curves.values["graph"].max() == pytest.approx(most, rel=0.05)
    assert curves.values["graph"][-1] == 4 * MIB


def test_pages_first_touched_on_the_device_are_resident_there():
    made = Array(name="made", group="scratch", nbytes=9 * MIB + 5000, starts="nowhere")
    write = Launch(touches=Touches.runs(0, 0, made.pages, Access.WRITE))
    for capacity, held in ((64 * MIB, made.pages * 4096), (4 * MIB, 4 * MIB)):
        run = simulate(Trace((made,), (write,)), "p4000", capacity=capacity)
        assert run.bytes_to_device == 0
        found = over_time.resident(SessionAnalysis(session_of(run.trace, run)))
        assert found.values["scratch"].max() <= held
        assert found.values["scratch"][-1] == pytest.approx(held, rel=0.3)
        assert "not counted" not in found.evidence
