"""Reports as pages: whole, safe against hostile names, with evidence at every figure."""

import builtins
import re
from dataclasses import replace

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import LouvainUmError
from louvain_um.profiling import Session
from louvain_um.profiling.record.profiler import profile
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.sweep.results import Sweep
from louvain_um.profiling.views.html import payload, render, write
from louvain_um.profiling.views.html.page import embedded
from louvain_um.profiling.views.html.payload import cells, encoded, halved, map_payload
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.lines import data_sources
from louvain_um.profiling.views.session.pages import (
    Axis,
    Layer,
    accesses,
    faults,
    migrations,
    rebin,
)
from louvain_um.profiling.views.table import Column, Table
from tests.profiling.views.made import BLOCK, HOSTILE, MIB, cpu_run, paged_run, sweep_rows


def test_the_page_holds_everything_and_asks_for_nothing():
    page = render(paged_run(), other=cpu_run())
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "default-src 'none'" in page
    for word in ("Eviction held the run back", "targets.0", "Comparison", "move_tile"):
        assert word in page


def test_hostile_names_stay_text():
    page = render(paged_run())
    assert HOSTILE not in page
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 3
    assert "&lt;/script&gt;" in page
    assert "<" not in embedded({"a": HOSTILE})
    assert "<b>markup" not in page


def test_every_table_and_figure_says_how_it_knows():
    page = render(paged_run())
    for kind in ('section class="table"', "figure"):
        for piece in re.findall(rf"<{kind} id=.*?</{kind.split()[0]}>", page, re.DOTALL):
            assert re.search(r'class="evidence">[^<]*(measured|modelled)', piece), piece[:200]
    cards = re.findall(r"<li><span class=\"what\">.*?</li>", page)
    assert len(cards) == 11
    for card in cards:
        assert re.search(r"measured|modelled|not available", card), card


def test_what_nobody_recorded_is_said_to_be_not_available():
    page = render(cpu_run())
    assert page.count("not available") > 5
    assert 'class="pagemap"' not in page


def test_sources_say_what_came_of_them_and_what_was_lost():
    told = {
        "uvm": {"migrations": True, "events": 1234, "dropped": 5,
                "recorded": {"cpu_faults": 3}, "driver_totals": {"cpu_faults": 9}},
        "nvml": {"samples": 2, "period_seconds": 0.1},
    }  # fmt: skip
    lines = dict(
        line.split(": ", 1) for line in data_sources(paged_run(about_sources=told)) if ": " in line
    )
    for said in ("1,234 events", "5 dropped", "3 CPU faults of 9"):
        assert said in lines["uvm"]
    assert "2 samples" in lines["nvml"]
    assert "1,234 events" in render(paged_run(about_sources=told)).partition('id="sources"')[2]


def test_the_api_writes_it(tmp_path):
    graph = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    session = profile(graph, device="cpu")
    path = tmp_path / "out.html"
    session.report(path)
    assert "Where the time went" in path.read_text()
    with pytest.raises(LouvainUmError, match="exists already"):
        session.report(path)
    session.report(path, other=session, force=True)
    assert "Comparison" in path.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["out.html"]
    assert "<table>" in session._repr_html_()
    assert HOSTILE not in paged_run()._repr_html_()


def test_without_jinja_the_remedy_is_named(monkeypatch, tmp_path):
    real = builtins.__import__

    def refuse(name, *rest, **more):
        if name.startswith("louvain_um.profiling.views.html.page"):
            raise ImportError("no", name="jinja2")
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(LouvainUmError, match=r"louvain-um\[report\]"):
        write(Session(), tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


def test_cells_add_up_to_the_events():
    analysis = SessionAnalysis(paged_run())
    axis = Axis.of(analysis, rows=64, columns=50)
    found = faults(analysis, axis)
    assert found is not None
    assert found.values.sum() == analysis.total(Kind.GPU_FAULT_GROUP, "count")
    moved = migrations(analysis, axis)
    assert moved is not None
    total = analysis.total(Kind.HTOD) + analysis.total(Kind.DTOH)
    assert moved.values.sum() == pytest.approx(total)
    low, high = axis.rows_of("community")
    assert moved.values[low:high].sum() == pytest.approx(4 * MIB)
    assert moved.names[moved.kinds[low:high].max() - 1] == "to the device: request of the program"  # type: ignore[index]
    seen = accesses(analysis, axis)
    assert seen is not None
    assert seen.values.sum() == pytest.approx(1024 * 5 * 7)
    # From 15 to 40 of 100 milliseconds, and nowhere else.
    assert np.flatnonzero(seen.values.any(axis=0)).tolist() == list(range(7, 20))


def test_an_event_lies_in_the_rows_of_its_bytes():
    analysis = SessionAnalysis(paged_run(times=1))
    axis = Axis.of(analysis, rows=42 * 2, columns=10)
    found = migrations(analysis, axis)
    assert found is not None
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


def layer(values, kinds=None):
    return Layer(name="l", title="L", unit="bytes", evidence="measured", values=values, kinds=kinds)


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
    assert half.kinds is not None
    assert half.kinds.tolist() == [[1, 3]]


def test_maps_never_take_more_than_their_room(monkeypatch):
    random = np.random.default_rng(3)
    noise = layer(random.integers(0, 1 << 30, (600, 1024)).astype(float))
    monkeypatch.setattr(payload, "layers", lambda analysis, axis: [noise, noise])
    assert len(encoded(noise)) > 500_000
    found = map_payload(SessionAnalysis(paged_run()), room=300_000)
    assert found is not None
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
    assert badges(render(paged_run())) == ["measured"]
    assert badges(render(modelled(paged_run()))) == ["modelled"]
    assert badges(render(paged_run(), other=modelled(paged_run()))) == ["mixed"]
    rows = sweep_rows()
    measured = [{**row, "evidence": "measured", "gpu": "H200"} for row in rows]
    assert badges(render(None, sweep=Sweep(results=rows))) == ["modelled"]
    assert badges(render(None, sweep=Sweep(results=[*rows, *measured]))) == ["mixed"]


def test_a_comparison_is_headed_by_what_differs():
    page = render(paged_run(), other=paged_run(times=2, policy="adv2"))
    head = re.search(r"<h1>(.*?)</h1>", page)
    assert head is not None
    assert "base against adv2" in head[1]
    assert page.index("The second run was") < page.index('id="summary"')
    unlike = re.search(r"<h1>(.*?)</h1>", render(cpu_run(), other=paged_run()))
    assert unlike is not None
    assert "–" not in unlike[1]
    same = render(cpu_run(), other=cpu_run())
    assert "two runs</h1>" in same


def test_zeros_are_pale_and_stay_zeros():
    table = Table(
        name="t",
        title="T",
        columns=(Column("level", "level"), Column("b", "bytes", "bytes"), Column("w", "w", "text")),
        rows=({"level": 0, "b": 0, "w": "0 B"}, {"level": 1, "b": None, "w": "–"}),
    )
    zeros = [[table.is_zero(row, column) for column in table.columns] for row in table.rows]
    assert zeros == [[False, True, True], [False, False, False]]
    page = render(paged_run())
    cells = re.findall(r'<td class="number zero" data-v="([^"]*)">([^<]*)</td>', page)
    assert cells
    assert {float(value) for value, _ in cells} == {0.0}
    assert not {text for _, text in cells} & {"–", ""}
