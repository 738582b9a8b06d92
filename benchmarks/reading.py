"""How fast are graphs read, compared with pandas reading the same file?

    python benchmarks/reading.py [--part numbers|names] [--edges N] [--runs 9] [-o FILE]

Numbers: three temporary files of 5 M edges: ids separated by tabs; ids and weights separated by
commas, with all digits of a double; the same with three decimals. pandas returns columns of
numbers; louvain-um also numbers the vertices, merges duplicate edges and sorts the rows.

Names: 1 M edges between 200,000 named vertices, as a file and as a pandas frame. pandas reads the
file and numbers the names in sorted order (`factorize`); louvain-um also builds the graph, with
and without Arrow.

Readers alternate, so that other work on the machine affects all of them; the fastest run counts.
A part that is not measured keeps its record.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import kept, machine, parser, save

import louvain_um as lu
from louvain_um.formats import tables

EDGES = {"numbers": 5_000_000, "names": 1_000_000}


def files(folder: Path, edges: int) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Write the lists; return their paths and the options for pandas."""
    rng = np.random.default_rng(1)
    n = max(2, edges // 5)
    ids = {"source": rng.integers(0, n, edges), "target": rng.integers(0, n, edges)}
    weights = rng.random(edges) * 10
    plain, full, short = (folder / name for name in ("plain.tsv", "full.csv", "short.csv"))
    pd.DataFrame(ids).to_csv(plain, sep="\t", header=False, index=False)
    pd.DataFrame({**ids, "weight": weights}).to_csv(full, index=False)
    pd.DataFrame({**ids, "weight": weights.round(3)}).to_csv(short, index=False)
    return {
        "unweighted, tabs": (plain, {"sep": "\t", "header": None}),
        "weighted, commas, all digits": (full, {}),
        "weighted, commas, three decimals": (short, {}),
    }


def named_frame(edges: int) -> pd.DataFrame:
    """Return edges between named vertices, a fifth as many as edges."""
    rng = np.random.default_rng(1)
    n = max(2, edges // 5)
    names = np.array([f"user{i:07d}" for i in rng.permutation(n)])
    return pd.DataFrame({end: names[rng.integers(0, n, edges)] for end in ("source", "target")})


def factorize(frame: pd.DataFrame) -> object:
    """Number the names of both columns in sorted order, as pandas does it."""
    ends = (frame[end].to_numpy(object) for end in ("source", "target"))
    return pd.factorize(np.concatenate(list(ends)), sort=True)


def without_arrow(frame: pd.DataFrame) -> object:
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


def compare(
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
    print(f"{title}: {shown}, ratio {ratio:.2f}")
    return {
        "file": title, "edges": edges, "ratio": ratio,
        **{f"{name}_seconds": value for name, value in least.items()},
        **{f"{name}_cpu_seconds": min(busy for _, busy in seconds[name]) for name in peers},
        **{f"{name}_all_seconds": [wall for wall, _ in seconds[name]] for name in peers},
    }  # fmt: skip


def numbers(folder: Path, edges: int, runs: int) -> list[dict[str, Any]]:
    """Measure lists whose ids are numbers."""
    results = []
    for title, (path, options) in files(folder, edges).items():
        peers = {
            "louvain_um": lambda path=path: lu.read_graph(path),
            "pandas": lambda path=path, options=options: pd.read_csv(path, engine="c", **options),
        }
        results.append({**compare(title, edges, runs, peers), "bytes": path.stat().st_size})
    return results


def names(folder: Path, edges: int, runs: int) -> list[dict[str, Any]]:
    """Measure lists whose ids are names, from a file and from a frame."""
    path, frame = folder / "names.csv", named_frame(edges)
    frame.to_csv(path, index=False)
    of_file = {
        "louvain_um": lambda: lu.read_graph(path),
        "pandas": lambda: factorize(pd.read_csv(path)),
    }
    of_frame = {
        "louvain_um": lambda: lu.as_graph(frame),
        "louvain_um_without_arrow": lambda: without_arrow(frame),
        "pandas": lambda: factorize(frame),
    }
    return [
        {**compare("names, commas", edges, runs, of_file), "bytes": path.stat().st_size},
        compare("names, a pandas frame", edges, runs, of_frame),
    ]


def main() -> None:
    given = parser(__doc__)
    given.add_argument("--part", choices=sorted(EDGES), action="append")
    given.add_argument("--edges", type=int)
    given.add_argument("--runs", type=int, default=9)
    options = given.parse_args()
    record = kept("reading", options.output)
    about = {**machine(), "pandas": pd.__version__, "numpy": np.__version__}
    with tempfile.TemporaryDirectory() as folder:
        for part in options.part or EDGES:
            edges = options.edges or EDGES[part]
            measure = {"numbers": numbers, "names": names}[part]
            record[part] = {"machine": about, "results": measure(Path(folder), edges, options.runs)}
    print(save("reading", record, options.output))


if __name__ == "__main__":
    main()
