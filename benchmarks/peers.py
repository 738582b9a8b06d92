"""How fast are other libraries on the same graphs, and how good are their communities?

    python benchmarks/peers.py [--repeat 3] [--seconds 5] [--data FOLDER] [-o FILE]
    python benchmarks/peers.py lfr22 rmat22 --device cuda
    python benchmarks/peers.py 20000000 --memory louvain

CPU: NetworKit, igraph, leidenalg, scikit-network, scanpy, louvain-um at all efforts. GPU: cuGraph
(pylibcugraph, without data frames) and louvain-um. Every peer runs in a separate process; peers
that are not installed are skipped with a message. Recorded are the algorithm time with the graph in
the peer's format, on the device for GPU libraries, in at least `repeat` repetitions over at least
`seconds`, at most `SLOW` seconds of them; modularity, recomputed from the labels; and peak host
memory above that before the graph was loaded, including the peer's format. `cpu_seconds` is the
time of all threads in the repetition with the least. `speedup` is NetworKit's time over the peer's
on the same graph. `load` is the load average of the minute before: above one or two, the machine
was busy.

`--memory` measures what louvain-um takes on a CPU, above what the interpreter does: to build a
graph of planted communities with about so many arcs, 16 a vertex, and to detect, or to detect only
in a graph that is generated. Large arrays get separate memory mappings, as on the command line. The
limit is 20 bytes per arc and 100 per vertex, without the edge list.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import DATA, GENERATED, Peak, host_graph, kept, machine, parser, replaced, save

import louvain_um as lu
from louvain_um.cli import mmap_large_arrays
from louvain_um.generators import lfr, rmat
from louvain_um.options import EFFORTS

SEED = 0
REFERENCE = "NetworKit PLM"

SLOW = 2.0
"""Seconds of all repetitions after which there are no more."""

CELLS = "knn-100k"
CPU_GRAPHS = ("lfr-300k", "rmat17", "web-NotreDame.txt.gz", "cells", CELLS)
GPU_GRAPHS = ("lfr22", "rmat22", "stencil150")

Run = Callable[[], Any]
"""Runs once; returns labels."""


def ours(method: str, device: str, effort: str = "default") -> Callable[[lu.Graph], Run]:
    """Return what prepares louvain-um's runs."""

    def prepare(graph: lu.Graph) -> Run:
        there: Any = graph
        if device == "cuda":
            from louvain_um.gpu.graph import DeviceGraph

            there = DeviceGraph.from_host(graph)
        return lambda: getattr(lu, method)(there, device=device, seed=SEED, effort=effort).labels

    return prepare


def edges(graph: lu.Graph) -> np.ndarray:
    """Return each edge once, loops included."""
    u = np.repeat(np.arange(graph.n_vertices, dtype=np.uint32), np.diff(graph.offsets))
    half = u < graph.targets
    loop = np.flatnonzero(graph.loops).astype(np.uint32)
    pairs = np.stack((u[half], graph.targets[half]), 1)
    return np.concatenate((pairs, np.stack((loop, loop), 1)))


def networkit(graph: lu.Graph) -> Run:
    """NetworKit's parallel Louvain."""
    import networkit as nk

    nk.setNumberOfThreads(os.cpu_count() or 1)
    ends = tuple(edges(graph).T.astype(np.uint64, order="C"))
    other = nk.GraphFromCoo(ends, n=graph.n_vertices)
    return lambda: nk.community.PLM(other, True).run().getPartition().getVector()


def igraph_graph(graph: lu.Graph) -> Any:
    """Return a graph of igraph, its weights in the attribute "weight"."""
    import igraph

    other = igraph.Graph(n=graph.n_vertices, edges=edges(graph))
    if graph.weights is not None:
        half = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets)) < graph.targets
        other.es["weight"] = np.concatenate((graph.weights[half], graph.loops[graph.loops != 0]))
    return other


