"""Write label files: one community per vertex, as CSV, TSV, Parquet, NPZ or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import atomic_files
from louvain_um.errors import LouvainUmError
from louvain_um.formats.edge_list.integer_text import digits
from louvain_um.formats.labels.columns import columns
from louvain_um.formats.labels.text import quoted_where_needed, spreadsheet_safe
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Labels

SCHEMA = "louvain-um/labels"
VERSION = 1

CHUNK = 1 << 18
"""Rows formatted at a time: a few MiB, which fit the cache."""

NPZ_TEXT_LIMIT = 2**30
"""Largest size of fixed-width text in an .npz file, in bytes; long names inflate it."""


def write_labels(
    path: str | Path,
    communities: Communities | Labels,
    *,
    hierarchy: bool = False,
    force: bool = False,
    safe_csv: bool = False,
) -> None:
    """Write one row per vertex: its name in the source, or its id, and its community.

    Parameters
    ----------
    path : path
        Ends in ``.csv``, ``.tsv``, ``.parquet``, ``.npz`` or ``.json``. The columns (arrays,
        keys) are ``vertex`` and ``community``.
    communities : Communities or Labels
    hierarchy : bool
        Add the nested partitions of a result: columns ``hierarchy_0``, the finest,
        ``hierarchy_1`` …, as in `Communities.to_frame`.
    force : bool
        Replace the file if it exists.
    safe_csv : bool
        Write ``'`` before names in ``.csv`` and ``.tsv`` files that spreadsheets would run as
        formulas. It stays part of the name when the file is read.

    Raises
    ------
    LouvainUmError
        The suffix is unknown, the file exists, the folder does not, or the disk is full.
        No partial file is left.

    Examples
    --------
    >>> import louvain_um as lu, pathlib, tempfile
    >>> from louvain_um.results.communities import Communities
    >>> from louvain_um.formats.labels import write_labels
    >>> result = Communities.of(lu.Graph.from_edges([0], [1], n_vertices=3), [0, 0, 1])
    >>> out = pathlib.Path(tempfile.mkdtemp(), "labels.csv")
    >>> write_labels(out, result)
    >>> out.read_text().split()
    ['vertex,community', '0,0', '1,0', '2,1']
    """
    write = writer_for(path)
    found = columns(communities, hierarchy=hierarchy)
    if safe_csv:
        _check_text(path)
        found = {name: spreadsheet_safe(column) for name, column in found.items()}
    with atomic_files.replacing(path, force=force) as part, part.open("wb") as file:
        write(file, found, _about(communities))


def _about(result: Communities | Labels) -> dict[str, Any]:
    """Return what a JSON file says of a result."""
    if isinstance(result, Labels):
        return {}
    return {
        "method": result.method,
        "modularity": result.modularity,
        "resolution": result.resolution,
        "communities": result.n_communities,
    }


def check_labels_path(path: str | Path, *, force: bool = False, safe_csv: bool = False) -> None:
    """Raise the errors of `write_labels` about the path, before any work is done."""
    writer_for(path)
    if safe_csv:
        _check_text(path)
    atomic_files.check_output(path, force=force)


def _check_text(path: str | Path) -> None:
    if Path(path).suffix.lower() not in (".csv", ".tsv"):
        raise LouvainUmError(f"{path}: --safe-csv is for .csv and .tsv files; leave it out")


Columns = Mapping[str, NDArray[Any]]
Writer = Callable[[BinaryIO, Columns, Mapping[str, Any]], None]


def writer_for(path: str | Path) -> Writer:
    """Return the writer for a path's suffix."""
    suffix = Path(path).suffix.lower()
    if suffix not in WRITERS:
        known = ", ".join(WRITERS)
        got = f"unknown suffix {suffix!r}" if suffix else "no suffix"
        raise LouvainUmError(f"{path}: {got}; use one of {known}")
    return WRITERS[suffix]


def _write_text(file: BinaryIO, columns: Columns, separator: bytes) -> None:
    file.write(separator.join(name.encode() for name in columns) + b"\n")
    numbers = all(column.dtype.kind in "iu" for column in columns.values())
    ends = [separator] * (len(columns) - 1) + [b"\n"]
    for low in range(0, len(columns["vertex"]), CHUNK):
        parts = [column[low : low + CHUNK] for column in columns.values()]
        if numbers:
            file.write(digits(parts, ends))
            continue
        fields = [_fields(part, separator.decode()) for part in parts]
        rows = map(separator.decode().join, zip(*fields, strict=True))
        file.write("".join(f"{row}\n" for row in rows).encode())


def _fields(column: NDArray[Any], separator: str) -> list[str]:
    """Return a column's fields; text that would read as another value is quoted."""
    if column.dtype.kind in "iu":
        return list(map(str, column.tolist()))
    if any("\0" in value for value in column):
        raise LouvainUmError(
            "some names have NUL characters, which text files cannot keep; write .json or .parquet"
        )
    return quoted_where_needed(separator, column.tolist())


def _write_csv(file: BinaryIO, columns: Columns, about: Mapping[str, Any]) -> None:
    _write_text(file, columns, b",")


def _write_tsv(file: BinaryIO, columns: Columns, about: Mapping[str, Any]) -> None:
    _write_text(file, columns, b"\t")


def _write_json(file: BinaryIO, columns: Columns, about: Mapping[str, Any]) -> None:
    head = {"schema": SCHEMA, "schema_version": VERSION, **about}
    file.write(json.dumps(head)[:-1].encode())
    for name, column in columns.items():
        file.write(b', "%s": [' % name.encode())
        for low in range(0, len(column), CHUNK):
            file.write(b"," * (low > 0) + _json_items(column[low : low + CHUNK]))
        file.write(b"]")
    file.write(b"}\n")


def _json_items(column: NDArray[Any]) -> bytes:
    if column.dtype.kind in "iu":
        return digits((column,), (b",",))[:-1]
    return json.dumps(column.tolist(), ensure_ascii=False)[1:-1].encode()


def _write_npz(file: BinaryIO, columns: Columns, about: Mapping[str, Any]) -> None:
    arrays: dict[str, Any] = {name: _plain_text(column) for name, column in columns.items()}
    np.savez(file, **arrays)


def _plain_text(column: NDArray[Any]) -> NDArray[Any]:
    """Return objects as fixed-width text, which needs no pickle."""
    if column.dtype.kind != "O":
        return column
    texts: list[str] = column.tolist()
    if any(text.endswith("\0") for text in texts):
        raise LouvainUmError(
            "some names end in NUL characters, which .npz cannot keep; write .json or .parquet"
        )
    if 4 * len(texts) * max(map(len, texts), default=0) > NPZ_TEXT_LIMIT:
        raise LouvainUmError("names are too long for .npz; write .parquet or .csv instead")
    return np.array(texts, dtype=str)


def _write_parquet(file: BinaryIO, columns: Columns, about: Mapping[str, Any]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    arrays = [
        pa.array(column.tolist(), pa.string()) if column.dtype.kind == "O" else pa.array(column)
        for column in columns.values()
    ]
    parquet.write_table(pa.table(arrays, names=list(columns)), file)


def _needs_pyarrow(write: Writer) -> Writer:
    def checked(file: BinaryIO, columns: Columns, about: Mapping[str, Any]) -> None:
        try:
            write(file, columns, about)
        except ImportError:
            raise LouvainUmError(
                "writing .parquet needs pyarrow: pip install 'louvain-um[formats]'"
            ) from None

    return checked


WRITERS: dict[str, Writer] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".parquet": _needs_pyarrow(_write_parquet),
    ".npz": _write_npz,
    ".json": _write_json,
}
