"""Communities as callers have them: labels in vertex order, a dict, or lists of members."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core.plain_data import collected, exact_numbers, is_missing, number_array, objects
from louvain_um.errors import GraphError, shown
from louvain_um.formats.ids import order_of
from louvain_um.graph.graph import Graph
from louvain_um.results.partition import Partition

Given = ArrayLike | Partition | Mapping[Any, Any] | Collection[Any]
"""What functions take as communities."""

FORMS = (
    "pass one integer per vertex, a dict of vertex and community, or a list of the communities' "
    "members"
)


def labels_of(graph: Graph, given: Given) -> NDArray[Any]:
    """Return the label of each vertex of a graph, in the order of its vertices."""
    given = plain_communities(given)
    if isinstance(given, Partition):
        if len(given.labels) == graph.n_vertices and _same(given.names, graph.names):
            return given.labels
        names = range(len(given.labels)) if given.names is None else given.names.tolist()
        given = dict(zip(names, given.labels.tolist(), strict=True))
    if is_indexed(given):
        given = indexed_communities(given, None if graph.names is None else graph.names.tolist())
    pairs = named_labels(given)
    if pairs is not None:
        return _in_order(graph, pairs[0].tolist(), pairs[1])
    array = label_array(given)
    if array.shape != (graph.n_vertices,):
        got = f"{len(array)}" if array.ndim == 1 else f"{type(given).__name__}"
        raise GraphError(f"labels of {graph.n_vertices} vertices expected, got {got}; {FORMS}")
    return numbered(array.tolist()) if array.dtype.kind in "OUST" else array


def refuse_other_order(source: Any, given: Given) -> None:
    """Raise if communities are a list, and the vertices of an object are in another order."""
    plain: Any = plain_communities(given)
    if is_indexed(plain):
        if _values(plain.index) != list(range(len(plain))):
            return
    elif isinstance(plain, Partition) or named_labels(plain) is not None:
        return
    from louvain_um.formats.objects import listed_vertices

    vertices = listed_vertices(source)
    if vertices is not None and order_of(vertices) != list(range(len(vertices))):
        raise GraphError(
            "labels without vertices are ambiguous, because the graph's vertices are not in "
            "ascending order; pass a dict of vertex and community, such as dict(zip(graph, labels))"
        )


def label_array(given: Any) -> NDArray[Any]:
    """Return labels in vertex order as an array; it may have any shape."""
    try:
        array = number_array(given)
    except Exception:  # ragged lists, arrays of a device, columns of types that NumPy lacks
        if isinstance(given, np.ndarray):  # masked entries
            raise
        raise GraphError(f"communities must be integers or strings; {FORMS}") from None
    if array.ndim == 1 and array.dtype.kind not in "biu":
        if isinstance(given, list | tuple):  # NumPy makes text of what is missing among text
            refuse_missing(given)
        elif array.dtype.kind not in "US":
            refuse_missing(array.tolist())
    return array


def refuse_missing(labels: Sequence[Any]) -> None:
    """Raise if a label is missing."""
    for at, value in enumerate(labels):
        if is_missing(value):
            raise GraphError(f"the label at index {at} is missing ({value}); give it one")


def named_labels(given: Any, *, lists: bool = True) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return vertices and their labels from a dict or members; None for labels in order."""
    if isinstance(given, Mapping):
        return _array(list(given)), numbered(list(given.values()))
    if isinstance(given, np.ndarray) or not isinstance(given, Collection):
        return None
    communities = list(given)
    if not communities or not all(_is_community(each, lists) for each in communities):
        return None
    members = [_members(community) for community in communities]
    vertices = [vertex for community in members for vertex in community]
    return _array(vertices), np.repeat(np.arange(len(members)), [len(each) for each in members])


def _array(vertices: list[Any]) -> NDArray[Any]:
    if all(isinstance(vertex, int | np.integer) for vertex in vertices):
        return exact_numbers(vertices)
    return objects(vertices)


