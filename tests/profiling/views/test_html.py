"""Reports as pages: whole, safe against hostile names, with evidence at every figure."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.drawing.reports import embedded
from louvain_um.errors import LouvainUmError
from louvain_um.profiling import Session
from louvain_um.profiling.record.profiler import profile
from louvain_um.profiling.session.events import EventTable
from louvain_um.profiling.sweep.results import Sweep
from louvain_um.profiling.views.html import render, session_parts, write
from louvain_um.profiling.views.html.parts import heading
from louvain_um.profiling.views.html.session_parts import cells, encoded, halved, map_payload
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.pages import Axis, Layer, differences, migrations, rebin
from tests.profiling.views.made import BLOCK, HOSTILE, MIB, cpu_run, paged_run, sweep_rows


def test_the_page_holds_everything_and_asks_for_nothing():
    page = render([paged_run(), cpu_run()])
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "default-src 'none'" in page
    for word in ("Eviction held the run back", "targets.0", "Comparison", "move_tile"):
        assert word in page


def test_hostile_names_stay_text():
    page = render([paged_run()])
    assert HOSTILE not in page
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 3
    assert "&lt;/script&gt;" in page
    assert "<" not in embedded({"a": HOSTILE})
    assert "<b>markup" not in page


def test_every_table_and_figure_says_how_it_knows():
    page = render([paged_run()])
    for kind in ('section class="table"', "figure"):
        for piece in re.findall(rf"<{kind} id=.*?</{kind.split()[0]}>", page, re.DOTALL):
            assert re.search(r'class="evidence">[^<]*(measured|modelled)', piece), piece[:200]
    cards = re.findall(r"<li><span class=\"what\">.*?</li>", page)
    assert len(cards) == 11
    for card in cards:
        assert re.search(r"measured|modelled|not available", card), card


def test_the_api_writes_it(tmp_path):
    graph = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    session = profile(graph, device="cpu")
    path = tmp_path / "out.html"
    session.report(path)
    assert "Where the time went" in path.read_text()
    with pytest.raises(LouvainUmError, match="exists already"):
        session.report(path)
    for other in (session, [session, session]):
        session.report(path, other=other, force=True)
        assert "Comparison" in path.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["out.html"]
    assert "<table>" in session._repr_html_()
    assert HOSTILE not in paged_run()._repr_html_()


def test_without_jinja_the_remedy_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(LouvainUmError, match=r"pip install .*\[report\]"):
        write([Session()], tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


def test_an_event_lies_in_the_rows_of_its_bytes():
    analysis = SessionAnalysis(paged_run(times=1))
    axis = Axis.of(analysis, rows=42 * 2, columns=10)
    found = migrations(analysis, axis)
    stripe = axis.stripes[0]
    assert stripe.name == "targets.0"
    sums = found.values.sum(axis=1)[stripe.first : stripe.first + stripe.rows]
    assert np.allclose(sums, 64 * MIB / stripe.rows, rtol=0.1)
    assert BLOCK / stripe.step > 1


def test_rebinning_keeps_the_sum():
    values = np.array([[4.0], [2.0], [6.0]])
    edges = np.array([0.0, 10.0, 20.0, 30.0])
    assert rebin(values, edges, np.array([0.0, 5.0, 15.0, 30.0])).ravel().tolist() == [2, 3, 7]
    assert rebin(values, edges, np.array([-5.0, 40.0])).ravel().tolist() == [12]


def slower(session, factor):
    """Return a run whose steps took longer."""
    events = EventTable(
        {**session.events.columns, "time": session.events["time"] * factor},
        session.events.kernels, session.events.phases,
    )  # fmt: skip
    return replace(
        session, events=events,
        phases=tuple(replace(span, start_ns=factor * span.start_ns, end_ns=factor * span.end_ns)
                     for span in session.phases),
        lifetimes=tuple(replace(life, end_ns=factor * life.end_ns) for life in session.lifetimes),
        maps=tuple(replace(page, edges=page.edges * factor) for page in session.maps),
    )  # fmt: skip


def test_differences_are_of_the_same_step_whenever_it_ran():
    first = SessionAnalysis(paged_run())
    axis = Axis.of(first, rows=84, columns=20)
    assert differences(first, SessionAnalysis(slower(paged_run(), 3)), axis) == []
    other = SessionAnalysis(slower(paged_run(times=1), 2))
    found = {layer.title: layer for layer in differences(first, other, axis)}
    faults = found["GPU faults"]
    assert "Accesses" not in found
    assert faults.values.sum() == 2 * 32 * 12  # of two passes that the other run has not
    assert set(faults.kinds[faults.values > 0].tolist()) == {2}
    assert faults.names == ("more than in the first run", "less")
    page = render([paged_run(), slower(paged_run(times=1), 2), cpu_run()])
    for name in ("second", "second-difference", "third-difference"):
        assert f'data-map="{name}"' in page
    assert "The second run was as fast as the first" in page
    heads = re.findall(r"<th[^>]*>(?:<[^>]*>)*([^<]* ÷ 1)", page)
    assert heads[:2] == ["2 ÷ 1", "3 ÷ 1"]


def layer(values, kinds=None):
    return Layer(title="L", unit="bytes", evidence="measured", values=values, kinds=kinds)


def test_a_cell_is_a_byte():
    values = np.array([[0.0, 1e-3, 5.0, 1e12]])
    assert cells(layer(values)).tolist()[0][0] == 0
    assert cells(layer(values)).tolist()[0][1] == 1  # the least that happened shows
    assert cells(layer(values)).tolist()[0][3] == 254
    coded = cells(layer(values, np.array([[0, 1, 2, 3]], np.uint8)))
    assert (coded >> 4).tolist() == [[0, 1, 2, 3]]
    assert (coded & 15).tolist() == [[0, 1, 1, 15]]
    half = halved(layer(values, np.array([[0, 1, 2, 3]], np.uint8)))
    assert half.values.tolist() == [[1e-3, 5.0 + 1e12]]
    assert half.kinds.tolist() == [[1, 3]]


def test_maps_never_take_more_than_their_room(monkeypatch):
    random = np.random.default_rng(3)
    noise = layer(random.integers(0, 1 << 30, (600, 1024)).astype(float))
    monkeypatch.setattr(session_parts, "layers", lambda analysis, axis: [noise, noise])
    assert len(encoded(noise)) > 500_000
    found = map_payload(SessionAnalysis(paged_run()), room=300_000)
    assert sum(len(each["data"]) for each in found["layers"]) <= 300_000
    assert {each["columns"] for each in found["layers"]} <= {128, 256}


BADGE = re.compile(r'<span class="badge (\w+)">(\w+)</span>')


def modelled(session):
    sources = dict.fromkeys(session.metadata["sources"], "modelled")
    return replace(session, metadata={**session.metadata, "sources": sources})


def badges(page):
    found = BADGE.findall(page)
    assert all(kind == text for kind, text in found)
    return [kind for kind, _ in found]


def test_one_badge_says_how_all_numbers_came_about():
    assert badges(render([paged_run()])) == ["measured"]
    assert badges(render([modelled(paged_run())])) == ["modelled"]
    assert badges(render([paged_run(), modelled(paged_run())])) == ["mixed"]
    rows = sweep_rows()
    measured = [{**row, "evidence": "measured", "gpu": "H200"} for row in rows]
    assert badges(render((), sweep=Sweep(results=rows))) == ["modelled"]
    assert badges(render((), sweep=Sweep(results=[*rows, *measured]))) == ["mixed"]


def test_the_heading_counts_launches_before_and_after():
    def facts(before, after):
        return heading(Session(metadata={"launches": {"before": before, "after": after}}))[1]

    assert "5 launches per pass over the arcs (2 if all were copied in parts)" in facts(2, 5)
    assert "1 launch per pass over the arcs (3 if" in facts(3, 1)
    assert "per pass over the arcs" not in facts(1, 1)
