"""What a page shows of a sweep: the thesis's tables and charts for one's own runs."""

from __future__ import annotations

from louvain_um.profiling.sweep.by_oversubscription import merge_equal
from louvain_um.profiling.sweep.results import Row, Sweep, gains
from louvain_um.profiling.thesis import published, tables
from louvain_um.profiling.views.html import svg
from louvain_um.profiling.views.html.parts import Figure, Part
from louvain_um.profiling.views.sweep import cost_breakdown, runs
from louvain_um.profiling.views.sweep.validation import by_policy, validation
from louvain_um.profiling.views.table import Table

MOST_CHARTS = 40


def sweep_parts(sweep: Sweep) -> list[Part]:
    """Return the parts on a sweep."""
    times = _time_charts(sweep)
    parts = [
        Part(
            anchor="sweep",
            title="Policies by oversubscription",
            verdict=cost_breakdown.best(sweep),
            items=[*_gain_charts(sweep), *_there(tables.mean_gains(sweep))],
            notes=sweep.notes,
        ),
        Part(
            anchor="times",
            title="Running times",
            texts=(published.TIMES_ABOUT,),
            items=[*times[:MOST_CHARTS], *tables.grids(sweep)],
        ),
        Part(
            anchor="why-part",
            title="Why",
            texts=cost_breakdown.sentences(sweep),
            items=[*_term_charts(sweep), *_there(cost_breakdown.why(sweep))],
        ),
    ]
    checked = validation(sweep)
    if checked.rows:
        parts.append(
            Part(anchor="validation-part", title="Validation", items=[by_policy(sweep), checked])
        )
    shapes = [*_shares(sweep), *_there(tables.peaks(sweep), tables.accesses(sweep))]
    if shapes:
        parts.append(Part(anchor="study-groups", title="Groups, graph by graph", items=shapes))
    iterations = _iteration_chart(sweep)
    if iterations:
        parts.append(Part(anchor="study-iterations", title="Iterations", items=iterations))
    fitting = tables.rates(sweep)
    if fitting.rows:
        parts.append(Part(anchor="fitting", title="Graphs that do not fit", items=[fitting]))
    parts.append(Part(anchor="all-runs", title="All runs", items=_there(tables.everything(sweep))))
    return parts


def _gain_charts(sweep: Sweep) -> list[Table | Figure]:
    """Return gains by oversubscription, own beside published."""
    found: list[Table | Figure] = []
    for number, machine in enumerate(runs.machines(sweep.results)):
        mine = gains(runs.of(sweep.results, machine))
        series = {policy: (list(by), list(by.values())) for policy, by in mine.items() if by}
        if series:
            found.append(
                Figure(
                    name=f"gain-chart-{number}",
                    title="Mean gain over base by oversubscription in percent",
                    svg=svg.lines(series, "times", x_title="oversubscription, %", logarithmic=True),
                    evidence=f"seconds {runs.told(machine)}",
                )
            )
    if found:
        theirs = {name: (published.RATES, row) for name, row in published.GAINS.items()}
        found.append(
            Figure(
                name="gain-chart-published",
                title="The same as published (Table 4.6)",
                svg=svg.lines(theirs, "times", x_title="oversubscription, %", logarithmic=True),
                evidence="published: Rundemanen on P4000 and RTX 3060 Ti",
            )
        )
    return found


def _time_charts(sweep: Sweep) -> list[Table | Figure]:
    """Return seconds by policy, a chart a graph; measured and modelled beside each other."""
    found: list[Table | Figure] = []
    pairs = runs.machines(sweep.results)
    for graph in dict.fromkeys(row["graph"] for row in sweep.results):
        rows = [row for row in sweep.results if row["graph"] == graph and row["feasible"]]
        series: dict[str, tuple[list[float], list[float]]] = {}
        for row in sorted(rows, key=_order):
            if row["seconds"] is not None:
                x, y = series.setdefault(_name(row, len(pairs) > 1), ([], []))
                x.append(row["oversubscription"])
                y.append(row["seconds"])
        if series:
            found.append(
                Figure(
                    name=f"time-chart-{len(found)}",
                    title=f"{graph}: seconds by oversubscription (Figures 4.20 to 4.23)",
                    svg=svg.lines(series, "seconds", x_title="oversubscription, %",
                                  logarithmic=True),
                    evidence=f"seconds {_lines(rows)}",
                )
            )  # fmt: skip
    return found


