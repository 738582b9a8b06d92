"""The folder of a sweep: finished points are written at once; no other sweep overwrites them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from louvain_um.core.atomic_files import replacing, write_csv, write_text
from louvain_um.core.headroom import check_host_memory
from louvain_um.core.run_folder import POINTS, START_AGAIN, RunFolder, check_folder, read_points
from louvain_um.errors import LouvainUmError, reason_of
from louvain_um.formats.file_types import require
from louvain_um.profiling.sweep.replay_tables import (
    BEST,
    FAULTS_AT,
    in_hindsight,
    nearest_groups,
    remarks,
)
from louvain_um.profiling.sweep.results import Row, Sweep

UNFINISHED: Final = "unfinished.json"
"""The points requested of a sweep that is not finished, and its notes."""

TABLES: Final = ("results", "groups", "iterations")
SUFFIXES: Final = (".parquet", ".csv")
"""Tables of a sweep, and the formats of their files, the preferred one first."""

Points = dict[tuple[Any, ...], dict[str, Any]]

KEY: Final = ("graph", "vertices", "arcs", "policy", "oversubscription", "gpu", "evidence", "setup")
"""Columns that identify a point; `setup` is a digest of everything that no other column shows."""


class SweepFolder(RunFolder):
    """Finished points of a sweep, in a folder that one process at a time writes to."""

    def __init__(self, folder: str | Path, *, force: bool = False) -> None:
        self.points: Points = {}
        super().__init__(folder, partial(_add, self.points), force=force)

    def __contains__(self, row: Mapping[str, Any]) -> bool:
        return key_of(row) in self.points

    def begin(self, keys: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> None:
        """Save which points are requested, so that a report can list the missing ones."""
        requested = [{name: key[name] for name in KEY} for key in keys]
        text = json.dumps({"notes": list(notes), "points": requested})
        write_text(self.folder / UNFINISHED, text, force=True)

    def add(self, row: Mapping[str, Any], **tables: Sequence[Mapping[str, Any]]) -> None:
        """Keep a finished point, and rows of other tables that came with it."""
        point = {"row": dict(row), **{name: list(rows) for name, rows in tables.items()}}
        self.points[key_of(row)] = json.loads(json.dumps(point))
        self.write_line(point)

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
            write_csv(self.folder / f"{name}.csv", rows, columns, force=True)
            write_parquet(self.folder / f"{name}.parquet", columns, rows)
        write_text(self.folder / "notes.txt", "".join(f"{note}\n" for note in notes), force=True)
        (self.folder / UNFINISHED).unlink(missing_ok=True)


def _add(points: Points, point: dict[str, Any]) -> None:
    """Add the point of a line, or raise ValueError."""
    points[_checked_key(point)] = point


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


def check_sweep_folder(folder: Path, *, force: bool = False) -> None:
    """Refuse a folder that cannot hold a sweep; create none."""
    check_folder(folder, force=force)
    if not force and (folder / POINTS).exists():
        with SweepFolder(folder):
            return


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


CELL_BYTES: Final = 32
"""Bytes of a value and its entry in a row, at least."""

CSV_BYTES: Final = 8
"""Bytes of a value in a CSV file, about."""

RESULTS_FILES: Final = tuple(f"{TABLES[0]}{suffix}" for suffix in SUFFIXES)


def is_results(path: str | Path) -> bool:
    """Say whether a path is a sweep's folder, ended or not, or a table of results."""
    path = Path(path)
    if path.is_dir():
        return any((path / name).is_file() for name in (*RESULTS_FILES, POINTS))
    return path.is_file() and path.suffix in (*SUFFIXES, ".json")


def read(path: str | Path) -> Sweep:
    """Read a sweep's folder (`results`, `groups`, `iterations`, each .parquet or .csv) or table."""
    path = Path(path)
    if is_partial(path):
        return read_partial(path)
    folder, first = (path, None) if path.is_dir() else (path.parent, path)
    tables: dict[str, Any] = dict.fromkeys(TABLES, ())
    order = SUFFIXES if find_spec("pyarrow") else SUFFIXES[::-1]
    for name in TABLES:
        candidates = [folder / f"{name}{suffix}" for suffix in order]
        file = next((file for file in candidates if file.is_file()), None)
        if first is not None and name == "results":
            file = first
        elif first is not None and first.stem != "results":
            file = None  # a table of another name stands alone
        if file is not None:
            tables[name] = read_rows(file)
            if name == "results" and not tables[name]:
                raise LouvainUmError(
                    f"{file}: is empty; expected results of louvain-um sweep, so run it again"
                )
    notes = folder / "notes.txt"
    notes_text = []
    if notes.is_file():
        with suppress(OSError):
            notes_text = notes.read_text("utf-8", errors="replace").splitlines()
    try:
        return Sweep.of(tables["results"], groups=tables["groups"],
                        iterations=tables["iterations"], notes=notes_text)  # fmt: skip
    except LouvainUmError as error:
        raise LouvainUmError(f"{path}: {error}") from None


def _check_cells(path: Path, cells: int) -> None:
    """Refuse a table whose cells alone would fill the host's memory."""
    check_host_memory(CELL_BYTES * cells, f"{path}: reading it", "use a machine with more memory")


