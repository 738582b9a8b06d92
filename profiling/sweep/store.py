"""The folder of a sweep: each finished point is on disk before the next begins."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from louvain_um.core.atomic_files import appending, is_empty, lock, open_resolved, replacing
from louvain_um.errors import LouvainUmError

POINTS: Final = "points.jsonl"
"""Finished points, one a line, in the order in which they were finished."""

UNFINISHED: Final = "unfinished.json"
"""The points requested of a sweep that is not finished, and its notes."""

POINT_PREFIX: Final = b'{"row": {'
"""Start of the line of every point."""

TABLES: Final = ("results", "groups", "iterations")
SUFFIXES: Final = (".parquet", ".csv")
"""Tables of a sweep, and the formats of their files, the preferred one first."""

KEY: Final = ("graph", "vertices", "arcs", "policy", "oversubscription", "gpu", "evidence", "setup")
"""Columns that identify a point; `setup` is a digest of everything that no other column shows."""


class Store:
    """Finished points of a sweep, in a folder that one process at a time writes to."""

    def __init__(self, folder: str | Path, *, force: bool = False) -> None:
        self.folder = Path(folder)
        path = self.folder / POINTS
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not force:
                refuse_other(self.folder)
            self.file: IO[str] = open_resolved(path, "a+", "utf-8")
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            raise LouvainUmError(f"{self.folder}: {reason}; name another folder") from None
        if not lock(self.file.fileno()):
            self.file.close()
            raise LouvainUmError(
                f"{self.folder}: another sweep is writing there; wait for it, or name another "
                "folder"
            )
        if force:
            self.file.truncate(0)
        self.points = self._read()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # of what could not be written, an error has been raised
            self.file.close()

    def _read(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Return the points on disk; the last line, if a kill cut it short, is dropped."""
        try:
            points, whole = read_points(self.folder)
        except LouvainUmError as error:
            # Nothing is deleted that may be of value.
            self.file.close()
            raise LouvainUmError(
                f"{error}; name another folder, or pass --force (force=True) to start again"
            ) from None
        self.file.truncate(whole)
        return points

    def __contains__(self, row: Mapping[str, Any]) -> bool:
        return key_of(row) in self.points

    def begin(self, keys: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> None:
        """Save which points are requested, so that a report can list the missing ones."""
        requested = [{name: key[name] for name in KEY} for key in keys]
        with replacing(self.folder / UNFINISHED, force=True) as part:
            part.write_text(
                json.dumps({"notes": list(notes), "points": requested}), encoding="utf-8"
            )

    def add(self, row: Mapping[str, Any], **tables: Sequence[Mapping[str, Any]]) -> None:
        """Keep a finished point, and rows of other tables that came with it."""
        point = {"row": dict(row), **{name: list(rows) for name, rows in tables.items()}}
        self.points[key_of(row)] = json.loads(json.dumps(point))
        with appending(self.folder / POINTS):
            self.file.write(json.dumps(point) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())

    def rows(self, keys: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of each table, of some points, in their order."""
        points = [self.points[key_of(key)] for key in keys if key_of(key) in self.points]
        tables = {"results": [point["row"] for point in points]}
        for name in TABLES[1:]:
            tables[name] = [row for point in points for row in point.get(name, ())]
        return tables

    def write(
        self, tables: Mapping[str, Sequence[Mapping[str, Any]]], notes: Sequence[str]
    ) -> None:
        """Write tables as CSV and, where PyArrow is installed, as Parquet; notes as text."""
        for name, rows in tables.items():
            if not rows:
                # Those of an earlier sweep would be read as this one's.
                for suffix in SUFFIXES:
                    (self.folder / f"{name}{suffix}").unlink(missing_ok=True)
                continue
            columns = list(dict.fromkeys(column for row in rows for column in row))
            with (
                replacing(self.folder / f"{name}.csv", force=True) as part,
                part.open("w", newline="", encoding="utf-8") as file,
            ):
                writer = csv.DictWriter(file, columns)
                writer.writeheader()
                writer.writerows(rows)
            write_parquet(self.folder / f"{name}.parquet", columns, rows)
        with replacing(self.folder / "notes.txt", force=True) as part:
            part.write_text("".join(f"{note}\n" for note in notes), encoding="utf-8")
        (self.folder / UNFINISHED).unlink(missing_ok=True)


def read_points(folder: Path) -> tuple[dict[tuple[Any, ...], dict[str, Any]], int]:
    """Return finished points, and the bytes of their lines; a last one that was cut is no point."""
    *lines, rest = (folder / POINTS).read_bytes().split(b"\n")
    points: dict[tuple[Any, ...], dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        try:
            point: dict[str, Any] = json.loads(line)
            points[_checked_key(point)] = point
        except (ValueError, TypeError, KeyError, RecursionError):
            raise LouvainUmError(f"{folder / POINTS}:{number}: is not a point of a sweep") from None
    if rest and not (rest.startswith(POINT_PREFIX) or POINT_PREFIX.startswith(rest)):
        raise LouvainUmError(f"{folder / POINTS}:{len(lines) + 1}: is not a point of a sweep")
    return points, sum(len(line) + 1 for line in lines)


def _checked_key(point: Any) -> tuple[Any, ...]:
    """Return the key of a line's point, or raise an error if the line holds none."""
    key = key_of(point["row"])
    if not all(value is None or isinstance(value, str | int | float) for value in key):
        raise ValueError("a key that is neither text nor a number")
    for name in TABLES[1:]:
        rows = point.get(name, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError("no list of rows")
    return key


def check_folder(folder: str | Path, *, force: bool = False) -> None:
    """Refuse a folder that cannot hold a sweep; create none."""
    path = Path(folder)
    if path.is_dir() and not force:
        if (path / POINTS).exists():
            with Store(path):
                return
        refuse_other(path)
    existing = next((each for each in (path, *path.parents) if each.exists()), Path())
    if not existing.is_dir():
        raise LouvainUmError(f"{path}: {existing} is not a folder; name another one")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise LouvainUmError(f"{path}: permission denied; name another folder")


def refuse_other(folder: Path) -> None:
    """Refuse a folder that holds anything but a sweep."""
    if not (folder / POINTS).exists() and not is_empty(folder):
        raise LouvainUmError(
            f"{folder}: holds files that are not a sweep; "
            "name another folder, or pass --force (force=True)"
        )


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key of a point."""
    return tuple(row[name] for name in KEY)


def write_parquet(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as Parquet; without PyArrow remove an older file, which would be stale."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        path.unlink(missing_ok=True)
        return
    table = pyarrow.table({name: [row.get(name) for row in rows] for name in columns})
    # An open file: PyArrow takes no path that is not UTF-8.
    with replacing(path, force=True) as part, part.open("wb") as file:
        parquet.write_table(table, file)
