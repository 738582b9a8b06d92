"""Bytes of a graph file, from a file, a gzip stream or standard input."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.headroom import check_host_memory
from louvain_um.errors import READ_AGAIN, GraphError, GraphFormatError, reason_of

BLOCK_BYTES = 1 << 20
"""Bytes of text parsed at a time: text and results fit the cache."""

PIECE_BYTES = 1 << 21
"""Bytes of a plain file that a thread reads and parses at a time: many threads wait for each other
between shorter pieces, on 32 cores a third of the time."""

LINE_BYTES = 1 << 12
"""Bytes that are read beyond a part of a file at first, to find the end of its last line."""

SAMPLE_BYTES = 1 << 16
"""Bytes in which the ends of lines are looked for."""

COMPRESSED_BYTES = 1 << 17
"""Bytes of a gzip stream decompressed at a time."""

GZIP_WINDOW = 31
"""zlib's ``wbits`` for a gzip stream with header and checksum."""

GZIP_MAGIC = b"\x1f\x8b"

BGZF = re.compile(rb"\x1f\x8b\x08\x04.{6}\x06\x00BC\x02\x00(..)", re.DOTALL)
"""How a gzip stream begins that states its size; `bgzip` writes many, each of 64 KiB at most."""

BGZF_GROUP, BGZF_GROUPS = 16, 32
"""Such streams that a thread decompresses at a time, and how often that is done side by side."""

UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16."""

SEPARATOR_LINE = re.compile(rb'"?sep=.?"?[ \t]*\r?(?:\n|\Z)', re.IGNORECASE)
"""What gives spreadsheets the separator of a file, in its first line."""

LONGEST_LINE = 1 << 30
"""Bytes of a line in a file that is not trusted: a METIS list of 100 million neighbours."""

FREE_BYTES = 1 << 28
"""Unpacked bytes that are always accepted."""

MOST_UNPACKED = 200
"""Unpacked bytes per packed byte in a file that is not trusted: graphs have 2 to 20."""

FREE_VERTICES = 1 << 26
"""Vertices that are always accepted."""

MOST_VERTICES = 100
"""Vertices per edge in a file that is not trusted."""

FAR_MORE = f"unpacks to more than {MOST_UNPACKED} times its size"
"""What is wrong about a file that `is_far_more` says so of."""

ENTRY_BYTES = 180
"""Of each attribute of XML, entry of an object of JSON or list of GML, at least."""

TRUST = "; if it comes from a trusted source, pass trusted=True (--trusted)"

ON_RANKS = "pass cluster='local:2' to detect (in Python to louvain, with read_partitioned)"
"""How files are read together."""


class Part(NamedTuple):
    """A part of a plain file, and the bytes at hand that the first one begins with."""

    begin: int
    end: int
    head: bytes | None


Watch = Callable[[int, int], None]
"""Is called with the bytes of a file, and those of them that have been read."""

WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched_by(watch: Watch) -> Iterator[None]:
    """Report the progress of reading files within a block."""
    before = WATCH.set(watch)
    try:
        yield
    finally:
        WATCH.reset(before)


@dataclass(eq=False, repr=False)
class GraphFile:
    """An open graph file; all its errors name the file."""

    stream: BinaryIO
    name: str
    trusted: bool = field(default=False, kw_only=True)
    watch: Callable[[int], None] | None = field(default=None, kw_only=True)
    bytes_read: int = field(default=0, init=False)
    _peeked: bytes = field(default=b"", init=False)

    def error(self, message: str, line: int | None = None) -> GraphFormatError:
        """Return an error that names this file."""
        return GraphFormatError(message, self.name, line)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Let errors about a graph name this file."""
        try:
            yield
        except GraphFormatError:
            raise
        except GraphError as error:
            raise self.error(str(error)) from None

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; fewer only at the end."""
        if size == 0:
            return b""
        if self._peeked:
            taken = self._peeked if size < 0 else self._peeked[:size]
            self._peeked = self._peeked[len(taken) :]
            return taken + self.read(size - len(taken) if size >= 0 else -1)
        try:
            data = self.stream.read(size)
            if self.watch is not None:
                self.bytes_read += len(data)
                self.watch(self.bytes_read)
            return data
        except (EOFError, zlib.error) as error:
            raise self.error(
                f"the gzip stream is damaged or ends early ({error}); download or compress it again"
            ) from None
        except OSError as error:
            raise self.error(f"cannot be read: {reason_of(error)}{READ_AGAIN}") from None

    def peek(self, size: int) -> bytes:
        """Return up to `size` bytes that the next `read` will return again."""
        if len(self._peeked) < size:
            peeked, self._peeked = self._peeked, b""
            self._peeked = peeked + self.read(size - len(peeked))
        return self._peeked[:size]

    def skip_byte_order_mark(self) -> None:
        """Consume the UTF-8 byte order mark that some editors write, if there is one."""
        if self.peek(3) == b"\xef\xbb\xbf":
            self.read(3)

    def skip_separator_line(self) -> None:
        """Read a first line ``sep=;``, which gives spreadsheets the separator, as a comment."""
        if SEPARATOR_LINE.match(self.peek(16)):
            self._peeked = b"#" + self._peeked[1:]

    def refuse_utf16(self) -> None:
        """Raise an error for text in UTF-16, as spreadsheets export it."""
        if self.peek(2) in UTF16:
            raise self.error("is UTF-16 text; convert it (iconv -f utf-16 -t utf-8), or save UTF-8")

    def end_lines_with_newlines(self) -> None:
        """Read carriage returns as newlines if lines end with them alone, as on old Macs."""
        head = self.peek(SAMPLE_BYTES)
        if b"\r" in head[:-1] and b"\n" not in head:
            inner = GraphFile(self.stream, self.name, trusted=self.trusted)
            inner._peeked, self._peeked = self._peeked, b""
            self.stream = cast(BinaryIO, _CarriageReturns(inner))

    def read_line(self) -> str:
        """Return the next line with its newline; an empty string at the end."""
        size = 256
        while b"\n" not in (head := self.peek(size)) and len(head) == size:
            size *= 4
            if size > 1 << 20:
                raise self.error("first line is longer than 1 MiB; check the format (format=…)", 1)
        text = self.read(head.index(b"\n") + 1 if b"\n" in head else len(head))
        return text.decode("utf-8", "replace")

    def read_header(self, line: int, expected: str) -> tuple[list[str], int]:
        """Return words and number of the next line that is neither a comment nor empty."""
        while text := self.read_line():
            line += 1
            words = text.split()
            if words and not words[0].startswith("%"):
                return words, line
        raise self.error(f"ends before the line {expected!r}; the file may be truncated", line + 1)

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[NDArray[np.uint8]]:
        """Yield blocks of whole lines, each ending in a newline."""
        rest: list[bytes] = []
        held = 0
        while data := self.read(size):
            cut = data.rfind(b"\n") + 1
            if cut == 0:
                rest.append(data)
                held += len(data)
                if held > LONGEST_LINE and not self.trusted:
                    raise self.error(f"a line is longer than {LONGEST_LINE >> 20} MiB{TRUST}")
                continue
            text = b"".join((*rest, memoryview(data)[:cut])) if rest else data
            yield np.frombuffer(text, np.uint8, held + cut)
            rest = [data[cut:]] if cut < len(data) else []
            held = len(data) - cut
        if rest:
            yield np.frombuffer(b"".join((*rest, b"\n")), np.uint8)

    def pieces(self, size: int | None = None) -> Iterator[Callable[[], NDArray[np.uint8]]]:
        """Yield what returns the blocks of the rest, in order, which may differ from `blocks`.

        These may be called side by side: each reads its own part of a plain file.
        """
        if not self.is_plain():
            for block in self.blocks(size or BLOCK_BYTES):
                yield partial(np.asarray, block)
            return
        for part in self.parts(size or PIECE_BYTES):
            yield partial(self.lines, part)

    def parts(self, size: int, first: int | None = None) -> Iterator[Part]:
        """Yield the parts of the rest of a plain file; those after a `first` one begin aligned."""
        head, self._peeked = self._peeked, b""
        begin, end = self.stream.tell() - len(head), os.fstat(self.stream.fileno()).st_size
        stop = begin + max(first or size, len(head))
        part = Part(begin, min(-(-stop // first) * first if first else stop, end), head)
        while part.begin < end:
            if self.watch is not None:
                self.bytes_read = max(self.bytes_read, part.end)
                self.watch(self.bytes_read)
            yield part
            part = Part(part.end, min(part.end + size, end), None)

    def is_plain(self) -> bool:
        """Return whether the bytes are those of a file that threads can read anywhere."""
        if not (hasattr(os, "pread") and isinstance(self.stream, io.BufferedReader)):
            return False
        status = os.fstat(self.stream.fileno())
        # Some virtual files say that they have no bytes.
        return stat.S_ISREG(status.st_mode) and status.st_size >= self.stream.tell()

    def plain_bytes(self) -> int:
        """Return how many bytes such a file has; 0 of any other."""
        return os.fstat(self.stream.fileno()).st_size if self.is_plain() else 0

    def read_into(self, buffer: NDArray[np.uint8], begin: int) -> int:
        """Read bytes of a plain file from a place on; return how many, fewer at its end alone."""
        count = 0
        while count < len(buffer):
            more = os.preadv(self.stream.fileno(), [buffer.data[count:]], begin + count)
            if not more:
                break
            count += more
        return count

    def lines(self, part: Part) -> NDArray[np.uint8]:
        """Return the lines that begin in a part of a plain file."""
        begin, end, head = part
        # A line begins after a newline, which may be the byte before.
        base = begin if head is not None else begin - 1
        data, after = head or b"", LINE_BYTES
        while True:
            try:
                count = end - base + after - len(data)
                more = os.pread(self.stream.fileno(), count, base + len(data))
            except OSError as error:
                raise self.error(f"cannot be read: {reason_of(error)}{READ_AGAIN}") from None
            data = data + more if data else more
            if more and len(data) < end - base:
                continue  # the system returned fewer bytes than asked for
            start = 0 if head is not None else data.find(b"\n", 0, end - begin) + 1
            if start == 0 and head is None:
                return np.empty(0, np.uint8)
            stop = data.find(b"\n", end - 1 - base) + 1
            last = max(start, data.rfind(b"\n", start, end - 1 - base) + 1)
            if (stop or len(data)) - last > LONGEST_LINE and not self.trusted:
                raise self.error(f"a line is longer than {LONGEST_LINE >> 20} MiB{TRUST}")
            if not (stop or more):
                data, stop = data + b"\n", len(data) + 1
            if stop:
                return np.frombuffer(data, np.uint8, stop - start, start)
            after *= 8

    def check_archive(self) -> None:
        """Raise an error for a zip archive that unpacks to far more bytes than it has."""
        stream = self.seekable()
        packed = stream.seek(0, io.SEEK_END)
        with zipfile.ZipFile(stream) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        self.check_unpacked(unpacked, packed)

    def check_unpacked(self, unpacked: int, packed: int) -> None:
        """Raise an error for far more unpacked bytes than packed ones."""
        if is_far_more(unpacked, packed) and not self.trusted:
            raise self.error(f"{FAR_MORE}{TRUST}")

    def check_vertices(self, n: int, edges: int) -> None:
        """Raise an error for a number of vertices that so few edges hardly have."""
        if not self.trusted and (problem := too_many(n, edges)):
            raise self.error(problem)
        # Offsets and loops; in addition, a graph takes 16 bytes per edge while it is built.
        check_host_memory(
            16 * (n + edges),
            f"a graph of {n:,} vertices and {edges:,} edges",
            "check the number of vertices, or use a machine with more memory",
        )

    def check_entries(self, count: int) -> None:
        """Raise an error for a text of more entries, each an object, than memory can hold."""
        check_host_memory(
            ENTRY_BYTES * count, f"a text of {count:,} entries", "write .csv, .parquet or .npz"
        )

    def check_rows(self, rows: int, packed: int) -> None:
        """Raise an error for a table of more rows than its file or memory can hold."""
        self.check_unpacked(8 * rows, packed)
        check_host_memory(16 * rows, f"a table of {rows:,} edges", "use a machine with more memory")

    def seekable(self) -> BinaryIO:
        """Return the whole file as a seekable stream, at its start."""
        standard = isinstance(self.stream, io.BufferedReader | io.BytesIO)
        if not standard or not self.stream.seekable():
            self.stream = cast(BinaryIO, io.BytesIO(self.read()))
        self._peeked = b""
        self.stream.seek(0)
        return self.stream


def is_far_more(unpacked: int, packed: int) -> bool:
    """Return whether a file has far fewer bytes than it unpacks to."""
    return unpacked > max(FREE_BYTES, MOST_UNPACKED * packed)


def content_of(path: str | Path) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``; those in a gzip stream."""
    raw = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    if not raw.startswith(GZIP_MAGIC):
        return raw
    most = max(FREE_BYTES, MOST_UNPACKED * len(raw))
    with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise GraphFormatError(
            f"{FAR_MORE}; unpack it first if it comes from a trusted source", path
        )
    return content


