"""The parts of a page on one session or several, and the maps that a page holds."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session import SessionData
from louvain_um.profiling.views.canvas import colour
from louvain_um.profiling.views.html import svg
from louvain_um.profiling.views.html.parts import Figure, PagePart, cards, missing, non_empty
from louvain_um.profiling.views.session import over_time, phase_tables, tables
from louvain_um.profiling.views.session.analysis import (
    SessionAnalysis,
    data_sources,
    evidence,
    is_available,
)
from louvain_um.profiling.views.session.compare import comparison_tables, difference, ordinal
from louvain_um.profiling.views.session.over_time import overview
from louvain_um.profiling.views.session.pages import Axis, Layer, differences, layers, ping_pong
from louvain_um.profiling.views.session.phase_tables import (
    iteration_cycles,
    times_by_level,
    times_outside_levels,
)
from louvain_um.profiling.views.session.verdict import Verdict, verdict
from louvain_um.profiling.views.sweep import Lines
from louvain_um.profiling.views.table import Table, ValueFormat

ROOM = 3_600_000
"""Characters that the maps of a page may take, so that it stays below 5 MB."""

MAP_PHASES = 2000
LEVELS = 254
"""Steps of the logarithmic scale of a cell; 0 is empty."""

SHADES = 15
"""The same for cells whose upper four bits hold the kind."""

KINDS = {
    "HTOD-COHERENCE": "#f29d38", "HTOD-PREFETCH": "#f7dc6f", "HTOD-USER": "#56b4e9",
    "HTOD-EVICTION": "#b58863", "HTOD-ACCESS_COUNTERS": "#4db6ac", "HTOD-UNKNOWN": "#c0c7d0",
    "DTOH-EVICTION": "#ef4b4b", "DTOH-COHERENCE": "#e07be0", "DTOH-USER": "#8f7cf0",
    "DTOH-PREFETCH": "#f49ac1", "DTOH-ACCESS_COUNTERS": "#7cb342", "DTOH-UNKNOWN": "#90a4ae",
    "MORE": "#ef4b4b", "LESS": "#56b4e9",
}  # fmt: skip
"""Colours of migrations by way and cause, and of differences."""


def map_payload(
    analysis: SessionAnalysis, room: int = ROOM, *, other: SessionAnalysis | None = None
) -> dict[str, Any] | None:
    """Return the maps for the page's script, or how another session's differ; None if empty."""
    axis = Axis.of(analysis)
    drawn = layers(analysis, axis) if other is None else differences(analysis, other, axis)
    if not drawn:
        return None
    texts = [encoded(layer) for layer in drawn]
    while sum(map(len, texts)) > room:
        at = max(range(len(texts)), key=lambda each: len(texts[each]))
        if drawn[at].values.shape[1] < 64:
            break
        drawn[at] = halved(drawn[at])
        texts[at] = encoded(drawn[at])
    first, end = analysis.window
    return {
        "rows": axis.rows,
        "start": first,
        "end": end,
        "stripes": [
            [s.name, s.group, s.first, s.rows, s.step, s.nbytes, colour(s.group, 0)]
            for s in axis.stripes
        ],
        "phases": [
            [span.phase, span.level, span.start_ns, span.end_ns]
            for span in analysis.phases[:MAP_PHASES]
        ],
        "layers": [
            {
                "title": layer.title,
                "unit": layer.unit,
                "evidence": layer.evidence,
                "columns": layer.values.shape[1],
                "max": float(layer.values.max()),
                "names": layer.names,
                "colours": [KINDS.get(code, "#c0c7d0") for code in layer.codes],
                "data": text,
            }
            for layer, text in zip(drawn, texts, strict=True)
        ],
    }


def encoded(layer: Layer) -> str:
    """Return a layer's cells as text."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)  # which browsers read as "deflate-raw"
    packed = packer.compress(cells(layer).tobytes()) + packer.flush()
    return base64.b64encode(packed).decode()


def cells(layer: Layer) -> NDArray[np.uint8]:
    """Return a byte for every cell: its value's logarithm, or kind (high half) and that."""
    steps = SHADES if layer.kinds is not None else LEVELS
    scale = steps / np.log1p(max(float(layer.values.max()), 1e-9))
    level = np.rint(np.log1p(layer.values) * scale)
    level = np.where(layer.values > 0, np.maximum(level, 1), 0).astype(np.uint8)
    if layer.kinds is None:
        return level
    drawn: NDArray[np.uint8] = np.where(level > 0, layer.kinds << 4 | level, 0).astype(np.uint8)
    return drawn


def halved(layer: Layer) -> Layer:
    """Return a layer with half the columns; a cell is of the kind of its larger half."""
    left, right = layer.values[:, ::2], layer.values[:, 1::2]
    kinds = layer.kinds
    if kinds is not None:
        kinds = np.where(left >= right, kinds[:, ::2], kinds[:, 1::2])
    return replace(layer, values=left + right, kinds=kinds)


