"""A session in a few figures: for `--json` and for printing."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.profiling.session.compile_time import run_joules
from louvain_um.profiling.session.data import OTHER, SessionData
from louvain_um.profiling.session.events import Cause, Kind

FIGURES = (
    "bytes_to_device", "bytes_to_host", "bytes_evicted", "gpu_fault_groups", "gpu_faults",
    "cpu_faults", "thrashing", "throttling", "remote_maps", "accesses",
)  # fmt: skip
"""What `by_group` holds of each group."""

KNOWN = ("measured", "modelled")

MEMORY = ("uvm", "cupti", "nsys", "simulator")
"""Sources that record managed memory."""


def summary(session: SessionData) -> dict[str, Any]:
    """Return the figures of a session; those that no source recorded are None."""
    groups = by_group(session)
    whole: dict[str, int | None] = {
        name: sum(group[name] for group in groups.values()) for name in FIGURES
    }
    sources = session.metadata.get("sources", {})
    if not any(sources.get(name, "") in KNOWN for name in MEMORY):
        whole |= {name: whole[name] or None for name in FIGURES if name != "accesses"}
    whole |= {name: whole[name] or None for name in session.metadata.get("not_recorded", ())}
    if not session.maps:
        whole["accesses"] = whole["accesses"] or None
    by_groups: dict[str, dict[str, int | None]] = {
        name: {key: None if whole[key] is None else value for key, value in group.items()}
        for name, group in groups.items()
    }
    totals = _totals_alone(session)
    for name, value in totals.items():
        whole[name] = value
        for group in by_groups.values():
            group[name] = None
    complete = session.metadata.get("complete", True)
    # The rate is known only of a complete run.
    arcs = (session.metadata.get("graph") or {}).get("arcs") if complete else None
    spent = run_joules(session)
    memory = session.events["kind"] <= Kind.DTOD
    return {
        "seconds": session.seconds,
        "arcs_per_second": arcs / session.seconds if arcs and session.seconds else None,
        "joules": spent,
        "arcs_per_joule": arcs / spent if arcs and spent else None,
        **whole,
        "by_group": by_groups,
        "events": len(session.events),
        "memory_events": int(np.count_nonzero(memory)),
        "unattributed": session.unattributed,
        "dropped": _dropped(session),
        "sources": dict(sources),
        "notes": list(session.notes),
        "complete": complete,
    }


def _totals_alone(session: SessionData) -> dict[str, int]:
    """Return bytes that the driver counted where migrations were not recorded one by one."""
    about = session.metadata.get("about_sources", {}).get("uvm", {})
    if about.get("migrations", True):
        return {}
    counted = about.get("driver_totals") or {}
    return {name: counted[name] for name in ("bytes_to_device", "bytes_to_host") if name in counted}


def _dropped(session: SessionData) -> int | None:
    """Return records that sources lost, as far as they know."""
    about = session.metadata.get("about_sources", {}).values()
    known = [source.get("dropped") for source in about]
    lost = [count for count in known if count is not None]
    return sum(lost) if lost else None


def by_group(session: SessionData) -> dict[str, dict[str, int]]:
    """Return `FIGURES` of each group that has arrays, and of `other` if there is any."""
    names = [*session.groups, OTHER]
    number = np.array([*(names.index(array.group) for array in session.lifetimes), len(names) - 1])
    group = number[session.event_arrays()]  # −1, the last, is other
    events = session.events

    def total(column: str, kind: Kind, cause: Cause | None = None) -> list[int]:
        rows = events.where(kind, cause)
        # Sums stay exact below 2⁵³.
        sums = np.bincount(group[rows], events[column][rows], len(names))
        return [int(value) for value in sums]

    accesses = total("count", Kind.ACCESS)
    maps = [page for page in session.maps if page.kind == "access"]
    if maps and not any(accesses):
        groups = {array.name: array.group for array in session.lifetimes}
        accesses = [0] * len(names)
        for page in maps:
            accesses[names.index(groups.get(page.array, OTHER))] += page.total
    columns = (
        total("bytes", Kind.HTOD),
        total("bytes", Kind.DTOH),
        total("bytes", Kind.DTOH, Cause.EVICTION),
        total("rows", Kind.GPU_FAULT_GROUP),
        total("count", Kind.GPU_FAULT_GROUP),
        total("count", Kind.CPU_FAULT),
        total("count", Kind.THRASHING),
        total("count", Kind.THROTTLING),
        total("count", Kind.REMOTE_MAP),
        accesses,
    )
    there = {array.group for array in session.lifetimes}
    return {
        name: dict(zip(FIGURES, row, strict=True))
        for name, row in zip(names, zip(*columns, strict=True), strict=True)
        if name in there or any(row)
    }
