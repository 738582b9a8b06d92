"""Pages that need no network: a drawn graph with its communities, stores compared, a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.atomic_files import write_text
from louvain_um.drawing import over_time
from louvain_um.drawing.layout import Drawing, draw_communities, draw_vertices, drawable
from louvain_um.drawing.plots import colour, new_figure, svg_of
from louvain_um.errors import LouvainUmError, needed
from louvain_um.formats.file_types import first_line_of
from louvain_um.graph.graph import Graph
from louvain_um.options import unusual
from louvain_um.results.display import count, listable, score, shown
from louvain_um.results.frame import hub_members
from louvain_um.results.partition import Result
from louvain_um.results.quality import quality

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 200
"""Communities in the table, the largest."""

HUBS = 5
"""Members of highest degree named per community."""

HEAD = ("community", "size", "inside", "cut", "conductance", "density", "hubs")


def page(
    result: Result, graph: Graph, name: str, seed: int, descriptions: Sequence[str] | None = None
) -> str:
    """Return the text of a page that needs no network; `descriptions` are of communities."""
    template = template_of("page.html.j2")
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
    asked = unusual(result.provenance.get("options", {}))
    page: str = template.render(
        title=shown(name),
        facts=" · ".join([*facts, *([result.method] if result.method else []), *asked]),
        head=HEAD if descriptions is None else (*HEAD, "distinguished by"),
        texts=1 if descriptions is None else 2,
        rows=_rows(result, graph, descriptions),
        more=max(0, result.n_communities - MOST_ROWS),
        notes=[drawing.left_out for drawing in drawings.values() if drawing.left_out],
        views=list(views),
        data=embedded(views),
        css=text_of("page.css"),
        script=text_of("page.js"),
    )
    return page


def embedded(data: object) -> str:
    """Return JSON without characters that an HTML parser could take for markup."""
    from jinja2.utils import htmlsafe_json_dumps

    return htmlsafe_json_dumps(data, allow_nan=False, separators=(",", ":"))


def text_of(name: str, package: str = "louvain_um.drawing") -> str:
    """Return the text of a file of a package."""
    return files(package).joinpath(name).read_text("utf-8")


def template_of(name: str, package: str = "louvain_um.drawing", **how: bool) -> Any:
    """Return a template of a package, which escapes what it is given."""
    jinja = needed("jinja2", "pages need Jinja", "report")
    environment = jinja.Environment(autoescape=True, undefined=jinja.StrictUndefined, **how)
    return environment.from_string(text_of(name, package))


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


def _rows(result: Result, graph: Graph, descriptions: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return the rows of the table, the largest communities first."""
    measured = quality(graph, result.labels, result.resolution, objective=result.objective)
    hubs = hub_members(graph, result.labels, HUBS)[:MOST_ROWS]
    inside, cut = (aligned(column) for column in (measured.inside, measured.cut))
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
                    inside[c],
                    cut[c],
                    f"{measured.conductance[c]:.3f}",
                    f"{measured.density[c]:.3f}",
                ],
                "texts": [
                    ", ".join(listable(named)),
                    *([] if descriptions is None else [shown(descriptions[c]) or "nothing"]),
                ],
            }
        )
    return rows


def aligned(column: NDArray[Any]) -> list[str]:
    """Return numbers with as many decimals each: none of integers, else those of four digits."""
    largest = float(np.abs(column).max(initial=0))
    whole = largest == 0 or bool((column == np.rint(column)).all())
    decimals = 0 if whole else max(0, 3 - math.floor(math.log10(largest)))
    return [f"{value:,.{decimals}f}" for value in column.tolist()]


def chart(title: str, about: str, height: float, draw: Callable[[Any], None]) -> dict[str, str]:
    """Return a chart as SVG text with its title."""
    figure, axes = new_figure(10, height)
    draw(axes)
    return {"title": title, "about": about, "svg": svg_of(figure, title, transparent=True)}


def render(
    title: str,
    kind: str,
    facts: str,
    charts: Sequence[Mapping[str, str]],
    tables: Sequence[Mapping[str, Any]],
) -> str:
    """Return a page."""
    return str(
        template_of("charts.html.j2").render(
            title=title, kind=kind, facts=facts, charts=charts, tables=tables
        )
    )


REPORT: Final = "report.html"

STORE_COLUMNS: Final = (
    ("insert ms", "insert_ms", 1.0),
    ("delete ms", "delete_ms", 1.0),
    ("query ms", "query_ms", 1.0),
    ("M inserts/s", "insert_edges_per_second", 1e-6),
    ("bytes per arc", "bytes_per_arc", 1.0),
    ("moved MB", "moved_bytes", 1e-6),
    ("read all arcs, ms", "traverse_ms", 1.0),
)
"""Columns of the table: title, field and unit."""

