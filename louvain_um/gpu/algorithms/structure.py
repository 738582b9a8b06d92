"""Components, spanning forest and triangles on the device, each in the `.cu` file of its name."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.gpu.algorithms.rows import KernelRows
from louvain_um.gpu.algorithms.workspace import PLAIN, Workspace
from louvain_um.gpu.runtime.launch import Launcher


def components(rows: KernelRows, space: Workspace = PLAIN) -> Any:
    """Return the smallest member of each vertex's component, uint32[n]."""
    rows, n = rows.anywhere, rows.n_vertices
    parents, (state, _) = space.empty("components", n, np.uint32), space.control()
    if n:
        launch = Launcher("components", "components", rows.kind)
        with space.phase("run"):
            launch(rows.argument(weighted=False), parents, state)
    return parents


class PackedForest(NamedTuple):
    """Edges of a forest, smaller end << 32 | larger end, and their weights: the first `size`."""

    edges: Any
    weights: Any
    size: int


EDGES: Final = 1
"""Word of the state where the number of edges is (`ForestState`)."""


def spanning_forest(rows: KernelRows, space: Workspace = PLAIN) -> PackedForest:
    """Return a minimum spanning forest."""
    rows, n, (state, _) = rows.anywhere, rows.n_vertices, space.control()
    edges, weights = (space.empty(name, n, np.uint64) for name in ("edges", "edge_weights"))
    launch = Launcher("spanning_forest", "spanning_forest", f"{rows.types}, {rows.kind}")
    with space.phase("run"):
        launch(
            rows.argument(),
            *(space.empty(name, n, np.uint32) for name in ("component", "hook", "choice")),
            *(
                space.empty(name, n, np.uint64)
                for name in ("choice_weight", "least_weight", "least_pair")
            ),
            edges, weights, state,
        )  # fmt: skip
    return PackedForest(edges, weights.view(np.int64), int(state[EDGES]))


def in_order(edges: Any, weights: Any) -> tuple[Any, Any]:
    """Return a forest's edges, ascending, and their weights; of CuPy or of NumPy."""
    order = edges.argsort()
    return edges[order], weights[order]


def triangles(rows: KernelRows, space: Workspace = PLAIN) -> Any:
    """Return the number of triangles of each vertex, int64[n]."""
    rows, n, (state, partials) = rows.anywhere, rows.n_vertices, space.control()
    counts = space.empty("counts", n, np.uint64)
    counts.fill(0)
    launch = Launcher("triangles", "triangles", rows.kind)
    with space.phase("run"):
        launch(
            rows.argument(weighted=False), space.empty("begins", n + 1, np.int64),
            space.empty("upward", rows.n_arcs // 2 + 1, np.uint32), partials, counts, state,
        )  # fmt: skip
    return counts.view(np.int64)
