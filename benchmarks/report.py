"""Cost of a report of a long run: time to write and open, and size.

    python benchmarks/report.py --events 1e7

The session is synthetic and hard to compress: random faults, migrations and evictions over 15 GiB
of arrays on 12 levels, and page maps of noise. If a headless Chromium is installed, it opens the
page, and the time until every map is drawn is recorded.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, save

from louvain_um.profiling import Session
from louvain_um.profiling.session import Lifetime, PageMap, PhaseSpan
from louvain_um.profiling.session.events import EventTable, Kind, Source
from louvain_um.profiling.views import timeline
from louvain_um.profiling.views.html import write

SECONDS = 20
END = SECONDS * 1_000_000_000
LEVELS = 12
ARRAYS = (
    ("targets", "graph", 8 << 30), ("weights", "graph", 4 << 30), ("offsets", "graph", 300 << 20),
    ("labels", "community", 150 << 20), ("totals", "community", 300 << 20),
    ("table", "hash", 1 << 30), ("queue", "scratch", 150 << 20), ("rooms", "scratch", 2 << 30),
)  # fmt: skip


def lifetimes() -> tuple[Lifetime, ...]:
    """Return the arrays of every level, each a quarter of the previous level's."""
    found, address = [], 1 << 40
    for level in range(LEVELS):
        for name, group, nbytes in ARRAYS:
            size = max(4096, nbytes >> 2 * level)
            found.append(
                Lifetime(name=f"{name}.{level}", group=group, address=address, nbytes=size,
                         start_ns=END * level // LEVELS,
                         end_ns=END * (level + 1) // LEVELS if level else END, level=level)
            )  # fmt: skip
            address += size + (2 << 20)
    return tuple(found)


def phases() -> tuple[PhaseSpan, ...]:
    """Return move phases of 12 levels with 30 iterations each."""
    found = []
    for level in range(LEVELS):
        start, step = END * level // LEVELS, END // LEVELS // 30
        found.append(PhaseSpan(phase="move", level=level, iteration=-1, start_ns=start,
                               end_ns=start + 30 * step))  # fmt: skip
        found += [
            PhaseSpan(phase="move", level=level, iteration=at, start_ns=start + at * step,
                      end_ns=start + (at + 1) * step) for at in range(30)
        ]  # fmt: skip
    return tuple(found)


def session(rows: int) -> Session:
    """Return a session with this many events."""
    random = np.random.default_rng(0)
    lives = lifetimes()
    kinds = [
        Kind.HTOD,
        Kind.DTOH,
        Kind.GPU_FAULT_GROUP,
        Kind.EVICTION,
        Kind.REMOTE_MAP,
        Kind.KERNEL,
    ]
    kind = random.choice(kinds, rows, p=[0.45, 0.2, 0.25, 0.05, 0.02, 0.03]).astype(np.uint8)
    owner = random.choice(len(ARRAYS), rows, p=[0.5, 0.15, 0.02, 0.05, 0.05, 0.1, 0.03, 0.1])
    base = np.array([life.address for life in lives[: len(ARRAYS)]])
    size = np.array([life.nbytes for life in lives[: len(ARRAYS)]])
    address = base[owner] + ((random.random(rows) * size[owner]).astype(np.int64) >> 16 << 16)
    moved = kind <= Kind.DTOH
    events = EventTable(
        {
            "time": np.sort(random.integers(0, END, rows)),
            "duration": random.integers(1000, 20_000, rows),
            "source": np.full(rows, Source.UVM),
            "kind": kind,
            "address": np.where(kind == Kind.KERNEL, 0, address).astype(np.uint64),
            "bytes": np.where(moved, random.choice([4096, 65536, 2 << 20], rows), 0),
            "count": random.integers(1, 50, rows),
            "cause": np.where(moved, random.integers(1, 5, rows), 0),
            "kernel": np.where(kind == Kind.KERNEL, 0, -1),
            "phase": np.full(rows, 2),
            "level": random.integers(0, LEVELS, rows),
        },
        ("move_tile",),
    )
    edges = np.linspace(0, END, 513).astype(np.int64)
    maps = tuple(
        PageMap(array=f"{name}.0", page_bytes=1 << 20, edges=edges,
                counts=random.poisson(0.8, (-(-nbytes >> 20), 512)).astype(np.uint32))
        for name, _, nbytes in ARRAYS
    )  # fmt: skip
    known = ("engine", "uvm", "cupti", "tracer")
    about = {"device": "made up", "policy": "base", "seconds": float(SECONDS)}
    return Session(
        metadata={**about, "sources": dict.fromkeys(known, "measured")},
        lifetimes=lives,
        phases=phases(),
        events=events,
        maps=maps,
    )


def opened(page: Path) -> dict[str, Any]:
    """Return the seconds a browser takes to draw a page, and its errors."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.profiling.views.browser import Browser, find

    program = find()
    if program is None:
        return {"browser": None}
    drawn = "[...document.querySelectorAll('.pagemap canvas')].every(c => c.dataset.view)"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, Path(folder))
        since = time.perf_counter()
        browser.open(page)
        browser.wait(drawn)
        seconds = time.perf_counter() - since
        errors = list(browser.errors)
        browser.close()
    return {"browser": Path(program).name, "open_seconds": seconds, "console_errors": errors}


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=float, default=1e7)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    made = session(int(arguments.events))
    found: dict[str, Any] = {"machine": machine(), "events": len(made.events)}
    with tempfile.TemporaryDirectory() as folder:
        page, trace = Path(folder, "report.html"), Path(folder, "trace.json.gz")
        since = time.perf_counter()
        write(made, page)
        found |= {"write_seconds": time.perf_counter() - since, "bytes": page.stat().st_size}
        found |= opened(page)
        since = time.perf_counter()
        timeline.write(made, trace)
        found |= {"trace_seconds": time.perf_counter() - since}
        found |= {"trace_bytes": trace.stat().st_size}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found["peak_rss_bytes"] = peak * (1 if sys.platform == "darwin" else 1024)
    for name, value in found.items():
        print(f"{name}: {value}")
    save("report", found, arguments.output)


if __name__ == "__main__":
    main()