TRIALS: Final = (
    ("sorted batch, ms", "sorted_insert_ms", 1.0),
    ("shuffled batch, ms", "shuffled_insert_ms", 1.0),
    ("skewed batch, ms", "skewed_insert_ms", 1.0),
    ("mixed batch, ms", "mixed_ms", 1.0),
    ("PageRank, ms", "pagerank_ms", 1.0),
    ("Louvain, ms", "louvain_ms", 1.0),
    ("SpMV, ms", "spmv_ms", 1.0),
    ("triangles, ms", "triangles_ms", 1.0),
    ("compressed copy, ms", "copy_ms", 1.0),
    ("add vertices, ms", "add_vertices_ms", 1.0),
    ("remove vertices, ms", "remove_vertices_ms", 1.0),
)
"""The same of measurements other than of batches."""


def store_page(records: Sequence[dict[str, Any]]) -> str:
    """Return the page of a comparison of stores, from its records."""
    graphs = list(dict.fromkeys(r["graph"] for r in records))
    stores = list(dict.fromkeys(r["store"] for r in records))
    charts, tables = [], []
    for graph in graphs:
        chosen = [r for r in records if r["graph"] == graph]
        for what, verb in (("insert", "inserted"), ("delete", "deleted")):
            charts.append(
                chart(
                    f"{graph}: edges {verb} per second",
                    "By edges of a batch; higher is faster.",
                    3.2,
                    partial(draw_rates, records=chosen, stores=stores, what=what),
                )
            )
        charts.append(
            chart(
                f"{graph}: room and reading",
                "Bytes per arc, and time to read every arc: lower left is better.",
                3.2,
                partial(draw_costs, records=chosen, stores=stores),
            )
        )
        measured = [c for c in TRIALS if any(r[c[1]] is not None for r in chosen)]
        for title, columns in ((graph, STORE_COLUMNS), (f"{graph}, other than batches", measured)):
            if columns:
                tables.append(
                    {
                        "title": title,
                        "about": "Medians; all stores hold the same contents.",
                        "head": ("store", "batch", *(name for name, _, _ in columns)),
                        "rows": [cells(r, columns) for r in chosen],
                    }
                )
    facts = f"{count(len(stores), 'store', 'stores')} · {count(len(graphs), 'graph', 'graphs')}"
    title = "Stores of changing graphs"
    return render(title, "stores compared", facts, charts, tables)


def cells(record: dict[str, Any], columns: Sequence[tuple[str, str, float]]) -> list[str]:
    """Return a row of the table."""

    def shown(value: float | None, unit: float) -> str:
        return "–" if value is None else f"{value * unit:.3g}"

    batch = f"{record['batch']:,}" if record["batch"] else "stream"
    return [record["store"], batch, *(shown(record[name], unit) for _, name, unit in columns)]


def draw_rates(
    ax: Any, *, records: Sequence[dict[str, Any]], stores: Sequence[str], what: str
) -> None:
    """Draw edges per second by the size of batches."""
    for place, store in enumerate(stores):
        chosen = [r for r in records if r["store"] == store and r[f"{what}_edges_per_second"]]
        if chosen:
            sizes = [r["batch"] or 1 for r in chosen]
            rates = [r[f"{what}_edges_per_second"] for r in chosen]
            ax.plot(sizes, rates, "o-", color=colour(place), label=store, linewidth=1.2)
    finish(ax, "edges a batch", "edges per second")


def draw_costs(ax: Any, *, records: Sequence[dict[str, Any]], stores: Sequence[str]) -> None:
    """Draw the time of a traversal by bytes per arc."""
    for place, store in enumerate(stores):
        chosen = [r for r in records if r["store"] == store]
        if chosen:
            ax.plot(
                [r["bytes_per_arc"] for r in chosen], [r["traverse_ms"] for r in chosen], "o",
                color=colour(place), label=store,
            )  # fmt: skip
    finish(ax, "bytes per arc", "reading all arcs, ms")


def finish(ax: Any, x: str, y: str) -> None:
    """Give axes logarithmic scales, titles, a legend, and colours that any paper bears."""
    ax.set(xscale="log", yscale="log")
    ax.set_xlabel(x, color=over_time.GREY, fontsize=9)
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5),
              labelcolor=over_time.GREY)  # fmt: skip
    over_time.plain(ax, y)


EPOCH_FROM: Final = 10**8
"""Times from here on are shown as dates, seconds since 1970: since March 1973."""

STREAM_COLUMNS: Final[Mapping[str, Mapping[str, type]]] = {
    "history": {"time": str, "edges": int, "communities": int, "modularity": float,
                "renewed": bool, "audit_lead": float, "seconds": float},
    "communities": {"time": str, "vertex": str, "community": int},
    "events": {"time": str, "kind": str},
}  # fmt: skip
"""The columns of each table that the page shows."""

