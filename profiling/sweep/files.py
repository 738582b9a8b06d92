"""A sweep read from its folder, or from one table of results."""

from __future__ import annotations

import csv
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from louvain_um.core.headroom import check_host_memory
from louvain_um.errors import LouvainUmError
from louvain_um.profiling.sweep.partial import is_partial, read_partial
from louvain_um.profiling.sweep.results import Row, Sweep
from louvain_um.profiling.sweep.store import POINTS, SUFFIXES, TABLES

CELL_BYTES: Final = 32
"""Bytes of a value and its entry in a row, at least."""

CSV_BYTES: Final = 8
"""Bytes of a value in a CSV file, about."""

RESULTS_FILES: Final = tuple(f"{TABLES[0]}{suffix}" for suffix in SUFFIXES)


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
            raise LouvainUmError(f"{path}: is no Parquet file; run the sweep again") from None
        return table
    except ImportError:
        raise LouvainUmError(
            f"{path}: Parquet needs pyarrow: pip install 'louvain-um[formats]', or pass the .csv"
        ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = (getattr(error, "strerror", None) or "is no table of results").lower()
        raise LouvainUmError(f"{path}: {reason}; run the sweep again") from None
