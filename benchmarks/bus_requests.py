"""Requests of kernels for host memory, by ncu's counters: how many, of how many bytes, how fast.

    python benchmarks/bus_requests.py road leiden 30% "refine|sum_arcs" -o bus_requests.json

A kind of the zoo runs in pages, and the first launches of some kernels are counted. Under ncu they
run alone, without the copies beside them. Nsight Compute must be installed, and may read counters.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import machine, save

COUNTERS = {
    "seconds": "gpu__time_duration.sum",
    "requests": "lts__t_requests_srcunit_tex_aperture_sysmem.sum",
    "sectors": "lts__t_sectors_srcunit_tex_aperture_sysmem.sum",
    "bytes_to_device": "pcie__read_bytes.sum",
    "bytes_to_host": "pcie__write_bytes.sum",
}
"""What is counted: requests of the multiprocessors for host memory, and the sectors of 32 bytes
that they ask for, whether the second-level cache has these or not; and all bytes on the bus, those
of requests included."""


def counted(log: Path) -> list[dict[str, Any]]:
    """Return what ncu counted, by launch."""
    names, _, *launches = csv.reader(
        line for line in log.read_text().splitlines() if line.startswith('"')
    )
    rows = []
    for values in launches:
        found = dict(zip(names, values, strict=True))
        row: dict[str, Any] = {"kernel": found["Kernel Name"].removeprefix("void ").split("<")[0]}
        for name, counter in COUNTERS.items():
            row[name] = int(found[counter].replace(",", "") or 0)
        row["seconds"] *= 1e-9
        rows.append(row)
    return rows


def run(kind: str, method: str, budget: str, arcs: int) -> None:
    """Let counting begin once a graph is loaded, in a second run with a budget."""
    import cupy
    import zoo

    from louvain_um.api import run
    from louvain_um.gpu.engine import GpuEngine
    from louvain_um.options import Options

    graph = zoo.made(cupy, kind, arcs)
    core = Options(device="cuda", method=method)
    touched = run(graph, core).provenance["touched_bytes"]
    less = replace(core, device_budget=int(float(budget.rstrip("%")) * touched / 100))
    run(graph, less)
    load = GpuEngine.load  # an observer would change what is launched ahead

    def loaded(self: GpuEngine, graph: Any) -> Any:
        level = load(self, graph)
        cupy.cuda.runtime.deviceSynchronize()
        cupy.cuda.profiler.start()
        return level

    GpuEngine.load = loaded  # type: ignore[method-assign]
    run(graph, less)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind")
    parser.add_argument("method", choices=("louvain", "leiden"))
    parser.add_argument("budget", help="share of the bytes that a run in core touches, as 30%%")
    parser.add_argument("kernels", nargs="?", help="a regular expression; without, nothing counts")
    parser.add_argument("--arcs", type=float, default=112, help="millions")
    parser.add_argument("--launches", type=int, default=12)
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    if args.kernels is None:
        run(args.kind, args.method, args.budget, int(args.arcs * 1e6))
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "counted.csv"
        command = [
            *("ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv"),
            *("--page", "raw", "--kernel-name", f"regex:{args.kernels}", "--log-file", str(log)),
            *("--launch-count", str(args.launches), "--metrics", ",".join(COUNTERS.values())),
            *(sys.executable, __file__, args.kind, args.method, args.budget),
            *("--arcs", str(args.arcs)),
        ]
        subprocess.run(command, check=True)
        rows = counted(log)
    about = [" ".join(["bus_requests.py", *sys.argv[1:]])]
    of = {"kind": args.kind, "method": args.method, "budget": args.budget}
    for row in rows:
        print(f"{row['kernel']:<12}{1e3 * row['seconds']:9.3f} ms {row['requests'] / 1e6:8.2f} M")
    record = {"machine": machine(), "about": about, "results": [of | row for row in rows]}
    save("bus_requests", record, args.output)


if __name__ == "__main__":
    main()
