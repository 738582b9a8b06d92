"""Pieces of a list of edges that ranks read, and folders of Parquet files that they write."""

from __future__ import annotations

import glob
import os
import posixpath
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.atomic_files import LockedFolder, flush, flush_folder, resolved
from louvain_um.errors import GraphError, GraphFormatError, LouvainUmError
from louvain_um.formats import column_roles as roles
from louvain_um.formats import tables
from louvain_um.formats.arrow import VERTICES_KEY, check_unpacked, from_arrow
from louvain_um.formats.edge_list import reader, sniff
from louvain_um.formats.edge_list.edges import TextIdError, read_numbers
from louvain_um.formats.file_types import first_line_of, require
from louvain_um.formats.graph_file import open_graph_file
from louvain_um.formats.read_options import ReadOptions

UNFINISHED: Final = ".unfinished"
"""Ends the name of a file until all are whole. A folder's readers take names in .parquet."""

NAMING: Final = f"naming{UNFINISHED}"
"""Says how many files are whole while they get their names, and of which run."""

SAID: Final = re.compile(rb"(\d{1,5})(?: ([0-9a-f]{12}))?\n")

MOST_PARTS: Final = 1 << 16

LOCAL: Final = "file://"
"""Begins the address of a local folder."""


class PartFolder:
    """Files of consecutive rows; they get their names when all of them are whole."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = os.fspath(folder)
        plain = self.path.removeprefix(LOCAL)
        self.local = "://" not in plain
        self.run = ""
        self.files = require("pyarrow.fs", self.path)
        self._lock: LockedFolder | None = None
        if not self.local:
            core = require("fsspec.core", self.path)
            try:
                remote, self.root = core.url_to_fs(self.path)
            except (ImportError, ValueError) as error:
                raise self._failed(error) from None
            self.system = self.files.PyFileSystem(self.files.FSSpecHandler(remote))
        else:
            self.root = os.path.abspath(plain)
            self.system = self.files.LocalFileSystem()

    def claim(self, *, force: bool) -> None:
        """Make the folder if needed; finish or remove what an interrupted run left in it."""
        self.run = secrets.token_hex(6)
        with self._failures():
            self.system.create_dir(self.root, recursive=True)
            if self.local:
                self._lock = LockedFolder(self.root)
            finished = self._finish()
            names = self.names()
            for name in names:
                if name.endswith(UNFINISHED):
                    self._delete(name)
            if not force and not all(name.endswith(UNFINISHED) for name in names):
                held = "holds the result of a run that was stopped as it named its files"
                raise LouvainUmError(
                    f"{self.path} {held if finished else 'has files already'}; choose another "
                    "folder, or pass --force (force=True)"
                )

    def write(self, part: int, columns: Mapping[str, Any]) -> None:
        """Write a file under a name that readers skip."""
        arrow, parquet = require("pyarrow", self.path), require("pyarrow.parquet", self.path)
        name = unfinished(part, self.run)
        with self._failures(), self._opened(name) as file:
            parquet.write_table(arrow.table(columns), file)
        self._flush(name)

    def publish(self, parts: int) -> None:
        """Give all files their names, once those of an earlier result are gone."""
        with self._failures(), self._opened(NAMING) as file:
            file.write(f"{parts} {self.run}\n".encode())
        self._flush(NAMING)
        with self._failures():
            if not self._finish():
                raise LouvainUmError(
                    f"{self.path}: another run removed files of this one; give every run its own "
                    "folder"
                )

    def close(self) -> None:
        """Let other runs write to the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _flush(self, *names: str) -> None:
        """Wait until files, and the names in the folder, are on the disk, if it is local."""
        if self.local:
            with self._failures():
                for name in names:
                    flush(Path(self.root, name))
                flush_folder(Path(self.root))

    def _finish(self) -> bool:
        """Give files their names, if all of them are whole; return whether they were."""
        names = set(self.names())
        if NAMING not in names:
            return False
        with self.system.open_input_stream(self._path(NAMING)) as file:
            text = file.read(64)
        whole = SAID.fullmatch(text)
        if whole is None:  # stopped while it was written
            return False
        run = (whole[2] or b"").decode()
        new = {unfinished(part, run): part_name(part) for part in range(int(whole[1]))}
        waiting = {held: name for held, name in new.items() if held in names}
        named = set(new.values()).difference(waiting.values())
        if not named <= names:
            return False
        for name in sorted(names - named):
            if name.startswith("part-") and name.endswith(".parquet"):
                self._delete(name)
        self._flush()
        for held, name in waiting.items():
            self.system.move(self._path(held), self._path(name))
        self._flush()
        self._delete(NAMING)
        return True

    def name(self, part: int) -> str:
        """Return a file's name, with its folder."""
        folder = self.path if "://" in self.path else self.root
        return posixpath.join(folder, part_name(part))

    def drop(self, part: int) -> None:
        """Remove a file of this run that has no name yet, if that can be done."""
        with suppress(OSError):
            self._delete(unfinished(part, self.run))

    def names(self) -> list[str]:
        """Return the names in the folder, in order."""
        found = self.system.get_file_info(self.files.FileSelector(self.root))
        return sorted(each.base_name for each in found)

    def _path(self, name: str) -> str:
        return posixpath.join(self.root, name)

    def _opened(self, name: str) -> Any:
        path = self._path(name)
        return self.system.open_output_stream(str(resolved(path)) if self.local else path)

    def _delete(self, name: str) -> None:
        self.system.delete_file(self._path(name))

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> LouvainUmError:
        return LouvainUmError(f"{self.path} cannot be written to ({error}); check the folder")


