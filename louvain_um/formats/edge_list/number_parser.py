"""Compiled reading of decimal numbers to the nearest double."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from louvain_um.core.compiled import kernel

MIN_PLACES, MAX_PLACES = -64, 64
"""Decimal places with a tabulated power: 10⁶⁴ down to 10⁻⁶⁴."""

POWERS = 10.0 ** np.arange(23)
"""Powers of ten that a double holds exactly."""

SMALL_POWERS = 10 ** np.arange(9, dtype=np.uint64)

ZEROS = np.uint64(0x3030303030303030)
"""Eight digits 0."""

ABOVE_NINE = np.uint64(0x7676767676767676)
"""Added to a byte, it sets the top bit if the byte exceeds 9."""

TOP_BITS = np.uint64(0x8080808080808080)

PAIRS = np.uint64(0x000000FF000000FF)
"""Mask of the first and third pair of digits; of the second and fourth after a shift."""

HUNDREDS, UNITS = np.uint64(100 + (10**6 << 32)), np.uint64(1 + (10**4 << 32))
"""Factors of the first and third, and of the second and fourth pair, in the upper half."""

EXACT = np.uint64(2**53)
"""Integers up to this one are exact as doubles."""

MIN_POWER_OF_TWO = -400
POWERS_OF_TWO = 2.0 ** np.arange(MIN_POWER_OF_TWO, 401)
"""Powers of two, beyond those that the tabulated powers of ten need."""


def _reciprocals() -> tuple[np.ndarray, np.ndarray]:
    """Return, for each number of places p, T and e with 10⁻ᵖ in [T, T + 1) · 2⁻ᵉ, T ≥ 2⁶³."""
    tops, exponents = [], []
    for places in range(MIN_PLACES, MAX_PLACES + 1):
        above, below = (1, 10**places) if places >= 0 else (10**-places, 1)
        exponent = 64 + below.bit_length() - above.bit_length()
        if (above << max(exponent, 0)) // (below << max(-exponent, 0)) >= 2**64:
            exponent -= 1
        tops.append((above << max(exponent, 0)) // (below << max(-exponent, 0)))
        exponents.append(exponent)
    return np.array(tops, np.uint64), np.array(exponents, np.int64)


TOPS, EXPONENTS = _reciprocals()


@kernel()
def read_digits(data, pos, value):
    """Read digits, up to eight at a time, and append them to `value`."""
    while pos + 8 <= len(data):
        # The first byte is the lowest; a digit becomes 0 … 9, other characters a larger value.
        word = word_at(data, pos) ^ ZEROS
        # Carries affect later bytes only, and only the first byte that is not a digit matters.
        count = trailing_zeros(((word + ABOVE_NINE) | word) & TOP_BITS) >> np.uint64(3)
        if count == 0:
            return value, pos
        # Pad with zeros in front, then combine neighbours: pairs, fours, eights.
        word <<= np.uint64(64) - (count << np.uint64(3))
        word = word * np.uint64(10) + (word >> np.uint64(8))
        fours = (word & PAIRS) * HUNDREDS
        others = ((word >> np.uint64(16)) & PAIRS) * UNITS
        value = value * SMALL_POWERS[count] + ((fours + others) >> np.uint64(32))
        pos += np.int64(count)
        if count < 8:
            return value, pos
    d = np.uint8(data[pos] - 48)
    while d < 10:
        value = value * np.uint64(10) + np.uint64(d)
        pos += 1
        d = np.uint8(data[pos] - 48)
    return value, pos


@kernel()
def read_real(data, pos):
    """Read a number without a sign."""
    start = pos
    # Few digits precede a point, many may follow it.
    mantissa = np.uint64(0)
    d = np.uint8(data[pos] - 48)
    while d < 10:
        mantissa = mantissa * np.uint64(10) + np.uint64(d)
        pos += 1
        d = np.uint8(data[pos] - 48)
    digits, places = pos - start, np.int64(0)
    real = data[pos] == 46
    if real:
        point = pos + 1
        mantissa, pos = read_digits(data, point, mantissa)
        places = np.int64(pos - point)
        digits += places
    sure = digits > 0
    if digits > 19:
        # Leading zeros do not count; more than 19 other digits overflow.
        while data[start] == 48 or data[start] == 46:
            digits -= data[start] == 48
            start += 1
        sure = digits <= 19
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
    elif mantissa <= EXACT and 0 <= places <= 22:
        # Both operands are exact, so the quotient is the nearest double.
        value = np.float64(mantissa) / POWERS[places]
    elif mantissa <= EXACT and -22 <= places < 0:
        value = np.float64(mantissa) * POWERS[-places]
    elif MIN_PLACES <= places <= MAX_PLACES:
        value, sure = _scaled(mantissa, TOPS[places - MIN_PLACES], EXPONENTS[places - MIN_PLACES])
        # An exact parser finds whether a large integer was rounded.
        sure = sure and real
    else:
        sure = False
    return value, pos, sure, real


@kernel()
def _scaled(mantissa, top, exponent):
    """Return mantissa · top · 2⁻ᵉ rounded to a double, and whether it is certainly the nearest."""
    shift = leading_zeros(mantissa)
    upper = upper_product(mantissa << shift, top)
    drop = np.uint64(11) if upper >> np.uint64(63) else np.uint64(10)
    rest = upper & ((np.uint64(1) << drop) - np.uint64(1))
    boundary = np.uint64(1) << (drop - np.uint64(1))
    kept = upper >> drop
    if rest > boundary:
        kept += np.uint64(1)
    sure = not (rest == boundary or rest + np.uint64(1) == boundary)
    exponent = np.int64(drop) + 64 - np.int64(shift) - exponent
    return np.float64(kept) * POWERS_OF_TWO[exponent - MIN_POWER_OF_TWO], sure


UINT64, WIDE = ir.IntType(64), ir.IntType(128)


@intrinsic
def _leading_zeros(typingctx: Any, value: Any) -> Any:
    """Count the zero bits above the highest set bit of a positive uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def _trailing_zeros(typingctx: Any, value: Any) -> Any:
    """Count the zero bits below the lowest set bit of a uint64; 64 for 0."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@intrinsic
def _ones(typingctx: Any, value: Any) -> Any:
    """Count the set bits of a uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def _upper_product(typingctx: Any, a: Any, b: Any) -> Any:
    """Multiply two uint64; return the upper half of the product."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        product = builder.mul(*(builder.zext(arg, WIDE) for arg in args))
        return builder.trunc(builder.lshr(product, ir.Constant(WIDE, 64)), UINT64)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def _word_at(typingctx: Any, data: Any, place: Any) -> Any:
    """Return the eight bytes of a uint8 array from `place` on as a little-endian uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = context.make_array(sig.args[0])(context, builder, args[0])
        first = cgutils.get_item_pointer(  # type: ignore[no-untyped-call,unused-ignore]
            context, builder, sig.args[0], view, [args[1]], wraparound=False
        )
        word = builder.load(builder.bitcast(first, UINT64.as_pointer()), align=1)
        return word if sys.byteorder == "little" else builder.bswap(word)

    return types.uint64(data, types.intp), codegen


leading_zeros: Any = _leading_zeros
trailing_zeros: Any = _trailing_zeros
ones: Any = _ones
upper_product: Any = _upper_product
word_at: Any = _word_at
"""Called in compiled code without `typingctx`, which Numba adds."""
