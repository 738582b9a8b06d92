"""Charts of a sweep for print: the thesis's Figures 4.1, 4.10, 4.11 and 4.20 to 4.23."""

from __future__ import annotations

from typing import TYPE_CHECKING

from louvain_um.profiling.sweep import results
from louvain_um.profiling.sweep.results import Sweep, gains
from louvain_um.profiling.thesis import published
from louvain_um.profiling.views.canvas import TALL, WIDE, colour, new_figure, policy_colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    """Return seconds by policy and oversubscription as bars (Figures 4.20 to 4.23)."""
    rows = [r for r in sweep.results if r["graph"] == graph and r["feasible"] and r["seconds"]]
    if not rows:
        return None
    figure, axes = new_figure(WIDE * 1.4, TALL)
    rates = sorted({row["oversubscription"] for row in rows})
    machines = results.machines(rows)
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    # A policy's measured and modelled bars are neighbours.
    present = {(row["policy"], m) for m in machines for row in results.runs_on(rows, m)}
    series = [(policy, m) for policy in policies for m in machines if (policy, m) in present]
    width = 0.86 / len(series)
    colours = policy_colours(row["policy"] for row in sweep.results)
    for at, (policy, machine) in enumerate(series):
        selected = {r["oversubscription"]: r["seconds"] for r in results.runs_on(rows, machine)
                if r["policy"] == policy}  # fmt: skip
        places = [rates.index(rate) + (at - len(series) / 2 + 0.5) * width for rate in selected]
        label = policy if len(machines) == 1 else f"{policy}, {results.machine_label(machine)}"
        hatch = None if machine == machines[0] else "///"
        axes.bar(places, list(selected.values()), width, label=label, color=colours[policy],
                 hatch=hatch, edgecolor="white", linewidth=0)  # fmt: skip
    axes.set_yscale("log")
    axes.set_xticks(range(len(rates)), [results.format_rate(rate) for rate in rates])
    axes.set_xlabel("oversubscription")
    axes.set_ylabel(f"seconds, {results.evidence_of(rows)}")
    axes.set_title(graph, fontsize=10)
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def gain_chart(sweep: Sweep) -> Figure | None:
    """Return mean gains over base, of the sweep and published (Table 4.6)."""
    figure, axes = new_figure(WIDE, TALL)
    colours = policy_colours(row["policy"] for row in sweep.results)
    drawn: set[str] = set()
    machines = results.machines(sweep.results)
    for machine in machines:
        for policy, by_rate in gains(results.runs_on(sweep.results, machine)).items():
            drawn.add(policy)
            style = ".-" if machine == machines[0] else ".--"
            label = f"{policy}, {results.machine_label(machine)}"
            axes.plot(
                list(by_rate),
                list(by_rate.values()),
                style,
                linewidth=1.2,
                color=colours[policy],
                label=label,
            )
    if not drawn:
        return None
    for policy, values in published.GAINS.items():
        if policy in drawn:
            axes.plot(published.RATES, values, ":", color=colours[policy], linewidth=1)
    axes.set_yscale("log")
    axes.axhline(1.0, color="grey", linewidth=0.6)
    axes.set_xlabel("oversubscription, %")
    axes.set_ylabel("gain over base (dotted: published)")
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def share_chart(sweep: Sweep, key: str, published_shares: tuple[float, ...]) -> Figure | None:
    """Return shares by group, one bar per graph, the published mean last (Figures 4.1 and 4.10)."""
    rows = [row for row in sweep.groups if row.get(key)]
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    if not graphs:
        return None
    figure, axes = new_figure(WIDE, TALL)
    for number, graph in enumerate([*graphs, "published, mean"]):
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
    axes.set_xticks(range(len(graphs) + 1), [*graphs, "published, mean"], rotation=30, ha="right",
                    fontsize=8)  # fmt: skip
    axes.set_ylabel(f"% of {key.replace('gpu_', 'page ')}, {results.evidence_of(rows)}")
    axes.legend(frameon=False, fontsize=8, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def iteration_chart(sweep: Sweep, graph: str) -> Figure | None:
    """Return iteration times by oversubscription (Figure 4.11)."""
    rows = [row for row in sweep.iterations if row["graph"] == graph]
    figure, axes = new_figure(WIDE, TALL)
    for key in dict.fromkeys((row.get("policy"), row["oversubscription"]) for row in rows):
        selected = [row for row in rows if (row.get("policy"), row["oversubscription"]) == key]
        label = f"{key[0] or 'base'} at {results.format_rate(key[1])}"
        numbers, seconds = ([row[name] for row in selected] for name in ("number", "seconds"))
        axes.plot(numbers, seconds, ".-", linewidth=1, label=label)
    axes.set_yscale("log")
    axes.set_xlabel("iteration of the run")
    axes.set_ylabel(f"seconds, {results.evidence_of(rows)}")
    axes.set_title(graph, fontsize=10)
    axes.legend(frameon=False, fontsize=7)
    return figure


def _plain(name: str) -> str:
    """Return a name that is valid in a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:60]
