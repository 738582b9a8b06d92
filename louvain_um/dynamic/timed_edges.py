"""Timed edge lists: ``u v time [w]`` in text or Parquet, in the order of their times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.timed_lines import (
    Columns,
    Line,
    TimedLines,
    is_number,
    places_of,
    refuse_graphs,
    roles_of,
)
from louvain_um.errors import GraphError, GraphFormatError, HostMemoryError
from louvain_um.formats.arrow import from_arrow
from louvain_um.formats.edge_list.number_vertices import number_vertices
from louvain_um.formats.file_types import first_line_of, require
from louvain_um.formats.graph_file import GraphFile, open_graph_file
from louvain_um.formats.objects import is_example
from louvain_um.formats.parse_errors import DECIMAL_COMMA
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.tables import factorize, own_ids
from louvain_um.results.display import count

PARQUET_MAGIC: Final = b"PAR1"

MOST_WEIGHT: Final = 2**52
"""Weights must be smaller: totals are exact as doubles."""

MOST_TIME: Final = 2**62
"""Whole times must be smaller, so that the end of a step is one as well."""


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
    """

    u: NDArray[np.uint32]
    v: NDArray[np.uint32]
    times: NDArray[Any]
    weights: NDArray[Any] | None
    n_vertices: int
    names: NDArray[Any] | None


def read_timed_edges(path: str, options: ReadOptions, *, sort: bool) -> TimedEdges:
    """Read a timed edge list; `louvain_um.read_stream` documents it."""
    if is_example(path):
        raise GraphError(f"{path}: examples have no times; name a file of timed edges")
    with open_graph_file(path, trusted=options.trusted) as file:
        return timed_edges_of(file, options, sort=sort)


def timed_edges_of(file: GraphFile, options: ReadOptions, *, sort: bool) -> TimedEdges:
    """Read a timed edge list to its end."""
    try:
        if file.peek(4) == PARQUET_MAGIC:
            return _timed(file, _parquet_columns(file, options), no_line, sort=sort)
        file.skip_byte_order_mark()
        file.refuse_utf16()
        refuse_graphs(file)
        file.end_lines_with_newlines()
        file.skip_separator_line()
        lines = TimedLines.begin(file, options)
        columns, line = lines.columns(lines.sample + file.read(), lines.first)
        if lines.in_order and "weight" in columns:
            refuse_swapped(file, columns["time"], columns["weight"])
        return _timed(file, columns, line, sort=sort)
    except (GraphFormatError, HostMemoryError):
        raise
    except GraphError as error:
        raise file.error(str(error)) from None


def timed_edges_in(table: Any, options: ReadOptions, *, sort: bool) -> TimedEdges:
    """Take timed edges from a table of pandas, Arrow or Polars."""
    arrow = require("pyarrow", "a table of timed edges")
    if hasattr(table, "to_arrow"):
        try:
            table = table.to_arrow()
        except Exception as error:  # of several types, one for each library
            raise GraphError(
                f"the table cannot be read ({first_line_of(error)}); cast its columns to Int64 or "
                "text"
            ) from None
    column: Callable[[int], Any]
    if hasattr(table, "iloc"):
        titles = [str(title) for title in table.columns]
        column = lambda place: _arrow_column(arrow, table.iloc[:, [place]])  # noqa: E731
    elif isinstance(table, arrow.Table | arrow.RecordBatch):
        titles, column = table.schema.names, table.column
    else:
        raise GraphError(
            f"cannot read timed edges from {type(table).__name__}; pass a path, or a table of "
            "pandas, Arrow or Polars"
        )
    file = GraphFile(BytesIO(), "the table")
    try:
        return _timed(file, _columns_of(titles, column, options), no_line, sort=sort)
    except (GraphFormatError, HostMemoryError):
        raise
    except GraphError as error:
        raise file.error(str(error)) from None


def _arrow_column(arrow: Any, frame: Any) -> Any:
    """Return the column of a pandas frame that has one."""
    try:
        return arrow.Table.from_pandas(frame, preserve_index=False).column(0)
    except Exception as error:  # pyarrow raises several types
        raise GraphError(
            f"column {frame.columns[0]} cannot be read ({first_line_of(error)}); convert its "
            "values to one type"
        ) from None


