from dataclasses import replace

import numpy as np
import pytest

from louvain_um.profiling import Session
from louvain_um.profiling.session import Lifetime, PhaseSpan
from louvain_um.profiling.session.data import with_phases
from louvain_um.profiling.session.events import EventTable, Kind, Source
from louvain_um.profiling.views.session import over_time, phase_tables, tables
from louvain_um.profiling.views.session.analysis import SessionAnalysis, evidence
from louvain_um.profiling.views.session.over_time import MOST_ROWS, first_rows
from louvain_um.profiling.views.session.pages import Axis, ping_pong, refetched_bytes
from louvain_um.profiling.views.session.verdict import verdict
from louvain_um.profiling.views.table import format_value
from tests.profiling.views.made import BASE, BLOCK, MIB, MS, cpu_run, paged_run, phases


def rows_of(table, key):
    return {row[key]: dict(row) for row in table.rows}


def test_groups_hold_all_that_happened():
    session = paged_run()
    rows = rows_of(tables.by_group(SessionAnalysis(session)), "group")
    assert rows["graph"]["bytes_to_device"] == 3 * 64 * MIB
    assert rows["graph"]["bytes_to_host"] == rows["graph"]["bytes_evicted"] == 2 * 64 * MIB
    assert rows["graph"]["gpu_faults"] == 3 * 32 * 12
    assert rows["graph"]["gpu_fault_groups"] == 3 * 32
    assert rows["graph"]["remote_maps"] == 2
    assert rows["graph"]["accesses"] == 1024 * 5 * 7
    assert rows["community"]["bytes_to_device"] == 4 * MIB
    assert rows["community"]["cpu_faults"] == 3
    assert rows["other"]["bytes_to_device"] == 4096
    assert rows["hash"]["bytes_to_device"] == 0
    whole = session.summary()
    for key, theirs in (("bytes_to_device",) * 2, ("gpu_faults",) * 2, ("cpu_faults",) * 2):
        assert sum(row[key] for row in rows.values()) == whole[theirs]


def test_arrays_and_phases_add_up_to_the_same():
    analysis = SessionAnalysis(paged_run())
    total = analysis.total(Kind.HTOD)
    for maker in (tables.by_array, phase_tables.by_phase, tables.by_group):
        assert sum(row.get("bytes_to_device") or 0 for row in maker(analysis).rows) == total
    assert sum(row["bytes"] for row in tables.by_cause(analysis).rows) == total + analysis.total(
        Kind.DTOH
    )
    phases = {(row["phase"], row["level"]): row for row in phase_tables.by_phase(analysis).rows}
    assert phases["move", 0]["seconds"] == pytest.approx(0.05)
    assert phases["move", 0]["iterations"] == 2
    assert phases["move", 0]["arcs"] == 5000
    assert phases["load", None]["bytes_to_device"] == 0


def test_a_table_that_is_cut_says_so():
    row = phase_tables.by_phase(SessionAnalysis(paged_run())).rows[0]
    assert first_rows([row] * MOST_ROWS, "It is so.") == {
        "rows": (row,) * MOST_ROWS,
        "about": "It is so.",
    }
    cut = first_rows([row] * 1_400, "It is so.")
    assert len(cut["rows"]) == MOST_ROWS
    assert cut["about"] == "It is so. The first 400 rows of 1,400."
    session = paged_run()
    sweep = next(span for span in session.phases if span.iteration >= 0)
    many = tuple(replace(sweep, iteration=at) for at in range(MOST_ROWS + 1))
    assert "of 401" in phase_tables.iterations(SessionAnalysis(replace(session, phases=many))).about


def test_accesses_are_those_of_the_summary():
    one = {"kind": [Kind.ACCESS], "address": [BASE + 5], "count": [41], "time": [20 * MS]}
    counted = replace(paged_run(), events=with_phases(EventTable(one), phases()))
    for session in (paged_run(), counted):
        analysis = SessionAnalysis(session)
        total = session.summary()["accesses"]
        assert total > 0
        for table in (tables.by_group(analysis), tables.by_array(analysis)):
            assert sum(row.get("accesses") or 0 for row in table.rows) == total
        within = phase_tables.by_phase_and_group(analysis).rows
        assert sum(row.get("accesses") or 0 for row in within) == total
        assert {(r["phase"], r["level"], r["group"]) for r in within if r.get("accesses")} == {
            ("move", 0, "graph")
        }


def test_residency_at_the_end_of_phases():
    rows = {
        (row["phase"], row["level"], row["group"]): row.get("resident")
        for row in phase_tables.by_phase_and_group(SessionAnalysis(paged_run())).rows
    }
    assert rows["move", 0, "graph"] == 64 * MIB
    assert rows["move", 1, "community"] == 4 * MIB
    assert ("load", None, "graph") not in rows


def test_kernels_are_ordered_by_their_time():
    first, second = over_time.kernels(SessionAnalysis(paged_run())).rows
    assert (first["kernel"], first["seconds"]) == ("move_tile", pytest.approx(0.049))
    assert first["share"] + second["share"] == pytest.approx(1)


def test_what_nobody_recorded_is_not_shown_as_nothing():
    rows = rows_of(tables.by_group(SessionAnalysis(cpu_run())), "group")
    assert "bytes_to_device" not in rows["graph"]
    assert "accesses" not in rows["graph"]
    assert evidence(cpu_run(), "memory") == "not available: no source recorded it"
    assert format_value(None, "bytes") == "–"


