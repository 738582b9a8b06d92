"""Bytes of a graph file, wherever they come from: a file, a gzip stream, standard input."""

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
"""Bytes of text parsed at a time: they and what becomes of them stay in a cache."""

PACKED_BYTES = 1 << 17
"""Bytes of a gzip stream unpacked at a time."""

GZIP_WINDOW = 31
"""What zlib calls a gzip stream, header and check sum included."""

GZIP_MAGIC = b"\x1f\x8b"


class Source:
    """An open graph file whose every failure names the file.

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
                f"the gzip stream is damaged or ends early ({error}); fetch or compress it again"
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
                raise self.error("has a first line without end; is it of another format?", 1)
        text = self.read(head.index(b"\n") + 1 if b"\n" in head else len(head))
        return text.decode("utf-8", "replace")

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[NDArray[np.uint8]]:
        """Yield stretches of whole lines, each ending in a newline."""
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
        """Return everything as a file that can be sought in, from the start."""
        ours = isinstance(self.stream, io.BufferedReader | io.BytesIO)
        if not ours or not self.stream.seekable():
            self.stream = cast(BinaryIO, io.BytesIO(self.read()))
        self._ahead = b""
        self.stream.seek(0)
        return self.stream


def refuse_missing(path: str) -> None:
    """Raise the one-line error for a path that is no readable file."""
    where = Path(path)
    if not path:
        raise GraphFormatError("the name of the file is empty; name a file, or - for stdin", "''")
    if where.is_dir():
        raise GraphFormatError("is a folder; name a graph file inside it", path)
    if not where.exists():
        raise GraphFormatError("no such file; check the path", path)


@contextmanager
def open_source(path: str) -> Iterator[Source]:
    """Open a file, or standard input for ``-``; gzip is undone, known by its first bytes."""
    if path == "-":
        yield _unpacked(cast(BinaryIO, sys.stdin.buffer), "<stdin>")
        return
    refuse_missing(path)
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed below, opened apart for its error
    except OSError as error:
        raise GraphFormatError(f"cannot be opened: {error.strerror}", path) from None
    with stream:
        yield _unpacked(cast(BinaryIO, stream), path)


def _unpacked(stream: BinaryIO, name: str) -> Source:
    source = Source(stream, name)
    magic = source.peek(2)
    if not magic:
        raise source.error("is empty; a graph was expected")
    if magic == GZIP_MAGIC:
        source = Source(cast(BinaryIO, _Inflated(source)), name)
        if not source.peek(1):
            raise source.error("holds an empty gzip stream; a graph was expected")
    elif name.endswith(".gz"):
        raise source.error("is named .gz but is no gzip stream; rename it without .gz")
    return source


class _Inflated:
    """What a gzip stream holds; the gzip module's own reader takes 8 KiB at a time."""

    def __init__(self, packed: Source) -> None:
        self.packed = packed
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
            packed = self.inflate.unused_data or self.packed.read(PACKED_BYTES)
            if self.inflate.eof:
                # Another stream may follow, or zeros that fill a tape's block.
                packed = packed.lstrip(b"\0") or self.packed.read(PACKED_BYTES).lstrip(b"\0")
                if not packed:
                    return b""
                self.inflate = zlib.decompressobj(GZIP_WINDOW)
            if not packed:
                raise EOFError("no end of stream")
            data = self.inflate.decompress(packed)
        return data
