"""What charts of a sweep show, on a page and in print: lines and shares by name."""

from __future__ import annotations

from typing import Final

from louvain_um.profiling.sweep import results
from louvain_um.profiling.sweep.results import Sweep, gains
from louvain_um.profiling.thesis import published

Lines = dict[str, dict[float, float]]
"""Values by x, of lines by name."""

SHARES: Final = {
    "accesses": ("Shares of accesses", "Figure 4.1", published.ACCESS_SHARE),
    "gpu_faults": ("Shares of page faults", "Figure 4.10", published.FAULT_SHARE),
}
"""Columns of a sweep's groups whose shares are drawn: title, the thesis's figure and its means."""


def gain_lines(sweep: Sweep) -> dict[str, Lines]:
    """Return mean gains over base by machine; those of the study's publication come last."""
    rows = published.averaged(sweep)
    machines = {m: gains(results.runs_on(rows, m)) for m in results.machines(rows)}
    found: dict[str, Lines] = {results.machine_label(m): by for m, by in machines.items() if by}
    if found and sweep.is_study:
        found["published"] = {policy: dict(zip(published.RATES, values, strict=True))
                              for policy, values in published.GAINS.items()}  # fmt: skip
    return found


def time_lines(sweep: Sweep, graph: str) -> dict[str, Lines]:
    """Return a graph's seconds by machine, policy and oversubscription."""
    rows = [r for r in sweep.results if r["graph"] == graph and r["feasible"] and r["seconds"]]
    found: dict[str, Lines] = {}
    for row in sorted(rows, key=lambda row: row["oversubscription"]):
        machine = results.machine_label(results.machine_of(row))
        lines = found.setdefault(machine, {})
        lines.setdefault(row["policy"], {})[row["oversubscription"]] = row["seconds"]
    return dict(sorted(found.items()))


def shares(sweep: Sweep, key: str) -> tuple[dict[str, dict[str, float]], str]:
    """Return amounts by group for each graph, the published mean last; and their evidence."""
    rows = [row for row in sweep.groups if row.get(key)]
    bars: dict[str, dict[str, float]] = {}
    for row in rows:
        rate = row.get("oversubscription")
        at = "" if rate is None else f" at {results.format_rate(rate)}"
        bars.setdefault(f"{row['graph']}{at}", {})[row["group"]] = float(row[key])
    how = results.evidence_of(rows)
    if bars and sweep.is_study:
        bars["published, mean"] = dict(zip(published.GROUPS, SHARES[key][2], strict=True))
        how += "; last bar published"
    return bars, how


def iteration_lines(sweep: Sweep) -> dict[str, Lines]:
    """Return seconds of iterations by graph, and by policy and oversubscription."""
    found: dict[str, Lines] = {}
    for row in sorted(sweep.iterations, key=lambda row: (row["oversubscription"], row["number"])):
        name = f"{row.get('policy') or 'base'} at {results.format_rate(row['oversubscription'])}"
        lines = found.setdefault(row["graph"], {})
        lines.setdefault(name, {})[row["number"]] = row["seconds"]
    return found