def weights_of(other: Any) -> str | None:
    """Return the attribute of weights of a graph of igraph."""
    return "weight" if other.is_weighted() else None


def igraph(graph: lu.Graph) -> Run:
    """Return igraph's sequential Louvain."""
    other = igraph_graph(graph)
    return lambda: other.community_multilevel(weights=weights_of(other)).membership


def igraph_leiden(iterations: int) -> Callable[[lu.Graph], Run]:
    """Return what prepares igraph's sequential Leiden; scanpy's flavor "igraph" is this call."""

    def prepare(graph: lu.Graph) -> Run:
        other = igraph_graph(graph)
        return lambda: (
            other.community_leiden(
                "modularity", weights=weights_of(other), n_iterations=iterations
            ).membership
        )

    return prepare


def leidenalg(graph: lu.Graph) -> Run:
    """Return the sequential Leiden of its authors."""
    import leidenalg as la

    other = igraph_graph(graph)
    return lambda: la.find_partition(other, la.ModularityVertexPartition, seed=SEED).membership


def cells_of(graph: lu.Graph) -> Any:
    """Return an AnnData of cells whose neighbours are a graph's, as scanpy keeps them."""
    import anndata
    import pandas
    from scipy.sparse import csr_matrix

    names = [f"cell{v}" for v in range(graph.n_vertices)]
    found = anndata.AnnData(obs=pandas.DataFrame(index=names))
    found.obsp["connectivities"] = csr_matrix(graph.to_scipy(), dtype=np.float32)
    return found


def our_cells(effort: str) -> Callable[[lu.Graph], Run]:
    """Return what prepares louvain-um's Leiden of an AnnData, communities written to it."""

    def prepare(graph: lu.Graph) -> Run:
        there = cells_of(graph)
        return lambda: (
            lu.leiden(there, key_added="leiden", device="cpu", seed=SEED, effort=effort).labels
        )

    return prepare


def scanpy(graph: lu.Graph) -> Run:
    """scanpy's Leiden of an AnnData with the options it recommends, communities written to it."""
    from scanpy.tools import leiden

    there = cells_of(graph)

    def run() -> Any:
        leiden(there, flavor="igraph", n_iterations=2, directed=False, obsp="connectivities")
        return there.obs["leiden"].astype(int)

    return run


def sknetwork(graph: lu.Graph) -> Run:
    """scikit-network's Louvain."""
    import scipy.sparse as sp
    from sknetwork.clustering import Louvain

    n = graph.n_vertices
    arcs = np.ones(graph.n_arcs), graph.targets.astype(np.int32), graph.offsets.astype(np.int32)
    matrix = sp.csr_matrix(sp.csr_matrix(arcs, shape=(n, n)) + sp.diags(2.0 * graph.loops))
    return lambda: Louvain(random_state=SEED).fit_predict(matrix)


def cugraph(method: str) -> Callable[[lu.Graph], Run]:
    """Return what prepares runs of RAPIDS cuGraph."""

    def prepare(graph: lu.Graph) -> Run:
        import cupy
        import pylibcugraph as plc

        wide = np.int64 if graph.n_arcs >= 2**31 else np.int32
        weights = np.ones(graph.n_arcs) if graph.weights is None else graph.weights
        handle = plc.ResourceHandle()
        there = plc.SGGraph(
            handle,
            plc.GraphProperties(is_symmetric=True, is_multigraph=False),
            cupy.asarray(graph.offsets.astype(wide)),
            cupy.asarray(graph.targets.astype(wide)),
            weight_array=cupy.asarray(weights.astype(np.float32)),
            store_transposed=False,
            renumber=False,
            do_expensive_check=False,
            input_array_format="CSR",
        )

        def run() -> np.ndarray:
            if method == "louvain":
                vertices, clusters, _ = plc.louvain(handle, there, 100, 1e-7, 1.0, False)
            else:
                vertices, clusters, _ = plc.leiden(handle, 0, there, 100, 1.0, 1.0, False)
            labels = np.empty(graph.n_vertices, np.uint32)
            labels[vertices.get()] = clusters.get()
            return labels

        return run

    return prepare


