"""Lines of timed edges: lists of edges with one more column, read by the same kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError, GraphFormatError
from louvain_um.formats import notes as column_notes
from louvain_um.formats.edge_list import sniff
from louvain_um.formats.edge_list.edges import EdgeList
from louvain_um.formats.edge_list.first_lines import sample_of
from louvain_um.formats.edge_list.reader import line_format_of, read_lines, reads_weight
from louvain_um.formats.edge_list.scan import LineFormat, find_fields
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.read_options import TimedOptions

NO_EDGES = "has no edges; expected lines such as: 1 2 1082040961"


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
                else "the time is missing; the file may be truncated, or a quote is not closed: "
                "download it again, or complete the line"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedList:
    """Timed edges in the order of their lines; without names, ends are ids."""

    edges: EdgeList
    names: NDArray[Any] | None
    times: NDArray[Any]
    column: TimeColumn
    notes: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedLines:
    """How lines of timed edges are read, as the first of them show."""

    detected: sniff.DetectedFormat
    line_format: LineFormat
    options: TimedOptions

    @classmethod
    def begin(cls, file: GraphFile, options: TimedOptions) -> Self:
        """Look at the first lines, and consume a header."""
        sample = sample_of(file)
        if not sample.text:
            raise file.error(NO_EDGES, sample.last_line)
        try:
            detected = sniff.sniff(file, options, timed=True)
        except GraphFormatError:
            if sample.text[0].count(b'"') % 2:
                quote = "has a quote that is not closed; close it, or remove it"
                raise file.error(quote, sample.number[0]) from None
            raise
        file.read(detected.skip)
        weighted = reads_weight(file, detected, options)
        line_format = line_format_of(detected, replace(options, signed=True), weighted=weighted)
        return cls(detected=detected, line_format=line_format, options=options)

    @property
    def in_order(self) -> bool:
        """Whether nothing but their order says which columns are times and weights."""
        bare = self.detected.header is None and not self.detected.konect
        return bare and not self.options.names_columns

    def read(self, file: GraphFile, first_line: int | None = None) -> TimedList:
        """Read the rest of a file, or some lines of which the first has a given number."""
        detected, roles = self.detected, self.detected.roles
        if roles.time is None:
            raise GraphError("has no column of times")
        width = max(detected.width, roles.time + 1)
        as_text = self.options.date_format is not None
        column = TimeColumn(detected.separator, roles.time, width, as_text=as_text)
        column.first_line = first_line or self.line_format.first_line
        line_format = replace(self.line_format, times=column, first_line=column.first_line)
        edges, names, notes = read_lines(file, line_format, detected, self.options)
        times = column.values(file)
        if not len(times):
            raise file.error(NO_EDGES, detected.last_line)
        notes += column_notes.notes_on_weights(edges, self.options, detected)
        return TimedList(edges=edges, names=names, times=times, column=column, notes=notes)
