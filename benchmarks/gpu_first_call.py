"""Time from process start to the first kernel, with and without cached kernels.

    python benchmarks/gpu_first_call.py -o benchmarks/results/gpu_first_call.json

Each run is a new process that detects communities in a small graph. Seconds count from before the
process starts: to the beginning of the first move phase, including imports, context and loading of
kernels, and to the labels.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import HERE, machine, save

import louvain_um as lu

CHILD = """
import json, sys, time
import louvain_um as lu
from louvain_um import generators
imported = time.time()
told = {}
def watch(event):
    told.setdefault(f"{event.phase} {event.kind}", time.time())
graph = generators.lfr(1 << 15, max_degree=400).graph
made = time.time()
getattr(lu, sys.argv[1])(graph, device="cuda", observer=watch)
print(json.dumps({"imported": imported, "made": made, "labels": time.time(), **told}))
"""
"""Numba's cache of the generator, so that it is loaded instead of compiled."""


def first_call(method: str, cache: Path) -> dict[str, Any]:
    """Return the seconds of one new process, without generating the graph."""
    environment = {**os.environ, "LOUVAIN_UM_CACHE": str(cache), "PYTHONPATH": str(HERE.parent)}
    if not any(cache.iterdir()):
        # NVRTC and the driver have caches, too.
        environment |= {"CUDA_CACHE_DISABLE": "1"}
    since = time.time()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, method],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit((done.stderr.strip().splitlines() or ["the process failed without a message"])[-1])
    told = json.loads(done.stdout)
    since += told["made"] - told["imported"]
    compiled = told.get("compile end", 0.0) - told.get("compile start", 0.0)
    return {
        "import": told["imported"] - since + told["made"] - told["imported"],
        "compile": compiled,
        "to_first_kernel": told["move start"] - since,
        "to_labels": told["labels"] - since,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="processes with cached kernels")
    parser.add_argument("-o", "--out", type=Path)
    arguments = parser.parse_args()
    about = machine()
    if about["device"] is None:
        from louvain_um.gpu.runtime.device import pick

        sys.exit(f"no device to call: {pick('auto').reason}")
    record: dict[str, Any] = {"machine": about, "results": []}
    for method in ("louvain", "leiden"):
        with tempfile.TemporaryDirectory() as folder:
            empty = first_call(method, Path(folder))
            kept = [first_call(method, Path(folder)) for _ in range(arguments.runs)]
        median = {name: statistics.median(run[name] for run in kept) for name in empty}
        record["results"].append({"method": method, "empty": empty, "kept": kept, "median": median})
        print(
            f"{method:<8} no cached kernels: {empty['to_first_kernel']:.2f} s to the first kernel, "
            f"{empty['compile']:.2f} of them compiling; cached: {median['to_first_kernel']:.2f} s",
            flush=True,
        )
    print(save("gpu_first_call", record, arguments.out))


if __name__ == "__main__":
    try:
        main()
    except lu.LouvainUmError as error:
        sys.exit(str(error))
