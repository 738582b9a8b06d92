"""What a page shows of a session, part by part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.summary import summary
from louvain_um.profiling.views.html import svg
from louvain_um.profiling.views.html.payload import ROOM, packed
from louvain_um.profiling.views.session import all_tables, kernels, phase_tables, residency
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.blocks import ping_pong
from louvain_um.profiling.views.session.data_sources import data_sources
from louvain_um.profiling.views.session.evidence import evidence, is_available
from louvain_um.profiling.views.session.level_times import times_by_level, times_outside_levels
from louvain_um.profiling.views.session.overview import overview
from louvain_um.profiling.views.session.verdict import Verdict, verdict
from louvain_um.profiling.views.table import As, Table, format_short, format_value

MOST_BARS = 24
"""Passes drawn."""

MOST_PHASES = 400
"""Phases in a band above a chart."""

MOST_LINES = 12
"""Lines in a chart of iterations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing with what it shows and how its numbers came about."""

    name: str
    title: str
    svg: Markup
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One figure that matters."""

    what: str
    text: str
    evidence: str


NOTHING = format_value(None)
"""What stands for a figure that nobody recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One section of a page."""

    anchor: str
    title: str
    verdict: Verdict | None = None
    cards: tuple[Card, ...] = ()
    texts: tuple[str, ...] = ()
    map: str = ""
    items: list[Table | Figure] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def heading(session: SessionData) -> tuple[str, str]:
    """Return title and subtitle of a session."""
    about = session.metadata
    graph = about.get("graph") or {}
    policy = about.get("policy")
    # Where a CPU's run keeps its arrays is no news.
    words = [graph.get("name"), about.get("method"), None if policy == "host" else policy,
             about.get("device")]  # fmt: skip
    title = " · ".join(str(word) for word in words if word) or "A recorded run"
    facts = []
    if graph.get("vertices"):
        facts.append(f"{graph['vertices']:,} vertices, {graph.get('arcs') or 0:,} arcs")
    if about.get("modularity") is not None:
        found = f"{about.get('communities') or 0:,} communities"
        facts.append(f"{found}, modularity {about['modularity']:.4f}")
    if about.get("budget_bytes"):
        facts.append(f"device budget {format_value(about['budget_bytes'], 'bytes')}")
    facts += [f"{key} {about[key]}" for key in ("seed", "host") if about.get(key)]
    if about.get("created"):
        facts.append(f"recorded {str(about['created'])[:16].replace('T', ' ')}")
    return title, "; ".join(facts)


def cards(session: SessionData) -> tuple[Card, ...]:
    """Return the figures that matter and are known."""
    return tuple(card for card in _cards(session) if card.text != NOTHING)


def missing(session: SessionData) -> tuple[str, ...]:
    """Return which of the figures that matter nobody recorded, and why: a line a reason."""
    reasons: dict[str, list[str]] = {}
    for card in _cards(session):
        if card.text == NOTHING:
            reasons.setdefault(card.evidence, []).append(card.what)
    return tuple(f"{', '.join(names)}: {why}" for why, names in reasons.items())


def _cards(session: SessionData) -> tuple[Card, ...]:
    figures = summary(session)
    time, memory = evidence(session, "time"), evidence(session, "memory")
    energy = evidence(session, "energy")
    peaks = session.metadata.get("peak_bytes") or {}
    wanted: list[tuple[str, Any, As, str]] = [
        ("run", figures["seconds"], "seconds", time),
        ("arcs a second", figures["arcs_per_second"], "rate", time),
        ("groups' peaks together", sum(peaks.values()) or None, "bytes", time),
        ("moved to the device", figures["bytes_to_device"], "bytes", memory),
        ("moved to the host", figures["bytes_to_host"], "bytes", memory),
        ("evicted by the driver", figures["bytes_evicted"], "bytes", memory),
        ("GPU faults", figures["gpu_faults"], "count", memory),
        ("fault groups", figures["gpu_fault_groups"], "count", memory),
        ("accesses", figures["accesses"], "count", evidence(session, "access")),
        ("energy", figures["joules"], "count", energy),
        ("arcs a joule", figures["arcs_per_joule"], "rate", energy),
    ]
    return tuple(
        Card(
            what=what,
            text=format_short(value, kind)
            + (" J" if what == "energy" and value is not None else ""),
            evidence=how if value is not None or how.startswith("not") else "not available",
        )
        for what, value, kind, how in wanted
    )


