"""Where ``louvain-um stream`` has its edges from: a file, or a pipe in which they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.arriving import NAME, ArrivingEdges, arriving
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.live_stream import LiveStream
from louvain_um.dynamic.streams import EdgeStream, read_stream
from louvain_um.dynamic.timed_edges import timed_edges_of
from louvain_um.dynamic.tracking.stream_folder import (
    StreamFolder,
    damaged,
    fingerprint,
    fingerprint_of_names,
)
from louvain_um.dynamic.windows import NUMBERS, Step, Windows
from louvain_um.errors import GraphError, LouvainUmError, OptionError
from louvain_um.formats.graph_file import decompressed
from louvain_um.formats.read_options import TimedOptions

if TYPE_CHECKING:
    from louvain_um.cli.progress import Reporter

NO_VERTEX: Final = 2**32 - 1
"""The number of a vertex that has no edge yet."""


class FileSource:
    """All edges of a file, followed as a pipe of the same lines would be."""

    # A vertex comes with its first edge; those of one batch are numbered in the order of their
    # names as text, as a graph with names does it.

    live, unread = False, 0

    def __init__(self, title: str, edges: EdgeStream, every: str, window: str | None) -> None:
        self.title, self.edges, self.scale = title, edges, edges.scale
        self.settings = {"edges": fingerprint(edges), "vertices": "by first edge"}
        e = edges.edges
        if e.names is not None:
            self.settings["names"] = fingerprint_of_names(e.names)
        self._name_of = np.arange(e.n_vertices) if e.names is None else e.names
        self.names = np.empty_like(self._name_of)  # the first ones are those of the graph
        self.seen = 0
        self._begun = self._vertices = 0
        self._number = np.full(e.n_vertices, NO_VERTEX, np.uint32)
        self._windows = Windows(every, window)
        self._windows.check(edges.block)  # before a folder is made, or one is replaced

    def resume(self, begun: int, folder: StreamFolder) -> None:
        """Go on after some batches."""
        self._begun = begun

    def graph(self, threads: int | None) -> DynamicGraph:
        """Return a graph without vertices: each comes with its first edge."""
        return DynamicGraph(0, weighted=True, scale=self.scale, threads=threads)

    def steps(self) -> Iterator[Step | None]:
        """Yield the batches that are left."""
        windows = self._windows
        steps = chain(windows.feed(self.edges.block), windows.close())
        for number, step in enumerate(steps, 1):
            assert windows.ended is not None
            self.seen += len(windows.ended)
            new = self._add_vertices(step)
            if number > self._begun:
                yield replace(
                    step,
                    insert=self._numbered(step.insert),
                    decrease=self._numbered(step.decrease),
                    new_vertices=new,
                )

    def progress(self) -> str:
        """Return how many edges have been followed and how many wait."""
        return f"{self.seen:,} of {len(self.edges):,} edges"

    def written(self, time: int | float) -> int | float | str:
        """Return a time as those of the edges are written."""
        return self.edges.edges.time_format.text(time)

    def place(self) -> None:
        """Return nothing: batches are counted."""

    def _add_vertices(self, step: Step) -> int:
        """Give numbers to vertices with their first edge in a batch; return how many there are."""
        if step.insert is None:
            return 0
        found = np.union1d(*step.insert[:2])
        new = found[self._number[found] == NO_VERTEX]
        if self._name_of.dtype.kind in "iu":  # other names are in this order
            new = new[np.argsort(self._name_of[new].astype(np.str_), kind="stable")]
        first, self._vertices = self._vertices, self._vertices + len(new)
        self._number[new] = np.arange(first, self._vertices, dtype=np.uint32)
        self.names[first : self._vertices] = self._name_of[new]
        return len(new)

    def _numbered(self, edges: tuple[NDArray[Any], ...] | None) -> tuple[NDArray[Any], ...] | None:
        """Return edges between the vertices of the graph."""
        if edges is None:
            return None
        u, v, weights = edges
        return self._number[u], self._number[v], weights


class LiveSource:
    """Edges as they arrive."""

    title, live, names = "standard input", True, None

    def __init__(
        self, edges: ArrivingEdges, columns: dict[str, Any], every: str, window: str | None
    ) -> None:
        self.edges, self.every, self.window = edges, every, window
        self.settings = {"live": columns}
        if edges.first is not None:
            Windows(every, window).check(edges.first)  # before a folder is made, or one is replaced
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

    def written(self, time: int | float) -> int | float | str:
        """Return a time as those of the edges are written."""
        return (self.edges.time_format or NUMBERS).text(time)

    def place(self) -> dict[str, Any]:
        """Return what is needed to resume."""
        return self.stream.state()


Source = FileSource | LiveSource
"""Timed edges as batches."""


def source_of(
    file: str, columns: dict[str, Any], every: str, window: str | None, *, sort: bool,
    reporter: Reporter,
) -> Source:  # fmt: skip
    """Return the edges of a file, or of standard input as they arrive."""
    if file != "-" or sort:
        reporter.step(f"reading {file}")
        edges = read_stream(file, **columns, sort=sort)
        title = Path(file).name
    else:
        reporter.step("waiting for edges")
        options = TimedOptions(**columns)
        stream = arriving(options)
        if isinstance(stream, ArrivingEdges):
            if not stream.wait():
                raise OptionError(remedy="send some", problem=f"{NAME}: holds no edges to follow")
            return LiveSource(stream, columns, every, window)
        whole = decompressed(stream, NAME, trusted=False)
        edges, title = EdgeStream(timed_edges_of(whole, options, sort=False)), NAME
    if not len(edges):
        raise OptionError(remedy="name another file", problem=f"{file}: holds no edges to follow")
    try:
        return FileSource(title, edges, every, window)
    except GraphError as error:
        raise GraphError(f"{file}: {error}") from None
