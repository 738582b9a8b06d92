"""From a file or an array to labels or a graph, compared with reading the same bytes, and pandas.

    python benchmarks/end_to_end.py [--graphs lfr22 rmat22 | --edges N] [--runs 3] [--commands]
                                    [--parts rows fresh] [--sources CSV] [-o FILE]
    python benchmarks/end_to_end.py --parts numbers names [--edges N] [--runs 9]

Takes generated graphs (with `--edges`, a random one, which needs no GPU) and gives their edges, in
random order, as a CSV file, a Parquet file, an ``.npz`` file of ours, a SciPy matrix and, on a
GPU, a CuPy matrix and two CuPy arrays. Each is made into labels by ``lu.louvain``, in one process:
the first call is cold in this process, the fastest of the others warm. Files are in the page cache.
Without a GPU, each is also made into the graph alone. Floors of the same run:
`pyarrow.csv.read_csv`, `pyarrow.parquet.read_table`, `numpy.load`, one sort of as many keys as
there are arcs. A GPU parses the CSV file and, for comparison, so does the host: the program ends
with an error if their labels differ. `--commands` also times whole commands. `peak`
is the most memory of the host that a warm call takes, relative to the graph's arrays.

The part `fresh` times the first calls on a GPU with empty caches of kernels, in a process that runs
Louvain, Leiden and Louvain of a CSV file, in this order: as installed, after `louvain-um warmup`,
and with CUDA kernels that a wheel, which it builds and installs, has for this GPU (that takes
setuptools). `more` is relative to a second process with the same caches. Parts that are not
measured stay in the record, and with `--sources` other rows of a part do.

The parts `numbers` and `names` compare reading with pandas. Numbers: files of 5 M edges: ids
separated by tabs; ids and weights separated by commas, with all digits of a double; the same with
three decimals. pandas returns columns of numbers; louvain-um also numbers the vertices, merges
duplicate edges and sorts the rows. Names: 1 M edges between 200,000 named vertices, as a file and
as a pandas frame. pandas numbers the names in sorted order (`factorize`); louvain-um also builds
the graph, with and without Arrow. Readers alternate, so that other work on the machine affects all
of them; the fastest run counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from common import HERE, Peak, device_graph, kept, machine, parser, save
from scipy.sparse import csr_array

import louvain_um as lu
from louvain_um.errors import DeviceUnavailableError
from louvain_um.formats import tables
from louvain_um.gpu.building import edges
from louvain_um.gpu.runtime.device import capabilities, pick

FIRST_CALLS = """
import json, sys, time
ends = [time.perf_counter()]
import louvain_um as lu
for call, file in (lu.louvain, 1), (lu.leiden, 1), (lu.louvain, 2):
    call(sys.argv[file], device="cuda")
    ends.append(time.perf_counter())
print(json.dumps([after - before for before, after in zip(ends, ends[1:])]))
"""
"""A program that prints the seconds of its calls, the first with imports and CUDA's start."""

