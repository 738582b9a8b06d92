"""Table, chart and page of ``louvain-um stores``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.table import Table


COLUMNS: Final = (
    ("insert\nms", "insert_ms", 1.0),
    ("delete\nms", "delete_ms", 1.0),
    ("query\nms", "query_ms", 1.0),
    ("inserts\nM/s", "insert_edges_per_second", 1e-6),
    ("bytes\nper arc", "bytes_per_arc", 1.0),
    ("moved\nMB", "moved_bytes", 1e-6),
    ("traverse\nms", "traverse_ms", 1.0),
)
"""Columns of the table: title, field and unit."""

TRIALS: Final = (
    ("sorted\nms", "sorted_insert_ms", 1.0),
    ("shuffled\nms", "shuffled_insert_ms", 1.0),
    ("skewed\nms", "skewed_insert_ms", 1.0),
    ("PageRank\nms", "pagerank_ms", 1.0),
    ("triangles\nms", "triangles_ms", 1.0),
    ("add\nms", "add_vertices_ms", 1.0),
    ("remove\nms", "remove_vertices_ms", 1.0),
)
"""Columns of what was measured beside batches."""


def table_of(records: list[dict[str, Any]]) -> Table:
    """Return the table of a comparison."""
    return table(records, COLUMNS)


def trials_of(records: list[dict[str, Any]]) -> Table:
    """Return the table of what was measured beside batches."""
    measured = [column for column in TRIALS if any(r[column[1]] is not None for r in records)]
    return table(records, measured)


def table(records: list[dict[str, Any]], columns: Sequence[tuple[str, str, float]]) -> Table:
    """Return a table with a row for each record."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    several = len({r["graph"] for r in records}) > 1
    for title in ("graph", "store") if several else ("store",):
        table.add_column(title, no_wrap=True)
    for title in ("batch", *(title for title, _, _ in columns)):
        table.add_column(title, justify="right", no_wrap=True)
    for r in records:
        shown = ("–" if r[name] is None else f"{r[name] * unit:.3g}" for _, name, unit in columns)
        batch = f"{r['batch']:,}" if r["batch"] else "stream"
        table.add_row(*([r["graph"]] if several else []), r["store"], batch, *shown)
    return table


def draw(records: list[dict[str, Any]], file: Path) -> str:
    """Draw insertions per second by batch size; return a note where matplotlib is missing."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        return "no chart: pip install 'louvain-um[charts]'"
    from louvain_um.core.atomic_files import replacing
    from louvain_um.profiling.views.canvas import TALL, WIDE, new_figure

    if not any(r["insert_edges_per_second"] for r in records):
        return "no chart: no edge was inserted"
    figure, axes = new_figure(WIDE, TALL)
    for graph, store in dict.fromkeys((r["graph"], r["store"]) for r in records):
        mine = [r for r in records if (r["graph"], r["store"]) == (graph, store)]
        mine = [r for r in mine if r["insert_edges_per_second"]]
        axes.plot(
            [r["batch"] or 1 for r in mine],
            [r["insert_edges_per_second"] for r in mine],
            marker="o",
            label=f"{graph}, {store}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("edges a batch")
    axes.set_ylabel("edges inserted per second")
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    with replacing(file, force=True) as part:
        figure.savefig(part, format="svg")
    return ""


def write_page(records: list[dict[str, Any]], folder: Path) -> str:
    """Write the page of a comparison; return a note where something for it is missing."""
    note = without_page()
    if note:
        return note
    from louvain_um.core.atomic_files import replacing
    from louvain_um.drawing.store_report import REPORT, page

    with replacing(folder / REPORT, force=True) as part:
        part.write_text(page(records), encoding="utf-8")
    return ""


def without_page() -> str:
    """Return a note where something that pages need is missing, and nothing otherwise."""
    from importlib.util import find_spec

    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    return "no report.html: pip install 'louvain-um[charts,report]'" if missing else ""
