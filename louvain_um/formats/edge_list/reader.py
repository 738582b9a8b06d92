"""Edge lists: SNAP, TSV, CSV and similar files, read as undirected graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError, Uncertain, shown
from louvain_um.formats.build import noted
from louvain_um.formats.column_roles import Roles, are_times, taken, unread_numbers
from louvain_um.formats.edge_list import scan, sniff
from louvain_um.formats.edge_list.edges import (
    PARSE_THERE,
    EdgeList,
    TextIdError,
    build_graph,
    read_numbers,
)
from louvain_um.formats.edge_list.first_lines import sample_of
from louvain_um.formats.edge_list.named_vertices import read_named
from louvain_um.formats.edge_list.number_vertices import number_vertices, refuse_ids
from louvain_um.formats.edge_list.scan import LineFormat, TimeColumn, TypeColumn
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.ids import ids_are_text
from louvain_um.formats.read_options import ReadOptions, TimedOptions
from louvain_um.formats.two_modes import (
    Numbered,
    are_one_kind,
    different_kinds,
    modes_of,
    split_modes,
)
from louvain_um.graph.graph import Graph

OTHERS = "name others with source=… and target=…"

AS_WEIGHT = "weighted=True reads it as the weight"


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read an edge list."""
    detected = sniff.sniff(file, options)
    keeps = options.symmetrize or options.directed
    notes = list(detected.notes)
    if detected.konect in ("asym", "dir") and not keeps:
        notes.append(
            Uncertain(
                f"the file declares directed edges (% {detected.konect}), which are read as "
                "undirected; directed=True keeps directions"
            )
        )
    if detected.header is not None:
        notes.append(
            f"line {detected.lines} ({shown(detected.header, 200)}) is read as a header; "
            "header=False reads it as an edge"
        )
    chosen = options.header is not None or not detected.in_place or options.names_columns
    counts = None if chosen else sniff.possible_counts(file, detected.separator)
    counts_only = counts is not None and len(counts) != detected.columns and detected.sampled > 1
    if counts_only:
        # Too few fields for an edge: skipped now, checked against the edges below.
        sniff.skip_first_line(file, detected)
    else:
        file.read(detected.skip)
    line_format = line_format_of_edges(file, detected, options)
    edges, names, more = read_lines(file, line_format, detected, options)
    notes += more
    announced = detected.announced
    if counts is not None and names is None and _are_counts(counts, edges, counts_only):
        announced = counts[0]
        if not counts_only:
            edges.u, edges.v = edges.u[1:], edges.v[1:]
            edges.w = None if edges.w is None else edges.w[1:]
        notes.append(
            f"the first line ({' '.join(map(str, counts))}) counts vertices and edges and is "
            "read as a header; header=False reads it as an edge"
        )
    elif counts_only and counts is not None:
        raise file.error(
            f"{len(counts)} fields, but the lines below have {detected.columns}, and these are not "
            "the counts of vertices and edges; delete the line, or skip it with header=True "
            "(--header)",
            detected.lines,
        )
    notes += notes_on_ends(detected.roles, detected.titles, moved=not detected.in_place)
    notes += notes_on_weights(edges, options, detected)
    return _number_and_build(file, edges, names, announced, options, detected, notes)


def read_lines(
    file: GraphFile, line_format: LineFormat, detected: sniff.DetectedFormat, options: ReadOptions
) -> tuple[EdgeList, Any, list[str]]:
    """Read the rest of a file; return edges, names unless all ids are numbers, and notes."""
    if detected.named:
        (edges, names), notes = read_named(file, line_format), [*detected.text_ids]
    else:
        try:
            plain = line_format.plain and options.kind == "undirected"
            plain = plain and options.loops == "keep" and options.one_based is None
            there = PARSE_THERE.get()(file, line_format) if plain else None
            return read_numbers(file, line_format, there), None, []
        except TextIdError as found:
            notes = [ids_are_text(found.text, found.line)]
            edges, names = read_named(file, line_format, found)
    if options.header is None and detected.header is not None:
        _refuse_repeated_header(file, edges, names, detected)
    return edges, names, notes


def _refuse_repeated_header(
    file: GraphFile, edges: EdgeList, names: Any, detected: sniff.DetectedFormat
) -> None:
    """Raise an error if an edge joins the names of the columns, as in files joined to one."""
    titles = [detected.titles[place] for place in detected.order[:2]]
    if names.dtype.kind in "iu" or not len(names):
        return
    first, second = (int(np.searchsorted(names, title)) for title in titles)
    if max(first, second) == len(names) or [names[first], names[second]] != titles:
        return
    if np.any((edges.u == first) & (edges.v == second)):
        raise file.error(
            f"the header {shown(detected.header, 200)} occurs again below; delete all but the "
            "first, or, if it is an edge there, pass header=True (--header)",
            detected.lines,
        )


