"""Format of the lines of an edge list, and rewriting of those whose ids do not stand first."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.formats.edge_list.scan import blank, skip_comment

LARGEST_ID = 10**18 - 1

MOST_ADDED = 8
"""Bytes by which a line can grow: quotes around two ids, and separators of missing fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """Format of the lines of an edge list."""

    separator: int = 32
    shape: int = 0
    place: int = 2
    min_id: int = 0
    max_id: int = LARGEST_ID
    first_line: int = 1
    expected: int | None = None
    columns: tuple[int, ...] | None = None
    decimal_comma: bool = False
    signed: bool = False

    def select(self, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return lines with the ids first; `data` itself where they are."""
        if self.columns is None:
            return data
        return select_columns(data, self.separator, self.columns, self.decimal_comma)


def select_columns(
    data: NDArray[np.uint8], separator: int, columns: tuple[int, ...], decimal_comma: bool
) -> NDArray[np.uint8]:
    r"""Return whole lines with some of their fields, one line for each line of `data`."""
    lines = int(np.count_nonzero(data == ord("\n")))
    out = np.empty(len(data) + MOST_ADDED * lines, np.uint8)
    wanted = np.full(max(columns) + 1, -1, np.int64)
    wanted[list(columns)] = np.arange(len(columns))
    return out[: _select(data, separator, wanted, len(columns), decimal_comma, out)]


@kernel()
def _field(data, pos, separator):
    """Return start and stop of the field at `pos`, quotes included, and where the next starts."""
    while blank(data[pos]) and (separator == 32 or data[pos] != separator):
        pos += 1
    start = pos
    if data[pos] == 34:
        pos += 1
        while data[pos] != 10 and (data[pos] != 34 or data[pos + 1] == 34):
            pos += 2 if data[pos] == 34 else 1
    while data[pos] != 10 and data[pos] != separator and not (separator == 32 and blank(data[pos])):
        pos += 1
    stop = pos
    while stop > start and blank(data[stop - 1]):
        stop -= 1
    if separator == 32:
        while blank(data[pos]):
            pos += 1
    elif data[pos] == separator:
        pos += 1
    return start, stop, pos


@kernel()
def _select(data, separator, wanted, count, decimal_comma, out):
    """Write the fields whose places `wanted` gives (−1: none) to `out`; return its length."""
    starts = np.zeros(count, np.int64)
    stops = np.zeros(count, np.int64)
    pos, at = 0, 0
    while pos < len(data):
        while blank(data[pos]) and data[pos] != separator:
            pos += 1
        after = skip_comment(data, pos)
        if after != pos:
            pos = after
            out[at] = 10
            at += 1
            continue
        starts[:], stops[:] = 0, 0
        field = 0
        while data[pos] != 10:
            start, stop, pos = _field(data, pos, separator)
            if field < len(wanted) and wanted[field] >= 0:
                starts[wanted[field]], stops[wanted[field]] = start, stop
            field += 1
        pos += 1
        for place in range(count):
            start, stop = starts[place], stops[place]
            if place:
                out[at] = separator
                at += 1
            # Unquoted, an empty id would shift the others, and # would start a comment.
            c = data[start]
            quote = place < 2 and (start == stop or c == 35 or c == 37 or c == 47)
            if place == 2 and c == 34 and stop > start + 1 and data[stop - 1] == 34:
                start += 1
                stop -= 1
            if quote:
                out[at] = 34
                at += 1
            for i in range(start, stop):
                c = data[i]
                if place == 2 and decimal_comma:
                    c = 46 if c == 44 else (44 if c == 46 else c)
                out[at] = c
                at += 1
            if quote:
                out[at] = 34
                at += 1
        out[at] = 10
        at += 1
    return at