def too_many(n: int, edges: int) -> str:
    """Return what is wrong about a number of vertices that so few edges hardly have."""
    if n <= max(FREE_VERTICES, MOST_VERTICES * edges):
        return ""
    return f"has {n:,} vertices for {edges:,} edges; correct the number or the ids{TRUST}"


def refuse_missing(path: str) -> None:
    """Raise an error for an empty path, a folder or a missing file."""
    where = Path(path)
    if not path or "\0" in path:
        problem = "holds a NUL" if path else "is empty"
        raise GraphFormatError(f"file name {problem}; name a file, or - for stdin", repr(path))
    try:
        where.stat()
    except FileNotFoundError:
        pass
    except OSError as error:  # a name that is too long, or a folder that may not be entered
        raise GraphFormatError(f"{reason_of(error)}; check the path", path) from None
    if where.is_dir():
        raise GraphFormatError(
            "is a folder; name a graph file inside it, as one file is read at a time, or, to "
            f"detect communities of all its files together, {ON_RANKS}",
            path,
        )
    if not where.exists() and "://" in path:
        raise GraphFormatError("is an address; download the file first", path)
    if not where.exists() and any(character in path for character in "*?["):
        raise GraphFormatError(
            "no such file, and a pattern is not resolved: one file is read at a time; name it, or, "
            f"to detect communities of all files together, {ON_RANKS}",
            path,
        )
    if not where.exists():
        raise GraphFormatError("no such file; check the path", path)


