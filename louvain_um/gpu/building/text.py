"""Lines of numbers in a file, parsed on a device: the edges that the host's threads find in them.

Threads read parts of the file to page-locked buffers and send them to the device, where kernels
find the lines of a chunk and parse each in a thread. A chunk with a line that is more than plain
numbers is parsed by the host, whose code knows all rules and reports all errors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.interrupts import uninterrupted
from louvain_um.formats.edge_list.edges import EdgeList, ParsedBlock, scanned
from louvain_um.formats.edge_list.scan import WEIGHT, LineFormat
from louvain_um.formats.graph_file import LINE_BYTES, PIECE_BYTES, GraphFile, Part
from louvain_um.gpu.building.build import Builder, LongRowError, Text
from louvain_um.gpu.building.device_rows import sizes_within
from louvain_um.gpu.building.objects import CACHED, graph_of_columns
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import Duplicates

FIRST_BYTES: Final = 1 << 17
"""Bytes that the host parses in any case: they show whether lines are plain."""

PARTS: Final = 32
"""Parts of a file in a chunk, of `PIECE_BYTES` each."""

READERS: Final = 16
"""Tasks that share the parts of a chunk: handing one over takes a tenth of the time of a part."""

CHUNKS: Final = 3
"""Chunks on the device at a time: one is parsed while the others are read."""

MOST_UNUSUAL: Final = 4
"""Chunks with unusual lines, after which the rest of a file is left to the host."""

Blocks = Iterator[ParsedBlock]
Read = parallel.Task[int]
Filling = tuple[list[Part], Any, list[Read]]
"""Parts of a chunk, the array for it, and what reads each of them."""

Rest = tuple[list[ParsedBlock], Iterable[Part]]
"""What the host has parsed of the rest of a file, and the parts that it is still to parse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The current device, and copies to and from it."""

    # `room` returns the bytes of its memory that a number of edges, with weights or without, may
    # take while they are read and while their rows are made.

    device: Any
    copies: Any
    room: Callable[[int, bool], int]


class TextThere:
    """Parses lines on a device: `There` of formats/edge_list/edges.py."""

    # The host parses until the device is `ready`, and everything if `begin` returns no site.

    def __init__(
        self, nbytes: int, ready: Callable[[], bool], begin: Callable[[], Site | None]
    ) -> None:
        self.nbytes, self.ready, self.begin = nbytes, ready, begin
        self.site: Site | None = None
        self.held = self.room = 0

    def blocks(self, file: GraphFile, line_format: LineFormat) -> Blocks:
        """Yield what `scanned` yields for the rest of a file; columns may be on the device."""
        parts: Iterator[Part] = file.parts(PIECE_BYTES, FIRST_BYTES)
        edges = read = 0
        plain, wide, weighted = True, False, line_format.shape >= WEIGHT
        for block in _here(file, line_format, self._until_ready(parts)):
            plain = plain and block.bad < 0 and not len(block.deferred)
            wide = wide or block.u.dtype != np.uint32
            edges += len(block.u)
            read += len(block.data)
            yield block
        if (following := next(parts, None)) is None:
            return
        parts = chain([following], parts)
        found: Rest = [], parts
        if plain and (site := self.begin()) is not None:
            listed = self.nbytes * edges // max(read, 1) * 9 // 8
            self.room = site.room(listed, weighted)
            if self._fits(listed, wide=wide, weighted=weighted):
                self.site = site
                found = yield from self._there(site, file, line_format, parts, wide=wide)
        yield from found[0]
        yield from _here(file, line_format, found[1])

    def joined(self, columns: list[list[Any]]) -> bool:
        """Make one array of each column, on the device; return whether there was room."""
        if self.site is None or not self.held:
            return False
        # Lines may be more than were expected, and the host may have parsed some of them.
        sizes = [sum(map(len, column)) * _kind(column).itemsize for column in columns if column]
        if sum(sizes) + max(sizes) > self.room:
            return False
        try:
            for column in columns:
                column[:] = [_one(self.site, column)] if column else []
        except MemoryError:
            return False
        self._free_cached()
        return True

    def here(self, column: Any) -> NDArray[Any]:
        """Return a column in host memory."""
        if self.site is None or type(column) is np.ndarray:
            found: NDArray[Any] = column
            return found
        found = self.site.copies.fetched(column)
        return found

    def graph(
        self, edges: EdgeList, announced: int | None, duplicates: Duplicates | None
    ) -> Graph | None:
        """Return the graph of all edges, which are given up; None if the host must look at them."""
        assert self.site is not None
        columns: list[Any] = [each for each in (edges.u, edges.v, edges.w) if each is not None]
        room = self.site.room(len(edges.u), len(columns) > 2) - sum(each.nbytes for each in columns)
        high = max(int(edges.u.max()), int(edges.v.max()))
        if high == announced:  # ids may begin at 1
            return None
        dense = announced is not None and high < announced
        try:
            made = graph_of_columns(
                self.site.device, self.site.copies, columns, room, numbered=not dense,
                n_vertices=announced if dense else None, duplicates=duplicates,
            )  # fmt: skip
        except (MemoryError, LongRowError):
            made = None
        if made is None:
            self.site.device.free_cached()
            return None
        columns.clear()
        edges.u = edges.v = np.empty(0, np.uint32)
        edges.w = None
        self._free_cached()
        return made

    def _free_cached(self) -> None:
        """Give memory back that CuPy caches, if it is much: the plan of a run takes it as used."""
        if self.site is not None and self.held > CACHED * self.room:
            self.site.device.free_cached()

    def _until_ready(self, parts: Iterator[Part]) -> Iterator[Part]:
        """Yield parts until the device is ready, one at least."""
        for part in parts:
            yield part
            if self.ready():
                return

    def _fits(self, edges: int, *, wide: bool, weighted: bool) -> bool:
        """Return whether there is room to read so many edges, and to make their rows."""
        columns = edges * _edge_bytes(wide=wide, weighted=weighted)
        joining = edges * (8 if wide or weighted else 4)
        threads = parallel.default_threads()
        rows = sizes_within(self.room - columns, edges, 0, weighted=weighted, threads=threads)
        return rows is not None and columns + max(joining, CHUNKS * _chunk_bytes()) <= self.room

    def _there(
        self,
        site: Site,
        file: GraphFile,
        line_format: LineFormat,
        parts: Iterator[Part],
        *,
        wide: bool,
    ) -> Generator[ParsedBlock, None, Rest]:
        """Yield blocks that the device has parsed, and return what is left to the host."""
        unusual = 0
        filling = deque[Filling]()
        with ExitStack() as stack:
            try:
                builder = Builder(site.device)
                free = [builder.xp.empty(_chunk_bytes(), np.uint8) for _ in range(CHUNKS)]
                send = stack.enter_context(site.copies.sending(PIECE_BYTES + LINE_BYTES))
            except MemoryError:
                send = None
            if send is None:
                return [], parts
            stack.callback(_end, filling)
            while True:
                while free and (chunk := [*islice(parts, PARTS)]):
                    text = free.pop()
                    begun = list[Read]()
                    filling.append((chunk, text, begun))
                    _begin(file, chunk, site.device.address(text), send, begun)
                if not filling:
                    return [], []
                chunk, text, _ = filling[0]
                block = self._parsed(site, builder, file, filling[0], line_format, wide=wide)
                filling.popleft()
                free.append(text)
                if block is not None:
                    yield block
                    continue
                found, unusual = [*_here(file, line_format, chunk)], unusual + 1
                wide = wide or any(each.u.dtype != np.uint32 for each in found)
                if unusual > MOST_UNUSUAL or any(each.bad >= 0 for each in found):
                    rest = [part for chunk, *_ in filling for part in chunk]
                    return found, chain(rest, parts)
                yield from found

    def _parsed(
        self,
        site: Site,
        builder: Builder,
        file: GraphFile,
        filling: Filling,
        line_format: LineFormat,
        *,
        wide: bool,
    ) -> ParsedBlock | None:
        """Return the edges of the lines that begin in a chunk; None if the host must parse them."""
        chunk, text, begun = filling
        size, known = chunk[-1].end - chunk[0].begin, 0
        before = np.zeros(1, np.uint8)
        try:
            file.read_into(before, chunk[0].begin - 1)
            while begun:
                known += begun[0].result()
                del begun[0]
        except OSError:  # which the host reports
            _end([filling])
            return None
        if known < size:  # the file has become shorter
            return None
        there = Text(text, size, int(before[0]) == ord("\n"), known, known < size + LINE_BYTES)
        weighted = line_format.shape >= WEIGHT
        each = _edge_bytes(wide=wide, weighted=weighted)

        def has_room(lines: int) -> bool:
            held = self.held + lines * each
            return held + CHUNKS * _chunk_bytes() <= self.room

        try:
            found = builder.parsed(there, line_format, has_room, wide=wide)
        except MemoryError:
            return None
        if found is None:
            return None
        ends, real = found
        lines = len(ends.u)
        self.held += lines * each
        return ParsedBlock(
            np.empty(0, np.uint8), *ends, np.empty((0, 3), np.int64), lines, -1, real
        )


def _here(file: GraphFile, line_format: LineFormat, parts: Iterable[Part]) -> Blocks:
    """Yield the blocks of parts of a file, parsed by the host's threads."""
    return scanned((partial(file.lines, part) for part in parts), line_format)


