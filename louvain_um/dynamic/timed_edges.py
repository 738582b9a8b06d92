"""Timed edge lists: ``u v time [w]`` in text or Parquet, in the order of their times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.plain_data import collected
from louvain_um.dynamic.windows import NUMBERS, Line, TimeFormat, seconds_of
from louvain_um.errors import GraphError
from louvain_um.formats.arrow import check_rows, checked, from_arrow, is_numeric
from louvain_um.formats.column_roles import choose_timed, choose_weight
from louvain_um.formats.edge_list.first_lines import is_number
from louvain_um.formats.edge_list.number_vertices import number_vertices
from louvain_um.formats.edge_list.reader import TimedLines
from louvain_um.formats.file_types import SUFFIXES, first_line_of, other_content, require, suffix_of
from louvain_um.formats.graph_file import GraphFile, open_graph_file
from louvain_um.formats.objects import is_example
from louvain_um.formats.parse_errors import DECIMAL_COMMA
from louvain_um.formats.read_options import TimedOptions
from louvain_um.formats.tables import checked_ids, factorize
from louvain_um.results.display import count

PARQUET_MAGIC: Final = b"PAR1"

MOST_WEIGHT: Final = 2**52
"""Weights must be smaller: totals are exact as doubles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedEdges:
    """Edges in the order of their times.

    Parameters
    ----------
    u, v : uint32[e]
    times : int64[e] or float64[e]
        Never falling. Dates are seconds since 1970.
    weights : int64[e] or float64[e] or None
    n_vertices : int
    names : array of length n, optional
        The vertices' names in the source; None when they are 0 … n − 1.
    time_format : TimeFormat
        How times are written in the source.
    notes : tuple of str
        What was guessed, and what was not read.
    """

    u: NDArray[np.uint32]
    v: NDArray[np.uint32]
    times: NDArray[Any]
    weights: NDArray[Any] | None
    n_vertices: int
    names: NDArray[Any] | None
    time_format: TimeFormat = NUMBERS
    notes: tuple[str, ...] = ()


def read_timed_edges(path: str, options: TimedOptions, *, sort: bool) -> TimedEdges:
    """Read a timed edge list; `louvain_um.read_stream` documents it."""
    if is_example(path):
        raise GraphError(f"{path}: examples have no times; name a file of timed edges")
    with open_graph_file(path, trusted=options.trusted) as file:
        return timed_edges_of(file, options, sort=sort)


def timed_edges_of(file: GraphFile, options: TimedOptions, *, sort: bool) -> TimedEdges:
    """Read a timed edge list to its end."""
    with file.naming():
        if file.peek(4) == PARQUET_MAGIC:
            return _of_columns(file, _parquet_columns(file, options), options, sort=sort)
        file.skip_byte_order_mark()
        file.refuse_utf16()
        refuse_graphs(file)
        file.end_lines_with_newlines()
        file.skip_separator_line()
        lines = TimedLines.begin(file, options)
        found = lines.read(file)
        edges, line = found.edges, found.column.line
        if edges.inexact is not None:
            large = (
                f"weight {edges.inexact.text} is 2^52 or more; write all weights in a larger unit"
            )
            raise file.error(large, edges.inexact.line)
        if lines.in_order and edges.w is not None:
            refuse_swapped(file, found.times, edges.w)
        columns = _Columns(
            u=edges.u, v=edges.v, times=found.times, weights=edges.w, names=found.names,
            notes=found.notes,
        )  # fmt: skip
        return _timed(file, columns, options, line, sort=sort)


