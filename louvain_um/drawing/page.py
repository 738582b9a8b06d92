"""One offline HTML page: the drawn graph, its communities, a table and the sizes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from louvain_um.drawing.layout import Drawing, draw_communities, draw_vertices, drawable
from louvain_um.drawing.plots import colour
from louvain_um.errors import LouvainUmError, install_hint
from louvain_um.graph.graph import Graph
from louvain_um.results.display import count, listable, score, shown
from louvain_um.results.frame import hub_members
from louvain_um.results.partition import Result
from louvain_um.results.quality import quality

MOST_ROWS = 200
"""Communities in the table, the largest."""

HUBS = 5
"""Members of highest degree named per community."""

HEAD = ("community", "size", "inside", "cut", "conductance", "density", "hubs")


def page(
    result: Result,
    graph: Graph,
    name: str,
    seed: int,
    descriptions: Sequence[str] | None = None,
) -> str:
    """Return the text of a page that needs no network; `descriptions` are of communities."""
    try:
        import jinja2
    except ImportError:
        raise LouvainUmError(
            f"pages need Jinja; install it with {install_hint('report')}"
        ) from None
    folder = files("louvain_um.drawing")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        folder.joinpath("page.html.j2").read_text("utf-8")
    )
    drawings = {"communities": draw_communities(graph, result, seed)}
    if drawable(graph):
        drawings = {"vertices": draw_vertices(graph, result, seed), **drawings}
    views = {title: _view(drawing) for title, drawing in drawings.items()}
    facts = [
        count(graph.n_vertices, "vertex", "vertices"),
        count(graph.n_edges, "edge", "edges"),
        count(result.n_communities, "community", "communities"),
        f"modularity {score(result.modularity)}",
    ]
    return template.render(
        title=shown(name),
        facts=" · ".join([*facts, *([result.method] if result.method else [])]),
        head=HEAD if descriptions is None else (*HEAD, "distinguished by"),
        texts=1 if descriptions is None else 2,
        rows=_rows(result, graph, descriptions),
        more=max(0, result.n_communities - MOST_ROWS),
        notes=[drawing.left_out for drawing in drawings.values() if drawing.left_out],
        views=list(views),
        data=_script_safe(views),
        css=folder.joinpath("page.css").read_text("utf-8"),
        script=folder.joinpath("page.js").read_text("utf-8"),
    )


def _view(drawing: Drawing) -> dict[str, Any]:
    """Return a drawing as plain data, rounded to what a screen shows."""
    return {
        "x": drawing.positions[:, 0].round(4).tolist(),
        "y": (-drawing.positions[:, 1]).round(4).tolist(),
        "r": drawing.radii.round(4).tolist(),
        "colour": [colour(c) for c in drawing.communities.tolist()],
        "community": drawing.communities.tolist(),
        "name": drawing.names,
        "from": drawing.ends[:, 0].tolist(),
        "to": drawing.ends[:, 1].tolist(),
        "width": (1.2 * drawing.widths).round(3).tolist(),
    }


def _script_safe(value: Any) -> str:
    """Return JSON that no HTML parser takes for the end of a script."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


def _rows(result: Result, graph: Graph, descriptions: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return the rows of the table, the largest communities first."""
    measured = quality(graph, result.labels, result.resolution, objective=result.objective)
    hubs = hub_members(graph, result.labels, HUBS)[:MOST_ROWS]
    rows = []
    for c, members in enumerate(hubs):
        found = members[members >= 0]
        named = found if result.names is None else result.names[found]
        rows.append(
            {
                "colour": colour(c),
                "community": c,
                "cells": [
                    f"{measured.sizes[c]:,}",
                    f"{measured.inside[c]:,.6g}",
                    f"{measured.cut[c]:,.6g}",
                    f"{measured.conductance[c]:.3f}",
                    f"{measured.density[c]:.3f}",
                ],
                "texts": [
                    ", ".join(listable(named)),
                    *([] if descriptions is None else [shown(descriptions[c])]),
                ],
            }
        )
    return rows
