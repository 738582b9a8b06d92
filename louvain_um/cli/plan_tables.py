"""Text output of ``louvain-um plan``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from louvain_um.cli.terminal import echo, new_table, print_table
from louvain_um.core.array_spec import STAGES
from louvain_um.distributed.rank_plans import LARGE, DevicePlan, RankPlan
from louvain_um.graph.limits import MAX_VERTICES
from louvain_um.placement.detection_plan import Plan
from louvain_um.placement.hardware import seconds, size
from louvain_um.placement.layout import placed
from louvain_um.results.display import count

if TYPE_CHECKING:
    from rich.table import Table

LEGEND = (
    "seconds if the group were on the host: φ added by access over the bus, τ saved in copies, σ "
    "saved in launches (model of Hope, Nag and Qasem)"
)

RANK_PARTS = ("local", "apply", "exchange", "latency")
DEVICE_PARTS = ("local", "repeated", "alone")


def print_plan(plan: Plan, name: str, *, verbose: bool) -> None:
    """Print a plan, its verdict first; if verbose, also its terms, stages and arrays."""
    work = plan.work
    many = count(work.vertices, "vertex", "vertices")
    heading = f"{name}: {many}, {count(work.arcs, 'arc', 'arcs')}, {work.method}"
    echo(plan.verdict)
    echo("")
    echo(heading)
    echo("")
    print_table(group_table(plan, terms=verbose))
    if verbose:
        echo(LEGEND)
    echo("")
    for group, reason in plan.reasons.items():
        echo(f"{group}: {reason.sentence}")
    echo("")
    limit = "budget" if plan.request.budgeted else "available"
    text = f"occupied: {size(plan.device_bytes)} on the device ({limit}: {size(plan.limit)})"
    if plan.host_bytes:
        peer = "other GPU or the " if work.machine.beyond == "peer" else ""
        text += f", {size(plan.host_bytes)} on the {peer}host"
    echo(f"{text}; groups peak at different times and share memory")
    if plan.pages is not None:
        text = "all of that is reserved, in pages that change sides: how large coarse levels are is"
        echo(f"{text} known only once level 0 is done")
    needed = f"{size(plan.in_core_bytes)} needed with everything on the GPU (in core)"
    echo(f"{needed}; budgets and oversubscription in % refer to this")
    stages = plan.stage_seconds
    load, fetch = seconds(stages.get("load", 0)), seconds(stages.get("fetch", 0))
    core = f"{seconds(plan.seconds_in_core)} in core"
    text = f"{seconds(plan.seconds)} ({core}), plus {load} to load and {fetch} to fetch labels"
    echo(text)
    echo(f"range: {plan.range_note}")
    if plan.out_of_core:
        text = f"{count(plan.blocks, 'block', 'blocks')} per pass over the arcs"
        if plan.transfer_mode == "fault":
            text += f", touched by {count(plan.blocking, 'page', 'pages')} per warp"
        echo(text)
    if work.arcs:
        echo(f"largest graph of this shape in core: {plan.cliff_arcs:,} arcs")
    if verbose:
        for table in (stage_table(plan), array_table(plan)):
            echo("")
            print_table(table)
    echo("")


def group_table(plan: Plan, *, terms: bool) -> Table:
    """Return a table with one row per group: placement, peak and, if asked for, terms."""
    head = ("φ", "τ", "σ", "φ − τ − σ") if terms else ()
    table = new_table("<placement", "peak", *head, label="group")
    for group, reason in plan.reasons.items():
        model = (reason.phi, reason.tau, reason.sigma, reason.net) if terms else ()
        where = str(plan.placements[group])
        table.add_row(group, where, size(plan.peak_bytes[group]), *map(seconds, model))
    return table


def stage_table(plan: Plan) -> Table:
    """Return a table with one row per stage: bytes alive, and seconds by cause."""
    expected = plan.expected
    table = new_table("bytes", "compute", "bus", "blocks", "first touch", "total", label="stage")
    causes = (
        expected.core,
        expected.remote,
        expected.out_of_core,
        expected.arrival,
        expected.stages,
    )
    for stage in STAGES:
        row = [cause.get(stage, 0.0) for cause in causes]
        if any(row):
            table.add_row(stage, size(plan.bytes_by_stage[stage]), *map(seconds, row))
    return table


def array_table(plan: Plan) -> Table:
    """Return a table with one row per array: placement, bytes and stages."""
    table = new_table("<group", "<placement", "bytes", "<alive in", label="array")
    for array in sorted(plan.arrays, key=lambda a: (a.group, -a.nbytes)):
        where = str(placed(array, plan.chosen))
        alive = " ".join(array.stages)
        table.add_row(array.name, array.group, where, size(array.nbytes), alive)
    return table


def ranks_summary(
    plans: Sequence[RankPlan], memory: int | None, least: int | None, most_speedup: float
) -> dict[str, Any]:
    """Return the plans, the fastest number of ranks, the least that fits, and the limit."""
    fitting = [plan for plan in plans if memory is None or plan.nbytes <= memory]
    best = min(fitting, key=lambda plan: plan.total_seconds, default=None)
    return {
        "plans": [plan.to_dict() for plan in plans],
        "best": None if best is None else best.ranks,
        "least": least,
        "rank_memory": memory,
        "most_speedup": most_speedup,
        "evidence": "modelled",
    }


def print_ranks(found: dict[str, Any], vertices: int, arcs: int) -> None:
    """Print a table with a row per number of ranks, which to take, and the limits."""
    plans, memory = found["plans"], found["rank_memory"]
    many = count(vertices, "vertex", "vertices")
    echo(f"{many}, {count(arcs, 'arc', 'arcs')}, louvain, modelled")
    echo("")
    table = new_table("ranks", "memory per rank", "received", *RANK_PARTS, "total")
    for plan in plans:
        table.add_row(
            str(plan["ranks"]),
            size(plan["bytes"]),
            size(plan["received_bytes"]),
            *(seconds(plan["seconds"][part]) for part in RANK_PARTS),
            seconds(plan["total_seconds"]),
        )
    print_table(table)
    held = plans[0]["replicated_bytes"]
    if found["best"] is None:
        echo(f"no number of ranks fits: {size(held)} lie on every rank besides rows and messages")
    else:
        text = f"fastest: {count(found['best'], 'rank', 'ranks')}"
        if memory is not None:
            text += f"; fewest that fit into {size(memory)} each: {found['least']}"
        echo(text)
    most = found["most_speedup"]
    limit = (
        f"no number of ranks is more than {most:.1f} times as fast as one"
        if most > 1
        else "on a graph as small no number of ranks is as fast as one"
    )
    echo(
        f"limits: every rank carries out and receives all moves, so that {limit}; {size(held)} lie "
        f"on every rank; vertices are numbered with 32 bits, so that {MAX_VERTICES:,} are the most"
    )


def devices_summary(plans: Sequence[DevicePlan], most_speedup: float) -> dict[str, Any]:
    """Return the plans of several devices, and the limit."""
    return {"plans": [plan.to_dict() for plan in plans], "most_speedup": most_speedup}


def print_devices(found: dict[str, Any], vertices: int, arcs: int) -> None:
    """Print a table with a row per number of devices, and the limit."""
    many = count(vertices, "vertex", "vertices")
    echo(f"{many}, {count(arcs, 'arc', 'arcs')}, louvain, H200s of one host")
    echo("")
    table = new_table("GPUs", "reserved per GPU", *DEVICE_PARTS, "total", "evidence")
    for plan in found["plans"]:
        table.add_row(
            str(plan["devices"]),
            size(plan["bytes"]),
            *(seconds(plan["seconds"][part]) for part in DEVICE_PARTS),
            seconds(plan["total_seconds"]),
            plan["evidence"],
        )
    print_table(table)
    echo(
        "seconds of Louvain, without loading; a run reserves up to 2.3 times the memory that it "
        "has in use at its peak"
    )
    if arcs < LARGE:
        echo(
            f"a graph of fewer than {LARGE:,} arcs takes longer than this: launches and exchanges "
            "are left out; one GPU is enough for it"
        )
    echo(
        "limits: all GPUs apply all moves and group all vertices, so that no number of them is "
        f"more than {found['most_speedup']:.1f} times as fast as one"
    )
