"""Compare NetworKit, igraph, leidenalg, scikit-network and louvain-um on the CPU.

    python benchmarks/cpu_peers.py [--repeat 3] [--seconds 5] [--data FOLDER] [-o FILE.json]
    python benchmarks/cpu_peers.py --cycles [--data FOLDER] [-o FILE.json]

Every peer runs in its own process. Recorded are the algorithm time with the graph in the peer's
own format, the best of at least `repeat` repetitions over at least `seconds`; modularity,
recomputed from the labels; and peak memory above that before the graph was loaded, including the
peer's format. `cpu_seconds` is the time of all threads in the repetition with the least; other
work on the machine affects it less than `seconds`. `load` is the load average of the minute before
a peer started: above one or two, the machine was busy.

`--cycles` runs Leiden alone with every cycle that could gain something, on each graph of the folder
and of the zoo: modularity after a cycle, the arcs that moving visits in it, how many cycles begin
by the rule of `core/rules.py`, and what that loses of modularity and spares of the visits.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import common
import numpy as np
from memory import Peak
from zoo_kinds import GENERATED, KINDS, made

import louvain_um as lu
from louvain_um.core import rules
from louvain_um.core.hierarchy import MoveStats, detect
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.generators import lfr
from louvain_um.options import Options

HERE = Path(__file__).resolve().parent
SEED = 0


def ours(method: str) -> Callable[[lu.Graph], Callable[[], Any]]:
    def prepare(graph: lu.Graph) -> Callable[[], Any]:
        from louvain_um import api

        return lambda: getattr(api, method)(graph, device="cpu", seed=SEED).labels

    return prepare


def edges(graph: lu.Graph) -> np.ndarray:
    u = np.repeat(np.arange(graph.n_vertices, dtype=np.uint32), np.diff(graph.offsets))
    half = u < graph.targets
    loop = np.flatnonzero(graph.loops).astype(np.uint32)
    pairs = np.stack((u[half], graph.targets[half]), 1)
    return np.concatenate((pairs, np.stack((loop, loop), 1)))


def networkit(graph: lu.Graph) -> Callable[[], Any]:
    import networkit as nk

    nk.setNumberOfThreads(os.cpu_count() or 1)
    pairs = edges(graph)
    ends = tuple(pairs.T.astype(np.uint64, order="C"))
    other = nk.GraphFromCoo(ends, n=graph.n_vertices)

    def run() -> Any:
        plm = nk.community.PLM(other, True)
        plm.run()
        return plm.getPartition().getVector()

    return run


def igraph_graph(graph: lu.Graph) -> Any:
    import igraph

    return igraph.Graph(n=graph.n_vertices, edges=edges(graph))


def igraph(graph: lu.Graph) -> Callable[[], Any]:
    other = igraph_graph(graph)
    return lambda: other.community_multilevel().membership


def leidenalg(graph: lu.Graph) -> Callable[[], Any]:
    import leidenalg as la

    other = igraph_graph(graph)
    return lambda: la.find_partition(other, la.ModularityVertexPartition, seed=SEED).membership


def sknetwork(graph: lu.Graph) -> Callable[[], Any]:
    import scipy.sparse as sp
    from sknetwork.clustering import Louvain

    n = graph.n_vertices
    matrix = sp.csr_matrix(
        (np.ones(graph.n_arcs), graph.targets.astype(np.int32), graph.offsets.astype(np.int32)),
        shape=(n, n),
    ) + sp.diags(2.0 * graph.loops)
    matrix = sp.csr_matrix(matrix)
    return lambda: Louvain(random_state=SEED).fit_predict(matrix)


PEERS: dict[str, tuple[str, Callable[[lu.Graph], Callable[[], Any]]]] = {
    "ours louvain": ("louvain-um", ours("louvain")),
    "NetworKit PLM": ("networkit", networkit),
    "igraph multilevel": ("igraph", igraph),
    "scikit-network Louvain": ("scikit-network", sknetwork),
    "ours leiden": ("louvain-um", ours("leiden")),
    "leidenalg": ("leidenalg", leidenalg),
}


def load(path: str) -> lu.Graph:
    with np.load(path) as file:
        return lu.Graph(file["offsets"], file["targets"], None, file["loops"])


def trial(peer: str, path: str, repeat: int, least: float) -> None:
    """Run one peer in this process; print one JSON object."""
    prepare = PEERS[peer][1]
    # Excludes imports and compilation; the graph is large enough to use all threads.
    rng = np.random.default_rng(0)
    warm = lu.Graph.from_edges(rng.integers(0, 9000, 60_000), rng.integers(0, 9000, 60_000))
    prepare(warm)()
    with Peak() as peak:
        graph = load(path)
        run = prepare(graph)
        seconds, cpu_seconds = list[float](), list[float]()
        while len(seconds) < repeat or sum(seconds) < least:
            since, cpu_since = time.perf_counter(), time.process_time()
            labels = run()
            seconds.append(time.perf_counter() - since)
            cpu_seconds.append(time.process_time() - cpu_since)
    labels = np.asarray(labels)
    found = {
        "seconds": min(seconds),
        "cpu_seconds": min(cpu_seconds),
        "all_seconds": seconds,
        "modularity": lu.modularity(graph, labels),
        "communities": len(np.unique(labels)),
        "peak_bytes": peak.above,
    }
    print(json.dumps(found))


def graphs(data: Path) -> dict[str, lu.Graph]:
    found = {}
    for name in ("web-NotreDame", "soc-Epinions1"):
        if (data / f"{name}.txt.gz").exists():
            found[name] = lu.read_graph(data / f"{name}.txt.gz", symmetrize=True)
    found["lfr-300k"] = lfr(
        300_000, min_degree=10, max_degree=1000, degree_exponent=2.5, mixing=0.3, seed=1
    ).graph
    return found


class Counted(CpuEngine):
    """Counts the arcs that moving visits in each cycle."""

    visited: list[int]

    def load(self, graph: Any) -> Any:
        self.visited = [0]
        return super().load(graph)

    def restart(self, path: list[Any]) -> Any:
        self.visited.append(0)
        return super().restart(path)

    def move(self, level: Any) -> MoveStats:
        moved = super().move(level)
        self.visited[-1] += moved.arcs_visited
        return moved


def cycles(graph: lu.Graph, seed: int) -> dict[str, Any]:
    """Return what each cycle of Leiden reached, and what it visited for that."""

    def run() -> tuple[list[float], list[int]]:
        engine = Counted(options, ignore)
        levels = detect(engine, graph, options, ignore).levels
        return [*{level.cycle: level.modularity for level in levels}.values()], engine.visited

    options = Options(method="leiden", seed=seed, device="cpu")
    begun = len(run()[1])
    with mock.patch.object(rules, "LATER_CYCLE_FACTOR", 1):
        modularity, visited = run()
    return {"modularity": modularity, "arcs_visited": visited, "begun": begun}


def cycled_graphs(data: Path) -> Iterator[tuple[str, lu.Graph]]:
    """Yield every graph of a folder and of the zoo, and that made for the peers."""
    yield from ((name, common.host_graph(name, data)) for name in common.real_names(data))
    yield from ((kind, made(np, kind, 2_000_000)) for kind in (*KINDS, *GENERATED))
    yield "lfr-300k", graphs(data)["lfr-300k"]


def record_cycles(data: Path, out: Path | None) -> None:
    """Show and write what the cycles of Leiden gain."""
    found = []
    for name, graph in cycled_graphs(data):
        rows = [cycles(graph, seed) for seed in range(4)]
        lost = [1 - row["modularity"][: row["begun"]][-1] / row["modularity"][-1] for row in rows]
        visits = [sum(row["arcs_visited"][: row["begun"]]) for row in rows]
        every = [sum(row["arcs_visited"]) for row in rows]
        sums = {
            "lost": np.mean(lost),
            "lost_most": max(lost),
            "spared": 1 - sum(visits) / sum(every),
        }
        found.append({"graph": name, "arcs": graph.n_arcs, **sums, "seeds": rows})
        lost, most, spared = sums.values()
        print(f"{name:42} lost {lost:.4%}, at most {most:.4%}; spared {spared:.1%}", flush=True)
    common.save("leiden_cycles", {"machine": common.machine(), "results": found}, out)


def machine() -> dict[str, Any]:
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [x.split(":")[1] for x in info.read_text().splitlines() if "model name" in x]
        model = models[0].strip() if models else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {package: version(package) for package, _ in PEERS.values()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--data", type=Path, default=HERE / "../../shared/data")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--trial", nargs=2, metavar=("PEER", "GRAPH"), help=argparse.SUPPRESS)
    parser.add_argument("--cycles", action="store_true", help="what cycles of Leiden gain")
    given = parser.parse_args()
    if given.cycles:
        record_cycles(given.data, given.output)
        return
    given.output = given.output or HERE / "results/cpu_peers.json"
    if given.trial:
        trial(*given.trial, given.repeat, given.seconds)
        return
    report: dict[str, Any] = {"machine": machine(), "results": []}
    print(
        f"{'graph':14} {'peer':24} {'seconds':>8} {'M arcs/s':>9} {'Q':>7} {'MiB':>6} {'load':>5}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, graph in graphs(given.data).items():
            path = str(Path(folder) / f"{name}.npz")
            np.savez(path, offsets=graph.offsets, targets=graph.targets, loops=graph.loops)
            for peer in PEERS:
                load = os.getloadavg()[0]
                command = [sys.executable, __file__, "--repeat", str(given.repeat)]
                command += ["--seconds", str(given.seconds)]
                done = subprocess.run(
                    [*command, "--trial", peer, path], stdout=subprocess.PIPE, text=True, check=True
                )
                row = json.loads(done.stdout.splitlines()[-1])
                rate = graph.n_arcs / row["seconds"]
                report["results"].append(
                    {
                        "graph": name,
                        "arcs": graph.n_arcs,
                        "peer": peer,
                        "arcs_per_s": rate,
                        "load": load,
                        **row,
                    }
                )
                print(
                    f"{name:14} {peer:24} {row['seconds']:8.3f} {rate / 1e6:9.1f} "
                    f"{row['modularity']:7.4f} {row['peak_bytes'] >> 20:6} {load:5.1f}",
                    flush=True,
                )
    given.output.parent.mkdir(exist_ok=True)
    given.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
