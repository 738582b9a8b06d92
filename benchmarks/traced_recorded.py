"""Make one record of traced GPU sessions: traffic by group, and what could not be attributed.

    louvain-um profile lfr22.npz --device cuda --memory base --tracer -o 100.npz
    louvain-um profile lfr22.npz --device cuda --memory base --device-budget 50% --tracer -o 50.npz
    louvain-um report 50.npz --charts figures
    python benchmarks/traced_recorded.py 100.npz 50.npz --machine other.json -o traced_h200.json

The machine is taken from the record of another benchmark on it. Needs no GPU.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from common import save

from louvain_um.profiling import Session
from louvain_um.profiling.session.storage import load
from louvain_um.profiling.views.charts import charts
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.tables import by_group


def told(session: Session) -> dict[str, Any]:
    """Return the record of a session."""
    about = session.metadata
    watched = about["about_sources"]["uvm"]
    rows = list(by_group(SessionAnalysis(session)).rows)
    moved = {
        key: sum(row.get(key) or 0 for row in rows) for key in ("bytes_to_device", "bytes_to_host")
    }
    return {
        "graph": about["graph"],
        "policy": about["policy"],
        "budget_bytes": about["budget_bytes"],
        "created": about["created"],
        "seconds": about["seconds"],
        "arcs_visited": about["arcs_visited"],
        "by_group": rows,
        "moved": moved,
        "driver": watched["driver_totals"],
        "dropped": watched["dropped"],
        "unattributed": session.unattributed,
        "figures": sorted(charts([session])),
    }


def main() -> None:
    """Write the record of some sessions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sessions", nargs="+", type=Path)
    parser.add_argument("--machine", type=Path, required=True, help="record with that machine")
    parser.add_argument("--about", action="append", default=[], help="what else is to be known")
    parser.add_argument("-o", "--out", type=Path)
    arguments = parser.parse_args()
    runs = [told(load(file)) for file in arguments.sessions]
    machine = json.loads(arguments.machine.read_text(encoding="utf-8"))["machine"]
    save("traced", {"machine": machine, "about": arguments.about, "runs": runs}, arguments.out)


if __name__ == "__main__":
    main()