def reads_weight(file: GraphFile, detected: sniff.DetectedFormat, options: ReadOptions) -> bool:
    """Return whether a weight is read; raise an error if one is wanted and there is none."""
    first = detected.lines + 1
    if options.weighted and detected.columns <= detected.place:
        raise file.error("has no third column with weights; drop weighted=True (--weighted)", first)
    if options.weighted and detected.weights == "other":
        raise file.error(
            f"{detected.column(2)} is not numeric; drop weighted=True (--weighted)", first
        )
    if options.weighted is False:
        return False
    if detected.weights in ("other", "time", "named") and not options.weighted:
        return False
    reads = detected.columns > detected.place
    if reads and detected.ambiguous is not None:
        line, text = detected.ambiguous
        raise file.error(
            f"weight {text!r} can mean {text.replace(',', '.')} or {text.replace(',', '')}; write "
            "decimals with a point, or pass weighted=False (--unweighted)",
            line,
        )
    return reads


def line_format_of_edges(
    file: GraphFile, detected: sniff.DetectedFormat, options: ReadOptions
) -> LineFormat:
    """Return the format of lines, of which none may say that its edge is directed."""
    line_format = line_format_of(detected, options, weighted=reads_weight(file, detected, options))
    titles = [title.lower() for title in detected.titles]
    if options.symmetrize or options.directed or "type" not in titles:
        return line_format
    place = detected.separator, titles.index("type")
    column = TypeColumn(file, *place, line_format.first_line)
    return replace(line_format, aside=(column,))


def line_format_of(
    detected: sniff.DetectedFormat, options: ReadOptions, *, weighted: bool
) -> LineFormat:
    """Return how the lines are read, rewritten first if the ids are not in front."""
    place = detected.order[detected.place] if weighted else 2
    columns = None
    decimal_comma = weighted and detected.decimal_comma
    if decimal_comma or not detected.in_place:
        columns = (*detected.order[:2], *([place] if weighted else []))
        shape, place = scan.WEIGHT if weighted else scan.IGNORE_REST, 2
    elif weighted:
        last = detected.width == place + 1
        shape = scan.WEIGHT if last else scan.WEIGHT_IGNORE_REST
    elif options.weighted is False or detected.width > 2:
        shape = scan.IGNORE_REST
    else:
        shape = scan.TWO_IDS
    return LineFormat(
        separator=detected.separator,
        shape=shape,
        place=place,
        min_id=1 if options.one_based else 0,
        first_line=detected.lines + 1,
        columns=columns,
        decimal_comma=decimal_comma,
        signed=options.signed,
        exact=options.ids == "auto",
    )


def _are_counts(counts: list[int], edges: EdgeList, counts_only: bool) -> bool:
    """Return whether the first line counts the vertices and the edges that follow."""
    first = 0 if counts_only else 1
    others = len(edges.u) - first
    if others < 1 or counts[-1] != others or len(set(counts[:-1])) > 1:
        return False
    return bool(max(edges.u[first:].max(), edges.v[first:].max()) <= counts[0])


def _number_and_build(
    file: GraphFile,
    edges: EdgeList,
    names: Any,
    announced: int | None,
    options: ReadOptions,
    detected: sniff.DetectedFormat,
    notes: list[str],
) -> Graph:
    titles = detected.end_titles
    named = options.bipartite or (names is not None and names.dtype != np.int64)
    if named and (unsuited := options.unsuited_to_names()):
        raise file.error(unsuited)
    if options.bipartite:
        edges.u, edges.v, n, names = split_modes(edges.u, edges.v, names, titles)
        return build_graph(file, edges, n, names, options, notes)
    if names is not None and names.dtype == np.int64:
        edges.u, edges.v = names[edges.u], names[edges.v]
        names = None
    if names is None:
        base = None if options.one_based is None else int(options.one_based)
        if base is not None:
            refuse_ids(edges.u, edges.v, base, trusted=file.trusted)
        file.check_vertices(announced or 0, len(edges.u))
        if (made := _made_there(edges, announced, options, detected)) is not None:
            return noted(made, notes)
        edges = edges.here()
        edges.u, edges.v, n, names = number_vertices(
            edges.u, edges.v, announced=announced, base=base
        )
    else:
        n = len(names)
    found = modes_of(
        Numbered(edges.u, edges.v, n, names),
        titles,
        mixed=detected.mixed,
        declared=detected.konect == "bip",
        one=options.bipartite is False,
    )
    edges.u, edges.v = found.u, found.v
    return build_graph(file, edges, found.n, found.names, options, [*notes, *found.notes])


