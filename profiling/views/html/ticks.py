"""Positions and labels of a scale's ticks, at round numbers."""

from __future__ import annotations

import math
import re

from louvain_um.profiling.views.table import ValueFormat, format_value

MOST = 5
"""Approximate most steps of a scale."""


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
