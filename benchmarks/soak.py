"""Do memory, open files or threads grow over thousands of runs in one process?

    python benchmarks/soak.py [--runs 10000] [--device cpu|cuda] [--vertices 300] [--attach 5]
                              [--limit SECONDS] [--out FILE]

Runs are those of `KINDS`, in turn: detection from a file to saved labels, every fourth of which is
repeated and interrupted by an error; detection under other options, on a GPU budgets and policies;
batches of a changing graph, whose communities are followed; algorithms on operators. What each
returns is compared with what the first run of its kind returned. `--attach` of the runs, at equal
distances, are a CUDA program that is attached to. Samples are taken after equal numbers of runs.
Growth is the slope of memory over the second half, which starts when caches are full.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, save

import louvain_um as lu
from louvain_um.generators import lfr
from louvain_um.profiling import load
from louvain_um.results.communities import Communities

SAMPLES = 40

MOST_BYTES_PER_RUN = 64
"""Growth of memory that noise of the allocator explains, in 10,000 runs less than 1 MB."""

OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "cpu": ({"max_size": 20}, {"objective": "cpm", "resolution": 0.01}, {"resolution": 2.0}),
    "cuda": (
        {"device_budget": "70%"}, {"device_budget": "50%"}, {"memory": "base"}, {"memory": "adv2"},
        {"memory": "zero_copy"}, {"max_size": 20}, {"objective": "cpm", "resolution": 0.01},
    ),
}  # fmt: skip

BATCHES = 20
"""Of a changing graph, before another is made."""

PROGRAM = Path(__file__).parent / "programs" / "driver_calls.py"


class StoppedError(Exception):
    """Raised by an observer in the midst of a run."""


class Soak:
    """What runs use, and what the first of each kind returned."""

    def __init__(self, folder: Path, device: str, vertices: int) -> None:
        self.device, self.folder = device, folder
        self.file, self.saved = folder / "g.csv", folder / "result.npz"
        self.graph = lfr(vertices, seed=1).graph
        self.expected = dict[Any, Any]()
        self.runs = Counter[str]()
        self.problems = dict[str, int]()
        lu.write_graph(self.file, self.graph)
        ends = np.random.default_rng(1).integers(0, vertices, (BATCHES, 2, 30))
        self.batches = [tuple(each) for each in ends]

    def once(self, run: int) -> None:
        """Do one run, and compare what it returns."""
        kind = KINDS[run % len(KINDS)]
        key, *values = getattr(self, kind)(self.runs[kind])
        self.runs[kind] += 1
        found = [np.asarray(each.get() if hasattr(each, "get") else each) for each in values]
        first = self.expected.setdefault((kind, key), found)
        if not all(map(np.array_equal, first, found)):
            self.problems.setdefault(f"{kind} {key} returns other values", run)

    def detect(self, turn: int) -> tuple[Any, ...]:
        """Read a file, detect, save and load; interrupt every fourth."""
        graph = lu.read_graph(self.file)
        method = ("louvain", "leiden")[turn % 2]
        options = {"seed": turn % 3, "threads": 1 + turn // 2 % 2}
        result = getattr(lu, method)(graph, device=self.device, **options)
        result.save(self.saved, force=True)
        if Communities.load(self.saved).modularity != result.modularity:
            self.problems.setdefault("a result is saved differently", turn)
        if turn % 4 == 0:
            stop(graph, self.device)
        return (method, turn % 3), result.labels

    def options(self, turn: int) -> tuple[Any, ...]:
        """Detect under other options; budgets and policies change no label."""
        choices = OPTIONS[self.device]
        chosen = choices[turn % len(choices)]
        places = self.device != "cpu" and chosen.keys() & {"memory", "device_budget"}
        result = lu.louvain(self.graph, device=self.device, **chosen)
        return ("places" if places else str(chosen)), result.labels

    def batch(self, turn: int) -> tuple[Any, ...]:
        """Change a graph, and follow its communities."""
        if turn % BATCHES == 0:
            self.changing = lu.DynamicGraph(self.graph, device=self.device)
            self.tracker = lu.Tracker(self.changing)
        edges = {"insert": self.batches[turn % BATCHES]}
        if turn % BATCHES:
            edges["delete"] = self.batches[turn % BATCHES - 1]
        found = self.tracker.update(self.changing.apply(**edges))
        return turn % BATCHES, found.labels, found.ids

    def operators(self, turn: int) -> tuple[Any, ...]:
        """Run an algorithm."""
        name = ALGORITHMS[turn % len(ALGORITHMS)]
        start = {"bfs": (3,), "sssp": (3,), "spmv": (np.ones(self.graph.n_vertices),)}
        found = getattr(lu, name)(self.graph, *start.get(name, ()), device=self.device)
        return name, *(found if isinstance(found, tuple) else (found,))

    def attach(self) -> None:
        """Attach to a program, which prints what it prints alone."""
        session, alone = self.folder / "session.npz", (sys.executable, str(PROGRAM))
        command = (sys.executable, "-m", "louvain_um", "attach", "-o", session, "--force", "--")
        first, second = (
            subprocess.run(words, capture_output=True, text=True, check=False)
            for words in (alone, (*command, *alone))
        )
        turn = self.runs["attach"]
        if "AAAAAAAA" not in first.stdout or first.stdout not in second.stdout:
            self.problems.setdefault(f"attached, it prints {second}, alone {first}"[:2000], turn)
        elif load(session).lifetimes == []:
            self.problems.setdefault("a session has no allocation", turn)
        self.runs["attach"] += 1


KINDS = (
    "batch", "operators", "detect", "batch", "operators",
    "batch", "operators", "options", "batch", "operators",
)  # fmt: skip
"""In one turn; after 50 runs another graph changes, so that samples find the same arrays."""

ALGORITHMS = (
    "bfs", "sssp", "connected_components", "minimum_spanning_forest", "pagerank", "triangles",
    "spmv",
)  # fmt: skip


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

        cupy.get_default_memory_pool().free_all_blocks()
        free, total = cupy.cuda.runtime.memGetInfo()
        held["device_bytes"] = total - free
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--vertices", type=int, default=300)
    parser.add_argument("--attach", type=int, default=0)
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which to end")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    every = max(1, options.runs // SAMPLES)
    samples = []
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.device, options.vertices)
        for run in range(options.runs):
            if options.attach and run % (options.runs // options.attach) == every // 2:
                soak.attach()
            soak.once(run)
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
        "kinds": soak.runs, "problems": soak.problems,
        "seconds": round(time.perf_counter() - begin, 1), "growth_per_run": growth,
        "first": samples[0], "last": samples[-1], "samples": samples,
    }  # fmt: skip
    if options.out:
        save("soak", record, options.out)
    print(
        {
            key: record[key]
            for key in ("runs", "kinds", "problems", "seconds", "growth_per_run", "first", "last")
        }
    )
    flat = all(growth[what] * record["runs"] < 1 for what in ("files", "threads"))
    flat &= growth["objects"] * record["runs"] < 100
    flat &= all(
        growth[w] < MOST_BYTES_PER_RUN or samples[-1][w] - later[0][w] < 4 << 20
        for w in growth
        if "bytes" in w
    )
    return int(not flat or bool(soak.problems))


if __name__ == "__main__":
    sys.exit(main())