def _made_there(
    edges: EdgeList, announced: int | None, options: ReadOptions, detected: sniff.DetectedFormat
) -> Graph | None:
    """Return the graph of edges that a device holds; None if the host is to make it."""
    if edges.there is None or edges.inexact is not None or (edges.w is None and options.weighted):
        return None
    one = are_one_kind(
        edges.u,
        edges.v,
        detected.end_titles,
        mixed=detected.mixed,
        declared=detected.konect == "bip",
        one=options.bipartite is False,
    )
    return edges.there.graph(edges, announced, options.duplicates) if one else None


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
        detected = sniff.sniff(file, options, timed=True)
        file.read(detected.skip)
        weighted = reads_weight(file, detected, options)
        line_format = line_format_of(detected, replace(options, signed=True), weighted=weighted)
        return cls(detected=detected, line_format=line_format, options=options)

    @property
    def in_order(self) -> bool:
        """Whether nothing but their order says which columns are times and weights."""
        plain = not self.detected.titles and not self.detected.konect
        return plain and not self.options.names_columns

    def read(self, file: GraphFile, first_line: int | None = None) -> TimedList:
        """Read the rest of a file, or some lines of which the first has a given number."""
        detected, roles = self.detected, self.detected.roles
        if roles.time is None:
            raise GraphError("has no column of times")
        width = max(detected.width, roles.time + 1)
        as_text = self.options.date_format is not None
        column = TimeColumn(detected.separator, roles.time, width, as_text=as_text)
        column.first_line = first_line or self.line_format.first_line
        line_format = replace(self.line_format, aside=(column,), first_line=column.first_line)
        edges, names, more = read_lines(file, line_format, detected, self.options)
        times = column.values(file)
        if not len(times):
            raise file.error(NO_EDGES, detected.last_line)
        notes = [*detected.notes, *more, *notes_on_weights(edges, self.options, detected)]
        return TimedList(edges=edges, names=names, times=times, column=column, notes=notes)


def notes_on_ends(roles: Roles, titles: Sequence[str], *, moved: bool) -> list[str]:
    """Return notes on the columns of ids and times."""
    notes: list[str] = []

    def column(place: int) -> str:
        return f"column {place + 1}" + (f" ({titles[place]!r})" if place < len(titles) else "")

    first, second = column(roles.source), column(roles.target)
    if roles.marker is not None:
        notes.append(
            f"{column(roles.marker)} marks each line as an edge; edges are read from {first} and "
            f"{second}"
        )
    elif roles.relation is not None:
        note = f"{column(roles.relation)} says how {first} and {second} are related and is not read"
        notes.append(Uncertain(f"{note}; {OTHERS}") if roles.guessed else note)
    elif roles.guessed:
        ends = [titles[i] for i in (roles.source, roles.target) if i < len(titles)]
        if len(ends) < 2 or not different_kinds(*ends):
            notes.append(
                Uncertain(f"{first} and {second} are read as the ends of each edge; {OTHERS}")
            )
    elif moved:
        notes.append(f"edges are read from {first} and {second}")
    if roles.time is not None:
        notes.append(f"{column(roles.time)} holds times, which a graph without time does not use")
    return notes


def notes_on_weights(
    edges: EdgeList, options: ReadOptions, detected: sniff.DetectedFormat
) -> list[str]:
    """Drop weights that are times; return notes on weights and other numbers."""
    w = edges.w
    further = [detected.title(place) for place in detected.numeric]
    uncertain = not options.names_columns
    if w is None:
        if options.weighted is False or detected.columns < 3:
            return []
        if detected.weights == "named":
            return [unread_numbers(further, uncertain=uncertain)] if further else []
        what = "contains times" if detected.weights == "time" else "is not a weight"
        # A column of words cannot be read as the weight.
        advice = "" if detected.weights == "other" else f"; {AS_WEIGHT}"
        notes: list[str] = [f"{detected.column(2)} {what} and is not read{advice}"]
        return [*notes, *([unread_numbers(further, uncertain=uncertain)] if further else [])]
    notes = [*edges.notes]
    if detected.weights == "weight" and detected.order[detected.place] != 2:
        notes.append(f"weights are read from {detected.column(detected.place)}")
    if detected.decimal_comma:
        notes.append("weights have decimal commas: 1,5 is read as 1.5")
    further = [detected.title(place) for place in detected.numeric if place != detected.place]
    if further:
        notes.append(unread_numbers(further, uncertain=False))
    unnamed = detected.weights in ("unnamed", "taken")
    if not options.weighted and unnamed and len(w) > 1 and w.dtype == np.int64:
        what = are_times(int(w.min()), int(w.max()))
        if what:
            edges.w = None
            where = detected.column(detected.place)
            note = f"{where} looks like {what} and is not read; {AS_WEIGHT}"
            # Numbers of ten digits in this range are hardly anything else.
            return [Uncertain(note) if what == "years" else note]
    if detected.weights == "taken":
        notes.append(taken(detected.title(detected.place)))
    if options.weighted or detected.weights != "unnamed" or len(w) < 2:
        return notes
    if detected.columns > 3:
        commas = " (write decimals with a point)" if detected.separator == ord(",") else ""
        column = detected.column(2).removesuffix(" column")
        note = (
            f"lines have {detected.width} fields: {column} is read as the weight, the others are "
            f"not read{commas}; weighted=False reads the ids only"
        )
        return [*edges.notes, Uncertain(note) if detected.numeric else note]
    return notes
