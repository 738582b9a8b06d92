"""Small charts as SVG inside a page; `marks` has what they are drawn of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from louvain_um.profiling.views.canvas import colour
from louvain_um.profiling.views.html import marks
from louvain_um.profiling.views.html.marks import BAND, LETTER, WIDTH, decades, tick_label, ticks
from louvain_um.profiling.views.table import ValueFormat, format_short, format_value

LABEL = 150
ROW, GAP = 22, 7

NARROW = 620
"""Width of charts that stand side by side."""

LINE = 14
"""Height of a name at the end of its line."""


def bars(
    rows: Sequence[tuple[str, Mapping[str, float]]], kind: ValueFormat, *, share: bool = False
) -> Markup:
    """Return stacked horizontal bars, one per row; with `share` all of full width."""
    names = list(dict.fromkeys(n for _, parts in rows for n, value in parts.items() if value > 0))
    longest = max((sum(parts.values()) for _, parts in rows), default=0.0) or 1.0
    room = WIDTH - LABEL - 90
    body = []
    for at, (label, parts) in enumerate(rows):
        y, x = at * (ROW + GAP), float(LABEL)
        total = sum(parts.values())
        scale = room / ((total or 1.0) if share else longest)
        body.append(marks.text(LABEL - 8, y + ROW - 5, label, "end"))
        for name, value in parts.items():
            if value <= 0:
                continue
            tip = f"{label}, {name}: {format_value(value, kind)}"
            if total:
                tip += f" ({format_value(value / total, 'share')})"
            fill = colour(name, names.index(name))
            body.append(
                Markup(
                    '<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" fill="{}">'
                    "<title>{}</title></rect>"
                ).format(x, y, max(value * scale, 0.5), ROW, fill, tip)
            )
            label_text = format_value(value / total, "share") if share and total else name
            if value * scale > LETTER * len(label_text) + 8:
                body.append(marks.inside(x + value * scale / 2, y + ROW / 2, label_text))
            x += value * scale
        body.append(marks.text(x + 6, y + ROW - 5, format_short(total, kind), "start"))
    return marks.svg(len(rows) * (ROW + GAP), body) + marks.legend(names)


def areas(
    times: NDArray[np.float64],
    values: Mapping[str, NDArray[np.float64]],
    kind: ValueFormat,
    phases: Sequence[tuple[str, str, float, float]] = (),
) -> Markup:
    """Return stacked areas over time in seconds, under a band of phases."""
    height, left, bottom = 220, 70, 22
    total = np.sum(list(values.values()), axis=0)
    top = float(total.max()) or 1.0
    x = left + (WIDTH - left - 10) * (times - times[0]) / max(times[-1] - times[0], 1e-12)
    body = [*marks.grid(top, kind, left, height), *marks.clock(times, left, height)]
    body += marks.band(phases, times, left)
    base = np.zeros_like(total)
    for at, (name, value) in enumerate(values.items()):
        upper = base + value
        path = _steps(x, height - height * upper / top)
        back = _steps(x, height - height * base / top)[::-1]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*path, *back])
        tip = f"{name}: at most {format_value(float(value.max()), kind)}"
        body.append(
            Markup('<polygon points="{}" fill="{}"><title>{}</title></polygon>').format(
                points, colour(name, at), tip
            )
        )
        base = upper
    return marks.svg(height + bottom, body, above=BAND if phases else 0) + marks.legend(
        list(values)
    )


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    kind: ValueFormat,
    *,
    x_title: str = "",
    logarithmic: bool = False,
    colours: Mapping[str, str] | None = None,
    labelled: bool = False,
    width: int = WIDTH,
    limits: Sequence[float] | None = None,
) -> Markup:
    """Return lines through points, each series `(x, y)`; `logarithmic` applies to y.

    `limits` are the least and the largest y of charts that are compared.
    """
    colours = colours or {name: colour(name, at) for at, name in enumerate(series)}
    height, left, bottom = 220, 70, 34
    right = int(30 + LETTER * max((len(name) for name in series), default=0)) if labelled else 20
    room = width - left - right
    xs = np.concatenate([np.asarray(x, float) for x, _ in series.values()] or [np.zeros(1)])
    ys = np.concatenate(
        [np.asarray(y, float) for y in (*(y for _, y in series.values()), limits or ())]
    )
    ys = ys[np.isfinite(ys) & ((ys > 0) | (not logarithmic))]
    low, high = (float(ys.min()), float(ys.max())) if len(ys) else (0.1, 1.0)
    low = low / 1.2 if logarithmic else 0.0
    first, last = float(xs.min(initial=0.0)), float(xs.max(initial=1.0))

    def height_of(value: float) -> float:
        if logarithmic:
            part = np.log(max(value, low) / low) / max(np.log(high * 1.2 / low), 1e-9)
        else:
            part = value / (high or 1.0)
        return float(height - height * part)

    body: list[Markup] = []
    for tick in decades(low, high * 1.2) if logarithmic else ticks(high or 1.0, kind):
        y = height_of(tick)
        body += [
            marks.rule(left, y, width - right + 10),
            marks.text(left - 6, y + 4, tick_label(tick, kind), "end"),
        ]
    clock = x_title == "seconds"
    if clock:
        body += marks.clock(np.array([first, last]), left, height, room)
    else:
        for tick in np.unique(xs)[:: max(1, len(np.unique(xs)) // 12)]:
            x = left + room * (tick - first) / max(last - first, 1e-12)
            body.append(marks.text(x, height + 15, f"{tick:g}", "middle"))
        body.append(marks.text(left + room, height + 30, x_title, "end"))
    ends: list[tuple[float, float, str, str]] = []
    for name, (x_values, y_values) in series.items():
        fill = colours[name]
        points = [
            (
                left + room * (x - first) / max(last - first, 1e-12),
                height_of(y),
                x,
                y,
            )
            for x, y in zip(x_values, y_values, strict=True)
            if math.isfinite(y) and (y > 0 or not logarithmic)
        ]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b, _, _ in points)
        body.append(
            Markup('<polyline points="{}" fill="none" stroke="{}" stroke-width="1.6"/>').format(
                path, fill
            )
        )
        if points:
            ends.append((*points[-1][:2], name, fill))
        for a, b, x, y in points[:600]:
            where = format_value(x, "seconds") if clock else f"{x:g}"
            tip = f"{name}: {format_value(y, kind)} at {where}"
            body.append(marks.circle(a, b, fill, tip))
    if labelled:
        body += _end_labels(ends, height, left + room)
        return marks.svg(height + bottom, body, width=width)
    chart = marks.svg(height + bottom, body, width=width)
    return chart + marks.legend_of({name: colours[name] for name in series})


def heat(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> Markup:
    """Return a table of factors as coloured cells: blue above 1, orange below, by the logarithm."""
    left, head, cell = LABEL, 24, (WIDTH - LABEL - 10) / max(1, len(columns))
    height = 26
    body = [
        marks.text(left + cell * (at + 0.5), head - 8, name, "middle")
        for at, name in enumerate(columns)
    ]
    for line, (name, factors) in enumerate(zip(rows, values, strict=True)):
        y = head + line * height
        body.append(marks.text(left - 8, y + 17, name, "end"))
        for at, factor in enumerate(factors):
            x = left + cell * at
            missing = not math.isfinite(factor)
            strength = 0.0 if missing else min(abs(math.log2(max(factor, 1e-9))) / 3, 1.0)
            body.append(
                Markup(
                    '<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="3" fill="{}" '
                    'fill-opacity="{:.2f}"><title>{}</title></rect>'
                ).format(
                    x + 1, y + 1, cell - 2, height - 2,
                    "#8a8f98" if missing else "#2f7fd6" if factor >= 1 else "#e07b1f",
                    0.08 if missing else 0.1 + 0.6 * strength,
                    f"{name} at {columns[at]}: " + ("not run" if missing else f"{factor:.2f}×"),
                )
            )  # fmt: skip
            text = "–" if missing else f"{factor:.2f}×" if factor < 10 else f"{factor:.1f}×"
            body.append(marks.text(x + cell / 2, y + 17, text, "middle"))
    return marks.svg(head + height * len(rows) + 4, body)


def _end_labels(
    ends: Sequence[tuple[float, float, str, str]], height: float, x: float
) -> list[Markup]:
    """Return names right of `x` at the ends of lines, separated so that none covers another."""
    ordered = sorted(ends, key=lambda end: end[1])
    places = list[float]()
    for _, y, _, _ in ordered:
        places.append(max(y, places[-1] + LINE if places else 0.0))
    for at in range(len(places) - 1, -1, -1):
        most = places[at + 1] - LINE if at + 1 < len(places) else height + 4
        places[at] = min(places[at], most)
    found = list[Markup]()
    for (end, y, name, fill), place in zip(ordered, places, strict=True):
        found.append(
            Markup(
                '<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}" style="stroke:{}" stroke-width="0.8" '
                'stroke-dasharray="1 3" fill="none"/>'
                '<text class="end" data-colour="{}" x="{}" y="{:.1f}">{}</text>'
            ).format(end, y, x + 14, place, fill, fill, x + 18, place + 4, name)
        )
    return found


def _steps(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Return the corners of a curve that holds its value until the next point."""
    keep = np.flatnonzero(np.diff(y, prepend=np.nan, append=np.nan) != 0)
    corners: list[tuple[float, float]] = []
    for at in keep.tolist():
        if at >= len(y):
            continue
        if corners:
            corners.append((float(x[at]), corners[-1][1]))
        corners.append((float(x[at]), float(y[at])))
    corners.append((float(x[-1]), float(y[-1])))
    return corners
