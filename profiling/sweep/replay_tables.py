"""Tables and sentences of replays: groups, iterations, fastest policies, assumptions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from louvain_um.core.array_spec import STAGES
from louvain_um.core.ledger import GROUPS
from louvain_um.placement.hardware import seconds, size
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Policy
from louvain_um.profiling.access.recorded_plans import declared
from louvain_um.profiling.simulator import Simulation
from louvain_um.profiling.simulator.driver.constants import BLOCK_BYTES
from louvain_um.profiling.simulator.result import CONFORMANCE
from louvain_um.profiling.simulator.trace import Launch, Prefetch, Trace
from louvain_um.profiling.sweep.results import format_rates
from louvain_um.results.display import count

if TYPE_CHECKING:
    from louvain_um.profiling.sweep.points import Settings, Subject

T = TypeVar("T")

Row = Mapping[str, Any]


def format_rate_ranges(rates: Iterable[float], every: Iterable[float]) -> str:
    """Return oversubscriptions as text."""
    order = sorted(set(every))
    groups: list[list[float]] = []
    for rate in sorted(set(rates)):
        if groups and order.index(rate) == order.index(groups[-1][-1]) + 1:
            groups[-1].append(rate)
        else:
            groups.append([rate])
    return " and ".join(map(format_rates, groups))


def merge_equal(
    rows: Sequence[Mapping[str, Any]], of: Callable[[list[Mapping[str, Any]]], T]
) -> list[tuple[str, T]]:
    """Apply a function to the rows of each oversubscription; merge those with equal results."""
    order = sorted({row["oversubscription"] for row in rows})
    groups: list[tuple[T, list[float]]] = []
    for rate in order:
        value = of([row for row in rows if row["oversubscription"] == rate])
        same = next((at for known, at in groups if known == value), None)
        if same is None:
            groups.append((value, [rate]))
        else:
            same.append(rate)
    return [(format_rate_ranges(at, order), value) for value, at in groups]


def assumptions_of(
    subjects: Sequence[Subject], settings: Settings, machines: dict[str, Machine]
) -> list[str]:
    """Return one sentence per assumption: machines, evidence, tiny percentages, stand-ins."""
    sentences = []
    for machine in machines.values():
        sentences.append(
            f"machine {machine.name}: {machine.notes.get('all', 'as calibrate measured')}"
        )
    sentences += evidence_assumptions(
        [*["modelled"] * bool(settings.gpus), *["measured"] * (settings.device is not None)]
    )
    few = [f"{rate:g}" for rate in settings.rates if 0 < rate < 1]
    if few:
        sentences.append(
            f"oversubscriptions are in percent: {', '.join(few)} is less than one percent, and 30 "
            "would be 30 %"
        )
    for subject in subjects:
        vertices, arcs = subject.size
        if vertices is None:
            sentences.append(
                f"{subject.name}: a program of one's own; its page touches follow from what it "
                "declares"
            )
        elif subject.scale is not None:
            sentences.append(
                f"{subject.name}: a generated stand-in, {vertices:,} vertices and {arcs:,} arcs, "
                f"{subject.scale:.3g} of the original's vertices"
            )
    return sentences


def evidence_assumptions(kinds: Container[str]) -> list[str]:
    """Return the assumptions of measured points, of modelled ones, or of both."""
    sentences = []
    if "modelled" in kinds:
        sentences.append(
            "modelled: page touches recorded from a run of the CPU engine, replayed by a model of "
            "NVIDIA's driver; device memory is (1 - oversubscription) of the in-core footprint "
            "that the program's plan states or, without a plan, of the recorded arrays' peak; "
            "`least_seconds` and `most_seconds` come from constants that are assumed (eviction to "
            f"the host, service of faults); how closely the model follows the driver: {CONFORMANCE}"
        )
    if "measured" in kinds:
        sentences.append(
            "measured: the program keeps to a budget of (1 - oversubscription) of the in-core "
            "footprint that its plan states and moves blocks itself; the driver never evicts"
        )
    return sentences


FAULTS_AT: Final = 30.0
"""Oversubscription, in percent, of the faults by group, as in Figure 4.10."""

BEST: Final = "best"
"""Stands in results for the fastest policy of a point, known in hindsight."""

SMALLEST = 16
"""Blocks of 2 MiB below which a program is too small for oversubscription to mean much."""


def groups(trace: Trace, graph: str, base: Simulation | None, rate: float) -> list[dict[str, Any]]:
    """Return peak, accesses and faults of each group: a sweep's table of groups."""
    arrays = declared(trace)
    faults = base.by_group() if base is not None else {}
    rows = []
    for group in GROUPS:
        members = [array for array in arrays if array.group == group]
        held = max(
            (sum(a.nbytes for a in members if stage in a.stages) for stage in STAGES), default=0
        )
        rows.append(
            {
                "graph": graph,
                "group": group,
                "peak_bytes": held,
                "accesses": round(sum(sum(a.accesses.values()) for a in members)),
                "gpu_faults": faults.get(group, {}).get("faults", 0) if base else None,
                "policy": "base",
                "oversubscription": rate,
                "evidence": "modelled",
            }
        )
    return rows


