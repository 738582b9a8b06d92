"""Tables beside the results of replays: groups, iterations, and who was fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from louvain_um.core.array_spec import STAGES
from louvain_um.core.ledger import GROUPS
from louvain_um.placement.policy.policy import AUTO, find_policy
from louvain_um.placement.reasons import seconds, size
from louvain_um.profiling.access.declare import declared
from louvain_um.profiling.simulator import Simulation
from louvain_um.profiling.simulator.driver.constants import BLOCK_BYTES
from louvain_um.profiling.simulator.trace import Launch, Prefetch, Trace
from louvain_um.profiling.sweep.by_oversubscription import format_rate_ranges, format_rates

FAULTS_AT: Final = 30.0
"""Oversubscription, percent, whose faults by group are told: that of Figure 4.10."""


def groups(trace: Trace, graph: str, base: Simulation | None, rate: float) -> list[dict[str, Any]]:
    """Return peak, accesses and faults of each group: a sweep's table of groups.

    `base` is the run whose faults are told, at an oversubscription of `rate` percent.
    """
    arrays = declared(trace)
    faults = base.by_group() if base is not None else {}
    rows = []
    for group in GROUPS:
        mine = [array for array in arrays if array.group == group]
        held = max(
            (sum(a.nbytes for a in mine if stage in a.stages) for stage in STAGES), default=0
        )
        rows.append(
            {
                "graph": graph,
                "group": group,
                "peak_bytes": held,
                "accesses": round(sum(sum(a.accesses.values()) for a in mine)),
                "gpu_faults": faults.get(group, {}).get("faults", 0) if base else None,
                "policy": "base",
                "oversubscription": rate,
                "evidence": "modelled",
            }
        )
    return rows


def once(rows: Sequence[dict[str, Any]], rate: float) -> list[dict[str, Any]]:
    """Return the groups of each graph at one oversubscription, the nearest at which base ran.

    Examples
    --------
    >>> from louvain_um.profiling.sweep.replay_tables import once
    >>> rows = [{"graph": graph, "oversubscription": at} for graph, at in
    ...         [("a", 0.0), ("a", 30.0), ("b", 0.0), ("b", 10.0)]]
    >>> [(row["graph"], row["oversubscription"]) for row in once(rows, 30.0)]
    [('a', 30.0), ('b', 10.0)]
    """
    nearest: dict[str, float] = {}
    for row in rows:
        graph, at = row["graph"], row["oversubscription"]
        nearest[graph] = min(nearest.get(graph, at), at, key=lambda each: abs(each - rate))
    return [row for row in rows if row["oversubscription"] == nearest[row["graph"]]]


def iterations(graph: str, found: Simulation, rate: float) -> list[dict[str, Any]]:
    """Return the seconds of each sweep, refinement and aggregation: a table of iterations.

    Blocks that the program sends back make room for what follows, and count there.
    """
    rows: list[dict[str, Any]] = []
    last: tuple[Any, ...] | None = None
    sent = 0.0
    # What was replayed may have more steps than the recording: blocks that come and go.
    for step, took in zip(found.trace.steps, found.launch_seconds.tolist(), strict=True):
        if isinstance(step, Prefetch):
            sent += took
        if not isinstance(step, Launch):
            continue
        place = (step.phase, step.level, step.iteration)
        if place != last:
            rows.append(
                {
                    "graph": graph, "oversubscription": rate, "number": len(rows) + 1,
                    "seconds": 0.0, "policy": "base", "phase": step.phase, "level": step.level,
                    "iteration": step.iteration, "evidence": "modelled",
                }
            )  # fmt: skip
            last = place
        rows[-1]["seconds"] += sent + took
        sent = 0.0
    return rows


def best(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return which policy was fastest at each oversubscription, in a line a graph and machine."""
    lines = []
    places = dict.fromkeys((row["graph"], row["gpu"], row["evidence"]) for row in rows)
    for place in places:
        found: dict[float, Mapping[str, Any]] = {}
        for row in rows:
            if row["feasible"] and (row["graph"], row["gpu"], row["evidence"]) == place:
                rate = row["oversubscription"]
                # What auto took over from another policy is as fast: it is named first.
                order = (row["seconds"], row["policy"] != AUTO.name)
                if rate not in found or order < (found[rate]["seconds"], True):
                    found[rate] = row
        graph, gpu, evidence = place
        winners = [(row["policy"], rate) for rate, row in sorted(found.items())]
        told = [f"{policy} at {format_rates(at)}" for policy, at in runs(winners)]
        lines.append(f"{graph} on {gpu}, {evidence}: fastest {', '.join(told) or 'none'}")
    return "\n".join(lines)


