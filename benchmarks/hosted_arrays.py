"""Cost of single arrays on the host, by phase, with targets of 24 bits.

    python benchmarks/hosted_arrays.py lfr24 rmat24 -o hosted_arrays.json

Scratch has its minimal size and level 0's targets take 24 bits, as under `auto` if not everything
fits. The arrays of a set are on the host, all others on the device, without a budget. The faster
of two runs counts, with synchronisation around each phase. Predictions of the cost model are
recorded next to it.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from common import DATA, device_graph, machine, save
from gpu_detect import Phases, run

from louvain_um.gpu.memory.loading import survey
from louvain_um.options import Options
from louvain_um.placement.model.graph_kinds import kind_of
from louvain_um.placement.policy.candidate import candidate
from louvain_um.placement.policy.hosting import HOSTED
from louvain_um.placement.policy.policy import AUTO, Placement

FIRST = {"targets.1": HOSTED, "weights.1": HOSTED}
SECOND = {"targets.2": HOSTED, "weights.2": HOSTED}


def part(fraction: float) -> Placement:
    """Return a placement with this share on the device."""
    return Placement("split", fraction)


SETS: dict[str, dict[str, Placement]] = {
    "nothing": {},
    **{f"targets.0, {1 - f:.0%}": {"targets.0": part(f)} for f in (0.75, 0.5, 0.25, 0.12)},
    "targets.0": {"targets.0": HOSTED},
    "targets.1": {"targets.1": HOSTED},
    "weights.1": {"weights.1": HOSTED},
    "targets.1 and weights.1": FIRST,
    "targets.1 and weights.1, 50%": {"targets.1": part(0.5), "weights.1": part(0.5)},
    "targets.2 and weights.2": SECOND,
    "start": {"start": HOSTED},
    "targets.0, 75%, targets.1 and weights.1": {"targets.0": part(0.25), **FIRST},
    "targets.0, targets.2, weights.2 and start": {
        "targets.0": HOSTED, **SECOND, "start": HOSTED,
    },
}  # fmt: skip


def shape(graph: Any) -> dict[str, Any]:
    """Return the shape, which determines the sizes of a run's arrays."""
    degrees = survey(graph)
    skew = degrees.degree_squares / graph.n_arcs * graph.n_vertices / graph.n_arcs
    size = {"vertices": graph.n_vertices, "arcs": graph.n_arcs, "kind": kind_of(skew).name}
    return size | {name: getattr(degrees, name) for name in ("max_degree", "isolated", "hub_arcs")}


def measure(graph: Any, method: Any, hosted: dict[str, Placement]) -> dict[str, Any]:
    """Return milliseconds by phase, device bytes, and predictions."""
    expected = []

    def forced(
        default: Any,
        declare: Any,
        work: Any,
        limit: int,
        out_of_core: Any = None,
        compact: Any = None,
    ) -> Any:
        policy = replace(AUTO, arrays=hosted)
        found = candidate(
            policy, compact(True), work, limit, low_scratch=True, compact=True, joint=True
        )
        expected.append(found.expected.seconds)
        return found

    runs = []
    with patch("louvain_um.placement.plan.choose", forced):
        for _ in range(2):
            watch = Phases()
            _, _, taken = run(graph, Options(device="cuda", memory=AUTO, method=method), watch)
            rows = [
                {k: v for k, v in row.items() if k != "seconds"}
                | {"milliseconds": 1e3 * row["seconds"]}
                for row in watch.rows
                if row["phase"] not in ("load", "fetch")
            ]
            runs.append((sum(row["milliseconds"] for row in rows), rows))
    total, rows = min(runs, key=lambda found: found[0])
    return {
        "milliseconds": total,
        "predicted_milliseconds": 1e3 * expected[0],
        "device_bytes": int(taken),
        "phases": rows,
    }


def main() -> None:
    """Measure every set on every graph."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--method", default="louvain", choices=("louvain", "leiden"))
    parser.add_argument("--output", "-o", type=Path)
    chosen = parser.parse_args()
    results, shapes = [], {}
    for name in chosen.graphs:
        graph = device_graph(name, DATA).to_host()
        shapes[name] = shape(graph)
        for away, hosted in SETS.items():
            there = {array: placement.on_device for array, placement in hosted.items()}
            row = {"graph": name, "method": chosen.method, "away": away, "on_device": there}
            row |= measure(graph, chosen.method, hosted)
            results.append(row)
            print(
                f"{name:8} {away:45} {row['milliseconds']:8.1f} ms, "
                f"predicted {row['predicted_milliseconds']:8.1f}",
                flush=True,
            )
            record = {"machine": machine(), "shapes": shapes, "results": results}
            save("hosted_arrays", record, chosen.output)


if __name__ == "__main__":
    main()
