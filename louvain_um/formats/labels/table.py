"""Write tables of named columns as CSV, TSV, Parquet, NPZ or JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import atomic_files, parallel
from louvain_um.errors import LouvainUmError
from louvain_um.formats.file_types import check_table, check_text
from louvain_um.formats.labels.text import codes_of, quoted_where_needed, spreadsheet_safe

CHUNK = 1 << 16
"""Rows that a thread formats at a time: a few MiB, which fit its cache."""

TEXT_CHUNK = CHUNK >> 3
"""The same with texts."""

LETTER = re.compile(r"[^\W\d]")
"""What a text begins with that needs no quotes."""

LEADS = np.array([0, 0, 0xC0, 0xE0, 0xF0], np.uint32)
"""What UTF-8 adds to the first byte of a character, by the number of its bytes."""

NPZ_TEXT_LIMIT = 2**30
"""Largest size of fixed-width text in an .npz file, in bytes; long names inflate it."""

LONG = "names are too long for .npz; write .parquet or .csv instead"

Columns = Mapping[str, NDArray[Any]]
Writer = Callable[[BinaryIO, Columns, Mapping[str, Any]], None]


def write_table(
    path: str | Path,
    columns: Columns,
    about: Mapping[str, Any],
    *,
    force: bool = False,
    safe_csv: bool = False,
) -> None:
    """Write columns of equal length: numbers, booleans, times, or objects."""
    # Objects are text, or integers or booleans, and None where a value is missing.
    write = writer_for(path)
    if safe_csv:
        check_text(path)
        columns = {name: spreadsheet_safe(column) for name, column in columns.items()}
    with atomic_files.replacing(path, force=force) as part, part.open("wb") as file:
        write(file, columns, about)


def writer_for(path: str | Path) -> Writer:
    """Return the writer for a path's suffix."""
    return WRITERS[check_table(path)]


def _write_text(
    separator: bytes, file: BinaryIO, columns: Columns, about: Mapping[str, Any]
) -> None:
    file.write(separator.join(name.encode() for name in columns) + b"\n")
    kinds = {column.dtype.kind for column in columns.values()}
    plain, size = kinds <= {*"iuU"}, TEXT_CHUNK if "U" in kinds else CHUNK
    ends = [separator] * (len(columns) - 1) + [b"\n"]

    def text(low: int) -> bytes:
        parts = [column[low : low + size] for column in columns.values()]
        if plain:
            return digits(
                [_quoted(p, separator) if p.dtype.kind == "U" else p for p in parts], ends
            )
        fields = [_fields(part, separator.decode()) for part in parts]
        rows = map(separator.decode().join, zip(*fields, strict=True))
        return "".join(f"{row}\n" for row in rows).encode()

    places = range(0, len(next(iter(columns.values()))), size)
    threads = parallel.default_threads() if plain else 1  # objects need Python's lock
    for lines in parallel.stream(text, places, threads):
        file.write(lines)


def _fields(column: NDArray[Any], separator: str) -> list[str]:
    """Return a column's fields; text that would read as another value is quoted."""
    if column.dtype.kind in "iuf":
        return ["" if value != value else repr(value) for value in column.tolist()]
    values = _plain(column)
    texts = [value for value in values if isinstance(value, str)]
    if any("\0" in text for text in texts):
        raise LouvainUmError(NUL)
    quoted = quoted_where_needed(separator, texts)
    if len(quoted) == len(values):
        return quoted
    rest = iter(quoted)
    return [
        next(rest) if isinstance(value, str) else "" if value is None else json.dumps(value)
        for value in values
    ]


NUL = "some names have NUL characters, which text files cannot keep; write .json or .parquet"


