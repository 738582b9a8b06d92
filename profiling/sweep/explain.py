"""Why the best advice is faster than base, in sentences from terms of cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean as mean
from typing import Any, Final

from louvain_um.placement.units import seconds, size
from louvain_um.profiling.sweep.by_oversubscription import merge_equal

Row = Mapping[str, Any]

SAVED: Final = {
    "faults": "serving faults",
    "migration": "migration to the device",
    "write_back": "write-back of evicted pages",
}
"""Terms of cost that an advice saves, and their descriptions."""

REMOTE: Final = ("remote_sequential", "remote_random", "remote_atomic", "remote_barrier")


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
