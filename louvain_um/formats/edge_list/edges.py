"""A growing list of edges: blocks of text in, arrays of ids and weights out."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.errors import GraphError
from louvain_um.formats import parse_errors
from louvain_um.formats.edge_list.scan import WEIGHT, scan_numbers
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.source import Source
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import MAX_TOTAL_WEIGHT

LARGEST_ID = 10**18 - 1
SMALL_ID = 2**32 - 1


@dataclass(slots=True)
class EdgeList:
    """Edges as a file lists them.

    Parameters
    ----------
    u, v : uint32 or int64 array
        Ids as written; uint32 wherever all of them fit.
    w : float64 or int64 array, optional
        Weights; integers where all were written so.
    notes : list of str
        What a reader should know.
    """

    u: NDArray[Any]
    v: NDArray[Any]
    w: NDArray[Any] | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRule:
    """How the lines of a list read: see `scan` for the shapes; ids lie in ``least … most``.

    `place` is the column of the weights, from 0.
    """

    separator: int = 32
    shape: int = 0
    place: int = 2
    least: int = 0
    most: int = LARGEST_ID
    first_line: int = 1
    expected: int | None = None


def read_numbers(source: Source, rule: LineRule) -> EdgeList:
    """Read the rest of `source` as lines of numbers.

    Raises
    ------
    GraphFormatError
        Naming the first line that does not fit, and why; or, with ``rule.expected`` edges,
        the line after which there are more, or the end at which there are fewer.
    """
    weighted = rule.shape >= WEIGHT
    chunks = Chunks(weighted)
    line, total, real = rule.first_line, 0, False
    desk = threading.local()
    threads = parallel.default_threads()
    for part in parallel.stream(lambda data: _scan(data, rule, desk), source.blocks(), threads):
        if len(part.late):
            assert part.w is not None
            real |= exact_weights(source, part.data, line, part.late, part.w)
        if part.bad >= 0:
            text = parse_errors.line_at(part.data, part.bad)
            raise source.error(
                parse_errors.about_line(
                    text, rule.separator, rule.shape, rule.least, rule.most, rule.place
                ),
                line + part.lines,
            )
        count, lines = len(part.u), part.lines
        total += count
        real |= part.pointed
        line += lines
        if rule.expected is not None and total > rule.expected:
            raise source.error(
                f"announces {rule.expected:,} entries but holds more (at least {total:,}); "
                "correct the count or the list",
                line - 1,
            )
        chunks.add(part.u, part.v, part.w)
    if rule.expected is not None and total < rule.expected:
        raise source.error(
            f"announces {rule.expected:,} entries but ends after {total:,}; the file may be "
            "cut off: fetch it again, or correct the count",
            line - 1,
        )
    return chunks.join(real)


@dataclass(slots=True)
class Part:
    """What a block of text holds; `scan_numbers` tells of the fields."""

    data: NDArray[np.uint8]
    u: NDArray[Any]
    v: NDArray[Any]
    w: NDArray[np.float64] | None
    late: NDArray[np.int64]
    lines: int
    bad: int
    pointed: bool


def _scan(data: NDArray[np.uint8], rule: LineRule, desk: threading.local) -> Part:
    """Read a block; `desk` keeps a thread's work space from one block to the next."""
    weighted = rule.shape >= WEIGHT
    room = len(data) // 4 + 1  # the shortest line, "1 2\n", has four bytes
    u: NDArray[Any] | None = getattr(desk, "u", None)
    if u is None or len(u) < room:
        u = np.empty(room, np.uint32)
        desk.u, desk.v = u, np.empty(room, np.uint32)
        desk.w = np.empty(room if weighted else 0, np.float64)
        desk.late = np.empty((room if weighted else 0, 3), np.int64)
    v, w, late = desk.v, desk.w, desk.late
    most = min(rule.most, SMALL_ID - 1)
    count, lines, bad, n_late, pointed = scan_numbers(
        data, rule.separator, rule.shape, rule.place, rule.least, most, u, v, w, late
    )
    if bad >= 0 and most < rule.most:
        # Perhaps an id of more than 32 bits.
        u, v = np.empty(room, np.int64), np.empty(room, np.int64)
        count, lines, bad, n_late, pointed = scan_numbers(
            data, rule.separator, rule.shape, rule.place, rule.least, rule.most, u, v, w, late
        )
    weights = w[:count].copy() if weighted else None
    return Part(
        data, u[:count].copy(), v[:count].copy(), weights, late[:n_late].copy(), lines, bad, pointed
    )


def exact_weights(
    source: Source,
    data: NDArray[np.uint8],
    line: int,
    late: NDArray[np.int64],
    w: NDArray[np.float64],
) -> bool:
    """Fill in the weights that the kernel left; return whether any was written as real."""
    raw = data.tobytes()
    real = False
    for edge, start, stop in late.tolist():
        token = raw[start:stop]
        try:
            value = float(token)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf") or b"_" in token:
            at = line + raw.count(b"\n", 0, start)
            raise source.error(parse_errors.about_weight(token), at)
        real = real or not token.isdigit()
        if edge < len(w):  # else its line has something wrong behind it, and ends the reading
            w[edge] = value
    return real


class Chunks:
    """Arrays collected block by block, joined at the end with one column held twice at most."""

    def __init__(self, weighted: bool) -> None:
        self.columns: list[list[NDArray[Any]]] = [[], [], []]
        self.weighted = weighted

    def add(self, u: NDArray[Any], v: NDArray[Any], w: NDArray[np.float64] | None) -> None:
        """Take a block's edges."""
        for column, part in zip(self.columns, (u, v, w), strict=True):
            if part is not None:
                column.append(part)

    def join(self, real: bool) -> EdgeList:
        """Return the whole list; the chunks are gone."""
        u, v = _join(self.columns[0]), _join(self.columns[1])
        edges = EdgeList(u, v)
        if self.weighted:
            edges.w = _join(self.columns[2], np.float64)
            if not real:
                keep_integers(edges)
        return edges


def keep_integers(edges: EdgeList) -> None:
    """Turn weights written as integers into int64, unless their total is too large for that."""
    assert edges.w is not None
    if 2 * float(edges.w.sum()) < MAX_TOTAL_WEIGHT:
        edges.w = edges.w.astype(np.int64)
    else:
        edges.notes.append("integer weights add up to more than 2^52 and are read as real ones")


def _join(chunks: list[NDArray[Any]], dtype: Any = np.uint32) -> NDArray[Any]:
    if len(chunks) == 1:
        return chunks.pop()
    places = np.cumsum([0, *map(len, chunks)]).tolist()
    joined = np.empty(places[-1], np.result_type(dtype, *{c.dtype for c in chunks}))
    parallel.run(_copy, parallel.default_threads(), chunks, places, joined)
    chunks.clear()
    return joined


def _copy(
    t: int, threads: int, chunks: list[NDArray[Any]], places: list[int], out: NDArray[Any]
) -> None:
    """Copy this thread's chunks to their places; NumPy releases the GIL."""
    for i in range(t, len(chunks), threads):
        out[places[i] : places[i + 1]] = chunks[i]


def build_graph(
    source: Source,
    edges: EdgeList,
    n: int,
    names: Any,
    options: ReadOptions,
    notes: list[str],
) -> Graph:
    """Build the graph of a file's edges; every error names the file."""
    try:
        graph = Graph.from_edges(
            edges.u, edges.v, edges.w, n_vertices=n, duplicates=options.duplicates, names=names
        )
    except GraphError as error:
        raise source.error(f"{error}") from None
    return replace(graph, notes=(*notes, *graph.notes)) if notes else graph
