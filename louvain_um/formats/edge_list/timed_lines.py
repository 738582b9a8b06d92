"""Lines of timed edges: lists of edges with one more column, read by the same kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from numpy.typing import NDArray

from louvain_um.errors import GraphError, GraphFormatError
from louvain_um.formats import notes as column_notes
from louvain_um.formats.edge_list import sniff
from louvain_um.formats.edge_list.edges import EdgeList
from louvain_um.formats.edge_list.first_lines import sample_of
from louvain_um.formats.edge_list.reader import line_format_of, read_lines, reads_weight
from louvain_um.formats.edge_list.scan import LineFormat, TimeColumn
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.read_options import TimedOptions

NO_EDGES = "has no edges; expected lines such as: 1 2 1082040961"


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
