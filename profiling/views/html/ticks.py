"""Positions and labels of a scale's ticks, at round numbers."""

from __future__ import annotations

import math
import re

from louvain_um.profiling.views.table import ValueFormat, format_value

MOST = 5
"""Approximate most steps of a scale."""


def ticks(top: float, kind: ValueFormat, most: int = MOST) -> list[float]:
    """Return even steps from 0 to at most `top`: 1, 2, 5, 10 …, or powers of two for bytes.

    Examples
    --------
    >>> from louvain_um.profiling.views.html.ticks import ticks
    >>> ticks(0.81, "seconds"), ticks(90 << 20, "bytes")[1] / 2**20
    ([0.0, 0.2, 0.4, 0.6, 0.8], 32.0)
    """
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
    """Return powers of ten between two numbers, with 2 and 5 if those are few.

    Examples
    --------
    >>> from louvain_um.profiling.views.html.ticks import decades
    >>> decades(0.002, 3.0), decades(2.0, 30.0)
    ([0.01, 0.1, 1.0], [2.0, 5.0, 10.0, 20.0])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for parts in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
        marks = [float(f"{part}e{at}") for at in range(first, last + 1) for part in parts]
        marks = [value for value in marks if low <= value <= high]
        if len(marks) > 2:
            break
    return marks[:: max(1, len(marks) // 7)]


def tick_label(value: float, kind: ValueFormat) -> str:
    """Return a tick's text without trailing zeros.

    Examples
    --------
    >>> from louvain_um.profiling.views.html.ticks import tick_label
    >>> tick_label(0.2, "seconds"), tick_label(32 << 20, "bytes"), tick_label(1500, "rate")
    ('200 ms', '32 MiB', '1.5 k')
    """
    return re.sub(r"\.(?!\d)", "", re.sub(r"(\.\d*?)0+(?!\d)", r"\1", format_value(value, kind)))
