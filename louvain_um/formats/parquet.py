"""Parquet tables of edges, through pyarrow."""

from __future__ import annotations

import os
from typing import Any

from numpy.typing import NDArray

from louvain_um.errors import GraphError, GraphFormatError, HostMemoryError
from louvain_um.formats.file_types import first_line_of, require
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.tables import from_columns
from louvain_um.graph.graph import Graph

VERTICES_KEY = b"louvain_um_vertices"
"""Metadata key of the number of vertices, isolated ones included."""


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a Parquet table; `column_roles` chooses the columns."""
    parquet = require("pyarrow.parquet", file.name)
    try:
        table = parquet.ParquetFile(file.seekable())
        announced = (table.schema_arrow.metadata or {}).get(VERTICES_KEY)
        rows, packed = table.metadata.num_rows, file.seekable().seek(0, os.SEEK_END)
        file.check_rows(rows, packed)
        file.check_vertices(int(announced or 0), rows)

        types = dict(zip(table.schema_arrow.names, table.schema_arrow.types, strict=True))

        def column(name: Any) -> NDArray[Any]:
            return from_arrow(table.read(columns=[name]).column(0), str(name))

        return from_columns(
            table.schema_arrow.names,
            column,
            lambda name: is_numeric(types[name]),
            options,
            int(announced) if announced else None,
        )
    except (GraphFormatError, HostMemoryError):
        raise
    except GraphError as error:
        raise file.error(str(error)) from None
    except Exception as error:  # pyarrow raises several types for damaged files
        raise file.error(
            f"is not a valid Parquet file ({first_line_of(error)}); write it again"
        ) from None


def is_numeric(kind: Any) -> bool:
    """Return whether an Arrow type holds numbers."""
    import pyarrow

    types = pyarrow.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def from_arrow(column: Any, title: str) -> NDArray[Any]:
    """Return an Arrow column as an array of numbers, text, times or truth values."""
    import pyarrow

    types, kind = pyarrow.types, column.type
    if column.null_count:
        raise GraphError(f"{column.null_count} values are missing; drop those rows")
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
