"""The rows of a graph from edges or a matrix in device memory: the host's, bit for bit.

Rows are written in any order first, then sorted a range at a time, so that the scratch memory of
sorting fits what the device has. Where the rows themselves do not, they are made a span at a time.
What is unusual (other types, ids or weights that an error is to name, rounding) is left to the
host.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime.structs import COLUMNS, column_type, layout
from louvain_um.graph.build import merge_notes
from louvain_um.graph.integer_weights import fit
from louvain_um.graph.limits import MAX_TOTAL_WEIGHT, MAX_VERTICES, Duplicates

COUNTS: Final = layout(
    barrier=np.uint64, least=np.int64, most=np.int64,
    **dict.fromkeys(
        (
            "loops", "kept", "unique", "distinct_arcs", "distinct_loops", "weightless", "heaviest",
            "bad", "largest", "bits", "low", "high", "total", "underflows", "difference",
        ),
        np.uint64,
    ),
)  # fmt: skip
"""`BuildCounts` of build.cu."""

PARTIALS: Final = 4096
"""Blocks of a launch, at most."""

RANGE_ARCS: Final = 1 << 25
"""Arcs that are sorted at a time, at most; a single row may be longer."""

UNWEIGHTED: Final = 8, 4, 24
"""Bytes of an edge; of an arc; and of sorting it: its key, and two words of the sort's own."""

WEIGHTED: Final = 16, 16, 64
"""The same with weights. Sorting takes an arc's place in addition, both in order, its edge with
their sum."""


class Ends(NamedTuple):
    """Some edges: both ends, uint32, and weights, uint64, or None."""

    u: Any
    v: Any
    weights: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltRows:
    """Compressed rows on the device, ascending and without repetition."""

    offsets: Any
    targets: Any
    weights: Any
    loops: Any
    repeats: int
    weightless: int
    n_loops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Integers:
    """Weights as integers, uint64, and the scale and notes of `quantise`."""

    values: Any
    scale: float
    notes: tuple[str, ...] = ()


class RawRows(NamedTuple):
    """Rows with repetition: where they begin, and degrees, loops and counts of what is left."""

    begins: Any
    degrees: Any
    loops: Any
    counts: Any


class RowSpan(NamedTuple):
    """Rows `low` to `end` - 1: their targets, and their weights or None."""

    low: int
    end: int
    targets: Any
    sums: Any


class LongRowError(Exception):
    """A row that is longer than what may be in memory at a time."""