def _is_community(value: Any, lists: bool) -> bool:
    """Whether a value lists members: a string or tuple may as well be a name."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, set | frozenset) or (lists and isinstance(value, list | range))


def _members(community: Any) -> list[Any]:
    """Return members as a list; those of a set in an order that is the same in every process."""
    if not isinstance(community, set | frozenset):
        return community.tolist() if isinstance(community, np.ndarray) else list(community)
    try:
        return sorted(community)
    except TypeError:  # numbers and text
        return sorted(community, key=str)


def numbered(values: list[Any]) -> NDArray[Any]:
    """Return communities as integers; those of other types are numbered as they come."""
    try:
        array = number_array(values) if values else np.zeros(0, np.int64)
    except (TypeError, ValueError):  # lists of several lengths, dates among numbers
        array = np.empty(0, object)
    if array.dtype.kind in "iu" and array.ndim == 1:
        return array
    try:
        refuse_missing(values)
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
    except TypeError:
        raise GraphError(f"communities must be integers or strings; {FORMS}") from None


def _in_order(graph: Graph, vertices: list[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Bring labels into the order of a graph's vertices."""
    names = range(graph.n_vertices) if graph.names is None else graph.names.tolist()
    place = {name: at for at, name in enumerate(names)}
    found = np.full(graph.n_vertices, -1, np.int64)
    if None in place:  # vertices that were removed: each in a community of its own
        gone = [at for at, name in enumerate(names) if name is None]
        found[gone] = len(labels) + np.arange(len(gone))
        fresh = int(labels.max(initial=-1)) + 1 + np.arange(len(gone))
        labels = np.concatenate([labels.astype(np.int64), fresh])
    try:
        for number, vertex in enumerate(vertices):
            at = place[vertex]
            if found[at] >= 0:
                raise GraphError(f"vertex {shown(vertex)} is in two communities; list it once")
            found[at] = number
    except (KeyError, TypeError):
        named = f"such as {names[0]!r}" if len(names) else "of which there are none"
        raise GraphError(
            f"{shown(vertex)} is not a vertex of the graph; use its vertices, {named}"
        ) from None
    if (found < 0).any():
        missing = names[int(np.argmin(found))]
        raise GraphError(f"vertex {shown(missing)} has no community; list every vertex")
    return labels[found]


def _same(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))


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


OVERLAPPING = (
    "communities overlap: a vertex is in several; assign each to one, or compare them with "
    "Communities.compare"
)


def plain_communities(given: Any) -> Any:
    """Return communities in a form of `labels_of`; anything but other libraries' results as is."""
    if getattr(given, "overlap", False) is True:
        raise GraphError(OVERLAPPING)
    given = collected(given)
    if is_table(given):
        return table_communities(given)
    if hasattr(given, "__cuda_array_interface__") and hasattr(given, "get"):  # an array of CuPy
        return given.get()
    if callable(getattr(given, "as_clustering", None)):  # a dendrogram of igraph
        given = given.as_clustering()
    membership = getattr(given, "membership", None)
    if isinstance(membership, list):  # igraph, leidenalg
        return _by_name(given, membership)
    if hasattr(type(given), "modules"):  # Infomap; its result has a method of this name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            modules = given.modules
            return dict(modules() if callable(modules) else modules)
    if isinstance(getattr(given, "communities", None), list):  # cdlib
        return [set(community) for community in given.communities]
    if callable(getattr(given, "getVector", None)):  # NetworKit
        return np.asarray(given.getVector())
    if callable(getattr(given, "get_array", None)):  # graph-tool
        return np.asarray(given.get_array())
    return given


def _by_name(given: Any, membership: list[Any]) -> Mapping[Any, Any] | list[Any]:
    """Return the community of each vertex by its name in the graph, where it has names."""
    if any(isinstance(each, list | tuple) for each in membership):
        raise GraphError(OVERLAPPING)
    graph = getattr(given, "graph", None)
    if graph is None:
        return membership
    names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
    return dict(zip(names, membership, strict=True))
