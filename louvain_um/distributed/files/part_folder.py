"""A folder of Parquet files, local or remote, that readers take as one table."""

from __future__ import annotations

import os
import posixpath
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from louvain_um.core.atomic_files import OwnFolder, flush, flush_folder, resolved
from louvain_um.errors import LouvainUmError
from louvain_um.formats.file_types import require

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
        self._lock: OwnFolder | None = None
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
                self._lock = OwnFolder(self.root)
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
        if whole is None or int(whole[1]) > MOST_PARTS:  # stopped while it was written
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
