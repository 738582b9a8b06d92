"""Communities as callers have them: labels in vertex order, a dict, or lists of members."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core.plain_data import is_missing
from louvain_um.errors import GraphError
from louvain_um.graph.graph import Graph
from louvain_um.results.label_tables import indexed_communities, is_indexed
from louvain_um.results.other_libraries import plain_communities
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


def label_array(given: Any) -> NDArray[Any]:
    """Return labels in vertex order as an array; it may have any shape."""
    try:
        array = np.asarray(given)
    except Exception:  # ragged lists, arrays of a device, columns of types that NumPy lacks
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
        return np.array(vertices, np.int64)
    array = np.empty(len(vertices), object)
    array[:] = vertices
    return array


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
        array = np.asarray(values) if values else np.zeros(0, np.int64)
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
                raise GraphError(f"vertex {vertex!r} is in two communities; list it once")
            found[at] = number
    except (KeyError, TypeError):
        named = f"such as {names[0]!r}" if len(names) else "of which there are none"
        raise GraphError(
            f"{vertex!r} is no vertex of the graph; use its vertices, {named}"
        ) from None
    if (found < 0).any():
        missing = names[int(np.argmin(found))]
        raise GraphError(f"vertex {missing!r} has no community; list every vertex")
    return labels[found]


def _same(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
