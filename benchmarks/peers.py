"""Other libraries on the same graphs, with modularity recomputed from their labels.

    python benchmarks/peers.py lfr20 email-Enron.txt.gz --only cugraph,igraph

Peers that are not installed are skipped with a message. Times are of the algorithm alone: the
graph is already in the peer's own format, on the device for GPU libraries.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, GENERATED, device_graph, host_graph, machine, save, timed

import louvain_um as lu

Peer = tuple[str, Callable[[], np.ndarray]]


def ours(graph: lu.Graph, name: str) -> Iterator[Peer]:
    """The engines of louvain-um."""
    from louvain_um.gpu.runtime.device import pick

    for method in ("louvain", "leiden"):
        detect = getattr(lu, method)
        yield f"louvain-um {method} cpu", lambda f=detect: f(graph, device="cpu").labels
    choice = pick("auto")
    if choice.kind == "cuda":
        from louvain_um.core.hierarchy import detect as run
        from louvain_um.gpu.engine import GpuEngine
        from louvain_um.gpu.graph import DeviceGraph
        from louvain_um.options import Options

        there = device_graph(name) if name in GENERATED else DeviceGraph.from_host(graph)
        for method in ("louvain", "leiden"):

            def on_device(method: str = method) -> np.ndarray:
                options = Options(method=method, device="cuda")
                with GpuEngine(options, lambda event: None) as engine:
                    return run(engine, there, options, lambda event: None).labels

            yield f"louvain-um {method} cuda", on_device


def cugraph(graph: lu.Graph, name: str) -> Iterator[Peer]:
    """RAPIDS cuGraph through pylibcugraph, without data frames."""
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

    def sort(vertices: Any, clusters: Any) -> np.ndarray:
        labels = np.empty(graph.n_vertices, np.uint32)
        labels[vertices.get()] = clusters.get()
        return labels

    def louvain() -> np.ndarray:
        vertices, clusters, _ = plc.louvain(handle, there, 100, 1e-7, 1.0, False)
        return sort(vertices, clusters)

    def leiden() -> np.ndarray:
        vertices, clusters, _ = plc.leiden(handle, 0, there, 100, 1.0, 1.0, False)
        return sort(vertices, clusters)

    yield "cugraph louvain", louvain
    yield "cugraph leiden", leiden


def igraph(graph: lu.Graph, name: str) -> Iterator[Peer]:
    """igraph's sequential Louvain."""
    import igraph as ig

    rows = np.repeat(np.arange(graph.n_vertices, dtype=np.uint32), np.diff(graph.offsets))
    upper = rows < graph.targets
    loops = np.flatnonzero(graph.loops)
    ends = np.concatenate(
        (np.column_stack((rows[upper], graph.targets[upper])), np.column_stack((loops, loops)))
    )
    there = ig.Graph(n=graph.n_vertices, edges=ends)
    weights = None
    if graph.weights is not None:
        weights = np.concatenate((graph.weights[upper], graph.loops[loops])).tolist()
    yield "igraph louvain", lambda: np.array(there.community_multilevel(weights).membership)


def networkit(graph: lu.Graph, name: str) -> Iterator[Peer]:
    """NetworKit's parallel Louvain (PLM)."""
    import networkit as nk
    import scipy.sparse

    values = np.ones(graph.n_arcs) if graph.weights is None else graph.weights.astype(float)
    matrix = scipy.sparse.csr_array((values, graph.targets, graph.offsets)).tocoo()
    upper = matrix.row <= matrix.col
    loops = np.flatnonzero(graph.loops)
    there = nk.GraphFromCoo(
        (
            np.concatenate((matrix.data[upper], graph.loops[loops].astype(float))),
            (
                np.concatenate((matrix.row[upper], loops)),
                np.concatenate((matrix.col[upper], loops)),
            ),
        ),
        n=graph.n_vertices,
        weighted=True,
        directed=False,
    )

    def plm() -> np.ndarray:
        found = nk.community.PLM(there, refine=False).run().getPartition()
        return np.array(found.getVector(), np.uint32)

    yield "networkit plm", plm


PEERS: dict[str, tuple[str, Callable[[lu.Graph, str], Iterator[Peer]]]] = {
    "louvain-um": ("louvain_um", ours),
    "cugraph": ("pylibcugraph", cugraph),
    "igraph": ("igraph", igraph),
    "networkit": ("networkit", networkit),
}
"""Name → module required, and a function that yields methods."""


def installed(names: list[str]) -> list[str]:
    """Return the installed peers; print the missing ones; exit if there are none."""
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        sys.exit(f"unknown peer {', '.join(unknown)}; choose from {', '.join(PEERS)}")
    found = [name for name in names if importlib.util.find_spec(PEERS[name][0])]
    for name in names:
        if name not in found:
            print(f"{name} is not installed (no module {PEERS[name][0]}): skipped", flush=True)
    if not found:
        sys.exit("no peer is installed; install one, or choose another with --only")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("graphs", nargs="+", help=f"of {', '.join(GENERATED)}, or real files")
    parser.add_argument("--only", default=",".join(PEERS), help="peers, by commas")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("-o", "--out", type=Path)
    arguments = parser.parse_args()
    wanted = installed(arguments.only.split(","))
    record: dict[str, Any] = {"machine": machine(), "results": []}
    for name in arguments.graphs:
        graph = host_graph(name, arguments.data)
        for peer in wanted:
            for method, function in PEERS[peer][1](graph, name):
                function()  # warm-up
                labels, seconds = timed(function, arguments.runs)
                row = {
                    "graph": name,
                    "vertices": graph.n_vertices,
                    "arcs": graph.n_arcs,
                    "peer": method,
                    "seconds": seconds,
                    "seconds_median": statistics.median(seconds),
                    "modularity": lu.modularity(graph, labels),
                    "communities": len(np.unique(labels)),
                }
                record["results"].append(row)
                print(
                    f"{name:<20} {method:<24} {row['seconds_median'] * 1e3:10.1f} ms  "
                    f"Q {row['modularity']:.4f}  {row['communities']} communities",
                    flush=True,
                )
        save("peers", record, arguments.out)


if __name__ == "__main__":
    try:
        main()
    except lu.LouvainUmError as error:
        sys.exit(str(error))
