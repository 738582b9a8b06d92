"""The page of a comparison of stores: rates, memory and reading, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from louvain_um.drawing.chart_page import chart, render
from louvain_um.drawing.colours import colour
from louvain_um.results.display import count

REPORT: Final = "report.html"

FAINT: Final = "0.55"
"""Of axes and text: legible on light and on dark paper."""

COLUMNS: Final = (
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
    ("PageRank, ms", "pagerank_ms", 1.0),
    ("triangles, ms", "triangles_ms", 1.0),
    ("add vertices, ms", "add_vertices_ms", 1.0),
    ("remove vertices, ms", "remove_vertices_ms", 1.0),
)
"""The same of what was measured beside batches."""


def page(records: Sequence[dict[str, Any]]) -> str:
    """Return a page that needs no network."""
    graphs = list(dict.fromkeys(r["graph"] for r in records))
    stores = list(dict.fromkeys(r["store"] for r in records))
    charts, tables = [], []
    for graph in graphs:
        own = [r for r in records if r["graph"] == graph]
        for what, verb in (("insert", "inserted"), ("delete", "deleted")):
            charts.append(
                chart(
                    f"{graph}: edges {verb} per second",
                    "By edges of a batch; higher is faster.",
                    3.2,
                    partial(draw_rates, records=own, stores=stores, what=what),
                )
            )
        charts.append(
            chart(
                f"{graph}: room and reading",
                "Bytes per arc, and time to read every arc: lower left is better.",
                3.2,
                partial(draw_costs, records=own, stores=stores),
            )
        )
        measured = [c for c in TRIALS if any(r[c[1]] is not None for r in own)]
        for title, columns in ((graph, COLUMNS), (f"{graph}, beside batches", measured)):
            if columns:
                tables.append(
                    {
                        "title": title,
                        "about": "Medians; all stores hold the same contents.",
                        "head": ("store", "batch", *(name for name, _, _ in columns)),
                        "rows": [cells(r, columns) for r in own],
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
        own = [r for r in records if r["store"] == store and r[f"{what}_edges_per_second"]]
        if own:
            sizes = [r["batch"] or 1 for r in own]
            rates = [r[f"{what}_edges_per_second"] for r in own]
            ax.plot(sizes, rates, "o-", color=colour(place), label=store, linewidth=1.2)
    ax.set(xscale="log", yscale="log", xlabel="edges a batch", ylabel="edges per second")
    finish(ax)


def draw_costs(ax: Any, *, records: Sequence[dict[str, Any]], stores: Sequence[str]) -> None:
    """Draw the time of a traversal by bytes per arc."""
    for place, store in enumerate(stores):
        own = [r for r in records if r["store"] == store]
        if own:
            ax.plot(
                [r["bytes_per_arc"] for r in own], [r["traverse_ms"] for r in own], "o",
                color=colour(place), label=store,
            )  # fmt: skip
    ax.set(xlabel="bytes per arc", ylabel="reading all arcs, ms", xscale="log", yscale="log")
    finish(ax)


def finish(ax: Any) -> None:
    """Give axes a legend and colours that any paper bears."""
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5),
              labelcolor=FAINT)  # fmt: skip
    ax.tick_params(which="both", colors=FAINT)
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set_color(FAINT)
    for spine in ax.spines.values():
        spine.set_color(FAINT)
