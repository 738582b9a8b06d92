"""Parquet, Feather and JSON lines: tables of edges, through pyarrow."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.plain_data import objects
from louvain_um.errors import GraphError, HostMemoryError, LouvainUmError
from louvain_um.formats.file_types import first_line_of, require
from louvain_um.formats.graph_file import FAR_MORE, GraphFile, is_far_more
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.tables import from_columns
from louvain_um.graph.graph import Graph

Made = TypeVar("Made")

SMALL = 2**32 - 1
"""Integers from this on take 64 bits."""

LEAST_ROWS = 1 << 16
"""Rows from which a column of integers is read in 32 bits if they fit."""

DEEPEST = 1000
"""Lists and objects inside each other in JSON lines."""

STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
"""A string of JSON."""

NULL_LINE = re.compile(rb"(?:\A|[\r\n])[\xef\xbb\xbf \t]*null")
"""A line that holds no object. If a block begins with one, pyarrow ends the process."""

COMPRESSIBLE = b"ARROW1"
"""How Feather files begin that may be compressed."""

VERTICES_KEY = b"louvain_um_vertices"
"""Metadata key of the number of vertices, isolated ones included."""


LACKS = "column {} lacks {:,} of its {:,} values; fill them in, or drop those rows"


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a Parquet table; `column_roles` chooses the columns."""
    parquet = require("pyarrow.parquet", file.name)

    def build() -> Graph:
        table = parquet.ParquetFile(file.seekable())
        opened_again = isinstance(file.stream, io.BufferedReader) and Path(file.name).is_file()
        announced = (table.schema_arrow.metadata or {}).get(VERTICES_KEY)
        rows = check_rows(file, table.metadata)
        file.check_vertices(int(announced or 0), rows)
        types = dict(zip(table.schema_arrow.names, table.schema_arrow.types, strict=True))

        def column(name: Any) -> NDArray[Any]:
            if is_plain(types[name]) and opened_again:
                return _numbers(file.name, table, str(name), types[name])
            return from_arrow(table.read(columns=[name]).column(0), str(name))

        return from_columns(
            table.schema_arrow.names,
            column,
            lambda name: is_numeric(types[name]),
            options,
            int(announced) if announced else None,
            owned=True,
        )

    return checked(file, build, "a valid Parquet file")


def _numbers(path: str, table: Any, name: str, kind: Any, *, narrow: bool = True) -> NDArray[Any]:
    """Return a column of numbers, whose row groups are read side by side."""
    # Integers take 32 bits where they fit, so that ids need not be copied again.
    import pyarrow
    from pyarrow import parquet

    groups = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
    ends = np.cumsum([0, *groups])
    # `to_pandas_dtype` imports pandas in some versions.
    real, signed = pyarrow.types.is_floating(kind), pyarrow.types.is_signed_integer(kind)
    dtype = np.dtype(f"{'f' if real else 'i' if signed else 'u'}{kind.bit_width // 8}")
    narrow = narrow and dtype.itemsize == 8 and not real and _fits(table.metadata, name)
    values = np.empty(ends[-1], np.uint32 if narrow else dtype)
    wide: list[int] = []
    missing = [0] * len(groups)

    def read_some(thread: int, threads: int) -> None:
        mine = parquet.ParquetFile(source, metadata=table.metadata)
        for group in range(thread, len(groups), threads):
            found = mine.read_row_group(group, columns=[name], use_threads=False).column(0)
            missing[group] = found.null_count
            if found.null_count:
                continue
            place = ends[group]
            for chunk in found.chunks:
                part = _values(chunk, dtype)
                if narrow and len(part) and not 0 <= part.min() <= part.max() < SMALL:
                    wide.append(group)
                values[place : place + len(part)] = part
                place += len(part)

    with pyarrow.OSFile(path) as source:
        parallel.run(read_some, max(1, min(parallel.default_threads(), len(groups))))
    pyarrow.default_memory_pool().release_unused()
    if any(missing):
        raise GraphError(LACKS.format(name, sum(missing), ends[-1]))
    return _numbers(path, table, name, kind, narrow=False) if wide else values


def statistics(metadata: Any, name: str) -> list[Any]:
    """Return what a file says of the values of a column in each row group; None where nothing."""
    places = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    found = [group.column(places.index(name)).statistics for group in groups]
    return [each if each is not None and each.has_min_max else None for each in found]


def _fits(metadata: Any, name: str) -> bool:
    """Return whether a long column claims to hold ids of 32 bits."""
    found = statistics(metadata, name) if metadata.num_rows >= LEAST_ROWS else []
    return bool(found) and all(each and 0 <= each.min <= each.max < SMALL for each in found)


