"""Speed of the simulator's replay of page touches, on one core.

    python benchmarks/simulator.py [--before RESULTS]

Touches are single pages in random order, or a stream through an array; either everything fits, or
the driver evicts all the time. Events are not kept, as in a sweep.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, save

from louvain_um.profiling.simulator import Access, Array, Launch, Touches, Trace, simulate

STREAMED = Array(name="targets", group="graph", nbytes=4 << 30)
GATHERED = Array(name="labels", group="community", nbytes=256 << 20)
TOUCHES = 100_000_000


def gathers(count: int) -> list[Launch]:
    """Return launches that touch single random pages of labels."""
    random = np.random.default_rng(0)
    pages = random.integers(0, GATHERED.pages, count // 10)
    return [Launch(touches=Touches.runs(1, pages, 1, Access.GATHER))] * 10


def streams(count: int) -> list[Launch]:
    """Return launches that stream through the targets."""
    return [Launch(touches=Touches.runs(0, 0, STREAMED.pages))] * -(-count // STREAMED.pages)


def measure(name: str, steps: list[Launch], capacity: int | None = None) -> dict[str, Any]:
    """Return the processor seconds of a replay, and the replayed run."""
    trace = Trace((STREAMED, GATHERED), tuple(steps))
    since = time.process_time()
    found = simulate(trace, "h200", capacity=capacity, record=False)
    seconds = time.process_time() - since
    row = {
        "case": name,
        "touches": trace.touches,
        "seconds": seconds,
        "seconds_for_1e8": seconds * TOUCHES / trace.touches,
        "fault_groups": found.batches,
        "evictions": found.total("evictions"),
    }
    print(row, flush=True)
    return row


def main() -> None:
    """Measure all cases and save them."""
    options = argparse.ArgumentParser(
        description="Speed of the simulator's replay of page touches."
    )
    options.add_argument("--before", type=Path, help="results to compare with, JSON")
    before = options.parse_args().before
    older = json.loads(before.read_text())["results"] if before else []
    measure("compiling, not counted", gathers(1000), 100 << 20)
    rows = [
        measure("single pages at random, all fits", gathers(TOUCHES)),
        measure("streams, all fits", streams(TOUCHES)),
        measure("streams, half fits", streams(TOUCHES), 2 << 30),
        measure("single pages at random, 70 % fits", gathers(TOUCHES), 180 << 20),
    ]
    took = {row["case"]: row["seconds_for_1e8"] for row in older}
    for row in rows:
        if row["case"] in took:
            row["seconds_for_1e8_before"] = took[row["case"]]
    save("simulator", {"machine": machine(), "results": rows}, None)


if __name__ == "__main__":
    main()
