"""Page × time maps: rows are the arrays' bytes, columns the run's time, cells the events.

Blocks of 2 MiB that migrated more than once are where oversubscription costs most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.hardware import BLOCK
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.data import OTHER
from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.views.session.analysis import CAUSE_LABELS, SessionAnalysis, evidence
from louvain_um.profiling.views.table import Column, Table

TOP = 50
CHUNK = 1 << 20
"""Rows handled at once."""

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


def spread(low: I64, high: I64, weight: F64) -> tuple[NDArray[np.intp], I64, F64]:
    """Spread weights evenly over ranges of whole numbers, both ends included."""
    many = high - low + 1
    source = np.repeat(np.arange(len(low)), many)
    first = np.cumsum(many) - many
    cell = low[source] + (np.arange(len(source)) - first[source])
    return source, cell, (weight / many)[source]


def chunks(rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Yield rows in parts of bounded size."""
    for at in range(0, len(rows), CHUNK):
        yield rows[at : at + CHUNK]


def last_byte(analysis: SessionAnalysis, rows: NDArray[np.intp]) -> I64:
    """Return the address of the last byte of each row."""
    events = analysis.events
    size = np.where(events["rows"][rows] > 1, 1, np.maximum(events["bytes"][rows], 1))
    last: I64 = events["address"][rows].astype(np.int64) + size - 1
    return last


def by_block(analysis: SessionAnalysis, kind: Kind) -> tuple[I64, F64]:
    """Return the blocks that a kind of migration touched, and the bytes of each."""
    blocks: I64 = np.empty(0, np.int64)
    sums: F64 = np.empty(0)
    for rows in chunks(analysis.rows_of(kind)):
        low = analysis.events["address"][rows].astype(np.int64) // BLOCK
        high = last_byte(analysis, rows) // BLOCK
        weight = analysis.events["bytes"][rows].astype(np.float64)
        _, cell, share = spread(low, high, weight)
        blocks, at = np.unique(np.concatenate([blocks, cell]), return_inverse=True)
        sums = np.bincount(at, np.concatenate([sums, share]), len(blocks)).astype(np.float64)
    return blocks, sums


def ping_pong(analysis: SessionAnalysis) -> Table:
    """Return the blocks whose bytes were migrated to the device most often."""
    blocks, bytes_in = by_block(analysis, Kind.HTOD)
    blocks_out, bytes_out = by_block(analysis, Kind.DTOH)
    both = np.zeros(len(blocks))
    _, here, there = np.intersect1d(blocks, blocks_out, assume_unique=True, return_indices=True)
    both[here] = bytes_out[there]
    repeated = np.minimum(np.maximum(bytes_in - BLOCK, 0), both)
    order = [at for at in np.argsort(-repeated, kind="stable")[:TOP].tolist() if repeated[at] > 0]
    rows = []
    for at in order:
        address = int(blocks[at]) * BLOCK
        name, group, offset = _array_at(analysis, address)
        rows.append(
            {
                "array": name,
                "group": group,
                "offset": offset,
                "address": f"{address:#x}",
                "bytes_in": int(bytes_in[at]),
                "bytes_out": int(both[at]),
                "times": float(bytes_in[at] / BLOCK),
            }
        )
    return Table(
        name="ping-pong",
        title="Blocks migrated most often",
        columns=(
            Column("array", "array", "text"),
            Column("group", "group", "text"),
            Column("offset", "offset in array", "bytes"),
            Column("address", "address", "text"),
            Column("bytes_in", "to the device", "bytes"),
            Column("bytes_out", "to the host", "bytes"),
            Column("times", "times filled", "times"),
        ),
        rows=tuple(rows),
        evidence=f"memory {evidence(analysis.session, 'memory')}",
        about="Blocks of 2 MiB, the driver's unit of eviction, migrated in more than once.",
    )


def _array_at(analysis: SessionAnalysis, address: int) -> tuple[str, str, int | None]:
    """Return the array with most bytes in a block, its group, and where in it the block begins."""
    best, most = None, 0
    for life in analysis.session.lifetimes:
        shared = min(life.address + life.nbytes, address + BLOCK) - max(life.address, address)
        if shared > most:
            best, most = life, shared
    if best is None:
        return "(no array of the run)", "other", None
    return best.name, best.group, max(0, address - best.address)


