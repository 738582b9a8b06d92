"""A session in a few lines of text."""

from __future__ import annotations

from collections.abc import Iterable

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
