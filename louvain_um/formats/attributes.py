"""Attributes of vertices: columns in the order of a graph's vertices, from tables and objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError, LouvainUmError, Uncertain
from louvain_um.graph.graph import Graph
from louvain_um.results.display import count, require_pandas

Attributes = Mapping[str, NDArray[Any]]
"""Values per vertex, by the name of the attribute."""

ID_COLUMNS: Final = ("vertex", "id", "node", "name", "label")
"""Columns that may hold the vertices, whatever the case; otherwise the first column does."""


class Columns(Attributes):
    """Columns of a pandas frame as arrays, made when they are asked for."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame.copy(deep=False)

    def __getitem__(self, name: str) -> NDArray[Any]:
        column = self._frame[name]
        if column.dtype.kind in "iuf" and not isinstance(column.dtype, np.dtype):
            numbers: NDArray[Any] = column.to_numpy(np.float64, na_value=np.nan)
            return numbers
        values: NDArray[Any] = column.to_numpy()
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame.columns)

    def __len__(self) -> int:
        return len(self._frame.columns)


def of_rows(rows: Sequence[Mapping[Any, Any]]) -> dict[str, NDArray[Any]] | None:
    """Return the attributes that vertices have one by one, in their order; None without any."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): of_list([row.get(name) for row in rows]) for name in names} or None


def of_list(values: list[Any]) -> NDArray[Any]:
    """Return values as an array: of numbers, NaN where missing, if all are, else of objects."""
    missing = [value is None for value in values]
    numbers = [np.nan if value is None else value for value in values]
    if not all(missing) and all(
        isinstance(value, int | float | np.number) and type(value) is not bool for value in numbers
    ):
        array = np.array(numbers)
        if array.dtype.kind in "iuf":
            return array
    array = np.empty(len(values), object)
    array[:] = values
    return array


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
    frame, where = _indexed(nodes)
    ids = frame.index.astype(str)
    if ids.has_duplicates:
        raise GraphError(f"vertex {ids[ids.duplicated()][0]!r} has two rows; keep one")
    listed = range(n_vertices) if names is None else names.tolist()
    place = {str(name): at for at, name in enumerate(listed) if name is not None}
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
    return Columns(frame.reset_index(drop=True).reindex(row_of)), notes


def _indexed(nodes: Any) -> tuple[Any, str]:
    """Return a pandas frame indexed by vertex, and what names the vertices."""
    pandas, nodes = require_pandas(), table_of(nodes)
    if hasattr(nodes, "obsp"):  # an AnnData
        return nodes.obs, "obs_names"
    elif hasattr(nodes, "is_multigraph"):  # of networkx
        index = pandas.Index([str(vertex) for vertex in nodes])
        return pandas.DataFrame([row for _, row in nodes.nodes(data=True)], index), "the graph"
    elif hasattr(nodes, "get_vertex_dataframe"):  # of igraph
        nodes = nodes.get_vertex_dataframe()
        unique = [key for key in ("label", "name") if key in nodes and nodes[key].is_unique]
        return (nodes.set_index(unique[0]) if unique else nodes), "the graph"
    elif hasattr(nodes, "to_pandas"):  # of Arrow or Polars
        nodes = nodes.to_pandas()
    if not isinstance(nodes, pandas.DataFrame) or not len(nodes.columns):
        raise GraphError("attributes of vertices are a table with one row for each vertex")
    by_name = {str(title).lower(): title for title in reversed(list(nodes.columns))}
    key = next((by_name[name] for name in ID_COLUMNS if name in by_name), None)
    numbers = pandas.api.types.is_numeric_dtype(nodes.index) or nodes.index.nlevels > 1
    if key is None and not numbers:
        return nodes, "the index"
    key = nodes.columns[0] if key is None else key
    return nodes.set_index(key), f"column {key!r}"


def table_of(nodes: Any) -> Any:
    """Read the table at a path as a pandas frame, ids as they are written; return others as is."""
    if not isinstance(nodes, str | os.PathLike):
        return nodes
    pandas, path = require_pandas(), Path(nodes)
    try:
        if path.suffix == ".parquet":
            return read_parquet(path)
        separator = "\t" if path.suffixes[:1] == [".tsv"] else ","
        titles = pandas.read_csv(path, sep=separator, nrows=0).columns
        wanted = [title for title in titles if title.lower() in ID_COLUMNS] or titles[:1]
        return pandas.read_csv(path, sep=separator, dtype=dict.fromkeys(wanted, str))
    except LouvainUmError:
        raise
    except Exception as error:  # of many types
        line = next(iter(str(error).splitlines()), type(error).__name__)
        raise GraphError(f"{path}: cannot be read as a table ({line})") from None


def read_parquet(path: str | Path) -> Any:
    """Return a Parquet file as a pandas frame, unless it unpacks to far more bytes than it has."""
    from pyarrow import parquet

    from louvain_um.formats.arrow import check_unpacked

    with open(path, "rb") as file:
        check_unpacked(parquet.ParquetFile(file).metadata, file, path)
        return require_pandas().read_parquet(file)
