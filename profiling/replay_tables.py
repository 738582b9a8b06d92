"""Tables beside the results of replays: groups, iterations, and who was fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from louvain_um.arrays import STAGES
from louvain_um.ledger import GROUPS
from louvain_um.placement.policy import AUTO, find_policy
from louvain_um.placement.reasons import seconds
from louvain_um.profiling.declaring import declared
from louvain_um.profiling.simulator import Simulation
from louvain_um.profiling.simulator.constants import BLOCK_BYTES
from louvain_um.profiling.simulator.trace import Launch, Trace


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
                "accesses": round(sum(sum(a.touches.values()) for a in mine)),
                "gpu_faults": faults.get(group, {}).get("faults", 0) if base else None,
                "policy": "base",
                "oversubscription": rate,
                "evidence": "modelled",
            }
        )
    return rows


def iterations(trace: Trace, graph: str, found: Simulation, rate: float) -> list[dict[str, Any]]:
    """Return the seconds of each sweep, refinement and aggregation: a table of iterations."""
    rows: list[dict[str, Any]] = []
    last: tuple[Any, ...] | None = None
    for step, took in zip(trace.steps, found.launch_seconds.tolist(), strict=True):
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
        rows[-1]["seconds"] += took
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
        told = [f"{row['policy']} at {rate:g} %" for rate, row in sorted(found.items())]
        lines.append(f"{graph} on {gpu}, {evidence}: fastest {', '.join(told) or 'none'}")
    return "\n".join(lines)


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
    return found


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
