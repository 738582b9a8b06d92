"""What a page shows of a sweep; for the thesis's study, next to what it published."""

from __future__ import annotations

import math
from itertools import cycle
from typing import Any

from louvain_um.profiling.sweep import results
from louvain_um.profiling.sweep.replay_tables import merge_equal
from louvain_um.profiling.sweep.results import Sweep
from louvain_um.profiling.thesis import published, tables
from louvain_um.profiling.views.canvas import PALETTE, policy_colours
from louvain_um.profiling.views.html import svg
from louvain_um.profiling.views.html.parts import Figure, PagePart, non_empty
from louvain_um.profiling.views.sweep import (
    SHARES,
    Lines,
    cost_breakdown,
    gain_lines,
    iteration_lines,
    shares,
    time_lines,
)
from louvain_um.profiling.views.sweep.validation import by_policy, validation
from louvain_um.profiling.views.table import Table, ValueFormat

MOST_CHARTS = 40

SMALLEST = 1e-300
"""Ratio that a policy's mean counts at least with: a damaged file can hold any seconds."""


def sweep_parts(sweep: Sweep) -> list[PagePart]:
    """Return the parts on a sweep."""
    times = _time_charts(sweep)
    texts = [published.TIMES_ABOUT] if sweep.is_study else []
    about = non_empty(*tables.setup(sweep))
    if len(times) > MOST_CHARTS:
        texts.append(f"The first {MOST_CHARTS} of {len(times)} charts; the tables have all.")
    parts = [
        PagePart(
            anchor="sweep",
            title="Policies by oversubscription",
            verdict=cost_breakdown.fastest(sweep),
            items=[
                *_heat_tables(sweep),
                *_gain_charts(sweep),
                *non_empty(tables.mean_gains(sweep)),
            ],
            notes=sweep.notes,
        ),
        PagePart(
            anchor="times",
            multiples=True,
            title="Running times",
            texts=tuple(texts),
            items=[*times[:MOST_CHARTS], *non_empty(tables.in_core(sweep)), *tables.grids(sweep)],
        ),
        PagePart(
            anchor="cost-breakdown",
            title="Cost breakdown",
            texts=cost_breakdown.explanations(sweep),
            items=[*_term_charts(sweep), *non_empty(cost_breakdown.traffic(sweep))],
        ),
    ]
    checked = validation(sweep)
    if checked.rows:
        parts.append(
            PagePart(
                anchor="validation-part", title="Validation", items=[by_policy(sweep), checked]
            )
        )
    shapes = [*_shares(sweep), *non_empty(tables.peaks(sweep), tables.accesses(sweep))]
    if shapes:
        parts.append(PagePart(anchor="study-groups", title="Groups by graph", items=shapes))
    iterations = _iteration_chart(sweep)
    if iterations:
        parts.append(PagePart(anchor="study-iterations", title="Iterations", items=iterations))
    fitting = tables.non_fitting(sweep)
    if fitting.rows:
        parts.append(PagePart(anchor="fitting", title="Graphs that do not fit", items=[fitting]))
    if about:
        parts.append(PagePart(anchor="study-setup", title="The study", items=about))
    parts.append(
        PagePart(anchor="all-runs", title="All runs", items=non_empty(tables.all_runs(sweep)))
    )
    return parts


def _heat_tables(sweep: Sweep) -> list[Table | Figure]:
    """Return the gain over base of each policy by oversubscription, the best policy first."""
    items: list[Table | Figure] = []
    for machine, found in gain_lines(sweep).items():
        if machine == "published":
            continue
        rates = sorted({rate for by in found.values() for rate in by})

        def mean(policy: str, found: Lines = found) -> float:
            ratios = found[policy].values()
            return sum(math.log(max(ratio, SMALLEST)) for ratio in ratios) / len(ratios)

        policies = sorted(found, key=lambda policy: (-mean(policy), policy))
        items.append(
            Figure(
                name=f"gain-heat-{len(items)}",
                title=f"Gain over base, {machine}: above 1× is faster",
                svg=svg.heat(
                    policies,
                    [results.format_rate(rate) for rate in rates],
                    [[found[policy].get(rate, math.nan) for rate in rates] for policy in policies],
                ),
                evidence=f"seconds {machine}, means over graphs",
            )
        )
    return items


