"""Lists of edges: blocks of text in, arrays of ids and weights out."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.formats import parse_errors
from louvain_um.formats.build import make_graph
from louvain_um.formats.edge_list.number_parser import EXACT
from louvain_um.formats.edge_list.scan import WEIGHT, LineFormat, scan_numbers
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph
from louvain_um.graph.integer_weights import TOO_LARGE
from louvain_um.graph.limits import Duplicates

SMALL_ID = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Inexact:
    """An integer weight that float64 or int64 does not hold, and its line."""

    line: int
    text: str


class There(Protocol):
    """A device that parses lines of numbers and holds their edges, which become a graph there."""

    def blocks(self, file: GraphFile, line_format: LineFormat) -> Iterator[ParsedBlock]:
        """Yield what `scanned` yields for the rest of a file; columns may be on the device."""

    def joined(self, columns: list[list[Any]]) -> bool:
        """Make one array of each column, on the device; return whether there was room."""

    def here(self, column: Any) -> NDArray[Any]:
        """Return a column in host memory."""

    def graph(
        self, edges: EdgeList, announced: int | None, duplicates: Duplicates | None
    ) -> Graph | None:
        """Return the graph of all edges; None if the host must look at them."""


PARSE_THERE: ContextVar[Callable[[GraphFile, LineFormat], There | None]] = ContextVar(
    "parse_there", default=lambda file, line_format: None
)
"""What parses the rest of a file where its graph is built; the host does if it returns None."""


@dataclass(slots=True)
class EdgeList:
    """The edges of a file, in its order."""

    u: NDArray[Any]
    v: NDArray[Any]
    w: NDArray[Any] | None = None
    notes: list[str] = field(default_factory=list)
    inexact: Inexact | None = None
    there: There | None = None

    def here(self) -> EdgeList:
        """Return the edges in host memory."""
        there, self.there = self.there, None
        if there is not None:
            self.u, self.v = there.here(self.u), there.here(self.v)
            self.w = None if self.w is None else there.here(self.w)
        return self


class TextIdError(Exception):
    """An id is text: what was read before it, the text, and the blocks of text from its line on."""

    def __init__(
        self, chunks: Chunks, text: str, line: int, blocks: Iterator[NDArray[np.uint8]]
    ) -> None:
        super().__init__(text)
        self.chunks, self.text, self.line, self.blocks = chunks, text, line, blocks


def read_numbers(file: GraphFile, line_format: LineFormat, there: There | None = None) -> EdgeList:
    """Read the rest of `file` as lines of numbers; raise `TextIdError` where ids may be text."""
    weighted = line_format.shape >= WEIGHT
    chunks = Chunks(weighted, there)
    line, total = line_format.first_line, 0
    if there is None:
        blocks = scanned(line_format.pieces(file), line_format)
    else:
        blocks = there.blocks(file, line_format)
    for block in blocks:
        if len(block.deferred):
            assert block.w is not None
            exact_weights(
                file, block.data, line, block.deferred, block.w, chunks.written, line_format
            )
        if block.bad >= 0:
            text = parse_errors.line_at(block.data, block.bad)
            word = parse_errors.textual_id(text, line_format.separator)
            if line_format.exact and word:
                chunks.written.real |= block.has_point
                chunks.add(block.u, block.v, block.w)
                chunks.bring_here()
                others = (each.data for each in blocks)
                rest = itertools.chain([block.data[block.bad :]], others)
                raise TextIdError(chunks, word, line + block.lines, rest)
            raise file.error(parse_errors.line_error(text, line_format), line + block.lines)
        count, lines = len(block.u), block.lines
        total += count
        chunks.written.real |= block.has_point
        line += lines
        if line_format.expected is not None and total > line_format.expected:
            raise file.error(
                f"announces {line_format.expected:,} entries but contains at least {total:,}; "
                "correct the count or the list",
                line - 1,
            )
        chunks.add(block.u, block.v, block.w)
    if line_format.expected is not None and total < line_format.expected:
        raise file.error(
            f"announces {line_format.expected:,} entries but ends after {total:,}; the file may be "
            "truncated: download it again, or correct the count",
            line - 1,
        )
    return chunks.join()


@dataclass(slots=True)
class ParsedBlock:
    """The edges of a block of text, as `scan_numbers` finds them."""

    data: NDArray[np.uint8]
    u: NDArray[Any]
    v: NDArray[Any]
    w: NDArray[np.float64] | None
    deferred: NDArray[np.int64]
    lines: int
    bad: int
    has_point: bool


def scanned(
    pieces: Iterable[Callable[[], NDArray[np.uint8]]], line_format: LineFormat
) -> Iterator[ParsedBlock]:
    """Yield the edges of blocks of text, which the host's threads parse side by side."""
    buffers = threading.local()
    return parallel.stream(
        lambda lines: _scan(lines(), line_format, buffers), pieces, parallel.default_threads()
    )


