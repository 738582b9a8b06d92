"""The rows of a graph from edges or a matrix in device memory: the host's, bit for bit.

All arcs are sorted at once where memory allows. Else rows are written in any order first, then
sorted a range at a time; where the rows themselves do not fit, they are made a span at a time.
What is unusual (other types, ids or weights that an error is to name, rounding) is left to the
host.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.formats.edge_list.edges import SMALL_ID
from louvain_um.formats.edge_list.scan import WEIGHT, LineFormat
from louvain_um.gpu.runtime.launch import COLUMNS, column_type, layout
from louvain_um.graph.build import merge_notes
from louvain_um.graph.integer_weights import fit
from louvain_um.graph.limits import MAX_TOTAL_WEIGHT, MAX_VERTICES, Duplicates
from louvain_um.placement.hardware import THREADS

COUNTS: Final = layout(
    barrier=np.uint64, least=np.int64, most=np.int64,
    **dict.fromkeys(
        (
            "loops", "kept", "unique", "distinct_arcs", "distinct_loops", "weightless", "heaviest",
            "bad", "points", "largest", "bits", "low", "high", "total", "underflows", "difference",
        ),
        np.uint64,
    ),
)  # fmt: skip
"""`BuildCounts` of build.cu."""

NUMBERING: Final = 64
"""Bytes that numbering takes for each different id, and for each that is looked at at a time."""

TILE: Final = 16 * THREADS
"""Bytes of text whose lines a block of threads parses at a time."""

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
    repeats: int = 0
    weightless: int = 0
    n_loops: int = 0
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A list of edges, of which `piece` brings those from one place to another to the device."""

    # `names` are the ids of vertices, ascending uint64 on the device; None for 0 … n - 1.

    edges: int
    n: int
    weighted: bool
    summing: bool
    piece: Callable[[int, int], Ends]
    names: Any = None
    scale: float = 1.0
    notes: tuple[str, ...] = ()

    def pieces(self, most: int) -> Callable[[], Iterable[Ends]]:
        """Return what gives all edges, so many at a time; all at once they stay there."""
        if most >= self.edges:
            whole = [self.piece(0, self.edges)]
            return lambda: whole
        return lambda: (self.piece(low, low + most) for low in range(0, self.edges, most))

    def notes_of(self, made: Any) -> tuple[str, ...]:
        """Return all notes on a graph of these edges, of which rows are made."""
        counts = made.repeats, made.weightless, made.n_loops
        return self.notes + merge_notes(self.edges, *counts, self.summing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integers:
    """What takes some weights as integers, uint64, and the scale and notes of `quantise`."""

    taken: Callable[[Any], Any]
    scale: float
    notes: tuple[str, ...] = ()


class Text(NamedTuple):
    """Text on the device, of which the lines are wanted that begin in the first `size` bytes."""

    # `begins` says whether one begins at the first byte. `known` bytes are there in all; the end of
    # a `closed` text ends its last line.

    bytes: Any
    size: int
    begins: bool
    known: int
    closed: bool


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


class SortKeys(NamedTuple):
    """Sort keys, of which the first `arcs` are those of arcs once they are sorted."""

    # The weight of a key, or None for 1, is at its place without the `shift` lowest bits.

    keys: Any
    weights: Any
    shift: int
    arcs: int = 0


class LongRowError(Exception):
    """A row that is longer than what may be in memory at a time."""


class Builder:
    """Builds graphs with the arrays and kernels of a device, a `CudaDevice`."""

    def __init__(self, device: Any, range_arcs: int = RANGE_ARCS) -> None:
        self.device = device
        self.xp = device.xp
        self.range_arcs = range_arcs
        self.partials = self.xp.empty(PARTIALS, np.int64)

    def listed(
        self,
        u: Any,
        v: Any,
        weights: Any = None,
        *,
        n_vertices: int | None = None,
        duplicates: Duplicates | None = None,
        most_names: int | None = None,
    ) -> Listed | None:
        """Return a list of edges in device memory; None if the host must look at it."""
        # With `most_names`, vertices are the ids that occur, and no more than so many if these are
        # not 0 … n - 1.
        columns = [column for column in (u, v, weights) if column is not None]
        if any(column.ndim != 1 or len(column) != len(u) for column in columns):
            return None
        ends = self._largest(u), self._largest(v)
        if None in ends:
            return None
        n, names = max(each or 0 for each in ends) + 1 if len(u) else 0, None
        # Ids are numbered also where counting the ends of each would take more than the room.
        if most_names is not None and (n > most_names * NUMBERING // 4 or self._has_gaps(u, v, n)):
            most = max(1, min(self.range_arcs, most_names))
            names = self.names_of(
                (part for ids in (u, v) for part in parts_of(ids, most)), most_names
            )
            if names is None:
                return None
            n = len(names)
        if n > MAX_VERTICES or (n_vertices is not None and not n <= n_vertices <= MAX_VERTICES):
            return None
        integers = None if weights is None else self.quantised(weights)
        if weights is not None and integers is None:
            return None

        def piece(low: int, high: int) -> Ends:
            part = slice(low, high)
            values = None if integers is None else integers.taken(weights[part])
            return Ends(self.numbers(u[part], names), self.numbers(v[part], names), values)

        summing = duplicates == "sum" or (duplicates is None and weights is not None)
        return Listed(
            edges=len(u),
            n=n if n_vertices is None else n_vertices,
            weighted=summing or integers is not None,
            summing=summing,
            piece=piece,
            names=names,
            scale=1.0 if integers is None else integers.scale,
            notes=() if integers is None else integers.notes,
        )

    def names_of(self, parts: Iterable[Any], most: int) -> Any:
        """Return the different ones of ids that are not negative, ascending, uint64."""
        # None if they are more than `most`.
        names = self.xp.empty(0, np.uint64)
        for part in parts:
            ids, keys = self._column(part), self.xp.empty(len(names) + len(part), np.uint64)
            keys[: len(names)] = names
            self._launch("take_keys", len(ids), ids, column_type(ids), keys[len(names) :])
            keys.sort()
            names = self._distinct(keys)
            if len(names) > most:
                return None
        return names

    def numbers(self, ids: Any, names: Any) -> Any:
        """Return ids as uint32: places in ascending names, or as they are without names."""
        column = self._column(ids)
        if names is None and column.dtype == np.uint32:
            return column
        out = self.xp.empty(len(column), np.uint32)
        given = len(ids), column, column_type(column)
        if names is None:
            self._launch("take_ids", *given, out, self._counts())
        else:
            self._launch("find_ids", *given, names, np.int64(len(names)), out)
        return out

    def _largest(self, ids: Any) -> int | None:
        """Return the largest id, -1 of none; None unless all are integers that are not negative."""
        if ids.dtype.kind not in "iu":
            return None
        counts = self._counts()
        for part in parts_of(ids, self.range_arcs):
            column = self._column(part)
            self._launch("take_ids", len(column), column, column_type(column), None, counts)
        found = self._read(counts)
        return None if found["least"] < 0 else int(found["most"])

    def _has_gaps(self, u: Any, v: Any, n: int) -> bool:
        """Return whether some of 0 … n - 1 do not occur."""
        if n > 2 * len(u):
            return True
        degrees, counts = self.xp.zeros(n, np.uint32), self._counts()
        for part in zip(*(parts_of(ids, self.range_arcs) for ids in (u, v)), strict=True):
            ends = (self.numbers(ids, None) for ids in part)
            self._launch("count_ends", len(part[0]), *ends, degrees, counts)
        return n > 0 and int(degrees.min()) == 0

    def quantised(self, weights: Any, *, twice: bool = False) -> Integers | None:
        """Return weights as integers; None if the host must refuse or round them."""
        # `twice` says that every edge is listed in both directions.
        if weights.dtype.kind not in "biuf" or weights.dtype.itemsize > 8:
            return None
        weights = self._column(weights)
        count, counts, each = len(weights), self._counts(), 2 if twice else 1
        if weights.dtype.kind != "f":
            self._launch("look_at_integers", count, weights, column_type(weights), counts)
            found = self._read(counts)
            total, bits = int(found["low"]) + (int(found["high"]) << 32), int(found["bits"])
            total //= each
            spare = max((bits & -bits).bit_length() - 1, 0)
            shift = 0 if 2 * total < MAX_TOTAL_WEIGHT else spare
            if found["bad"] or 2 * total >= MAX_TOTAL_WEIGHT * 2.0**shift:
                return None
            shorter = partial(self._integers, "take_integers", (np.int64(shift),))
            return Integers(taken=shorter, scale=2.0**-shift)
        self._launch("look_at_reals", count, weights, column_type(weights), counts)
        found = self._read(counts)
        if found["bad"]:
            return None
        largest = float(found["largest"].view(np.float64))
        if largest == 0.0:
            return Integers(taken=lambda part: self.xp.zeros(len(part), np.uint64), scale=1.0)

        def scaled(shift: int, *, write: bool) -> tuple[int, int, int]:
            counts, factors = self._counts(), _factors(shift)
            self._launch(
                "scale_reals", count, weights, column_type(weights), *factors, np.int64(0), None,
                counts,
            )  # fmt: skip
            found = self._read(counts)
            return (
                int(found["total"]) // each,
                int(found["bits"]),
                int(found["underflows"]) // each,
            )

        fitted = fit(largest, count // each, scaled)
        how = *_factors(fitted.shift + fitted.spare), np.int64(fitted.spare)
        rounded = partial(self._integers, "scale_reals", how)
        return Integers(taken=rounded, scale=2.0**fitted.shift, notes=fitted.notes)

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
        """Return the rows of a list of edges, in host memory if `fetched` brings arrays there."""
        # Rows with more than `most_arcs` are made a span of rows at a time, for each of which the
        # pieces of the list are asked for again; a `LongRowError` if a single row is too long.
        xp, counts = self.xp, self._counts()
        degrees = xp.zeros(n, np.uint32)
        listed = self._listed_at_once(pieces(), counts)
        for u, v, _ in pieces() if listed is None else ():
            self._launch("count_ends", len(u), u, v, degrees, counts)
        raw = self._offsets(degrees, counts)
        n_loops = int(self._read(counts)["loops"])
        records = int(raw[-1]) if listed is None else len(listed.keys) - n_loops
        most = max(records, 1) if most_arcs is None else most_arcs
        if most < records and int(degrees.max()) > min(most, self.range_arcs):
            raise LongRowError
        loops = xp.zeros(n, np.uint64) if n_loops else None
        rows = RawRows(raw, degrees, loops, counts)
        parts: list[tuple[Any, Any]] = []
        low = written = 0
        if listed is not None:
            targets = xp.empty(records, np.uint32)
            sums = xp.empty(records, np.uint64) if weighted else None
            listed, out = listed._replace(arcs=records), (0, targets, sums)
            written, low = self._written(rows, listed, out, summing=summing), n
            parts.append((targets, sums))
            del listed, out
        while low < n:
            high = self._range_end(raw, low, most)
            count = int(raw[high]) - int(raw[low])
            targets = xp.empty(count, np.uint32)
            sums = xp.empty(count, np.uint64) if weighted else None
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
                sums = None if span.sums is None else span.sums[written:]
                given = None if span.sums is None else span.sums[begin:end]
                out = low, span.targets[written:], sums
                arcs = SortKeys(keys, given, 0, len(keys))
                written += self._written(rows, arcs, out, summing=summing)
            low = high
        return written

    def _listed_at_once(self, pieces: Iterable[Ends], counts: Any) -> SortKeys | None:
        """Return the arcs of edges that are a list which fits a range; no other edges are read."""
        if not isinstance(pieces, list) or len(pieces) != 1:
            return None
        u, v, weights = pieces[0]
        if 2 * len(u) > self.range_arcs:
            return None
        keys = self.xp.empty(2 * len(u), np.uint64)
        self._launch("list_keys", len(u), u, v, keys, counts)
        return SortKeys(keys, weights, 1)

    def _written(
        self, rows: RawRows, sorting: SortKeys, out: tuple[int, Any, Any], *, summing: bool
    ) -> int:
        """Sort arcs, and write rows from one on without repetition; return how many are left."""
        low, targets, sums = out
        more = rows.degrees, rows.loops, self.partials, rows.counts
        if sums is None:
            sorting.keys.sort()
            self._launch("keep_arcs", sorting.arcs, sorting.keys, np.int64(low), targets, *more)
        else:
            unique, merged = self._merged(sorting, rows.counts, summing=summing)
            kept = unique, merged, np.int64(low), targets, sums
            self._launch("keep_weighted", len(unique), *kept, *more)
        return int(self._read(rows.counts)["kept"]) if sorting.arcs else 0

    def from_rows(
        self, offsets: Any, indices: Any, values: Any, weighted: bool | None = None
    ) -> BuiltRows | None:
        """Return the rows of a symmetric matrix whose rows ascend; None for any other."""
        # Rows are shared with the matrix where their type is the graph's. So that the scale is that
        # of a list of edges, weights are counted once for each edge.
        n, entries = len(offsets) - 1, len(indices)
        if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8 or n > MAX_VERTICES:
            return None
        if entries and not (values.min() > 0 and values.max() < np.inf):
            return None
        ones = entries > 0 and bool(values.min() == 1) and bool(values.max() == 1)
        if values.dtype == np.bool_ or weighted is False or (weighted is None and ones):
            values = None
        offsets, indices = self._column(offsets), self._column(indices)
        if not self.are_rows(offsets, indices, values):
            return None
        integers = None
        if values is not None:
            integers = self.quantised(values, twice=True)
            if integers is None or integers.notes:
                return None
        targets = indices.view(np.uint32) if indices.dtype.itemsize == 4 else None
        if targets is None:
            targets = self.numbers(indices, None)
        weights = None
        if integers is not None:
            weights = self._joined_integers(integers, values)
        return BuiltRows(
            offsets=offsets.astype(np.int64, copy=False),
            targets=targets,
            weights=weights,
            loops=None,
            scale=1.0 if integers is None else integers.scale,
        )

    def parsed(
        self, text: Text, how: LineFormat, has_room: Callable[[int], bool], *, wide: bool
    ) -> tuple[Ends, bool] | None:
        """Return the edges of lines, weights as doubles, and whether any has a decimal point."""
        # None if any line is more than plain numbers, or without room for so many lines.
        xp, counts = self.xp, self._counts()
        lines = xp.empty(-(-text.size // TILE), np.uint32)
        begins = np.uint64(text.begins)
        self._launch("count_lines", text.size, text.bytes, begins, lines)
        firsts = self.offsets_of(lines)
        count = int(firsts[-1])
        if not has_room(count):
            return None
        kind: Any = np.int64 if wide else np.uint32
        most = how.max_id if wide else min(how.max_id, SMALL_ID - 1)
        u, v = xp.empty(count, kind), xp.empty(count, kind)
        w = xp.empty(count, np.float64) if how.shape >= WEIGHT else None
        self._launch(
            "parse_lines", text.size, text.bytes, begins, np.int64(text.known),
            np.uint64(10 * text.closed), firsts, np.uint64(how.separator), np.uint64(how.shape),
            np.int64(how.min_id), np.int64(most), column_type(u), u, v, w, counts,
        )  # fmt: skip
        found = self._read(counts)
        return None if found["bad"] else (Ends(u, v, w), bool(found["points"]))

    def are_rows(self, offsets: Any, indices: Any, values: Any) -> bool:
        """Return whether rows ascend without repetition and loops, and are symmetric."""
        n, entries, counts = len(offsets) - 1, len(indices), self._counts()
        key = np.uint64(int.from_bytes(os.urandom(8), "little"))
        self._launch_of(
            32 * n, "look_at_rows", np.int64(n), offsets, column_type(offsets),
            indices, column_type(indices), np.int64(entries), values,
            np.int64(0 if values is None else values.dtype.itemsize), key, counts,
        )  # fmt: skip
        found = self._read(counts)
        whole = n >= 0 and int(offsets[0]) == 0 and int(offsets[-1]) == entries
        return whole and not (found["bad"] or found["difference"] or found["loops"])

    def merged(self, graph: Any, labels: Any, n: int, *, sums: bool) -> BuiltRows:
        """Return rows of vertices 0 … n - 1, of which each is all of a graph with its label."""
        # `labels` are uint32 on the device, or None for the vertices themselves. Vertices without
        # label (2^32 - 1), arcs within a label or of weight 0, and loops are left out. Weights are
        # `sums`, or else of the graph's type, if it has any.
        xp, offsets, low = self.xp, graph.offsets, 0
        parts = [(xp.empty(0, np.uint64), xp.empty(0, np.uint64))]
        while low < graph.n_vertices:
            high, counts = self._range_end(offsets, low, self.range_arcs), self._counts()
            begin, end = int(offsets[low]), int(offsets[high])
            if end > begin:
                keys, weights = xp.empty(end - begin, np.uint64), graph.weights
                self._launch_of(
                    len(keys), "label_keys", np.int64(low), np.int64(high), offsets,
                    graph.targets[begin:end], labels, keys, counts,
                )  # fmt: skip
                if weights is not None:
                    weights = self._integers("take_integers", (np.int64(0),), weights[begin:end])
                arcs = len(keys) - int(self._read(counts)["loops"])
                sorting = SortKeys(keys, weights, 0, arcs)
                parts.append(self._merged(sorting, counts, summing=True))
            low = high
        keys, weights = parts[-1]
        if len(parts) > 2:
            keys, weights = (xp.concatenate(each) for each in zip(*parts, strict=True))
            whole = SortKeys(keys, weights, 0, len(keys))
            keys, weights = self._merged(whole, self._counts(), summing=True)
        del parts
        targets, out = xp.empty(len(keys), np.uint32), xp.empty(len(keys), np.uint64)
        degrees, counts = xp.zeros(n, np.uint32), self._counts()
        given = keys, weights, np.int64(0), targets, out, degrees, None, self.partials, counts
        self._launch("keep_weighted", len(keys), *given)
        found, offsets = self._read(counts), self._offsets(degrees, counts)
        kept, heaviest = int(found["kept"]), found["heaviest"]
        if sums or (graph.weights is not None and graph.weights.dtype == np.uint32):
            out = self._narrowed(out, kept, heaviest)
        else:
            out = None if graph.weights is None else _kept(out, kept)
        return BuiltRows(
            offsets=offsets,
            targets=_kept(targets, kept),
            weights=out,
            loops=None,
            scale=graph.scale,
        )

    def _merged(self, sorting: SortKeys, counts: Any, *, summing: bool) -> tuple[Any, Any]:
        """Return distinct keys in order, and their weights."""
        xp = self.xp
        order = xp.argsort(sorting.keys)[: sorting.arcs]
        keys = sorting.keys[order]
        weights = sorting.weights
        if weights is None:
            weights = xp.ones(len(sorting.keys) >> sorting.shift, np.uint64)
        unique, sums = xp.empty(len(keys), np.uint64), xp.zeros(len(keys), np.uint64)
        self._launch(
            "sum_runs", len(keys), keys, order, np.int64(sorting.shift), weights,
            np.uint64(summing), unique, sums, self.partials, counts,
        )  # fmt: skip
        distinct = int(self._read(counts)["unique"]) if len(keys) else 0
        return unique[:distinct], sums[:distinct]

    def _narrowed(self, weights: Any, count: int, heaviest: Any) -> Any:
        """Return the first weights, in 32 bits if they fit."""
        if int(heaviest) >= 2**32:
            return _kept(weights, count)
        out = self.xp.empty(count, np.uint32)
        self._launch("narrow", count, weights, out)
        return out

    def offsets_of(self, degrees: Any) -> Any:
        """Return where rows of these degrees, uint32, begin, and where the last ends."""
        return self._offsets(degrees, self._counts())

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

    def _integers(self, kernel: str, how: Sequence[Any], weights: Any) -> Any:
        """Return some weights as the integers that a kernel makes of them."""
        column, out = self._column(weights), self.xp.empty(len(weights), np.uint64)
        counts = (self._counts(),) if kernel == "scale_reals" else ()
        self._launch(kernel, len(column), column, column_type(column), *how, out, *counts)
        return out

    def _joined_integers(self, integers: Integers, weights: Any) -> Any:
        """Return weights as integers, in 32 bits if they fit; a range of arcs at a time."""
        taken = (integers.taken(part) for part in parts_of(weights, self.range_arcs))
        heaviest = max((int(part.max()) for part in taken), default=0)
        out = self.xp.empty(len(weights), np.uint32 if heaviest < 2**32 else np.uint64)
        for part, place in zip(
            parts_of(weights, self.range_arcs), parts_of(out, self.range_arcs), strict=True
        ):
            place[:] = self._narrowed(integers.taken(part), len(part), heaviest)
        return out

    def _distinct(self, keys: Any) -> Any:
        """Return the different ones of sorted keys."""
        unique, counts = self.xp.empty(len(keys), np.uint64), self._counts()
        nothing = None, np.int64(0), None, np.uint64(0)
        self._launch("sum_runs", len(keys), keys, *nothing, unique, None, self.partials, counts)
        return _kept(unique, int(self._read(counts)["unique"]))

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


def parts_of(array: Any, most: int) -> Iterator[Any]:
    """Return views of an array, of so many items each."""
    return (array[low : low + most] for low in range(0, len(array), most))


def _factors(shift: int) -> tuple[np.float64, np.float64]:
    """Return 2^shift in two factors: it may itself lie outside the doubles."""
    half = shift // 2
    return np.float64(np.ldexp(1.0, half)), np.float64(np.ldexp(1.0, shift - half))


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