def nearest_groups(rows: Sequence[dict[str, Any]], rate: float) -> list[dict[str, Any]]:
    """Return the groups of each graph at its oversubscription nearest to `rate`."""
    nearest: dict[str, float] = {}
    for row in rows:
        graph, at = row["graph"], row["oversubscription"]
        nearest[graph] = min(nearest.get(graph, at), at, key=lambda each: abs(each - rate))
    return [row for row in rows if row["oversubscription"] == nearest[row["graph"]]]


def iterations(graph: str, base: Simulation, rate: float) -> list[dict[str, Any]]:
    """Return the seconds of each iteration, refinement and aggregation."""
    rows: list[dict[str, Any]] = []
    last: tuple[Any, ...] | None = None
    sent = 0.0
    # A replay may have more steps than the recording: block transfers.
    for step, took in zip(base.trace.steps, base.launch_seconds.tolist(), strict=True):
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


def in_hindsight(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each modelled point of `auto` and others: the fastest of those that ran."""
    points: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["evidence"] == "modelled" and row["policy"] != BEST:
            at = row["graph"], row["gpu"], row["oversubscription"]
            points.setdefault(at, []).append(row)
    found = []
    for tried in points.values():
        names = [row["policy"] for row in tried]
        ran = [row for row in tried if row["feasible"]]
        if AUTO.name in names and len(names) > 1 and ran:
            row = min(ran, key=lambda row: row["seconds"])
            found.append({**row, "policy": BEST, "chosen": row["policy"], "seconds_of_plan": None})
    return found


def fastest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the fastest policy at each oversubscription, one line per graph and machine."""
    lines = []
    places = dict.fromkeys((row["graph"], row["gpu"], row["evidence"]) for row in rows)
    for place in places:
        winner_at: dict[float, Mapping[str, Any]] = {}
        for row in rows:
            here = (row["graph"], row["gpu"], row["evidence"]) == place
            if row["feasible"] and here and row["policy"] != BEST:
                rate = row["oversubscription"]
                # Of policies that are as fast, auto is named.
                order = (row["seconds"], row["policy"] != AUTO.name)
                if rate not in winner_at or order < (winner_at[rate]["seconds"], True):
                    winner_at[rate] = row
        graph, gpu, evidence = place
        winners = [(row["policy"], rate) for rate, row in sorted(winner_at.items())]
        runs = groupby(winners, key=itemgetter(0))
        won = [(name, [rate for _, rate in of_one]) for name, of_one in runs]
        parts = [f"{policy} at {format_rates(at)}" for policy, at in won]
        lines.append(f"{graph} on {gpu}, {evidence}: fastest {', '.join(parts) or 'none'}")
    return "\n".join(lines)


def remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return remarks on replayed results: what beats auto, sizes too small, no traffic."""
    sentences = []
    auto_at = {
        (row["graph"], row["gpu"], row["oversubscription"]): row["seconds"]
        for row in rows
        if row["policy"] == AUTO.name
    }
    for row in rows:
        auto = auto_at.get((row["graph"], row["gpu"], row["oversubscription"]))
        if row["policy"] == BEST and row["chosen"] != AUTO.name and auto:
            sentences.append(
                f"{row['graph']} on {row['gpu']} at {row['oversubscription']:g} %: in hindsight "
                f"{row['chosen']} is faster on this recording than auto "
                f"({seconds(row['seconds'])} instead of {seconds(auto)})"
            )
    peaks = {
        row["graph"]: row["peak_bytes"]
        for row in rows
        if row["evidence"] == "modelled"
        and row.get("peak_bytes") is not None
        and row["peak_bytes"] < SMALLEST * BLOCK_BYTES
    }
    for graph, peak in peaks.items():
        blocks = count(-(-peak // BLOCK_BYTES), "block", "blocks")
        sentences.append(
            f"{graph}: too small for meaningful oversubscription: it occupies only {blocks} of "
            "2 MiB, the driver's unit of eviction"
        )
    return [*sentences, *other_memory(rows), *fitting(rows)]


def other_memory(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return where replayed runs had more or less memory than their oversubscription says."""
    less: dict[tuple[Any, ...], list[float]] = {}
    more = {}
    for row in rows:
        rate, peak, had = row["oversubscription"], row.get("peak_bytes"), row.get("budget_bytes")
        if row["evidence"] != "modelled" or not peak or had is None:
            continue
        if had > peak:
            more[row["graph"], had, peak] = (
                f"{row['graph']} at {rate:g} %: simulated with {size(had)}, more than 100 % "
                f"({size(peak)}), since the driver gives each array whole blocks of 2 MiB"
            )
        elif had == row.get("machine_bytes") and had < (1 - rate / 100) * peak - 1:
            less.setdefault((row["graph"], row["gpu"], had), []).append(rate)
    every = [row["oversubscription"] for row in rows]
    return [
        *more.values(),
        *(
            f"{graph} at {format_rate_ranges(rates, every)}: simulated with the {size(had)} that "
            f"{gpu} has for a run, less than this oversubscription leaves"
            for (graph, gpu, had), rates in less.items()
        ),
    ]


def fitting(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the oversubscriptions at which base still evicts nothing."""
    rates_without_eviction: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        rate, budget = row["oversubscription"], row.get("budget_bytes")
        bounded = budget == row.get("machine_bytes")
        if (
            row["policy"] == "base"
            and row["feasible"]
            and 0 < rate < 100
            and budget
            and not bounded
        ):
            footprint = size(round(budget / (1 - rate / 100)))
            if row["bytes_to_host"] == 0:
                rates_without_eviction.setdefault(
                    (row["graph"], row["evidence"], footprint), []
                ).append(rate)
    evidence_of: dict[tuple[str, str, str], list[str]] = {}
    for (graph, evidence, footprint), rates in rates_without_eviction.items():
        at = format_rate_ranges(rates, [row["oversubscription"] for row in rows])
        evidence_of.setdefault((graph, at, footprint), []).append(evidence)
    return [
        f"{graph} at {at}: {' and '.join(dict.fromkeys(how))}, base evicts nothing: its working "
        f"set fits into the remaining part of {footprint}, the in-core footprint"
        for (graph, at, footprint), how in evidence_of.items()
    ]


def unknown_arrays(trace: Trace, policies: Sequence[str | Path | Policy], graph: str) -> list[str]:
    """Return which policies place arrays that a recording lacks, without effect."""
    recorded: dict[str, set[str]] = {
        "arrays": {array.name for array in trace.arrays},
        "groups": {array.group for array in trace.arrays},
        "roles": {array.role for array in trace.arrays},
    }
    sentences = []
    for policy in map(find_policy, policies):
        for table, known in recorded.items():
            lost = [name for name in getattr(policy, table) if name not in known]
            if lost:
                sentences.append(
                    f"{graph}: policy {policy.name} places {table} that the recording does not "
                    f"have: {', '.join(lost)}"
                )
    return sentences
