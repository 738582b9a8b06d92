"""Where ``louvain-um stream`` has its edges from: a file, or a pipe in which they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.arriving import NAME, ArrivingEdges, arriving
from louvain_um.dynamic.live_stream import LiveStream
from louvain_um.dynamic.streams import EdgeStream, read_stream
from louvain_um.dynamic.timed_edges import timed_edges_of
from louvain_um.dynamic.tracking.stream_folder import (
    StreamFolder,
    damaged,
    fingerprint,
    fingerprint_of_names,
)
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.formats.graph_file import decompressed
from louvain_um.formats.read_options import ReadOptions

if TYPE_CHECKING:
    from louvain_um.cli.progress import Reporter
    from louvain_um.dynamic.graph import DynamicGraph
    from louvain_um.dynamic.windows import Step


class Source(Protocol):
    """Timed edges as batches.

    Attributes
    ----------
    title : str
    live : bool
        Whether there may be no end.
    settings : dict
        What tells these edges from others.
    names : array or None
        The vertices' names, unless the graph has them.
    """

    title: str
    live: bool
    settings: dict[str, Any]
    names: Any

    @property
    def seen(self) -> int:
        """Edges in the batches so far."""

    @property
    def unread(self) -> int:
        """Lines that have arrived and are lost if the stream stops now."""

    @property
    def appeared(self) -> NDArray[np.int64]:
        """Vertices of the graph before the last batch that have their first edge in it."""

    def resume(self, begun: int, folder: StreamFolder) -> None:
        """Go on after some batches."""

    def graph(self, threads: int | None) -> DynamicGraph:
        """Return the graph before the first batch."""

    def steps(self) -> Iterator[Step | None]:
        """Yield the batches; None while nothing arrives."""

    def progress(self) -> str:
        """Return how many edges have been followed and how many wait."""

    def place(self) -> dict[str, Any] | None:
        """Return what it takes to go on after the last batch, besides the tracker."""


class FileSource:
    """All edges of a file."""

    live, unread = False, 0

    def __init__(self, title: str, edges: EdgeStream, every: str, window: str | None) -> None:
        self.title, self.edges, self.every, self.window = title, edges, every, window
        self.settings = {"edges": fingerprint(edges)}
        self.names = edges.edges.names
        if self.names is not None:
            self.settings["names"] = fingerprint_of_names(self.names)
        self.seen = 0
        self._begun = 0
        self._known = np.zeros(edges.edges.n_vertices, np.bool_)
        self.appeared = np.zeros(0, np.int64)

    def resume(self, begun: int, folder: StreamFolder) -> None:
        """Go on after some batches."""
        self._begun = begun

    def graph(self, threads: int | None) -> DynamicGraph:
        """Return a graph of all vertices."""
        return self.edges.graph(threads=threads)

    def steps(self) -> Iterator[Step | None]:
        """Yield the batches that are left."""
        for number, step in enumerate(self.edges.steps(every=self.every, window=self.window), 1):
            if step.insert is None:
                self.appeared = np.zeros(0, np.int64)
            else:
                u, v = step.insert[:2]
                self.seen += len(u)
                vertices = np.union1d(u, v).astype(np.int64)
                self.appeared = vertices[~self._known[vertices]]
                self._known[vertices] = True
            if number > self._begun:
                yield step

    def progress(self) -> str:
        """Return how many edges have been followed and how many wait."""
        return f"{self.seen:,} of {len(self.edges):,} edges"

    def place(self) -> None:
        """Return nothing: batches are counted."""


class LiveSource:
    """Edges as they arrive."""

    title, live, names = "standard input", True, None

    def __init__(
        self, edges: ArrivingEdges, columns: dict[str, Any], every: str, window: str | None
    ) -> None:
        self.edges, self.every, self.window = edges, every, window
        self.settings = {"live": columns}
        self.appeared = np.zeros(0, np.int64)  # the graph has no vertex before its first edge
        self.stream = LiveStream(edges, every, window)

    @property
    def seen(self) -> int:
        """Edges in the batches so far."""
        return self.stream.seen

    @property
    def unread(self) -> int:
        """Lines that have arrived and are lost if the stream stops now."""
        return self.edges.backlog

    def resume(self, begun: int, folder: StreamFolder) -> None:
        """Go on after some batches."""
        if begun:
            left = folder.left(begun)
            try:
                self.stream = LiveStream(self.edges, self.every, self.window, left or {})
            except ValueError:
                raise LouvainUmError(damaged(folder.folder / f"place-{begun}.npz")) from None

    def graph(self, threads: int | None) -> DynamicGraph:
        """Return a graph without vertices: each comes with its first edge."""
        return self.stream.graph(threads=threads)

    def steps(self) -> Iterator[Step | None]:
        """Yield batches as they end."""
        return self.stream.steps()

    def progress(self) -> str:
        """Return how many edges have been followed and how many wait."""
        return f"{self.stream.backlog:,} waiting · {self.seen:,} edges"

    def place(self) -> dict[str, Any]:
        """Return what it takes to go on."""
        return self.stream.state()


def source_of(
    file: str, columns: dict[str, Any], every: str, window: str | None, *, sort: bool,
    reporter: Reporter,
) -> Source:  # fmt: skip
    """Return the edges of a file, or of standard input as they arrive.

    Raises
    ------
    LouvainUmError
        There are none, or the first of them are no edges.
    """
    if file != "-" or sort:
        reporter.step(f"reading {file}")
        edges = read_stream(file, **columns, sort=sort)
        title = Path(file).name
    else:
        reporter.step("waiting for edges")
        options = ReadOptions(**columns)
        stream = arriving(options)
        if isinstance(stream, ArrivingEdges):
            if not stream.wait():
                raise OptionError(remedy="send some", problem=f"{NAME}: holds no edges to follow")
            return LiveSource(stream, columns, every, window)
        whole = decompressed(stream, NAME, trusted=False)
        edges, title = EdgeStream(timed_edges_of(whole, options, sort=False)), NAME
    if not len(edges):
        raise OptionError(remedy="name another file", problem=f"{file}: holds no edges to follow")
    return FileSource(title, edges, every, window)
