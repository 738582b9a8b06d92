"""Bandwidth of in-place reads by placement, in order and by rows, and the time to make arenas.

python benchmarks/placement_stream.py [--gib 1.5] [--out FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import common
import numpy as np

from louvain_um.placement.arena_spec import ArenaSpec
from louvain_um.placement.machine.probes import Probes
from louvain_um.placement.memory.arena import Arena
from louvain_um.placement.policy.policy import KINDS, Kind, Placement

MADE = 3 * 10**9
"""Bytes of the timed arenas."""

ROWS = ((15, 40), (64, 256))
"""Minimum and maximum words per row."""

SPREAD = (256, 512, 1024, 2048, 4096, 8192)
"""MiB over which random accesses are spread: caching of page tables matters."""

SOURCE = Path(__file__).with_suffix(".cu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    size = int(args.gib * 2**30) // 4096 * 4096
    probes = Probes(0)
    record = {
        "machine": common.machine(),
        "bytes": size,
        "made": {str(p): making(p) for p in placements()},
        **streaming(probes, size),
        "random": random(probes),
        "rows": [rows(probes, size, low, high) for low, high in ROWS],
    }
    print(common.save("placement_stream_h200", record, args.out))


def placements() -> list[Placement]:
    return [Placement(kind, 0.5) if kind == "split" else Placement(kind) for kind in KINDS]


def making(placement: Placement) -> dict[str, float]:
    """Return seconds to make and to free an arena of 3 GB; the second of two runs."""
    spec = ArenaSpec(name="arena", group="graph", capacity=MADE, placement=placement)
    for _ in range(2):
        since = time.perf_counter()
        arena = Arena(spec, 0)
        made = time.perf_counter()
        arena.close()
        closed = time.perf_counter()
    return {"bytes": MADE, "seconds": made - since, "closing_seconds": closed - made}


@contextmanager
def arena(kind: Kind, size: int) -> Iterator[int]:
    made = Arena(ArenaSpec(name=kind, group="graph", capacity=size, placement=Placement(kind)), 0)
    try:
        yield made.address
    finally:
        made.close()


def streaming(probes: Probes, size: int) -> dict[str, Any]:
    """Return bytes/s of copies, and of a kernel that reads in order."""
    with arena("pinned", size) as there, arena("device", size) as here:
        copy = size / probes.copy(here, there, size)
    read = {}
    for kind in ("host_mapped", "pinned", "device"):
        with arena(kind, size) as at:
            read[kind] = size / probes.read(at, size)
    shares = {kind: rate / copy for kind, rate in read.items() if kind != "device"}
    return {"pinned_copy": copy, "read_in_order": read, "share_of_pinned_copy": shares}


def random(probes: Probes) -> dict[str, Any]:
    """Return 4-byte reads and atomics per second, by placement and GiB accessed."""
    found: dict[str, Any] = {}
    for kind, count in (("host_mapped", 1 << 24), ("pinned", 1 << 23), ("device", 1 << 27)):
        with arena(kind, SPREAD[-1] << 20) as at:
            found[kind] = {
                f"{mib} MiB": {
                    "reads": count / probes.gather(at, mib << 20, count),
                    "atomics": count / 2 / probes.atomics(at, mib << 20, count // 2),
                }
                for mib in SPREAD
            }
    return found


def rows(probes: Probes, size: int, low: int, high: int) -> dict[str, Any]:
    """Return useful bytes/s of reading rows, by placement, lanes and alignment."""
    import cupy

    lengths = np.random.default_rng(0).integers(low, high + 1, size // 2 // (low + high))
    ends = np.cumsum(lengths)
    ends = ends[ends <= size // 4]
    offsets = cupy.asarray(np.concatenate([[0], ends]).astype(np.uint64))
    names = {
        f"{'random' if random else 'in order'}, {lanes} lanes, "
        f"{'aligned to 128 bytes' if align > 1 else 'plain'}":
        f"read_rows<{lanes}, {align}, {str(random).lower()}>"
        for random in (True, False) for lanes in (8, 16, 32) for align in (1, 32)
    }  # fmt: skip
    module = cupy.RawModule(
        code=SOURCE.read_text(), options=("--std=c++17",), name_expressions=tuple(names.values())
    )
    found: dict[str, Any] = {"words": [low, high], "useful_bytes_per_second": {}}
    for kind in ("host_mapped", "pinned", "device"):
        with arena(kind, size) as at:
            rates = {}
            for name, expression in names.items():
                # Random rows over the bus are slow, so a part of them is enough.
                count = len(ends) // 8 if "random" in name else len(ends)
                args = (np.uint64(at), offsets, np.uint32(len(ends)), np.uint32(count), probes.sink)
                kernel = module.get_function(expression)
                seconds = probes.events(
                    lambda k=kernel, a=args: k((8 * probes.processors,), (256,), a)
                )
                rates[name] = count * 4 * float(lengths.mean()) / seconds
            found["useful_bytes_per_second"][kind] = rates
    return found


if __name__ == "__main__":
    main()
