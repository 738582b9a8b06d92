"""Frames of a result: one row per vertex, or one per community."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.errors import OptionError, check_choice, check_switch, require_packages
from louvain_um.graph.graph import Graph
from louvain_um.options import is_whole
from louvain_um.results.display import require_pandas
from louvain_um.results.partition import Result
from louvain_um.results.quality import quality

if TYPE_CHECKING:
    import pandas as pd

Library = Literal["pandas", "polars", "arrow"]


def to_frame(result: Result, *, levels: bool, hierarchy: bool, library: Library) -> Any:
    """Return one row per vertex; `Communities.to_frame` documents the columns."""
    table = _maker(library)
    check_switch("levels", levels)
    check_switch("hierarchy", hierarchy)
    vertices = np.arange(result.n_vertices) if result.names is None else result.names
    columns: dict[str, Any] = {"vertex": vertices, "community": result.labels}
    if levels:
        cycles = [level.cycle for level in result.levels]
        columns |= {_column(k, cycle): result.at_level(k) for k, cycle in enumerate(cycles)}
    if hierarchy:
        columns |= hierarchy_columns(result)
    return table(named(columns, result.names))


def library_of(obj: object) -> Library:
    """Return the library of a table; pandas for whatever else a graph is made of."""
    libraries: dict[str, Library] = {"polars": "polars", "pyarrow": "arrow"}
    return libraries.get(type(obj).__module__.partition(".")[0], "pandas")


def _maker(library: Library) -> Callable[[dict[str, Any]], Any]:
    """Return what makes a table of a library; the error says how to install it."""
    check_choice("library", library, get_args(Library))
    if library == "pandas":
        make: Callable[[dict[str, Any]], Any] = require_pandas().DataFrame
        return make
    package = "polars" if library == "polars" else "pyarrow"
    require_packages(f"a frame of {library}", package)
    found = import_module(package)
    make = found.DataFrame if library == "polars" else found.table
    # Both take text as lists: NumPy's objects can be anything.
    return lambda columns: make(
        {name: each.tolist() if each.dtype == object else each for name, each in columns.items()}
    )


def named(columns: dict[str, Any], names: NDArray[Any] | None) -> dict[str, Any]:
    """Return columns without the rows of removed vertices, whose name is None."""
    if names is None or names.dtype != object:
        return columns
    there = np.array([name is not None for name in names.tolist()], bool)
    return columns if there.all() else {name: column[there] for name, column in columns.items()}


def hierarchy_columns(result: Result) -> dict[str, NDArray[np.uint32]]:
    """Return the nested partitions by column: ``hierarchy_0`` is the finest."""
    return {f"hierarchy_{k}": labels for k, labels in enumerate(result.hierarchy()[:-1])}


def _column(level: int, cycle: int) -> str:
    return f"level_{level}_cycle_{cycle}" if cycle else f"level_{level}"


MOST_HUBS = 1000
"""More would be a list of members."""


def community_table(graph: Graph, result: Result, hubs: int) -> pd.DataFrame:
    """Return one row per community; `Communities.table` documents the columns."""
    if not is_whole(hubs) or not 0 <= hubs <= MOST_HUBS:
        raise OptionError("hubs", hubs, f"must be a whole number in 0 … {MOST_HUBS}")
    frame = quality(graph, result.labels, result.resolution, objective=result.objective).to_frame()
    if hubs:
        found = hub_members(graph, result.labels, hubs)
        lists = [row[row >= 0] for row in found]
        named = lists if result.names is None else [result.names[row] for row in lists]
        frame["hubs"] = [row.tolist() for row in named]
    return frame


def hub_members(graph: Graph, labels: NDArray[np.uint32], hubs: int) -> NDArray[np.int64]:
    """Return the members of highest degree of each community, one pass over the vertices."""
    communities = int(labels.max()) + 1 if len(labels) else 0
    found = np.full((communities, hubs), -1, np.int64)
    _insert(labels, graph.degrees, found)
    return found


@kernel()
def _insert(labels, degrees, found):
    most = found.shape[1]
    for v in range(len(labels)):
        row = found[labels[v]]
        place = most
        while place > 0 and (row[place - 1] < 0 or degrees[row[place - 1]] < degrees[v]):
            if place < most:
                row[place] = row[place - 1]
            place -= 1
        if place < most:
            row[place] = v
