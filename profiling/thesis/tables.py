"""Tables of a sweep; for the thesis's study, with the published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.profiling.sweep.results import (
    Row,
    Sweep,
    base_coverage,
    evidence_of,
    format_rate,
    gains,
    machine_label,
    machine_of,
    machines,
    runs_on,
)
from louvain_um.profiling.thesis import published
from louvain_um.profiling.views.sweep import cost_breakdown
from louvain_um.profiling.views.sweep.validation import by_policy, validation
from louvain_um.profiling.views.table import Column, Table, ValueFormat


def tables(sweep: Sweep) -> tuple[Table, ...]:
    """Return all tables that a sweep has rows for."""
    result = [
        *setup(sweep),
        *grids(sweep),
        in_core(sweep),
        mean_gains(sweep),
        by_policy(sweep),
        validation(sweep),
        peaks(sweep),
        accesses(sweep),
        non_fitting(sweep),
        cost_breakdown.traffic(sweep),
        all_runs(sweep),
    ]
    return tuple(table for table in result if table.rows)


def setup(sweep: Sweep) -> list[Table]:
    """Return machines, graphs and policies of the study: Tables 4.1, 4.2 and 4.5."""
    if not sweep.is_study:
        return []
    gpus = dict.fromkeys(str(row.get("gpu") or "") for row in sweep.results)
    known = [load_machine(gpu) for gpu in gpus if gpu in published.MACHINES]
    graphs = {row["graph"]: row for row in sweep.results}
    policies = [name for name in ("base", *published.GAINS)
                if any(row["policy"] == name for row in sweep.results)]  # fmt: skip
    return [
        Table(
            name="machines",
            title="Machines (the thesis's Table 4.1)",
            columns=(
                Column("machine", "profile", "text"),
                Column("memory", "device memory", "bytes"),
                Column("remote", "host memory read in place, per s", "bytes"),
                Column("published", "published", "text"),
            ),
            rows=tuple(
                {"machine": each.name, "memory": each.memory_bytes,
                 "remote": each.remote_bandwidth, "published": published.MACHINES[each.name]}
                for each in known
            ),
            evidence="figures of machine profiles; published as printed in the thesis",
        ),
        Table(
            name="datasets",
            title="Graphs (the thesis's Table 4.2)",
            columns=(
                Column("graph", "graph", "text"),
                Column("scale", "scale", "share"),
                Column("vertices", "vertices"),
                Column("arcs", "arcs"),
                Column("their_vertices", "published vertices"),
                Column("their_arcs", "published arcs"),
                Column("weights", "weights", "text"),
            ),
            rows=tuple(
                {"graph": graph, "scale": row["scale"],
                 "vertices": row.get("vertices"), "arcs": row.get("arcs"),
                 "their_vertices": theirs[0], "their_arcs": theirs[1],
                 "weights": "yes" if theirs[2] else "no"}
                for graph, row in graphs.items() if (theirs := published.DATASETS.get(graph))
            ),
            evidence="stand-ins, generated; published as printed in the thesis, "
            "mawi_20151202033's in the SuiteSparse collection",
        ),
        Table(
            name="policies",
            title="Advice of each policy (the thesis's Table 4.5)",
            columns=(
                Column("policy", "policy", "text"),
                Column("groups", "groups that prefer the host, accessed by the GPU", "text"),
            ),
            rows=tuple(
                {"policy": name, "groups": ", ".join(
                    group for group, to in find_policy(name).placements.items()
                    if to.kind == "host_mapped") or "none"}
                for name in policies
            ),
            evidence="as published in the thesis",
        ),
    ]  # fmt: skip


def grids(sweep: Sweep) -> list[Table]:
    """Return seconds of policy × oversubscription, one table per graph: Figures 4.20 to 4.22."""
    result: list[Table] = []
    for graph in dict.fromkeys(row["graph"] for row in sweep.results):
        for number, machine in enumerate(machines(sweep.results)):
            rows = [row for row in runs_on(sweep.results, machine) if row["graph"] == graph]
            if rows:
                result.append(
                    _grid(graph, rows, f"grid-{len(result)}-{number}", machine_label(machine))
                )
    evidences = {row["evidence"] for row in sweep.results}
    if len(evidences) > 1:
        result = [
            replace(grid, title=f"{grid.title}, {grid.evidence.removeprefix('seconds ')}")
            for grid in result
        ]
    return result


def _grid(graph: str, rows: list[Row], name: str, how: str) -> Table:
    by: dict[str, dict[str, Any]] = {}
    percents = sorted({row["oversubscription"] for row in rows})
    for row in rows:
        line = by.setdefault(row["policy"], {"policy": row["policy"]})
        line[_key(row["oversubscription"])] = row["seconds"] if row["feasible"] else None
    return Table(
        name=name,
        title=f"{graph}: seconds by policy and oversubscription",
        columns=(
            Column("policy", "policy", "text"),
            *(Column(_key(rate), format_rate(rate), "seconds") for rate in percents),
        ),
        rows=tuple(by.values()),
        evidence=f"seconds {how}",
        about="– where the policy cannot keep within the budget.",
        highlight="least",
    )


def in_core(sweep: Sweep) -> Table:
    """Return seconds of base without oversubscription next to those in core: Table 2.1."""
    rows: list[dict[str, Any]] = []
    for row in sweep.results if sweep.is_study else ():
        known = published.published_name(row["graph"])
        whole = row["policy"] == "base" and row["oversubscription"] == 0 and row["feasible"]
        if whole and known in published.IN_CORE_SECONDS and row.get("seconds"):
            theirs = published.IN_CORE_SECONDS[known]
            ours = row["seconds"] / (row.get("scale") or 1.0)
            label = machine_label(machine_of(row))
            rows.append({"graph": row["graph"], "from": label, "seconds": ours,
                         "published": theirs, "ratio": ours / theirs})  # fmt: skip
    return Table(
        name="in-core",
        title="Seconds in core (the thesis's Table 2.1)",
        columns=(
            Column("graph", "graph", "text"),
            Column("from", "evidence", "text"),
            Column("seconds", "base at 0 %, scaled", "seconds"),
            Column("published", "published", "seconds"),
            Column("ratio", "ratio", "times"),
        ),
        rows=tuple(rows),
        evidence=f"{evidence_of(sweep.results)}; published as printed in the thesis",
        about="base pays for page faults, which the published runs in device memory do not; "
        "stand-ins' seconds are divided by their scale.",
    )


def mean_gains(sweep: Sweep) -> Table:
    """Return mean gains over base next to the published ones: Table 4.6."""
    rows: list[dict[str, Any]] = []
    results = published.averaged(sweep)
    percents: list[float] = sorted({row["oversubscription"] for row in results})
    for machine in machines(results):
        for policy, by_rate in gains(runs_on(results, machine)).items():
            row: dict[str, Any] = {"policy": policy, "from": machine_label(machine)}
            row |= {_key(rate): gain for rate, gain in by_rate.items()}
            rows.append(row)
    seen = {row["policy"] for row in rows}
    for policy, values in published.GAINS.items() if sweep.is_study else ():
        if policy in seen:
            row = {"policy": policy, "from": "published (P4000 and RTX 3060 Ti)"}
            row |= {
                _key(rate): gain
                for rate, gain in zip(published.RATES, values, strict=True)
                if rate in percents
            }
            rows.append(row)
    rows.sort(key=lambda row: (row["policy"], str(row["from"]).startswith("published")))
    return Table(
        name="gains",
        title=sweep.cited("Mean gain over base", "the thesis's Table 4.6"),
        columns=(
            Column("policy", "policy", "text"),
            Column("from", "evidence", "text"),
            *(Column(_key(rate), format_rate(rate), "times") for rate in percents),
        ),
        rows=tuple(rows),
        evidence=_evidence(sweep, sweep.results),
        about="Seconds of base divided by the policy's, the mean over graphs; above 1 is faster."
        + "".join(f" {sentence}" for sentence in _left_out(sweep)),
    )


def _left_out(sweep: Sweep) -> list[str]:
    """Return on how many graphs base ran, if not on all of them."""
    result = []
    for machine in machines(sweep.results):
        graphs, ran = base_coverage(runs_on(sweep.results, machine))
        some = [f"{count} of {graphs} at {format_rate(rate)}" for rate, count in ran.items()
                if count < graphs]  # fmt: skip
        if some:
            result.append(f"Means are of the graphs that base could run: {', '.join(some)} "
                         f"({machine_label(machine)}).")  # fmt: skip
    return result


def peaks(sweep: Sweep) -> Table:
    """Return peak bytes by group next to the published ones: Table 4.3."""
    return _groups_table(
        sweep, "peak_bytes", "peaks", sweep.cited("Peak memory by group", "Table 4.3"), "bytes",
        {name: tuple(mb * 10**6 for mb in row) for name, row in published.PEAK_MB.items()},
    )  # fmt: skip


def accesses(sweep: Sweep) -> Table:
    """Return accesses by group next to the published ones: Table 4.4."""
    table = _groups_table(
        sweep, "accesses", "accesses", sweep.cited("Memory accesses by group", "Table 4.4"), "rate",
        {name: tuple(m * 10**6 for m in row) for name, row in published.ACCESSES.items()},
    )  # fmt: skip
    return (
        table
        if not sweep.is_study
        else replace(
            table,
            about="The study's number of passes comes from Table 4.4, which validates "
            "nothing there.",
        )
    )


def _groups_table(
    sweep: Sweep,
    key: str,
    name: str,
    title: str,
    kind: ValueFormat,
    published_rows: dict[str, tuple[int, ...]],
) -> Table:
    rows: list[dict[str, Any]] = []
    known = [row for row in sweep.groups if row.get(key) is not None]
    for graph in dict.fromkeys(row["graph"] for row in known):
        some = [row for row in known if row["graph"] == graph]
        first = some[0].get("oversubscription"), some[0].get("policy"), some[0].get("evidence")
        row: dict[str, Any] = {"of": graph, "from": str(first[2] or evidence_of(sweep.results))}
        for each in some:
            if (each.get("oversubscription"), each.get("policy"), each.get("evidence")) == first:
                row[each["group"]] = each[key]
        rows.append(row)
        other = published.published_name(graph)
        if sweep.is_study and other in published_rows:
            numbers = zip(published.GROUPS, published_rows[other], strict=True)
            rows.append({"of": graph, "from": f"published ({other})", **dict(numbers)})
    return Table(
        name=name,
        title=title,
        columns=(
            Column("of", "graph", "text"),
            Column("from", "evidence", "text"),
            *(Column(group, group, kind) for group in published.GROUPS),
        ),
        rows=tuple(rows),
        evidence=_evidence(sweep, known),
    )


def non_fitting(sweep: Sweep) -> Table:
    """Return graphs that do not fit, with peak and oversubscription: Table 4.7."""
    rows: list[dict[str, Any]] = []
    for row in sweep.results if sweep.is_study else ():
        known = published.published_name(row["graph"])
        if known not in published.NON_FITTING or any(r["graph"] == row["graph"] for r in rows):
            continue
        gigabytes, percent = published.NON_FITTING[known]
        rows.append(
            {
                "graph": row["graph"],
                "peak": row.get("peak_bytes"),
                "rate": row["oversubscription"] / 100,
                "their_peak": gigabytes * 1e9,
                "their_rate": percent / 100,
            }
        )
    return Table(
        name="non-fitting",
        title="Graphs that do not fit (Table 4.7)",
        columns=(
            Column("graph", "graph", "text"),
            Column("peak", "peak", "bytes"),
            Column("rate", "oversubscription", "share"),
            Column("their_peak", "published peak", "bytes"),
            Column("their_rate", "published oversubscription", "share"),
        ),
        rows=tuple(rows),
        evidence=f"{evidence_of(sweep.results)}; published as printed in the thesis",
        about=published.NON_FITTING_ABOUT,
    )


def all_runs(sweep: Sweep) -> Table:
    """Return every run."""
    kinds: dict[str, ValueFormat] = {
        "seconds": "seconds", "least_seconds": "seconds", "most_seconds": "seconds",
        "bytes_to_device": "bytes", "bytes_to_host": "bytes", "bytes_remote": "bytes",
        "peak_bytes": "bytes", "graph": "text", "policy": "text",
        "evidence": "text", "gpu": "text", "feasible": "text", "reason": "text",
        "oversubscription": "count",
    }  # fmt: skip
    shown = [*kinds, "fault_groups", "faults", "evictions"]
    order = ["graph", "policy", "oversubscription", "feasible", "seconds"]
    order += [key for key in shown if key not in order]
    return Table(
        name="runs",
        title="All runs",
        columns=tuple(Column(key, key.replace("_", " "), kinds.get(key, "count")) for key in order),
        rows=tuple(
            {**row, "feasible": "yes" if row["feasible"] else "no"} for row in sweep.results
        ),
        evidence=evidence_of(sweep.results),
    )


def _evidence(sweep: Sweep, rows: Sequence[Row]) -> str:
    published_rows = "; published rows as printed in the thesis" if sweep.is_study else ""
    return f"{evidence_of(rows)}{published_rows}"


def _key(rate: float) -> str:
    return f"at {rate:g}"
