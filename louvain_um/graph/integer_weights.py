"""Weights converted to integers, by a power of two as large as an exact total allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.plain_data import exact_numbers, is_real, number_array
from louvain_um.errors import GraphError, Underflow
from louvain_um.graph.limits import MAX_TOTAL_WEIGHT, GraphData

SMALL = 1 << 15
"""Edges below which a second thread costs more than it saves."""

TOO_LARGE = ", above 2^52; pass allow_rounding=True (--allow-rounding) to round them"
"""End of the error for integer weights that a graph cannot hold exactly."""

NEGATIVE = "negative; to keep signs, pass signed=True (--signed) and objective='signed'"

MOST_SHIFT = 1023
"""The largest power of two among the doubles: a graph's scale is one of them."""


def weight_array(values: Any, allow_rounding: bool = False) -> NDArray[Any]:
    """Return weights as integers or float64; the error names the first that is not a number."""
    try:
        numbers = number_array(values)
    except ValueError:  # lists of unequal lengths among them
        numbers = np.zeros((), object)
    if numbers.dtype.kind in "biuf":
        return numbers
    listed = list(values)
    for place, value in enumerate(listed):
        if not is_real(value):
            raise GraphError(f"weight at index {place} is not numeric ({value!r}); correct it")
    numbers = exact_numbers(listed)
    if numbers.dtype == object:
        if not allow_rounding:
            largest = max(int(each) for each in listed if isinstance(each, int | np.integer))
            raise GraphError(f"integer weights reach {_short(largest)}{TOO_LARGE}")
        try:
            numbers = np.array(listed, np.float64)
        except OverflowError:
            raise GraphError("a weight is above 1.8e308; correct it") from None
    return numbers


def _short(value: int) -> str:
    return f"{value:.3g}" if value < 2**1000 else "over 1e301"


def quantise(
    weights: NDArray[Any], allow_rounding: bool = False
) -> tuple[NDArray[np.int64], float, tuple[str, ...]]:
    """Turn weights into int64, by a power of two as large as an exact total allows."""
    notes: tuple[str, ...] = ()
    if weights.dtype.kind in "biu":
        refuse(weights < 0, weights, NEGATIVE)
        total = float(weights.sum(dtype=np.float64))
        if 2 * total < MAX_TOTAL_WEIGHT:
            return weights.astype(np.int64), 1.0, ()
        bits = int(np.bitwise_or.reduce(weights))
        spare = (bits & -bits).bit_length() - 1
        if 2 * total < MAX_TOTAL_WEIGHT * 2.0**spare:
            return (weights >> weights.dtype.type(spare)).astype(np.int64), 2.0**-spare, ()
        if not allow_rounding:
            raise GraphError(f"integer weights add up to {total:.3g}{TOO_LARGE}")
        weights = weights.astype(np.float64)
        notes = (f"integer weights add up to {total:.3g}, above 2^52: they are rounded",)
    if weights.dtype.kind != "f":
        raise GraphError(f"weights must be numbers, not {weights.dtype}; convert them")
    weights = np.ascontiguousarray(weights, np.float64)
    threads = parallel.default_threads() if len(weights) > SMALL else 1
    good, largest = np.ones(threads, np.bool_), np.zeros(threads, np.float64)
    parallel.run(_look, threads, weights, good, largest)
    if not good.all():
        refuse(np.isnan(weights), weights, "not a number; fill it, or leave the edge out")
        refuse(np.isinf(weights), weights, "infinite; correct it, or leave the edge out")
        refuse(weights < 0, weights, NEGATIVE)
    if largest.max() == 0.0:
        return np.zeros(len(weights), np.int64), 1.0, ()

    integers = np.empty(len(weights), np.int64)

    def scan(shift: int, *, write: bool) -> tuple[int, int, int]:
        return scaled(weights, shift, threads, integers if write else np.empty(0, np.int64))

    fitted = fit(float(largest.max()), len(weights), scan)
    if fitted.spare:
        integers >>= fitted.spare
    return integers, 2.0**fitted.shift, notes + fitted.notes