class Peer(NamedTuple):
    """A peer's package, its module, and what prepares its runs."""

    package: str
    module: str
    prepare: Callable[[lu.Graph], Run]
    takes_weights: bool = False
    takes_cells: bool = False


PEERS: dict[str, dict[str, Peer]] = {
    "cpu": {
        REFERENCE: Peer("networkit", "networkit", networkit),
        **{
            f"louvain-um {method.capitalize()}, {effort}": Peer(
                "louvain-um", "louvain_um", ours(method, "cpu", effort), True
            )
            for method in ("louvain", "leiden")
            for effort in EFFORTS
        },
        "igraph multilevel": Peer("igraph", "igraph", igraph, True),
        "igraph Leiden, 2 iterations": Peer("igraph", "igraph", igraph_leiden(2), True),
        "igraph Leiden, to convergence": Peer("igraph", "igraph", igraph_leiden(-1), True),
        **{
            f"louvain-um Leiden of an AnnData, {effort}": Peer(
                "louvain-um", "anndata", our_cells(effort), True, True
            )
            for effort in ("fast", "default")
        },
        "scanpy, flavor igraph, 2 iterations": Peer("scanpy", "scanpy", scanpy, True, True),
        "scikit-network Louvain": Peer("scikit-network", "sknetwork", sknetwork),
        "leidenalg": Peer("leidenalg", "leidenalg", leidenalg),
    },
    "cuda": {
        "louvain-um Louvain": Peer("louvain-um", "louvain_um", ours("louvain", "cuda")),
        "cuGraph Louvain": Peer("pylibcugraph", "pylibcugraph", cugraph("louvain")),
        "louvain-um Leiden": Peer("louvain-um", "louvain_um", ours("leiden", "cuda")),
        "cuGraph Leiden": Peer("pylibcugraph", "pylibcugraph", cugraph("leiden")),
    },
}


def trial(device: str, peer: str, path: str, repeat: int, least: float) -> None:
    """Run one peer in this process; print one JSON object."""
    prepare = PEERS[device][peer].prepare
    # Excludes imports and compilation; the graph is large enough to use all threads.
    rng = np.random.default_rng(0)
    with np.load(path) as file:
        weights = file["weights"] if "weights" in file.files else None
    ring, warm = np.arange(300), rng.integers(0, 9000, (2, 60_000))
    for u, v in (warm, (ring, np.roll(ring, 1))):
        ones = None if weights is None else np.ones(len(u), np.int64)
        prepare(lu.Graph.from_edges(u, v, ones))()
    with Peak() as peak:
        with np.load(path) as file:
            graph = lu.Graph(file["offsets"], file["targets"], weights, file["loops"])
        run = prepare(graph)
        seconds, cpu_seconds = list[float](), list[float]()
        while sum(seconds) < SLOW and (len(seconds) < repeat or sum(seconds) < least):
            since, cpu_since = time.perf_counter(), time.process_time()
            labels = run()
            seconds.append(time.perf_counter() - since)
            cpu_seconds.append(time.process_time() - cpu_since)
    labels = np.asarray(labels)
    found = {
        "seconds": min(seconds), "seconds_median": statistics.median(seconds),
        "cpu_seconds": min(cpu_seconds), "all_seconds": seconds,
        "modularity": lu.modularity(graph, labels), "communities": len(np.unique(labels)),
        "peak_bytes": peak.above,
    }  # fmt: skip
    print(json.dumps(found))


def cells(points: int = 10_000) -> lu.Graph:
    """Return which tetrahedra of a Delaunay triangulation of random points share a face."""
    from scipy.spatial import Delaunay

    box = np.random.default_rng(0).random((points, 3)) * [4, 1, 0.25]
    neighbours = Delaunay(box).neighbors
    u, v = np.repeat(np.arange(len(neighbours)), 4), neighbours.ravel()
    return lu.Graph.from_edges(u[v > u], v[v > u], n_vertices=len(neighbours))


