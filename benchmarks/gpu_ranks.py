"""Ranks that are processes with a GPU each: labels, seconds, and what an exchange takes.

    python benchmarks/gpu_ranks.py lfr20 rmat20 --ranks 2 --exchanges host nccl -o gpu_ranks.json
    mpiexec -n 2 python benchmarks/gpu_ranks.py --mpi

Labels are compared with those of one GPU in one process. Seconds are those of the algorithm, as in
`gpu_devices.py`. Without `--mpi`, the hosts' part of exchanges goes over queues between processes.
`--exchanges host --ranks 2` runs on one GPU, too; NCCL takes a GPU for each rank. `--device cpu`
tries the script where there is none.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from common import device_graph, host_graph, machine, save

import louvain_um as lu
from louvain_um.distributed.carriers.nccl import NcclCommunicator, NcclLink
from louvain_um.distributed.communicator import Communicator
from louvain_um.distributed.device_steps import StagedLink
from louvain_um.distributed.partition import blocks_of
from louvain_um.distributed.run import detect_on_rank
from louvain_um.distributed.visible import on_device
from louvain_um.options import Options

PHASES = ("move", "refine", "aggregate")
PATIENCE = 600.0
"""Seconds that ranks wait, under MPI, while the first one makes all graphs."""

BYTES = (8, 1 << 10, 1 << 17, 1 << 20, 1 << 24, 1 << 27)


def seconds_of(timings: Any) -> float:
    return sum(timings.get(phase, 0.0) for phase in PHASES)


def write(graph: lu.Graph, folder: Path) -> None:
    """Write a graph's arrays, which every rank maps."""
    for name in ("offsets", "targets", "weights", "loops"):
        if getattr(graph, name) is not None:
            np.save(folder / f"{name}.npy", getattr(graph, name))


def mapped(folder: Path) -> lu.Graph:
    arrays = {file.stem: np.load(file, mmap_mode="r") for file in folder.glob("*.npy")}
    return lu.Graph(arrays["offsets"], arrays["targets"], arrays.get("weights"), arrays["loops"])


def detected(
    ranks: Communicator, folder: Path, method: str, device: str, exchange: Any, trials: int
) -> dict[str, Any]:
    """Return a rank's seconds in some runs, its labels, and what it did with its time."""
    block = blocks_of(mapped(folder), ranks.size)[ranks.rank]
    options = Options(method=method, device=device)
    runs = [detect_on_rank(ranks, block, options, exchange=exchange) for _ in range(trials + 1)]
    last = runs[-1]
    return {
        "labels": last.labels,
        "runs": [seconds_of(run.timings) for run in runs[1:]],
        "modularity": last.modularity,
        "device": last.provenance["device"],
        "by_rank": [
            {name: each[name] for name in ("rank", "work", "exchange", "received")}
            for each in last.provenance["by_rank"]
        ],
        "peak_bytes": sum(last.memory.values()),
    }


def exchanged(ranks: Communicator, exchange: Any) -> list[dict[str, Any]]:
    """Return the seconds in which every rank gets so many bytes of each, GPU to GPU."""
    import cupy

    found = []
    with ExitStack() as stack:
        stack.enter_context(on_device(ranks, exchange))
        link: StagedLink | NcclLink = StagedLink(ranks)
        if exchange == "nccl":
            link = NcclLink(stack.enter_context(NcclCommunicator(ranks)))
        for nbytes in BYTES:
            sent = cupy.arange(nbytes // 4, dtype=cupy.uint32)
            into = cupy.empty(ranks.size * sent.size, cupy.uint32)
            times = []
            for _ in range(5):
                since = time.perf_counter()
                assert link.gather([sent], [into]) == into.size
                times.append(time.perf_counter() - since)
            assert bool((into[-sent.size :] == sent).all())
            found.append({"bytes": nbytes, "seconds": statistics.median(times[1:])})
    return found


def run(
    ranks: Communicator, folder: str, names: list[str], methods: list[str], exchanges: list[str],
    device: str, trials: int,
) -> dict[str, Any]:  # fmt: skip
    """Return all that one rank found."""
    keys = [(name, method, way) for way in exchanges for name in names for method in methods]
    runs = {
        (name, method, way): detected(ranks, Path(folder) / name, method, device, way, trials)
        for name, method, way in keys
    }
    rates = {way: exchanged(ranks, way) for way in exchanges if device == "cuda"}
    return {"runs": runs, "rates": rates}


def main() -> None:
    """Print, and write, one object per graph, method and way to exchange."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", default=["lfr20", "rmat20"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--exchanges", nargs="+", default=["host", "nccl"])
    parser.add_argument("--methods", nargs="+", default=["louvain", "leiden"])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--mpi", action="store_true", help="run in the processes of mpiexec")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    ranks: Any = None
    if options.mpi:
        from louvain_um.distributed.carriers.mpi import MpiCommunicator

        ranks = MpiCommunicator(PATIENCE)
        options.ranks = ranks.size
    leads = ranks is None or ranks.rank == 0
    folder = tempfile.mkdtemp(prefix="gpu_ranks_")
    ones = {}
    for name in options.graphs if leads else ():
        graph = device_graph(name) if options.device == "cuda" else host_graph(name)
        here = graph if isinstance(graph, lu.Graph) else graph.to_host()
        (Path(folder) / name).mkdir()
        write(here, Path(folder) / name)
        for method in options.methods:
            alone = [getattr(lu, method)(graph, device=options.device) for _ in range(3)][1:]
            ones[name, method] = here.n_arcs, alone
        del graph, here
    if ranks is not None:  # all of one machine
        told = ranks.allgatherv(np.frombuffer(folder.encode() if leads else b"", np.uint8))
        folder = bytes(told[0]).decode()
    given: tuple[Any, ...] = (folder, options.graphs, options.methods, options.exchanges)
    given += (options.device, options.trials)
    if ranks is None:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from tests.distributed.processes import run_processes

        every = run_processes(run, options.ranks, *given, patience=300)
    else:
        every = [run(ranks, *given)]
    if not leads:
        return
    shutil.rmtree(folder)
    results = []
    for key, mine in every[0]["runs"].items():
        name, method, exchange = key
        arcs, alone = ones[name, method]
        equal = [np.array_equal(alone[0].labels, each["runs"][key]["labels"]) for each in every]
        found = {"graph": name, "method": method, "exchange": exchange, "ranks": options.ranks}
        found |= {"arcs": arcs, "equal": all(equal)}
        found |= {"seconds": min(mine["runs"]), **{k: v for k, v in mine.items() if k != "labels"}}
        found["seconds_alone"] = min(seconds_of(each.timings) for each in alone)
        results.append(found)
        print(json.dumps(found), flush=True)
    rates = every[0]["rates"]
    print(json.dumps(rates), flush=True)
    if options.output:
        carrier = "mpi" if options.mpi else "queues between processes"
        value = {"machine": machine(), "carrier": carrier, "results": results, "rates": rates}
        save("gpu_ranks", value, options.output)
    if not all(each["equal"] for each in results):
        sys.exit("labels differ")


if __name__ == "__main__":
    main()
