"""How fast are the other algorithms, compared with SciPy and with the bandwidth of a copy?

    python benchmarks/algorithms.py rmat18 --runs 5 -o result.json
    python benchmarks/algorithms.py rmat22 --device cuda --runs 7
    python benchmarks/algorithms.py rmat16 --operators
    python benchmarks/algorithms.py --significance [--device cuda]

Each algorithm runs `--runs` times after a warm-up, on a CPU alternating with SciPy, so that both
see the same load of the machine. Weights are whole numbers, 1 … 16 by the seeded hash of the
generators; bfs, components, triangles and one row of pagerank and spmv leave them out. Searches
begin at the vertex of highest degree. SciPy has no PageRank and no triangles. On a GPU, graph and
result are there, and times are by events of the device, launches included. Floors are the times
that targets alone, and targets with eight bytes per arc, take at the bandwidth of a copy.
`--operators` times the algorithms of `on_operators.py`, which call functors as users write them,
and the tuned ones; lines are useful ones, theirs of Marrow-Graph.

`--significance` compares communities with those of a hundred random graphs of the same degrees
instead: of an LFR graph and of a random one, of about a million arcs each, random graphs and
detection in them included. A call with two of them compiles before.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import on_operators
from common import GENERATED, bandwidth, device_seconds, machine, parser, save, timed

import louvain_um as lu
from louvain_um.events import Event
from louvain_um.generators import GENERATORS

GPU_ITERATIONS = 10
RANDOM_GRAPHS, RANDOM_ARCS = 100, 1_000_000
UNITS = ("bfs", "sssp", "components", "spanning_forest", "pagerank", "spmv", "triangles")

Call = Callable[[], Any]


class Case(NamedTuple):
    """An algorithm's call and iterations, and the same by SciPy."""

    name: str
    ours: Call
    peer: Call | None = None
    iterations: int = 0


class Iterations:
    """An observer that counts iterations of PageRank."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, event: Event) -> None:
        self.count += event.kind == "iteration"


def matrix(graph: lu.Graph) -> Any:
    """Return the matrix of a graph without loops, in the types that SciPy works in."""
    import scipy.sparse as sp

    weights = np.ones(graph.n_arcs) if graph.weights is None else graph.weights.astype(float)
    n = graph.n_vertices
    indices = graph.targets.astype(np.int32)
    return sp.csr_matrix((weights, indices, graph.offsets.astype(np.int32)), shape=(n, n))


def on_cpu(plain: lu.Graph, weighted: lu.Graph, **how: Any) -> list[Case]:
    """Return the algorithms with SciPy's counterparts."""
    from scipy.sparse import csgraph

    source = int(np.argmax(np.diff(plain.offsets)))
    ones, lengths = matrix(plain), matrix(weighted)
    x = np.random.default_rng(0).random(plain.n_vertices)

    def ranks(graph: lu.Graph) -> int:
        seen = Iterations()
        lu.pagerank(graph, observer=seen, **how)
        return seen.count

    return [
        Case("bfs", lambda: lu.bfs(plain, source, **how),
             lambda: csgraph.breadth_first_order(ones, source)),
        Case("sssp", lambda: lu.sssp(weighted, source, **how),
             lambda: csgraph.dijkstra(lengths, indices=source, return_predecessors=True)),
        Case("components", lambda: lu.connected_components(plain, **how),
             lambda: csgraph.connected_components(ones, directed=False)),
        Case("mst", lambda: lu.minimum_spanning_forest(weighted, **how),
             lambda: csgraph.minimum_spanning_tree(lengths)),
        Case("spmv", lambda: lu.spmv(plain, x, **how), lambda: ones @ x),
        Case("spmv weighted", lambda: lu.spmv(weighted, x, **how), lambda: lengths @ x),
        Case("pagerank", lambda: lu.pagerank(plain, **how), None, ranks(plain)),
        Case("pagerank weighted", lambda: lu.pagerank(weighted, **how), None, ranks(weighted)),
        Case("triangles", lambda: lu.triangles(plain, **how)),
    ]  # fmt: skip


def by_functors(plain: Any, weighted: Any, source: int, xp: Any) -> list[Case]:
    """Return the algorithms on operators; rounds of PageRank are its iterations."""
    x = xp.asarray(np.random.default_rng(0).random(plain.n_vertices))
    calls: dict[str, Call] = {
        "bfs": lambda: on_operators.bfs(plain, source, xp),
        "sssp": lambda: on_operators.sssp(weighted, source, xp),
        "spmv weighted": lambda: on_operators.spmv(weighted, x, xp),
        "pagerank weighted": lambda: on_operators.pagerank(weighted, xp)[0],
        "triangles": lambda: on_operators.triangles(plain, xp),
    }
    rounds = {"pagerank weighted": on_operators.pagerank(weighted, xp)[1]}
    return [Case(f"{k} on operators", call, None, rounds.get(k, 0)) for k, call in calls.items()]


