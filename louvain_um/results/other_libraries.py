"""Communities in the results of other libraries, recognized by their attributes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from louvain_um.errors import GraphError
from louvain_um.results.label_tables import is_table, table_communities

OVERLAPPING = (
    "communities overlap: a vertex is in several; partitions are compared here, so assign each "
    "vertex to one community, or compare with cdlib.evaluation.overlapping_normalized_mutual_"
    "information_LFK"
)


def plain_communities(given: Any) -> Any:
    """Return communities in a form of `labels_of`; anything but other libraries' results as is."""
    if getattr(given, "overlap", False) is True:
        raise GraphError(OVERLAPPING)
    if is_table(given):
        return table_communities(given)
    if callable(getattr(given, "as_clustering", None)):  # a dendrogram of igraph
        given = given.as_clustering()
    membership = getattr(given, "membership", None)
    if isinstance(membership, list):  # igraph, leidenalg
        return _by_name(given, membership)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        modules = getattr(given, "modules", None)
        if modules is not None:  # Infomap; its result has a method of this name
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
