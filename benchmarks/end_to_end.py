"""From a file or an array to labels, warm and cold, compared with reading the same bytes.

    python benchmarks/end_to_end.py [--graph lfr22 | --edges N] [--runs 3] [--commands] [--out FILE]

Takes a generated graph (with `--edges`, a random one, which needs no GPU) and gives its edges, in
random order, as a CSV file, a Parquet file, an ``.npz`` file of ours, a SciPy matrix and, on a
GPU, a CuPy matrix and two CuPy arrays. Each is made into labels by ``lu.louvain``, in one process:
the first call is cold in this process, the fastest of the others warm. Files are in the page cache.
Without a GPU, each is also made into the graph alone. Floors of the same run:
`pyarrow.csv.read_csv`, `pyarrow.parquet.read_table`, `numpy.load`, one sort of as many keys as
there are arcs. `--commands` also times whole commands. On Linux, `peak` is the most memory of the
host that a warm call takes, relative to the graph's arrays.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from common import device_graph, machine, save
from scipy.sparse import csr_array

import louvain_um as lu
from louvain_um.errors import DeviceUnavailableError
from louvain_um.gpu.runtime.device import pick


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--graph", default="lfr22")
    parser.add_argument("--edges", type=int, help="a random graph of so many edges instead")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--commands", action="store_true", help="also time whole commands")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    gpu = on_gpu()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), given, gpu=gpu)
    graph = given.graph if given.edges is None else f"random, {given.edges} edges"
    record = {"machine": machine(), "graph": graph, "rows": rows}
    save("end_to_end", record, given.out, "cuda" if gpu else "cpu")
    for row in rows:
        print(*(f"{key} {value}" for key, value in row.items()), sep="  ")


def on_gpu() -> bool:
    """Return whether there is a GPU."""
    try:
        return pick("cuda").kind == "cuda"
    except DeviceUnavailableError:
        return False


def edges_of(given: argparse.Namespace) -> tuple[Any, Any, int]:
    """Return the ends of the graph's edges in random order, and its vertices."""
    rng = np.random.default_rng(1)
    if given.edges is not None:
        n = max(2, given.edges // 20)
        u, v = (rng.integers(0, n, given.edges, np.uint32) for _ in range(2))
        return u, v, n
    graph = device_graph(given.graph).to_host(check=False)
    u = np.repeat(np.arange(graph.n_vertices, dtype=np.uint32), np.diff(graph.offsets))
    once = u < graph.targets
    order = rng.permutation(int(once.sum()))
    return u[once][order], graph.targets[once][order], graph.n_vertices


def measure(folder: Path, given: argparse.Namespace, *, gpu: bool) -> list[dict[str, Any]]:
    """Return seconds of every source, and of its floor."""
    u, v, n = edges_of(given)
    table = pa.table({"source": u, "target": v})
    csv, parquet, npz = (folder / f"g.{suffix}" for suffix in ("csv", "parquet", "npz"))
    pa.csv.write_csv(table, csv)
    pa.parquet.write_table(table, parquet)
    graph = lu.as_graph((u, v))
    lu.write_graph(npz, graph)
    ones = np.ones(graph.n_arcs, np.float32)
    matrix = csr_array((ones, graph.targets.view(np.int32), graph.offsets), shape=(n, n))

    def detected(source: Any) -> Any:
        return lu.louvain(source, device="cuda" if gpu else "cpu")

    ways: dict[str, tuple[Callable[[], Any], Callable[[], Any] | None]] = {
        "graph in host memory": (lambda: detected(graph), None),
        "CSV": (lambda: detected(csv), lambda: pa.csv.read_csv(csv)),
        "Parquet": (lambda: detected(parquet), lambda: pa.parquet.read_table(parquet)),
        "npz": (lambda: detected(npz), lambda: dict(np.load(npz))),
        "pandas frame": (lambda: detected(frame), None),
        "SciPy CSR": (lambda: detected(matrix), lambda: matrix.data.copy()),
    }
    frame = table.to_pandas()
    if gpu:
        import cupy
        from cupyx.scipy import sparse

        ends = cupy.asarray(u), cupy.asarray(v)
        there = sparse.csr_matrix(matrix.astype(np.float32))
        keys = cupy.random.randint(0, 2**62, graph.n_arcs, dtype=cupy.int64)
        ways["CuPy CSR"] = (lambda: detected(there), None)
        ways["CuPy (u, v)"] = (lambda: detected(ends), lambda: synchronized(cupy.sort(keys)))
    if not gpu:
        for name, source in (("CSV", csv), ("Parquet", parquet), ("SciPy CSR", matrix)):
            ways[f"{name}, the graph alone"] = (lambda source=source: lu.as_graph(source), None)
    rows = [row_of(name, *way, given.runs, graph.nbytes) for name, way in ways.items()]
    small = folder / "small.txt"
    np.savetxt(small, np.random.default_rng(2).integers(0, 34, (78, 2)), "%d")
    commands = [["--help"], ["detect", str(small)]]
    commands += [
        ["detect", str(path), "-o", f"{path}.labels{path.suffix}", "--force"]
        for path in (parquet, csv)
    ]
    for command in commands if given.commands else ():
        name = " ".join(Path(word).name for word in command)
        rows.append(row_of(name, lambda command=command: run(command), None, given.runs))
    return rows


def synchronized(array: Any) -> Any:
    """Wait for the device."""
    array.device.synchronize()
    return array


def run(command: list[str]) -> None:
    """Run a command of louvain-um to its end, with compiled modules as an installation has."""
    words = [sys.executable, "-m", "louvain_um", *command]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(words, check=True, env=env, **quiet)


def row_of(
    name: str,
    way: Callable[[], Any],
    floor: Callable[[], Any] | None,
    runs: int,
    nbytes: int | None = None,
) -> dict[str, Any]:
    """Return the first and the fastest of further runs, and the fastest of the floor."""
    cold, held = seconds(way), resident("VmRSS")
    if held is not None:
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM becomes what is resident now
    row = {"source": name, "cold": cold, "warm": min(seconds(way) for _ in range(runs))}
    if held is not None and nbytes is not None:
        row["peak"] = round(((resident("VmHWM") or held) - held) / nbytes, 2)
    if floor is not None:
        row["floor"] = min(seconds(floor) for _ in range(runs))
    return row


def resident(name: str) -> int | None:
    """Return what Linux says of this process's resident bytes."""
    path = Path("/proc/self/status")
    lines = path.read_text().splitlines() if path.exists() else ()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name)), None)


def seconds(work: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    begin = time.perf_counter()
    work()
    return round(time.perf_counter() - begin, 4)


if __name__ == "__main__":
    main()
