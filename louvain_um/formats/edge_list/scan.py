"""Compiled reading of lines of numbers: two ids and, optionally, a weight.

The kernel stops at the first line it cannot read and returns its position; Python code then
finds out what is wrong with that line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.formats.edge_list.number_parser import read_digits, read_real
from louvain_um.formats.graph_file import BLOCK_BYTES, GraphFile

TWO_IDS: Final = 0
"""Shape of a line: nothing may follow the two ids."""
IGNORE_REST: Final = 1
"""What follows the two ids is skipped."""
WEIGHT: Final = 2
"""A weight follows the two ids, and nothing else."""
WEIGHT_IGNORE_REST: Final = 3
"""A weight follows the two ids; the rest is skipped."""


@kernel()
def blank(c):
    """Space, tab or carriage return."""
    return c == 32 or c == 9 or c == 13


@kernel()
def pad(c, separator):
    """Return whether this is a blank that is not a separator."""
    return blank(c) and (separator == 32 or c != separator)


@kernel()
def closing(data, pos):
    """Return where the quote at `pos` is closed, or the end of its line."""
    pos += 1
    while data[pos] != 10 and (data[pos] != 34 or data[pos + 1] == 34):
        pos += 2 if data[pos] == 34 else 1
    return pos


@kernel()
def skip_comment(data, pos):
    """Return where the next line starts if this one is empty or a comment, else `pos`."""
    c = data[pos]
    if c == 35 or c == 37 or (c == 47 and data[pos + 1] == 47):
        while data[pos] != 10:
            pos += 1
        return pos + 1
    return pos + 1 if c == 10 else pos


@kernel()
def field(data, pos, separator):
    """Return start and stop of the field at `pos`, quotes included, and where the next starts."""
    while pad(data[pos], separator):
        pos += 1
    start = pos
    if data[pos] == 34:
        pos = closing(data, pos)
    while data[pos] != 10 and data[pos] != separator and not (separator == 32 and blank(data[pos])):
        pos += 1
    stop = pos
    while stop > start and blank(data[stop - 1]):
        stop -= 1
    if separator == 32:
        while blank(data[pos]):
            pos += 1
    elif data[pos] == separator:
        pos += 1
    return start, stop, pos


@kernel()
def unquoted(data, pos, separator):
    """Return start and stop of the field at `pos` without quotes, and where the next starts."""
    start, stop, pos = field(data, pos, separator)
    if start < stop and data[start] == 34:  # within it, "" is a quote
        start += 1
        if start < stop and data[stop - 1] == 34:
            stop -= 1
    return start, stop, pos


@kernel()
def end_of_line(data, pos, separator):
    """Return where the line of the fields from `pos` on ends; -1 if one opens a quote only."""
    begin, quotes = pos, 0
    while data[pos] != 10:
        quotes += data[pos] == 34
        pos += 1
    while quotes and begin < pos:
        start, _, begin = field(data, begin, separator)
        if data[start] == 34 and data[closing(data, start)] == 10:
            return -1
    return pos


@kernel()
def find_fields(data, separator, place, found):
    """Write start, stop and value of a field of each line, and the line's fields: 0 of comments."""
    # The value is -1 unless the field is a whole number of at most 18 digits.
    line, pos = 0, 0
    while pos < len(data):
        while pad(data[pos], separator):
            pos += 1
        after = skip_comment(data, pos)
        fields = 0
        found[line, 2] = -1
        while after == pos and data[pos] != 10:
            start, stop, past = field(data, pos, separator)
            if fields == place:
                value, end = read_digits(data, start, np.uint64(0))
                whole = end == stop and 0 < stop - start <= 18
                found[line, 0], found[line, 1] = start, stop
                found[line, 2] = np.int64(value) if whole else -1
            fields += 1
            pos = after = past
        found[line, 3] = fields
        pos = after if fields == 0 else pos + 1
        line += 1


