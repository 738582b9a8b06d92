"""Streams of timed edges, replayed as batches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.timed_edges import TimedEdges, read_timed_edges, timed_edges_in
from louvain_um.dynamic.windows import EdgeBlock, Step, Windows
from louvain_um.errors import GraphError, check_switch
from louvain_um.formats.read_options import Column, TimedOptions
from louvain_um.formats.reading import warn_of

if TYPE_CHECKING:
    from louvain_um.dynamic.graph import DynamicGraph


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
    [Change(epoch 1: 1 edge inserted), Change(epoch 2: 2 edges inserted, 1 edge deleted)]
    """

    def __init__(self, edges: TimedEdges) -> None:
        self.edges = edges

    def __len__(self) -> int:
        """Return the number of timed edges."""
        return len(self.edges.u)

    def __repr__(self) -> str:
        e = self.edges
        shown = [e.time_format.text(time.item()) for time in e.times[[0, -1]]] if len(self) else []
        span = f", times {shown[0]} … {shown[1]}" if shown else ""
        return f"EdgeStream({len(self):,} edges of {e.n_vertices:,} vertices{span})"

    @property
    def block(self) -> EdgeBlock:
        """All edges, as `Windows` takes them."""
        e = self.edges
        return EdgeBlock(u=e.u, v=e.v, times=e.times, weights=e.weights)

    @property
    def scale(self) -> float:
        """By which weights are multiplied to become whole; 1 where they are.

        Raises
        ------
        GraphError
            The smallest weight rounds to 0 at the scale of the largest ones.
        """
        weights = self.edges.weights
        if weights is None or weights.dtype.kind != "f":
            return 1.0
        scale = scale_of(weights)
        least = float(weights[weights > 0].min(initial=np.inf))
        if least * scale <= 0.5:
            raise GraphError(
                f"weights from {least:g} to {weights.max():g} span too wide a range: the smallest "
                f"would count as 0; leave out edges of {0.5 / scale:.2g} and less, or correct the "
                "large weights"
            )
        return scale

    def graph(self, **options: Any) -> DynamicGraph:
        """Return a graph of the stream's vertices without edges, weighted, for its steps.

        Parameters
        ----------
        **options
            Of `DynamicGraph`. Real weights need a `scale`; by default that is 2²⁰, or the next
            power of two at which their total stays below 2⁵² and none rounds to 0.
        """
        from louvain_um.dynamic.graph import DynamicGraph

        if "scale" not in options:
            options["scale"] = self.scale
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
            Edges or time that stay; all by default. A window by time ends with the step: times
            from so long before the step's end on are inside.

        Raises
        ------
        OptionError
            Not a positive number or span, or above ten million steps.
        """
        windows = Windows(every, window)
        yield from windows.feed(self.block)
        yield from windows.close()


def scale_of(weights: NDArray[np.float64]) -> float:
    """Return the power of two by which real weights become whole: 2²⁰ where that is fine.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.dynamic.streams import scale_of
    >>> [int(np.log2(scale_of(np.array(each)))) for each in ([0.5], [1e12], [1e-9])]
    [20, 11, 30]
    """
    positive = weights[weights > 0]
    if not len(positive):
        return 2.0**20
    top = int(np.frexp(positive.max())[1])  # the sum of the weights themselves may be infinite
    most = 51 - top - int(np.frexp(np.ldexp(positive, -top).sum())[1])
    least = 1 - int(np.frexp(positive.min())[1])  # the smallest one becomes 1 or more
    return float(2.0 ** max(0, min(most, max(20, least), 52)))


def read_stream(
    path: Any,
    *,
    source: Column | None = None,
    target: Column | None = None,
    time: Column | None = None,
    weight: Column | None = None,
    header: bool | None = None,
    separator: str | None = None,
    sort: bool = False,
    trusted: bool = False,
    ids: Literal["auto", "number", "text"] = "auto",
    weighted: bool | None = None,
    date_format: str | None = None,
) -> EdgeStream:
    r"""Read a timed edge list: lines ``u v time [w]``, a CSV or a Parquet table.

    Parameters
    ----------
    path : path, or a table of pandas, Arrow or Polars
        Text, possibly gzipped, whose comments begin with ``#``, ``%`` or ``//``; blank lines are
        passed over. Or a ``.parquet`` table.
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
    ids : {"auto", "number", "text"}
        For text: as in `read_graph`. Ids such as ``007`` are text by default, and so are all others
        then.
    weighted : bool, optional
        Whether to read weights; as in `read_graph`.
    date_format : str, optional
        How dates are written, as `datetime.strftime` takes it: ``"%d.%m.%Y"``. By default times
        are numbers, or dates of ISO 8601.

    Returns
    -------
    EdgeStream

    Warns
    -----
    GraphWarning
        For each note on a guess that may be wrong.

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
    EdgeStream(2 edges of 3 vertices, times 2026-01-31 … 2026-02-01)
    """
    check_switch("sort", sort)
    options = TimedOptions.of(locals())
    if isinstance(path, str | os.PathLike):
        edges = read_timed_edges(os.fspath(path), options, sort=sort)
    else:
        edges = timed_edges_in(path, options, sort=sort)
    warn_of(edges.notes)
    return EdgeStream(edges)
