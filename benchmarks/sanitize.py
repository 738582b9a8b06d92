"""Does compute-sanitizer find errors or hazards? Small runs of both methods under its tools.

    compute-sanitizer --tool memcheck --report-api-errors no python benchmarks/sanitize.py 12
    compute-sanitizer --tool racecheck python benchmarks/sanitize.py 10
    compute-sanitizer --tool racecheck python benchmarks/sanitize.py 10 --only "leiden Graph(106"
    compute-sanitizer --tool racecheck --kernel-name "regex=edit_linked|visit_arcs" \
        python benchmarks/sanitize.py 6 --changing pages,bal --weights yes

Graphs: R-MAT of that scale, and of one less with weights; a mesh with a hub, also with weights
whose sums take 64 bits; a larger mesh in core, for the aggregation of large levels; and a ring of
cliques, which needs few iterations, in vertex blocks. Checks all labels against the CPU engine.
`--changing` runs stores of changing graphs instead, whose contents are to be those of the CPU, and
after the largest batch algorithms and operators, whose answers are. Run it once without a tool
before: what is compiled then is not compiled slowly.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import louvain_um as lu
from louvain_um.algorithms.operators import advance, atomic_min, segmented_intersection
from louvain_um.errors import MemoryBudgetError
from louvain_um.generators import ring_of_cliques, rmat, stencil
from louvain_um.placement.policy.policy import Placement, Policy

PREFETCHED = Policy(
    name="prefetched",
    placements=dict.fromkeys(("hash", "community", "scratch"), Placement("device"))
    | {"graph": Placement("prefetched")},
)
"""Level 0 is out of core."""

CASES = (("device", None), ("auto", "70%"), ("auto", "50%"), ("base", None))
"""At 70 % scratch is small; at 50 % targets are packed and some arrays are on the host."""
MESH = 40, 40, 40
SHEET = (60, 60)
HEAVY = 1 << 22
"""Weight of an arc with which a mesh's total needs more than 32 bits."""


def in_blocks(budget: str) -> tuple[tuple[Any, str], ...]:
    """Return cases with level 0 out of core, and their budgets."""
    return ("base", budget), (PREFETCHED, budget)


def hub(weight: int = 1) -> lu.Graph:
    """Return a mesh whose first vertex is connected to every other."""
    sheet = stencil(SHEET).graph
    ends = np.repeat(np.arange(sheet.n_vertices), np.diff(sheet.offsets))
    others = np.arange(1, sheet.n_vertices)
    u, v = np.append(ends, 0 * others), np.append(sheet.targets, others)
    once = np.unique(np.sort(np.stack((u, v), axis=1), axis=1), axis=0)
    weights = np.full(len(once), weight) if weight != 1 else None
    return lu.Graph.from_edges(once[:, 0], once[:, 1], weights, n_vertices=sheet.n_vertices)


def lowered(u, v, w, arc, least):  # type: ignore[no-untyped-def]
    """Lower an entry of a target to a vertex."""
    return atomic_min(least, v, u) > u


def halved(u, v, w, arc, x):  # type: ignore[no-untyped-def]
    """Return half the product of an arc's weight and a target's entry."""
    return 0.5 * w * x[v]


def answers(graph: lu.DynamicGraph) -> list[Any]:
    """Return what algorithms and operators answer, on the device but for directed CPU graphs."""
    import cupy

    xp: Any = np if graph.directed and graph.device_store is None else cupy
    n, pairs = graph.n_vertices, xp.arange(400).reshape(-1, 2) % graph.n_vertices
    least = xp.full(n, n), xp.full(n, n)
    for array, balanced in zip(least, (True, False), strict=True):
        advance(graph, None, lowered, array, balanced=balanced, returns=None)
    shared: Any = segmented_intersection(graph, pairs)
    sums = advance(graph, None, halved, xp.arange(n), returns="sums")
    found = [array.tolist() for array in (*least, shared, sums)]
    if graph.directed:
        return found
    return [
        *found,
        *(lu.sssp(graph, 0, device="cuda")[k].tolist() for k in (0, 1)),
        lu.connected_components(graph, device="cuda").tolist(),
        lu.triangles(graph, device="cuda").tolist(),
        lu.louvain(graph, device="cuda").labels.tolist(),
        graph.has_edges(*pairs.get().T).tolist(),
    ]


