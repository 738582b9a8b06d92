"""Algorithms by their names, for commands, profiles and sweeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.algorithms import products, structure, traversal
from louvain_um.algorithms.programs import check_name
from louvain_um.errors import OptionError

FROM_A_SOURCE = ("bfs", "sssp")
"""Algorithms that begin at a vertex."""


def run_algorithm(name: str, graph: Any, *, source: Any = None, **how: Any) -> Any:
    """Run an algorithm."""
    check_name(name)
    if name in FROM_A_SOURCE:
        search: Any = traversal.bfs if name == "bfs" else traversal.sssp
        return search(graph, widest(graph) if source is None else source, **how)
    check_source(name, source)
    if name == "spmv":
        return products.spmv(graph, np.ones(graph.n_vertices), **how)
    call: Any = {
        "components": structure.connected_components,
        "mst": structure.minimum_spanning_forest,
        "pagerank": products.pagerank,
        "triangles": structure.triangles,
    }[name]
    return call(graph, **how)


def check_source(name: str, source: Any, option: str = "source") -> None:
    """Refuse a source, given as this option, of what begins at no vertex."""
    if source is not None and name not in FROM_A_SOURCE:
        raise OptionError(
            option, source, f"omit {{option}}, which only {' and '.join(FROM_A_SOURCE)} take",
            problem=f"{name} begins at no vertex",
        )  # fmt: skip


def widest(graph: Any) -> Any:
    """Return the vertex of most arcs by its name, of equals the first; 0 if there is none."""
    if not graph.n_vertices:
        return 0
    number = int((graph.offsets[1:] - graph.offsets[:-1]).argmax())
    return number if graph.names is None else graph.names.tolist()[number]