def read_rows(path: Path) -> list[Row]:
    """Read the rows of one table; the values of a CSV file are text."""
    try:
        if path.suffix != ".parquet":
            _check_cells(path, path.stat().st_size // CSV_BYTES)
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))
        if path.suffix == ".json":  # of `louvain-um simulate`
            rows: list[Row] = json.loads(path.read_bytes())["results"]
            if any(isinstance(value, list | dict) for row in rows for value in row.values()):
                raise ValueError("a value of several")
            return rows
        pa, parquet = require("pyarrow", f"{path}"), require("pyarrow.parquet", f"{path}")
        try:
            with path.open("rb") as file:
                about = parquet.ParquetFile(file).metadata
                _check_cells(path, about.num_rows * about.num_columns)
                file.seek(0)
                table: list[Row] = parquet.read_table(file).to_pylist()
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            raise LouvainUmError(f"{path}: is not a Parquet file; run the sweep again") from None
        return table
    except (
        OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, csv.Error
    ) as error:  # fmt: skip
        reason = (getattr(error, "strerror", None) or "is not a table of results").lower()
        raise LouvainUmError(f"{path}: {reason}; run the sweep again") from None


def is_partial(folder: Path) -> bool:
    """Say whether a folder holds a partial sweep."""
    if not (folder / POINTS).is_file():
        return False
    ended = any((folder / f"{TABLES[0]}{suffix}").is_file() for suffix in SUFFIXES)
    return not ended or (folder / UNFINISHED).is_file()


def read_partial(folder: Path) -> Sweep:
    """Return the finished points of a partial sweep; nothing is written."""
    try:
        known: Points = {}
        read_points(folder, lambda _, point: _add(known, point), "repeat the sweep's command")
        noted = json.loads((folder / UNFINISHED).read_text("utf-8"))
        notes, requested = [str(note) for note in noted["notes"]], list(noted["points"])
        keys = [tuple(key[name] for name in KEY) for key in requested]
        len(set(keys))  # of values that can be compared
    except FileNotFoundError:
        raise _none_finished(folder) from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise LouvainUmError(
            f"{folder / UNFINISHED}: is damaged; repeat the sweep's command"
        ) from None
    except OSError as error:
        raise LouvainUmError(f"{folder}: {reason_of(error)}; check the path") from None
    finished = [known[key] for key in keys if key in known]
    missing = [dict(zip(KEY, key, strict=True)) for key in keys if key not in known]
    if not finished:
        raise _none_finished(folder)
    rows = {name: [row for point in finished for row in point.get(name, ())] for name in TABLES[1:]}
    checked = Sweep.of(
        [point["row"] for point in finished], groups=rows["groups"], iterations=rows["iterations"]
    )
    results = [*checked.results, *in_hindsight(checked.results)]
    groups = [dict(row) for row in checked.groups if row.get("oversubscription") is not None]
    notes += remarks(results)
    return Sweep.of(
        results,
        groups=nearest_groups(groups, FAULTS_AT),
        iterations=checked.iterations,
        notes=notes,
        unfinished=_missing_text(len(finished), missing),
    )


def _none_finished(folder: Path) -> LouvainUmError:
    return LouvainUmError(
        f"{folder}: no point of the sweep is finished yet; repeat its command to continue"
    )


def _missing_text(done: int, missing: Iterable[Mapping[str, Any]]) -> str:
    """Return which points are missing, and how to continue."""
    counts = Counter(f"{key['graph']} {key['evidence']} on {key['gpu']}" for key in missing)
    if not counts:
        return ""
    parts = ", ".join(f"{count} of {where}" for where, count in counts.items())
    total = done + counts.total()
    return (
        f"This sweep is partial: {done:,} of {total:,} points are finished; missing are {parts}. "
        "To continue, repeat its command; finished points are kept."
    )


def refuse_loss(store: SweepFolder, requested: Sequence[Mapping[str, Any]]) -> None:
    """Refuse results in a sweep's folder that its new tables would not hold."""
    path = next((store.folder / name for name in reversed(RESULTS_FILES)
                 if (store.folder / name).is_file()), None)  # fmt: skip
    if path is None:
        return
    try:
        rows = read_rows(path)
    except LouvainUmError as error:
        raise LouvainUmError(f"{error}; {START_AGAIN}") from None
    # As CSV holds them: values read from Parquet become the same text.
    known = {_text(key_of(row)): row for row in (p["row"] for p in store.points.values())}
    wanted = {_text(key_of(key)) for key in requested}
    for row in rows:
        if row.get("policy") == BEST:
            continue  # follows from the others
        key = _text(tuple(row.get(name) for name in KEY))
        if key not in known or not _same(row, known[key]):
            raise LouvainUmError(
                f"{path}: has a row that this folder's sweep did not write, perhaps an edited "
                f"one; move the file, or {START_AGAIN}"
            )
        if key not in wanted:
            raise LouvainUmError(
                f"{store.folder}: holds results of another sweep, such as {row['graph']} "
                f"{row['policy']} at {float(row['oversubscription']):g} % on {row['gpu']} (other "
                f"settings, or not requested now); {START_AGAIN}"
            )


def _same(row: Mapping[str, Any], written: Mapping[str, Any]) -> bool:
    """Say whether a row of a table is the point that was written."""
    return all(_text((row.get(name),)) == _text((value,)) for name, value in written.items())


def _text(values: Sequence[Any]) -> tuple[str, ...]:
    """Return values as CSV holds them."""
    return tuple("" if value is None else str(value) for value in values)
