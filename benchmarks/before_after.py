"""One benchmark of two checkouts on one machine, in turns: did a change cost time?

    python benchmarks/before_after.py ../before lfr22 rmat22 stencil150 -o result.json

Runs `gpu_detect.py` on the other checkout and on this one alternately, `--rounds` times each, and
compares the shortest of the medians per graph and method. A ratio is this checkout's time by the
other's; `spread` is how far the other checkout's own rounds lie apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def run(checkout: Path, method: str, graphs: list[str], runs: int, out: Path) -> dict[str, Any]:
    """Return the record of one run of `gpu_detect.py` on a checkout."""
    script = HERE / "gpu_detect.py"
    command = [sys.executable, script, *graphs, "--method", method, "--runs", str(runs), "-o", out]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--methods", default="louvain,leiden")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("-o", "--out", type=Path, required=True)
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for method in arguments.methods.split(","):
            found: dict[str, list[dict[str, Any]]] = {"before": [], "after": []}
            for number in range(arguments.rounds):
                for side, checkout in (("before", arguments.before), ("after", HERE.parent)):
                    out = Path(folder, f"{method}-{side}-{number}.json")
                    found[side].append(
                        run(checkout.resolve(), method, arguments.graphs, arguments.runs, out)
                    )
            for i, graph in enumerate(arguments.graphs):
                rows = {side: [r["results"][i] for r in found[side]] for side in found}
                times = {s: [row["algorithm_median"] for row in rows[s]] for s in rows}
                before, after = rows["before"][0], rows["after"][0]
                results.append(
                    {
                        "graph": graph,
                        "method": method,
                        "arcs": after["arcs"],
                        "seconds_before": times["before"],
                        "seconds_after": times["after"],
                        "ratio": min(times["after"]) / min(times["before"]),
                        "spread": max(times["before"]) / min(times["before"]),
                        "bytes_ratio": after["bytes_taken"] / before["bytes_taken"],
                        "modularity": [before["modularity"], after["modularity"]],
                        "same_labels": before["labels"] == after["labels"],
                    }
                )
                row = results[-1]
                print(
                    f"{graph:<12} {method:<8} {1e3 * min(times['before']):9.2f} ms before "
                    f"{1e3 * min(times['after']):9.2f} after  ratio {row['ratio']:.3f}  "
                    f"spread {row['spread']:.3f}  bytes {row['bytes_ratio']:.4f}  "
                    f"same labels {row['same_labels']}",
                    flush=True,
                )
            record = {"machine": found["after"][0]["machine"], "results": results}
            arguments.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
