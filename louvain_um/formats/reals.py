"""Compiled reading of decimal numbers to the nearest double."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

import numpy as np
from numba import njit

LEAST, MOST = -64, 64
"""Decimal places for which reciprocals are tabled: 10⁶⁴ down to 10⁻⁶⁴."""

POWERS = 10.0 ** np.arange(23)
"""Powers of ten that a double holds exactly."""


def _reciprocals() -> tuple[np.ndarray, np.ndarray]:
    """Return, for each number of places p, T and e with 10⁻ᵖ in [T, T + 1) · 2⁻ᵉ, T ≥ 2⁶³."""
    tops, exponents = [], []
    for places in range(LEAST, MOST + 1):
        above, below = (1, 10**places) if places >= 0 else (10**-places, 1)
        exponent = 64 + below.bit_length() - above.bit_length()
        if (above << max(exponent, 0)) // (below << max(-exponent, 0)) >= 2**64:
            exponent -= 1
        tops.append((above << max(exponent, 0)) // (below << max(-exponent, 0)))
        exponents.append(exponent)
    return np.array(tops, np.uint64), np.array(exponents, np.int64)


TOPS, EXPONENTS = _reciprocals()


@njit(nogil=True, cache=True)
def read_real(data, pos):
    """Read a number without a sign.

    Returns
    -------
    value : the nearest double, where `sure`
    past : place behind the number
    sure : whether `value` is right; if not, the number is none, or too hard for this function
    real : whether it was written with a point or an exponent
    """
    mantissa = np.uint64(0)
    digits, point, start = 0, -1, pos
    while True:
        d = np.uint8(data[pos] - 48)
        if d < 10:
            if digits or d:
                digits += 1
            mantissa = mantissa * np.uint64(10) + np.uint64(d)
        elif data[pos] == 46 and point < 0:
            point = pos + 1
        else:
            break
        pos += 1
    places = pos - point if point >= 0 else 0
    real = point >= 0
    sure = pos - start > (1 if real else 0) and digits <= 19
    if sure and (data[pos] | 32) == 101:
        real = True
        pos += 1
        negative = data[pos] == 45
        if negative or data[pos] == 43:
            pos += 1
        first, exponent = pos, np.int64(0)
        while np.uint8(data[pos] - 48) < 10 and pos - first < 9:
            exponent = exponent * 10 + np.int64(data[pos] - 48)
            pos += 1
        sure = pos > first
        places += exponent if negative else -exponent
    value = 0.0
    if not sure or mantissa == 0:
        pass
    elif digits <= 15 and 0 <= places <= 22:
        # Both operands are exact, so that the quotient is the nearest double.
        value = np.float64(mantissa) / POWERS[places]
    elif digits <= 15 and -22 <= places < 0:
        value = np.float64(mantissa) * POWERS[-places]
    elif LEAST <= places <= MOST:
        value, sure = _scaled(mantissa, TOPS[places - LEAST], EXPONENTS[places - LEAST])
    else:
        sure = False
    return value, pos, sure, real


@njit(nogil=True, cache=True)
def _scaled(mantissa, top, exponent):
    """Return mantissa · top · 2⁻ᵉ rounded to a double, and whether that is surely the nearest.

    `top` falls short by less than one unit, and so does the upper half of the product: the
    true value lies in [upper, upper + 2). Where a boundary between two doubles lies in there
    as well, the answer is left to a slower parser.
    """
    shift = np.int64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if mantissa >> np.uint64(64 - step) == 0:
            mantissa <<= np.uint64(step)
            shift += step
    low32 = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a, b = mantissa >> half, mantissa & low32
    c, d = top >> half, top & low32
    middle = a * d + (b * d >> half)
    other = b * c + (middle & low32)
    upper = a * c + (middle >> half) + (other >> half)
    drop = np.uint64(11) if upper >> np.uint64(63) else np.uint64(10)
    rest = upper & ((np.uint64(1) << drop) - np.uint64(1))
    boundary = np.uint64(1) << (drop - np.uint64(1))
    kept = upper >> drop
    if rest > boundary:
        kept += np.uint64(1)
    sure = not (rest == boundary or rest + np.uint64(1) == boundary)
    return math.ldexp(np.float64(kept), np.int64(drop) + 64 - shift - exponent), sure