def _line_chart(
    name: str, title: str, evidence: str, lines: Lines, kind: ValueFormat, **how: Any
) -> Figure:
    """Return lines with their names, on a logarithmic scale."""
    how = {"x_title": "oversubscription, %", "logarithmic": True, "labelled": True, **how}
    return Figure(name=name, title=title, svg=svg.lines(lines, kind, **how), evidence=evidence)


def _gain_charts(sweep: Sweep) -> list[Table | Figure]:
    """Return gains by oversubscription, and the published ones."""
    items: list[Table | Figure] = []
    colours = policy_colours(["base", *(row["policy"] for row in sweep.results), *published.GAINS])
    for number, (machine, found) in enumerate(gain_lines(sweep).items()):
        name, title = f"gain-chart-{number}", "Mean gain over base by oversubscription in percent"
        how, lines = f"seconds {machine}", found
        if machine == "published":
            name, title = "gain-chart-published", "The same as published (Table 4.6)"
            how = "published: Rundemanen on P4000 and RTX 3060 Ti"
        else:
            rates = sorted({rate for by in found.values() for rate in by})
            lines = {**found, "base": dict.fromkeys(rates, 1.0)}
        items.append(_line_chart(name, title, how, lines, "times", colours=colours))
    return items


def _time_charts(sweep: Sweep) -> list[Table | Figure]:
    """Return seconds by policy, one chart per graph and machine."""
    items: list[Table | Figure] = []
    colours = policy_colours(row["policy"] for row in sweep.results)
    for graph in dict.fromkeys(row["graph"] for row in sweep.results):
        panels = time_lines(sweep, graph)
        seconds = [s for lines in panels.values() for by in lines.values() for s in by.values()]
        for machine, lines in panels.items():
            title = sweep.cited(f"{graph}: seconds by oversubscription", "Figures 4.20 to 4.23")
            limits = min(seconds), max(seconds)
            items.append(
                _line_chart(f"time-chart-{len(items)}", title, f"seconds {machine}", lines,
                            "seconds", colours=colours, width=svg.NARROW, limits=limits)
            )  # fmt: skip
    return items


def _term_charts(sweep: Sweep) -> list[Table | Figure]:
    """Return the cost breakdown of each policy, one chart per oversubscription."""
    items: list[Table | Figure] = []
    for machine in results.machines(sweep.results):
        rows = results.runs_on(sweep.results, machine)
        for at, means in merge_equal(rows, cost_breakdown.mean_terms):
            if means:
                items.append(
                    Figure(
                        name=f"terms-{len(items)}",
                        title=f"Cost breakdown at {at}",
                        svg=svg.bars(list(means.items()), "seconds"),
                        evidence=f"means over graphs, {results.machine_label(machine)}; costs that "
                        "overlap are counted twice",
                    )
                )
    return items[:MOST_CHARTS]


def _shares(sweep: Sweep) -> list[Table | Figure]:
    """Return shares by group, one bar per graph, the published mean last: Figures 4.1 and 4.10."""
    items: list[Table | Figure] = []
    for key, (title, figure, _) in SHARES.items():
        bars, how = shares(sweep, key)
        if bars:
            chart = svg.bars([*bars.items()], "rate", share=True)
            items.append(
                Figure(name=f"{key}-shares", title=sweep.cited(title, figure), svg=chart,
                       evidence=how)
            )  # fmt: skip
    return items


def _iteration_chart(sweep: Sweep) -> list[Table | Figure]:
    """Return iteration times by oversubscription, one chart per graph: Figure 4.11."""
    how = f"seconds {results.evidence_of(sweep.iterations)}"
    return [
        _line_chart(f"iterations-{number}", sweep.cited(f"{graph}: iteration times", "Figure 4.11"),
                    how, lines, "seconds", x_title="iteration of the run",
                    colours=dict(zip(lines, cycle(PALETTE))))
        for number, (graph, lines) in enumerate([*iteration_lines(sweep).items()][:MOST_CHARTS])
    ]  # fmt: skip
