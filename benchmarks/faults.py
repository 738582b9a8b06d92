"""Let every system call of every command fail once; count what is not handled.

    python benchmarks/faults.py [--most N] [--commands detect,convert] [--out FILE]

Kinds: allocations from 4 KiB on, reads, writes, flushes, renames, thread starts. `tests/faults`
says how, and tests a sample. The C++ and Rust libraries that read and write Parquet and parse
arguments end the process where they get no memory; such endings are counted as aborts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import HERE, machine, save

ROOT = HERE.parent

COMMANDS = {
    "detect": "detect GRAPH -o OUT.csv",
    "leiden": "detect GRAPH --method leiden -o OUT.parquet",
    "json": "detect GRAPH --json",
    "npz": "convert GRAPH OUT.npz",
    "parquet": "convert GRAPH OUT.parquet",
    "mtx": "convert GRAPH OUT.mtx.gz",
    "compare": "compare LABELS LABELS",
    "generate": "generate rmat 10 -o OUT.txt",
    "plan": "plan GRAPH",
    "profile": "profile GRAPH -o OUT.npz",
    "report": "report SESSION -o OUT.html",
    "simulate": "simulate GRAPH --policies base,adv2 --oversubscription 30",
    "doctor": "doctor",
}
ABORTED = "ended with status 6"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, help="faults of a kind for each command")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        places = inputs(Path(folder))
        for name in options.commands.split(","):
            words = [places.get(word, word) for word in COMMANDS[name].split()]
            most = [] if options.most is None else ["--most", str(options.most)]
            ran = subprocess.run(
                [sys.executable, "-m", "tests.faults.inject", *most, "all", f"{folder}/w", *words],
                cwd=ROOT,
                env={
                    **os.environ,
                    "LD_PRELOAD": f"{folder}/fault.so",
                    "LOUVAIN_UM_THREADS": "2",
                    "PYTHONPATH": str(ROOT),
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            *problems, last = map(json.loads, ran.stdout.splitlines())
            aborts = sum(problem["problem"] == ABORTED for problem in problems)
            others = [problem for problem in problems if problem["problem"] != ABORTED]
            row = {"command": name, "faults": last["faults"], "aborts": aborts, "others": others}
            results.append(row)
            print(json.dumps(row), flush=True)
    save("faults", {"machine": machine(), "results": results}, options.out)


def inputs(folder: Path) -> dict[str, str]:
    """Write a graph, labels and a session, and compile `fault.c`; return their places."""
    import louvain_um as lu
    from louvain_um.generators import lfr

    source = ROOT / "tests/faults/fault.c"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", folder / "fault.so", source, "-ldl"], check=True
    )
    graph = lfr(1500, seed=1).graph
    lu.write_graph(folder / "g.csv", graph)
    lu.louvain(graph, device="cpu").save(folder / "labels.npz")
    lu.profile(graph, device="cpu").save(folder / "session.npz")
    files = {"GRAPH": "g.csv", "LABELS": "labels.npz", "SESSION": "session.npz"}
    return {word: str(folder / name) for word, name in files.items()}


if __name__ == "__main__":
    main()