def knn(points: int = 100_000, neighbours: int = 15) -> lu.Graph:
    """Return nearest neighbours of generated cells, of 30 types, weighted as UMAP does.

    A weight falls exponentially with the distance beyond the nearest neighbour's, and those of both
    directions are united: a + b − ab.
    """
    from scipy.sparse import csr_array
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(0)
    types = 1.5 * rng.normal(size=(30, 10))
    places = types[rng.integers(0, 30, points)] + rng.normal(size=(points, 10))
    distance, other = cKDTree(places).query(places, neighbours + 1, workers=-1)
    beyond = distance[:, 1:] - distance[:, 1:2]
    weights = np.exp(-beyond / beyond.mean(axis=1, keepdims=True))
    starts = np.arange(0, weights.size + 1, neighbours)
    one = csr_array((weights.ravel(), other[:, 1:].ravel(), starts), shape=(points, points))
    return lu.as_graph(one + one.T - one * one.T)


def graph_of(name: str, data: Path) -> lu.Graph | None:
    """Return a graph by name; None if its file is missing."""
    if name == "lfr-300k":
        degrees = {"min_degree": 15, "max_degree": 1000, "degree_exponent": 2.5}
        return lfr(300_000, mixing=0.3, seed=1, **degrees).graph
    if name == "rmat17":
        return rmat(17).graph
    if name == "cells":
        return cells()
    if name == CELLS:
        return knn()
    if name in GENERATED:
        return host_graph(name)
    if not (data / name).exists():
        print(f"{data / name} is missing: skipped", flush=True)
        return None
    return lu.read_graph(data / name, symmetrize=True)


def versions(device: str) -> dict[str, str | None]:
    """Return the versions of the peers; None for those that are not installed."""
    found = {}
    for peer in PEERS[device].values():
        try:
            found[peer.package] = version(peer.package)
        except PackageNotFoundError:
            found[peer.package] = None
    return found


def with_speedups(rows: list[dict[str, Any]], peers: list[str]) -> list[dict[str, Any]]:
    """Return rows by graph and peer, with NetworKit's time over each where it ran."""
    rows = [row for row in rows if row["peer"] in peers]
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    rows = sorted(rows, key=lambda row: (graphs.index(row["graph"]), peers.index(row["peer"])))
    first = {row["graph"]: row["seconds"] for row in rows if row["peer"] == REFERENCE}
    return [
        row | {"speedup": first[row["graph"]] / row["seconds"]} if row["graph"] in first else row
        for row in rows
    ]