def timed_edges_in(table: Any, options: TimedOptions, *, sort: bool) -> TimedEdges:
    """Take timed edges from a table of pandas, Arrow or Polars."""
    arrow = require("pyarrow", "a table of timed edges")
    table = collected(table)
    if hasattr(table, "to_arrow"):
        try:
            table = table.to_arrow()
        except Exception as error:  # of several types, one for each library
            raise GraphError(
                f"the table cannot be read ({first_line_of(error)}); cast its columns to Int64 or "
                "text"
            ) from None
    column: Callable[[int], Any]
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        titles = [str(title) for title in table.columns]
        numeric = [getattr(kind, "kind", "O") in "iuf" for kind in table.dtypes]
        column = partial(_arrow_column, arrow, table)
    elif isinstance(table, arrow.Table | arrow.RecordBatch):
        titles, column = table.schema.names, table.column
        numeric = [is_numeric(kind) for kind in table.schema.types]
    else:
        raise GraphError(
            f"cannot read timed edges from {type(table).__name__}; pass a path, or a table of "
            "pandas, Arrow or Polars"
        )
    file = GraphFile(BytesIO(), "the table")
    with file.naming():
        return _of_columns(file, _columns_of(titles, numeric, column, options), options, sort=sort)


def _arrow_column(arrow: Any, table: Any, place: int) -> Any:
    """Return a column of a pandas frame."""
    frame = table.iloc[:, place].to_frame()
    kind = frame.dtypes.iloc[0]
    if getattr(kind, "isnative", True) is False:  # as FITS and HDF5 have them
        frame = frame.astype(kind.newbyteorder("="))
    try:
        return arrow.Table.from_pandas(frame, preserve_index=False).column(0)
    except Exception as error:  # pyarrow raises several types
        raise GraphError(
            f"column {frame.columns[0]} cannot be read ({first_line_of(error)}); convert its "
            "values to one type"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """The columns of timed edges; with names, ends are places among them."""

    u: NDArray[Any]
    v: NDArray[Any]
    times: NDArray[Any]
    weights: NDArray[Any] | None = None
    names: NDArray[Any] | None = None
    notes: Sequence[str] = ()


def _columns_of(
    titles: list[str], numeric: list[bool], column: Callable[[int], Any], options: TimedOptions
) -> _Columns:
    """Return the columns that are read, by their role; `column` has them by their place."""
    roles = choose_timed(titles, len(titles), options)
    assert roles.time is not None
    weight, notes = roles.weight, list[str]()
    if weight is None:
        others = {*range(len(titles))} - {roles.source, roles.target, roles.time}
        names = [titles[place] for place in sorted(others)]
        title, notes = choose_weight([n for n in names if numeric[titles.index(n)]], names, options)
        weight = None if title is None else titles.index(title)
    places = [roles.source, roles.target, roles.time, *([] if weight is None else [weight])]
    for place in places:
        if titles.count(titles[place]) > 1:
            raise GraphError(f"has several columns named {titles[place]}; rename them")
    u, v, times, *weights = (from_arrow(column(place), titles[place]) for place in places)
    return _Columns(u=u, v=v, times=times, weights=weights[0] if weights else None, notes=notes)


def no_line(_: Any) -> None:
    """Return the line of an edge of a table, which has none."""


def _parquet_columns(file: GraphFile, options: TimedOptions) -> _Columns:
    """Return the columns of a Parquet table that are read."""
    parquet = require("pyarrow.parquet", file.name)

    def columns() -> _Columns:
        table = parquet.ParquetFile(file.seekable())
        check_rows(file, table.metadata)
        titles = list(table.schema_arrow.names)
        numeric = [is_numeric(kind) for kind in table.schema_arrow.types]
        return _columns_of(
            titles, numeric, lambda place: table.read(columns=[titles[place]]).column(0), options
        )

    return checked(file, columns, "a valid Parquet file")


def _of_columns(
    file: GraphFile, columns: _Columns, options: TimedOptions, *, sort: bool
) -> TimedEdges:
    """Return the edges of a table's columns."""
    u, v, names = columns.u, columns.v, None
    if u.dtype.kind in "iu" and v.dtype.kind in "iu":
        u, v = checked_ids(u, "source"), checked_ids(v, "target")
    else:
        if "O" in (u.dtype.kind, v.dtype.kind):  # 7 is the same vertex in both columns
            u, v = (
                ids if ids.dtype == object else ids.astype(str).astype(object) for ids in (u, v)
            )
        u, v, names = factorize(u, v)
    return _timed(file, replace(columns, u=u, v=v, names=names), options, no_line, sort=sort)


def _timed(
    file: GraphFile, columns: _Columns, options: TimedOptions, line: Line, *, sort: bool
) -> TimedEdges:
    """Check the columns and number the vertices; `line` gives the line of each edge."""
    like = TimeFormat(pattern=options.date_format) if options.date_format else None
    times, time_format = seconds_of(file, columns.times, line, like)
    u, v, weights, names = columns.u, columns.v, columns.weights, columns.names
    if weights is not None:
        refuse_weights(file, weights, line)
    if (falls := times[1:] < times[:-1]).any():
        at = int(np.argmax(falls)) + 1
        if not sort:
            many = count(int(np.count_nonzero(falls)), "time runs", "times run")
            now, before = (time_format.text(times[k].item()) for k in (at, at - 1))
            raise file.error(
                f"time {now} comes after {before}: {many} backwards; pass sort=True (--sort) to "
                "sort the edges",
                line(at),
            )
        order = np.argsort(times, kind="stable")
        u, v, times = u[order], v[order], times[order]
        weights = None if weights is None else weights[order]
    if names is not None and names.dtype.kind in "iu":
        u, v, names = names[u], names[v], None
    if names is None:
        u, v, n, names = number_vertices(u, v)
    else:
        n = len(names)
    return TimedEdges(
        u=u, v=v, times=times, weights=weights, n_vertices=n, names=names,
        time_format=time_format, notes=tuple(columns.notes),
    )  # fmt: skip


def refuse_swapped(file: GraphFile, times: NDArray[Any], weights: NDArray[Any]) -> None:
    """Raise if lines seem to be ``u v weight time``, as KONECT writes them, without a header."""
    if "O" in (times.dtype.kind, weights.dtype.kind) or len(times) < 2:
        return
    constant = (times == times[0]).all()
    if constant or (times[1:] < times[:-1]).any():
        rises = (weights[1:] >= weights[:-1]).all() and weights[0] < weights[-1]
        if rises:
            raise file.error(
                f"column 3 {'is constant' if constant else 'falls'} and column 4 rises, as if this "
                "were the time; pass weight='3', time='4', or else time='3', weight='4'"
            )


def refuse_weights(file: GraphFile, weights: NDArray[Any], line: Line) -> None:
    """Raise unless weights are numbers that a graph can hold; `line` gives the line of each."""
    if weights.dtype.kind not in "biuf":
        words = [k for k, text in enumerate(weights) if not is_number(str(text))]
        if words:
            at, text = words[0], str(weights[words[0]])
            remedy = "write a point" if DECIMAL_COMMA.fullmatch(text) else "correct it"
            raise file.error(f"weight {text!r} is not a number; {remedy}", line(at))
        large = np.array([float(text) for text in weights])
        if not (large >= MOST_WEIGHT).any() and np.isfinite(large).all():
            raise file.error("weights are text; write the column as numbers")
    else:
        large = weights
    if (bad := ~(np.isfinite(large) & (large >= 0))).any():
        at = int(np.argmax(bad))
        raise file.error(f"weight {weights[at]} is negative or not finite; correct it", line(at))
    if (bad := large >= MOST_WEIGHT).any():
        at = int(np.argmax(bad))
        raise file.error(
            f"weight {weights[at]} is 2^52 or more; write all weights in a larger unit", line(at)
        )


def refuse_graphs(file: GraphFile) -> None:
    """Raise for a file of a format for graphs, whose edges have no times, or of no edges at all."""
    head = file.peek(64)
    if problem := other_content(head):
        raise file.error(problem)
    format = SUFFIXES.get(suffix_of(file.name), "edges")
    if head.startswith(b"%%MatrixMarket"):
        format = "matrixmarket"
    if format not in ("edges", "parquet"):
        raise file.error(
            f"a {format} file holds a graph without times; pass timed edges: lines u v time, CSV "
            "or Parquet"
        )
