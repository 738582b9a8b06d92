"""Attributes of vertices: columns in the order of a graph's vertices, from tables and objects."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.headroom import check_host_memory
from louvain_um.core.plain_data import collected, objects
from louvain_um.errors import GraphError, LouvainUmError, Uncertain
from louvain_um.formats.column_roles import MISSING
from louvain_um.formats.file_types import suffix_of
from louvain_um.formats.graph_file import content_of
from louvain_um.graph.export import distinct
from louvain_um.graph.graph import Graph
from louvain_um.results.display import count, require_pandas

Attributes = Mapping[str, NDArray[Any]]
"""Values per vertex, by the name of the attribute."""

ID_COLUMNS: Final = ("vertex", "id", "node", "name", "label")
"""Columns that may hold the vertices, whatever the case; otherwise the first column does."""

ID_BYTES: Final = 200
"""Of each vertex, at least: its id as text, in the table and in a dict."""

CODE: Final = re.compile(rb'[\r\n\t,"]0[0-9]')
"""How a field begins that is text, such as 007, although it could be a number."""


class Columns(Attributes):
    """Columns of a pandas frame, or some of its rows, as arrays, made when they are asked for."""

    def __init__(self, frame: Any, rows: NDArray[np.int64] | None = None) -> None:
        self._frame = frame.copy(deep=False)
        self._places = {name: place for place, name in enumerate(distinct(frame.columns))}
        self._rows = rows

    def __getitem__(self, name: str) -> NDArray[Any]:
        values = of_column(self._frame.iloc[:, self._places[name]])
        if self._rows is None:
            return values
        missing, real = self._rows < 0, values.dtype.kind == "f"
        if missing.any():
            values = (values if real else values.astype(object))[self._rows]
            values[missing] = np.nan if real else None
            return values
        return values[self._rows]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def of_column(column: Any) -> NDArray[Any]:
    """Return a pandas column as numbers or truth values, else as objects, None where missing."""
    # Categories are texts, so that they are not taken for numbers.
    kind, missing = column.dtype.kind, column.isna().to_numpy(bool)
    if kind == "f" or (kind in "iub" and not missing.any()):
        types = {"f": np.float64, "i": np.int64, "u": np.uint64, "b": np.bool_}
        real = {"na_value": np.nan} if kind == "f" else {}
        plain = isinstance(column.dtype, np.dtype)
        numbers: NDArray[Any] = column.to_numpy(**({} if plain else {"dtype": types[kind], **real}))
        return numbers
    listed = column.astype(object).tolist()
    values = objects([*map(str, listed)] if hasattr(column, "cat") else listed)
    values[missing] = None
    return values


def of_rows(rows: Sequence[Mapping[Any, Any]]) -> dict[str, NDArray[Any]] | None:
    """Return the attributes that vertices have one by one, in their order; None without any."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = (of_list([row.get(name) for row in rows]) for name in names)
    return dict(zip(distinct(names), columns, strict=True)) or None


def of_list(values: list[Any]) -> NDArray[Any]:
    """Return values as an array: of numbers if all are, NaN where missing, else of objects."""
    # Whole numbers that would become floats are objects, too, None where missing.
    values = [None if isinstance(each, float) and np.isnan(each) else each for each in values]
    there = [value for value in values if value is not None]
    if there and all(
        isinstance(value, int | float | np.number) and type(value) is not bool for value in there
    ):
        whole = all(isinstance(value, int | np.integer) for value in there)
        array = np.array([np.nan if value is None else value for value in values])
        if array.dtype.kind in ("iu" if whole else "iuf"):
            return array
    return objects(values)


def attributed(graph: Graph, attributes: Attributes | None, notes: Iterable[str] = ()) -> Graph:
    """Return a graph that was just made, given attributes and notes on them."""
    object.__setattr__(graph, "attributes", attributes)
    object.__setattr__(graph, "notes", (*map(Uncertain, notes), *graph.notes))
    return graph


def with_table(graph: Graph, nodes: Any) -> Graph:
    """Return a graph that was just made, given the attributes of a table of vertices, if any."""
    if nodes is None:
        return graph
    return attributed(graph, *attributes_of(nodes, graph.names, graph.n_vertices))


def attributes_of(
    nodes: Any, names: NDArray[Any] | None, n_vertices: int
) -> tuple[Attributes, list[str]]:
    """Return the attributes of vertices from a table, matched by id, and notes on the others."""
    check_host_memory(
        ID_BYTES * n_vertices,
        f"a table of {n_vertices:,} vertices",
        "use a machine with more memory",
    )
    frame, where = _indexed(nodes)
    ids = frame.index.astype(str)
    if ids.has_duplicates:
        raise GraphError(f"vertex {ids[ids.duplicated()][0]!r} has two rows; keep one")
    listed = range(n_vertices) if names is None else names.tolist()
    place = {str(name): at for at, name in enumerate(listed) if name is not None}
    head = str(frame.index.name)
    if head in place and head.lower() not in ID_COLUMNS and head not in ids:
        raise GraphError(f"the header of the table begins with the vertex {head!r}; add a header")
    places = np.array([place.get(each, -1) for each in ids], np.int64)
    matched = places >= 0
    if not matched.any():
        raise GraphError(
            f"no value of {where}, such as {ids[0]!r}, is a vertex of the graph, such as "
            f"{next(iter(place), '')!r}"
            if len(ids)
            else "the table of vertices has no rows"
        )
    notes = list[str]()
    if not matched.all():
        rows = count(int(np.count_nonzero(~matched)), "row is", "rows are")
        notes.append(f"{rows} of no vertex, such as {ids[~matched][0]!r}")
    if missing := len(place) - int(matched.sum()):
        notes.append(f"{count(missing, 'vertex has', 'vertices have')} no row")
    row_of = np.full(n_vertices, -1, np.int64)
    row_of[places[matched]] = np.flatnonzero(matched)
    return Columns(frame, row_of), notes


