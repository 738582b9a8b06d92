"""What stands around a page's numbers: the badge of evidence, the title of two sessions, zeros."""

from __future__ import annotations

import re
from dataclasses import replace

from louvain_um.profiling.sweep.results import Sweep
from louvain_um.profiling.views.html import render
from louvain_um.profiling.views.table import Column, Table
from tests.profiling.views.made import cpu_run, paged_run, sweep_rows

BADGE = re.compile(r'<span class="badge (\w+)">(\w+)</span>')


def modelled(session):
    sources = dict.fromkeys(session.metadata["sources"], "modelled")
    return replace(session, metadata={**session.metadata, "sources": sources})


def badges(page: str) -> list[str]:
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