def runs(winners: Sequence[tuple[str, float]]) -> list[tuple[str, list[float]]]:
    """Return who won, with the rates in a row at which they did.

    Examples
    --------
    >>> from louvain_um.profiling.sweep.replay_tables import runs
    >>> runs([("base", 0), ("adv2", 30), ("adv2", 50)])
    [('base', [0]), ('adv2', [30, 50])]
    """
    return [
        (name, [rate for _, rate in of_one])
        for name, of_one in groupby(winners, key=lambda winner: winner[0])
    ]


SMALLEST = 16
"""Blocks of 2 MiB below which a program is too small for oversubscription to mean much."""


def remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what a reader of replayed results should know: takeovers, and sizes too small."""
    found = []
    for row in rows:
        if row.get("chosen") not in (None, "plan"):
            plan = row.get("seconds_of_plan")
            told = seconds(row["seconds"])
            if plan is not None:
                told += f" for {seconds(plan)}"
            found.append(
                f"{row['graph']} on {row['gpu']} at {row['oversubscription']:g} %: auto took over "
                f"{row['chosen']}, faster on this recording than the plan's own choice ({told})"
            )
    peaks = {
        row["graph"]: row["peak_bytes"]
        for row in rows
        if row["evidence"] == "modelled" and row["peak_bytes"] < SMALLEST * BLOCK_BYTES
    }
    for graph, peak in peaks.items():
        found.append(
            f"{graph}: its peak is {peak // BLOCK_BYTES} blocks of 2 MiB, in which the driver "
            "evicts; oversubscription means little for so few"
        )
    return found + fitting(rows)


def fitting(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return at which oversubscriptions nothing had to leave the device all the same.

    Examples
    --------
    >>> from louvain_um.profiling.sweep.replay_tables import fitting
    >>> run = dict(graph="g", policy="base", evidence="measured", feasible=True, bytes_to_host=0)
    >>> fitting([run | dict(oversubscription=30.0, budget_bytes=7 << 20)])[0][:51]
    'g at 30 %: measured, base sends nothing back to the'
    """
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        rate, budget = row["oversubscription"], row.get("budget_bytes")
        if row["policy"] == "base" and row["feasible"] and rate and budget:
            whole = size(round(budget / (1 - rate / 100)))
            if row["bytes_to_host"] == 0:
                found.setdefault((row["graph"], row["evidence"], whole), []).append(rate)
    told: dict[tuple[str, str, str], list[str]] = {}
    for (graph, evidence, whole), rates in found.items():
        at = format_rate_ranges(rates, [row["oversubscription"] for row in rows])
        told.setdefault((graph, at, whole), []).append(evidence)
    return [
        f"{graph} at {at}: {' and '.join(dict.fromkeys(how))}, base sends nothing back to the "
        f"host: what it touches fits into what is left of the {whole} that 0 % is of"
        for (graph, at, whole), how in told.items()
    ]


def unknown_arrays(trace: Trace, policies: Sequence[str], graph: str) -> list[str]:
    """Return which policies place arrays that a recording does not have: they do nothing."""
    there = {array.name for array in trace.arrays}
    found = []
    for policy in map(find_policy, policies):
        lost = [name for name in policy.arrays if name not in there]
        if lost:
            found.append(
                f"{graph}: policy {policy.name} places arrays that the recording does not have: "
                + ", ".join(lost)
            )
    return found