def _quoted(column: NDArray[np.str_], separator: bytes) -> NDArray[np.uint8]:
    """Return the bytes of texts with the quotes of `_fields`, uint8[n, width]; 0 is none."""
    codes = codes_of(column)
    if _has_nul(codes):
        raise LouvainUmError(NUL)
    firsts, places = np.unique(codes[:, 0], return_inverse=True)
    letters = np.array([LETTER.match(chr(code)) is not None for code in firsts.tolist()])
    marks = codes == ord('"')
    quoted = ~letters[places.ravel()]
    for character in b"\r\n" + separator:
        quoted |= (codes == character).any(axis=1)
    cells = _utf8(codes)
    if marks.any():
        quoted |= marks.any(axis=1)
        cells = np.concatenate([cells, marks[..., None] * np.uint8(ord('"'))], 2)
    mark = quoted[:, None] * np.uint8(ord('"'))
    return np.hstack([mark, cells.reshape(len(column), -1), mark])


def _has_nul(codes: NDArray[np.uint32]) -> bool:
    """Return whether a NUL is part of a text."""
    return bool(((codes[:, :-1] == 0) & (codes[:, 1:] != 0)).any())


def _utf8(codes: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of characters in a further dimension; zeros follow fewer bytes."""
    length = np.ones(codes.shape, np.uint32)
    for least in (0x80, 0x800, 0x10000):
        length += codes >= least
    cells: NDArray[Any] = np.zeros((*codes.shape, int(length.max(initial=1))), np.uint8)
    cells[..., 0] = codes >> 6 * (length - 1) | LEADS[length]
    for place in range(1, cells.shape[2]):
        shift = 6 * (np.maximum(length, place + 1) - 1 - place)
        cells[..., place] = np.where(place < length, codes >> shift & 0x3F | 0x80, 0)
    return cells


def _plain(column: NDArray[Any]) -> list[Any]:
    """Return values as JSON has them: times as text in ISO 8601, None for what is missing."""
    if column.dtype.kind == "M":
        texts: list[str] = np.datetime_as_string(column).tolist()
        return [None if text == "NaT" else text for text in texts]
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f":  # JSON has no infinity and no NaN
        return [value if math.isfinite(value) else None for value in values]
    return values


def _write_json(file: BinaryIO, columns: Columns, about: Mapping[str, Any]) -> None:
    file.write(json.dumps(about)[:-1].encode())
    for name, column in columns.items():
        file.write(b', "%s": [' % name.encode())
        for low in range(0, len(column), CHUNK):
            file.write(b"," * (low > 0) + _json_items(column[low : low + CHUNK]))
        file.write(b"]")
    file.write(b"}\n")


def _json_items(column: NDArray[Any]) -> bytes:
    if column.dtype.kind in "iu":
        return digits((column,), (b",",))[:-1]
    return json.dumps(_plain(column), ensure_ascii=False)[1:-1].encode()


def _write_npz(file: BinaryIO, columns: Columns, about: Mapping[str, Any]) -> None:
    arrays: dict[str, Any] = {name: _plain_text(column) for name, column in columns.items()}
    if "options" in about:  # of labels
        arrays.setdefault("settings", np.array(json.dumps(about)))
    np.savez(file, **arrays)


def _plain_text(column: NDArray[Any]) -> NDArray[Any]:
    """Return objects as fixed-width text, which needs no pickle."""
    if column.dtype.kind != "O":
        if column.dtype.kind == "U" and column.nbytes > NPZ_TEXT_LIMIT:
            raise LouvainUmError(LONG)
        return column
    texts: list[str] = column.tolist()
    if None in texts:
        raise LouvainUmError(
            "some values are missing, which .npz cannot keep; write .parquet, .json or .csv"
        )
    if any(text.endswith("\0") for text in texts):
        raise LouvainUmError(
            "some names end in NUL characters, which .npz cannot keep; write .json or .parquet"
        )
    if 4 * len(texts) * max(map(len, texts), default=0) > NPZ_TEXT_LIMIT:
        raise LouvainUmError(LONG)
    return np.array(texts, dtype=str)


def _write_parquet(file: BinaryIO, columns: Columns, about: Mapping[str, Any]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table([_arrow(column) for column in columns.values()], names=list(columns))
    table = table.replace_schema_metadata({"louvain-um": json.dumps(about)} if about else None)
    # Ids ascend and communities are small: differences take a third of the bytes, in half the time.
    integers = [name for name, column in columns.items() if column.dtype.kind in "iu"]
    encodings = dict.fromkeys(integers, "DELTA_BINARY_PACKED")
    others = [name for name in columns if name not in encodings]
    parquet.write_table(table, file, use_dictionary=others, column_encoding=encodings or None)


def _arrow(column: NDArray[Any]) -> Any:
    """Return a column of a table of Arrow."""
    import pyarrow as pa

    if column.dtype.kind == "U" and len(column):
        parts = (column[low : low + TEXT_CHUNK] for low in range(0, len(column), TEXT_CHUNK))
        return pa.chunked_array([*parallel.stream(_strings, parts, parallel.default_threads())])
    if column.dtype.kind in "OU":
        values = column.tolist()
        there = [value for value in values if value is not None]
        if not there or isinstance(there[0], str):
            return pa.array(values, pa.string())
        if isinstance(there[0], bool):
            return pa.array(values, pa.bool_())
        return pa.array(values, pa.uint64() if max(there) >= 1 << 63 else pa.int64())
    if column.dtype.kind in "bM":
        return pa.array(column)
    # `pyarrow.array` would import pandas.
    values = np.ascontiguousarray(column, column.dtype.newbyteorder("="))
    buffers = [None, pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def _strings(column: NDArray[np.str_]) -> Any:
    """Return texts as an array of Arrow."""
    import pyarrow as pa

    codes = codes_of(column)
    if _has_nul(codes):
        return pa.array(column.tolist(), pa.string())
    cells = _utf8(codes).reshape(len(column), -1)
    kept, ends = cells != 0, np.zeros(len(column) + 1, np.int32)
    np.cumsum(np.count_nonzero(kept, axis=1), out=ends[1:])
    buffers = pa.py_buffer(ends), pa.py_buffer(cells[kept])
    return pa.StringArray.from_buffers(len(column), *buffers)


WRITERS: dict[str, Writer] = {
    ".csv": partial(_write_text, b","),
    ".tsv": partial(_write_text, b"\t"),
    ".parquet": _write_parquet,
    ".npz": _write_npz,
    ".json": _write_json,
}


def digits(columns: Sequence[NDArray[Any]], ends: Sequence[bytes]) -> bytes:
    """Return rows of integers as text; uint8[n, width] are characters, where 0 is none."""
    n = len(columns[0])
    if n == 0:
        return b""
    widths = [_width(column) for column in columns]
    total = sum(widths) + len(columns)
    text = np.zeros((n, total), np.uint8)  # 0 marks an empty cell
    right = 0
    for column, width, end in zip(columns, widths, ends, strict=True):
        right += width
        if column.ndim == 2:
            text[:, right - width : right] = column
        else:
            _print(column, text, right)
        text[:, right] = end[0]
        right += 1
    flat = text.ravel()
    kept: bytes = flat[flat != 0].tobytes()
    return kept


def _width(column: NDArray[Any]) -> int:
    if column.ndim == 2:
        return int(column.shape[1])
    return max(len(str(int(column.min()))), len(str(int(column.max()))))


def _print(column: NDArray[Any], text: NDArray[np.uint8], right: int) -> None:
    """Print a column's numbers, flush right before text column `right`."""
    negative = column < 0
    signed = bool(negative.any())
    rest = column.astype(np.uint64)
    if signed:
        # Two's complement is also right for the smallest integer.
        np.negative(rest, out=rest, where=negative)
    if int(rest.max()) < 2**32:
        rest = rest.astype(np.uint32)
    place = right - 1
    while True:
        quotient = rest // 10
        digit = (rest - quotient * 10).astype(np.uint8) + ord("0")
        if place < right - 1:
            digit[rest == 0] = 0
        text[:, place] = digit
        rest = quotient
        place -= 1
        if not rest.any():
            break
    if signed:
        rows = np.flatnonzero(negative)
        numbers = text[rows, :right]
        # The sign goes into the last empty cell before the number.
        first = right - np.argmax(numbers[:, ::-1] == 0, axis=1) - 1
        text[rows, first] = ord("-")
