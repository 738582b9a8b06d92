"""Small random graphs with everything that real ones have."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from louvain_um import Graph

WEIGHTS = {
    "none": None,
    "uint32": st.integers(0, 9),
    "int64": st.one_of(st.integers(0, 3), st.integers(2**32, 2**40)),
    "float": st.one_of(st.just(0.0), st.floats(1e-12, 1e12), st.floats(0.5, 2.0)),
}


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return vertices, ends and weights: loops, repeated edges, isolated vertices included."""
    n = draw(st.integers(0, 40))
    if n == 0:
        none = np.zeros(0, np.int64)
        return 0, none, none, None
    kind = draw(st.sampled_from(sorted(WEIGHTS)))
    # Ends near each other make communities; ends anywhere join them.
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    count = draw(st.integers(0, 4 * n))
    u = rng.integers(0, n, count)
    width = draw(st.integers(1, n))
    v = np.where(rng.random(count) < 0.8, u // width * width + rng.integers(0, width, count), 0)
    v = np.where(v < n, v, rng.integers(0, n, count))
    element = WEIGHTS[kind]
    if element is None:
        return n, u, v, None
    few = draw(st.lists(element, min_size=1, max_size=6))
    dtype = np.float64 if kind == "float" else np.int64
    return n, u, v, np.array(few, dtype)[rng.integers(0, len(few), count)]


def graphs() -> st.SearchStrategy[Graph]:
    return edge_lists().map(lambda e: Graph.from_edges(e[1], e[2], e[3], n_vertices=e[0]))


def same(a: Graph, b: Graph) -> bool:
    """Return whether two graphs are equal, to the last bit of every weight."""
    return (
        np.array_equal(a.offsets, b.offsets)
        and np.array_equal(a.targets, b.targets)
        and np.array_equal(a.loops / a.scale, b.loops / b.scale)
        and a.weighted == b.weighted
        and (
            a.weights is None
            or b.weights is None
            or np.array_equal(a.weights / a.scale, b.weights / b.scale)
        )
    )
