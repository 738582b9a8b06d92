"""Small charts as SVG inside a page, and what they are drawn of; every text is escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from louvain_um.profiling.views.canvas import colour
from louvain_um.profiling.views.table import ValueFormat, format_short, format_value

WIDTH = 1100
BAND = 22
"""Height of the band of phases above a chart over time."""

LETTER = 7.0
"""Approximate width of a character."""

MOST = 5
"""Approximate most steps of a scale."""

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
        body.append(caption(LABEL - 8, y + ROW - 5, label, "end"))
        for name, value in parts.items():
            if value <= 0:
                continue
            tip = f"{label}, {name}: {format_value(value, kind)}"
            if total:
                tip += f" ({format_value(value / total, 'share')})"
            fill = colour(name, names.index(name))
            body.append(box(x, y, max(value * scale, 0.5), ROW, fill, tip))
            label_text = format_value(value / total, "share") if share and total else name
            if value * scale > LETTER * len(label_text) + 8:
                body.append(inside(x + value * scale / 2, y + ROW / 2, label_text))
            x += value * scale
        body.append(caption(x + 6, y + ROW - 5, format_short(total, kind), "start"))
    return chart(len(rows) * (ROW + GAP), body) + legend(names)


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
    body = [*grid(top, kind, left, height), *time_axis(times, left, height)]
    body += band(phases, times, left)
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
    return chart(height + bottom, body, above=BAND if phases else 0) + legend(list(values))


def lines(
    series: Mapping[str, Mapping[float, float]],
    kind: ValueFormat,
    *,
    x_title: str = "",
    logarithmic: bool = False,
    colours: Mapping[str, str] | None = None,
    labelled: bool = False,
    width: int = WIDTH,
    limits: Sequence[float] | None = None,
) -> Markup:
    """Return lines through points, each series y by x; `logarithmic` applies to y."""
    # `limits` are the least and the largest y of charts that are compared.
    colours = colours or {name: colour(name, at) for at, name in enumerate(series)}
    height, left, bottom = 220, 70, 34
    right = int(30 + LETTER * max((len(name) for name in series), default=0)) if labelled else 20
    room = width - left - right
    xs = np.array([x for by in series.values() for x in by] or [0.0], float)
    ys = np.array([*(y for by in series.values() for y in by.values()), *(limits or ())], float)
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
            rule(left, y, width - right + 10),
            caption(left - 6, y + 4, tick_label(tick, kind), "end"),
        ]
    clock = x_title == "seconds"
    if clock:
        body += time_axis(np.array([first, last]), left, height, room)
    else:
        for tick in np.unique(xs)[:: max(1, len(np.unique(xs)) // 12)]:
            x = left + room * (tick - first) / max(last - first, 1e-12)
            body.append(caption(x, height + 15, f"{tick:g}", "middle"))
        body.append(caption(left + room, height + 30, x_title, "end"))
    ends: list[tuple[float, float, str, str]] = []
    for name, by in series.items():
        fill = colours[name]
        points = [
            (left + room * (x - first) / max(last - first, 1e-12), height_of(y), x, y)
            for x, y in by.items()
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
            body.append(circle(a, b, fill, tip))
    if labelled:
        body += _end_labels(ends, height, left + room)
        return chart(height + bottom, body, width=width)
    legend = legend_of({name: colours[name] for name in series})
    return chart(height + bottom, body, width=width) + legend


def heat(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> Markup:
    """Return a table of factors as coloured cells: blue above 1, orange below, by the logarithm."""
    left, head, cell = LABEL, 24, (WIDTH - LABEL - 10) / max(1, len(columns))
    height = 26
    body = [
        caption(left + cell * (at + 0.5), head - 8, name, "middle")
        for at, name in enumerate(columns)
    ]
    for line, (name, factors) in enumerate(zip(rows, values, strict=True)):
        y = head + line * height
        body.append(caption(left - 8, y + 17, name, "end"))
        for at, factor in enumerate(factors):
            x = left + cell * at
            missing = not math.isfinite(factor)
            strength = 0.0 if missing else min(abs(math.log2(max(factor, 1e-9))) / 3, 1.0)
            fill = "#8a8f98" if missing else "#2f7fd6" if factor >= 1 else "#e07b1f"
            tip = f"{name} at {columns[at]}: " + ("not run" if missing else f"{factor:.2f}×")
            shade = 0.08 if missing else 0.1 + 0.6 * strength
            body.append(box(x + 1, y + 1, cell - 2, height - 2, fill, tip, shade))
            text = "–" if missing else f"{factor:.2f}×" if factor < 10 else f"{factor:.1f}×"
            body.append(caption(x + cell / 2, y + 17, text, "middle"))
    return chart(head + height * len(rows) + 4, body)


def box(
    x: float, y: float, width: float, height: float, fill: str, tip: str, shade: float | None = None
) -> Markup:
    """Return a rectangle with a tooltip; a cell of a table, shaded, has round corners."""
    cell = Markup("") if shade is None else Markup(' rx="3" fill-opacity="{:.2f}"').format(shade)
    return Markup(
        '<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" fill="{}"{}><title>{}</title></rect>'
    ).format(x, y, width, height, fill, cell, tip)


def circle(x: float, y: float, fill: str, tip: str) -> Markup:
    """Return a point with a tooltip."""
    return Markup(
        '<circle cx="{:.1f}" cy="{:.1f}" r="2.6" fill="{}"><title>{}</title></circle>'
    ).format(x, y, fill, tip)


def inside(x: float, y: float, text: str) -> Markup:
    """Return a text in the middle of a bar."""
    return Markup(
        '<text x="{:.1f}" y="{:.1f}" text-anchor="middle" class="inside">{}</text>'
    ).format(x, y + 4, text)


def rule(left: int, y: float, right: float = WIDTH - 10) -> Markup:
    """Return a horizontal line across a chart."""
    return Markup('<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" class="rule"/>').format(
        left, right, y, y
    )


def caption(x: float, y: float, text: str, anchor: str) -> Markup:
    """Return a text, cut where it is long."""
    short = text if len(text) < 34 else f"{text[:32]}…"
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, short
    )


def chart(height: float, body: Sequence[Markup], above: int = 0, width: int = WIDTH) -> Markup:
    """Return a chart of so many units of height, and of those above its origin."""
    return Markup(
        '<div class="plot"><svg class="chart" viewBox="0 {} {} {}" role="img" '
        'preserveAspectRatio="xMinYMin">{}</svg></div>'
    ).format(-6 - above, width, height + 10 + above, Markup("").join(body))


def grid(top: float, kind: ValueFormat, left: int, height: int) -> list[Markup]:
    """Return lines and labels of the values up to `top`."""
    body = []
    for value in ticks(top, kind):
        y = height - height * value / top
        body += [rule(left, y), caption(left - 6, y + 4, tick_label(value, kind), "end")]
    return body


def time_axis(times: NDArray[np.float64], left: int, y: int, room: int = 0) -> list[Markup]:
    """Return labels of times below a chart."""
    room = room or WIDTH - left - 10
    first, length = float(times[0]), max(float(times[-1] - times[0]), 1e-12)
    step = (*ticks(length, "seconds", 10), length)[1]
    body = []
    for number in range(math.ceil(first / step - 1e-9), int((first + length) / step + 1e-9) + 1):
        time = float(f"{number * step:.12g}")
        x = left + room * (time - first) / length
        body.append(caption(min(x, WIDTH - 24), y + 16, tick_label(time, "seconds"), "middle"))
    return body


def band(
    phases: Sequence[tuple[str, str, float, float]], times: NDArray[np.float64], left: int
) -> list[Markup]:
    """Return phases as a band above a chart, labelled where wide enough; slivers are left out."""
    first, length = float(times[0]), max(float(times[-1] - times[0]), 1e-12)
    room = WIDTH - left - 10
    body = []
    for label, phase, start, end in phases:
        x, wide = left + room * (start - first) / length, room * (end - start) / length
        if wide < 0.3:
            continue
        tip = f"{label}: {format_value(end - start, 'seconds')}"
        body.append(box(x, -BAND - 3, max(wide - 0.5, 0.3), BAND - 4, colour(phase, 0), tip))
        if wide > LETTER * len(label) + 6:
            body.append(inside(x + wide / 2, -BAND - 3 + (BAND - 4) / 2, label))
    return body


def legend(names: Sequence[str]) -> Markup:
    """Return the legend of colours."""
    return legend_of({name: colour(name, at) for at, name in enumerate(names)})


def legend_of(colours: Mapping[str, str]) -> Markup:
    """Return the legend of names with their colours."""
    items = [
        Markup('<span><i style="background:{}"></i>{}</span>').format(fill, name)
        for name, fill in colours.items()
    ]
    return Markup('<p class="legend">{}</p>').format(Markup("").join(items))


def ticks(top: float, kind: ValueFormat, most: int = MOST) -> list[float]:
    """Return even steps from 0 to at most `top`: 1, 2, 5, 10 …, or powers of two for bytes."""
    if not (top > 0 and math.isfinite(top)):
        return [0.0]
    least = top / most
    if kind == "bytes":
        step = 2.0 ** math.ceil(math.log2(least))
    else:
        decade = 10.0 ** math.floor(math.log10(least))
        step = next(decade * each for each in (1, 2, 5, 10) if decade * each >= least * (1 - 1e-9))
    return [float(f"{at * step:.12g}") for at in range(int(top / step * (1 + 1e-9)) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Return powers of ten between two numbers, with 2 and 5 if those are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for parts in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
        marks = [float(f"{part}e{at}") for at in range(first, last + 1) for part in parts]
        marks = [value for value in marks if low <= value <= high]
        if len(marks) > 2:
            break
    return marks[:: max(1, len(marks) // 7)]


def tick_label(value: float, kind: ValueFormat) -> str:
    """Return a tick's text without trailing zeros."""
    return re.sub(r"\.(?!\d)", "", re.sub(r"(\.\d*?)0+(?!\d)", r"\1", format_value(value, kind)))


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