def is_stream(path: str) -> bool:
    """Return whether a path is that of no file, but of bytes that can be read once."""
    descriptor = path.startswith(("/dev/std", "/dev/fd/", "/proc/self/fd/"))
    return path == "-" or descriptor or Path(path).is_fifo() or Path(path).is_char_device()


@contextmanager
def open_graph_file(path: str, *, trusted: bool = False) -> Iterator[GraphFile]:
    """Open a file, or standard input for ``-``; gzip is recognized by its first bytes."""
    if path == "-":
        yield decompressed(cast(BinaryIO, sys.stdin.buffer), "<stdin>", trusted)
        return
    refuse_missing(path)
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed below; opened here to catch its error
    except OSError as error:
        raise GraphFormatError(f"cannot be opened: {reason_of(error)}{READ_AGAIN}", path) from None
    watch = WATCH.get()
    with stream:
        of_size = None if watch is None else partial(watch, os.fstat(stream.fileno()).st_size)
        yield decompressed(cast(BinaryIO, stream), path, trusted, of_size)


def decompressed(
    stream: BinaryIO, name: str, trusted: bool, watch: Callable[[int], None] | None = None
) -> GraphFile:
    """Return the text of a stream; gzip is recognized by its first bytes."""
    file = GraphFile(stream, name, trusted=trusted, watch=watch)
    magic = file.peek(2)
    if not magic:
        raise file.error("is empty; expected a graph")
    if magic == GZIP_MAGIC:
        file = GraphFile(cast(BinaryIO, _GzipReader(file)), name, trusted=trusted)
        if not file.peek(1):
            raise file.error("contains an empty gzip stream; expected a graph")
    elif name.endswith(".gz"):
        raise file.error("ends in .gz but is not a gzip stream; rename it without .gz")
    return file