def _columns_of(titles: list[str], column: Callable[[int], Any], options: ReadOptions) -> Columns:
    """Return the columns that are read, by their role; `column` has them by their place."""
    places = places_of(roles_of(titles, len(titles), options))
    for place in places.values():
        if titles.count(titles[place]) > 1:
            raise GraphError(f"has several columns named {titles[place]}; rename them")
    return {role: from_arrow(column(place), titles[place]) for role, place in places.items()}


def no_line(_: Any) -> None:
    """Return the line of an edge of a table, which has none."""


def _parquet_columns(file: GraphFile, options: ReadOptions) -> Columns:
    """Return the columns of a Parquet table that are read."""
    parquet = require("pyarrow.parquet", file.name)
    try:
        table = parquet.ParquetFile(file.seekable())
        titles = list(table.schema_arrow.names)
        return _columns_of(
            titles, lambda place: table.read(columns=[titles[place]]).column(0), options
        )
    except GraphError:
        raise
    except Exception as error:  # pyarrow raises several types for damaged files
        raise file.error(
            f"is not a valid Parquet file ({first_line_of(error)}); write it again"
        ) from None


def _timed(file: GraphFile, columns: Columns, line: Line, *, sort: bool) -> TimedEdges:
    """Check the columns and number the vertices; `line` gives the line of each edge."""
    times = seconds_of(file, columns["time"], line)
    weights = columns.get("weight")
    if weights is not None:
        refuse_weights(file, weights, line)
    u, v = columns["source"], columns["target"]
    numbers = u.dtype.kind in "iu" and v.dtype.kind in "iu"
    for ids in (u, v) if numbers else ():
        if (negative := ids < 0).any():
            at = int(np.argmax(negative))
            raise file.error(f"the id {ids[at]} is negative; correct it", line(at))
    if (falls := times[1:] < times[:-1]).any():
        at = int(np.argmax(falls)) + 1
        if not sort:
            many = count(int(np.count_nonzero(falls)), "time runs", "times run")
            raise file.error(
                f"time {times[at]} comes after {times[at - 1]}: {many} backwards; pass sort=True "
                "(--sort) to sort the edges",
                line(at),
            )
        order = np.argsort(times, kind="stable")
        u, v, times = u[order], v[order], times[order]
        weights = None if weights is None else weights[order]
    names: NDArray[Any] | None
    if numbers:
        u, v, n, names = number_vertices(own_ids(u), own_ids(v))
    else:
        if "O" in (u.dtype.kind, v.dtype.kind):  # 7 is the same vertex in both columns
            u, v = (
                ids if ids.dtype == object else ids.astype(str).astype(object) for ids in (u, v)
            )
        u, v, names = factorize(u, v)
        n = len(names)
    return TimedEdges(u=u, v=v, times=times, weights=weights, n_vertices=n, names=names)


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


def seconds_of(file: GraphFile, times: NDArray[Any], line: Line) -> NDArray[Any]:
    """Return times as numbers; dates become seconds since 1970."""
    if times.dtype.kind in "iu":
        if (large := np.abs(times.astype(np.float64)) >= MOST_TIME).any():
            at = int(np.argmax(large))
            raise file.error(f"time {times[at]} is 2^62 or more; use a larger unit", line(at))
        return times.astype(np.int64)
    if times.dtype.kind == "f":
        if not (fine := np.isfinite(times)).all():
            at = int(np.argmin(fine))
            raise file.error(f"time {times[at]} is not finite; correct it", line(at))
        return times.astype(np.float64)
    pandas = require("pandas", file.name)
    dates = pandas.to_datetime(pandas.Series(times), errors="coerce", utc=True, format="ISO8601")
    if (bad := dates.isna().to_numpy()).any():
        words = bad & pandas.to_numeric(pandas.Series(times), errors="coerce").isna().to_numpy()
        at = int(np.argmax(words if words.any() else bad))
        if not words.any():
            raise file.error(
                f"time {str(times[at])!r} is a number, but the column holds text; write all times "
                "as numbers, or all as dates",
                line(at),
            )
        raise file.error(
            f"time {str(times[at])!r} is neither a number nor a date such as 2026-01-31; correct "
            "it, or choose the column with time=…",
            line(at),
        )
    # Microseconds reach 290,000 years; nanoseconds end in 2262.
    micros = dates.dt.tz_localize(None).to_numpy().astype("datetime64[us]").astype(np.int64)
    rest = micros % 1_000_000
    seconds: NDArray[Any] = micros // 1_000_000
    return seconds + rest / 1e6 if rest.any() else seconds
