"""Whatever a session holds, views show it, and every byte is somewhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louvain_um.profiling import Session
from louvain_um.profiling.session import Lifetime, PageMap, PhaseSpan
from louvain_um.profiling.session.events import Cause, EventTable, Kind, Source
from louvain_um.profiling.views.html import render
from louvain_um.profiling.views.session import phase_tables, tables
from louvain_um.profiling.views.session.analysis import CAUSE_LABELS, SessionAnalysis
from louvain_um.profiling.views.session.pages import Axis, layers
from louvain_um.profiling.views.session.verdict import verdict
from louvain_um.profiling.views.timeline import trace

KINDS = tuple(Kind)
MOVES = (Kind.HTOD, Kind.DTOH)


@st.composite
def sessions(draw):
    many = draw(st.integers(0, 4))
    lives, address = [], 1 << 21
    for at in range(many):
        size = draw(st.sampled_from([0, 1, 4096, 65536, 5 << 20]))
        start = draw(st.integers(0, 100))
        group = draw(st.sampled_from(["graph", "hash", "community", "scratch"]))
        lives.append(
            Lifetime(name=f"a{at // 2}", group=group, address=address, nbytes=size, start_ns=start,
                     end_ns=start + draw(st.integers(0, 100)), level=at - 1)
        )  # fmt: skip
        address += size + draw(st.sampled_from([0, 1 << 20]))
    rows = draw(st.integers(0, 12))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    events = EventTable(
        {
            "time": np.sort(random.integers(0, 300, rows)),
            "duration": random.integers(0, 50, rows),
            "kind": random.choice(KINDS, rows),
            "address": random.choice([0, 1 << 21, (1 << 21) + 4096, 6 << 20, 1 << 46], rows),
            "bytes": random.choice([0, 1, 4096, 9 << 20], rows),
            "count": random.integers(0, 9, rows),
            "rows": random.integers(0, 3, rows),
            "cause": random.integers(0, 6, rows),
            "kernel": random.integers(-1, 1, rows),
            "phase": random.integers(-1, 6, rows),
            "level": random.integers(-1, 3, rows),
            "source": random.choice(tuple(Source), rows),
        },
        ("k",),
    )
    names = draw(st.lists(st.sampled_from(["move", "load", "mine"]), max_size=3))
    phases = tuple(
        PhaseSpan(phase=name, level=at, iteration=draw(st.integers(-1, 1)), start_ns=at * 9,
                  end_ns=at * 9 + draw(st.integers(0, 90)))
        for at, name in enumerate(names)
    )  # fmt: skip
    maps = ()
    if draw(st.booleans()):
        shape = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        edges = np.arange(shape[1] + 1) * 7
        counts = random.integers(0, 5, shape).astype(np.uint32)
        name = draw(st.sampled_from(["a0", "unknown"]))
        maps = (PageMap(array=name, page_bytes=4096, edges=edges, counts=counts),)
    sources = draw(st.sampled_from([{}, {"uvm": "measured"}, {"simulator": "modelled"}]))
    return Session(
        metadata={"sources": sources}, lifetimes=tuple(lives), phases=phases, events=events,
        maps=maps,
    )  # fmt: skip


@settings(max_examples=40)
@given(sessions())
def test_every_byte_is_somewhere(session):
    analysis = SessionAnalysis(session)
    moved = sum(analysis.total(kind) for kind in MOVES)
    reported = session.summary()
    for maker in (
        tables.by_group,
        tables.by_array,
        phase_tables.by_phase,
        phase_tables.by_phase_and_group,
    ):
        rows = maker(analysis).rows
        if any("bytes_to_device" in row for row in rows):
            both = [row.get("bytes_to_device") or 0 for row in rows]
            both += [row.get("bytes_to_host") or 0 for row in rows]
            assert sum(both) == moved
    causes = tables.by_cause(analysis).rows
    between = sum(row["bytes"] for row in causes if row["way"] == "between devices")
    assert sum(row["bytes"] for row in causes) - between == moved
    accesses = analysis.accesses_by_array
    assert sum(accesses or [0]) == (reported["accesses"] or 0)
    axis = Axis.of(analysis, rows=20, columns=15)
    for layer in layers(analysis, axis):
        if layer.title == "Migrations by cause":
            assert layer.values.sum() == pytest.approx(moved)
        if layer.title == "GPU faults":
            faults = analysis.total(Kind.GPU_FAULT_GROUP, "count")
            assert layer.values.sum() == pytest.approx(faults)


@settings(max_examples=12)
@given(sessions(), sessions())
def test_every_session_is_shown(first, second):
    page = render([first, second])
    assert page.rstrip().endswith("</html>")
    assert verdict(SessionAnalysis(first)).finding
    events = trace(first)["traceEvents"]
    assert sum(event["ph"] in "Xi" for event in events) >= len(first.phases)
    assert set(CAUSE_LABELS) == set(Cause)
