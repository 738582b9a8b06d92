"""Timed edges of a pipe, as they arrive."""

from __future__ import annotations

import io
import queue
import select
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import interrupts
from louvain_um.dynamic.timed_edges import MOST_WEIGHT, PARQUET_MAGIC, refuse_graphs, refuse_weights
from louvain_um.dynamic.windows import NUMBERS, EdgeBlock, Line, TimeFormat, seconds_of
from louvain_um.errors import READ_AGAIN, GraphFormatError, reason_of
from louvain_um.formats.edge_list.first_lines import sample_of
from louvain_um.formats.edge_list.reader import TimedLines
from louvain_um.formats.graph_file import GZIP_MAGIC, GraphFile
from louvain_um.formats.read_options import TimedOptions
from louvain_um.formats.reading import warn_of

READ_BYTES: Final = 1 << 16
"""Bytes taken from a pipe at a time: what a pipe of Linux holds."""

MOST_READS: Final = 256
"""Reads that wait to be followed, at most: the sender of more has to wait."""

MOST_LINE: Final = 1 << 20
"""Bytes of a line."""

PAUSE: Final = 0.2
"""Seconds without edges after which a caller may do something else."""

REAL_SCALE: Final = 2.0**20
"""Scale of a graph whose weights are real numbers: those to come are not known."""

MOST_REAL: Final = MOST_WEIGHT / REAL_SCALE
"""Real weights must be smaller."""

NAME: Final = "<stdin>"


class Pipe:
    """Bytes of a stream, read early, in a thread, so that the sender need not wait."""

    def __init__(self, stream: Any, first: bytes) -> None:
        self.stream = stream
        self._reads: queue.Queue[bytes | Exception] = queue.Queue(MOST_READS)
        self._arrived = self._taken = 0
        self._put(first)
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def lines(self) -> int:
        """Lines that nothing has taken yet."""
        return self._arrived - self._taken

    def take(self) -> bytes | None:
        """Return the next bytes: none at the end, None if nothing arrives for a moment."""
        try:
            with interrupts.held():  # what is taken is not lost to a signal
                found = self._reads.get(timeout=PAUSE)
        except queue.Empty:
            return None
        if isinstance(found, OSError):
            raise GraphFormatError(f"cannot be read: {reason_of(found)}{READ_AGAIN}", NAME)
        if isinstance(found, Exception):
            raise found
        self._taken += found.count(b"\n")
        return found

    def _put(self, data: bytes) -> None:
        self._arrived += data.count(b"\n")
        if data:
            self._reads.put(data)

    def _read(self) -> None:
        try:
            while (data := self.stream.read(READ_BYTES)) != b"":
                if data is None:  # the sender has made the pipe non-blocking
                    select.select([self.stream], [], [])
                else:
                    self._put(data)
        except Exception as error:  # the main thread waits for it
            self._reads.put(error)
        self._reads.put(b"")


