"""What does profiling cost? The same run without it, with each source, and with the tracer.

    python benchmarks/profile_overhead.py lfr22 --memory base --budgets none,50% --tracer -o r.json

Prints, for each budget, the seconds of the fastest of `--repeat` runs and their ratio to the run
without profiling, and checks that all runs find the same communities. Seconds exclude compiling and
loading of cached kernels, which the tracer does in each run and which is printed separately. In a
resident run everything fits (`none`, `--memory device`); a fault-bound run has half of that.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import host_graph, machine, save

import louvain_um as lu
from louvain_um.profiling.record.capture import Recording
from louvain_um.profiling.record.profiler import profile

WATCHED: dict[str, tuple[str, ...]] = {
    "nvml": ("nvml",),
    "uvm": ("uvm",),
    "uvm-light": ("uvm-light",),
    "light (--light)": ("uvm-light", "cupti", "nvml"),
    "cupti alone": ("cupti",),
    "default": ("uvm", "cupti", "nvml"),
}


def fastest(run: Callable[[], tuple[float, Any]], repeat: int) -> tuple[float, Any]:
    """Return the minimum of some runs' seconds, and the last result."""
    found = [run() for _ in range(repeat)]
    return min(seconds for seconds, _ in found), found[-1][1]


def plain(graph: lu.Graph, options: dict[str, Any]) -> tuple[float, Any]:
    result = lu.louvain(graph, **options)
    return result.timings["total"], result.modularity


def observed(graph: lu.Graph, options: dict[str, Any]) -> tuple[float, Any]:
    """Run with the recording of phases and arrays only."""
    with Recording([]) as recording:
        result = lu.louvain(graph, observer=recording, **options)
    return result.timings["total"], result.modularity


def watched(
    graph: lu.Graph, options: dict[str, Any], sources: Sequence[str], tracer: bool
) -> tuple[float, Any]:
    session = profile(graph, sources=sources, tracer=tracer, **options)
    about = session.metadata
    return about["seconds"], {
        "compile_seconds": about["timings"]["total"] - about["seconds"],
        "modularity": about["modularity"],
        "about_sources": about["about_sources"],
        "figures": {
            key: value
            for key, value in session.summary().items()
            if key not in ("sources", "by_group", "notes")
        },
        "by_group": session.summary()["by_group"],
        "notes": list(session.notes),
    }


def measure(graph: lu.Graph, options: dict[str, Any], repeat: int, tracer: bool) -> dict[str, Any]:
    """Return seconds and ratios of one budget."""
    plain(graph, options)  # compiles
    base, quality = fastest(lambda: plain(graph, options), repeat)
    rows: dict[str, Any] = {"none": {"seconds": base, "ratio": 1.0}}
    seconds, value = fastest(lambda: observed(graph, options), repeat)
    assert value == quality
    rows["recording alone"] = {"seconds": seconds, "ratio": seconds / base}
    watchers = {name: (sources, False) for name, sources in WATCHED.items()}
    if tracer:
        watchers["tracer"] = ((), True)
    for name, (sources, traced) in watchers.items():
        if traced:
            watched(graph, options, sources, traced)  # compiles
        seconds, found = fastest(
            lambda s=sources, t=traced: watched(graph, options, s, t), 1 if traced else repeat
        )
        assert found["modularity"] == quality, f"{name} changed the result"
        rows[name] = {"seconds": seconds, "ratio": seconds / base, **found}
    # Alternating guards against a machine that warms up or is shared.
    again, _ = fastest(lambda: plain(graph, options), repeat)
    rows["none, again"] = {"seconds": again, "ratio": again / base}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("graph", help="a name of benchmarks/common.py, or a graph file")
    parser.add_argument("--memory", default="base")
    parser.add_argument("--budgets", default="none,50%")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tracer", action="store_true")
    parser.add_argument("--output", "-o", type=Path)
    arguments = parser.parse_args()
    graph = host_graph(arguments.graph)
    results: dict[str, Any] = {}
    for budget in arguments.budgets.split(","):
        options = {
            "device": "cuda",
            "memory": arguments.memory,
            "device_budget": None if budget == "none" else budget,
        }
        rows = results[budget] = measure(graph, options, arguments.repeat, arguments.tracer)
        print(f"\n{arguments.graph}, {arguments.memory}, budget {budget}")
        for name, row in rows.items():
            compiled = row.get("compile_seconds", 0.0)
            extra = f", and {compiled:.3f} s to compile" if compiled else ""
            print(f"  {name:28} {row['seconds']:8.3f} s {row['ratio']:7.3f} ×{extra}")
            for note in row.get("notes", ()):
                print(f"    {note}")
    if arguments.output:
        found = {"graph": arguments.graph, "arcs": graph.n_arcs, "policy": arguments.memory}
        record = {"machine": machine(), **found, "budgets": results}
        save("profile_overhead", record, arguments.output)


if __name__ == "__main__":
    main()
