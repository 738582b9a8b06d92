"""Do memory, open files or threads grow over thousands of runs in one process?

    python benchmarks/soak.py [--runs 10000] [--device cpu|cuda] [--vertices 300]
                              [--limit SECONDS] [--out FILE]

Each run reads a file, detects communities (alternately Louvain and Leiden, with 1 and 2 threads),
compares the labels with those of the first run of its kind, and saves and loads the result; every
tenth run is interrupted by an error. Samples are taken after equal numbers of runs. Growth is the
slope of memory over the second half, which starts when caches are full.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, save

import louvain_um as lu
from louvain_um.generators import lfr
from louvain_um.results.communities import Communities

SAMPLES = 40

MOST_BYTES_PER_RUN = 64
"""Growth of memory that noise of the allocator explains, in 10,000 runs less than 1 MB."""


class StoppedError(Exception):
    """Raised by an observer in the midst of a run."""


def once(run: int, file: Path, saved: Path, device: str, expected: dict[Any, Any]) -> None:
    """Do one run, and check it."""
    graph = lu.read_graph(file)
    method = ("louvain", "leiden")[run % 2]
    function = getattr(lu, method)
    result = function(graph, device=device, seed=run % 3, threads=1 + run // 2 % 2)
    key = method, run % 3
    if key not in expected:
        expected[key] = result.labels
    if not np.array_equal(result.labels, expected[key]):
        sys.exit(f"run {run} has other labels")
    result.save(saved, force=True)
    if Communities.load(saved).modularity != result.modularity:
        sys.exit(f"run {run} is saved differently")
    if run % 10 == 0:
        stop(graph, device)


def stop(graph: lu.Graph, device: str) -> None:
    """Start a run that an error ends half way."""
    from louvain_um.api import run
    from louvain_um.options import Options

    seen = 0

    def observe(_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == 5:
            raise StoppedError

    try:
        run(graph, Options(device=device), observe)
    except StoppedError:
        return
    sys.exit("the error of an observer was lost")


def sample(device: str) -> dict[str, int]:
    """Return what the process holds now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    held = {
        "bytes": pages * os.sysconf("SC_PAGE_SIZE"),
        "files": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
    }
    if device != "cpu":
        import cupy

        free, total = cupy.cuda.runtime.memGetInfo()
        held["device_bytes"] = total - free
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--vertices", type=int, default=300)
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which to end")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    every = max(1, options.runs // SAMPLES)
    samples, expected = [], dict[Any, Any]()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file, saved = Path(folder, "g.csv"), Path(folder, "result.npz")
        lu.write_graph(file, lfr(options.vertices, seed=1).graph)
        for run in range(options.runs):
            once(run, file, saved, options.device, expected)
            if (run + 1) % every == 0:
                samples.append({"run": run + 1, **sample(options.device)})
                if time.perf_counter() - begin > options.limit:
                    break
    later = samples[len(samples) // 2 :]
    growth = {
        what: float(np.polyfit([s["run"] for s in later], [s[what] for s in later], 1)[0])
        for what in samples[0]
        if what != "run"
    }
    record = {
        "machine": machine(), "device": options.device, "runs": samples[-1]["run"],
        "seconds": round(time.perf_counter() - begin, 1), "growth_per_run": growth,
        "first": samples[0], "last": samples[-1], "samples": samples,
    }  # fmt: skip
    if options.out:
        save("soak", record, options.out)
    print({key: record[key] for key in ("runs", "seconds", "growth_per_run", "first", "last")})
    flat = all(growth[what] * record["runs"] < 1 for what in ("files", "threads"))
    flat &= growth["objects"] * record["runs"] < 100
    flat &= all(
        growth[w] < MOST_BYTES_PER_RUN or samples[-1][w] - later[0][w] < 4 << 20
        for w in growth
        if "bytes" in w
    )
    return int(not flat)


if __name__ == "__main__":
    sys.exit(main())
