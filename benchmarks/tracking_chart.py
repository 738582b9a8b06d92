"""Chart of what following costs and how good it is, beside static runs and published ways.

    python benchmarks/tracking_chart.py docs/howto/follow.svg [--results FILE]

One row per stream. Left: modularity by that of static Louvain, mean over the checkpoints, with a
line to the least. Right: time a batch by that of a static Louvain.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "tracking.json"

WAYS = {
    "follow": ("follow", "#d62728", "o"),
    "frontier": ("Dynamic Frontier", "#1f77b4", "s"),
    "screening": ("delta-screening", "#2ca02c", "^"),
    "naive": ("naive-dynamic", "#9467bd", "v"),
    "static-louvain": ("static Louvain", "#7f7f7f", "D"),
    "static": ("static Leiden", "#111111", "P"),
}
"""Name, colour and marker of each way."""


def draw(axes: Any, results: list[dict[str, Any]]) -> None:
    """Draw quality and cost of every stream and way."""
    quality, cost = axes
    streams = list(dict.fromkeys(row["stream"] for row in results))
    for place, (way, (name, colour, marker)) in enumerate(WAYS.items()):
        rows = [row for row in results if row["mode"] == way]
        heights = [
            len(streams) - streams.index(row["stream"]) - (place - 2.5) * 0.11 for row in rows
        ]
        style = {"color": colour, "marker": marker, "ms": 5, "lw": 0, "label": name}
        quality.plot([row["mean"] for row in rows], heights, **style)
        least = [row["min"] for row in rows]
        quality.hlines(heights, least, [row["mean"] for row in rows], color=colour, lw=1)
        cost.plot([row["ms"] / row["static_ms"] for row in rows], heights, **style)
    for ax in axes:
        ax.set_ylim(0.4, len(streams) + 0.6)
        ax.set_yticks(range(len(streams), 0, -1), streams)
        ax.axvline(1, color="#999999", lw=0.8)
        ax.grid(axis="x", lw=0.5, color="#dddddd")
        ax.spines[["top", "right"]].set_visible(False)
    quality.set_xlabel("modularity / static Louvain: mean, line to least")
    cost.set_xlabel("time a batch / static Louvain")
    cost.set_xscale("log")
    cost.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    cost.tick_params(labelleft=False)


def main() -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "louvain-um", "svg.fonttype": "none"})
    from matplotlib import pyplot

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    results = json.loads(arguments.results.read_text())["results"]
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 7.5), sharey=True)
    draw(axes, results)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(WAYS), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    figure.savefig(arguments.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
