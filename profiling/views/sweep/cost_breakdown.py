"""Why a policy was faster than base: its terms of cost and its memory traffic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from louvain_um.profiling.sweep.replay_tables import format_rate_ranges
from louvain_um.profiling.sweep.results import (
    Row,
    Sweep,
    base_coverage,
    evidence_of,
    format_rates,
    gains,
    machine_label,
    machines,
    runs_on,
)
from louvain_um.profiling.thesis.published import averaged
from louvain_um.profiling.views.session.verdict import Verdict
from louvain_um.profiling.views.table import Column, Table, ValueFormat, format_value

PREFIX = "seconds_"
NO_TERMS = ("seconds_of_plan", "seconds_hidden")
"""Columns with that prefix that are no terms of cost: a forecast, and overlapped time."""

MENTIONED = 0.05
"""Share of base's seconds from which a term is mentioned."""


def traffic(sweep: Sweep) -> Table:
    """Return mean seconds and memory traffic of each policy by oversubscription."""
    keys = ("bytes_to_device", "bytes_to_host", "bytes_remote", "fault_groups", "evictions")
    rows: list[dict[str, Any]] = []
    for machine in machines(sweep.results):
        some = [row for row in runs_on(sweep.results, machine) if row["feasible"]]
        for policy in dict.fromkeys(row["policy"] for row in some):
            for rate in sorted({row["oversubscription"] for row in some}):
                selected = [
                    r for r in some if (r["policy"], r["oversubscription"]) == (policy, rate)
                ]
                if selected:
                    row: dict[str, Any] = {"policy": policy, "rate": rate / 100}
                    row["from"], row["graphs"] = machine_label(machine), len(selected)
                    for key in ("seconds", *keys):
                        values = [each[key] for each in selected if each.get(key) is not None]
                        row[key] = sum(values) / len(values) if values else None
                    rows.append(row)
    return Table(
        name="traffic",
        title="Memory traffic by policy",
        columns=(
            Column("policy", "policy", "text"),
            Column("rate", "oversubscription", "share"),
            Column("from", "evidence", "text"),
            Column("graphs", "graphs"),
            Column("seconds", "seconds", "seconds"),
            Column("bytes_to_device", "to the device", "bytes"),
            Column("bytes_to_host", "to the host", "bytes"),
            Column("bytes_remote", "read in place", "bytes"),
            Column("fault_groups", "fault groups"),
            Column("evictions", "evictions"),
        ),
        rows=tuple(rows),
        evidence=evidence_of(sweep.results),
        about="Means over the graphs that the policy could run.",
    )


def fastest(sweep: Sweep) -> Verdict:
    """Return which policy was fastest, at which oversubscription."""
    texts = []
    averaged_runs = averaged(sweep)
    for machine in machines(averaged_runs):
        result = gains(runs_on(averaged_runs, machine))
        rates = sorted({rate for by_rate in result.values() for rate in by_rate})
        winners: list[tuple[str, float, float]] = []  # policy, gain, oversubscription
        for rate in rates:
            at = {policy: by_rate[rate] for policy, by_rate in result.items() if rate in by_rate}
            top = max(at, key=lambda policy: at[policy])
            winners.append((top, at[top], rate) if at[top] > 1 else ("base", 1.0, rate))
        if winners:
            spans = ", ".join(
                _span(name, list(rows)) for name, rows in groupby(winners, key=lambda win: win[0])
            )
            graphs, ran = base_coverage(runs_on(averaged_runs, machine))
            all_of_them = all(ran[rate] == graphs for rate in rates)
            whose = "all graphs" if all_of_them else "the graphs that base could run"
            texts.append(f"Fastest on average over {whose} ({machine_label(machine)}): {spans}.")
    with_base = any(row["policy"] == "base" and row["feasible"] for row in sweep.results)
    alone = (
        "No other policy ran where base did."
        if with_base
        else "The sweep has no base to compare with."
    )
    finding = " ".join(texts) or alone
    return Verdict(
        finding=f"{sweep.unfinished} {finding}".strip(),
        remedy="auto chooses by cost for each graph and budget; compare its rows.",
        grounds=f"seconds {evidence_of(sweep.results)}",
    )


def _span(policy: str, wins: Sequence[tuple[str, float, float]]) -> str:
    """Return a policy, its gains and the neighbouring oversubscriptions at which it was fastest."""
    gain = sorted({f"{gain:.2f}" for _, gain, _ in wins}, key=float)
    times = " to ".join(f"{each}×" for each in dict.fromkeys((gain[0], gain[-1])))
    shown = policy if policy == "base" else f"{policy} ({times})"
    return f"{shown} at {format_rates([rate for _, _, rate in wins])}"


