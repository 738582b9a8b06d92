"""Edges in the forms that users have them in, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.errors import GraphError
from louvain_um.formats.arrow import from_arrow
from louvain_um.formats.column_roles import choose
from louvain_um.formats.networks import DIRECTED
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.tables import refuse_cross_table


def edge_columns(what: str, edges: Any, *, weighted: bool) -> tuple[Any, ...] | None:
    """Return two columns of ends, and one of weights if there are any; None for no edges."""
    if edges is None:
        return None
    if isinstance(edges, tuple | list) and len(edges) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if type(edges).__module__ == "networkx.classes.reportviews":
        return _of_view(edges, weighted)
    if isinstance(edges, list) and all(isinstance(edge, tuple) for edge in edges):
        widths = {len(edge) for edge in edges}
        if len(widths) == 1 and widths <= {2, 3}:
            return tuple(list(column) for column in zip(*edges, strict=True))
    elif isinstance(edges, tuple | list) and len(edges) in (2, 3):
        return tuple(edges)
    elif hasattr(edges, "is_directed") and hasattr(edges, "edges"):
        return _of_network(edges, weighted)
    elif hasattr(edges, "columns") and hasattr(edges, "__getitem__"):
        return _of_table(edges, weighted)
    elif getattr(edges, "ndim", 0) == 2 and edges.shape[1] == 2:
        return edges[:, 0], edges[:, 1]
    raise GraphError(
        f"{what} must be arrays (u, v) or (u, v, w), a list of edges, a table or a networkx graph; "
        f"pass {what}=(u, v)"
    )


def _of_table(table: Any, weighted: bool) -> tuple[Any, ...]:
    """Return columns of a pandas, Arrow or Polars table: those with known names, or the first."""
    arrow = hasattr(table, "column_names")
    titles = list(table.column_names if arrow else table.columns)
    if len(titles) < 2:
        raise GraphError(f"an edge table needs two columns; got {titles}")
    refuse_cross_table(table, ReadOptions())
    roles = choose(titles, len(titles), ReadOptions())
    places = [roles.source, roles.target]
    if weighted and roles.weight is not None:
        places.append(roles.weight)
    if arrow:
        return tuple(from_arrow(table.column(place), titles[place]) for place in places)
    try:
        return tuple(np.asarray(table[titles[place]]) for place in places)
    except Exception:  # Polars raises one of its own
        raise GraphError(
            "a column of the table cannot be read; convert it to integers, real numbers or text"
        ) from None


def _of_network(graph: Any, weighted: bool) -> tuple[Any, ...]:
    """Return the ends of a networkx graph's edges, and their attribute `weight` if any has it."""
    if graph.is_directed():
        raise GraphError(DIRECTED.partition(";")[0] + "; pass graph.to_undirected()")
    return _with_weights(list(graph.edges(data="weight")), weighted)


def _of_view(view: Any, weighted: bool) -> tuple[Any, ...]:
    """Return what `_of_network` does for `graph.edges`, or `graph.edges(data=…)`."""
    if type(view).__name__.startswith(("In", "Out")):
        raise GraphError(DIRECTED.partition(";")[0] + "; pass graph.to_undirected().edges")
    edges = list(view.data("weight") if hasattr(view, "data") else view)
    if any(len(edge) > 3 for edge in edges):
        raise GraphError("edges of a multigraph come with keys; pass the graph itself")
    triples = [(*edge, None)[:3] for edge in edges]
    attributes = [w.get("weight") if isinstance(w, dict) else w for _, _, w in triples]
    return _with_weights(
        [(u, v, w) for (u, v, _), w in zip(triples, attributes, strict=True)], weighted
    )


def _with_weights(edges: list[tuple[Any, Any, Any]], weighted: bool) -> tuple[Any, ...]:
    """Return columns of edges of a network, of which those without a weight have 1."""
    columns = [edge[0] for edge in edges], [edge[1] for edge in edges]
    weights = [edge[2] for edge in edges]
    if weighted and any(weight is not None for weight in weights):
        return *columns, [1 if weight is None else weight for weight in weights]
    return columns
