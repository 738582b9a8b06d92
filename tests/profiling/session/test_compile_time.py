"""Compile time is no part of a run: a session with and without it has the same figures."""

from dataclasses import replace

import numpy as np
import pytest

from louvain_um.profiling import Session
from louvain_um.profiling.session import PhaseSpan
from louvain_um.profiling.session.compiling import compile_spans, run_joules, without_compiling
from louvain_um.profiling.session.events import EventTable, Kind
from louvain_um.profiling.views import timeline
from louvain_um.profiling.views.html import session_parts
from louvain_um.profiling.views.session import over_time, phase_tables, tables
from louvain_um.profiling.views.session.analysis import SessionAnalysis, summary
from louvain_um.profiling.views.session.over_time import overview
from louvain_um.profiling.views.session.pages import Axis, layers
from louvain_um.profiling.views.session.phase_tables import times_by_level, times_outside_levels
from louvain_um.profiling.views.session.verdict import verdict
from tests.profiling.views.made import MS, paged_run

SECOND = 1000 * MS
STOPS = ((2 * MS, 26 * SECOND), (40 * MS, 3 * SECOND))
"""When a run began to compile, by its own clock, and for how long: while loading and moving."""


def delayed(session):
    """Return the session as it is recorded where something has to be compiled."""

    def at(time):
        return time + sum(length for begin, length in STOPS if begin < time)

    spans = [
        PhaseSpan(phase="compile", level=-1, iteration=-1, start_ns=at(begin),
                  end_ns=at(begin) + length)
        for begin, length in STOPS
    ]  # fmt: skip
    spans += [
        replace(span, start_ns=at(span.start_ns), end_ns=at(span.end_ns)) for span in session.phases
    ]
    times = [at(time) for time in session.events["time"].tolist()]
    columns = {**session.events.columns, "time": np.array(times, np.int64)}
    return replace(
        session,
        phases=tuple(sorted(spans, key=lambda span: (span.start_ns, -span.end_ns))),
        lifetimes=tuple(
            replace(life, start_ns=at(life.start_ns), end_ns=at(life.end_ns))
            for life in session.lifetimes
        ),
        events=EventTable(columns, session.events.kernels, session.events.phases),
        maps=tuple(
            replace(page, edges=np.array([at(edge) for edge in page.edges.tolist()]))
            for page in session.maps
        ),
    )


def test_the_clock_stands_still_while_something_is_compiled():
    plain = paged_run()
    found = without_compiling(delayed(plain))
    assert found.phases == plain.phases
    assert found.lifetimes == plain.lifetimes
    assert np.array_equal(found.events["time"], plain.events["time"])
    assert np.array_equal(found.maps[0].edges, plain.maps[0].edges)
    assert without_compiling(plain) is plain


def test_views_tell_the_same_with_and_without():
    plain, late = SessionAnalysis(paged_run()), SessionAnalysis(delayed(paged_run()))
    assert late.window == plain.window
    assert late.compile_seconds == pytest.approx(29.0)
    assert plain.compile_seconds == 0
    assert str(verdict(late)) == str(verdict(plain))
    assert times_outside_levels(late) == times_outside_levels(plain)
    assert times_by_level(late) == times_by_level(plain)
    assert session_parts.band(late) == session_parts.band(plain)
    for make in (tables.by_group, tables.by_cause, phase_tables.iterations):
        assert make(late).rows == make(plain).rows
    for curves in (overview, over_time.allocated, over_time.resident):
        one, other = curves(late), curves(plain)
        assert np.array_equal(one.times, other.times)
        assert all(np.array_equal(one.values[name], other.values[name]) for name in other.values)
    drawn = [layers(each, Axis.of(each, 64, 64)) for each in (late, plain)]
    for one, other in zip(*drawn, strict=True):
        assert np.array_equal(one.values, other.values)


def test_compiling_has_a_row_of_its_own_and_is_in_no_other():
    rows = {(row["phase"], row["level"]): row for row in phase_tables.by_phase(
        SessionAnalysis(delayed(paged_run()))).rows}  # fmt: skip
    assert rows["load", None]["seconds"] == pytest.approx(0.010)
    assert rows["move", 0]["seconds"] == pytest.approx(0.050)
    assert rows["compile", None]["seconds"] == pytest.approx(29.0)
    assert rows["compile", None]["bytes_to_device"] == 0


def test_what_happened_while_compiling_is_reported_separately():
    late = delayed(paged_run())
    columns = {name: values.copy() for name, values in late.events.columns.items()}
    first = int(np.argmax(columns["kind"] == Kind.HTOD))
    columns["phase"][first] = late.events.phases.index("compile")
    columns["level"][first] = -1
    events = EventTable(columns, late.events.kernels, late.events.phases)
    analysis = SessionAnalysis(replace(late, events=events))
    mine = {row["phase"]: row for row in phase_tables.by_phase(analysis).rows}["compile"]
    assert mine["bytes_to_device"] == columns["bytes"][first]
    table = phase_tables.by_phase_and_group(analysis)
    assert ("compile", "graph") in {(row["phase"], row["group"]) for row in table.rows}


def test_energy_is_that_of_the_run_alone():
    # 100 W for 1 s of the run, 50 W for 10 s of compiling inside it.
    times = [0, 4 * MS, 5 * MS, 10_004 * MS, 10_005 * MS, 11_005 * MS]
    watts = [100.0, 100.0, 50.0, 50.0, 100.0, 100.0]
    span = PhaseSpan(phase="compile", level=-1, iteration=-1, start_ns=5 * MS, end_ns=10_005 * MS)
    energy = {"joules": 600.0, "seconds": 11.0, "times_ns": times, "watts": watts,
              "counter": "total energy"}  # fmt: skip
    session = Session(phases=(span,), energy=energy,
                      metadata={"seconds": 1.0, "graph": {"arcs": 1000}})  # fmt: skip
    assert run_joules(session) == pytest.approx(100.0, rel=1e-3)
    assert summary(session)["arcs_per_joule"] == pytest.approx(10.0, rel=1e-3)
    found = without_compiling(session).energy
    assert found["joules"] == run_joules(session)
    assert found["times_ns"] == [0, 4 * MS, 5 * MS, 1005 * MS]
    assert found["watts"] == [100.0, 100.0, 100.0, 100.0]
    assert run_joules(replace(session, phases=())) == 600.0
    assert run_joules(replace(session, energy={"joules": 600.0})) is None


def test_spans_that_overlap_count_once():
    spans = [
        PhaseSpan(phase="compile", level=-1, iteration=-1, start_ns=start, end_ns=end)
        for start, end in ((10, 30), (20, 25), (30, 40), (50, 60))
    ]
    assert compile_spans(Session(phases=tuple(spans))).tolist() == [[10, 40], [50, 60]]


def test_a_timeline_keeps_the_clock_on_the_wall():
    late = delayed(paged_run())
    slices = [item for item in timeline.items(late) if getattr(item, "duration", 0)]
    shown = {(item.name, item.time, item.duration) for item in slices}
    assert ("compile", 2 * MS, 26 * SECOND) in shown
    assert ("load", 0, 10 * MS + 26 * SECOND) in shown
