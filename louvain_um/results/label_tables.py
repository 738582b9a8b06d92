"""Labels in tables: a column of pandas whose index names the vertices, or a table with both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from louvain_um.errors import GraphError

VERTEX: Final = "vertex"
COMMUNITIES: Final = ("community", "partition")
"""Names of the column of labels: this package's own, and cuGraph's."""


def is_table(given: Any) -> bool:
    """Return whether an object is a table of pandas, Arrow, Polars or cuDF."""
    found = callable(getattr(given, "head", None)) or hasattr(given, "column_names")
    return found and hasattr(given, "columns")


def table_communities(table: Any) -> dict[Any, Any]:
    """Return the community of each vertex from a table with a column for each of both."""
    titles = list(getattr(table, "column_names", table.columns))
    others = [title for title in titles if title != VERTEX]
    label = next((title for title in COMMUNITIES if title in others), None)
    if label is None and len(others) == 1:
        label = others[0]
    if VERTEX not in titles or label is None:
        raise GraphError(
            f"a table of communities needs the columns vertex and community, not {titles}; rename "
            "them, or pass one column, in the order of the vertices"
        )
    vertices, labels = _values(table[VERTEX]), _values(table[label])
    found = dict(zip(vertices, labels, strict=True))
    if len(found) < len(vertices):
        raise GraphError("a vertex is listed twice; keep one row of each vertex")
    return found


def is_indexed(given: Any) -> bool:
    """Return whether an object is a column of pandas or cuDF: values with an index."""
    return hasattr(given, "index") and hasattr(given, "iloc") and not is_table(given)


def indexed_communities(column: Any, names: Sequence[Any] | None) -> Mapping[Any, Any] | list[Any]:
    """Return labels by what their index names, or in order where it names nothing."""
    index, labels = _values(column.index), _values(column)
    n = len(index)
    if index == list(range(n)):
        return labels
    if names is not None and not set(index).isdisjoint(names):
        return _once(index, labels)
    if all(isinstance(each, int | np.integer) for each in index) and sorted(index) == [*range(n)]:
        return [label for _, label in sorted(zip(index, labels, strict=True), key=lambda p: p[0])]
    return labels if names is None else _once(index, labels)


def _once(index: list[Any], labels: list[Any]) -> dict[Any, Any]:
    found = dict(zip(index, labels, strict=True))
    if len(found) < len(index):
        raise GraphError("a vertex is in the index twice; keep one row of each vertex")
    return found


def _values(column: Any) -> list[Any]:
    plain = column.to_pandas() if type(column).__module__.startswith("cudf") else column
    values: list[Any] = plain.to_pylist() if hasattr(plain, "to_pylist") else plain.to_list()
    return values
