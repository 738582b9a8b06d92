"""Seconds of the host in a run, while a device would wait: kernels and the driver do nothing.

    python benchmarks/host_time.py geometric lfr_mixing_5 -o host_time.json

Runs follow those recorded of the zoo (`zoo_h200.json`), with a sixteenth of the vertices and arcs
and pages as much smaller. Between two kernels the shortest of `--runs` counts. What follows while
a kernel runs is among it. PYTHONPATH says which checkout is measured.
"""

from __future__ import annotations

import argparse
import copy
import gc
import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from common import machine, save

from louvain_um.core.hierarchy import detect
from louvain_um.events import ignore
from louvain_um.options import Options
from tests.gpu_dry.dry_device import dry_engine, run_dry
from tests.gpu_dry.dry_kernels import DryKernels
from tests.gpu_dry.dry_levels import scale, zoo_run

SHRINK = 16
BUDGETS = (None, 90, 50)


def launches(patch: pytest.MonkeyPatch, graph: Any, script: Any, options: Options) -> list[float]:
    """Return when kernels were launched from loading on, and the end, less what they took."""
    found, spent = list[float](), 0.0

    class Kernels(DryKernels):
        def get(self, *names: Any, **more: Any) -> Any:
            kernel = super().get(*names)

            def launch(*args: Any) -> None:
                nonlocal spent
                begin = time.perf_counter()
                kernel(*args)
                found.append(begin - spent)
                spent += time.perf_counter() - begin

            return launch

    with dry_engine(patch, graph, script, options, ignore, Kernels) as run:
        load = run.load

        def loaded(graph: Any) -> Any:
            level = load(graph)
            found[:] = [time.perf_counter() - spent]
            return level

        patch.setattr(run, "load", loaded)
        detect(run, graph, options, ignore)
        found.append(time.perf_counter() - spent)
    return found


def measured(kind: str, method: str, runs: int) -> list[dict[str, Any]]:
    """Return the seconds of the host in runs of a kind, in core and with less memory."""
    with pytest.MonkeyPatch.context() as patch:
        scale(patch, SHRINK)
        graph, script = zoo_run(kind, method, SHRINK)
        _, whole = run_dry(patch, graph, copy.deepcopy(script), Options(method=method))
        rows = []
        for percent in BUDGETS:
            budget = percent and whole.ledger.peak_total * percent // 100
            options = Options(method=method, device_budget=budget)
            times = []
            for _ in range(runs):
                times.append(launches(patch, graph, copy.deepcopy(script), options))
            gaps = [
                min(b - a for a, b in pairs)
                for pairs in zip(*map(itertools.pairwise, times), strict=True)
            ]
            row = {"kind": kind, "method": method, "percent": percent, "launches": len(gaps) - 1}
            rows.append(row | {"seconds": sum(gaps)})
            print(*row.values(), f"{1e3 * sum(gaps):.2f} ms", flush=True)
        return rows


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="+")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    gc.disable()
    rows = [
        row
        for kind in options.kinds
        for method in ("louvain", "leiden")
        for row in measured(kind, method, options.runs)
    ]
    save("host_time", {"machine": machine(), "results": rows}, options.out)


if __name__ == "__main__":
    main()
