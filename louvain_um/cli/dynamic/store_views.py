"""Table, chart and page of ``louvain-um stores``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def table_of(records: list[dict[str, Any]]) -> Table:
    """Return the table of a comparison."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    several = len({r["graph"] for r in records}) > 1
    for title in ("graph", "store") if several else ("store",):
        table.add_column(title, no_wrap=True)
    for title in (
        "batch", "insert\nms", "delete\nms", "query\nms", "inserts\nM/s", "bytes\nper arc",
        "moved\nMB", "traverse\nms",
    ):  # fmt: skip
        table.add_column(title, justify="right", no_wrap=True)

    def shown(value: float | None, scale: float = 1.0) -> str:
        return "–" if value is None else f"{value * scale:.3g}"

    for r in records:
        table.add_row(
            *([r["graph"]] if several else []),
            r["store"],
            f"{r['batch']:,}" if r["batch"] else "stream",
            *(shown(r[f"{what}_ms"]) for what in ("insert", "delete", "query")),
            shown(r["insert_edges_per_second"], 1e-6),
            shown(r["bytes_per_arc"]),
            shown(r["moved_bytes"], 1e-6),
            shown(r["traverse_ms"]),
        )
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
    from importlib.util import find_spec

    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        return "no report.html: pip install 'louvain-um[charts,report]'"
    from louvain_um.core.atomic_files import replacing
    from louvain_um.drawing.store_report import REPORT, page

    with replacing(folder / REPORT, force=True) as part:
        part.write_text(page(records), encoding="utf-8")
    return ""
