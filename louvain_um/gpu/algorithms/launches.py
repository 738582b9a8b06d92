"""Algorithms on the device: each launches the kernels of the `.cu` file of its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.gpu.algorithms.workspace import PLAIN, KernelRows, Workspace, from_row
from louvain_um.gpu.runtime.launch import Launcher

WIDTH: Final = 32
"""The limit between near and far grows by so many mean weights per mean degree: the lanes of a
warp (Davidson and others)."""


def bfs(rows: KernelRows, source: int, space: Workspace = PLAIN) -> tuple[Any, Any]:
    """Return distances int32[n] and parents int64[n], −1 for what is not reached."""
    n, words = rows.n_vertices, (rows.n_vertices + 31) // 32
    if rows.slices:
        return bfs_by_slices(rows, source, space)
    state, partials = space.control()
    distances, parents = space.empty("distances", n, np.int32), space.empty("parents", n, np.int64)
    launch = Launcher("bfs", "bfs", rows.kind)
    with space.phase("run"):
        launch(
            rows.argument(weighted=False),
            np.int64(rows.n_arcs), np.uint32(source), distances,
            space.empty("least_parents", n, np.uint32), parents,
            space.empty("queue", n, np.uint32), space.empty("arcs_before", n + 1, np.int64),
            partials, space.empty("front", words, np.uint32),
            space.empty("next_front", words, np.uint32), state,
        )  # fmt: skip
    return distances, parents


WIDTHS: Final = 2
"""Of the state's words, where the numbers of vertices of three levels begin (`SearchState`)."""


def bfs_by_slices(rows: KernelRows, source: int, space: Workspace) -> tuple[Any, Any]:
    """Return what `bfs` does, by one launch for each level and slice of rows."""
    n, words = rows.n_vertices, (rows.n_vertices + 31) // 32
    state, _ = space.control()
    distances, parents = space.empty("distances", n, np.int32), space.empty("parents", n, np.int64)
    least = space.empty("least_parents", n, np.uint32)
    front, following = (space.empty(name, words, np.uint32) for name in ("front", "next_front"))
    launch, level, width = Launcher("bfs", "pull_level"), 0, 1
    with space.phase("run"):
        for array, fill, at, value in (
            (distances, -1, source, 0), (least, np.uint32(0xFFFFFFFF), source, source),
            (front, 0, source // 32, 1 << source % 32),
        ):  # fmt: skip
            array.fill(fill)
            array[at] = value
        while width:
            for part, first in rows.anywhere.parts("targets"):
                launch(
                    part.argument(weighted=False), front, from_row(following, first // 32),
                    np.uint32(level), from_row(distances, first), from_row(least, first),
                    from_row(parents, first), state,
                )  # fmt: skip
            width = int(state[WIDTHS + level % 3])
            front, following, level = following, front, level + 1
    return distances, parents


def sssp(rows: KernelRows, source: int, space: Workspace = PLAIN) -> tuple[Any, Any]:
    """Return distances int64[n] and parents int64[n], −1 for what is not reached."""
    rows, n, arcs = rows.anywhere, rows.n_vertices, max(1, rows.n_arcs)
    width = max(1, int(WIDTH * (rows.total_weight / arcs) * n / arcs))
    state, partials = space.control()
    distances, parents = space.empty("distances", n, np.uint64), space.empty("parents", n, np.int64)
    launch = Launcher("sssp", "sssp", f"{rows.types}, {rows.kind}")
    with space.phase("run"):
        launch(
            rows.argument(), np.uint32(source), np.uint64(width), distances, parents,
            space.empty("near", 2 * n, np.uint32), space.empty("far", 2 * n, np.uint32),
            space.empty("stamps", n, np.uint32), space.empty("is_far", n, np.uint32),
            space.empty("arcs_before", n + 1, np.int64), partials, state,
        )  # fmt: skip
    return distances.view(np.int64), parents


def pagerank(
    rows: KernelRows,
    damping: float,
    start: int,
    teleport: int,
    change: int,
    most: int,
    iterated: Callable[[int, int], None],
    space: Workspace = PLAIN,
) -> tuple[Any, int]:
    """Return the ranks, int64[n] in units of 2^-60, and the change of the last iteration.

    See `louvain_um.cpu.algorithms.products`.
    """
    n = rows.n_vertices
    sums = space.control()[0][:2].view(np.int64)
    ranks = space.empty("ranks", n, np.int64)
    outs, shares, next_shares = (
        space.empty(name, n, np.float64) for name in ("row_weights", "shares", "next_shares")
    )
    weigh, iterate = (
        Launcher("pagerank", name, f"{rows.types}, {rows.kind}")
        for name in ("weigh_rows", "iterate")
    )
    with space.phase("weigh"):
        for part, first in rows.parts("weights"):
            mine = (from_row(array, first) for array in (ranks, outs, shares))
            weigh(part.argument(), part.loops_argument, np.int64(start), *mine, sums)
    dangling, moved = int(sums[0]), start * n
    with space.phase("iterate"):
        for iteration in range(most):
            base = teleport + int(damping * float(dangling) / float(n))
            sums.fill(0)
            for part, first in rows.parts("targets", "weights"):
                iterate(
                    part.argument(), part.loops_argument, np.float64(damping),
                    np.int64(base), from_row(outs, first), shares, from_row(next_shares, first),
                    from_row(ranks, first), sums,
                )  # fmt: skip
            if iteration == 0 and rows.on_demand:
                rows = rows.arrived()
                iterate = Launcher("pagerank", "iterate", f"{rows.types}, {rows.kind}")
            shares, next_shares = next_shares, shares
            dangling, moved = sums.tolist()
            iterated(iteration, moved)
            if moved <= change:
                break
    return ranks, moved


def spmv(rows: KernelRows, x: Any, scale: float, space: Workspace = PLAIN) -> Any:
    """Return A x, float64[n], with weights divided by `scale`."""
    y = space.empty("y", rows.n_vertices, np.float64)
    vector = space.filled("x", x)
    launch = Launcher("spmv", "multiply", f"{rows.types}, {rows.kind}")
    with space.phase("run"):
        for part, first in rows.parts("targets", "weights"):
            launch(
                part.argument(), part.loops_argument, vector, from_row(vector, first),
                np.float64(1.0 / scale), from_row(y, first),
            )  # fmt: skip
    return y


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
