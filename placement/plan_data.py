"""A plan as JSON holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from louvain_um.core.ledger import GROUPS, Group
from louvain_um.placement.decision import Decision
from louvain_um.placement.layout import placed
from louvain_um.placement.model.cost import HIDDEN
from louvain_um.placement.model.remaining import TimeRange
from louvain_um.placement.reasons import Reason, notes, verdict

if TYPE_CHECKING:
    import pandas as pd

INTEGERS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
"""Types by bytes of an element; arrays of records are counted in bytes."""


def plain_data(
    plan: Decision, reasons: Mapping[Group, Reason], seconds: TimeRange
) -> dict[str, Any]:
    """Return a plan in bytes and seconds."""
    work = plan.work
    return {
        "schema": 1,
        "vertices": work.vertices,
        "arcs": work.arcs,
        "method": work.method,
        "machine": work.machine.name,
        "kind": work.kind.name,
        "policy": plan.policy,
        "budget_bytes": plan.budget,
        "limit_bytes": plan.limit,
        "in_core_bytes": plan.in_core_bytes,
        "fits": plan.fits,
        "seconds": plan.seconds,
        "seconds_in_core": plan.seconds_in_core,
        "seconds_range": [
            seconds.low,
            seconds.expected,
            seconds.high,
        ],
        "stage_seconds": plan.stage_seconds,
        "seconds_by_cause": {
            "computing": dict(plan.expected.core),
            "bus": dict(plan.expected.remote),
            "blocks": dict(plan.expected.out_of_core),
            "arrival": dict(plan.expected.arrival),
        },
        "inputs": {
            "visited": work.visited,
            "mean_degree": work.mean_degree,
            "widest": work.max_degree or None,
            "passes_in_blocks": work.passes,
            "hidden": HIDDEN,
            "source": work.source,
            "core_scale": work.core_scale,
            "bus_scale": work.bus_scale,
            "machine": work.machine.to_dict(),
        },
        "cliff_arcs": plan.cliff_arcs,
        "peak_bytes": plan.peak_bytes,
        "stage_bytes": plan.bytes_by_stage,
        "device_bytes": plan.device_bytes,
        "host_bytes": plan.host_bytes,
        "placements": {group: str(plan.placements[group]) for group in GROUPS},
        "reasons": {
            group: {
                "phi": reason.phi,
                "tau": reason.tau,
                "sigma": reason.sigma,
                "net": reason.net,
                "sentence": reason.sentence,
            }
            for group, reason in reasons.items()
        },
        "tight": plan.low_scratch,
        "packed": plan.compact,
        "blocks": plan.blocks,
        "blocking": plan.blocking,
        "paged": dict(plan.out_of_core),
        "layout": [
            {
                "name": spec.name,
                "group": spec.group,
                "bytes": spec.capacity,
                "placement": str(spec.placement),
                "members": None if spec.members is None else list(spec.members),
                "on_demand": spec.on_demand,
            }
            for spec in plan.layout
        ],
        "arrays": [
            {
                "name": array.name,
                "group": array.group,
                "dtype": _dtype(array.itemsize),
                "bytes": array.nbytes,
                "phases": list(array.stages),
                "placement": str(placed(array, plan.chosen)),
            }
            for array in plan.arrays
        ],
        "notes": list(notes(plan)),
        "verdict": verdict(plan),
    }


def _dtype(itemsize: float) -> str:
    """Return the type of an array's elements; packed targets have none, of different widths."""
    if itemsize % 1:
        return "packed"
    return INTEGERS.get(int(itemsize), f"V{int(itemsize)}")


def frame_of_arrays(plan: Mapping[str, Any]) -> pd.DataFrame:
    """Return a pandas frame with one row per array of a plan that `to_dict` returned."""
    from louvain_um.results.display import require_pandas

    frame: pd.DataFrame = require_pandas().DataFrame(plan["arrays"])
    return frame
