"""What a page shows of a sweep; for the thesis's study, next to what it published."""

from __future__ import annotations

import math

from louvain_um.profiling.sweep import results
from louvain_um.profiling.sweep.replay_tables import merge_equal
from louvain_um.profiling.sweep.results import Sweep, gains
from louvain_um.profiling.thesis import published, tables
from louvain_um.profiling.views.canvas import PALETTE, policy_colours
from louvain_um.profiling.views.html import svg
from louvain_um.profiling.views.html.parts import Figure, PagePart, non_empty
from louvain_um.profiling.views.sweep import cost_breakdown
from louvain_um.profiling.views.sweep.validation import by_policy, validation
from louvain_um.profiling.views.table import Table

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
    rows = published.averaged(sweep)
    for number, machine in enumerate(results.machines(rows)):
        found = gains(results.runs_on(rows, machine))
        rates = sorted({rate for by in found.values() for rate in by})
        if not rates:
            continue

        def mean(policy: str, found: dict[str, dict[float, float]] = found) -> float:
            ratios = found[policy].values()
            return sum(math.log(max(ratio, SMALLEST)) for ratio in ratios) / len(ratios)

        policies = sorted(found, key=lambda policy: (-mean(policy), policy))
        items.append(
            Figure(
                name=f"gain-heat-{number}",
                title=f"Gain over base, {results.machine_label(machine)}: above 1× is faster",
                svg=svg.heat(
                    policies,
                    [results.format_rate(rate) for rate in rates],
                    [[found[policy].get(rate, math.nan) for rate in rates] for policy in policies],
                ),
                evidence=f"seconds {results.machine_label(machine)}, means over graphs",
            )
        )
    return items


def _gain_charts(sweep: Sweep) -> list[Table | Figure]:
    """Return gains by oversubscription, and the published ones."""
    items: list[Table | Figure] = []
    colours = policy_colours(["base", *(row["policy"] for row in sweep.results)])
    rows = published.averaged(sweep)
    for number, machine in enumerate(results.machines(rows)):
        gained = gains(results.runs_on(rows, machine))
        series = {policy: (list(by), list(by.values())) for policy, by in gained.items()}
        if series:
            rates = sorted({rate for by in gained.values() for rate in by})
            series["base"] = (rates, [1.0] * len(rates))
            items.append(
                Figure(
                    name=f"gain-chart-{number}",
                    title="Mean gain over base by oversubscription in percent",
                    svg=svg.lines(
                        series,
                        "times",
                        x_title="oversubscription, %",
                        logarithmic=True,
                        colours=colours,
                        labelled=True,
                    ),
                    evidence=f"seconds {results.machine_label(machine)}",
                )
            )
    if items and sweep.is_study:
        published_values = {name: (published.RATES, row) for name, row in published.GAINS.items()}
        items.append(
            Figure(
                name="gain-chart-published",
                title="The same as published (Table 4.6)",
                svg=svg.lines(
                    published_values,
                    "times",
                    x_title="oversubscription, %",
                    logarithmic=True,
                    labelled=True,
                ),
                evidence="published: Rundemanen on P4000 and RTX 3060 Ti",
            )
        )
    return items


def _time_charts(sweep: Sweep) -> list[Table | Figure]:
    """Return seconds by policy, one chart per graph and machine."""
    items: list[Table | Figure] = []
    colours = policy_colours(row["policy"] for row in sweep.results)
    for graph in dict.fromkeys(row["graph"] for row in sweep.results):
        rows = [row for row in sweep.results
                if row["graph"] == graph and row["feasible"] and row["seconds"]]  # fmt: skip
        limits = [pick(row["seconds"] for row in rows) for pick in (min, max)] if rows else None
        for machine in sorted(results.machines(rows)):
            series: dict[str, tuple[list[float], list[float]]] = {}
            for row in sorted(
                results.runs_on(rows, machine), key=lambda row: row["oversubscription"]
            ):
                x, y = series.setdefault(row["policy"], ([], []))
                x.append(row["oversubscription"])
                y.append(row["seconds"])
            title = sweep.cited(f"{graph}: seconds by oversubscription", "Figures 4.20 to 4.23")
            items.append(
                Figure(
                    name=f"time-chart-{len(items)}",
                    title=title,
                    svg=svg.lines(series, "seconds", x_title="oversubscription, %",
                                  logarithmic=True, colours=colours, labelled=True,
                                  width=svg.NARROW, limits=limits),
                    evidence=f"seconds {results.machine_label(machine)}",
                )
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
    for key, title, mean in (
        ("accesses", sweep.cited("Shares of accesses", "Figure 4.1"), published.ACCESS_SHARE),
        ("gpu_faults", sweep.cited("Shares of page faults", "Figure 4.10"), published.FAULT_SHARE),
    ):
        rows = [row for row in sweep.groups if row.get(key)]
        bars: dict[str, dict[str, float]] = {}
        for row in rows:
            rate = row.get("oversubscription")
            text = f"{row['graph']}" + (
                f" at {results.format_rate(rate)}" if rate is not None else ""
            )
            bars.setdefault(text, {}).setdefault(row["group"], float(row[key]))
        if bars:
            how = results.evidence_of(rows)
            if sweep.is_study:
                bars["published, mean"] = dict(zip(published.GROUPS, mean, strict=True))
                how += "; last bar published"
            chart = svg.bars([*bars.items()], "rate", share=True)
            items.append(Figure(name=f"{key}-shares", title=title, svg=chart, evidence=how))
    return items


def _iteration_chart(sweep: Sweep) -> list[Table | Figure]:
    """Return iteration times by oversubscription, one chart per graph: Figure 4.11."""
    items: list[Table | Figure] = []
    for graph in list(dict.fromkeys(row["graph"] for row in sweep.iterations))[:MOST_CHARTS]:
        rows = [row for row in sweep.iterations if row["graph"] == graph]
        series: dict[str, tuple[list[float], list[float]]] = {}
        for row in sorted(rows, key=lambda row: (row["oversubscription"], row["number"])):
            name = (
                f"{row.get('policy') or 'base'} at {results.format_rate(row['oversubscription'])}"
            )
            x, y = series.setdefault(name, ([], []))
            x.append(row["number"])
            y.append(row["seconds"])
        colours = {name: PALETTE[at % len(PALETTE)] for at, name in enumerate(series)}
        chart = svg.lines(series, "seconds", x_title="iteration of the run", logarithmic=True,
                          colours=colours, labelled=True)  # fmt: skip
        items.append(
            Figure(
                name=f"iterations-{len(items)}",
                title=sweep.cited(f"{graph}: iteration times", "Figure 4.11"),
                svg=chart,
                evidence=f"seconds {results.evidence_of(rows)}",
            )
        )
    return items
