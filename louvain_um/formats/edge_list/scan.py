"""Compiled reading of lines of numbers: two ids and, optionally, a weight.

The kernel stops at the first line it cannot read and returns its position; Python code then
finds out what is wrong with that line.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.formats.edge_list.float_parser import read_digits, read_real

TWO_IDS: Final = 0
"""Shape of a line: nothing may follow the two ids."""
IGNORE_REST: Final = 1
"""What follows the two ids is skipped."""
WEIGHT: Final = 2
"""A weight follows the two ids, and nothing else."""
WEIGHT_IGNORE_REST: Final = 3
"""A weight follows the two ids; the rest is skipped."""


@kernel(inline="always")
def blank(c):
    """Space, tab or carriage return."""
    return c == 32 or c == 9 or c == 13


@kernel(inline="always")
def pad(c, separator):
    """Return whether this is a blank that is not a separator."""
    return blank(c) and (separator == 32 or c != separator)


@kernel()
def skip_field(data, pos, separator):
    """Return where the next field starts or the line ends; quotes protect separators."""
    quoted = False
    while data[pos] != 10:
        c = data[pos]
        if not quoted and (c == separator or (separator == 32 and blank(c))):
            break
        if c == 34:
            quoted = not quoted
        pos += 1
    if separator != 32 and data[pos] == separator:
        pos += 1
    while pad(data[pos], separator):
        pos += 1
    return pos


@kernel()
def skip_comment(data, pos):
    """Return where the next line starts if this one is empty or a comment, else `pos`."""
    c = data[pos]
    if c == 35 or c == 37 or (c == 47 and data[pos + 1] == 47):
        while data[pos] != 10:
            pos += 1
        return pos + 1
    return pos + 1 if c == 10 else pos


@kernel()
def scan_numbers(data, separator, shape, place, min_id, max_id, u, v, w, deferred):
    """Read edges from whole lines; ids must lie in ``min_id … max_id``."""
    count, lines, n_deferred, pos = 0, 0, 0, 0
    real = False
    bad = -1
    stop = len(data)
    while pos < stop:
        line = pos
        while blank(data[pos]):
            pos += 1
        text = skip_comment(data, pos)
        if text != pos:
            pos = text
            lines += 1
            continue

        # The first id, a separator, the second id: 18 digits always fit an int64.
        first = pos
        value, pos = read_digits(data, pos, np.uint64(0))
        a = np.int64(value)
        gap = pos
        while pad(data[pos], separator):
            pos += 1
        if separator != 32 and data[pos] == separator:
            pos += 1
            while pad(data[pos], separator):
                pos += 1
        second = pos
        value, pos = read_digits(data, pos, np.uint64(0))
        b = np.int64(value)
        digits, others = gap - first, pos - second
        if digits == 0 or digits > 18 or second == gap or others == 0 or others > 18:
            bad = line
            break
        if a < min_id or a > max_id or b < min_id or b > max_id:
            bad = line
            break

        gap = pos
        while pad(data[pos], separator):
            pos += 1
        if data[pos] == 10:
            if shape >= WEIGHT:
                bad = line
                break
        else:
            if separator != 32 and data[pos] == separator:
                pos += 1
            # A separator is required here, and a third field must be allowed.
            if pos == gap or shape == TWO_IDS:
                bad = line
                break
            if shape >= WEIGHT:
                while pad(data[pos], separator):
                    pos += 1
                for _ in range(2, place):
                    pos = skip_field(data, pos, separator)
                start = pos
                w[count], pos, sure, has_point = read_real(data, pos)
                real = real or has_point
                past = data[pos]
                if not (sure and (past == 10 or past == separator or blank(past))):
                    while data[pos] != 10 and data[pos] != separator and not blank(data[pos]):
                        pos += 1
                    deferred[n_deferred, 0] = count
                    deferred[n_deferred, 1] = start
                    deferred[n_deferred, 2] = pos
                    n_deferred += 1
                while pad(data[pos], separator):
                    pos += 1
                if shape == WEIGHT and data[pos] != 10:
                    bad = line
                    break
            while data[pos] != 10:
                pos += 1
        pos += 1
        u[count] = a
        v[count] = b
        count += 1
        lines += 1
    return count, lines, bad, n_deferred, real