class ArrivingEdges:
    """Timed edges of a pipe: lines ``u v time [w]``, whose vertices are names."""

    def __init__(self, pipe: Pipe, options: TimedOptions) -> None:
        self.pipe, self.options = pipe, options
        self.file = GraphFile(io.BytesIO(), NAME)
        self.real: bool | None = None
        self.time_format: TimeFormat | None = None
        if options.date_format is not None:
            self.time_format = TimeFormat(pattern=options.date_format)
        self._lines: TimedLines | None = None
        self._rest = b""
        self._line = 1
        self._last: Any = None
        self.first: EdgeBlock | None = None
        self._blocks = self._read()

    def wait(self) -> bool:
        """Wait for the first edges; return whether there are any."""
        found = (block for block in self._blocks if block is not None and len(block))
        self.first = next(found, None)
        return self.first is not None

    @property
    def backlog(self) -> int:
        """Lines that have arrived and were not yet looked at."""
        return self.pipe.lines

    def blocks(self) -> Iterator[EdgeBlock | None]:
        """Yield edges as they arrive, and None whenever none do for a moment."""
        if self.first is not None:
            first, self.first = self.first, None
            yield first
        yield from self._blocks

    def _read(self) -> Iterator[EdgeBlock | None]:
        while (data := self.pipe.take()) != b"":
            if data is None:
                yield None
                continue
            self._rest += data
            cut = self._rest.rfind(b"\n") + 1
            if cut == 0 and len(self._rest) > MOST_LINE:
                raise self.file.error("a line is longer than 1 MiB; check the file", self._line)
            whole, self._rest = self._rest[:cut], self._rest[cut:]
            if whole:
                yield from self._parsed(whole)
        if self._rest:
            whole, self._rest = self._rest + b"\n", b""
            yield from self._parsed(whole)

    def _parsed(self, text: bytes) -> Iterator[EdgeBlock | None]:
        """Yield the edges of some whole lines: those before a bad one, too."""
        try:
            with self.file.naming():
                if self._lines is None:
                    text = self._begin(text)
                yield from self._edges(text)
        except GraphFormatError as error:
            good = 0 if error.line is None else error.line - self._line
            if good > 0:
                yield from self._parsed(b"".join(io.BytesIO(text).readlines()[:good]))
            raise

    def _begin(self, text: bytes) -> bytes:
        """Find out how lines are split; return the lines after comments and a header."""
        head = GraphFile(io.BytesIO(text), NAME)
        if self._line == 1:
            head.skip_byte_order_mark()
            head.refuse_utf16()
            refuse_graphs(head)
            head.skip_separator_line()
        if sample_of(head).text:
            self._lines = TimedLines.begin(head, replace(self.options, ids="text"))
            self._line += self._lines.detected.lines
        else:
            self._line += text.count(b"\n")
            return b""
        return head.read()

    def _edges(self, text: bytes) -> Iterator[EdgeBlock]:
        """Yield the edges of some whole lines, if they hold any."""
        sample = sample_of(GraphFile(io.BytesIO(text), NAME))
        if self._lines is None or not sample.text:
            self._line += text.count(b"\n")
            return
        if self._last is None:
            self._take_first(self._lines, text[: sample.past[0]])
        found = self._lines.read(GraphFile(io.BytesIO(text), NAME), self._line)
        line, edges = found.column.line, found.edges
        times, self.time_format = seconds_of(self.file, found.times, line, self.time_format)
        weights = edges.w
        if weights is not None:
            refuse_weights(self.file, weights, line)
            weights = self._whole_or_real(weights, line)
        assert found.names is not None
        names = found.names.astype(str).astype(object)
        block = EdgeBlock(u=names[edges.u], v=names[edges.v], times=times, weights=weights)
        self._refuse_backwards(block.times, line)
        self._line += text.count(b"\n")
        yield block

    def _take_first(self, lines: TimedLines, text: bytes) -> None:
        """Let the first edge decide how times are written and whether weights are real."""
        first = lines.read(GraphFile(io.BytesIO(text), NAME), self._line)
        warn_of(tuple(first.notes))
        like = self.time_format
        _, self.time_format = seconds_of(self.file, first.times, first.column.line, like)
        if first.edges.w is not None:
            self.real = first.edges.w.dtype.kind == "f"

    def _whole_or_real(self, weights: NDArray[Any], line: Line) -> NDArray[Any]:
        """Return weights of the type of the first one."""
        if self.real:
            lost = (weights >= MOST_REAL) | ((weights > 0) & (weights * REAL_SCALE < 0.5))
            if lost.any():
                at = int(np.argmax(lost))
                raise self.file.error(
                    f"weight {weights[at]:g} is not between {0.5 / REAL_SCALE:.2g} and "
                    f"{MOST_REAL:.2g}; send weights in another unit",
                    line(at),
                )
            return weights.astype(np.float64)
        if weights.dtype.kind == "f" and (bad := weights != np.floor(weights)).any():
            at = int(np.argmax(bad))
            raise self.file.error(
                f"weight {weights[at]} is not whole, but the first one is; write the first as a "
                "real number, as in 1.0",
                line(at),
            )
        return weights.astype(np.int64)

    def _refuse_backwards(self, times: NDArray[Any], line: Line) -> None:
        """Raise if a time is before the one before it."""
        if not len(times):
            return
        before = np.concatenate([times[:1] if self._last is None else [self._last], times[:-1]])
        if (falls := times < before).any():
            at = int(np.argmax(falls))
            shown = self.time_format or NUMBERS
            now, last = (shown.text(each[at].item()) for each in (times, before))
            raise self.file.error(
                f"time {now} comes after {last}; sort the edges first, or pass "
                "sort=True to read all of them before they are followed",
                line(at),
            )
        self._last = times[-1].item()


def standard_input() -> io.BufferedReader:
    """Return standard input with a buffer of its own."""
    try:
        raw: Any = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115
    except (OSError, ValueError):  # tests put something else in its place
        raw = sys.stdin.buffer
    return io.BufferedReader(raw)


def arriving(options: TimedOptions) -> ArrivingEdges | io.BufferedReader:
    """Return the timed edges of standard input as they arrive."""
    stream = standard_input()
    head = stream.peek(len(PARQUET_MAGIC))
    if not head:
        raise GraphFormatError("is empty; expected timed edges", NAME)
    if head.startswith((GZIP_MAGIC[:1], PARQUET_MAGIC)):
        return stream
    first = stream.read1(len(head))
    return ArrivingEdges(Pipe(stream.detach(), first), options)