def unfinished(part: int, run: str) -> str:
    """Return the name of a run's file that readers skip."""
    return f"{part_name(part)}{run and '.'}{run}{UNFINISHED}"


def part_name(part: int) -> str:
    """Return the name of a file: in the order of their rows."""
    return f"part-{part:05}.parquet"


Array = NDArray[Any]
Edges = tuple[Array, Array, Array | None]
"""Both ends of each edge as integer ids, and weights."""

IN_FOLDER: Final = "[!._]*"
"""Pattern of the files of a folder that hold edges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgePiece:
    """What one rank reads at a time."""

    path: str
    group: int | None
    size: int


def files_of(pattern: str) -> list[str]:
    """Return the files that a path, a folder or a pattern names, in order."""
    if "://" in pattern:
        system, path = remote(pattern)
        names = system.glob(posixpath.join(path, IN_FOLDER) if system.isdir(path) else path)
        found = [system.unstrip_protocol(name) for name in names]
        files = [at for at, name in zip(found, names, strict=True) if not system.isdir(name)]
    elif os.path.isdir(pattern):
        found = glob.glob(os.path.join(glob.escape(pattern), IN_FOLDER))
        if not found:
            raise GraphFormatError("is a folder without files; check the path", pattern)
        files = [name for name in found if os.path.isfile(name)]
    else:
        found = glob.glob(pattern)
        files = [name for name in found if os.path.isfile(name)]
    if not files:
        if found:
            problem = "only folders there, and no files; name those in a folder by a pattern (*/*)"
        else:
            problem = "there is no such file; check the path"
        raise GraphFormatError(problem, pattern or "''")
    return sorted(files)


def remote(path: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    core = require("fsspec.core", path)
    scheme = path.partition("://")[0]
    try:
        system, name = core.url_to_fs(path)
    except ImportError as error:
        raise GraphFormatError(
            f"{scheme}:// needs another package ({first_line_of(error)}); install it with pip", path
        ) from None
    except ValueError as error:
        raise GraphFormatError(
            f"cannot be reached ({first_line_of(error)}); check the address", path
        ) from None
    return system, name


def opened(path: str) -> AbstractContextManager[Any]:
    """Open a file, local or remote."""
    if "://" in path:
        system, name = remote(path)
        stream: AbstractContextManager[Any] = system.open(name, "rb")
        return stream
    return open(path, "rb")


def parquet_file(stream: Any, path: str) -> Any:
    """Return an open Parquet file."""
    parquet = require("pyarrow.parquet", path)
    with readable(path):
        return parquet.ParquetFile(stream)


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn what pyarrow raises for damaged files, which is of several types, into one error."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        problem = f"is not a valid Parquet file ({first_line_of(error)}); write it again"
        raise GraphFormatError(problem, path) from None


def pieces_of(path: str) -> tuple[list[EdgePiece], int | None]:
    """Return the pieces of a file, and the number of vertices if it has it."""
    if not path.endswith((".parquet", ".pq")):
        return [EdgePiece(path=path, group=None, size=size_of(path))], None
    with opened(path) as stream:
        file = parquet_file(stream, path)
        announced = (file.schema_arrow.metadata or {}).get(VERTICES_KEY)
        rows = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    pieces = [EdgePiece(path=path, group=k, size=size) for k, size in enumerate(rows)]
    with readable(path):
        return pieces, int(announced) if announced else None


def size_of(path: str) -> int:
    """Return the bytes of a file, local or remote."""
    if "://" not in path:
        return os.path.getsize(path)
    system, name = remote(path)
    return int(system.size(name) or 0)


@contextmanager
def here(path: str) -> Iterator[str]:
    """Yield the path of a local file: a remote one is copied to a temporary one."""
    if "://" not in path:
        yield path
        return
    system, name = remote(path)
    with tempfile.TemporaryDirectory(prefix="louvain-um-") as folder:
        local = os.path.join(folder, posixpath.basename(name))
        try:
            system.get_file(name, local)
        except OSError as error:
            raise GraphFormatError(f"it cannot be read ({error}); check the path", path) from None
        yield local


def share(pieces: Sequence[EdgePiece], rank: int, ranks: int) -> list[EdgePiece]:
    """Return a rank's pieces: consecutive ones of about the same size."""
    ends = np.cumsum([piece.size for piece in pieces], dtype=np.float64)
    middles = ends - 0.5 * np.array([piece.size for piece in pieces], np.float64)
    owner = np.minimum((middles * ranks / max(float(ends[-1]), 1.0)).astype(np.int64), ranks - 1)
    return [piece for piece, of in zip(pieces, owner, strict=True) if of == rank]


