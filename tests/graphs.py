"""Graphs that every engine is tested on: random ones, and one or more of each kind."""

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np
from hypothesis import strategies as st

from louvain_um import Graph
from louvain_um.generators import geometric, lfr, planted, ring_of_cliques, rmat, stencil
from louvain_um.graph.row_view import RowView

WEIGHTS = {
    "none": None,
    "uint32": st.integers(0, 9),
    "int64": st.one_of(st.integers(0, 3), st.integers(2**32, 2**40)),
    "float": st.one_of(st.just(0.0), st.floats(1e-12, 1e12), st.floats(0.5, 2.0)),
}


@st.composite
def edge_lists(draw):
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


def graphs():
    return edge_lists().map(lambda e: Graph.from_edges(e[1], e[2], e[3], n_vertices=e[0]))


@st.composite
def cases(draw):
    """Return a graph and an objective that suits it."""
    objective = draw(st.sampled_from(["modularity", "cpm", "directed", "bipartite", "signed"]))
    n, u, v, w = draw(edge_lists())
    kind = "undirected"
    if objective == "directed":
        kind = "directed"
    elif objective == "bipartite":
        kind, n, v = "bipartite", 2 * n, v + n
    elif objective == "signed" or (objective == "cpm" and draw(st.booleans())):
        kind = "signed"
        signs = np.random.default_rng(draw(st.integers(0, 99))).choice([1, 1, -1], len(u))
        w = signs if w is None else w * signs
    return Graph.from_edges(u, v, w, n_vertices=n, kind=kind), objective


@st.composite
def constraints(draw, n):
    """Return communities to start from, fixed vertices and a maximum size, or some of them."""
    found = {}
    if draw(st.booleans()):
        width = draw(st.integers(1, max(n, 1)))
        found["initial"] = [v // width for v in range(n)]
    if draw(st.booleans()):
        found["fixed"] = draw(st.lists(st.integers(0, n - 1), max_size=5)) if n else []
    if draw(st.booleans()):
        largest = np.bincount(found["initial"]).max() if n and "initial" in found else 1
        found["max_size"] = int(largest) + draw(st.integers(0, 9))
    return found


def weighted(graph, least, most):
    """Return the graph with random weights of a range; both ends of the range occur."""
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    once = u < graph.targets
    weights = np.random.default_rng(3).integers(least, most + 1, np.count_nonzero(once))
    weights[:2] = least, most
    return Graph.from_edges(u[once], graph.targets[once], weights, n_vertices=graph.n_vertices)


def of_kind(kind, scale=9):
    """Return a graph with hubs for an objective: directed, bipartite or signed."""
    graph = rmat(scale, seed=1).graph
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    once = u < graph.targets
    u, v = u[once], graph.targets[once].astype(np.int64)
    weights = None
    if kind == "signed":
        random = np.random.default_rng(1)
        weights = random.integers(1, 9, len(u)) * random.choice([1, 1, -1], len(u))
    if kind == "bipartite":
        v += graph.n_vertices
    return Graph.from_edges(u, v, weights, kind=kind)


def scattered(graph, seed=0):
    """Return a graph's rows in a random order, with vertices that there are not in the gaps."""
    rng = np.random.default_rng(seed)
    n, lengths = graph.n_vertices, np.diff(graph.offsets)
    room = lengths + rng.integers(0, 4, n)
    order = rng.permutation(n)
    begins = np.zeros(n, np.int64)
    begins[order] = np.cumsum(room[order]) - room[order]
    targets = np.full(int(room.sum()), 0xFFFFFFF0, np.uint32)
    place = np.repeat(begins - graph.offsets[:-1], lengths) + np.arange(graph.n_arcs)
    targets[place] = graph.targets
    weights = None
    if graph.weights is not None:
        weights = np.full(len(targets), 77, graph.weights.dtype)
        weights[place] = graph.weights
    return RowView(
        begins=begins, ends=begins + lengths, targets=targets, weights=weights, loops=graph.loops,
        degrees=graph.degrees, n_arcs=graph.n_arcs, total_weight=graph.total_weight,
    )  # fmt: skip


KINDS: Final[dict[str, Callable[[], Graph]]] = {
    "lfr": lambda: lfr(900, max_degree=200, min_community=20, max_community=200, seed=3).graph,
    "rmat": lambda: rmat(9, edge_factor=12, seed=3).graph,
    "weighted": lambda: rmat(8, weights="uniform", seed=3).graph,
    "heavy": lambda: weighted(KINDS["lfr"](), 1 << 30, 1 << 34),
    "stencil": lambda: stencil((7, 8, 9)).graph,
    "star": lambda: Graph.from_edges(np.zeros(3000, np.int64), np.arange(1, 3001)),
    "loops": lambda: Graph.from_edges([0, 1, 2, 3, 4, 4], [1, 2, 0, 4, 4, 5], n_vertices=8),
    "two vertices": lambda: Graph.from_edges([0], [1]),
    "no edges": lambda: Graph.from_edges([], [], n_vertices=5),
}
"""Small graphs: hubs, communities, a mesh, weights of four and of eight bytes, special cases."""

LARGER: Final[dict[str, Callable[[], Graph]]] = {
    "rmat": lambda: rmat(13).graph,
    "rmat weighted": lambda: rmat(12, weights="uniform").graph,
    "lfr": lambda: lfr(1 << 13, max_degree=400, max_community=800).graph,
    "lfr weighted": lambda: lfr(1 << 12, max_degree=400, weights="uniform").graph,
    "lfr heavy": lambda: weighted(lfr(1 << 12, max_degree=400).graph, 1, 7 << 31),
    "stencil": lambda: stencil((16, 16, 16)).graph,
    "stencil weighted": lambda: stencil((12, 12, 12), weights="uniform").graph,
    "planted": lambda: planted(5000, blocks=40).graph,
    "planted weighted": lambda: planted(3000, blocks=30, weights="uniform").graph,
    "geometric": lambda: geometric(8000, degree=10.0).graph,
    "geometric weighted": lambda: geometric(5000, degree=10.0, weights="uniform").graph,
    "ring": lambda: ring_of_cliques(50, size=8).graph,
    "ring weighted": lambda: ring_of_cliques(40, size=7, weights="uniform").graph,
    "star": lambda: Graph.from_edges(np.zeros(20_000, np.int64), np.arange(1, 20_001)),
    "star weighted": lambda: weighted(LARGER["star"](), 7, 1 << 33),
}
"""Graphs of every generator, for engines that take no minutes for them."""


@cache
def small(kind):
    return KINDS[kind]()


@cache
def larger(kind):
    return LARGER[kind]()


def same(a, b):
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
