"""Real weights as the shortest decimals that a reader turns into the same integers.

A graph holds 0.1 as an integer times a power of two, close to 0.1 but not the nearest double. The
decimals here have as few digits as that precision needs, so a file that said 0.1 is written as 0.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.graph.graph_data import GraphData
from louvain_um.graph.integer_weights import largest_shift
from louvain_um.graph.limits import MAX_TOTAL_WEIGHT

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
    if graph.weights is not None and getattr(graph, "kind", "undirected") == "signed":
        arcs = int(np.abs(graph.weights).sum())
    total = arcs // 2 + loops
    if total == 0:
        return lambda integers: integers / graph.scale
    own = int(np.frexp(graph.scale)[1]) - 1
    edges = graph.n_edges
    shift = largest_shift(total, own, edges)
    # Rounding moves the total by less than one unit per edge, at this shift and at the next.
    room = MAX_TOTAL_WEIGHT - 2 * edges
    sums = (2 * total * 2.0 ** (shift - own), 2 * total * 2.0 ** (shift + 1 - own))
    if shift < own or any(abs(room - at) <= 8 * edges for at in sums):
        return lambda integers: integers / graph.scale
    return lambda integers: np.sign(integers) * _shortest(np.abs(integers), own, shift)


def _shortest(integers: NDArray[np.int64], own: int, shift: int) -> NDArray[np.float64]:
    """Return doubles of few digits that round to ``integers · 2^(shift − own)`` at `shift`."""
    exact = np.ldexp(integers.astype(np.float64), -own)
    wanted = np.ldexp(integers.astype(np.float64), shift - own)
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
