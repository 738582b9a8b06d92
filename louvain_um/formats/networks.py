"""Graphs of networkx and igraph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.tables import name_array
from louvain_um.graph.graph import Graph
from louvain_um.graph.integer_weights import TOO_LARGE

DIRECTED = (
    "the graph is directed; pass symmetrize=True (--symmetrize) to read its arcs as "
    "undirected edges, or detect with objective='directed'"
)

UNDIRECTED = (
    "the graph is undirected; drop directed=True (--directed), or use another objective than "
    "'directed'"
)


def from_networkx(
    graph: Any, options: ReadOptions, names: list[Any] | None = None, weight: Any = "weight"
) -> Graph:
    """Build a graph from a networkx graph; weights of parallel edges are summed."""
    _check_direction(graph, options)
    if graph.is_multigraph() and options.duplicates is None:
        options = replace(options, duplicates="sum")
    nodes = list(graph)
    number = {node: place for place, node in enumerate(nodes)}
    n_edges = graph.number_of_edges()
    u = np.fromiter((number[a] for a, _ in graph.edges()), np.uint32, n_edges)
    v = np.fromiter((number[b] for _, b in graph.edges()), np.uint32, n_edges)
    weights = None
    if options.weighted is not False:
        if options.weight is not None:
            weight = options.weight
        values = [w for _, _, w in graph.edges(data=weight)]
        if options.weight is not None and values and all(w is None for w in values):
            raise GraphError(
                _no_attribute(weight, {key for *_, d in graph.edges(data=True) for key in d})
            )
        if any(w is not None for w in values) or options.weighted:
            weights = weight_array([1 if w is None else w for w in values], options.allow_rounding)
    return _build(u, v, weights, names or nodes, options)


def from_igraph(graph: Any, options: ReadOptions) -> Graph:
    """Build a graph from an igraph graph; the attribute `name` names its vertices."""
    _check_direction(graph, options)
    ends = np.array(graph.get_edgelist(), np.uint32).reshape(-1, 2)
    weights = None
    weight = "weight" if options.weight is None else str(options.weight)
    if weight in graph.es.attributes() and options.weighted is not False:
        weights = weight_array(graph.es[weight], options.allow_rounding)
    elif options.weight is not None:
        raise GraphError(_no_attribute(weight, graph.es.attributes()))
    names = graph.vs["name"] if "name" in graph.vs.attributes() else list(range(graph.vcount()))
    _refuse_twins(names)
    return _build(ends[:, 0].copy(), ends[:, 1].copy(), weights, names, options)


def _refuse_twins(names: list[Any]) -> None:
    """Raise if two vertices have the same name: results by name would hold one of them only."""
    first: dict[Any, int] = {}
    for vertex, name in enumerate(names):
        if (other := first.setdefault(name, vertex)) != vertex:
            raise GraphError(
                f"vertices {other} and {vertex} both have the name {name!r}; make names different, "
                "or delete them: del graph.vs['name']"
            )


def _check_direction(graph: Any, options: ReadOptions) -> None:
    """Raise an error if the options say otherwise than the graph whether it is directed."""
    if graph.is_directed() and not (options.symmetrize or options.directed):
        raise GraphError(DIRECTED)
    if options.directed and not graph.is_directed():
        raise GraphError(UNDIRECTED)


def _no_attribute(weight: Any, known: Iterable[Any]) -> str:
    shown = ", ".join(sorted(map(str, known))[:12]) or "none"
    return (
        f"edges have no attribute {weight!r} (they have: {shown}); pass another weight=… (--weight)"
    )


def weight_array(values: list[Any], allow_rounding: bool = False) -> NDArray[Any]:
    """Return weights as integers or float64; the error names the first that is not a number."""
    try:
        numbers = np.asarray(values) if values else np.zeros(0, np.int64)
    except ValueError:  # lists of unequal lengths among them
        numbers = np.zeros((), object)
    if numbers.ndim != 1 or numbers.dtype.kind not in "biuf":
        for place, value in enumerate(values):
            if not isinstance(value, int | float | np.number):
                raise GraphError(f"weight at index {place} is not numeric ({value!r}); correct it")
        if not allow_rounding and all(isinstance(value, int | np.integer) for value in values):
            raise GraphError(f"integer weights reach {float(max(values)):.3g}{TOO_LARGE}")
        numbers = np.array(values, np.float64)
    return numbers


def _build(
    u: NDArray[np.uint32],
    v: NDArray[np.uint32],
    w: NDArray[Any] | None,
    names: list[Any],
    options: ReadOptions,
) -> Graph:
    array = None if names == list(range(len(names))) else name_array(names)
    return Graph.from_edges(
        u,
        v,
        w,
        n_vertices=len(names),
        duplicates=options.duplicates,
        names=array,
        allow_rounding=options.allow_rounding,
        kind=options.kind,
    )
