"""A session in a few lines of text: its figures, and which sources recorded it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.summary import summary
from louvain_um.profiling.views.table import ValueFormat, format_value

SHOWN = {
    "bytes_to_device": "to the device",
    "bytes_to_host": "to the host",
    "gpu_faults": "GPU faults",
    "cpu_faults": "CPU faults",
    "accesses": "accesses",
}
"""Figures of the summary that are printed."""


COUNTED = ("events", "samples", "launches", "instrumented_places")
"""Counts that a source may report."""


def lines(session: SessionData) -> Iterable[str]:
    """Yield the session in a few lines of text."""
    figures = summary(session)
    about = session.metadata
    named = [about.get("method"), about.get("policy"), about.get("device")]
    if about.get("device") == "cpu":
        named.remove(about.get("policy"))  # on the CPU there is only one
    what = " ".join(str(name) for name in named if name)
    rate = figures["arcs_per_second"]
    cost = [f"{figures['seconds']:.3f} s"]
    cost += [f"{format_value(rate, 'rate')} arcs/s"] if rate else []
    if figures["joules"] is not None:
        cost.append(f"{figures['joules']:,.1f} J")
    if figures["arcs_per_joule"]:
        cost.append(f"{format_value(figures['arcs_per_joule'], 'rate')} arcs/J")
    yield f"{what or 'session'}: {', '.join(cost)}"
    shown = {name: value for name, value in SHOWN.items() if figures[name] is not None}
    for group, values in [("all", figures), *figures["by_group"].items()]:
        parts = [
            f"{text} {format_value(values[name], _kind(name))}"
            for name, text in shown.items()
            if values[name] is not None
        ]
        if parts:
            yield f"  {group}: {', '.join(parts)}"
    if figures["unattributed"]:
        events = figures["memory_events"]
        yield f"{figures['unattributed']:,} of {events:,} memory events lie in no array of the run"
    yield from (f"note: {note}" for note in session.notes)


def _kind(name: str) -> ValueFormat:
    """Return the format of a figure."""
    return "bytes" if name.startswith("bytes") else "count"


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