def session_parts(analysis: SessionAnalysis, data: dict[str, Any], room: int = ROOM) -> list[Part]:
    """Return the parts on one session; what the script draws goes into `data`."""
    session = analysis.recorded
    group, phase = all_tables.by_group(analysis), phase_tables.by_phase(analysis)
    parts = [
        Part(
            anchor="summary",
            title="Summary",
            verdict=verdict(analysis),
            cards=cards(session),
            items=_glance(analysis),
            notes=(*missing(session), *session.notes),
        ),
        Part(anchor="time", title="Where the time went", items=_time(analysis, phase)),
        Part(anchor="groups", title="Groups of arrays", items=_groups(analysis, group)),
    ]
    maps = packed(analysis, room)
    if maps is not None:
        data["maps"] = maps
        parts.append(
            Part(
                anchor="pages",
                title="Pages over time",
                texts=(
                    "Rows are the bytes of the arrays, columns the time of the run, and the band "
                    "above shows its phases. Black is where nothing happened. Accesses are the "
                    "thesis's Figures 4.2 to 4.9 for this run, faults its Figures 4.12 to 4.19.",
                ),
                map="maps",
            )
        )
    causes = all_tables.by_cause(analysis)
    if causes.rows:
        parts.append(
            Part(
                anchor="migrations",
                title="Migrations",
                items=[_cause_bars(causes), causes, *_there(ping_pong(analysis))],
            )
        )
    more = [kernels.kernels(analysis), kernels.copies(analysis)]
    if any(table.rows for table in more):
        parts.append(Part(anchor="kernels", title="Kernels", items=_there(*more)))
    power = _power(analysis.session)
    if power is not None:
        parts.append(Part(anchor="energy", title="Energy", items=[power]))
    parts.append(
        Part(
            anchor="sources",
            title="Sources",
            texts=("Who recorded this session, what came of it, and what nobody could tell:",),
            notes=data_sources(session) or ("the session names no source",),
        )
    )
    return parts


def _glance(analysis: SessionAnalysis) -> list[Table | Figure]:
    curves = overview(analysis)
    if curves is None:
        return []
    kind: As = "bytes" if curves.title.startswith("Bytes") else "rate"
    chart = svg.areas(curves.times, curves.values, kind, band(analysis))
    return [Figure(name="glance", title=curves.title, svg=chart, evidence=curves.evidence)]


def band(analysis: SessionAnalysis) -> list[tuple[str, str, float, float]]:
    """Return the phases that a chart over time shows above it, the longest if there are many."""
    spans = sorted(analysis.phases, key=lambda span: span.start_ns - span.end_ns)[:MOST_PHASES]
    return [
        (
            f"{span.phase} {span.level}" if span.level >= 0 else span.phase,
            span.phase,
            span.start_ns / 1e9,
            span.end_ns / 1e9,
        )
        for span in sorted(spans, key=lambda span: span.start_ns)
    ]


def _there(*tables: Table) -> list[Table | Figure]:
    return [table for table in tables if table.rows]


