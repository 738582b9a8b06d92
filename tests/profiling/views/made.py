"""Sessions made up: every number in them is known."""

import numpy as np

from louvain_um.profiling import Session
from louvain_um.profiling.session import Lifetime, PageMap, PhaseSpan
from louvain_um.profiling.session.data import with_phases
from louvain_um.profiling.session.events import Cause, EventTable, Kind, Source

MIB = 1 << 20
BLOCK = 2 * MIB
MS = 1_000_000
BASE = 0x7F00_0000_0000
HOSTILE = "</script><img src=x onerror=alert(1)>"

ARRAYS = (
    ("targets.0", "graph", 64 * MIB, 0),
    ("offsets.0", "graph", 8 * MIB, 0),
    ("table", "hash", 6 * MIB, -1),
    ("labels.0.0", "community", 4 * MIB, 0),
    ("queue", "scratch", 2 * MIB, -1),
    (HOSTILE, "scratch", 4096, -1),
)
PHASES = (("load", -1, 0, 10), ("move", 0, 10, 60), ("aggregate", 0, 60, 80), ("move", 1, 80, 100))
"""Name, level, and milliseconds from when to when."""


def lifetimes():
    address, found = BASE, []
    for name, group, nbytes, level in ARRAYS:
        found.append(
            Lifetime(name=name, group=group, address=address, nbytes=nbytes, start_ns=0,
                     end_ns=100 * MS, level=level)
        )  # fmt: skip
        address += -(-nbytes // BLOCK) * BLOCK
    return tuple(found)


def phases():
    found = []
    for name, level, start, end in PHASES:
        size = {"vertices": 1000, "arcs": 5000} if level == 0 else {}
        span = {"phase": name, "level": level, **size}
        found.append(PhaseSpan(iteration=-1, start_ns=start * MS, end_ns=end * MS, **span))
        if name == "move":
            step = (end - start) * MS // 2
            for at in range(2):
                begin = start * MS + at * step
                found.append(
                    PhaseSpan(iteration=at, start_ns=begin, end_ns=begin + step, moved=9, **span)
                )
    return tuple(sorted(found, key=lambda span: (span.start_ns, -span.end_ns)))


def paged_run(times=3, **metadata):
    """Return a run whose targets come block by block, `times` over, evicted in between."""
    rows = []

    def event(time, kind, address, **columns):
        rows.append({"time": round(time), "kind": kind, "address": address, **columns})

    for sweep in range(times):
        for block in range(32):
            time = (11 + sweep * 15 + block * 0.4) * MS
            address = BASE + block * BLOCK
            event(time, Kind.GPU_FAULT_GROUP, address, count=12, rows=1, duration=MS // 5)
            event(time + 1, Kind.HTOD, address, bytes=65536, cause=Cause.COHERENCE, duration=9000)
            event(time + 2, Kind.HTOD, address + 65536, bytes=BLOCK - 65536, cause=Cause.PREFETCH,
                  duration=MS // 8)  # fmt: skip
            if sweep < times - 1:
                event(time + 9 * MS, Kind.DTOH, address, bytes=BLOCK, cause=Cause.EVICTION,
                      duration=MS // 10)  # fmt: skip
                event(time + 9 * MS, Kind.EVICTION, address, bytes=BLOCK)
    labels = BASE + 78 * MIB
    event(12 * MS, Kind.HTOD, labels, bytes=4 * MIB, cause=Cause.USER)
    event(90 * MS, Kind.CPU_FAULT, labels, count=3)
    event(91 * MS, Kind.REMOTE_MAP, BASE + 64 * MIB, bytes=4096, count=2)
    event(92 * MS, Kind.HTOD, 4096, bytes=4096, cause=Cause.COHERENCE)
    event(10 * MS, Kind.KERNEL, 0, duration=49 * MS, kernel=0)
    event(60 * MS, Kind.KERNEL, 0, duration=19 * MS, kernel=1)
    rows.sort(key=lambda row: row["time"])
    names = dict.fromkeys(name for row in rows for name in row)
    missing = {"kernel": -1, "count": 1, "rows": 1}
    events = EventTable(
        {"source": np.full(len(rows), Source.UVM)}
        | {name: np.array([row.get(name, missing.get(name, 0)) for row in rows]) for name in names},
        ("move_tile", HOSTILE),
    )
    counts = np.zeros((1024, 10), np.uint32)
    counts[:, 1:6] = 7
    about = {
        "version": "0", "created": "2026-01-01T00:00:00+00:00", "device": "cuda:0",
        "policy": "base", "method": "louvain", "seed": 0, "seconds": 0.1, "complete": True,
        "graph": {"vertices": 1000, "edges": 2500, "arcs": 5000, "weighted": False},
        "modularity": 0.5, "communities": 7,
        "peak_bytes": {"graph": 72 * MIB, "hash": 6 * MIB, "community": 4 * MIB},
        "sources": {"engine": "measured", "uvm": "measured", "cupti": "measured",
                    "tracer": "measured", "nvml": "measured"},
    }  # fmt: skip
    return Session(
        metadata=about | metadata,
        lifetimes=lifetimes(),
        phases=phases(),
        events=with_phases(events, phases()),
        maps=(
            PageMap(
                array="targets.0",
                page_bytes=65536,
                edges=np.linspace(10 * MS, 60 * MS, 11).astype(np.int64),
                counts=counts,
            ),
        ),
        notes=(f"a note with <b>markup</b> & {HOSTILE}",),
        energy={"joules": 30.0, "seconds": 0.1, "times_ns": [0, 50 * MS], "watts": [300.0, 310.0]},
    )


def cpu_run():
    """Return a run on the CPU: phases and arrays, no events."""
    about = {
        "device": "cpu", "method": "louvain", "seconds": 0.1, "complete": True,
        "sources": {"engine": "measured"},
    }  # fmt: skip
    return Session(metadata=about, lifetimes=lifetimes(), phases=phases())


def sweep_rows():
    """Return results of two graphs, three policies and two oversubscriptions, modelled."""
    rows = []
    for graph, scale in (("uk-2002-like", 1.0), ("karate", 2.0)):
        for policy, seconds in (("base", (1.0, 8.0)), ("adv2", (2.0, 1.0)), ("auto", (1.0, 0.5))):
            for rate, value in zip((0, 30), seconds, strict=True):
                rows.append(
                    {
                        "graph": graph, "policy": policy, "oversubscription": rate,
                        "feasible": True, "seconds": value * scale, "bytes_to_device": 1 << 30,
                        "bytes_to_host": 1 << 29, "bytes_remote": 0, "fault_groups": 10,
                        "evictions": 5, "evidence": "modelled",
                    }
                )  # fmt: skip
    rows.append({**rows[0], "policy": "adv9", "feasible": False, "seconds": None})
    return rows
