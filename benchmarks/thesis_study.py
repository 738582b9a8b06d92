"""Dinçer's Table 4.6 from replayed stand-ins, next to the published numbers.

    python benchmarks/thesis_study.py [--scale 0.03125]

All figures are modelled. Pages and blocks keep their size although the graphs are smaller.
"""

from __future__ import annotations

import argparse
import tempfile
import time

from common import machine, save

from louvain_um.profiling.sweep.parsing import parse_policies
from louvain_um.profiling.sweep.results import gains
from louvain_um.profiling.sweep.run import Settings, sweep
from louvain_um.profiling.thesis.published import GAINS
from louvain_um.profiling.thesis.stand_ins import ABOUT, GRAPHS, MACHINES, RATES, SCALE


def main() -> None:
    """Run the study and save the mean gains of each machine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=SCALE)
    scale = parser.parse_args().scale
    settings = Settings(policies=parse_policies("all"), rates=RATES, gpus=MACHINES)
    since = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = sweep([graph.subject(scale) for graph in GRAPHS], settings, folder)
    rows = found.results
    auto = [row for row in rows if row["policy"] == "auto" and row["feasible"]]
    save(
        "thesis_study_modelled",
        {
            "machine": machine(),
            "seconds": time.perf_counter() - since,
            "evidence": "modelled",
            "scale": scale,
            "about": list(ABOUT),
            "oversubscription": list(RATES),
            "gains": {
                gpu: {
                    policy: list(by_rate.values())
                    for policy, by_rate in gains([r for r in rows if r["gpu"] == gpu]).items()
                }
                for gpu in MACHINES
            },
            "published": {policy: list(values) for policy, values in GAINS.items()},
            "auto_is_the_plan_s_own_choice": sum(row["chosen"] == "plan" for row in auto),
            "auto_runs": len(auto),
            "notes": [note for note in found.notes if note.startswith(("why", "Table"))],
        },
        None,
    )


if __name__ == "__main__":
    main()