def session_parts(
    analysis: SessionAnalysis, data: dict[str, Any], room: int = ROOM
) -> list[PagePart]:
    """Return the parts on one session; what the script draws goes into `data`."""
    session = analysis.original
    group, phase = tables.by_group(analysis), phase_tables.by_phase(analysis)
    parts = [
        PagePart(
            anchor="summary",
            title="Summary",
            verdict=verdict(analysis),
            cards=cards(session),
            items=overview_chart(analysis),
            notes=(*missing(session), *session.notes),
        ),
        PagePart(anchor="time", title="Where the time went", items=time_items(analysis, phase)),
        PagePart(anchor="groups", title="Groups of arrays", items=group_items(analysis, group)),
    ]
    maps = map_payload(analysis, room)
    if maps is not None:
        data["maps"] = maps
        parts.append(
            PagePart(
                anchor="pages",
                title="Pages over time",
                texts=(
                    "Rows are the bytes of the arrays, columns the time of the run, and the band "
                    "above shows its phases. Empty cells: no events. Accesses are the "
                    "thesis's Figures 4.2 to 4.9 for this run, faults its Figures 4.12 to 4.19.",
                ),
                map="maps",
            )
        )
    causes = tables.by_cause(analysis)
    if causes.rows:
        parts.append(
            PagePart(
                anchor="migrations",
                title="Migrations",
                items=[
                    cause_bars(causes),
                    causes,
                    *non_empty(tables.by_gpu(analysis), ping_pong(analysis)),
                ],
            )
        )
    more = [over_time.kernels(analysis), over_time.copies(analysis)]
    if any(table.rows for table in more):
        parts.append(PagePart(anchor="kernels", title="Kernels", items=non_empty(*more)))
    power = power_chart(analysis.session)
    if power is not None:
        parts.append(PagePart(anchor="energy", title="Energy", items=[power]))
    parts.append(
        PagePart(
            anchor="sources",
            title="Sources",
            texts=("What each source recorded, and what is missing:",),
            notes=data_sources(session) or ("the session lists no source",),
        )
    )
    return parts