CACHES = ("NUMBA_CACHE_DIR", "LOUVAIN_UM_CACHE", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")


READERS = {"numbers": 5_000_000, "names": 1_000_000}
"""Parts that compare reading with pandas, and their edges."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--graphs", nargs="+", default=["lfr22", "rmat22"])
    options.add_argument("--edges", type=int, help="a random graph of so many edges instead")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--commands", action="store_true", help="also time whole commands")
    parts = ("rows", "fresh", *READERS)
    options.add_argument("--parts", nargs="+", choices=parts, default=["rows"])
    options.add_argument("--sources", nargs="+", help="only these rows")
    given = options.parse_args()
    readers = [part for part in given.parts if part in READERS]
    if readers:
        compare_readers(readers, given)
        return
    gpu = on_gpu()
    record = kept("end_to_end", given.output, "cuda" if gpu else "cpu") | {"machine": machine()}
    graphs = given.graphs if given.edges is None else [f"random, {given.edges} edges"]
    measured = {(graph, source) for graph in graphs for source in given.sources or ()}
    for part in given.parts:
        rows = record.get(part, []) if given.sources and part == "rows" else []
        record[part] = [row for row in rows if (row["graph"], row["source"]) not in measured]
    for graph in graphs:
        with tempfile.TemporaryDirectory() as folder:
            ends = edges_of(graph, given.edges)
            files = written(Path(folder), *ends)
            for part in given.parts:
                rows = fresh(files) if part == "fresh" else measure(*ends, files, given, gpu=gpu)
                for row in rows:
                    record[part].append({"graph": graph, **row})
                    print(*(f"{key} {value}" for key, value in row.items()), sep="  ", flush=True)
                    save("end_to_end", record, given.output, "cuda" if gpu else "cpu")


def on_gpu() -> bool:
    """Return whether there is a GPU."""
    try:
        return pick("cuda").kind == "cuda"
    except DeviceUnavailableError:
        return False


def edges_of(name: str, edges: int | None) -> tuple[Any, Any]:
    """Return the ends of a graph's edges in random order, or those of a random graph."""
    if edges is not None:
        rng = np.random.default_rng(1)
        n = max(2, edges // 20)
        return rng.integers(0, n, edges, np.uint32), rng.integers(0, n, edges, np.uint32)
    import cupy

    graph = device_graph(name)
    u = cupy.searchsorted(graph.offsets, cupy.arange(graph.n_arcs), "right").astype(np.uint32) - 1
    once = cupy.flatnonzero(u < graph.targets)
    order = once[cupy.random.RandomState(1).permutation(len(once))]
    found = u[order].get(), graph.targets[order].get()
    del graph, u, once, order
    cupy.get_default_memory_pool().free_all_blocks()
    return found


def written(folder: Path, u: Any, v: Any) -> dict[str, Path]:
    """Return the files of a graph, by type."""
    files = {suffix: folder / f"g.{suffix}" for suffix in ("csv", "parquet", "npz")}
    table = pa.table({"source": u, "target": v})
    pa.csv.write_csv(table, files["csv"])
    pa.parquet.write_table(table, files["parquet"])
    lu.write_graph(files["npz"], lu.as_graph((u, v)))
    return files


def fresh(files: dict[str, Path]) -> Iterator[dict[str, Any]]:
    """Yield seconds of the first calls by what an environment holds already."""
    folder = files["npz"].parent
    program = [sys.executable, "-c", FIRST_CALLS, str(files["npz"]), str(files["csv"])]

    def environment(caches: str, root: Path = HERE.parent) -> dict[str, str]:
        paths = {name: str(folder / caches / name) for name in CACHES}
        return os.environ | paths | {"PYTHONPATH": str(root)}

    def calls(name: str, env: dict[str, str]) -> dict[str, Any]:
        options = {"env": env, "cwd": folder}  # where no other package is found first
        first, again = (json.loads(subprocess.check_output(program, **options)) for _ in range(2))
        more = [round(a - b, 3) for a, b in zip(first, again, strict=True)]
        return {"environment": name, "first": first, "again": again, "more": more}

    yield calls("as installed", environment("empty"))
    env = environment("warmed")
    spent = seconds(lambda: run(["warmup", "--quiet"], env))
    yield {**calls("after warmup", env), "warmup": spent}
    yield calls("with CUDA kernels", environment("shipped", installed(folder, env)))


def installed(folder: Path, env: Mapping[str, str]) -> Path:
    """Return where a wheel with CUDA kernels for this GPU is installed, which is built for it."""
    source, target = folder / "source", folder / "installed"
    ignored = shutil.ignore_patterns(".*", "tests", "docs", "benchmarks")
    shutil.copytree(HERE.parent, source, symlinks=True, ignore=ignored)
    major, minor = capabilities()[0]
    images = source / "louvain_um" / "gpu" / "images"
    run(["warmup", "--architecture", f"{major}{minor}", "--into", str(images)], env)
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--target", str(target)]
    words = [sys.executable, "-m", "pip", "install", "--quiet", *options, str(source)]
    subprocess.run(words, check=True)
    return target


def measure(
    u: Any, v: Any, files: dict[str, Path], given: argparse.Namespace, *, gpu: bool
) -> Iterator[dict[str, Any]]:
    """Yield seconds of every source, and of its floor."""
    csv, parquet, npz = files["csv"], files["parquet"], files["npz"]
    graph = lu.as_graph((u, v))
    ones = np.ones(graph.n_arcs, np.float32)
    targets, n = graph.targets.view(np.int32), graph.n_vertices
    matrix = csr_array((ones, targets, graph.offsets), shape=(n, n))

    def detected(source: Any) -> Any:
        return lu.louvain(source, device="cuda" if gpu else "cpu")

    def by_host() -> Any:
        with patch.object(edges, "LEAST_BYTES", 1 << 62):
            return detected(csv)

    ways: dict[str, tuple[Callable[[], Any], Callable[[], Any] | None]] = {
        "graph in host memory": (lambda: detected(graph), None),
        "CSV": (lambda: detected(csv), lambda: pa.csv.read_csv(csv)),
        "Parquet": (lambda: detected(parquet), lambda: pa.parquet.read_table(parquet)),
        "npz": (lambda: detected(npz), lambda: dict(np.load(npz))),
        "pandas frame": (lambda: detected(frame), None),
        "pandas frame, ids of 64 bits": (lambda: detected(sparse), None),
        "SciPy CSR": (lambda: detected(matrix), lambda: matrix.data.copy()),
    }
    frame = pandas.DataFrame({"source": u, "target": v})
    spread = np.uint64(0x9E3779B97F4A7C15)  # odd, so that ids stay different
    sparse = (frame.astype(np.uint64) * spread // np.uint64(2)).astype(np.int64)
    if gpu:
        import cupy
        from cupyx.scipy.sparse import csr_matrix

        ends = cupy.asarray(u), cupy.asarray(v)
        there = csr_matrix(matrix.astype(np.float32))
        keys = cupy.random.randint(0, 2**62, graph.n_arcs, dtype=cupy.int64)
        ways["CSV, parsed by the host"] = (by_host, None)
        ways["CuPy CSR"] = (lambda: detected(there), None)
        ways["CuPy (u, v)"] = (lambda: detected(ends), lambda: synchronized(cupy.sort(keys)))
    if not gpu:
        for name, source in (("CSV", csv), ("Parquet", parquet), ("SciPy CSR", matrix)):
            ways[f"{name}, the graph alone"] = (lambda source=source: lu.as_graph(source), None)
    for name, way in ways.items():
        if not given.sources or name in given.sources:
            yield row_of(name, *way, given.runs, graph.nbytes)
    if gpu and not np.array_equal(by_host().labels, detected(csv).labels):
        raise SystemExit(f"{csv}: other labels where the host parses it")
    small = csv.with_name("small.txt")
    np.savetxt(small, np.random.default_rng(2).integers(0, 34, (78, 2)), "%d")
    commands = [["--help"], ["detect", str(small)]]
    commands += [
        ["detect", str(path), "-o", f"{path}.labels{path.suffix}", "--force"]
        for path in (parquet, csv)
    ]
    for command in commands if given.commands else ():
        name = " ".join(Path(word).name for word in command)
        yield row_of(name, lambda command=command: run(command), None, given.runs)


def synchronized(array: Any) -> Any:
    """Wait for the device."""
    array.device.synchronize()
    return array


def run(command: list[str], environment: Mapping[str, str] = os.environ) -> None:
    """Run a command of louvain-um to its end, with compiled modules as an installation has."""
    words = [sys.executable, "-m", "louvain_um", *command]
    env = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
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
    cold = seconds(way)
    with Peak() as peak:
        row = {"source": name, "cold": cold, "warm": min(seconds(way) for _ in range(runs))}
    if nbytes is not None:
        row["peak"] = round(peak.above / nbytes, 2)
    if floor is not None:
        row["floor"] = min(seconds(floor) for _ in range(runs))
    return row


def seconds(work: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    begin = time.perf_counter()
    work()
    return round(time.perf_counter() - begin, 4)


def lists(folder: Path, edges: int) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Write the lists; return their paths and the options for pandas."""
    rng = np.random.default_rng(1)
    n = max(2, edges // 5)
    ids = {"source": rng.integers(0, n, edges), "target": rng.integers(0, n, edges)}
    weights = rng.random(edges) * 10
    plain, full, short = (folder / name for name in ("plain.tsv", "full.csv", "short.csv"))
    pandas.DataFrame(ids).to_csv(plain, sep="\t", header=False, index=False)
    pandas.DataFrame({**ids, "weight": weights}).to_csv(full, index=False)
    pandas.DataFrame({**ids, "weight": weights.round(3)}).to_csv(short, index=False)
    return {
        "unweighted, tabs": (plain, {"sep": "\t", "header": None}),
        "weighted, commas, all digits": (full, {}),
        "weighted, commas, three decimals": (short, {}),
    }


def named_frame(edges: int) -> pandas.DataFrame:
    """Return edges between named vertices, a fifth as many as edges."""
    rng = np.random.default_rng(1)
    n = max(2, edges // 5)
    names = np.array([f"user{i:07d}" for i in rng.permutation(n)])
    return pandas.DataFrame({end: names[rng.integers(0, n, edges)] for end in ("source", "target")})


def factorize(frame: pandas.DataFrame) -> object:
    """Number the names of both columns in sorted order, as pandas does it."""
    ends = (frame[end].to_numpy(object) for end in ("source", "target"))
    return pandas.factorize(np.concatenate(list(ends)), sort=True)


def without_arrow(frame: pandas.DataFrame) -> object:
    """Build the graph of a frame as if pyarrow were missing."""
    least, tables.ARROW_EDGES = tables.ARROW_EDGES, sys.maxsize
    try:
        return lu.as_graph(frame)
    finally:
        tables.ARROW_EDGES = least


def clock(call: Callable[[], object]) -> tuple[float, float]:
    """Return the wall-clock and processor seconds of a call."""
    wall, busy = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - busy


def alternately(
    title: str, edges: int, runs: int, peers: dict[str, Callable[[], object]]
) -> dict[str, Any]:
    """Time the readers alternately, after a warm-up of each."""
    for call in peers.values():
        call()  # compiles
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
    for _ in range(runs):
        for name, call in peers.items():
            seconds[name].append(clock(call))
    least = {name: min(walls)[0] for name, walls in seconds.items()}
    ratio = least["louvain_um"] / least["pandas"]
    shown = ", ".join(f"{name} {value:.3f} s" for name, value in least.items())
    print(f"{title}: {shown}, ratio {ratio:.2f}", flush=True)
    return {
        "file": title, "edges": edges, "ratio": ratio,
        **{f"{name}_seconds": value for name, value in least.items()},
        **{f"{name}_cpu_seconds": min(busy for _, busy in seconds[name]) for name in peers},
        **{f"{name}_all_seconds": [wall for wall, _ in seconds[name]] for name in peers},
    }  # fmt: skip


def numbers(folder: Path, edges: int, runs: int) -> list[dict[str, Any]]:
    """Measure lists whose ids are numbers."""
    results = []
    for title, (path, options) in lists(folder, edges).items():
        peers = {
            "louvain_um": lambda path=path: lu.read_graph(path),
            "pandas": lambda path=path, options=options: pandas.read_csv(
                path, engine="c", **options
            ),
        }
        results.append({**alternately(title, edges, runs, peers), "bytes": path.stat().st_size})
    return results


def names(folder: Path, edges: int, runs: int) -> list[dict[str, Any]]:
    """Measure lists whose ids are names, from a file and from a frame."""
    path, frame = folder / "names.csv", named_frame(edges)
    frame.to_csv(path, index=False)
    of_file = {
        "louvain_um": lambda: lu.read_graph(path),
        "pandas": lambda: factorize(pandas.read_csv(path)),
    }
    of_frame = {
        "louvain_um": lambda: lu.as_graph(frame),
        "louvain_um_without_arrow": lambda: without_arrow(frame),
        "pandas": lambda: factorize(frame),
    }
    return [
        {**alternately("names, commas", edges, runs, of_file), "bytes": path.stat().st_size},
        alternately("names, a pandas frame", edges, runs, of_frame),
    ]


def compare_readers(parts: list[str], given: argparse.Namespace) -> None:
    """Compare reading with pandas, and save."""
    record = kept("reading", given.output)
    about = {**machine(), "pandas": pandas.__version__, "numpy": np.__version__}
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            measure = {"numbers": numbers, "names": names}[part]
            rows = measure(Path(folder), given.edges or READERS[part], given.runs)
            record[part] = {"machine": about, "results": rows}
    print(save("reading", record, given.output))


if __name__ == "__main__":
    main()
