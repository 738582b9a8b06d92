"""What a changing graph begins with: a graph or a number of vertices, weights, a scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.batches.batch import whole_number
from louvain_um.dynamic.memory import refuse_many_vertices
from louvain_um.errors import GraphError, OptionError, check_switch
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_kinds
from louvain_um.graph.limits import MAX_VERTICES
from louvain_um.options import is_number


def graph_of_start(graph_or_n: Any) -> Graph:
    """Return the graph to begin with."""
    refuse_kinds(graph_or_n, "a DynamicGraph begins with")
    if isinstance(graph_or_n, Graph):
        return graph_or_n
    try:
        n = whole_number(graph_or_n)
    except TypeError:
        from louvain_um.formats.reading import graph_of

        return graph_of(graph_or_n)
    if not 0 <= n <= MAX_VERTICES:
        raise GraphError(f"the number of vertices must lie in 0 … {MAX_VERTICES}, not {n}")
    refuse_many_vertices(n)
    none = np.zeros(0, np.uint32)
    return Graph(np.zeros(n + 1, np.int64), none, None, np.zeros(n, np.int64), check=False)


def weights_at(
    graph: Graph, weighted: bool | None, scale: float | None
) -> NDArray[np.uint32] | NDArray[np.int64] | None:
    """Return the weights to begin with, at the scale asked for; None for an unweighted graph."""
    if weighted is not None:
        check_switch("weighted", weighted)
    if scale is not None:
        refuse_scale(scale)
        if scale < graph.scale:
            raise GraphError(
                f"scale {scale:g} is below the graph's {graph.scale:g}; pass at least that"
            )
    factor = 1.0 if scale is None else scale / graph.scale
    if weighted is False and graph.weighted:
        raise GraphError(
            "the graph has weights; leave out weighted=False, or build it without weights"
        )
    if graph.weights is None:
        if not weighted:
            if factor != 1.0:
                raise GraphError("scale is for real weights; pass weighted=True with it")
            return None
        weights: NDArray[Any] = np.ones(graph.n_arcs, np.uint32)
    else:
        weights = graph.weights
    if factor == 1.0:
        return weights
    heavier = weights.astype(np.int64) * int(factor)
    return heavier.astype(np.uint32) if heavier.max(initial=0) < 2**32 else heavier


def refuse_scale(scale: float) -> None:
    """Raise an OptionError unless a scale is a power of two that leaves room for weights."""
    known = is_number(scale)
    known = known and abs(scale) <= 2**52  # NaN is not
    mantissa, exponent = np.frexp(float(scale)) if known else (0.0, 0)
    if not (mantissa == 0.5 and exponent <= 53):
        raise OptionError("scale", scale, "must be a power of two up to 2^52")
