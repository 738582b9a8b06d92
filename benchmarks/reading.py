"""Reading a list of 5 M edges and building its graph, beside pandas reading the same file.

    python benchmarks/reading.py [--edges 5_000_000] [--runs 9] [--out FILE]

Three files are written to a temporary folder: ids alone between tabs, ids and weights between
commas, with every digit of a double and with three decimals. The two readers take turns, so
that whatever else the machine does meets both; the fastest run of each counts. pandas returns
columns of numbers; ours numbers the vertices, merges repetitions and sorts the rows besides.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import machine, save

import louvain_um as lu


def files(folder: Path, edges: int) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Write the lists; return their places and what pandas must be told about them."""
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


def clock(read: Callable[..., object], path: Path, **told: Any) -> tuple[float, float]:
    """Return the seconds that a call took: on the wall, and of all processors."""
    wall, busy = time.perf_counter(), time.process_time()
    read(path, **told)
    return time.perf_counter() - wall, time.process_time() - busy


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--edges", type=int, default=5_000_000)
    options.add_argument("--runs", type=int, default=9)
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (path, told) in files(Path(folder), asked.edges).items():
            ours, pandas = [], []
            lu.read_graph(path)  # compiles
            for _ in range(asked.runs):
                ours.append(clock(lu.read_graph, path))
                pandas.append(clock(pd.read_csv, path, engine="c", **told))
            least, peer = min(ours)[0], min(pandas)[0]
            result = {
                "file": name,
                "bytes": path.stat().st_size,
                "edges": asked.edges,
                "louvain_um_seconds": least,
                "pandas_seconds": peer,
                "ratio": least / peer,
                "louvain_um_cpu_seconds": min(busy for _, busy in ours),
                "pandas_cpu_seconds": min(busy for _, busy in pandas),
                "louvain_um_all_seconds": [wall for wall, _ in ours],
                "pandas_all_seconds": [wall for wall, _ in pandas],
            }
            results.append(result)
            print(f"{name}: {least:.3f} s, pandas {peer:.3f} s, ratio {least / peer:.2f}")
    about = {**machine(), "pandas": pd.__version__, "numpy": np.__version__}
    print(save("reading", {"machine": about, "results": results}, asked.out))


if __name__ == "__main__":
    main()
