"""Charts of sessions and sweeps for print, in the forms of the thesis's figures, by Matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from louvain_um.core.atomic_files import check_output
from louvain_um.drawing.plots import new_figure, save_figure
from louvain_um.errors import LouvainUmError, reason_of
from louvain_um.placement.program.blocking import BlockingCurve
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.data import OTHER
from louvain_um.profiling.sweep import results
from louvain_um.profiling.sweep.results import Sweep
from louvain_um.profiling.thesis import published
from louvain_um.profiling.views.canvas import PALETTE, TALL, WIDE, colour, policy_colours
from louvain_um.profiling.views.session import over_time, tables
from louvain_um.profiling.views.session.analysis import (
    GROUP_TITLES,
    Matter,
    SessionAnalysis,
    evidence,
)
from louvain_um.profiling.views.session.compare import run_labels
from louvain_um.profiling.views.session.pages import Axis, Layer, accesses, faults
from louvain_um.profiling.views.session.phase_tables import times_by_level
from louvain_um.profiling.views.sweep import (
    Lines,
    gain_lines,
    iteration_lines,
    shares,
    time_lines,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABEL: Final = 0.045
"""Distance between the names of two lines, relative to the height of a panel."""


def sweep_charts(sweep: Sweep) -> dict[str, Figure | None]:
    """Return every chart that a sweep has data for, by name."""
    result: dict[str, Figure | None] = {"gains": gain_chart(sweep)}
    for number, graph in enumerate(dict.fromkeys(row["graph"] for row in sweep.results)):
        result[f"times-{number}-{_plain(graph)}"] = time_chart(sweep, graph)
    for key, name in (("accesses", "access"), ("gpu_faults", "fault")):
        bars, how = shares(sweep, key)
        result[f"{name}-shares"] = share_chart(bars, key, how)
    for number, (graph, lines) in enumerate(iteration_lines(sweep).items()):
        result[f"iterations-{number}-{_plain(graph)}"] = iteration_chart(sweep, graph, lines)
    return result


def time_chart(sweep: Sweep, graph: str) -> Figure | None:
    """Return seconds by policy and oversubscription, a panel per machine (Figures 4.20 to 4.23)."""
    lines = time_lines(sweep, graph)
    if not lines:
        return None
    figure = _panels(lines, policy_colours(row["policy"] for row in sweep.results))
    figure.axes[0].set_ylabel("seconds")
    figure.suptitle(graph, fontsize=10)
    return figure


def gain_chart(sweep: Sweep) -> Figure | None:
    """Return mean gains over base, a panel per machine, the study's published (Table 4.6) last."""
    lines = gain_lines(sweep)
    if not lines:
        return None
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


def share_chart(bars: Mapping[str, Mapping[str, float]], key: str, evidence: str) -> Figure | None:
    """Return shares by group, a bar for each graph or run (Figures 4.1 and 4.10)."""
    if not any(sum(parts.values()) for parts in bars.values()):
        return None
    figure, axes = new_figure(WIDE, 1.1 + 0.5 * len(bars))
    named: dict[str, Any] = {}
    for number, (name, parts) in enumerate(reversed([*bars.items()])):
        left, total = 0.0, sum(parts.values())
        for group, value in parts.items():
            share = 100 * value / total
            title = GROUP_TITLES.get(group, group)
            named[title] = axes.barh([name], [share], left=left, color=colour(group, 0))
            if share > 4:
                axes.text(left + share / 2, number, f"{share:.1f} %", ha="center", va="center",
                          fontsize=8)  # fmt: skip
            left += share
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"% of {key.replace('gpu_', 'GPU ')}; {evidence}")
    axes.legend([*named.values()], [*named], ncols=4, fontsize=8, loc="lower center",
                bbox_to_anchor=(0.5, 1.0), frameon=False)  # fmt: skip
    return figure


def iteration_chart(sweep: Sweep, graph: str, lines: Lines) -> Figure:
    """Return iteration times by oversubscription (Figure 4.11)."""
    colours = {name: PALETTE[at % len(PALETTE)] for at, name in enumerate(lines)}
    figure = _panels({graph: lines}, colours, "iteration of the run")
    figure.axes[0].set_ylabel(f"seconds, {results.evidence_of(sweep.iterations)}")
    return figure