def _begin(
    file: GraphFile, chunk: list[Part], address: int, send: Callable[..., int], begun: list[Read]
) -> None:
    """Begin to read the parts of a chunk, and some bytes of the next, where a line may end."""
    base = chunk[0].begin  # copies to and from odd addresses would take longer

    def read(parts: list[Part]) -> int:
        count = 0
        for part in parts:
            end = part.end + LINE_BYTES if part is chunk[-1] else part.end
            where = partial(file.read_into, begin=part.begin)
            count += send(address + part.begin - base, end - part.begin, where)
        return count

    for first in range(min(READERS, len(chunk))):
        with uninterrupted():  # a read that is not listed would go on behind an interrupt
            begun.append(parallel.aside(read, chunk[first::READERS]))


def _end(filling: Iterable[Filling]) -> None:
    """Wait until nothing is read any more, and keep no error, which would keep its callers."""
    with uninterrupted():
        for *_, begun in filling:
            for each in begun:
                each.cancel()
            while begun:
                with suppress(BaseException):
                    begun[-1].result()
                begun.pop()


def _one(site: Site, column: list[Any]) -> Any:
    """Return arrays one after the other, in the device's memory."""
    out, at = site.device.xp.empty(sum(map(len, column)), _kind(column)), 0
    for each in column:
        out[at : at + len(each)] = site.copies.sent(each) if type(each) is np.ndarray else each
        at += len(each)
    return out


def _kind(column: list[Any]) -> np.dtype[Any]:
    """Return the type that holds the values of some arrays."""
    return np.result_type(*{each.dtype for each in column})


def _edge_bytes(*, wide: bool, weighted: bool) -> int:
    """Return the bytes of an edge's columns."""
    return (16 if wide else 8) + 8 * weighted


def _chunk_bytes() -> int:
    """Return the bytes that a chunk may have on the device, with those behind it."""
    return PARTS * PIECE_BYTES + LINE_BYTES