def change(scale: int, stores: str, weights: str) -> None:
    """Change a graph by batches of several sizes, small ones and one that rebuilds the store."""
    n = 1 << scale
    counts = 20, 300, n // 4, 4 * n, 30
    for store in stores.split(","):
        for weighted in {"no": [False], "yes": [True], "both": [False, True]}[weights]:
            base, rng = rmat(scale, edge_factor=4, seed=1).graph, np.random.default_rng(2)
            host, there = (
                lu.DynamicGraph(base, weighted=weighted, **where)
                for where in (
                    {"store": "pages:directed=yes"} if "directed" in store else {},
                    {"store": store, "device": "cuda"},
                )
            )
            gone = None
            for count in counts:
                u, v = rng.integers(0, n, count), (n * rng.random(count) ** 4).astype(np.int64)
                if "unchecked" in store:
                    new = ~host.has_edges(u, v)
                    u, v = u[new], v[new]
                for graph in (host, there):
                    graph.apply(insert=(u, v), delete=gone)
                assert there.digest() == host.digest(), (store, weighted, count)
                if count == max(counts):
                    assert answers(there) == answers(host), (store, weighted, count)
                gone = u, v
            for graph in (host, there):
                graph.remove_vertices(u)
                graph.add_vertices(n, reuse=True)
            there.compact()
            there.check()
            assert there.digest() == host.digest(), (store, weighted, "compact")
            kind = "weighted" if weighted else "unweighted"
            print(f"{store}, {kind}: the CPU's contents", flush=True)


def main() -> None:
    """Run every case once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scale", type=int, nargs="?", default=12)
    parser.add_argument("--only", default="", help="methods and graphs that contain this")
    parser.add_argument("--changing", metavar="STORES", help="change graphs instead")
    parser.add_argument("--weights", choices=("no", "yes", "both"), default="both")
    args = parser.parse_args()
    if args.changing:
        change(args.scale, args.changing, args.weights)
        return
    weighted = rmat(args.scale - 1, weights="uniform", seed=1).graph
    mesh, ring = stencil(MESH).graph, ring_of_cliques(1 << 12, size=26, permute=True).graph
    both = lu.louvain, lu.leiden
    runs: tuple[tuple[lu.Graph, tuple[Any, ...], tuple[Any, ...]], ...] = (
        (rmat(args.scale, seed=1).graph, both, CASES),
        (weighted, both, CASES),
        (hub(), both, CASES[:3]),
        (hub(HEAVY), both, CASES[:1]),
        (mesh, both, CASES[:1]),
        (ring, (lu.louvain,), in_blocks("65%")),
        (ring, (lu.leiden,), in_blocks("70%")),
    )
    for graph, methods, cases in runs:
        for detect in methods:
            if args.only not in f"{detect.__name__} {graph}":
                continue
            want = detect(graph, device="cpu").labels
            for memory, budget in cases:
                name = getattr(memory, "name", memory)
                case = f"{detect.__name__} {graph} {name} {budget or 'in core'}"
                where = {"device": "cuda", "memory": memory, "device_budget": budget}
                try:
                    found = detect(graph, **where)
                except MemoryBudgetError as error:
                    if graph is ring:
                        raise
                    print(f"{case}: refused, {error}", flush=True)
                    continue
                assert np.array_equal(found.labels, want), case
                moved = found.provenance["traffic_bytes"]["to_device"]
                assert moved or graph is not ring, f"{case}: not in blocks"
                print(f"{case}: the CPU's labels", flush=True)


if __name__ == "__main__":
    main()
