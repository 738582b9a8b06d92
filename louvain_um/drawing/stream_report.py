"""The page of a followed stream: its communities over time, from the tables of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from louvain_um.core.atomic_files import replacing
from louvain_um.drawing import over_time
from louvain_um.drawing.chart_page import chart, render
from louvain_um.errors import LouvainUmError
from louvain_um.formats.file_types import first_line_of
from louvain_um.results.display import count

if TYPE_CHECKING:
    import pandas as pd

REPORT: Final = "report.html"

EPOCH_FROM: Final = 10**8
"""Times from here on are shown as dates, seconds since 1970: since March 1973."""

COLUMNS: Final[Mapping[str, Mapping[str, type]]] = {
    "history": {"time": float, "edges": int, "communities": int, "modularity": float,
                "renewed": bool, "audit_lead": float, "seconds": float},
    "communities": {"time": float, "vertex": str, "community": int},
    "events": {"time": float, "kind": str},
}  # fmt: skip
"""The columns of each table that the page shows."""

KINDS: Final = ("born", "split", "merged", "died", "grew", "shrank", "continued")


def write_report(folder: str | Path, title: str, *, force: bool = False) -> Path:
    """Write the page of a stream's folder; return its path."""
    folder = Path(folder)
    history, changes, events = (
        read_table(folder / f"{name}.csv", types) for name, types in COLUMNS.items()
    )
    if history.empty:
        raise LouvainUmError(
            f"{folder / 'history.csv'}: has no batches; follow the stream again with --force"
        )
    path = folder / REPORT
    text = page(title, history, changes, events)
    with replacing(path, force=force) as part:
        part.write_text(text, encoding="utf-8")
    return path


def read_table(path: Path, types: Mapping[str, type]) -> pd.DataFrame:
    """Return the columns of a table, each of its type; names of vertices stay text."""
    import pandas as pd

    try:
        with np.errstate(invalid="ignore"):  # what cannot be cast is refused afterwards
            table = pd.read_csv(path, dtype=dict(types), usecols=list(types), keep_default_na=False,
                            na_values=["nan"])  # fmt: skip
        numbers = table[[name for name, kind in types.items() if kind is float]].to_numpy()
        times = table["time"]
        if np.isinf(numbers).any() or times.isna().any() or not times.is_monotonic_increasing:
            raise ValueError("a number is infinite, or times do not ascend")
    except (OSError, ValueError, OverflowError) as error:
        raise LouvainUmError(
            f"{path}: cannot be read ({first_line_of(error)}); follow the stream again with --force"
        ) from None
    return table


def page(title: str, history: pd.DataFrame, changes: pd.DataFrame, events: pd.DataFrame) -> str:
    """Return a page that needs no network."""
    times = history["time"].to_numpy()
    shown = show_times(times)
    stays = over_time.Stays.of(changes, times)
    charts = [
        chart(
            "Members and where they went",
            "Bars are communities at a moment, ribbons the members that went on. Communities that "
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
    values = np.asarray(times, float)
    if len(values) and values[0] >= EPOCH_FROM and values[-1] < 10**10:
        long = values[-1] - values[0] > 20 * 86_400
        form = "%Y-%m-%d" if long else "%Y-%m-%d %H:%M"
        return [datetime.fromtimestamp(value, UTC).strftime(form) for value in values.tolist()]
    return [f"{value:g}" if value < 10**6 else f"{value:,.0f}" for value in values.tolist()]
