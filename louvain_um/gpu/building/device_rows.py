"""How many rows of a graph a device makes at a time, and the rows that it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.gpu.building.build import RANGE_ARCS, UNWEIGHTED, WEIGHTED, Builder, Ends, Listed
from louvain_um.gpu.graph import ARRAYS, DeviceGraph, FetchedGraph
from louvain_um.graph import rows
from louvain_um.placement.machine.profiles import rate

SHARE: Final = 0.9
"""Part of the free device memory that building may take."""

FIXED_BYTES: Final = 1 << 16
"""What building takes in addition to edges, vertices and arcs."""

AT_ONCE: Final = 1 << 30
"""Arcs that are sorted at once, at most: sorts of more than 2^31 keys are untried."""


def building_bytes(edges: int, n: int, *, weighted: bool) -> int:
    """Return the device memory that making rows takes, if none is longer than a range."""
    listed, arc, scratch = WEIGHTED if weighted else UNWEIGHTED
    arcs = edges * listed + 2 * edges * arc + min(2 * edges, RANGE_ARCS) * scratch
    return arcs + 32 * n + FIXED_BYTES


class Sizes(NamedTuple):
    """How much of a graph is on the device at a time: edges, arcs of rows, arcs being sorted."""

    edges: int
    most_arcs: int
    range_arcs: int


def sizes_within(limit: int, edges: int, n: int, *, weighted: bool, threads: int) -> Sizes | None:
    """Return sizes with which making rows fits a limit; None if the host makes them sooner."""
    records, least = 2 * edges, building_bytes(edges, n, weighted=weighted)
    listed, arc, scratch = WEIGHTED if weighted else UNWEIGHTED
    if least <= limit:
        at_once = least + max(0, records - RANGE_ARCS) * scratch <= limit
        at_once &= records <= AT_ONCE
        return Sizes(edges, records, max(records, RANGE_ARCS) if at_once else RANGE_ARCS)
    rest = limit - 32 * n - FIXED_BYTES
    # A piece of the list takes an eighth, twice: the next one comes before the last has gone.
    piece = rest // 8 // listed
    rest -= 2 * piece * listed
    arcs = min(RANGE_ARCS, rest // (arc + scratch))
    span = arcs if arcs < RANGE_ARCS else (rest - arcs * scratch) // arc
    if span <= 0 or records > rate("host_spans") // threads * span:
        return None
    return Sizes(max(piece, 1), span, arcs)


@dataclass(frozen=True, slots=True)
class RowsThere(rows.SortedRows):
    """The same on a device, as it holds them."""

    n_loops: int

    def here(self) -> rows.SortedRows:
        """Return the rows in host memory."""
        arrays = {name: self._there(check=False).fetched(name) for name in ARRAYS}
        return rows.SortedRows(**arrays, repeats=self.repeats, weightless=self.weightless)

    def graph(self, made: Any, **more: Any) -> Any:
        """Return a graph of these rows, which stay on the device."""
        there = self._there(scale=more["scale"], notes=more["notes"], check=False)
        return FetchedGraph.of(there, **more)

    def _there(self, **more: Any) -> DeviceGraph:
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        return DeviceGraph(**arrays, **more)


def rows_by(
    builder: Builder,
    copies: Any,
    ends: Ends,
    n: int,
    sizes: Sizes,
    *,
    summing: bool,
    stay: bool = False,
) -> rows.SortedRows:
    """Return the rows of a host's edges; `copies` has `sent` and `fetched` of a device."""
    # If they are to `stay` on the device, all of them must fit.
    weighted = ends.weights is not None
    given = ends._replace(weights=ends.weights.view(np.uint64)) if weighted else ends

    def piece(low: int, high: int) -> Ends:
        parts = (None if each is None else copies.sent(each[low:high]) for each in given)
        return type(given)(*parts)

    listed = Listed(edges=len(ends.u), n=n, weighted=weighted, summing=summing, piece=piece)
    there = rows_of(builder, listed, sizes, None if stay else copies.fetched)
    return there if stay else there.here()


def rows_of(
    builder: Builder, listed: Listed, sizes: Sizes, fetched: Callable[[Any], Any] | None
) -> RowsThere:
    """Return the rows of a list of edges, in host memory if `fetched` brings arrays there."""
    made = builder.rows(
        listed.pieces(sizes.edges),
        listed.n,
        weighted=listed.weighted,
        summing=listed.summing,
        most_arcs=sizes.most_arcs,
        fetched=fetched,
    )
    arrays = made.offsets, made.targets, made.weights, made.loops
    return RowsThere(*arrays, made.repeats, made.weightless, made.n_loops)
