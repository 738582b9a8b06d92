"""The algorithms by the names that the command line knows them by."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.algorithms.programs import check_name
from louvain_um.errors import OptionError

FROM_A_SOURCE = ("bfs", "sssp")
"""Algorithms that begin at a vertex."""


def run_algorithm(name: str, graph: Any, *, source: Any = None, **how: Any) -> Any:
    """Run an algorithm."""
    from louvain_um.algorithms import bfs, components, pagerank, spanning_forest, spmv, sssp
    from louvain_um.algorithms import triangles as counting

    check_name(name)
    if name in FROM_A_SOURCE:
        start = widest(graph) if source is None else source
        return (bfs.bfs if name == "bfs" else sssp.sssp)(graph, start, **how)
    check_source(name, source)
    if name == "spmv":
        return spmv.spmv(graph, np.ones(graph.n_vertices), **how)
    call: Any = {
        "components": components.connected_components,
        "mst": spanning_forest.minimum_spanning_forest,
        "pagerank": pagerank.pagerank,
        "triangles": counting.triangles,
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
