"""What SVG charts are drawn of: ticks, marks, axes, legends; every text is escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from louvain_um.profiling.views.canvas import colour
from louvain_um.profiling.views.table import ValueFormat, format_value

WIDTH = 1100
BAND = 22
"""Height of the band of phases above a chart over time."""

LETTER = 7.0
"""Approximate width of a character."""


MOST = 5
"""Approximate most steps of a scale."""


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


def text(x: float, y: float, text: str, anchor: str) -> Markup:
    """Return a text, cut where it is long."""
    short = text if len(text) < 34 else f"{text[:32]}…"
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, short
    )


def svg(height: float, body: Sequence[Markup], above: int = 0, width: int = WIDTH) -> Markup:
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
        body += [rule(left, y), text(left - 6, y + 4, tick_label(value, kind), "end")]
    return body


def clock(times: NDArray[np.float64], left: int, y: int, room: int = 0) -> list[Markup]:
    """Return labels of times below a chart."""
    room = room or WIDTH - left - 10
    first, length = float(times[0]), max(float(times[-1] - times[0]), 1e-12)
    step = (*ticks(length, "seconds", 10), length)[1]
    body = []
    for number in range(math.ceil(first / step - 1e-9), int((first + length) / step + 1e-9) + 1):
        time = float(f"{number * step:.12g}")
        x = left + room * (time - first) / length
        body.append(text(min(x, WIDTH - 24), y + 16, tick_label(time, "seconds"), "middle"))
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
        body.append(
            Markup(
                '<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" fill="{}">'
                "<title>{}</title></rect>"
            ).format(x, -BAND - 3, max(wide - 0.5, 0.3), BAND - 4, colour(phase, 0), tip)
        )
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