def refetched_bytes(analysis: SessionAnalysis) -> tuple[int, int]:
    """Return bytes migrated to the device, and how many of them beyond a block's first filling."""
    _, bytes_in = by_block(analysis, Kind.HTOD)
    return int(bytes_in.sum()), int(np.maximum(bytes_in - BLOCK, 0).sum())


ROWS, COLUMNS = 1024, 1024
"""Approximate most cells of a map."""

BRIEF = 1 / 16
"""Least height of a short-lived array, relative to one as large that lives through the run."""

MOST_STRIPES = 120
"""Arrays that get rows of their own; the smallest of a group share some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stripe:
    """The rows of one array: from `first` on, `rows` of them, each `step` bytes."""

    name: str
    group: str
    first: int
    rows: int
    step: float
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """All arrays one above the other, group by group, and the time next to them."""

    stripes: tuple[Stripe, ...]
    stripe_of: NDArray[np.int32]
    edges: F64

    @classmethod
    def of(cls, analysis: SessionAnalysis, rows: int = ROWS, columns: int = COLUMNS) -> Axis:
        """Return the axis of a session; every array has a row, large and lasting ones more."""
        arrays = analysis.arrays
        first, end = analysis.window
        # Otherwise dozens of short-lived buffers would leave no rows for the graph.
        weight = [a.nbytes * min(max(a.alive_ns / (end - first), BRIEF), 1.0) for a in arrays]
        large = sorted(range(len(arrays)), key=lambda at: -weight[at])[:MOST_STRIPES]
        single = set(large)
        total = sum(weight) or 1
        stripes: list[Stripe] = []
        stripe_of = np.full(len(arrays) + 1, -1, np.int32)
        shared: dict[str, list[int]] = {}
        groups = list(dict.fromkeys(array.group for array in arrays))
        for group in groups:
            members = [at for at, array in enumerate(arrays) if array.group == group]
            for at in members:
                if at not in single:
                    shared.setdefault(group, []).append(at)
                    continue
                stripe_of[at] = len(stripes)
                size = arrays[at].nbytes
                share = max(2, round(rows * weight[at] / total))
                stripes.append(_stripe(stripes, arrays[at].name, group, size, share))
            if group in shared:
                small = shared[group]
                stripe_of[small] = len(stripes)
                largest = max(arrays[at].nbytes for at in small)
                stripes.append(_stripe(stripes, f"({len(small):,} smaller arrays)", group,
                                       largest, 2))  # fmt: skip
        stripe_of[-1] = len(stripes)
        stripes.append(_stripe(stripes, "(no array of the run)", OTHER, 1, 1))
        return cls(
            stripes=tuple(stripes), stripe_of=stripe_of, edges=np.linspace(first, end, columns + 1)
        )

    @property
    def rows(self) -> int:
        """Rows of all stripes."""
        return self.stripes[-1].first + self.stripes[-1].rows

    @property
    def columns(self) -> int:
        """Columns of time."""
        return len(self.edges) - 1

    def rows_of(self, group: str) -> tuple[int, int]:
        """Return the first row of a group and the one after its last; both 0 if it has none."""
        members = [stripe for stripe in self.stripes if stripe.group == group]
        return (members[0].first, members[-1].first + members[-1].rows) if members else (0, 0)

    def column(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the column of each time; times outside belong to the nearest."""
        at = np.searchsorted(self.edges, times, side="right") - 1
        clipped: NDArray[np.int64] = np.clip(at, 0, self.columns - 1)
        return clipped

    def followed(self, first: SessionAnalysis, other: SessionAnalysis) -> Axis:
        """Return another session's axis: the rows of the first one's arrays, phases aligned."""
        # A column of it is when the other run was where the first one was.
        known = {array.name: self.stripe_of[at] for at, array in enumerate(first.arrays)}
        outside = self.stripe_of[-1]
        stripes = [known.get(array.name, outside) for array in other.arrays]
        ends: list[dict[tuple[str, int, int, int], tuple[int, int]]] = []
        for analysis in (first, other):
            found: dict[tuple[str, int, int, int], tuple[int, int]] = {}
            for span in analysis.phases:
                at = 0
                while (key := (span.phase, span.level, span.iteration, at)) in found:
                    at += 1
                found[key] = (span.start_ns, span.end_ns)
            ends.append(found)
        shared = [key for key in ends[0] if key in ends[1]]
        knots = {(ends[0][key][i], ends[1][key][i]) for key in shared for i in (0, 1)}
        knots.update(zip(first.window, other.window, strict=True))
        x, y = np.array(sorted(knots), np.float64).T
        edges = np.interp(self.edges, x, np.maximum.accumulate(y))
        return replace(self, stripe_of=np.array([*stripes, outside], np.int32), edges=edges)