def _order(row: Row) -> tuple[str, str, float]:
    """Return what sorts runs: measured first, whose lines are solid."""
    return str(row["evidence"]), str(row.get("gpu") or ""), row["oversubscription"]


def _lines(rows: list[Row]) -> str:
    """Return what solid and dashed lines stand for."""
    every = [runs.told(machine) for machine in runs.machines(rows)]
    kinds = ("solid", "dashed", *["dotted"] * len(every))
    told = zip(every, kinds, strict=False)
    return "; ".join(f"{name} ({kind})" for name, kind in told) if len(every) > 1 else every[0]


def _name(row: Row, both: bool) -> str:
    machine = str(row["evidence"]), str(row.get("gpu") or "")
    return f"{row['policy']}, {runs.told(machine)}" if both else str(row["policy"])


def _term_charts(sweep: Sweep) -> list[Table | Figure]:
    """Return what the seconds of each policy consist of, a chart an oversubscription."""
    found: list[Table | Figure] = []
    for machine in runs.machines(sweep.results):
        rows = runs.of(sweep.results, machine)
        for at, means in merge_equal(rows, cost_breakdown.mean_terms):
            if means:
                found.append(
                    Figure(
                        name=f"terms-{len(found)}",
                        title=f"What the seconds consist of at {at}",
                        svg=svg.bars(list(means.items()), "seconds"),
                        evidence=f"means over graphs, {runs.told(machine)}; what overlaps "
                        "counts twice",
                    )
                )
    return found[:MOST_CHARTS]


def _shares(sweep: Sweep) -> list[Table | Figure]:
    """Return shares by group, a bar a graph, the published mean last: Figures 4.1 and 4.10."""
    found: list[Table | Figure] = []
    for key, title, mean in (
        ("accesses", "Shares of accesses (Figure 4.1)", published.ACCESS_SHARE),
        ("gpu_faults", "Shares of page faults (Figure 4.10)", published.FAULT_SHARE),
    ):
        rows = [row for row in sweep.groups if row.get(key)]
        bars: dict[str, dict[str, float]] = {}
        for row in rows:
            rate = row.get("oversubscription")
            text = f"{row['graph']}" + (f" at {runs.format_rate(rate)}" if rate is not None else "")
            bars.setdefault(text, {}).setdefault(row["group"], float(row[key]))
        if bars:
            theirs = dict(zip(published.GROUPS, mean, strict=True))
            chart = svg.bars([*bars.items(), ("published, mean", theirs)], "rate", share=True)
            how = f"{runs.evidence_of(rows)}; last bar published"
            found.append(Figure(name=f"{key}-shares", title=title, svg=chart, evidence=how))
    return found


def _iteration_chart(sweep: Sweep) -> list[Table | Figure]:
    """Return iteration times by oversubscription, a chart a graph: Figure 4.11."""
    found: list[Table | Figure] = []
    for graph in list(dict.fromkeys(row["graph"] for row in sweep.iterations))[:MOST_CHARTS]:
        rows = [row for row in sweep.iterations if row["graph"] == graph]
        series: dict[str, tuple[list[float], list[float]]] = {}
        for row in sorted(rows, key=lambda row: (row["oversubscription"], row["number"])):
            # Named by what differs, or all were drawn in the policy's colour.
            name = f"{runs.format_rate(row['oversubscription'])}, {row.get('policy') or 'base'}"
            x, y = series.setdefault(name, ([], []))
            x.append(row["number"])
            y.append(row["seconds"])
        chart = svg.lines(series, "seconds", x_title="iteration of the run", logarithmic=True)
        found.append(
            Figure(
                name=f"iterations-{len(found)}",
                title=f"{graph}: iteration times (Figure 4.11)",
                svg=chart,
                evidence=f"seconds {runs.evidence_of(rows)}",
            )
        )
    return found


def _there(*tables: Table) -> list[Table | Figure]:
    return [table for table in tables if table.rows]