def comparison(
    analyses: Sequence[SessionAnalysis], data: dict[str, Any], room: int
) -> list[PagePart]:
    """Return the parts that compare sessions with the first; `room` is that of a session's maps."""
    first, others = analyses[0], analyses[1:]
    parts = [
        PagePart(
            anchor="comparison",
            title="Comparison",
            verdict=_compared(first, others),
            items=[*comparison_tables(analyses)],
        )
    ]
    for number, other in enumerate(others, 2):
        name = ordinal(number)
        for key, title, texts, maps in (
            (name, f"Pages over time, the {name} session", (), map_payload(other, room // 2)),
            (f"{name}-difference", f"Pages over time, {name} less first session",
             ("Columns are those of the first run; the same step of the other run is below them, "
              "however long it took.",), map_payload(first, room // 2, other=other)),
        ):  # fmt: skip
            if maps is not None:
                data[key] = maps
                parts.append(PagePart(anchor=f"{key}-pages", title=title, texts=texts, map=key))
    return parts


def _compared(first: SessionAnalysis, others: Sequence[SessionAnalysis]) -> Verdict:
    """Return how sessions differ from the first, and what held them back."""
    found = [verdict(other) for other in others]
    texts = [difference(first, other, number) for number, other in enumerate(others, 2)]
    if not all(texts):
        return found[0]
    names = [f"{ordinal(number)} run: " for number in range(2, len(others) + 2)]
    return Verdict(
        finding=" ".join(texts),
        remedy=" ".join(f"{name.capitalize()}{each.finding} {each.remedy}"
                        for name, each in zip(names, found, strict=True)),
        grounds="; ".join(f"{name}{each.grounds}"
                          for name, each in zip(names, found, strict=True)),
    )  # fmt: skip


MOST_BARS = 24
"""Levels drawn."""

MOST_PHASES = 400
"""Phases in a band above a chart."""

MOST_LINES = 12
"""Lines in a chart of iterations, but for one of all later ones."""


def overview_chart(analysis: SessionAnalysis) -> list[Table | Figure]:
    """Return the first chart of a page, if there is anything to draw."""
    curves = overview(analysis)
    if curves is None:
        return []
    kind: ValueFormat = "bytes" if curves.title.startswith("Bytes") else "rate"
    chart = svg.areas(curves.times, curves.values, kind, band(analysis))
    return [Figure(name="overview", title=curves.title, svg=chart, evidence=curves.evidence)]


def band(analysis: SessionAnalysis) -> list[tuple[str, str, float, float]]:
    """Return the phases shown above a chart over time: the longest, if there are many."""
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


def time_items(analysis: SessionAnalysis, phases: Table) -> list[Table | Figure]:
    """Return where the seconds went: by level, by term of cost, by iteration."""
    figures = (_level_bars(analysis), _cost_bars(analysis), _iteration_lines(analysis))
    tables = (phase_tables.by_phase_and_group(analysis), phase_tables.iterations(analysis))
    return [*(figure for figure in figures if figure is not None), *non_empty(phases, *tables)]


def _level_bars(analysis: SessionAnalysis) -> Figure | None:
    levels = times_by_level(analysis)
    rows = [(each.label, each.seconds) for each in levels]
    others = times_outside_levels(analysis)
    if others:
        rows.insert(0, (", ".join(others), others))
    if not rows:
        return None
    left = len(rows) - MOST_BARS
    title = "Seconds by level and phase (as in Figure 4.11, whose iterations are levels)"
    if not any(span.level >= 0 for span in analysis.phases):
        title = "Seconds by phase"
    if any(each.cycle for each in levels):
        title += "; each cycle starts again at level 0"
    title += f"; {left} more are in the table" if left > 0 else ""
    chart = svg.bars(rows[:MOST_BARS], "seconds")
    how = evidence(analysis.session, "time")
    return Figure(name="phase-chart", title=title, svg=chart, evidence=how)


def _cost_bars(analysis: SessionAnalysis) -> Figure | None:
    """Return the terms of a simulated run's cost; other runs have none."""
    terms = {
        name.replace("_", " "): float(value)
        for name, value in (analysis.session.metadata.get("terms") or {}).items()
        if name != "hidden"
    }
    if not terms:
        return None
    return Figure(
        name="terms",
        title="Cost breakdown",
        svg=svg.bars([("all", terms)], "seconds"),
        evidence="modelled; costs that overlap are counted twice",
    )


def _iteration_lines(analysis: SessionAnalysis) -> Figure | None:
    series: Lines = {}
    cycles = iteration_cycles(analysis)
    for number, (cycle, span) in enumerate(zip(cycles, analysis.iterations, strict=True), 1):
        level = f", level {span.level}" if span.level >= 0 else ""
        name = f"{span.phase}{level}" + (f", cycle {cycle}" if cycle else "")
        if name not in series and len(series) >= MOST_LINES:
            name = "later ones"
        series.setdefault(name, {})[number] = span.seconds
    if all(len(by) < 2 for by in series.values()):
        return None
    phases = dict.fromkeys(span.phase for span in analysis.iterations)
    return Figure(
        name="iteration-chart",
        title=f"Iterations of the {' and the '.join(phases)} phase{'s' if len(phases) > 1 else ''}",
        svg=svg.lines(series, "seconds", x_title="iteration of the run", logarithmic=True),
        evidence=evidence(analysis.session, "time"),
    )


def group_items(analysis: SessionAnalysis, table: Table) -> list[Table | Figure]:
    """Return accesses, faults and bytes over time by group."""
    items: list[Table | Figure] = []
    for key, name, title, matter in (
        ("accesses", "access-chart", "Accesses by group (as in Figure 4.1)", "access"),
        ("gpu_faults", "fault-chart", "GPU faults by group (as in Figure 4.10)", "memory"),
    ):
        parts = {row["group"]: float(row.get(key) or 0) for row in table.rows}
        if sum(parts.values()):
            how = evidence(analysis.session, matter)  # type: ignore[arg-type]
            chart = svg.bars([("share", parts)], "count", share=True)
            items.append(Figure(name=name, title=title, svg=chart, evidence=how))
    for name, curves in (
        ("allocated-chart", over_time.allocated(analysis)),
        ("resident-chart", over_time.resident(analysis)),
    ):
        if curves is not None and curves.values:
            chart = svg.areas(curves.times, curves.values, "bytes", band(analysis))
            items.append(
                Figure(
                    name=name,
                    title=f"{curves.title}, over time",
                    svg=chart,
                    evidence=curves.evidence,
                )
            )
    return [*items, *non_empty(table, tables.by_array(analysis))]


def cause_bars(causes: Table) -> Figure:
    """Return migrated bytes by direction and cause."""
    directions: dict[str, dict[str, float]] = {}
    for row in causes.rows:
        directions.setdefault(row["way"], {})[row["cause"]] = float(row["bytes"])
    return Figure(
        name="cause-chart",
        title="Migrated bytes by cause",
        svg=svg.bars(list(directions.items()), "bytes"),
        evidence=causes.evidence,
    )


def power_chart(session: SessionData) -> Figure | None:
    """Return the power drawn over time, if it was recorded."""
    energy = session.energy or {}
    times, watts = energy.get("times_ns") or [], energy.get("watts") or []
    if len(times) < 2:
        return None
    step = max(1, len(times) // 400)
    line = dict(zip((time / 1e9 for time in times[::step]), watts[::step], strict=True))
    chart = svg.lines({"watts": line}, "count", x_title="seconds")
    how = evidence(session, "energy") if is_available(session, "energy") else "measured"
    return Figure(name="power-chart", title="Power, in watts", svg=chart, evidence=how)
