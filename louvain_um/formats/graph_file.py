"""Bytes of a graph file, from a file, a gzip stream or standard input."""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphFormatError

BLOCK_BYTES = 1 << 20
"""Bytes of text parsed at a time: text and results fit the cache."""

COMPRESSED_BYTES = 1 << 17
"""Bytes of a gzip stream decompressed at a time."""

GZIP_WINDOW = 31
"""zlib's ``wbits`` for a gzip stream with header and checksum."""

GZIP_MAGIC = b"\x1f\x8b"


class GraphFile:
    """An open graph file; all its errors name the file.

    Parameters
    ----------
    stream : binary file
        Uncompressed bytes.
    name : str
        The file as the user named it.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.stream = stream
        self.name = name
        self._ahead = b""

    def error(self, message: str, line: int | None = None) -> GraphFormatError:
        """Return an error that names this file."""
        return GraphFormatError(message, self.name, line)

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; fewer only at the end."""
        if size == 0:
            return b""
        if self._ahead:
            taken = self._ahead if size < 0 else self._ahead[:size]
            self._ahead = self._ahead[len(taken) :]
            return taken + self.read(size - len(taken) if size >= 0 else -1)
        try:
            return self.stream.read(size)
        except (EOFError, zlib.error) as error:
            raise self.error(
                f"the gzip stream is damaged or ends early ({error}); download or compress it again"
            ) from None
        except OSError as error:
            raise self.error(f"cannot be read: {error.strerror or error}") from None

    def peek(self, size: int) -> bytes:
        """Return up to `size` bytes that the next `read` will return again."""
        if len(self._ahead) < size:
            ahead, self._ahead = self._ahead, b""
            self._ahead = ahead + self.read(size - len(ahead))
        return self._ahead[:size]

    def skip_byte_order_mark(self) -> None:
        """Consume the UTF-8 byte order mark that some editors write, if there is one."""
        if self.peek(3) == b"\xef\xbb\xbf":
            self.read(3)

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
        """Return the words and the number of the next line that is no ``%`` comment and not empty.

        Parameters
        ----------
        line : int
            Lines read before.
        expected : str
            The form of the header, for the error at the end of the file.
        """
        while text := self.read_line():
            line += 1
            words = text.split()
            if words and not words[0].startswith("%"):
                return words, line
        raise self.error(f"ends before the line {expected!r}; the file may be truncated", line + 1)

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[NDArray[np.uint8]]:
        """Yield blocks of whole lines, each ending in a newline."""
        rest = b""
        while data := self.read(size):
            cut = data.rfind(b"\n") + 1
            if cut == 0:
                rest += data
                continue
            yield np.frombuffer(rest + data[:cut] if rest else data, np.uint8, len(rest) + cut)
            rest = data[cut:]
        if rest:
            yield np.frombuffer(rest + b"\n", np.uint8)

    def seekable(self) -> BinaryIO:
        """Return the whole file as a seekable stream, at its start."""
        standard = isinstance(self.stream, io.BufferedReader | io.BytesIO)
        if not standard or not self.stream.seekable():
            self.stream = cast(BinaryIO, io.BytesIO(self.read()))
        self._ahead = b""
        self.stream.seek(0)
        return self.stream


def refuse_missing(path: str) -> None:
    """Raise an error for an empty path, a folder or a missing file."""
    where = Path(path)
    if not path:
        raise GraphFormatError("file name is empty; name a file, or - for stdin", "''")
    if where.is_dir():
        raise GraphFormatError("is a folder; name a graph file inside it", path)
    if not where.exists():
        raise GraphFormatError("no such file; check the path", path)


@contextmanager
def open_graph_file(path: str) -> Iterator[GraphFile]:
    """Open a file, or standard input for ``-``; gzip is recognized by its first bytes."""
    if path == "-":
        yield _decompressed(cast(BinaryIO, sys.stdin.buffer), "<stdin>")
        return
    refuse_missing(path)
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed below; opened here to catch its error
    except OSError as error:
        raise GraphFormatError(f"cannot be opened: {error.strerror}", path) from None
    with stream:
        yield _decompressed(cast(BinaryIO, stream), path)


def _decompressed(stream: BinaryIO, name: str) -> GraphFile:
    file = GraphFile(stream, name)
    magic = file.peek(2)
    if not magic:
        raise file.error("is empty; expected a graph")
    if magic == GZIP_MAGIC:
        file = GraphFile(cast(BinaryIO, _GzipReader(file)), name)
        if not file.peek(1):
            raise file.error("contains an empty gzip stream; expected a graph")
    elif name.endswith(".gz"):
        raise file.error("ends in .gz but is not a gzip stream; rename it without .gz")
    return file


class _GzipReader:
    """The content of a gzip stream; the gzip module's own reader takes 8 KiB at a time."""

    def __init__(self, compressed: GraphFile) -> None:
        self.compressed = compressed
        self.inflate = zlib.decompressobj(GZIP_WINDOW)
        self.ready = b""

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
        while not data:
            raw = self.inflate.unused_data or self.compressed.read(COMPRESSED_BYTES)
            if self.inflate.eof:
                # Another stream may follow, or zeros that pad a tape block.
                raw = raw.lstrip(b"\0") or self.compressed.read(COMPRESSED_BYTES).lstrip(b"\0")
                if not raw:
                    return b""
                self.inflate = zlib.decompressobj(GZIP_WINDOW)
            if not raw:
                raise EOFError("no end of stream")
            data = self.inflate.decompress(raw)
        return data
