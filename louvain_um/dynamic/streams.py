"""Streams of timed edges, and windows that turn them into batches."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.timed_edges import TimedEdges, read_timed_edges
from louvain_um.errors import OptionError
from louvain_um.formats.read_options import Column, ReadOptions

if TYPE_CHECKING:
    from louvain_um.dynamic.change import Change
    from louvain_um.dynamic.graph import DynamicGraph

UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_557_600}
"""Seconds of a unit of time; a year has 365.25 days."""

MOST_STEPS: Final = 10_000_000
"""Steps of a stream: more are a slip in the unit."""

NO_IDS = np.zeros(0, np.uint32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A batch of a stream.

    Parameters
    ----------
    time : int or float
        End of the step; the number of the step in a stream without times.
    insert, delete, decrease : tuple of arrays or None
        What `DynamicGraph.apply` takes.
    new_vertices : int
        Vertices to add before the batch.
    remove : uint32 array
        Vertices to remove before the batch.
    labels : uint32[n] or None
        Planted communities after the batch, if the stream has any.
    """

    time: int | float
    insert: tuple[NDArray[Any], ...] | None = None
    delete: tuple[NDArray[Any], ...] | None = None
    decrease: tuple[NDArray[Any], ...] | None = None
    new_vertices: int = 0
    remove: NDArray[np.uint32] = field(default_factory=lambda: NO_IDS)
    labels: NDArray[np.uint32] | None = None

    def apply(self, graph: DynamicGraph) -> Change:
        """Apply the step to a graph; return the change of its edges.

        Vertices are added and removed first, in batches of their own.
        """
        if self.new_vertices:
            graph.add_vertices(self.new_vertices)
        if len(self.remove):
            graph.remove_vertices(self.remove)
        return graph.apply(insert=self.insert, delete=self.delete, decrease=self.decrease)

    def __len__(self) -> int:
        """Return the number of edges inserted, deleted and decreased."""
        given = (self.insert, self.delete, self.decrease)
        return sum(len(edges[0]) for edges in given if edges is not None)


