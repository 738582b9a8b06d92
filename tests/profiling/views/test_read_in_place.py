"""The verdict names what was read over the bus: array, phase, level, remedy."""

from __future__ import annotations

from dataclasses import replace

from louvain_um.profiling import Session
from louvain_um.profiling.session.attribution import with_phases
from louvain_um.profiling.session.events import EventTable, Kind, Source
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.verdict import verdict

from made import BASE, MS, lifetimes, phases  # isort: skip


def session(nbytes: int, **metadata: object) -> Session:
    events = EventTable(
        {
            "time": [50 * MS, 95 * MS],
            "kind": [Kind.REMOTE_ACCESS] * 2,
            "source": [Source.ENGINE] * 2,
            "address": [BASE, BASE],
            "bytes": [nbytes // 4, nbytes],
        }
    )
    return Session(
        metadata={
            "seconds": 0.1,
            "complete": True,
            "sources": {"engine": "measured", "in_place": "measured", **metadata},
        },
        plan={"seconds_in_core": 0.02},
        lifetimes=lifetimes(),
        phases=phases(),
        events=with_phases(events, phases()),
    )


def test_array_phase_level_and_remedy_are_named():
    for known in ({}, {"uvm": "measured"}):
        found = verdict(SessionAnalysis(session(3_000_000_000, **known)))
        assert "targets.0 during move on level 1" in found.finding
        assert "In core the run takes about 20.00 ms (modelled)" in found.finding
        assert "64.0 MiB more of the device" in found.remedy
        assert "measured (in_place)" in found.grounds


def test_a_few_bytes_do_not_limit_a_run():
    found = verdict(SessionAnalysis(session(1_000_000, uvm="measured")))
    assert "in place" not in found.finding


def test_without_a_known_array_the_verdict_says_so():
    made = session(3_000_000_000)
    made = replace(made, lifetimes=())
    assert "other arrays" in verdict(SessionAnalysis(made)).finding