def _values(chunk: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array over the numbers of a chunk; `to_numpy` would import pandas."""
    return np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * dtype.itemsize)


def read_feather(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a Feather or Arrow file."""
    feather = require("pyarrow.feather", file.name)

    def build() -> Graph:
        if file.seekable().read(len(COMPRESSIBLE)) == COMPRESSIBLE:
            return table_graph(_batches(file), options)
        table = feather.read_table(file.seekable())
        table.validate(full=True)
        return table_graph(table, options)

    return checked(file, build, "a valid Feather file")


def _batches(file: GraphFile) -> Any:
    """Return the table of a Feather file, unless it unpacks to far more bytes than it has."""
    import pyarrow
    from pyarrow.dataset import IpcFileFormat

    packed = file.seekable().seek(0, os.SEEK_END)
    fragment = IpcFileFormat().make_fragment(pyarrow.PythonFile(file.seekable(), "r"))
    file.check_rows(fragment.count_rows(), packed)
    reader, batches, unpacked = pyarrow.ipc.open_file(file.seekable()), [], 0
    for place in range(reader.num_record_batches):
        batches.append(reader.get_batch(place))
        batches[-1].validate(full=True)  # or lengths that the file claims lead beyond its values
        unpacked += batches[-1].nbytes
        file.check_unpacked(unpacked, packed)
    return pyarrow.Table.from_batches(batches, reader.schema)


def check_rows(file: GraphFile, about: Any) -> int:
    """Return the rows of a Parquet file; raise an error if it claims far more than it can hold."""
    packed, rows = file.seekable().seek(0, os.SEEK_END), int(about.num_rows)
    file.check_rows(rows, packed)
    file.check_unpacked(_unpacked(about, 1), packed)
    return rows


def check_unpacked(about: Any, file: IO[bytes], path: Any, columns: int | None = None) -> None:
    """Raise an error if some columns of a Parquet file, by default all, claim too much for it."""
    packed = file.seek(0, os.SEEK_END)
    file.seek(0)
    if is_far_more(_unpacked(about, about.num_columns if columns is None else columns), packed):
        remedy = "write it as text if it comes from a trusted source"
        raise LouvainUmError(f"{path}: {FAR_MORE}; {remedy}")


def _unpacked(about: Any, columns: int) -> int:
    """Return the bytes that a Parquet file says it unpacks to, for columns at least 8 a value."""
    groups = (about.row_group(place) for place in range(about.num_row_groups))
    return max(8 * int(about.num_rows) * columns, sum(int(each.total_byte_size) for each in groups))


def read_json_lines(file: GraphFile, options: ReadOptions) -> Graph:
    """Read JSON lines: an object with the same keys for each edge."""
    # Its threads are left out: one read of many damaged files crashed with them.
    reader, pyarrow = require("pyarrow.json", file.name), require("pyarrow", file.name)
    data = file.read()
    if _nesting(data) > DEEPEST:
        raise file.error("is not valid JSON (nested too deeply); write it again")
    if b"null" in data and NULL_LINE.search(data):
        raise file.error("has a line that is null; write an object for each edge")
    alone = reader.ReadOptions(use_threads=False)

    def read_as(schema: Any) -> Any:
        kinds = reader.ParseOptions(explicit_schema=schema)
        return reader.read_json(pyarrow.BufferReader(data), alone, kinds)

    def build() -> Graph:
        table = read_as(None)
        # Text that looks like dates is text.
        dates = [f.name for f in table.schema if pyarrow.types.is_timestamp(f.type)]
        if dates:
            table = read_as(pyarrow.schema(dict.fromkeys(dates, pyarrow.string())))
        return table_graph(table, options)

    return checked(file, build, "JSON lines")


def _nesting(data: bytes) -> int:
    """Return how deep lists and objects of JSON are at most: pyarrow's parser is recursive."""
    lines, openings = data.count(b"}\n{"), data.count(b"{") + data.count(b"[")
    if lines == data.rstrip().count(b"\n") and openings - lines <= DEEPEST:
        return openings - lines  # of which each line, an object of its own, has one
    outside = np.frombuffer(STRING.sub(b"", data), np.uint8)
    brackets = outside[np.isin(outside, [*b"{}[]"])]
    return int(np.cumsum(np.where(np.isin(brackets, [*b"{["]), 1, -1)).max(initial=0))


def checked(file: GraphFile, build: Callable[[], Made], what: str) -> Made:
    """Return what a reader made; errors of libraries name the file."""
    try:
        return build()
    except (GraphError, HostMemoryError):
        raise
    except Exception as error:  # libraries raise several types for damaged files
        raise file.error(f"is not {what} ({first_line_of(error)}); write it again") from None


def table_graph(table: Any, options: ReadOptions) -> Graph:
    """Build the graph of an Arrow table."""
    types = dict(zip(table.schema.names, table.schema.types, strict=True))
    return from_columns(
        table.schema.names,
        lambda name: from_arrow(table.column(name), str(name)),
        lambda name: is_numeric(types[name]),
        options,
    )


def is_plain(kind: Any) -> bool:
    """Return whether an Arrow type is one of NumPy's types of numbers."""
    import pyarrow

    return bool(pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind))


def is_numeric(kind: Any) -> bool:
    """Return whether an Arrow type holds numbers."""
    import pyarrow

    return is_plain(kind) or bool(pyarrow.types.is_decimal(kind))


def from_arrow(column: Any, title: str) -> NDArray[Any]:
    """Return an Arrow column as an array of numbers, text, times or truth values."""
    import pyarrow

    types, kind = pyarrow.types, column.type
    if column.null_count:
        raise GraphError(LACKS.format(title, column.null_count, len(column)))
    if getattr(kind, "extension_name", "") == "arrow.uuid":
        return objects([str(value) for value in column.to_pylist()])
    if types.is_nested(kind) or isinstance(kind, pyarrow.BaseExtensionType):
        raise GraphError(f"column {title} is of type {kind}; write numbers or text")
    if types.is_decimal(kind):
        whole = _cast(column, pyarrow.int64()) if kind.scale <= 0 else None
        column = column.cast(pyarrow.float64()) if whole is None else whole
    elif types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        column = _cast(column.cast(pyarrow.binary()), pyarrow.string())
        if column is None:
            raise GraphError(f"column {title} holds bytes that are not UTF-8; write text")
    try:
        array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    except pyarrow.ArrowException:
        raise GraphError(f"column {title} is of type {kind}; write numbers or text") from None
    return array


def _cast(column: Any, kind: Any) -> Any:
    """Return a column as another type, None if that would change a value."""
    import pyarrow

    try:
        return column.cast(kind)
    except pyarrow.ArrowInvalid:
        return None
