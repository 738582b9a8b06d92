"""Breadth-first search and shortest paths on the device (`bfs.cu`, `sssp.cu`)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.gpu.algorithms.rows import KernelRows, from_row
from louvain_um.gpu.algorithms.workspace import PLAIN, Workspace
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