def _indexed(nodes: Any) -> tuple[Any, str]:
    """Return a pandas frame indexed by vertex, and what names the vertices."""
    pandas, nodes = require_pandas(), collected(table_of(nodes))
    if hasattr(nodes, "obsp"):  # an AnnData
        return nodes.obs, "obs_names"
    elif hasattr(nodes, "is_multigraph"):  # of networkx
        index = pandas.Index([str(vertex) for vertex in nodes])
        rows = of_rows([row for _, row in nodes.nodes(data=True)])
        return pandas.DataFrame(rows, index), "the graph"
    elif hasattr(nodes, "get_vertex_dataframe"):  # of igraph
        columns = {name: of_list(nodes.vs[name]) for name in nodes.vs.attributes()}
        key = next((name for name in columns if name.lower() == "name"), None)
        index = range(nodes.vcount()) if key is None else columns.pop(key)
        return pandas.DataFrame(columns, index), "the graph"
    elif hasattr(nodes, "to_pandas"):  # of Arrow or Polars
        from_arrow = type(nodes).__module__.startswith(("pyarrow", "polars"))
        nodes = nodes.to_pandas(**({"integer_object_nulls": True} if from_arrow else {}))
    if not isinstance(nodes, pandas.DataFrame) or not len(nodes.columns):
        raise GraphError("attributes of vertices are a table with one row for each vertex")
    key = _id_column(nodes.columns)
    numbers = pandas.api.types.is_numeric_dtype(nodes.index) or nodes.index.nlevels > 1
    if key is None and not numbers:
        return nodes, "the index"
    key = nodes.columns[0] if key is None else key
    if list(nodes.columns).count(key) > 1:
        raise GraphError(f"two columns are named {key!r}; rename one")
    return nodes.set_index(key), f"column {key!r}"


def _id_column(titles: Iterable[Any]) -> Any:
    """Return the title of the column that names vertices by the rule of `ID_COLUMNS`, if any."""
    by_name = {str(title).lower(): title for title in reversed(list(titles))}
    return next((by_name[name] for name in ID_COLUMNS if name in by_name), None)


def table_of(nodes: Any) -> Any:
    """Read the table at a path as a pandas frame, ids as they are written; return others as is."""
    if not isinstance(nodes, str | os.PathLike):
        return nodes
    pandas, path = require_pandas(), Path(nodes)
    try:
        suffix = suffix_of(str(path))
        if suffix == ".parquet":
            return read_parquet(path)
        separator = "\t" if suffix == ".tsv" else ","
        raw = content_of(path)
        read = partial(
            pandas.read_csv, sep=separator, index_col=False, dtype_backend="numpy_nullable",
            keep_default_na=False,
        )  # fmt: skip
        titles = read(BytesIO(raw), nrows=0).columns
        texts = [title for title in titles if title.lower() in ID_COLUMNS] or titles[:1]
        ids = _id_column(texts) or texts[0]
        missing = dict.fromkeys(titles.drop(ids), MISSING)
        # Of a longer first line, pandas takes the first field for an index, if it may.
        if not isinstance(read(BytesIO(raw), nrows=1, index_col=None).index, pandas.RangeIndex):
            raise GraphError(
                f"{path}: lines have more fields than the header; name each column, or delete what "
                "follows the last value"
            )
        frame = read(BytesIO(raw), dtype=dict.fromkeys(texts, str), na_values=missing)
        numbers = [title for title in titles if frame[title].dtype.kind in "iu"]
        if numbers and CODE.search(raw):
            written = read(BytesIO(raw), dtype=str, na_values=missing)[numbers]
            codes = [title for title in numbers if written[title].str.match("0[0-9]").any()]
            frame[codes] = written[codes]
        return frame
    except LouvainUmError:
        raise
    except FileNotFoundError:
        raise GraphError(
            f"{path}: cannot be read as a table (no such file); check the path"
        ) from None
    except Exception as error:  # of many types
        line = next(iter(str(error).splitlines()), type(error).__name__)
        raise GraphError(f"{path}: cannot be read as a table ({line}); write CSV again") from None


def read_parquet(path: str | Path) -> Any:
    """Return a Parquet file as a pandas frame, unless it unpacks to far more bytes than it has."""
    from pyarrow import parquet

    from louvain_um.formats.arrow import check_unpacked

    with open(path, "rb") as file:
        check_unpacked(parquet.ParquetFile(file).metadata, file, path)
        return require_pandas().read_parquet(file, dtype_backend="numpy_nullable")