@kernel()
def scan_numbers(data, separator, shape, place, min_id, max_id, exact, u, v, w, deferred):
    """Read edges from whole lines; ids lie in ``min_id … max_id``, `exact` ones begin with no 0."""
    count, lines, n_deferred, pos = 0, 0, 0, 0
    real = False
    bad = -1
    stop = len(data)
    while pos < stop:
        line = pos
        while blank(data[pos]):
            pos += 1
        text = skip_comment(data, pos)
        if text != pos:
            pos = text
            lines += 1
            continue
        pos = line
        while pad(data[pos], separator):
            pos += 1

        # The first id, a separator, the second id: 18 digits always fit an int64.
        first = pos
        value, pos = read_digits(data, pos, np.uint64(0))
        a = np.int64(value)
        gap = pos
        while pad(data[pos], separator):
            pos += 1
        if separator != 32 and data[pos] == separator:
            pos += 1
            while pad(data[pos], separator):
                pos += 1
        second = pos
        value, pos = read_digits(data, pos, np.uint64(0))
        b = np.int64(value)
        digits, others = gap - first, pos - second
        if digits == 0 or digits > 18 or second == gap or others == 0 or others > 18:
            bad = line
            break
        if a < min_id or a > max_id or b < min_id or b > max_id:
            bad = line
            break
        if exact and ((digits > 1 and data[first] == 48) or (others > 1 and data[second] == 48)):
            bad = line
            break

        gap = pos
        while pad(data[pos], separator):
            pos += 1
        if data[pos] == 10:
            if shape >= WEIGHT:
                bad = line
                break
        else:
            if separator != 32 and data[pos] == separator:
                pos += 1
            # A separator is required here, and a third field must be allowed.
            if pos == gap or shape == TWO_IDS:
                bad = line
                break
            if shape >= WEIGHT:
                for _ in range(2, place):
                    _, _, pos = field(data, pos, separator)
                while pad(data[pos], separator):
                    pos += 1
                start = pos
                w[count], pos, sure, has_point = read_real(data, pos)
                real = real or has_point
                gap = pos
                while pad(data[pos], separator):
                    pos += 1
                past = data[pos] == 10 or data[pos] == separator or (separator == 32 and pos > gap)
                if not (sure and past):
                    deferred[n_deferred, 0] = count
                    deferred[n_deferred, 1], deferred[n_deferred, 2], pos = unquoted(
                        data, start, separator
                    )
                    n_deferred += 1
                if shape == WEIGHT and data[pos] != 10:
                    bad = line
                    break
            pos = end_of_line(data, pos, separator)
            if pos < 0:
                bad = line
                break
        pos += 1
        u[count] = a
        v[count] = b
        count += 1
        lines += 1
    return count, lines, bad, n_deferred, real


LARGEST_ID = 10**18 - 1

MOST_ADDED = 8
"""Bytes by which a line can grow: quotes around two ids, and separators of missing fields."""


class TimeColumn:
    """The times of a list of edges, taken from its blocks while others read the edges."""

    def __init__(self, separator: int, place: int, width: int, *, as_text: bool) -> None:
        self.separator, self.place, self.width, self.as_text = separator, place, width, as_text
        self.first_line = 1
        self._edges = 0
        self._blocks: list[NDArray[Any]] = []
        self._skipped: list[NDArray[np.int64]] = []
        self._bad: tuple[int, int] | None = None

    def add(self, data: NDArray[np.uint8]) -> None:
        """Take the times of a block of whole lines."""
        found = np.zeros((int(np.count_nonzero(data == ord("\n"))), 4), np.int64)
        find_fields(data, self.separator, self.place, found)
        held = found[:, 3] > 0
        self._skipped.append(self._edges + np.cumsum(held)[~held])
        found = found[held]
        bad = (found[:, 3] > self.width) | (found[:, 0] >= found[:, 1])
        if self._bad is None and bad.any():
            at = int(np.argmax(bad))
            self._bad = self._edges + at, int(found[at, 3])
        if self.as_text or (found[:, 2] < 0).any():
            raw = data.tobytes()
            texts = [raw[a:b].strip(b'"') for a, b in found[:, :2].tolist()]
            self._blocks.append(np.array(texts, object))
        else:
            self._blocks.append(found[:, 2].copy())
        self._edges += len(found)

    def line(self, edge: Any) -> int:
        """Return the number of the line of an edge, given by its place among them."""
        skipped = np.concatenate(self._skipped) if self._skipped else np.zeros(0, np.int64)
        before = np.searchsorted(skipped, edge, side="right")
        return self.first_line + int(edge) + int(before)

    def values(self, file: GraphFile) -> NDArray[Any]:
        """Return the times: whole numbers, real numbers or texts."""
        if self._bad is not None:
            edge, fields = self._bad
            problem = (
                f"has {fields} fields instead of {self.width}; correct the line"
                if fields > self.width
                else "the time is missing; the file may be truncated: download it again, or "
                "complete the line"
            )
            raise file.error(problem, self.line(edge))
        blocks = self._blocks
        if all(block.dtype != object for block in blocks):
            return np.concatenate(blocks) if blocks else np.zeros(0, np.int64)
        texts = [
            each if isinstance(each, bytes) else b"%d" % each
            for block in blocks
            for each in block.tolist()
        ]
        for kind in () if self.as_text else (np.int64, np.uint64, np.float64):
            try:
                return np.array(texts).astype(kind)
            except (ValueError, OverflowError):
                continue
        return np.array([text.decode("utf-8", "replace") for text in texts], object)


