"""Which sources recorded a session, how much each recorded, and what was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.summary import summary
from louvain_um.profiling.views.table import format_value

COUNTED = ("events", "samples", "launches", "instrumented_places")
"""Counts that a source may report."""


def data_sources(session: SessionData) -> tuple[str, ...]:
    """Return a line for each source, and one on how many events belong to an array."""
    about = session.metadata.get("about_sources") or {}
    lines = [
        "; ".join([f"{name}: {status}", *_parts(about.get(name) or {})])
        for name, status in (session.metadata.get("sources") or {}).items()
    ]
    figures = summary(session)
    if figures["memory_events"]:
        lost = figures["unattributed"]
        share = format_value(lost / figures["memory_events"], "share")
        lines.append(
            f"of {figures['memory_events']:,} events of memory {lost:,} ({share}) lie in no array "
            "of the run"
        )
    return tuple(lines)


def _parts(about: Mapping[str, Any]) -> list[str]:
    """Return what a source reports about itself: counts, losses, overhead."""
    parts = [
        f"{about[key]:,} {key.replace('_', ' ').removesuffix('s' if about[key] == 1 else ' ')}"
        for key in COUNTED
        if about.get(key) is not None
    ]
    if about.get("dropped") is not None:
        parts.append(f"{about['dropped']:,} dropped")
    if about.get("period_seconds"):
        parts.append(f"one every {format_value(about['period_seconds'], 'seconds')}")
    if about.get("overhead_seconds"):
        spent = format_value(about["overhead_seconds"], "seconds")
        parts.append(f"{spent} spent on recording, as the source reports")
    recorded, counted = about.get("recorded") or {}, about.get("driver_totals") or {}
    for key, total in counted.items():
        what = key.replace("bytes_", "bytes ").replace("_", " ").replace("cpu", "CPU")
        if not about.get("migrations", True) and key.startswith("bytes"):
            parts.append(f"{total:,} {what} counted by the driver, without single migrations")
        elif recorded.get(key) == total:
            parts.append(f"{total:,} {what}, equal to the driver's own count")
        else:
            parts.append(f"{recorded.get(key, 0):,} {what} of {total:,} that the driver counted")
    return parts