def _plain(name: str) -> str:
    """Return a name that is valid in a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:60]


ROWS, COLUMNS, DOTS = 320, 512, 300
"""Approximate cells of a map, and dots per inch: at least one dot per cell, so that none is lost.
"""

MOST_LEVELS = 24
"""Levels drawn of a run."""


def save(
    sessions: Sequence[SessionData],
    folder: str | Path,
    *,
    sweep: Sweep | None = None,
    force: bool = False,
    suffixes: Sequence[str] = (".pdf", ".svg"),
) -> list[Path]:
    """Draw every chart that has data, each into files of a folder."""
    folder = Path(folder)
    drawn = charts(sessions, sweep)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LouvainUmError(f"{folder}: {reason_of(error)}; name another folder") from None
    files = {folder / f"{name}{suffix}": figure
             for name, figure in drawn.items() for suffix in suffixes}  # fmt: skip
    for path in files:
        check_output(path, force=force)
    for path, figure in files.items():
        save_figure(figure, path, force=force, dpi=DOTS, bbox_inches="tight")
    return [*files]


def charts(sessions: Sequence[SessionData], sweep: Sweep | None = None) -> dict[str, Figure]:
    """Return every chart that has data, by name.

    Examples
    --------
    >>> from louvain_um.profiling.session import PhaseSpan, SessionData
    >>> from louvain_um.profiling.views.charts import charts
    >>> span = PhaseSpan(phase="move", level=0, iteration=-1, start_ns=0, end_ns=2000)
    >>> list(charts([SessionData(phases=(span,))]))
    ['level-times']
    """
    figures: dict[str, Figure | None] = {}
    if sessions:
        analysis = SessionAnalysis(sessions[0])
        axis = Axis.of(analysis, ROWS, COLUMNS)
        figures["access-by-group"] = by_group(analysis, "accesses", "access")
        figures["faults-by-group"] = by_group(analysis, "gpu_faults", "memory")
        figures["access-map"] = page_map(analysis, axis, accesses, "Memory accesses")
        figures["fault-map"] = page_map(analysis, axis, faults, "Page faults")
        figures["level-times"] = level_times(sessions)
        figures["iteration-times"] = iteration_times(sessions)
        figures["residency"] = bytes_over_time(analysis)
    if sweep is not None:
        figures |= sweep_charts(sweep)
    return {name: figure for name, figure in figures.items() if figure is not None}


def by_group(analysis: SessionAnalysis, key: str, matter: Matter) -> Figure | None:
    """Return each group's share of a run's accesses or faults (Figures 4.1 and 4.10)."""
    rows = [row for row in tables.by_group(analysis).rows if row.get(key)]
    bars = {"": {row["group"]: float(row[key]) for row in rows}}
    return share_chart(bars, key, evidence(analysis.session, matter))


def page_map(
    analysis: SessionAnalysis,
    axis: Axis,
    make: Callable[[SessionAnalysis, Axis], Layer | None],
    title: str,
) -> Figure | None:
    """Return page × time, all groups and each on its own (Figures 4.2 to 4.9, 4.12 to 4.19)."""
    layer = make(analysis, axis)
    if layer is None or not layer.values.any():
        return None
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    spans = {name: axis.rows_of(name) for name in analysis.group_names}
    present = [
        name for name, (low, high) in spans.items()
        if high > low and (name != OTHER or layer.values[low:high].any())
    ]  # fmt: skip
    figure = Figure(figsize=(WIDE * 1.5, 2.6 * (1 + (len(present) + 1) // 2)), layout="constrained")
    grid = figure.add_gridspec(1 + (len(present) + 1) // 2, 2)
    norm = LogNorm(1, max(float(layer.values.max()), 2.0))
    first, end = analysis.window
    image: Any = None
    for at, name in enumerate(["all", *present]):
        axes = figure.add_subplot(grid[0, :] if at == 0 else grid[(at + 1) // 2, (at + 1) % 2])
        low, high = (0, axis.rows) if at == 0 else spans[name]
        axes.set_facecolor("black")
        masked = np.ma.masked_less(layer.values[low:high], 0.5)
        image = axes.imshow(masked, norm=norm, cmap="viridis", aspect="auto", origin="lower",
                            interpolation="nearest", rasterized=True,
                            extent=(first / 1e9, end / 1e9, 0, high - low))  # fmt: skip
        _name_arrays(axes, axis, low, high)
        axes.set_title("All groups" if at == 0 else GROUP_TITLES.get(name, name), fontsize=9)
        axes.tick_params(labelsize=7)
        axes.set_xlabel("seconds", fontsize=8)
    figure.colorbar(image, ax=figure.axes, label=layer.unit, fraction=0.03)
    figure.suptitle(f"{title}; {layer.evidence}", fontsize=10)
    return figure


def _name_arrays(axes: Axes, axis: Axis, low: int, high: int) -> None:
    """Put the names of the largest arrays next to their pages."""
    stripes = [stripe for stripe in axis.stripes if low <= stripe.first < high]
    wide = [stripe for stripe in stripes if stripe.rows >= (high - low) / 18] or stripes[:1]
    axes.set_yticks([stripe.first - low + stripe.rows / 2 for stripe in wide])
    axes.set_yticklabels([stripe.name for stripe in wide])


def level_times(sessions: Sequence[SessionData]) -> Figure | None:
    """Return seconds of every level by phase, one bar per session (Figure 4.11's iterations)."""
    figures = [times_by_level(SessionAnalysis(session)) for session in sessions]
    places = sorted(
        {(each.cycle, each.level): each.label for runs in figures for each in runs}.items()
    )
    if not places:
        return None
    from matplotlib.patches import Patch

    number = {place: at for at, (place, _) in enumerate(places[:MOST_LEVELS])}
    figure, axes = new_figure(WIDE, TALL)
    wide = 0.8 / len(figures)
    named: set[str] = set()
    for at, runs in enumerate(figures):
        for each in runs:
            if (each.cycle, each.level) not in number:
                continue
            left = number[each.cycle, each.level] - 0.4 + wide * at
            bottom = 0.0
            for phase, seconds in each.seconds.items():
                label = None if phase in named else phase
                named.add(phase)
                axes.bar(left, seconds, wide * 0.92, bottom, align="edge", label=label,
                         color=colour(phase, 0), alpha=_shade(at, len(figures)))  # fmt: skip
                bottom += seconds
    labels = [label.replace(", ", ",\n") for _, label in places[:MOST_LEVELS]]
    crowded = len(labels) > 8
    axes.set_xticks(range(len(labels)), labels, rotation=90 if crowded else 0, fontsize=8)
    axes.margins(y=0.05)
    if len(places) > MOST_LEVELS:
        axes.set_title(f"the first {MOST_LEVELS} of {len(places)} levels", fontsize=9)
    axes.set_ylabel(f"seconds, {evidence(sessions[0], 'time')}")
    handles, _ = axes.get_legend_handles_labels()
    if len(figures) > 1:
        handles += [
            Patch(facecolor="black", alpha=_shade(at, len(figures)), label=name or "run")
            for at, name in enumerate(run_labels(sessions))
        ]
    axes.legend(handles=handles, frameon=False, fontsize=8)
    return figure


def _shade(at: int, count: int) -> float:
    """Return how opaque the bars of a session are."""
    return 1 - at * min(0.35, 0.8 / count)


def iteration_times(sessions: Sequence[SessionData]) -> Figure | None:
    """Return seconds of every iteration of the move phase, one line per session."""
    if not any(SessionAnalysis(session).iterations for session in sessions):
        return None
    from matplotlib.ticker import MaxNLocator

    figure, axes = new_figure(WIDE, TALL)
    for session, name in zip(sessions, run_labels(sessions), strict=True):
        spans = SessionAnalysis(session).iterations
        axes.plot(range(1, len(spans) + 1), [span.seconds for span in spans], ".-",
                  label=name or "run", linewidth=1)  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlabel("iteration of the move phase, all levels in order")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(f"seconds, {evidence(sessions[0], 'time')}")
    axes.legend(frameon=False, fontsize=8)
    return figure


def bytes_over_time(analysis: SessionAnalysis) -> Figure | None:
    """Return allocated and resident bytes over time."""
    curves = [c for c in (over_time.allocated(analysis), over_time.resident(analysis)) if c]
    if not curves:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDE, 2.6 * len(curves)), layout="constrained")
    for at, each in enumerate(curves, 1):
        axes = figure.add_subplot(len(curves), 1, at)
        run_labels = list(each.values)
        axes.stackplot(each.times, [each.values[name] / 2**20 for name in run_labels],
                       colors=[colour(name, 0) for name in run_labels], labels=run_labels,
                       step="post", linewidth=0)  # fmt: skip
        axes.set_title("\n".join(wrap(f"{each.title}; {each.evidence}", 90)), fontsize=8)
        axes.set_ylabel("MiB")
        axes.margins(x=0)
        axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.axes[-1].set_xlabel("seconds")
    return figure


