"""A sweep in its folder: read when finished or partial, and never overwritten by another."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from louvain_um.core.headroom import check_host_memory
from louvain_um.errors import LouvainUmError
from louvain_um.profiling.sweep.replay_tables import (
    BEST,
    FAULTS_AT,
    in_hindsight,
    nearest_groups,
    remarks,
)
from louvain_um.profiling.sweep.results import Row, Sweep
from louvain_um.profiling.sweep.sentences import explain
from louvain_um.profiling.sweep.store import (
    KEY,
    POINTS,
    SUFFIXES,
    TABLES,
    UNFINISHED,
    Store,
    key_of,
    read_points,
)

CELL_BYTES: Final = 32
"""Bytes of a value and its entry in a row, at least."""

CSV_BYTES: Final = 8
"""Bytes of a value in a CSV file, about."""

RESULTS_FILES: Final = tuple(f"{TABLES[0]}{suffix}" for suffix in SUFFIXES)


REMEDY = "name another folder with -o, or pass --force (force=True) to start again"


def is_results(path: str | Path) -> bool:
    """Say whether a path is a sweep's folder, ended or not, or its table of results."""
    path = Path(path)
    if path.is_dir():
        return any((path / name).is_file() for name in (*RESULTS_FILES, POINTS))
    return path.is_file() and path.suffix in SUFFIXES


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
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                _check_cells(path, path.stat().st_size // CSV_BYTES)
                return list(csv.DictReader(file))
        from pyarrow import ArrowException, parquet

        try:
            with path.open("rb") as file:
                about = parquet.ParquetFile(file).metadata
                _check_cells(path, about.num_rows * about.num_columns)
                file.seek(0)
                table: list[Row] = parquet.read_table(file).to_pylist()
        except (ArrowException, ValueError, TypeError, OverflowError):
            raise LouvainUmError(f"{path}: is not a Parquet file; run the sweep again") from None
        return table
    except ImportError:
        raise LouvainUmError(
            f"{path}: Parquet needs pyarrow: pip install 'louvain-um[formats]', or pass the .csv"
        ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
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
        points = [*read_points(folder)[0].values()]
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
        reason = (error.strerror or "cannot be read").lower()
        raise LouvainUmError(f"{folder}: {reason}; check the path") from None
    known = {tuple(point["row"][name] for name in KEY): point for point in points}
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
    notes += [*remarks(results), *explain(results)]
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


def refuse_loss(store: Store, requested: Sequence[Mapping[str, Any]]) -> None:
    """Refuse results in a sweep's folder that its new tables would not hold."""
    path = next((store.folder / name for name in reversed(RESULTS_FILES)
                 if (store.folder / name).is_file()), None)  # fmt: skip
    if path is None:
        return
    try:
        rows = read_rows(path)
    except LouvainUmError as error:
        raise LouvainUmError(f"{error}; {REMEDY}") from None
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
                f"one; move the file, or {REMEDY}"
            )
        if key not in wanted:
            raise LouvainUmError(
                f"{store.folder}: holds results of another sweep, such as {row['graph']} "
                f"{row['policy']} at {float(row['oversubscription']):g} % on {row['gpu']} (other "
                f"settings, or not requested now); {REMEDY}"
            )


def _same(row: Mapping[str, Any], written: Mapping[str, Any]) -> bool:
    """Say whether a row of a table is the point that was written."""
    return all(_text((row.get(name),)) == _text((value,)) for name, value in written.items())


def _text(values: Sequence[Any]) -> tuple[str, ...]:
    """Return values as CSV holds them."""
    return tuple("" if value is None else str(value) for value in values)