def terms(row: Row) -> dict[str, float]:
    """Return the terms of cost of a run by name: the columns `seconds_…`."""
    return {
        key.removeprefix(PREFIX).replace("_", " "): float(value)
        for key, value in row.items()
        if key.startswith(PREFIX) and key not in NO_TERMS and value not in (None, "")
    }


def mean_terms(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Return by policy the mean of each term; of policies that ran on all graphs that base did."""
    by: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        result = terms(row) if row["feasible"] and row["seconds"] else {}
        if result:
            by.setdefault(row["policy"], {})[row["graph"]] = result
    most = max((len(graphs) for graphs in by.values()), default=0)
    return {
        policy: {
            name: sum(each.get(name, 0.0) for each in graphs.values()) / most
            for name in dict.fromkeys(name for each in graphs.values() for name in each)
        }
        for policy, graphs in by.items()
        if len(graphs) == most
    }


def explanations(sweep: Sweep) -> tuple[str, ...]:
    """Return why the fastest policy beat base, or that none did."""
    result = []
    for machine in machines(sweep.results):
        rows = runs_on(sweep.results, machine)
        every = sorted({row["oversubscription"] for row in rows})
        reasons: dict[GainReason, list[tuple[float, tuple[float, ...]]]] = {}
        for rate in every:
            found = _reason([row for row in rows if row["oversubscription"] == rate])
            if found is not None:
                reasons.setdefault(found[0], []).append((rate, found[1]))
        for reason, at in reasons.items():
            where = format_rate_ranges([rate for rate, _ in at], every)
            amounts = zip(*(values for _, values in at), strict=True)
            text = _sentence(reason, list(amounts))
            result.append(f"At {where} ({machine_label(machine)}), {text}")
    return tuple(result)


@dataclass(frozen=True, slots=True)
class GainReason:
    """The fastest policy, and the terms of cost that it saves and pays for that, largest first."""

    policy: str
    saved: tuple[str, ...] = ()
    paid: tuple[str, ...] = ()


def _reason(rows: Sequence[Row]) -> tuple[GainReason, tuple[float, ...]] | None:
    """Compare the fastest policy with base in runs at one oversubscription, term by term."""
    means = mean_terms(rows)
    if "base" not in means or len(means) < 2:
        return None
    seconds = {
        policy: _mean(
            [row["seconds"] for row in rows if row["policy"] == policy and row["seconds"]]
        )
        for policy in means
    }
    best = min(seconds, key=lambda policy: seconds[policy])
    base = means["base"]
    if best == "base":
        return GainReason("base"), ()
    changes = {
        name: means[best].get(name, 0.0) - base.get(name, 0.0)
        for name in dict.fromkeys([*base, *means[best]])
    }
    least = MENTIONED * seconds["base"]
    saved = tuple(n for n in sorted(changes, key=lambda n: changes[n]) if changes[n] < -least)
    paid = tuple(n for n in sorted(changes, key=lambda n: -changes[n]) if changes[n] > least)
    amounts = [abs(changes[name]) for name in (*saved, *paid)]
    moved = [
        _mean([row.get(key) or 0 for row in rows if row["policy"] == policy and row["feasible"]])
        for policy, key in (("base", "evictions"), (best, "evictions"), (best, "bytes_remote"))
    ]
    return GainReason(best, saved, paid), (seconds[best], seconds["base"], *moved, *amounts)


def _sentence(reason: GainReason, amounts: Sequence[Sequence[float]]) -> str:
    """Return a reason in words."""
    if reason.policy == "base":
        return "nothing beat base."
    kinds: tuple[ValueFormat, ...] = ("seconds", "seconds", "count", "count", "bytes")
    took, base, before, after, remote = map(_range, amounts, kinds)
    terms = [f"{_range(amount)} of {name}" for amount, name in
             zip(amounts[5:], (*reason.saved, *reason.paid), strict=True)]  # fmt: skip
    saved, paid = terms[: len(reason.saved)], terms[len(reason.saved) :]
    text = f"{reason.policy} took {took} against base's {base} on average: it saved "
    text += ", ".join(saved) or "a little of all"
    text += f" and paid {', '.join(paid)}" if paid else ""
    return f"{text}; evictions: {after} instead of {before}; read in place: {remote}."


def _range(amounts: Sequence[float], kind: ValueFormat = "seconds") -> str:
    """Return amounts, or their range."""
    ends = dict.fromkeys(format_value(each, kind) for each in (min(amounts), max(amounts)))
    return " to ".join(ends)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
