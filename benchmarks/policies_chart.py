"""Chart of measured seconds by policy and oversubscription, at the top of "why each policy wins".

Usage::

    python benchmarks/policies_chart.py docs/guide/why.svg [--results FILE] [--graphs lfr24,rmat24]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from louvain_um.profiling.views.canvas import policy_colours

RESULTS = Path(__file__).parent / "results" / "policies_h200.json"

LEAST = 0.055
"""Least distance of two names, as a share of the chart's height."""


def seconds(results: list[dict[str, Any]], graph: str) -> dict[str, dict[float, float]]:
    """Return the seconds of each policy by oversubscription in percent, where it ran."""
    found: dict[str, dict[float, float]] = {}
    for row in results:
        if row["graph"] == graph and row.get("seconds"):
            found.setdefault(row["policy"], {})[row["oversubscription"]] = row["seconds"]
    return found


def places(heights: list[float]) -> list[float]:
    """Return heights moved apart to `LEAST`, in their order and about where they were."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    moved = sorted(heights)
    for _ in range(200):
        for low in range(len(moved) - 1):
            short = LEAST - (moved[low + 1] - moved[low])
            if short > 1e-9:
                moved[low] -= short / 2
                moved[low + 1] += short / 2
    return [moved[order.index(at)] for at in range(len(heights))]


def draw(ax: Any, by_policy: dict[str, dict[float, float]], title: str) -> None:
    """Draw a line per policy on a logarithmic scale, named at its end."""
    colours = policy_colours(by_policy)
    for policy, by in by_policy.items():
        style = "--" if policy == "base" else "-"
        wide = 2.4 if policy in ("auto", "base") else 1.4
        ax.plot(
            list(by), list(by.values()), style, color=colours[policy], marker="o", ms=3, lw=wide
        )
    ax.set_yscale("log")
    ax.set_title(title, fontsize=11)
    ax.set_xlabel("oversubscription, %")
    ax.set_xticks(sorted({rate for by in by_policy.values() for rate in by}))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    ax.grid(axis="y", lw=0.5, color="#dddddd")
    ax.spines[["top", "right"]].set_visible(False)
    to_axes = ax.transData + ax.transAxes.inverted()
    ends = [to_axes.transform(list(by.items())[-1]) for by in by_policy.values()]
    for policy, (x, y), place in zip(by_policy, ends, places([y for _, y in ends]), strict=True):
        ax.annotate(
            policy, (x, y), (1.04, place), xycoords="axes fraction", textcoords="axes fraction",
            va="center", fontsize=9, color=colours[policy],
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": colours[policy], "shrinkA": 1},
        )  # fmt: skip


def main() -> None:
    """Draw the chart."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chart", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--graphs", default="lfr24,rmat24")
    args = parser.parse_args()
    results = json.loads(args.results.read_text("utf-8"))["results"]
    # Without random names, the same record gives the same bytes.
    mpl.rcParams.update({"svg.hashsalt": "louvain-um", "svg.fonttype": "none"})
    graphs = args.graphs.split(",")
    figure = Figure(figsize=(5.2 * len(graphs), 4.6))
    figure.subplots_adjust(wspace=0.45, left=0.07, right=0.9, top=0.93, bottom=0.12)
    for ax, graph in zip(figure.subplots(1, len(graphs), squeeze=False)[0], graphs, strict=True):
        draw(ax, seconds(results, graph), f"{graph}: seconds")
    figure.savefig(args.chart, metadata={"Date": None})


if __name__ == "__main__":
    main()