class _CarriageReturns:
    """A file with its carriage returns replaced by newlines."""

    def __init__(self, file: GraphFile) -> None:
        self.file = file

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; fewer only at the end."""
        return self.file.read(size).replace(b"\r", b"\n")


class _GzipReader:
    """The content of a gzip stream; the gzip module's own reader takes 8 KiB at a time."""

    def __init__(self, compressed: GraphFile) -> None:
        self.compressed = compressed
        self.blocked = BGZF.match(compressed.peek(18)) is not None
        self.raw, self.between = b"", False
        self.inflate = zlib.decompressobj(GZIP_WINDOW)
        self.ready = b""
        self.packed = self.unpacked = 0

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; fewer only at the end."""
        parts, held = [self.ready], len(self.ready)
        while (size < 0 or held < size) and (part := self._more()):
            parts.append(part)
            held += len(part)
        data = b"".join(parts)
        self.ready = data[size:] if size >= 0 else b""
        return data[:size] if size >= 0 else data

    def _more(self) -> bytes:
        """Return some more bytes; none at the end."""
        data = b""
        while self.blocked and not data:
            data = self._more_blocks()
        while not data:
            raw = self.inflate.unconsumed_tail or self.inflate.unused_data or self._packed()
            if self.between or self.inflate.eof:
                # Another stream may follow, or zeros that pad a tape block.
                raw = raw.lstrip(b"\0") or self._packed().lstrip(b"\0")
                if not raw:
                    return b""
                self.inflate, self.between = zlib.decompressobj(GZIP_WINDOW), False
            if not raw:
                raise EOFError("no end of stream")
            # A bounded part: what is left over is copied with every read.
            data = self.inflate.decompress(raw, BLOCK_BYTES)
        self.unpacked += len(data)
        self.compressed.check_unpacked(self.unpacked, self.packed)
        return data

    def _more_blocks(self) -> bytes:
        """Return what some blocks hold, decompressed side by side; anything else is left."""
        most, ends = BGZF_GROUP * BGZF_GROUPS, [0]
        raw = self.raw
        if len(raw) < most << 12:  # or small blocks would pile up, copied with every read
            raw += self._packed(most << 12)
        while len(ends) <= most and (found := BGZF.match(raw, ends[-1])):
            end = ends[-1] + int.from_bytes(found[1], "little") + 1
            if end > len(raw):
                break
            ends.append(end)
        self.raw, self.blocked, self.between = raw[ends[-1] :], len(ends) > 1, True
        begins = [*ends[:-1:BGZF_GROUP], ends[-1]]
        groups = [raw[begin:end] for begin, end in pairwise(begins)]
        return b"".join(parallel.stream(_inflated, groups, parallel.default_threads()))

    def _packed(self, size: int = COMPRESSED_BYTES) -> bytes:
        if self.raw and not self.blocked:
            raw, self.raw = self.raw, b""
            return raw
        raw = self.compressed.read(size)
        self.packed += len(raw)
        return raw


def _inflated(raw: bytes) -> bytes:
    """Return the content of blocks that follow each other."""
    parts = []
    while raw:
        inflate = zlib.decompressobj(GZIP_WINDOW)
        parts.append(inflate.decompress(raw, (1 << 16) + 1))
        if not inflate.eof:
            raise EOFError("a block holds more than 64 KiB, or ends early")
        raw = inflate.unused_data
    return b"".join(parts)