class Scan(Protocol):
    """Scales weights by a power of two and rounds them, on the host or on a device."""

    def __call__(self, shift: int, *, write: bool) -> tuple[int, int, int]:
        """Return total, bits in use, and number of positive weights that became 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightScale:
    """The power of two by which weights are scaled, and zero bits to drop from what was written."""

    shift: int
    spare: int
    notes: tuple[str, ...]


def fit(largest: float, listed: int, scan: Scan) -> WeightScale:
    """Find the scale of weights, the largest of which is above 0, and write them by `scan`."""
    # A coarse total in integers first: a float sum would depend on the order.
    coarse = 61 - listed.bit_length() - int(np.frexp(largest)[1])
    total, _, _ = scan(coarse, write=False)
    shift = largest_shift(total, coarse, listed)
    _, bits, underflows = scan(shift, write=True)
    # Drop common trailing zeros: whole numbers need no scale.
    spare = max(min((bits & -bits).bit_length() - 1, shift), 0)
    shift -= spare
    notes: tuple[str, ...] = ()
    if underflows:
        text = (
            f"{underflows} of {listed} positive weights are so small compared with the total "
            f"that they count as 0 (below {0.5 / 2.0**shift:.3g})"
        )
        notes = (Underflow(text),)
    return WeightScale(shift=shift, spare=spare, notes=notes)


def at_scale(weights: NDArray[Any], scale: float, threads: int) -> NDArray[np.int64]:
    """Return weights as the integers that `quantise` makes at a scale."""
    shift = int(np.frexp(scale)[1]) - 1
    if weights.dtype.kind != "f":
        integers: NDArray[np.int64] = (weights >> weights.dtype.type(-shift)).astype(np.int64)
        return integers
    integers = np.empty(len(weights), np.int64)
    scaled(np.ascontiguousarray(weights, np.float64), shift, threads, integers)
    return integers


def largest_shift(total: int, at: int, listed: int) -> int:
    """Return the largest power of two that keeps the total of the scaled weights exact."""
    shift = at
    while 2 * _shifted(total, shift - at) + 2 * listed >= MAX_TOTAL_WEIGHT:
        shift -= 1
    while 2 * _shifted(total, shift + 1 - at) + 2 * listed < MAX_TOTAL_WEIGHT:
        shift += 1
    return min(shift, MOST_SHIFT)


def scaled(
    weights: NDArray[np.float64], shift: int, threads: int, out: NDArray[np.int64]
) -> tuple[int, int, int]:
    """Return total, bits in use and number of zeros of ``weights * 2**shift``, rounded."""
    totals, bits, underflows = (np.zeros(threads, np.int64) for _ in range(3))
    # In two factors: 2^shift itself may lie outside the doubles.
    half = shift // 2
    factors = float(np.ldexp(1.0, half)), float(np.ldexp(1.0, shift - half))
    parallel.run(_scale, threads, weights, *factors, out, totals, bits, underflows)
    return int(totals.sum()), int(np.bitwise_or.reduce(bits)), int(underflows.sum())


def refuse(bad: NDArray[np.bool_], values: NDArray[Any], why: str, what: str = "weight") -> None:
    """Raise an error naming the first entry where `bad` holds."""
    if bad.any():
        first = int(np.argmax(bad))
        reason, semicolon, remedy = why.partition(";")
        raise GraphError(
            f"{what} at index {first} is {reason} ({values[first]}){semicolon}{remedy}"
        )


def _shifted(value: int, shift: int) -> int:
    return value << shift if shift >= 0 else -(-value >> -shift)


@kernel()
def _look(t, threads, weights, good, largest):
    """Store a thread's largest weight, and whether all its weights are finite and not negative."""
    most, fine = 0.0, True
    for i in range(len(weights) * t // threads, len(weights) * (t + 1) // threads):
        weight = weights[i]
        fine = fine and 0.0 <= weight < np.inf
        most = max(most, weight)
    good[t] = fine
    largest[t] = most


@kernel()
def _scale(t, threads, weights, factor, factor2, out, totals, bits, underflows):
    """Scale a thread's weights by both factors and round to integers, ties to even."""
    total, used, lost = np.int64(0), np.int64(0), np.int64(0)
    for i in range(len(weights) * t // threads, len(weights) * (t + 1) // threads):
        integer = np.int64(np.rint(weights[i] * factor * factor2))
        if len(out) > 0:
            out[i] = integer
        total += integer
        used |= integer
        lost += integer == 0 and weights[i] > 0
    totals[t], bits[t], underflows[t] = total, used, lost


MOST_DIGITS = 16
"""Digits that are tried; what needs more is written as it is, with up to 17."""

EXACT_POWERS = 22
"""The largest power of ten among the doubles: dividing by it rounds once."""


def weights_to_write(graph: GraphData) -> Callable[[NDArray[np.int64]], NDArray[Any]]:
    """Return a function from a graph's integer weights to the numbers to write."""
    if graph.scale == 1.0:
        return lambda integers: integers
    loops = int(np.abs(graph.loops).sum())
    arcs = graph.total_weight - 2 * loops
    if getattr(graph, "kind", "undirected") == "signed" and graph.weights is not None:
        arcs = int(np.abs(graph.weights).sum())
    total = arcs // 2 + loops
    if total == 0:
        return lambda integers: integers / graph.scale
    kept = int(np.frexp(graph.scale)[1]) - 1
    edges = graph.n_edges
    shift = largest_shift(total, kept, edges)
    # Rounding moves the total by less than one unit per edge, at this shift and at the next.
    room = MAX_TOTAL_WEIGHT - 2 * edges
    sums = (2 * total * 2.0 ** (shift - kept), 2 * total * 2.0 ** (shift + 1 - kept))
    if shift < kept or any(abs(room - at) <= 8 * edges for at in sums):
        return lambda integers: integers / graph.scale
    return lambda integers: np.sign(integers) * _shortest(np.abs(integers), kept, shift)


def _shortest(integers: NDArray[np.int64], kept: int, shift: int) -> NDArray[np.float64]:
    """Return doubles of few digits that round to ``integers · 2^(shift − kept)`` at `shift`."""
    exact = np.ldexp(integers.astype(np.float64), -kept)
    wanted = np.ldexp(integers.astype(np.float64), shift - kept)
    out = exact.copy()
    places = np.flatnonzero(integers)
    leading = np.floor(np.log10(exact[places])).astype(np.int64)
    for digits in range(1, MOST_DIGITS + 1):
        decimals = digits - 1 - leading
        usable = np.abs(decimals) <= EXACT_POWERS
        power = 10.0 ** np.abs(np.where(usable, decimals, 0))
        with np.errstate(over="ignore"):
            scaled = np.where(decimals > 0, exact[places] * power, exact[places] / power)
            mantissa = np.rint(scaled)
            found = np.where(decimals > 0, mantissa / power, mantissa * power)
            good = usable & (np.rint(np.ldexp(found, shift)) == wanted[places])
        out[places[good]] = found[good]
        places, leading = places[~good], leading[~good]
        if not len(places):
            break
    return out
