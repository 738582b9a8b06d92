"""Sentences of a sweep: oversubscriptions, assumptions, and why the best advice is fastest."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from statistics import fmean as mean
from typing import TYPE_CHECKING, Any, Final, TypeVar

from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.units import seconds, size

if TYPE_CHECKING:
    from louvain_um.profiling.sweep.points import Settings, Subject

T = TypeVar("T")


Row = Mapping[str, Any]

SAVED: Final = {
    "faults": "serving faults",
    "migration": "migration to the device",
    "write_back": "write-back of evicted pages",
}
"""Terms of cost that an advice saves, and their descriptions."""

REMOTE: Final = ("remote_sequential", "remote_random", "remote_atomic", "remote_barrier")


def format_rates(rates: Sequence[float]) -> str:
    """Return neighbouring oversubscriptions as text."""
    first, last = _figure(rates[0]), _figure(rates[-1])
    return f"{first} %" if len(rates) == 1 else f"{first} to {last} %"


def _figure(rate: float) -> str:
    """Return an oversubscription to two decimals: one of a budget in bytes has many."""
    rounded = round(rate, 2)
    return f"{rounded:g}" if 0 < rounded < 100 else f"{rate:.9g}"


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
    from louvain_um.profiling.simulator.result import CONFORMANCE

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


def explain(rows: Sequence[Row]) -> list[str]:
    """Return for each machine and oversubscription why the best advice is faster than base."""
    sentences = []
    known = [row for row in rows if row["feasible"] and row["seconds"] and _has_terms(row)]
    for gpu in dict.fromkeys(row["gpu"] for row in known):
        on_gpu = [row for row in known if row["gpu"] == gpu]
        sentences += [
            f"why, modelled on {gpu} at {at}: {text}"
            for at, text in merge_equal(on_gpu, _at)
            if text
        ]
    return sentences


def _has_terms(row: Row) -> bool:
    """Return whether a run has every term that is explained."""
    terms = [f"seconds_{term}" for term in (*SAVED, *REMOTE, "hidden")]
    return all(row.get(name) is not None for name in (*terms, "bytes_remote", "evictions"))


def _at(rows: Sequence[Row]) -> str:
    """Return why the best fixed advice is faster or slower, over graphs that it and base ran."""
    base = {row["graph"]: row for row in rows if row["policy"] == "base"}
    others = dict.fromkeys(row["policy"] for row in rows if row["policy"].startswith("adv"))
    gains = {}
    for policy in others:
        pairs = [
            (base[row["graph"]], row)
            for row in rows
            if row["policy"] == policy and row["graph"] in base
        ]
        if pairs:
            gains[policy] = mean(b["seconds"] / r["seconds"] for b, r in pairs)
    if not gains:
        return ""
    best = max(gains, key=lambda policy: gains[policy])
    pairs = [(base[r["graph"]], r) for r in rows if r["policy"] == best and r["graph"] in base]
    saved = {
        text: mean(b[f"seconds_{term}"] - r[f"seconds_{term}"] for b, r in pairs)
        for term, text in SAVED.items()
    }
    paid = mean(sum(r[f"seconds_{term}"] for term in REMOTE) for _, r in pairs)
    hidden = mean(r["seconds_hidden"] for _, r in pairs)
    won = ", ".join(f"{seconds(value)} of {text}" for text, value in saved.items() if value > 0)
    read = mean(r["bytes_remote"] for _, r in pairs)
    evicted = [round(mean(run["evictions"] for run in each)) for each in zip(*pairs, strict=True)]
    if round(gains[best], 2) == 1 and not read:
        return f"no advice is faster than base; {best} takes as long and reads nothing in place"
    but = "" if gains[best] >= 1 else "but slower, "
    many = f", in the mean of {len(pairs)} graphs" if len(pairs) > 1 else ""
    return (
        f"{best} is the best advice, {but}{gains[best]:.3g} times as fast as base{many}: it saves "
        f"{won or 'nothing'} ({evicted[0]:,} evictions become {evicted[1]:,}), and pays "
        f"{seconds(paid - hidden)} for {size(round(read))} read and written in place over the bus, "
        f"{seconds(hidden)} more overlapped with compute"
    )