def _time(analysis: SessionAnalysis, phases: Table) -> list[Table | Figure]:
    how = evidence(analysis.session, "time")
    rows = [(each.label, each.seconds) for each in times_by_level(analysis)]
    others = times_outside_levels(analysis)
    if others:
        rows.insert(0, (", ".join(others), others))
    found: list[Table | Figure] = []
    if rows:
        left = len(rows) - MOST_BARS
        title = "Levels, and their phases (as in Figure 4.11, whose iterations are levels)"
        title += f"; {left} more are in the table" if left > 0 else ""
        chart = svg.bars(rows[:MOST_BARS], "seconds")
        found.append(Figure(name="phase-chart", title=title, svg=chart, evidence=how))
    terms = {
        name.replace("_", " "): float(value)
        for name, value in (analysis.session.metadata.get("terms") or {}).items()
        if name != "hidden"
    }
    if terms:
        chart = svg.bars([("all", terms)], "seconds")
        about = "modelled; what went on beside each other counts twice"
        found.append(Figure(name="terms", title="What the seconds consist of", svg=chart,
                            evidence=about))  # fmt: skip
    sweeps: dict[str, tuple[list[float], list[float]]] = {}
    cycle, before = 1, -1
    for number, span in enumerate(analysis.iterations, 1):
        cycle += span.level < before  # the run begins again from the first level
        before = span.level
        name = f"{span.phase}, level {span.level}" + (f", cycle {cycle}" if cycle > 1 else "")
        if name in sweeps or len(sweeps) < MOST_LINES:
            x, y = sweeps.setdefault(name, ([], []))
            x.append(number)
            y.append(span.seconds)
    if sweeps:
        chart = svg.lines(sweeps, "seconds", x_title="iteration of the run", logarithmic=True)
        found.append(
            Figure(
                name="iteration-chart",
                title="Iterations of moving",
                svg=chart,
                evidence=how,
            )
        )
    return [
        *found,
        *_there(
            phases, phase_tables.by_phase_and_group(analysis), phase_tables.iterations(analysis)
        ),
    ]


def _groups(analysis: SessionAnalysis, table: Table) -> list[Table | Figure]:
    found: list[Table | Figure] = []
    for key, name, title, matter in (
        ("accesses", "access-chart", "Accesses by group (as in Figure 4.1)", "access"),
        ("gpu_faults", "fault-chart", "GPU faults by group (as in Figure 4.10)", "memory"),
    ):
        parts = {row["group"]: float(row.get(key) or 0) for row in table.rows}
        if sum(parts.values()):
            how = evidence(analysis.session, matter)  # type: ignore[arg-type]
            chart = svg.bars([("share", parts)], "count", share=True)
            found.append(Figure(name=name, title=title, svg=chart, evidence=how))
    for name, curves in (
        ("allocated-chart", residency.allocated(analysis)),
        ("resident-chart", residency.resident(analysis)),
    ):
        if curves is not None and curves.values:
            chart = svg.areas(curves.times, curves.values, "bytes", band(analysis))
            found.append(
                Figure(
                    name=name,
                    title=f"{curves.title}, over time",
                    svg=chart,
                    evidence=curves.evidence,
                )
            )
    return [*found, *_there(table, all_tables.by_array(analysis))]


def _cause_bars(causes: Table) -> Figure:
    ways: dict[str, dict[str, float]] = {}
    for row in causes.rows:
        ways.setdefault(row["way"], {})[row["cause"]] = float(row["bytes"])
    return Figure(
        name="cause-chart",
        title="Bytes moved, by cause",
        svg=svg.bars(list(ways.items()), "bytes"),
        evidence=causes.evidence,
    )


def _power(session: SessionData) -> Figure | None:
    energy = session.energy or {}
    times, watts = energy.get("times_ns") or [], energy.get("watts") or []
    if len(times) < 2:
        return None
    step = max(1, len(times) // 400)
    seconds = [time / 1e9 for time in times[::step]]
    chart = svg.lines({"watts": (seconds, list(watts[::step]))}, "count", x_title="seconds")
    how = evidence(session, "energy") if is_available(session, "energy") else "measured"
    return Figure(name="power-chart", title="Power, in watts", svg=chart, evidence=how)


def comparison(
    first: SessionAnalysis, second: SessionAnalysis, data: dict[str, Any], room: int
) -> list[Part]:
    """Return the parts that set a second session beside the first."""
    from louvain_um.profiling.views.session.compare import compared

    found = list(compared(first, second))
    parts = [
        Part(
            anchor="comparison",
            title="Comparison",
            verdict=verdict(second),
            texts=("The verdict above is on the second session.",),
            items=[*found],
        )
    ]
    maps = packed(second, room)
    if maps is not None:
        data["second"] = maps
        parts.append(
            Part(anchor="second-pages", title="Pages over time, the second session", map="second")
        )
    return parts