KINDS: Final = ("born", "split", "merged", "died", "grew", "shrank", "continued")


def write_report(folder: str | Path, title: str, *, force: bool = False) -> Path:
    """Write the page of a stream's folder; return its path."""
    folder = Path(folder)
    history, changes, events = (
        read_table(folder / f"{name}.csv", types) for name, types in STREAM_COLUMNS.items()
    )
    if history.empty:
        raise LouvainUmError(
            f"{folder / 'history.csv'}: has no batches; follow the stream again with --force"
        )
    path = folder / REPORT
    text = stream_page(title, history, changes, events)
    write_text(path, text, force=force)
    return path


def read_table(path: Path, types: Mapping[str, type]) -> pd.DataFrame:
    """Return the columns of a table, each of its type; names of vertices stay text."""
    import pandas as pd

    try:
        with np.errstate(invalid="ignore"):  # what cannot be cast is refused afterwards
            table = pd.read_csv(path, dtype=dict(types), usecols=list(types), keep_default_na=False,
                            na_values=["nan"])  # fmt: skip
        numbers = table[[name for name, kind in types.items() if kind is float]].to_numpy()
        times = pd.to_numeric(table["time"], errors="coerce")
        if times.notna().all():
            table["time"] = times
            if np.isinf(times).any() or not times.is_monotonic_increasing:
                raise ValueError("a time is infinite, or times do not ascend")
        elif times.notna().any() or table["time"].isna().any():
            raise ValueError("some times are dates and others are not")
        if np.isinf(numbers).any():
            raise ValueError("a number is infinite")
    except (OSError, ValueError, OverflowError) as error:
        raise LouvainUmError(
            f"{path}: cannot be read ({first_line_of(error)}); follow the stream again with --force"
        ) from None
    return table


def stream_page(
    title: str, history: pd.DataFrame, changes: pd.DataFrame, events: pd.DataFrame
) -> str:
    """Return the page of a followed stream, from the tables of its folder."""
    times = history["time"].to_numpy()
    shown = show_times(times)
    stays = over_time.Stays.of(changes, times)
    charts = [
        chart(
            "Members and where they went",
            "Bars are communities at a moment, ribbons the members that stayed. Communities that "
            "were largest at some time have colours; all others are grey.",
            4.6,
            lambda ax: over_time.draw_flows(ax, stays, shown),
        ),
        chart(
            "Sizes of the largest communities",
            "Each labelled with its id at its peak; gaps where fewer than two vertices were in it.",
            3.0,
            lambda ax: over_time.draw_sizes(ax, stays, shown),
        ),
        chart(
            "Modularity",
            "After every batch.",
            2.4,
            lambda ax: over_time.draw_quality(ax, history, shown),
        ),
    ]
    if history["audit_lead"].notna().any():
        charts.append(
            chart(
                "Is the answer still good?",
                "How far a run from nothing led or trailed when communities were audited.",
                2.2,
                lambda ax: over_time.draw_leads(ax, history, shown),
            )
        )
    last = history.iloc[-1]
    facts = (
        f"{count(len(history), 'batch', 'batches')} · {int(last['edges']):,} edges · "
        f"{int(last['communities']):,} communities · modularity {last['modularity']:.4f} · "
        f"{count(int((history['renewed'].astype(str) == 'True').sum()), 'renewal', 'renewals')} · "
        f"{count(int(history['audit_lead'].notna().sum()), 'audit', 'audits')} · "
        f"{history['seconds'].sum():.1f} s"
    )
    counted = events["kind"].value_counts()
    table = {
        "title": "What happened to communities",
        "about": "Communities of two vertices and more, over all batches. Every event is in "
        "events.csv.",
        "head": KINDS,
        "rows": [[f"{int(counted.get(kind, 0)):,}" for kind in KINDS]],
    }
    return render(title, "communities over time", facts, charts, [table])


def show_times(times: Any) -> list[str]:
    """Return times as people write them: dates where they are seconds since 1970."""
    if np.asarray(times).dtype.kind not in "iuf":
        return [str(time) for time in times]
    values = np.asarray(times, float)
    if len(values) and values[0] >= EPOCH_FROM and values[-1] < 10**10:
        long = values[-1] - values[0] > 20 * 86_400
        form = "%Y-%m-%d" if long else "%Y-%m-%d %H:%M"
        return [datetime.fromtimestamp(value, UTC).strftime(form) for value in values.tolist()]
    return [f"{value:g}" if value < 10**6 else f"{value:,.0f}" for value in values.tolist()]
