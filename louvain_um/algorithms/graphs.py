"""What algorithms take for a graph, its rows and its vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.errors import GraphError
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.graph.graph import Graph
from louvain_um.graph.row_view import RowView


def converted(graph: Any) -> Any:
    """Return a graph or a store of rows as it is, and anything else as a graph."""
    if isinstance(graph, Graph | DeviceGraph) or has_rows(graph):
        return graph
    from louvain_um.formats.reading import graph_of

    return graph_of(graph)


def has_rows(graph: Any) -> bool:
    """Return whether an object is a store that shows its rows, such as a changing graph."""
    return hasattr(graph, "view") and hasattr(graph, "snapshot")


def rows_of(graph: Any, *, linked: bool = True) -> RowView:
    """Return the rows of a graph in host memory; those in linked blocks, or a compressed copy."""
    graph = converted(graph)
    if isinstance(graph, DeviceGraph):
        graph = graph.to_host()
    if isinstance(graph, Graph):
        return RowView.of(graph)
    show = getattr(graph, "linked_view", graph.view) if linked else graph.view
    view: RowView = show()
    return view


def rows_there(graph: Any, *, linked: bool = True) -> Any:
    """Return the rows of a graph that are in a device's memory, as `rows_of`; None if none are."""
    if linked and hasattr(graph, "linked_device_view"):
        return graph.linked_device_view()
    if isinstance(graph, DeviceGraph):
        from louvain_um.gpu.algorithms.rows import KernelRows

        return KernelRows.of(graph)
    return graph.device_view() if hasattr(graph, "device_view") else None


def device_rows_of(graph: Any, *, linked: bool = True) -> Any:
    """Return the rows of a graph in the current device's memory, copied if they are not there."""
    graph = converted(graph)
    found = rows_there(graph, linked=linked)
    if found is None:
        graph = graph if isinstance(graph, Graph) else graph.snapshot()
        found = rows_there(
            graph if isinstance(graph, DeviceGraph) else DeviceGraph.from_host(graph)
        )
    return found


def vertex_of(graph: Any, name: Any) -> int:
    """Return the number of a vertex, given by its name where the graph has names."""
    n, names = graph.n_vertices, getattr(graph, "names", None)
    name = name.item() if isinstance(name, np.generic) else name
    if names is None:
        if type(name) is int and 0 <= name < n:
            return name
        known = f"0 … {n - 1}" if n else "of which there are none"
    else:
        for number, other in enumerate(names.tolist()):
            if type(other) is type(name) and other == name:
                return number
        known = f"such as {names.tolist()[0]!r}" if n else "of which there are none"
    raise GraphError(f"{name!r} is not a vertex of the graph; use one of its vertices, {known}")
