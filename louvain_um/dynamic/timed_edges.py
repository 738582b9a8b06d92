"""Timed edge lists: ``u v time [w]`` in text or Parquet, in the order of their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.timed_lines import TimedLines, is_number, places_of, roles_of
from louvain_um.errors import GraphError, GraphFormatError, HostMemoryError
from louvain_um.formats.edge_list.number_vertices import number_vertices
from louvain_um.formats.graph_file import GraphFile, open_graph_file
from louvain_um.formats.objects.frames import factorize
from louvain_um.formats.optional_dependencies import first_line_of, require
from louvain_um.formats.parquet import from_arrow
from louvain_um.formats.read_options import ReadOptions

PARQUET_MAGIC: Final = b"PAR1"


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
    with open_graph_file(path, trusted=options.trusted) as file:
        return timed_edges_of(file, options, sort=sort)


def timed_edges_of(file: GraphFile, options: ReadOptions, *, sort: bool) -> TimedEdges:
    """Read a timed edge list to its end."""
    try:
        if file.peek(4) == PARQUET_MAGIC:
            columns, first = _parquet_columns(file, options), None
        else:
            file.skip_byte_order_mark()
            file.end_lines_with_newlines()
            lines = TimedLines.begin(file, options)
            first = lines.first
            columns = lines.columns(without_last_blanks(lines.sample + file.read()), first)
        return _timed(file, columns, first, sort=sort)
    except (GraphFormatError, HostMemoryError):
        raise
    except GraphError as error:
        raise file.error(str(error)) from None


def without_last_blanks(text: bytes) -> bytes:
    r"""Return a text without the blank lines at its end, which editors leave.

    Examples
    --------
    >>> from louvain_um.dynamic.timed_edges import without_last_blanks
    >>> without_last_blanks(b"1 2 3\n \n\n")
    b'1 2 3\n'
    """
    end = len(text)
    while (line := text.rfind(b"\n", 0, max(end - 1, 0))) >= 0 and not text[line:end].strip():
        end = line + 1
    return text[:end]


def _parquet_columns(file: GraphFile, options: ReadOptions) -> dict[str, NDArray[Any]]:
    """Return the columns of a Parquet table that are read."""
    parquet = require("pyarrow.parquet", file.name)
    try:
        table = parquet.ParquetFile(file.seekable())
        titles = list(table.schema_arrow.names)
        roles = roles_of(titles, len(titles), options)
        return {
            role: from_arrow(table.read(columns=[titles[place]]).column(0))
            for role, place in places_of(roles).items()
        }
    except GraphError:
        raise
    except Exception as error:  # pyarrow raises several types for damaged files
        raise file.error(
            f"is not a valid Parquet file ({first_line_of(error)}); write it again"
        ) from None


def _timed(
    file: GraphFile, columns: dict[str, NDArray[Any]], first: int | None, *, sort: bool
) -> TimedEdges:
    """Check the columns and number the vertices; `first` is the line of the first edge."""

    def line(place: Any) -> int | None:
        return None if first is None else first + int(place)

    times = seconds_of(file, columns["time"], line)
    weights = columns.get("weight")
    if weights is not None:
        refuse_weights(file, weights, line)
    u, v = columns["source"], columns["target"]
    if (falls := times[1:] < times[:-1]).any():
        at = int(np.argmax(falls)) + 1
        if not sort:
            raise file.error(
                f"time {times[at]} comes after {times[at - 1]}: {np.count_nonzero(falls):,} times "
                "run backwards; pass sort=True (--sort) to sort the edges",
                line(at),
            )
        order = np.argsort(times, kind="stable")
        u, v, times = u[order], v[order], times[order]
        weights = None if weights is None else weights[order]
    names: NDArray[Any] | None
    if u.dtype.kind in "iu" and v.dtype.kind in "iu":
        for ids in (u, v):
            if len(ids) and int(ids.min()) < 0:
                at = int(np.argmax(ids < 0))
                raise file.error(f"the id {ids[at]} is negative; correct it", line(at))
        largest = max(int(u.max(initial=0)), int(v.max(initial=0)))
        kind = np.uint32 if largest < 2**32 - 1 else np.int64
        u, v, n, names = number_vertices(u.astype(kind), v.astype(kind))
    else:
        u, v, names = factorize(u.astype(object), v.astype(object))
        n = len(names)
    return TimedEdges(u=u, v=v, times=times, weights=weights, n_vertices=n, names=names)


def refuse_weights(file: GraphFile, weights: NDArray[Any], line: Any) -> None:
    """Raise unless weights are numbers that a graph can hold; `line` gives the line of each."""
    if weights.dtype.kind not in "biuf":
        words = (k for k, text in enumerate(weights) if not is_number(str(text)))
        at = next(words, None)
        if at is None:  # whole numbers of more than 64 bits
            raise file.error("a weight exceeds 2^63; write weights as real numbers, as in 1e30")
        raise file.error(f"weight {str(weights[at])!r} is not a number; correct it", line(at))
    if (bad := ~(np.isfinite(weights) & (weights >= 0))).any():
        at = int(np.argmax(bad))
        raise file.error(f"weight {weights[at]} is negative or not finite; correct it", line(at))


def seconds_of(file: GraphFile, times: NDArray[Any], line: Any) -> NDArray[Any]:
    """Return times as numbers; dates become seconds since 1970."""
    if times.dtype.kind in "iu":
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
        raise file.error(
            f"time {str(times[at])!r} is neither a number nor a date such as 2026-01-31; correct "
            "it, or choose the column with time=…",
            line(at),
        )
    nanoseconds = dates.dt.tz_localize(None).to_numpy().astype("datetime64[ns]").astype(np.int64)
    whole = (nanoseconds % 1_000_000_000 == 0).all()
    seconds: NDArray[Any] = nanoseconds // 1_000_000_000 if whole else nanoseconds / 1e9
    return seconds