DIRECTED_EDGE: Final = (
    "the edge is directed (column Type); pass symmetrize=True (--symmetrize) to read the graph as "
    "undirected"
)


class TypeColumn:
    """The column ``Type`` of a list of edges; an edge that it says is directed is an error."""

    def __init__(self, file: GraphFile, separator: int, place: int, first_line: int) -> None:
        self.file, self.separator, self.place, self.line = file, separator, place, first_line

    def add(self, data: NDArray[np.uint8]) -> None:
        """Look at a block of whole lines."""
        found = np.zeros((int(np.count_nonzero(data == ord("\n"))), 4), np.int64)
        find_fields(data, self.separator, self.place, found)
        starts = found[:, 0] + (data[found[:, 0]] == ord('"'))
        for line in np.flatnonzero(data[starts] | 32 == ord("d")).tolist():
            start, stop = found[line, :2]
            if data[start:stop].tobytes().strip(b'"').lower() == b"directed":
                raise self.file.error(DIRECTED_EDGE, self.line + line)
        self.line += len(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """Format of the lines of an edge list."""

    separator: int = 32
    shape: int = 0
    place: int = 2
    min_id: int = 0
    max_id: int = LARGEST_ID
    first_line: int = 1
    expected: int | None = None
    columns: tuple[int, ...] | None = None
    decimal_comma: bool = False
    signed: bool = False
    exact: bool = False
    aside: tuple[TimeColumn | TypeColumn, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether lines are two ids and what may follow: a weight, then anything."""
        rewritten = self.columns is not None or self.aside
        return not rewritten and self.expected is None and self.place == 2

    def blocks(self, file: GraphFile, size: int = BLOCK_BYTES) -> Iterator[NDArray[np.uint8]]:
        """Yield the blocks of the rest of a file, after columns aside have looked at each."""
        for data in file.blocks(size):
            for column in self.aside:
                column.add(data)
            yield data

    def pieces(self, file: GraphFile) -> Iterator[Callable[[], NDArray[np.uint8]]]:
        """Yield what returns these blocks, if possible by reading them in the thread that calls."""
        if not self.aside:
            return file.pieces()
        return (partial(np.asarray, data) for data in self.blocks(file))

    def select(self, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return lines with the ids first; `data` itself where they are."""
        if self.columns is None:
            return data
        return select_columns(data, self.separator, self.columns, self.decimal_comma)


def select_columns(
    data: NDArray[np.uint8], separator: int, columns: tuple[int, ...], decimal_comma: bool
) -> NDArray[np.uint8]:
    r"""Return whole lines with some of their fields, one line for each line of `data`."""
    lines = int(np.count_nonzero(data == ord("\n")))
    out = np.empty(len(data) + MOST_ADDED * lines, np.uint8)
    wanted = np.full(max(columns) + 1, -1, np.int64)
    wanted[list(columns)] = np.arange(len(columns))
    return out[: _select(data, separator, wanted, len(columns), decimal_comma, out)]


@kernel()
def _select(data, separator, wanted, count, decimal_comma, out):
    """Write the fields whose places `wanted` gives (−1: none) to `out`; return its length."""
    starts = np.zeros(count, np.int64)
    stops = np.zeros(count, np.int64)
    pos, at = 0, 0
    while pos < len(data):
        while pad(data[pos], separator):
            pos += 1
        after = skip_comment(data, pos)
        if after != pos:
            pos = after
            out[at] = 10
            at += 1
            continue
        if end_of_line(data, pos, separator) < 0:  # the quote alone makes the line bad
            out[at], out[at + 1] = 34, 10
            at += 2
            while data[pos] != 10:
                pos += 1
            pos += 1
            continue
        starts[:], stops[:] = 0, 0
        at_field = 0
        while data[pos] != 10:
            start, stop, pos = field(data, pos, separator)
            if at_field < len(wanted) and wanted[at_field] >= 0:
                starts[wanted[at_field]], stops[wanted[at_field]] = start, stop
            at_field += 1
        pos += 1
        for place in range(count):
            start, stop = starts[place], stops[place]
            if place:
                out[at] = separator
                at += 1
            # Unquoted, an empty id would shift the others, and # would start a comment.
            c = data[start]
            quote = place < 2 and (start == stop or c == 35 or c == 37 or c == 47)
            if place == 2 and c == 34 and stop > start + 1 and data[stop - 1] == 34:
                start += 1
                stop -= 1
            if quote:
                out[at] = 34
                at += 1
            for i in range(start, stop):
                c = data[i]
                if place == 2 and decimal_comma:
                    c = 46 if c == 44 else (44 if c == 46 else c)
                out[at] = c
                at += 1
            if quote:
                out[at] = 34
                at += 1
        out[at] = 10
        at += 1
    return at