def test_evidence_distinguishes_modelled_from_measured():
    modelled = Session(
        events=EventTable({"kind": [Kind.HTOD], "bytes": [1], "source": [Source.SIMULATOR]})
    )
    assert evidence(modelled, "memory") == "modelled (simulator)"
    named = Session(metadata={"sources": {"simulator": "modelled", "uvm": "not available: x"}})
    assert evidence(named, "memory") == "modelled (simulator)"
    assert evidence(paged_run(), "memory") == "measured (uvm)"
    assert evidence(paged_run(), "energy") == "measured (nvml)"


def test_blocks_that_came_again():
    analysis = SessionAnalysis(paged_run())
    table = ping_pong(analysis)
    assert len(table.rows) == 32
    worst = table.rows[0]
    assert (worst["array"], worst["times"]) == ("targets.0", pytest.approx(3.0))
    assert worst["bytes_out"] == 2 * BLOCK
    assert {row["offset"] for row in table.rows} == {block * BLOCK for block in range(32)}
    assert refetched_bytes(analysis) == (analysis.total(Kind.HTOD), 2 * 64 * MIB)
    assert not ping_pong(SessionAnalysis(paged_run(times=1))).rows


def test_residency_never_exceeds_what_came():
    analysis = SessionAnalysis(paged_run())
    curves = over_time.resident(analysis)
    # Of the graph never more than all of it, and all of it at the end.
    assert curves.values["graph"].max() <= 64 * MIB
    assert curves.values["graph"][-1] == 64 * MIB
    assert curves.values["community"][-1] == 4 * MIB
    alive = over_time.allocated(analysis)
    assert alive.values["graph"].max() == 72 * MIB
    assert over_time.resident(SessionAnalysis(cpu_run())) is None


def test_arrays_alive_are_those_of_one_moment():
    span = PhaseSpan(phase="move", level=0, iteration=-1, start_ns=0, end_ns=4000 * MS)
    # A hundred buffers one after the other, each far shorter than a step of the chart, and one
    # that shrinks under its name.
    brief = [
        Lifetime(name="buffer", group="scratch", address=BASE + BLOCK, nbytes=MIB,
                 start_ns=at * 10_000, end_ns=(at + 1) * 10_000)
        for at in range(100)
    ]  # fmt: skip
    lasting = Lifetime(name="targets.0", group="graph", address=BASE, nbytes=2 * MIB, start_ns=0,
                       end_ns=4000 * MS)  # fmt: skip
    analysis = SessionAnalysis(Session(phases=(span,), lifetimes=(lasting, *brief)))
    alive = over_time.allocated(analysis)
    assert sum(values.max() for values in alive.values.values()) == 3 * MIB
    assert alive.values["scratch"][0] == MIB  # what lived shorter than a step still shows
    assert not alive.values["scratch"][2:].any()
    rows = rows_of(tables.by_array(analysis), "array")
    assert rows["buffer"]["alive"] == pytest.approx(1e-3)
    # Brief ones take little of the map.
    stripes = {stripe.name: stripe for stripe in Axis.of(analysis, rows=100).stripes}
    assert stripes["targets.0"].rows > 0.9 * 100


def test_a_light_recording_knows_totals_alone():
    whole = paged_run()
    events = whole.events.select(~np.isin(whole.events["kind"], [Kind.HTOD, Kind.DTOH]))
    reported = {"driver_totals": {"bytes_to_device": 196 * MIB, "bytes_to_host": 128 * MIB}}
    light = paged_run(about_sources={"uvm": {"migrations": False, **reported}})
    light = replace(light, events=events)
    rows = rows_of(tables.by_group(SessionAnalysis(light)), "group")
    assert "bytes_to_device" not in rows["graph"]
    assert rows["graph"]["evictions"] == 64
    found = verdict(SessionAnalysis(light))
    assert found.finding.startswith("Eviction held the run back: 65.3 % of the 196.0 MiB")
    assert "adv2" in found.remedy
    assert "assumed to be migrated again" in found.grounds


def test_the_verdict_on_other_runs():
    def finding(session):
        return verdict(SessionAnalysis(session)).finding

    assert "on demand" in finding(paged_run(times=1, seconds=0.01))
    assert "Memory did not" in finding(paged_run(times=1, seconds=100.0))
    assert "interrupted" in finding(paged_run(complete=False))
    assert finding(paged_run(sources={"engine": "measured"}))  # no source vouches for events
    cpu = verdict(SessionAnalysis(cpu_run()))
    assert "move on level 0" in cpu.finding
    assert "--device cuda" in cpu.remedy


def test_a_second_cycle_is_distinguished_from_the_first():
    session = paged_run()
    first = phase_tables.iterations(SessionAnalysis(session))
    assert "cycle" not in {column.key for column in first.columns}
    later = [
        replace(span, start_ns=span.start_ns + 100 * MS, end_ns=span.end_ns + 100 * MS)
        for span in session.phases
        if span.level <= 0
    ]
    table = phase_tables.iterations(
        SessionAnalysis(replace(session, phases=(*session.phases, *later)))
    )
    assert table.columns[0].key == "cycle"
    again = table.rows[len(first.rows) :]
    assert {row["cycle"] for row in table.rows[: len(first.rows)]} == {0}
    assert [(row["cycle"], row["level"], row["iteration"]) for row in again] == [
        (1, 0, 0),
        (1, 0, 1),
    ]
    assert "cycle" in table.about