def on_gpu(graph: Any, heavy: Any, source: int) -> list[Case]:
    """Return the algorithms' calls on rows of a device."""
    import cupy

    from louvain_um.algorithms.products import UNIT
    from louvain_um.gpu.algorithms import launches
    from louvain_um.gpu.algorithms.workspace import KernelRows

    plain, weighted, n = KernelRows.of(graph), KernelRows.of(heavy), graph.n_vertices
    x = cupy.asarray(np.random.default_rng(0).random(n))
    rule = 0.85, UNIT // n, int(UNIT * (1.0 - 0.85) / n), -1, GPU_ITERATIONS

    def forest() -> tuple[Any, Any]:
        edges, weights, count = launches.spanning_forest(weighted)
        return launches.in_order(edges[:count], weights[:count])

    calls: dict[str, Call] = {
        "bfs": lambda: launches.bfs(plain, source),
        "sssp": lambda: launches.sssp(weighted, source),
        "components": lambda: launches.components(plain),
        "mst": forest,
        "spmv": lambda: launches.spmv(plain, x, 1.0),
        "spmv weighted": lambda: launches.spmv(weighted, x, 1.0),
        "pagerank": lambda: launches.pagerank(plain, *rule, lambda *_: None),
        "pagerank weighted": lambda: launches.pagerank(weighted, *rule, lambda *_: None),
        "triangles": lambda: launches.triangles(plain),
    }
    return [
        Case(name, call, None, GPU_ITERATIONS * name.startswith("pagerank"))
        for name, call in calls.items()
    ]


def measure(case: Case, runs: int, device: str) -> dict[str, Any]:
    """Time a call, alternating with SciPy's where it has one."""
    case.ours()
    seconds, peer_seconds = [], []
    for _ in range(runs):
        seconds.append(device_seconds(case.ours) if device == "cuda" else timed(case.ours, 1)[1][0])
        if case.peer is not None:
            peer_seconds += timed(case.peer, 1)[1]
    row: dict[str, Any] = {"algorithm": case.name, "seconds": seconds, "best": min(seconds)}
    row["median"] = statistics.median(seconds)
    kind = case.name.split()[0]
    if case.name.endswith("operators"):
        row["lines"] = on_operators.useful_lines(kind)
        row["published_lines"] = on_operators.PUBLISHED[kind]
    if case.iterations:
        row |= {"iterations": case.iterations, "best_per_iteration": row["best"] / case.iterations}
    if peer_seconds:
        row |= {"scipy_seconds": peer_seconds, "scipy_best": min(peer_seconds)}
    return row


def significance(device: str) -> list[dict[str, Any]]:
    """Return seconds and z-scores of an LFR graph and of a random one."""
    n, random = RANDOM_ARCS // 10, np.random.default_rng(1)
    ends = random.integers(0, n, (2, RANDOM_ARCS // 2), np.uint32)
    graphs = {
        "LFR": GENERATORS["lfr"](RANDOM_ARCS // 39).graph,
        "random": lu.Graph.from_edges(*ends, n_vertices=n),
    }
    rows = []
    for name, graph in graphs.items():
        found = lu.louvain(graph, device=device)
        first = found.significance(graphs=2, device=device)
        tested, (seconds,) = timed(
            lambda found=found: found.significance(graphs=RANDOM_GRAPHS, device=device), 1
        )
        assert np.array_equal(first.null, tested.null[:2])
        size = {"vertices": graph.n_vertices, "arcs": graph.n_arcs, "graphs": RANDOM_GRAPHS}
        rows.append({"graph": name, **size, "seconds": round(seconds, 3), "z": round(tested.z, 1)})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure and save."""
    options = parser(__doc__)
    options.add_argument("graph", nargs="?", default="rmat18", choices=list(GENERATED))
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--threads", type=int)
    options.add_argument("--operators", action="store_true", help="on operators, and as tuned")
    options.add_argument("--significance", action="store_true", help="test against random graphs")
    asked = options.parse_args()
    if asked.significance:
        record = {"machine": machine(), "rows": significance(asked.device)}
        print(save("significance", record, asked.output, asked.device))
        return
    kind, size = GENERATED[asked.graph]
    makers: Any = GENERATORS
    current: Any = nullcontext()
    module: Any = np
    if asked.device == "cuda":
        import cupy as module

        from louvain_um.gpu.generate import generate
        from louvain_um.gpu.runtime.compile import kernels
        from louvain_um.gpu.runtime.device import pick
        from louvain_um.gpu.runtime.kernel_list import types_of

        makers, current = vars(generate), pick("cuda").current()
    with current:
        about: dict[str, Any] = {"command": " ".join(sys.argv), "graph": asked.graph}
        if asked.device == "cuda":
            kernels.prepare((source, types) for source in UNITS for types in types_of(source))
        plain, weighted = makers[kind](size).graph, makers[kind](size, weights="uniform").graph
        about |= {"vertices": plain.n_vertices, "arcs": plain.n_arcs}
        if asked.device == "cuda":
            rate = bandwidth()
            floor = {"rows": 4 * plain.n_arcs / rate, "rows_and_values": 12 * plain.n_arcs / rate}
            about |= {"bytes_per_s": rate, "floor_seconds": floor}
            source = int((plain.offsets[1:] - plain.offsets[:-1]).argmax())
            cases = on_gpu(plain, weighted, source)
        else:
            cases = on_cpu(plain, weighted, device="cpu", threads=asked.threads)
            source = int(np.argmax(np.diff(plain.offsets)))
        if asked.operators:
            on_them = by_functors(plain, weighted, source, module)
            names = {case.name.removesuffix(" on operators") for case in on_them}
            cases = [case for case in cases if case.name in names] + on_them
        rows, known = [], dict[str, float]()
        for case in cases:
            rows.append(measure(case, asked.runs, asked.device))
            known[case.name] = rows[-1].get("best_per_iteration", rows[-1]["best"])
            if "lines" in rows[-1]:
                rows[-1]["tuned_best"] = known[case.name.removesuffix(" on operators")]
            print({k: v for k, v in rows[-1].items() if not isinstance(v, list)}, flush=True)
    record = {**about, "machine": machine(), "results": rows}
    name = "operators" if asked.operators else "algorithms"
    print(save(name, record, asked.output, asked.device))


if __name__ == "__main__":
    main()