def blocking_chart(
    curves: Mapping[str, BlockingCurve],
    *,
    unblocked: Mapping[str, float] | None = None,
    save_to: str | Path | None = None,
    force: bool = False,
) -> Figure:
    """Draw seconds by pages per warp, a line for each curve; the best factor is marked.

    Parameters
    ----------
    curves : mapping of str to BlockingCurve
        By name of the graph or program.
    unblocked : mapping of str to float, optional
        Seconds of the same kernels without blocking: curves are then relative to these.
    save_to : path, optional
        A file to write.
    force : bool
        Whether that file may replace another.

    Raises
    ------
    LouvainUmError
        matplotlib is not installed, or the file exists.

    Examples
    --------
    >>> from louvain_um.placement.program import tune_blocking
    >>> from louvain_um.profiling.views.charts import blocking_chart
    >>> figure = blocking_chart({"bfs": tune_blocking(lambda pages: 1.0 / pages)})
    >>> figure.axes[0].get_xlabel()
    'pages per warp'
    """
    figure, axes = new_figure(WIDE, TALL)
    for name, curve in curves.items():
        base = (unblocked or {}).get(name)
        values = {f: s if base is None else base / s for f, s in sorted(curve.seconds.items())}
        (line,) = axes.plot(list(values), list(values.values()), marker="o", label=name)
        axes.plot([curve.best], [values[curve.best]], "o", ms=11, mfc="none", c=line.get_color())
    axes.set_xlabel("pages per warp")
    axes.set_ylabel("seconds" if unblocked is None else "speed-up over no blocking")
    axes.set_ylim(bottom=0)
    axes.legend()
    if save_to is not None:
        save_figure(figure, Path(save_to), force=force)
    return figure
