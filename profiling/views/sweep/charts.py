"""Charts of a sweep for print: the thesis's Figures 4.1, 4.10, 4.11 and 4.20 to 4.23."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from louvain_um.profiling.sweep import results
from louvain_um.profiling.sweep.results import Sweep, gains
from louvain_um.profiling.thesis import published
from louvain_um.profiling.views.canvas import (
    PALETTE,
    TALL,
    WIDE,
    colour,
    new_figure,
    policy_colours,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Lines = dict[str, dict[float, float]]
"""Values by x, of lines by name."""

LABEL: Final = 0.045
"""Distance between the names of two lines, relative to the height of a panel."""


def sweep_charts(sweep: Sweep) -> dict[str, Figure | None]:
    """Return every chart that a sweep has data for, by name."""
    result: dict[str, Figure | None] = {"gains": gain_chart(sweep)}
    for number, graph in enumerate(dict.fromkeys(row["graph"] for row in sweep.results)):
        result[f"times-{number}-{_plain(graph)}"] = time_chart(sweep, graph)
    result["access-shares"] = share_chart(sweep, "accesses", published.ACCESS_SHARE)
    result["fault-shares"] = share_chart(sweep, "gpu_faults", published.FAULT_SHARE)
    for number, graph in enumerate(dict.fromkeys(row["graph"] for row in sweep.iterations)):
        result[f"iterations-{number}-{_plain(graph)}"] = iteration_chart(sweep, graph)
    return result


def time_chart(sweep: Sweep, graph: str) -> Figure | None:
    """Return seconds by policy and oversubscription, a panel per machine (Figures 4.20 to 4.23)."""
    rows = [r for r in sweep.results if r["graph"] == graph and r["feasible"] and r["seconds"]]
    if not rows:
        return None
    lines: dict[str, Lines] = {}
    for machine in results.machines(rows):
        panel = lines.setdefault(results.machine_label(machine), {})
        for row in sorted(results.runs_on(rows, machine), key=lambda row: row["oversubscription"]):
            panel.setdefault(row["policy"], {})[row["oversubscription"]] = row["seconds"]
    figure = _panels(lines, policy_colours(row["policy"] for row in sweep.results))
    figure.axes[0].set_ylabel("seconds")
    figure.suptitle(graph, fontsize=10)
    return figure


def gain_chart(sweep: Sweep) -> Figure | None:
    """Return mean gains over base, a panel per machine, the study's published (Table 4.6) last."""
    lines: dict[str, Lines] = {}
    for machine in results.machines(sweep.results):
        found = {policy: by for policy, by in gains(results.runs_on(sweep.results, machine)).items()
                 if by}  # fmt: skip
        if found:
            lines[results.machine_label(machine)] = found
    if not lines:
        return None
    if sweep.is_study:
        lines["published"] = {policy: dict(zip(published.RATES, values, strict=True))
                              for policy, values in published.GAINS.items()}  # fmt: skip
    figure = _panels(
        lines, policy_colours([*(r["policy"] for r in sweep.results), *published.GAINS])
    )
    for axes in figure.axes:
        axes.axhline(1.0, color="grey", linewidth=0.6)
    figure.axes[0].set_ylabel("gain over base")
    return figure


def _panels(
    panels: Mapping[str, Lines], colours: Mapping[str, str], x_title: str = "oversubscription, %"
) -> Figure:
    """Return lines by name in panels with one scale, each labelled where it ends."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDE * max(1.0, 0.7 * len(panels)), TALL), layout="constrained")
    every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, lines) in zip(every, panels.items(), strict=True):
        for name, values in lines.items():
            axes.plot([*values], [*values.values()], ".-", linewidth=1.2, color=colours[name],
                      label=name)  # fmt: skip
        axes.set_yscale("log")
        axes.set_xlabel(x_title)
        axes.set_title(title, fontsize=9)
    for axes, lines in zip(every, panels.values(), strict=True):
        _label_ends(axes, lines, colours)
    return figure


def _label_ends(axes: Axes, lines: Lines, colours: Mapping[str, str]) -> None:
    """Write the name of each line right of its end, clear of the others."""
    axes.get_ylim()  # of all lines
    to_axes = axes.transData - axes.transAxes
    low = -math.inf
    for name, values in sorted(lines.items(), key=lambda line: [*line[1].values()][-1]):
        end = [*values.items()][-1]
        low = max(float(to_axes.transform(end)[1]), low + LABEL)
        axes.annotate(
            name, end, (1.08, low), textcoords="axes fraction", fontsize=7, va="center",
            color=colours[name],
            arrowprops={"arrowstyle": "-", "color": colours[name], "linewidth": 0.4},
        )  # fmt: skip


def share_chart(sweep: Sweep, key: str, published_shares: tuple[float, ...]) -> Figure | None:
    """Return shares by group, one bar per graph, the published mean last (Figures 4.1 and 4.10)."""
    rows = [row for row in sweep.groups if row.get(key)]
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    if not graphs:
        return None
    figure, axes = new_figure(WIDE, TALL)
    bars = [*graphs, *(["published, mean"] if sweep.is_study else [])]
    for number, graph in enumerate(bars):
        values: dict[str, float] = dict(zip(published.GROUPS, published_shares, strict=True))
        if number < len(graphs):
            values = {}
            for row in rows:
                if row["graph"] == graph:
                    values.setdefault(row["group"], float(row[key]))
        total, bottom = sum(values.values()), 0.0
        for group, value in values.items():
            share = 100 * value / total
            axes.bar([number], [share], 0.7, bottom=bottom, color=colour(group, 0),
                     label=group if number == 0 else None)  # fmt: skip
            bottom += share
    axes.set_xticks(range(len(bars)), bars, rotation=30, ha="right", fontsize=8)
    axes.set_ylabel(f"% of {key.replace('gpu_', 'page ')}, {results.evidence_of(rows)}")
    axes.legend(frameon=False, fontsize=8, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def iteration_chart(sweep: Sweep, graph: str) -> Figure | None:
    """Return iteration times by oversubscription (Figure 4.11)."""
    rows = [row for row in sweep.iterations if row["graph"] == graph]
    lines: Lines = {}
    for row in rows:
        name = f"{row.get('policy') or 'base'} at {results.format_rate(row['oversubscription'])}"
        lines.setdefault(name, {})[row["number"]] = row["seconds"]
    colours = {name: PALETTE[at % len(PALETTE)] for at, name in enumerate(lines)}
    figure = _panels({graph: lines}, colours, "iteration of the run")
    figure.axes[0].set_ylabel(f"seconds, {results.evidence_of(rows)}")
    return figure


def _plain(name: str) -> str:
    """Return a name that is valid in a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:60]
