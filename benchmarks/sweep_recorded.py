"""Make one record of a sweep's folder, and the chart of the guide.

    python benchmarks/sweep_recorded.py FOLDER --machine other.json --about "..." -o sweep_h200.json
    python benchmarks/sweep_recorded.py sweep_h200.json --chart docs/howto/sweep_h200.svg

If the sweep was interrupted, the record states what is missing. The machine is taken from the
record of another benchmark on it. Needs no GPU.

    louvain-um sweep lfr.npz rmat.npz --machine h200 --eviction program -o AGAIN
    python benchmarks/sweep_recorded.py FOLDER --modelled AGAIN ...

replaces the modelled runs by those of a later model; the measured runs stay.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import save

from louvain_um.profiling.sweep.files import read
from louvain_um.profiling.sweep.results import REQUIRED, Sweep, join_sweeps
from louvain_um.profiling.sweep.sentences import evidence_assumptions
from louvain_um.profiling.views.sweep.validation import by_policy, validation

MORE = (
    "gpu", "vertices", "arcs", "faults", "peak_bytes", "budget_bytes", "bytes_loaded",
    "load_seconds", "chosen", "reason", "modularity",
)  # fmt: skip
"""Columns that are kept if they have a value, in addition to those of every run."""


def modelled_anew(sweep: Sweep, other: Sweep) -> Sweep:
    """Return the measured runs of one sweep and the modelled runs of another, graph by graph."""
    runs = join_sweeps(_of(sweep, "measured"), _of(other, "modelled")).results
    graphs = list(dict.fromkeys(row["graph"] for row in runs))
    order = sorted(
        runs, key=lambda row: (graphs.index(row["graph"]), row["evidence"] == "measured")
    )
    return replace(
        sweep, results=tuple(order), notes=tuple(evidence_assumptions(("modelled", "measured")))
    )


def _of(sweep: Sweep, evidence: str) -> Sweep:
    return replace(sweep, results=tuple(r for r in sweep.results if r["evidence"] == evidence))


def record(sweep: Sweep, machine: Any, about: list[str]) -> dict[str, Any]:
    """Return the record of a sweep: every run, and the errors of the model."""
    return {
        "machine": machine,
        "about": [*about, *filter(None, [sweep.unfinished.partition(". ")[0]])],
        "notes": list(sweep.notes),
        "verdict": validation(sweep).title,
        "modelled_by_measured": [
            # JSON has no infinity.
            {key: None if value == math.inf else value for key, value in row.items()}
            for row in by_policy(sweep).rows
        ],
        "results": [
            {
                **{name: row[name] for name in REQUIRED},
                **{name: row[name] for name in MORE if row.get(name) is not None},
            }
            for row in sweep.results
        ],
    }


def chart(record: dict[str, Any], graph: str, file: Path) -> None:
    """Draw the measured and modelled seconds of a graph."""
    import matplotlib

    from louvain_um.profiling.views.sweep.charts import time_chart

    # Without random names, the same record gives the same bytes.
    matplotlib.rcParams.update({"svg.hashsalt": "louvain-um", "svg.fonttype": "none"})
    figure = time_chart(Sweep.of(record["results"]), graph)
    assert figure is not None, f"{graph} has no runs"
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    """Write a record, or its chart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--machine", type=Path)
    parser.add_argument("--modelled", type=Path, help="folder with the modelled runs to use")
    parser.add_argument("--about", action="append", default=[])
    parser.add_argument("--chart", type=Path)
    parser.add_argument("--graph", default="lfr")
    parser.add_argument("-o", "--out", type=Path)
    args = parser.parse_args()
    if args.source.is_dir():
        machine = json.loads(args.machine.read_text("utf-8"))["machine"] if args.machine else None
        sweep = read(args.source)
        if args.modelled:
            sweep = modelled_anew(sweep, read(args.modelled))
        found = record(sweep, machine, args.about)
        print(save("sweep", found, args.out))
    else:
        found = json.loads(args.source.read_text("utf-8"))
    if args.chart:
        chart(found, args.graph, args.chart)
        print(args.chart)


if __name__ == "__main__":
    main()