class Builder:
    """Builds graphs with the arrays and kernels of a device, a `CudaDevice`."""

    def __init__(self, device: Any, range_arcs: int = RANGE_ARCS) -> None:
        self.device = device
        self.xp = device.xp
        self.range_arcs = range_arcs
        self.partials = self.xp.empty(PARTIALS, np.int64)

    def from_edges(
        self,
        u: Any,
        v: Any,
        weights: Any = None,
        *,
        n_vertices: int | None = None,
        duplicates: Duplicates | None = None,
    ) -> DeviceGraph | None:
        """Return the graph of a list of edges; None if the host must look at it."""
        columns = [column for column in (u, v, weights) if column is not None]
        if any(column.ndim != 1 or len(column) != len(u) for column in columns):
            return None
        sources, targets = self.ids(u), self.ids(v)
        if sources is None or targets is None:
            return None
        n = max(sources[1], targets[1]) + 1
        n = n if n_vertices is None else n_vertices
        if not max(sources[1], targets[1]) < n <= MAX_VERTICES:
            return None
        integers = None
        if weights is not None:
            integers = self.quantised(weights)
            if integers is None:
                return None
        summing = duplicates == "sum" or (duplicates is None and weights is not None)
        given = None if integers is None else integers.values
        ends = Ends(sources[0], targets[0], given)
        weighted = summing or given is not None
        made = self.rows(lambda: [ends], n, weighted=weighted, summing=summing)
        notes = () if integers is None else integers.notes
        notes += merge_notes(len(u), made.repeats, made.weightless, made.n_loops, summing)
        scale = 1.0 if integers is None else integers.scale
        return DeviceGraph(made.offsets, made.targets, made.weights, made.loops, scale, notes=notes)

    def ids(self, column: Any) -> tuple[Any, int] | None:
        """Return ids as uint32 and the largest, -1 of none; None unless all are ids."""
        if column.dtype.kind not in "iu":
            return None
        column = self._column(column)
        if not len(column):
            return self.xp.empty(0, np.uint32), -1
        counts = self._counts()
        out = self.xp.empty(len(column), np.uint32)
        self._launch("take_ids", len(column), column, column_type(column), out, counts)
        found = self._read(counts)
        if found["least"] < 0 or found["most"] >= MAX_VERTICES:
            return None
        return out, int(found["most"])

    def quantised(self, weights: Any, *, twice: bool = False) -> Integers | None:
        """Return weights as integers; None if the host must refuse or round them.

        `twice` says that every edge is listed in both directions.
        """
        if weights.dtype.kind not in "biuf" or weights.dtype.itemsize > 8:
            return None
        weights = self._column(weights)
        count, counts, each = len(weights), self._counts(), 2 if twice else 1
        values = self.xp.empty(count, np.uint64)
        if weights.dtype.kind != "f":
            self._launch("look_at_integers", count, weights, column_type(weights), counts)
            found = self._read(counts)
            total, bits = int(found["low"]) + (int(found["high"]) << 32), int(found["bits"])
            total //= each
            spare = max((bits & -bits).bit_length() - 1, 0)
            shift = 0 if 2 * total < MAX_TOTAL_WEIGHT else spare
            if found["bad"] or 2 * total >= MAX_TOTAL_WEIGHT * 2.0**shift:
                return None
            self._launch(
                "take_integers", count, weights, column_type(weights), np.int64(shift), values
            )
            return Integers(values=values, scale=2.0**-shift)
        self._launch("look_at_reals", count, weights, column_type(weights), counts)
        found = self._read(counts)
        if found["bad"]:
            return None
        largest = float(found["largest"].view(np.float64))
        if largest == 0.0:
            values.fill(0)
            return Integers(values=values, scale=1.0)

        def scaled(shift: int, *, write: bool) -> tuple[int, int, int]:
            half = shift // 2
            factors = np.float64(np.ldexp(1.0, half)), np.float64(np.ldexp(1.0, shift - half))
            counts = self._counts()
            out = values if write else None
            self._launch("scale_reals", count, weights, column_type(weights), *factors, out, counts)
            found = self._read(counts)
            return (
                int(found["total"]) // each,
                int(found["bits"]),
                int(found["underflows"]) // each,
            )

        fitted = fit(largest, count // each, scaled)
        if fitted.spare:
            self._launch("shorten", count, values, np.int64(fitted.spare))
        return Integers(values=values, scale=2.0**fitted.shift, notes=fitted.notes)

    def rows(
        self,
        pieces: Callable[[], Iterable[Ends]],
        n: int,
        *,
        weighted: bool,
        summing: bool,
        most_arcs: int | None = None,
        fetched: Callable[[Any], Any] | None = None,
    ) -> BuiltRows:
        """Return the rows of a list of edges, in host memory if `fetched` brings arrays there.

        Rows with more than `most_arcs` are made a span of rows at a time, for each of which the
        pieces of the list are asked for again; a `LongRowError` if a single row is too long.
        """
        xp, counts = self.xp, self._counts()
        degrees = xp.zeros(n, np.uint32)
        for u, v, _ in pieces():
            self._launch("count_ends", len(u), u, v, degrees, counts)
        raw = self._offsets(degrees, counts)
        records = int(raw[-1])
        most = max(records, 1) if most_arcs is None else most_arcs
        if most < records and int(degrees.max()) > min(most, self.range_arcs):
            raise LongRowError
        n_loops = int(self._read(counts)["loops"])
        loops = xp.zeros(n, np.uint64) if n_loops else None
        rows = RawRows(raw, degrees, loops, counts)
        parts: list[tuple[Any, Any]] = []
        low = written = 0
        while low < n:
            high = self._range_end(raw, low, most)
            arcs = int(raw[high]) - int(raw[low])
            targets = xp.empty(arcs, np.uint32)
            sums = xp.empty(arcs, np.uint64) if weighted else None
            bounds = np.int64(low), np.int64(high)
            for u, v, weights in pieces():
                self._launch(
                    "scatter_ends", len(u), u, v, weights, *bounds, raw, degrees, targets, sums
                )
            kept = self._sorted(rows, RowSpan(low, high, targets, sums), summing=summing)
            if high - low < n:  # one of several spans
                assert fetched is not None
                targets = fetched(targets[:kept])
                sums = None if sums is None else fetched(sums[:kept])
            parts.append((targets, sums))
            del targets, sums
            written += kept
            low = high
        found = self._read(counts)
        offsets = self._offsets(degrees, counts)
        distinct = int(found["distinct_arcs"]) if weighted else written
        again = records - n_loops - distinct + 2 * (n_loops - int(found["distinct_loops"]))
        if loops is not None:
            n_loops = int(xp.count_nonzero(loops))
        if len(parts) > 1:
            targets, weights = _joined(parts, int(found["heaviest"]))
        else:
            none = xp.empty(0, np.uint32), xp.empty(0, np.uint64) if weighted else None
            targets, sums = parts[0] if parts else none
            targets = _kept(targets, written)
            weights = None if sums is None else self._narrowed(sums, written, found["heaviest"])
            if fetched is not None:
                targets, weights = fetched(targets), None if weights is None else fetched(weights)
        bring = fetched or _same
        return BuiltRows(
            offsets=bring(offsets),
            targets=targets,
            weights=weights,
            loops=bring(loops) if n_loops else None,
            repeats=again // 2,
            weightless=int(found["weightless"]) // 2,
            n_loops=n_loops,
        )

    def _sorted(self, rows: RawRows, span: RowSpan, *, summing: bool) -> int:
        """Sort rows of a span, without repetition; return how many arcs they have then."""
        xp, raw, low, written = self.xp, rows.begins, span.low, 0
        first = int(raw[low])
        while low < span.end:
            high = min(self._range_end(raw, low, self.range_arcs), span.end)
            begin, end = int(raw[low]) - first, int(raw[high]) - first
            if end > begin:
                keys = xp.empty(end - begin, np.uint64)
                bounds = np.int64(low), np.int64(high)
                self._launch_of(len(keys), "row_keys", *bounds, raw, span.targets[begin:end], keys)
                # Rows only become shorter: what is overwritten has been read.
                out = span.targets[written:], rows.degrees, rows.loops, self.partials, rows.counts
                if span.sums is None:
                    keys.sort()
                    self._launch("keep_arcs", len(keys), keys, bounds[0], *out)
                else:
                    unique, merged = self._merged(
                        keys, span.sums[begin:end], rows.counts, summing=summing
                    )
                    self._launch(
                        "keep_weighted", len(unique), unique, merged, bounds[0], out[0],
                        span.sums[written:], *out[1:],
                    )  # fmt: skip
                written += int(self._read(rows.counts)["kept"])
            low = high
        return written

    def from_rows(
        self, offsets: Any, indices: Any, values: Any, weighted: bool | None = None
    ) -> DeviceGraph | None:
        """Return the graph of a symmetric matrix whose rows ascend; None for any other.

        Rows are shared with the matrix where their type is the graph's. So that the scale is that
        of a list of edges, weights are counted once for each edge.
        """
        n, entries = len(offsets) - 1, len(indices)
        if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8 or n > MAX_VERTICES:
            return None
        if entries and not (values.min() > 0 and values.max() < np.inf):
            return None
        ones = entries > 0 and bool(values.min() == 1) and bool(values.max() == 1)
        if values.dtype == np.bool_ or weighted is False or (weighted is None and ones):
            values = None
        counts = self._counts()
        offsets, indices = self._column(offsets), self._column(indices)
        key = np.uint64(int.from_bytes(os.urandom(8), "little"))
        self._launch_of(
            32 * n, "look_at_rows", np.int64(n), offsets, column_type(offsets),
            indices, column_type(indices), np.int64(entries), values,
            np.int64(0 if values is None else values.dtype.itemsize), key, counts,
        )  # fmt: skip
        found = self._read(counts)
        whole = len(offsets) > 0 and int(offsets[0]) == 0 and int(offsets[-1]) == entries
        if not whole or found["bad"] or found["difference"] or found["loops"]:
            return None
        integers = None
        if values is not None:
            integers = self.quantised(values, twice=True)
            if integers is None or integers.notes:
                return None
        targets = indices.view(np.uint32) if indices.dtype.itemsize == 4 else None
        if targets is None:
            targets = self.ids(indices)[0]  # type: ignore[index]  # all are ids
        weights = None
        if integers is not None:
            heaviest = int(integers.values.max()) if entries else 0
            weights = self._narrowed(integers.values, entries, heaviest)
        return DeviceGraph(
            offsets.astype(np.int64, copy=False),
            targets,
            weights,
            None,
            1.0 if integers is None else integers.scale,
        )

    def _merged(self, keys: Any, weights: Any, counts: Any, *, summing: bool) -> tuple[Any, Any]:
        """Return distinct keys in order, and their weights."""
        xp = self.xp
        order = xp.argsort(keys)
        keys = keys[order]
        unique, sums = xp.empty(len(keys), np.uint64), xp.zeros(len(keys), np.uint64)
        self._launch(
            "sum_runs", len(keys), keys, order, weights, np.uint64(summing), unique, sums,
            self.partials, counts,
        )  # fmt: skip
        distinct = int(self._read(counts)["unique"])
        return unique[:distinct], sums[:distinct]

    def _narrowed(self, weights: Any, count: int, heaviest: Any) -> Any:
        """Return the first weights, in 32 bits if they fit."""
        if int(heaviest) >= 2**32:
            return _kept(weights, count)
        out = self.xp.empty(count, np.uint32)
        self._launch("narrow", count, weights, out)
        return out

    def _offsets(self, degrees: Any, counts: Any) -> Any:
        """Return where rows of these degrees begin; `cumsum` would be compiled in each process."""
        offsets = self.xp.zeros(len(degrees) + 1, np.int64)
        self._launch("row_offsets", len(degrees), degrees, offsets, self.partials, counts)
        return offsets

    def _range_end(self, raw: Any, low: int, most: int) -> int:
        """Return the row before which a range of at most so many arcs ends; at least one row."""
        n, last = len(raw) - 1, int(raw[low]) + most
        if int(raw[n]) <= last:
            return n
        high = bisect_right(range(n + 1), last, low, key=lambda row: int(raw[row])) - 1
        return max(high, low + 1)

    def _column(self, column: Any) -> Any:
        """Return a column in a type that kernels read, contiguous."""
        if column.dtype not in COLUMNS:
            column = column.astype(np.float64 if column.dtype.kind == "f" else np.int64)
        return self.xp.ascontiguousarray(column)

    def _counts(self) -> Any:
        counts = np.zeros(1, COUNTS)
        counts["least"] = np.iinfo(np.int64).max
        counts["most"] = -1
        return self.xp.asarray(counts.view(np.uint64))

    def _read(self, counts: Any) -> Any:
        return self.device.get(counts).view(COUNTS)[0]

    def _launch(self, kernel: str, items: int, *args: Any) -> None:
        """Run a kernel whose first argument is the number of its items, if there are any."""
        if items:
            self._launch_of(items, kernel, np.int64(items), *args)

    def _launch_of(self, items: int, kernel: str, *args: Any) -> None:
        self.device.launch("build", kernel, "", items, *args)


def _kept(array: Any, count: int) -> Any:
    """Return the first items; a copy where a view would keep much memory alive for good."""
    dropped = len(array) - count
    return array[:count] if dropped <= len(array) // 8 else array[:count].copy()


def _same(array: Any) -> Any:
    return array


def _joined(parts: list[tuple[Any, Any]], heaviest: int) -> tuple[Any, Any]:
    """Return targets and weights of all spans, in host memory; weights in 32 bits if they fit."""
    targets, sums = (list(arrays) for arrays in zip(*parts, strict=True))
    if sums[0] is None:
        return np.concatenate(targets), None
    kind = np.uint32 if heaviest < 2**32 else np.uint64
    return np.concatenate(targets), np.concatenate(sums, dtype=kind, casting="same_kind")