def planted(arcs: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Return vertices and edges: communities of 128, with two of three edges inside."""
    n, count = arcs // 16, arcs // 2
    rng = np.random.default_rng(1)
    u, v = (rng.integers(0, n, count, dtype=np.uint32) for _ in "uv")
    inside = rng.random(count, dtype=np.float32) < 0.67
    v[inside] = np.minimum((u[inside] & ~np.uint32(127)) | (v[inside] & 127), n - 1)
    return n, u, v


def memory(name: str, method: str) -> dict[str, Any]:
    """Return the bytes that building and detecting take, which no run before may have freed."""
    mmap_large_arrays()
    detect = getattr(lu, method)
    detect(lu.Graph.from_edges([0, 1, 2], [1, 2, 0]), device="cpu", threads=2)
    if name in GENERATED:
        with Peak() as build:
            graph = host_graph(name)
    else:
        n, u, v = planted(int(name))
        with Peak() as build:
            graph = lu.Graph.from_edges(u, v, n_vertices=n)
        del u, v
    n, held, since = graph.n_vertices, graph.nbytes, time.perf_counter()
    with Peak() as run:
        result = detect(graph, device="cpu")
    seconds = time.perf_counter() - since
    # Memory of the generators does not count.
    peak = held + run.above if name in GENERATED else max(build.above, held + run.above)
    return {
        "graph": name if name in GENERATED else "planted", "method": method,
        "vertices": n, "arcs": graph.n_arcs, "build_bytes": build.above, "graph_bytes": held,
        "detect_bytes": run.above, "peak_bytes": peak,
        "bytes_per_arc_above_100_per_vertex": round((peak - 100 * n) / graph.n_arcs, 2),
        "ru_maxrss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "groups": dict(result.memory), "seconds": round(seconds, 2),
        "modularity": result.modularity,
    }  # fmt: skip


def main() -> None:
    """Run every peer on every graph."""
    options = parser(__doc__)
    options.add_argument("graphs", nargs="*", help=f"of {', '.join(GENERATED)}, or real files")
    options.add_argument("--device", choices=list(PEERS), default="cpu")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--only", default="", help="regular expression of peers; others are kept")
    options.add_argument("--memory", choices=("louvain", "leiden"), help="of a CPU, one graph")
    options.add_argument("--trial", nargs=2, metavar=("PEER", "GRAPH"), help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.trial:
        trial(asked.device, *asked.trial, asked.repeat, asked.seconds)
        return
    if asked.memory:
        row, record = memory(*asked.graphs, asked.memory), kept("memory", asked.output)
        print(json.dumps(row))
        rows = replaced(record.get("results", []), row, "graph", "method", "arcs")
        save("memory", {"machine": machine(), "results": rows}, asked.output)
        return
    peers = {
        name: peer for name, peer in PEERS[asked.device].items() if re.search(asked.only, name)
    }
    record: dict[str, Any] = {"machine": machine(), "versions": versions(asked.device)}
    older = kept("peers", asked.output, asked.device) if asked.only else {}
    rows: list[dict[str, Any]] = older.get("results", [])
    for package, known in record["versions"].items() if older else ():  # of peers that are kept
        record["versions"][package] = known or older["versions"].get(package)
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.graphs or (CPU_GRAPHS if asked.device == "cpu" else GPU_GRAPHS):
            graph = graph_of(name, asked.data)
            if graph is None:
                continue
            path = Path(folder) / "graph.npz"
            arrays = {"offsets": graph.offsets, "targets": graph.targets, "loops": graph.loops}
            np.savez(path, **arrays, **({"weights": graph.weights} if graph.weighted else {}))
            for peer, (_, module, _, takes_weights, takes_cells) in peers.items():
                if (graph.weighted and not takes_weights) or (takes_cells and name != CELLS):
                    continue
                if importlib.util.find_spec(module) is None:
                    print(f"{peer}: no module {module}, skipped", flush=True)
                    continue
                command = [sys.executable, __file__, "--device", asked.device]
                command += ["--repeat", str(asked.repeat), "--seconds", str(asked.seconds)]
                load = os.getloadavg()[0]
                done = subprocess.run(
                    [*command, "--trial", peer, path], stdout=subprocess.PIPE, text=True, check=True
                )
                row = {"graph": name, "vertices": graph.n_vertices, "arcs": graph.n_arcs}
                row |= {"peer": peer, "load": load, **json.loads(done.stdout.splitlines()[-1])}
                row["arcs_per_s"] = graph.n_arcs / row["seconds"]
                rows = replaced(rows, row, "graph", "peer")
                print(
                    f"{name:22} {peer:24} {row['seconds']:8.3f} s "
                    f"{row['arcs_per_s'] / 1e6:9.1f} M arcs/s  Q {row['modularity']:.4f} "
                    f"{row['peak_bytes'] >> 20:6} MiB  load {load:.1f}",
                    flush=True,
                )
            record["results"] = with_speedups(rows, list(PEERS[asked.device]))
            save("peers", record, asked.output, asked.device)


if __name__ == "__main__":
    main()
