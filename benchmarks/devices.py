"""What do several GPUs of one host gain: in one process, as a peer's memory, as ranks?

    python benchmarks/devices.py lfr24 rmat24 --parts devices,peer,ranks -o devices.json
    mpiexec -n 2 python benchmarks/devices.py --parts ranks --mpi

`devices`: one process with the GPUs of each `--devices`, the first being the reference. `peer`:
GPU 0 with a budget, and either another GPU's memory or the host's for what does not fit. `ranks`:
a process and a GPU each, which exchange through the host or NCCL; without `--mpi`, the hosts' part
of exchanges uses queues between processes. `--device cpu` tries ranks without a GPU, and
`--exchanges host` on one. Seconds are those of the algorithm, without loading and fetching. Labels
are compared with those of one GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    ALGORITHM,
    algorithm_seconds,
    device_graph,
    host_graph,
    kept,
    machine,
    parser,
    save,
)

import louvain_um as lu
from louvain_um.distributed.communicator import Communicator
from louvain_um.distributed.partition import blocks_of
from louvain_um.distributed.run import detect_on_rank
from louvain_um.options import Options

WAIT = 600.0
"""Seconds that MPI ranks wait while the first one makes all graphs."""

Row = dict[str, Any]


def repeated(graph: Any, method: str, trials: int, **options: Any) -> tuple[Row, list[Any]]:
    """Return the seconds of some runs after a first one, and their results."""
    runs = [getattr(lu, method)(graph, **options) for _ in range(trials + 1)][1:]
    every = [algorithm_seconds(run.timings) for run in runs]
    return {"seconds": statistics.median(every), "runs": every, **options}, runs


def by_devices(name: str, method: str, asked: argparse.Namespace) -> list[Row]:
    """Return one row for each choice of devices."""
    graph, rows, reference = device_graph(name), list[Row](), None
    for device in asked.devices:
        row, runs = repeated(graph, method, asked.trials, device=device)
        reference = runs[0].labels if reference is None else reference
        row["phases"] = {
            phase: statistics.median(run.timings.get(phase, 0.0) for run in runs)
            for phase in ALGORITHM
        }
        last = runs[-1]
        row |= {
            "seconds_load": last.timings["load"],
            "peak_bytes": sum(last.memory.values()),
            "modularity": last.modularity,
        }
        row |= {"arcs": graph.n_arcs, "vertices": graph.n_vertices}
        rows.append(row | {"equal": bool(np.array_equal(runs[0].labels, reference))})
    return rows


def with_peer(name: str, method: str, asked: argparse.Namespace) -> list[Row]:
    """Return a row in core, and two for each budget: with another GPU's memory and without."""
    graph = device_graph(name).to_host()
    core, runs = repeated(graph, method, asked.trials, device="cuda:0")
    rows, labels = [core], runs[0].labels
    for budget in asked.budgets:
        for peer in (asked.peer, None):
            given = {"device": "cuda:0", "device_budget": budget, "peer_memory": peer}
            row, runs = repeated(graph, method, asked.trials, **given)
            about = runs[0].provenance
            row |= {"placements": about["placements"], "overflowed": about["overflowed"]}
            row |= {"peer": about["peer_memory"], "seconds_planned": about["plan"]["seconds"]}
            row |= {"equal": bool(np.array_equal(labels, runs[0].labels))}
            rows.append(row | {"ratio": row["seconds"] / core["seconds"]})
    return [row | {"arcs": graph.n_arcs, "vertices": graph.n_vertices} for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTask:
    """What every rank runs: graphs in a folder, methods, exchanges, device and trials."""

    folder: str
    names: list[str]
    methods: list[str]
    exchanges: list[Any]
    device: Any
    trials: int


def mapped(folder: Path) -> lu.Graph:
    """Return a graph whose arrays are mapped from files."""
    arrays = {file.stem: np.load(file, mmap_mode="r") for file in folder.glob("*.npy")}
    return lu.Graph(arrays["offsets"], arrays["targets"], arrays.get("weights"), arrays["loops"])


def on_rank(ranks: Communicator, task: RankTask) -> dict[str, Any]:
    """Return what one rank found: runs by graph, method and exchange."""
    runs = {}
    for way in task.exchanges:
        for name in task.names:
            block = blocks_of(mapped(Path(task.folder) / name), ranks.size)[ranks.rank]
            for method in task.methods:
                options = Options(method=method, device=task.device)  # type: ignore[arg-type]
                every = [
                    detect_on_rank(ranks, block, options, exchange=way)
                    for _ in range(task.trials + 1)
                ]
                last = every[-1]
                runs[name, method, way] = {
                    "labels": last.labels,
                    "runs": [algorithm_seconds(run.timings) for run in every[1:]],
                    "modularity": last.modularity,
                    "device": last.provenance["device"],
                    "by_rank": [
                        {key: each[key] for key in ("rank", "work", "exchange", "received")}
                        for each in last.provenance["by_rank"]
                    ],
                    "peak_bytes": sum(last.memory.values()),
                }
    return runs


def as_ranks(asked: argparse.Namespace) -> list[Row]:
    """Return one row for each graph, method and exchange; nothing on other MPI ranks."""
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    ranks: Any = None
    if asked.mpi:
        from louvain_um.distributed.carriers.mpi import MpiCommunicator

        ranks = MpiCommunicator(WAIT)
        asked.ranks = ranks.size
    leads = ranks is None or ranks.rank == 0
    folder, alone = tempfile.mkdtemp(prefix="ranks_"), {}
    for name in asked.graphs if leads else ():
        graph = device_graph(name) if asked.device == "cuda" else host_graph(name)
        here = graph if isinstance(graph, lu.Graph) else graph.to_host()
        (Path(folder) / name).mkdir()
        for array in ("offsets", "targets", "weights", "loops"):
            if getattr(here, array) is not None:
                np.save(Path(folder) / name / f"{array}.npy", getattr(here, array))
        for method in asked.methods:
            row, runs = repeated(graph, method, asked.trials, device=asked.device)
            alone[name, method] = here.n_arcs, runs[0].labels, min(row["runs"])
        del graph, here
    if ranks is not None:  # all on one machine
        paths = ranks.allgatherv(np.frombuffer(folder.encode() if leads else b"", np.uint8))
        folder = bytes(paths[0]).decode()
    task = RankTask(
        folder=folder, names=asked.graphs, methods=asked.methods, exchanges=asked.exchanges,
        device=asked.device, trials=asked.trials,
    )  # fmt: skip
    if ranks is not None:
        every = [on_rank(ranks, task)]
    else:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from tests.distributed.processes import run_processes

        every = run_processes(on_rank, asked.ranks, task, patience=300)
    if not leads:
        return []
    shutil.rmtree(folder)
    rows = []
    for key, mine in every[0].items():
        name, method, exchange = key
        arcs, labels, seconds = alone[name, method]
        equal = all(np.array_equal(labels, each[key]["labels"]) for each in every)
        row = {"graph": name, "method": method, "exchange": exchange, "ranks": asked.ranks}
        row |= {"arcs": arcs, "equal": equal, "seconds": min(mine["runs"])}
        row |= {name: value for name, value in mine.items() if name != "labels"}
        rows.append(row | {"seconds_alone": seconds})
    return rows


def main() -> None:
    """Print, and write, one object per graph, method and way to use several GPUs."""
    given = parser(__doc__)
    given.add_argument("graphs", nargs="*", default=["lfr20", "rmat20"])
    given.add_argument("--parts", default="devices", help="some of devices,peer,ranks")
    given.add_argument("--methods", nargs="+", default=["louvain"])
    given.add_argument("--trials", type=int, default=3)
    given.add_argument("--devices", nargs="+", default=["cuda:0", "cuda:0,1"])
    given.add_argument("--budgets", nargs="+", default=["50%", "30%"], help="of part peer")
    given.add_argument("--peer", default="cuda:1")
    given.add_argument("--ranks", type=int, default=2)
    given.add_argument("--exchanges", nargs="+", default=["host", "nccl"])
    given.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="of ranks")
    given.add_argument("--mpi", action="store_true", help="run ranks as processes of mpiexec")
    asked = given.parse_args()
    record = kept("devices", asked.output, asked.device)
    for part in asked.parts.split(","):
        found: dict[str, Any] = {"machine": machine()}
        if part == "ranks":
            rows = as_ranks(asked)
            found["carrier"] = "mpi" if asked.mpi else "queues between processes"
        else:
            measure = {"devices": by_devices, "peer": with_peer}[part]
            rows = [
                {"graph": name, "method": method} | row
                for name in asked.graphs
                for method in asked.methods
                for row in measure(name, method, asked)
            ]
        for row in rows:
            print(json.dumps(row), flush=True)
        if rows:
            record[part] = found | {"results": rows}
            save("devices", record, asked.output, asked.device)
        if not all(row.get("equal", True) for row in rows):
            sys.exit("labels differ")


if __name__ == "__main__":
    main()