def _scan(
    data: NDArray[np.uint8], line_format: LineFormat, buffers: threading.local
) -> ParsedBlock:
    """Read a block; `buffers` holds a thread's arrays, reused for each block."""
    data = line_format.select(data)
    weighted = line_format.shape >= WEIGHT
    room = len(data) // 4 + 1  # the shortest line, "1 2\n", has four bytes
    u: NDArray[Any] | None = getattr(buffers, "u", None)
    if u is None or len(u) < room:
        u = np.empty(room, np.uint32)
        buffers.u, buffers.v = u, np.empty(room, np.uint32)
        buffers.w = np.empty(room if weighted else 0, np.float64)
        buffers.deferred = np.empty((room if weighted else 0, 3), np.int64)
    v, w, deferred = buffers.v, buffers.w, buffers.deferred
    max_id = min(line_format.max_id, SMALL_ID - 1)
    form = line_format.separator, line_format.shape, line_format.place, line_format.min_id
    more = line_format.exact, u, v, w, deferred
    count, lines, bad, n_deferred, has_point = scan_numbers(data, *form, max_id, *more)
    if bad >= 0 and max_id < line_format.max_id:
        # The bad line may hold an id of more than 32 bits.
        u, v = np.empty(room, np.int64), np.empty(room, np.int64)
        more = line_format.exact, u, v, w, deferred
        count, lines, bad, n_deferred, has_point = scan_numbers(
            data, *form, line_format.max_id, *more
        )
    weights = w[:count].copy() if weighted else None
    u, v, deferred = u[:count].copy(), v[:count].copy(), deferred[:n_deferred].copy()
    return ParsedBlock(data, u, v, weights, deferred, lines, bad, has_point)


@dataclass(slots=True)
class Written:
    """How weights are written: whether any is real, and the first integer that was rounded."""

    real: bool = False
    inexact: Inexact | None = None


def exact_weights(
    file: GraphFile,
    data: NDArray[np.uint8],
    line: int,
    deferred: NDArray[np.int64],
    w: NDArray[np.float64],
    written: Written,
    line_format: LineFormat,
) -> None:
    """Parse the deferred weights into `w`, and add to `written`."""
    raw, signed = data.tobytes(), line_format.signed
    for edge, start, stop in deferred.tolist():
        token = raw[start:stop]
        try:
            value = float(token)
        except ValueError:
            value = float("nan")
        fits = -float("inf") < value < float("inf") and (signed or value >= 0)
        if not fits or b"_" in token:
            at = line + raw.count(b"\n", 0, start)
            raise file.error(parse_errors.weight_error(token, line_format.decimal_comma), at)
        digits = token.removeprefix(b"-") if signed else token
        written.real |= not digits.isdigit()
        large = abs(value) >= EXACT and digits.isdigit()
        if large and written.inexact is None and (int(token) != value or abs(value) >= 2.0**63):
            at = line + raw.count(b"\n", 0, start)
            written.inexact = Inexact(at, token.decode())
        if edge < len(w):  # otherwise the rest of its line is bad, which ends the reading
            w[edge] = value


class Chunks:
    """Arrays collected block by block; joining them holds at most one column twice."""

    def __init__(self, weighted: bool, there: There | None = None) -> None:
        self.columns: list[list[NDArray[Any]]] = [[], [], []]
        self.weighted = weighted
        self.there = there
        self.written = Written()

    def add(self, u: NDArray[Any], v: NDArray[Any], w: NDArray[np.float64] | None) -> None:
        """Append a block's edges."""
        for column, block in zip(self.columns, (u, v, w), strict=True):
            if block is not None:
                column.append(block)

    def join(self) -> EdgeList:
        """Return the whole list and free the chunks."""
        if self.there is not None and not self.there.joined(self.columns):
            self.bring_here()
        u, v = _join(self.columns[0]), _join(self.columns[1])
        edges = EdgeList(u, v, there=self.there)
        if self.weighted:
            edges.w = _join(self.columns[2], np.float64)
            try:
                use_integer_weights(edges, self.written)
            except MemoryError:
                if edges.there is None:
                    raise
                use_integer_weights(edges.here(), self.written)
        return edges

    def bring_here(self) -> None:
        """Copy what is on a device to host memory, where the rest is read."""
        there, self.there = self.there, None
        if there is not None:
            self.columns = [[there.here(block) for block in column] for column in self.columns]


def use_integer_weights(edges: EdgeList, written: Written) -> None:
    """Convert weights written as integers to int64, or record that this would not be exact."""
    assert edges.w is not None
    if written.real:
        return
    edges.inexact = written.inexact
    if edges.inexact is None:
        edges.w = edges.w.astype(np.int64)


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
    """Copy this thread's chunks into `out`; NumPy releases the GIL."""
    for i in range(t, len(chunks), threads):
        out[places[i] : places[i + 1]] = chunks[i]


def build_graph(
    file: GraphFile, edges: EdgeList, n: int, names: Any, options: ReadOptions, notes: list[str]
) -> Graph:
    """Build the graph of a file's edges."""
    lossy = edges.w is not None and not options.allow_rounding
    if edges.inexact is not None and lossy:
        raise file.error(f"weight {edges.inexact.text} is{TOO_LARGE[1:]}", edges.inexact.line)
    return make_graph(edges.u, edges.v, edges.w, names, options, n=n, notes=notes, owned=True)