class EdgeStream:
    """Timed edges in the order of their times: replayed as batches, as often as wanted.

    Parameters
    ----------
    edges : TimedEdges
        What `read_stream` read.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.dynamic.streams import EdgeStream
    >>> from louvain_um.dynamic.timed_edges import TimedEdges
    >>> u, v = np.array([0, 1, 0], np.uint32), np.array([1, 2, 2], np.uint32)
    >>> edges = TimedEdges(
    ...     u=u, v=v, times=np.array([0, 60, 90]), weights=None, n_vertices=3, names=None
    ... )
    >>> graph = EdgeStream(edges).graph()
    >>> [step.apply(graph) for step in EdgeStream(edges).steps(every="1m", window="1m")]
    [Change(epoch 1: 1 edges inserted), Change(epoch 2: 2 edges inserted, 1 edges deleted)]
    """

    def __init__(self, edges: TimedEdges) -> None:
        self.edges = edges

    def __len__(self) -> int:
        """Return the number of timed edges."""
        return len(self.edges.u)

    def __repr__(self) -> str:
        e = self.edges
        span = f", times {e.times[0]} … {e.times[-1]}" if len(self) else ""
        return f"EdgeStream({len(self):,} edges of {e.n_vertices:,} vertices{span})"

    def graph(self, **options: Any) -> DynamicGraph:
        """Return a graph of the stream's vertices without edges, weighted, for its steps.

        Parameters
        ----------
        **options
            Of `DynamicGraph`. Real weights need a `scale`; by default that is 2²⁰.
        """
        from louvain_um.dynamic.graph import DynamicGraph

        weights = self.edges.weights
        if weights is not None and weights.dtype.kind == "f":
            options = {"scale": 2.0**20, **options}
        return DynamicGraph(self.edges.n_vertices, weighted=True, **options)

    def steps(
        self, *, every: int | float | str, window: int | float | str | None = None
    ) -> Iterator[Step]:
        """Yield the batches of a growing or sliding window.

        An edge that occurs repeatedly within the window weighs the sum, so the graph must be
        weighted. An edge that leaves the window loses the weight that it brought.

        Parameters
        ----------
        every : int or str
            Edges a step (``10000``), or time a step, with a unit (``"1d"``): s, m, h, d, w or y,
            seconds of the times' own unit. Steps without edges are yielded too.
        window : int or str, optional
            Edges or time that stay; all by default. A window by time ends with the step and
            leaves out its beginning.

        Raises
        ------
        OptionError
            Not a positive number or span, or above ten million steps.
        """
        e = self.edges
        ends, times = self._ends(every)
        begins = self._begins(ends, times, window)

        def between(low: int, high: int) -> tuple[NDArray[Any], ...] | None:
            if low >= high:
                return None
            weights = np.ones(high - low, np.int64) if e.weights is None else e.weights[low:high]
            if weights.dtype.kind == "f":
                weights = weights.astype(np.float64)
            return e.u[low:high], e.v[low:high], weights

        old_begin = old_end = 0
        for begin, end, time in zip(begins.tolist(), ends.tolist(), times.tolist(), strict=True):
            yield Step(
                time=time,
                insert=between(max(old_end, begin), end),
                decrease=between(old_begin, min(begin, old_end)),
            )
            old_begin, old_end = begin, end

    def _ends(self, every: int | float | str) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return how many edges each step has seen, and its time."""
        times, count = self.edges.times, len(self)
        size, by_time = span("every", every)
        if count == 0:
            return np.zeros(0, np.int64), times[:0]
        if not by_time:
            ends = np.append(np.arange(int(size), count, int(size)), count)
            return ends, times[ends - 1]
        first = times[0]
        steps = int((times[-1] - first) // size) + 1
        if steps > MOST_STEPS:
            raise OptionError("every", every, f"must be longer: it gives {steps:,} steps")
        stops = first + size * np.arange(1, steps + 1)
        return np.searchsorted(times, stops, side="left"), stops

    def _begins(
        self, ends: NDArray[np.int64], times: NDArray[Any], window: int | float | str | None
    ) -> NDArray[np.int64]:
        """Return the first edge that is still in the window at each step."""
        if window is None:
            return np.zeros(len(ends), np.int64)
        size, by_time = span("window", window)
        if not by_time:
            return np.maximum(ends - int(size), 0)
        begins = np.searchsorted(self.edges.times, times - size, side="left")
        return np.minimum(begins, ends)


def span(option: str, value: int | float | str) -> tuple[float, bool]:
    """Return a number of edges or seconds, and whether it is time.

    Examples
    --------
    >>> from louvain_um.dynamic.streams import span
    >>> span("every", "30d"), span("every", 1000)
    ((2592000, True), (1000, False))
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", str(value))
    remedy = "must be a number of edges like 10000, or a time like '30d' (s, m, h, d, w, y)"
    if match is None or (match[2] and match[2] not in UNITS):
        raise OptionError(option, value, remedy)
    number = float(match[1])
    size = number * UNITS.get(match[2], 1)
    if size <= 0 or (not match[2] and not number.is_integer()):
        raise OptionError(option, value, remedy)
    return (int(size) if size.is_integer() else size), bool(match[2])


def read_stream(
    path: str | os.PathLike[str],
    *,
    source: Column | None = None,
    target: Column | None = None,
    time: Column | None = None,
    weight: Column | None = None,
    header: bool | None = None,
    separator: str | None = None,
    sort: bool = False,
    trusted: bool = False,
) -> EdgeStream:
    r"""Read a timed edge list: lines ``u v time [w]``, a CSV or a Parquet table.

    Parameters
    ----------
    path : path
        Text, possibly gzipped, whose comments begin with ``#`` or ``%``; or a ``.parquet`` table.
        ``-`` is standard input.
    source, target, time, weight : str or int, optional
        Columns, by name or number from 1. By default those with known names of a header or table
        (``source``, ``target``, ``time``, ``timestamp``, ``date``, ``weight`` …), or else the
        first four in this order.
    header : bool, optional
        Whether the first line names the columns; by default if none of its fields is a number.
    separator : str, optional
        The character between fields; detected by default.
    sort : bool
        Sort edges by time. Otherwise a time that is earlier than the one before it is an error.
    trusted : bool
        As in `read_graph`.

    Returns
    -------
    EdgeStream

    Raises
    ------
    GraphFormatError
        Names the file, the line if it is known, and a remedy.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import louvain_um as lu
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "calls.csv")
    ...     _ = path.write_text("caller,callee,date\nann,bob,2026-01-31\nbob,cid,2026-02-01\n")
    ...     lu.read_stream(path)
    EdgeStream(2 edges of 3 vertices, times 1769817600 … 1769904000)
    """
    options = ReadOptions(
        source=source,
        target=target,
        time=time,
        weight=weight,
        header=header,
        separator=separator,
        trusted=trusted,
    )
    return EdgeStream(read_timed_edges(os.fspath(path), options, sort=sort))