def _stripe(before: Sequence[Stripe], name: str, group: str, nbytes: int, rows: int) -> Stripe:
    first = before[-1].first + before[-1].rows if before else 0
    rows = max(1, min(rows, -(-nbytes // 4096) if nbytes >= 8192 else 2))
    return Stripe(
        name=name, group=group, first=first, rows=rows, step=max(nbytes, 1) / rows, nbytes=nbytes
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One kind of event on an axis."""

    title: str
    unit: str
    evidence: str
    values: F64
    kinds: NDArray[np.uint8] | None = None
    names: tuple[str, ...] = ()
    codes: tuple[str, ...] = field(default=())


PLAIN: Final = (
    (Kind.EVICTION, "memory", "Evictions", "bytes"),
    (Kind.CPU_FAULT, "memory", "CPU faults", "faults"),
    (Kind.REMOTE_ACCESS, "access", "Read in place", "bytes"),
)
"""Kinds of events that are layers as they are: evidence, title and unit."""


def layers(analysis: SessionAnalysis, axis: Axis) -> list[Layer]:
    """Return every layer that is not empty."""
    found = [make(analysis, axis) for make in (accesses, faults, migrations)]
    for kind, matter, title, unit in PLAIN:
        # Migrations, where they were recorded, include evictions.
        if kind != Kind.EVICTION or analysis.driver_totals is not None:
            column = "bytes" if unit == "bytes" else "count"
            values = of_kind(analysis, axis, kind, column=column)
            found.append(_layer(analysis, matter, title, unit, values))
    return [layer for layer in found if layer is not None]


def differences(first: SessionAnalysis, other: SessionAnalysis, axis: Axis) -> list[Layer]:
    """Return what another session has more and less than the first, on the first one's axis."""
    both = (first, axis), (other, axis.followed(first, other))
    sides = [{layer.title: layer for layer in layers(*its)} for its in both]
    found = []
    for title in dict.fromkeys([*sides[0], *sides[1]]):
        one, two = (side.get(title) for side in sides)
        known = one or two
        assert known is not None
        change = (two.values if two else 0.0) - (one.values if one else 0.0)
        how = dict.fromkeys(layer.evidence for layer in (one, two) if layer)
        found.append(
            replace(known, values=np.abs(change), kinds=np.where(change > 0, 1, 2).astype(np.uint8),
                    evidence="; ".join(how), names=("more than in the first run", "less"),
                    codes=("MORE", "LESS"))
        )  # fmt: skip
    return [layer for layer in found if layer.values.any()]


def accesses(analysis: SessionAnalysis, axis: Axis) -> Layer | None:
    """Return accesses: from maps where there are any, else from events."""
    maps = [page for page in analysis.maps if page.kind == "access"]
    values = _from_maps(analysis, axis, maps) if maps else of_kind(analysis, axis, Kind.ACCESS)
    return _layer(analysis, "access", "Accesses", "accesses", values)


def faults(analysis: SessionAnalysis, axis: Axis) -> Layer | None:
    """Return faults of the GPU."""
    maps = [page for page in analysis.maps if page.kind == "fault"]
    values = of_kind(analysis, axis, Kind.GPU_FAULT_GROUP)
    if maps and not values.any():
        values = _from_maps(analysis, axis, maps)
    return _layer(analysis, "memory", "GPU faults", "faults", values)


def migrations(analysis: SessionAnalysis, axis: Axis) -> Layer | None:
    """Return migrated bytes, and in each cell the main direction and cause."""
    total = np.zeros((axis.rows, axis.columns))
    most = np.zeros_like(total)
    kinds = np.zeros(total.shape, np.uint8)
    names, codes = [], []
    for kind, way in ((Kind.HTOD, "to the device"), (Kind.DTOH, "to the host")):
        for cause in Cause:
            if not len(analysis.rows_of(kind, cause)):
                continue
            values = of_kind(analysis, axis, kind, cause, column="bytes")
            names.append(f"{way}: {CAUSE_LABELS[cause]}")
            codes.append(f"{kind.name}-{cause.name}")
            kinds[values > most] = len(names)
            np.maximum(most, values, out=most)
            total += values
    layer = _layer(analysis, "memory", "Migrations by cause", "bytes", total)
    return layer and replace(layer, kinds=kinds, names=tuple(names), codes=tuple(codes))


def _layer(
    analysis: SessionAnalysis, matter: str, title: str, unit: str, values: F64
) -> Layer | None:
    if not values.any():
        return None
    how = evidence(analysis.session, matter)  # type: ignore[arg-type]
    return Layer(title=title, unit=unit, evidence=how, values=values)


def of_kind(
    analysis: SessionAnalysis,
    axis: Axis,
    kind: Kind,
    cause: Cause | None = None,
    column: str = "count",
) -> F64:
    """Return the sums of a column in every cell; bytes are spread over the rows they cover."""
    total = np.zeros(axis.rows * axis.columns)
    starts = np.array([life.address for life in analysis.session.lifetimes] or [0], np.int64)
    first_of = np.array([stripe.first for stripe in axis.stripes], np.int64)
    rows_of = np.array([stripe.rows for stripe in axis.stripes], np.int64)
    step_of = np.array([stripe.step for stripe in axis.stripes])
    for rows in chunks(analysis.rows_of(kind, cause)):
        stripe = axis.stripe_of[analysis.array_of[rows]]
        owner = analysis.owners[rows]
        begin = np.where(owner >= 0, starts[owner], 0)
        last_row = first_of[stripe] + rows_of[stripe] - 1
        known = owner >= 0

        def at(address: NDArray[np.int64]) -> NDArray[np.int64]:
            offset = np.where(known, address - begin, 0)  # noqa: B023 - used at once
            place = first_of[stripe] + (offset / step_of[stripe]).astype(np.int64)  # noqa: B023
            row: NDArray[np.int64] = np.clip(place, first_of[stripe], last_row)  # noqa: B023
            return row

        low = at(analysis.events["address"][rows].astype(np.int64))
        high = at(last_byte(analysis, rows)) if column == "bytes" else low
        source, cell, share = spread(low, high, analysis.events[column][rows].astype(np.float64))
        flat = cell * axis.columns + axis.column(analysis.events["time"][rows])[source]
        total += np.bincount(flat, share, len(total))
    return total.reshape(axis.rows, axis.columns)


def _from_maps(analysis: SessionAnalysis, axis: Axis, maps: Sequence[PageMap]) -> F64:
    """Return counts of maps on the axis; a cell of a map is spread evenly over its extent."""
    total = np.zeros((axis.rows, axis.columns))
    index = {array.name: at for at, array in enumerate(analysis.arrays)}
    for page in maps:
        at = index.get(page.array, len(analysis.arrays))
        stripe = axis.stripes[axis.stripe_of[at]]
        edges = np.arange(len(page.counts) + 1, dtype=np.float64) * page.page_bytes
        # Of one type: NumPy crashes where it gets no memory to convert a part of an array.
        target = np.arange(stripe.rows + 1, dtype=np.float64) * stripe.step
        if at == len(analysis.arrays):
            target = np.array([0.0, edges[-1]])
        target[-1] = max(target[-1], edges[-1])
        part = rebin(page.counts.astype(np.float64), edges, target)
        part = rebin(part.T, page.edges.astype(np.float64), axis.edges).T
        total[stripe.first : stripe.first + stripe.rows] += np.ascontiguousarray(part)
    return total


def rebin(values: F64, edges: F64, target: F64) -> F64:
    """Return sums of rows between other edges, each row spread evenly between its own."""
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    at = np.clip(np.searchsorted(edges, target, "right") - 1, 0, len(edges) - 2)
    width = np.maximum(edges[at + 1] - edges[at], 1e-9)
    part = np.clip((target - edges[at]) / width, 0, 1)
    # Of one shape: NumPy crashes where it gets no memory to go over arrays of several.
    part = np.repeat(part, total.shape[1]).reshape(len(part), -1)
    reached = total[at] + part * (total[at + 1] - total[at])
    made: F64 = np.diff(reached, axis=0)
    return made