def read_piece(piece: EdgePiece, options: ReadOptions) -> Edges:
    """Return the edges of a piece."""
    if piece.group is None:
        return read_text(piece.path, options)
    with opened(piece.path) as stream:
        file = parquet_file(stream, piece.path)
        if not options.trusted:
            check_unpacked(file.metadata, stream, piece.path, columns=1)
        names, group = file.schema_arrow.names, piece.group

        def column(name: Any) -> Array:
            with readable(piece.path):
                return from_arrow(file.read_row_group(group, columns=[name]).column(0), str(name))

        try:
            return from_columns(names, column, options)
        except GraphError as error:
            raise GraphFormatError(str(error), piece.path) from None


def read_text(path: str, options: ReadOptions) -> Edges:
    """Return the edges of a file of text."""
    with here(path) as local, open_graph_file(local, trusted=options.trusted) as file:
        file.skip_byte_order_mark()
        file.end_lines_with_newlines()
        file.skip_separator_line()
        detected = sniff.sniff(file, options)
        if detected.named:
            raise GraphFormatError(
                "its vertices have names, which ranks do not number; write ids instead", path
            )
        file.read(detected.skip)
        try:
            edges = read_numbers(file, reader.line_format_of_edges(file, detected, options))
        except TextIdError as found:
            raise GraphFormatError(
                f"{found.text!r} is a name, which ranks do not number; write ids instead",
                path,
                found.line,
            ) from None
    return edges.u, edges.v, edges.w


def from_columns(
    names: Sequence[Any], column: Callable[[Any], Array], options: ReadOptions
) -> Edges:
    """Return the edges of a table; `column_roles` chooses its columns."""
    chosen = roles.choose(list(names), len(names), options)
    ends = column(names[chosen.source]), column(names[chosen.target])
    for end in ends:
        if end.dtype.kind not in "iu":
            raise GraphError("vertices have names, which ranks do not number; write ids instead")
        if len(end) != len(ends[0]):
            raise GraphError("its columns differ in length; write it again")
        if len(end) and int(end.min()) < 0:
            raise GraphError(f"vertex {int(end.min())} is negative; ids start at 0")
    for name in names:
        tables.note_on_types(name, column, options)
    weights = None if chosen.weight is None else column(names[chosen.weight])
    return (*ends, weights)
