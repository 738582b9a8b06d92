"""Parquet tables of edges, through pyarrow."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from louvain_um.errors import GraphError
from louvain_um.formats.objects.frames import from_columns
from louvain_um.formats.optional_dependencies import first_line, need
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.source import Source
from louvain_um.graph.graph import Graph

VERTICES_KEY = b"louvain_um_vertices"
"""Metadata of the table: vertices in all, isolated ones included."""


def read(source: Source, options: ReadOptions) -> Graph:
    """Read a Parquet table; see `frames.pick_columns` for which columns are read."""
    parquet = need("pyarrow.parquet", source.name)
    try:
        table = parquet.ParquetFile(source.seekable())
        announced = (table.schema_arrow.metadata or {}).get(VERTICES_KEY)

        def column(name: Any) -> NDArray[Any]:
            return from_arrow(table.read(columns=[name]).column(0))

        return from_columns(
            table.schema_arrow.names, column, options, int(announced) if announced else None
        )
    except GraphError as error:
        raise source.error(str(error)) from None
    except Exception as error:  # of a damaged file, pyarrow raises several kinds
        raise source.error(
            f"is no readable Parquet file ({first_line(error)}); write it again"
        ) from None


def from_arrow(column: Any) -> NDArray[Any]:
    """Return an Arrow column as an array; missing values are an error."""
    if column.null_count:
        raise GraphError(f"{column.null_count} values are missing; drop those rows")
    array: NDArray[Any] = column.to_numpy()
    return array
