"""What ranks did with their time: noted in a run, and shown of its session."""

import time

import pytest

from louvain_um.generators import lfr
from louvain_um.options import Options
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.data import ranks_of, waiting
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.tables import tables
from louvain_um.profiling.views.session.verdict import verdict
from louvain_um.profiling.views.timeline import trace
from tests.distributed.threads import detect_in_threads

RANKS = 3


@pytest.fixture(scope="module")
def session():
    graph = lfr(3000, seed=2).graph

    def slow(event):  # of the first rank alone
        if event.kind == "iteration" and event.level == 0:
            time.sleep(0.15)

    options = Options(device="cpu", threads=1)
    found = detect_in_threads(graph, options, slow, ranks=RANKS, collapse_arcs=1 << 10)
    return SessionData(metadata={"by_rank": found.provenance["by_rank"], "seconds": 1.0})


def test_the_others_wait_for_a_slow_rank(session):
    rows = ranks_of(session)
    assert [row.rank for row in rows] == list(range(RANKS))
    assert max(rows, key=lambda row: row.work).rank == 0
    assert all(row.exchange > rows[0].exchange for row in rows[1:])
    assert all(row.received > 0 for row in rows)
    said = waiting(session)
    assert said.endswith("for rank 0")


def test_a_lane_of_the_trace_for_each_rank(session):
    events = trace(session)["traceEvents"]
    lanes = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert lanes >= {f"rank {rank}" for rank in range(RANKS)}
    assert {e["name"] for e in events if e["ph"] == "X"} >= {"move 0", "aggregate 0", "load"}


def test_tables_and_verdict_name_ranks(session):
    analysis = SessionAnalysis(session)
    (table,) = (each for each in tables(analysis) if each.name == "ranks")
    assert [row["rank"] for row in table.rows] == list(range(RANKS))
    span_of_one = SessionData(metadata={"by_rank": []})
    assert not any(each.name == "ranks" for each in tables(SessionAnalysis(span_of_one)))


def test_a_verdict_begins_with_the_wait(session):
    from louvain_um.profiling.session import PhaseSpan

    span = PhaseSpan(phase="move", level=0, iteration=-1, start_ns=0, end_ns=10**9)
    whole = SessionData(metadata=session.metadata, phases=(span,))
    assert "for rank 0. " in verdict(SessionAnalysis(whole)).finding


def test_ranks_that_hardly_wait_are_not_blamed():
    even = [{"rank": r, "work": 1.0, "exchange": 0.01, "received": 0} for r in range(2)]
    assert waiting(SessionData(metadata={"by_rank": even})) is None
    assert waiting(SessionData()) is None
