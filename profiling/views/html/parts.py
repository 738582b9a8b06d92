"""What a page is made of: its head, and parts with figures, cards and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from louvain_um.options import unusual
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.views.session.analysis import evidence, overall, summary
from louvain_um.profiling.views.session.verdict import Verdict
from louvain_um.profiling.views.table import Table, ValueFormat, format_short, format_value
from louvain_um.results.display import count

NOTHING = format_value(None)
"""Text of a figure that no source recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing with its title and the evidence for its numbers."""

    name: str
    title: str
    svg: Markup
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One figure that matters; `evident` where its evidence is that of the whole page."""

    what: str
    text: str
    evidence: str
    evident: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """One section of a page; `multiples` puts its figures side by side."""

    anchor: str
    title: str
    multiples: bool = False
    verdict: Verdict | None = None
    cards: tuple[Card, ...] = ()
    texts: tuple[str, ...] = ()
    map: str = ""
    items: list[Table | Figure] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def non_empty(*tables: Table) -> list[Table | Figure]:
    """Return the tables that have rows."""
    return [table for table in tables if table.rows]


def heading(session: SessionData) -> tuple[str, str]:
    """Return title and subtitle of a session."""
    about = session.metadata
    graph = about.get("graph") or {}
    policy = about.get("policy")
    # On a CPU, arrays are always on the host.
    words = [graph.get("name"), about.get("method"), None if policy == "host" else policy,
             about.get("device")]  # fmt: skip
    title = " · ".join(str(word) for word in words if word) or "A recorded run"
    facts = []
    if graph.get("vertices"):
        facts.append(f"{graph['vertices']:,} vertices, {graph.get('arcs') or 0:,} arcs")
    if about.get("modularity") is not None:
        items = f"{about.get('communities') or 0:,} communities"
        facts.append(f"{items}, modularity {about['modularity']:.4f}")
    if about.get("budget_bytes"):
        facts.append(f"device budget {format_value(about['budget_bytes'], 'bytes')}")
    before, after = (int((about.get("launches") or {}).get(n, 1)) for n in ("before", "after"))
    if after > 1 or before > 1:
        times = count(after, "launch", "launches")
        facts.append(f"{times} per pass over the arcs ({before:,} if all were copied in parts)")
    facts += unusual(about.get("options") or {"seed": about.get("seed")})
    facts += [f"host {about['host']}"] if about.get("host") else []
    if about.get("created"):
        facts.append(f"recorded {str(about['created'])[:16].replace('T', ' ')}")
    return title, "; ".join(facts)


def cards(session: SessionData) -> tuple[Card, ...]:
    """Return the main figures that are known."""
    return tuple(card for card in _cards(session) if card.text != NOTHING)


def missing(session: SessionData) -> tuple[str, ...]:
    """Return which of the main figures are missing, and why: one line per reason."""
    reasons: dict[str, list[str]] = {}
    for card in _cards(session):
        if card.text == NOTHING:
            reasons.setdefault(card.evidence, []).append(card.what)
    return tuple(f"{', '.join(names)}: {why}" for why, names in reasons.items())


def _cards(session: SessionData) -> tuple[Card, ...]:
    figures = summary(session)
    time, memory = evidence(session, "time"), evidence(session, "memory")
    whole = overall(session)
    energy = evidence(session, "energy")
    peaks = session.metadata.get("peak_bytes") or {}
    wanted: list[tuple[str, Any, ValueFormat, str]] = [
        ("run", figures["seconds"], "seconds", time),
        ("arcs per second", figures["arcs_per_second"], "rate", time),
        ("sum of group peaks", sum(peaks.values()) or None, "bytes", time),
        ("moved to the device", figures["bytes_to_device"], "bytes", memory),
        ("moved to the host", figures["bytes_to_host"], "bytes", memory),
        ("evicted by the driver", figures["bytes_evicted"], "bytes", memory),
        ("GPU faults", figures["gpu_faults"], "count", memory),
        ("fault groups", figures["gpu_fault_groups"], "count", memory),
        ("accesses", figures["accesses"], "count", evidence(session, "access")),
        ("energy", figures["joules"], "count", energy),
        ("arcs per joule", figures["arcs_per_joule"], "rate", energy),
    ]
    return tuple(
        Card(
            what=what,
            text=format_short(value, kind)
            + (" J" if what == "energy" and value is not None else ""),
            evidence=how if value is not None or how.startswith("not") else "not available",
            evident=bool(whole) and how.startswith(whole),
        )
        for what, value, kind, how in wanted
    )
