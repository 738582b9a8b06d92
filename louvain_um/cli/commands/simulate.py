"""``louvain-um simulate``: a recording under policies and memory sizes, on any GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common, graphs
from louvain_um.cli.commands.sweep import POLICIES, RATES, Policies, Rates, results_table
from louvain_um.cli.common import Method
from louvain_um.cli.guard import guarded, note
from louvain_um.errors import LouvainUmError, OptionError

if TYPE_CHECKING:
    from louvain_um.placement.machine.machine import Machine
    from louvain_um.profiling.simulator import Driver, Simulation, Trace

DRIVER = "The simulated driver"


@guarded
@graphs.with_reading
def simulate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|TRACE|SESSION",
            help="A graph file, or a recording: what sweep, simulate or profile wrote (.npz).",
        ),
    ],
    gpu: Annotated[
        str,
        typer.Option(
            metavar="PROFILE", help="h200, p4000, rtx3060ti, or a file that calibrate wrote."
        ),
    ] = "h200",
    policies: Policies = POLICIES,
    rates: Rates = RATES,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also write the results: .json or .csv; or, .npz, the recording.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[Method, typer.Option(help="What to record of a graph.")] = Method.louvain,
    seed: common.Seed = 0,
    eviction: Annotated[
        str,
        typer.Option(
            metavar="ORDER",
            help="Who leaves first: driver (NVIDIA's), lru, lfu, second_chance or tree_pre; or "
            "program: nobody, since blocks go and come as louvain-um itself moves them.",
            rich_help_panel=DRIVER,
        ),
    ] = "driver",
    hold: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Groups that leave last, such as community,hash.",
            show_default=False,
            rich_help_panel=DRIVER,
        ),
    ] = None,
    prefetcher: Annotated[
        bool,
        typer.Option(
            "--prefetcher/--no-prefetcher",
            help="Whether pages near those that fault are brought, too.",
            rich_help_panel=DRIVER,
        ),
    ] = True,
    coherent: Annotated[
        bool,
        typer.Option(
            "--coherent", help="The host reaches device memory in place.", rich_help_panel=DRIVER
        ),
    ] = False,
    session: Annotated[
        Path | None,
        typer.Option(
            "--session",
            metavar="SESSION",
            help="Also what one policy did at one oversubscription, for louvain-um report: .npz.",
            show_default=False,
        ),
    ] = None,
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    reading: graphs.Reading = graphs.AS_IT_IS,
) -> None:
    """Tell what policies would cost on a GPU with too little memory; needs no GPU."""
    from dataclasses import replace

    from louvain_um.placement.machine.machine import load_machine
    from louvain_um.profiling.sweep.parsing import parse_policies, parse_rates
    from louvain_um.profiling.sweep.replay import Known, Point, replay
    from louvain_um.profiling.sweep.replay_tables import best, remarks, unknown_arrays

    machine = load_machine(gpu)
    machine = replace(machine, coherent=machine.coherent or coherent)
    driver = driver_for(eviction, hold, prefetcher=prefetcher)
    names, percents = parse_policies(policies), parse_rates(rates)
    check(output, source, force=force)
    if session is not None:
        check_session(session, source, output, points=len(names) * len(percents), force=force)
    trace = trace_of(source)
    if trace is None:
        from louvain_um.cli.progress import reporting
        from louvain_um.cpu.compiling import announced
        from louvain_um.profiling.access.recorder import record

        with reporting(quiet=quiet) as reporter, announced(reporter):
            reporter.step(f"reading {source}")
            loaded = reading.read(source)
            trace = record(loaded, method=method.value, seed=seed, observer=reporter)
    rows: list[dict[str, Any]] = []
    known: Known = {}
    for name in names:
        for percent in percents:
            point = Point(
                graph=graphs.name_of(source), policy=name, oversubscription=percent, gpu=gpu
            )
            row, found = replay(trace, point, machine, driver=driver, known=known)
            if session is not None:
                keep(session, trace, found, machine, driver, row, force=force)
            rows.append({**row, "policy": policy_name(name), "gpu": machine.name})
    if output is not None:
        write(output, rows, trace, force=force)
    if json:
        common.print_json({"schema": 1, "results": rows})
        return
    if not quiet:
        from louvain_um.cli import tables

        console = tables.console()
        console.print(f"{graphs.name_of(source)} on {machine.name}, modelled; peak "
                      f"{rows[0]['peak_bytes'] / 2**20:,.0f} MiB", soft_wrap=True)  # fmt: skip
        console.print()
        console.print(results_table(rows))
        console.print()
        refused = [row for row in rows if not row["feasible"]]
        if refused and not verbose:
            note("– is a policy that cannot keep to so little memory; --verbose tells why")
        for row in refused if verbose else ():
            note(f"{row['policy']} at {row['oversubscription']:g} %: {row['reason']}")
        for text in (*unknown_arrays(trace, names, graphs.name_of(source)), *remarks(rows)):
            note(text)
    typer.echo(best(rows))


def check_session(
    path: Path, source: str, output: Path | None, *, points: int, force: bool
) -> None:
    """Refuse a session that could not be written, or of which there would be several."""
    from louvain_um.profiling.session.storage import check_target

    if points > 1:
        raise OptionError(
            f"session must be of one policy at one oversubscription, not of {points} runs; "
            "name one of each"
        )
    graphs.refuse_same(source, path)
    if output is not None and path.resolve() == output.resolve():
        raise OptionError(f"{path}: --session and --output are one file; name two")
    check_target(path, force=force)


def keep(
    path: Path,
    trace: Trace,
    found: Simulation | None,
    machine: Machine,
    driver: Driver,
    row: dict[str, Any],
    *,
    force: bool,
) -> None:
    """Save what a simulated run did; it is run once more, with its events."""
    from louvain_um.profiling.simulator import simulate
    from louvain_um.profiling.simulator.to_session import session_of

    if found is None:
        raise LouvainUmError(f"{path}: there is nothing to save: {row['reason']}")
    again = simulate(
        found.trace, machine, placements=found.provenance["placements"],
        capacity=found.capacity_bytes, driver=driver,
    )  # fmt: skip
    about = {"policy": row["policy"], "graph": {"name": row["graph"]}}
    session_of(trace, again, **about).save(path, force=force)


def policy_name(name: str) -> str:
    """Return a policy's own name, where it was given as a file."""
    from louvain_um.placement.policy.policy import find_policy

    return find_policy(name).name


def driver_for(eviction: Any, hold: str | None, *, prefetcher: bool) -> Driver:
    """Return the driver's settings, groups checked."""
    from louvain_um.core.ledger import GROUPS
    from louvain_um.profiling.simulator import Driver

    held = tuple(name.strip() for name in (hold or "").split(",") if name.strip())
    unknown = [name for name in held if name not in GROUPS]
    if unknown:
        raise OptionError(f"hold names groups: {', '.join(GROUPS)}; not {unknown[0]!r}")
    return Driver(eviction=eviction, hold=held, prefetcher=prefetcher)


def trace_of(source: str) -> Trace | None:
    """Return the recording that a file is; None for a graph."""
    from louvain_um.profiling.access.recordings import recording_in

    return recording_in(source)


def check(output: Path | None, source: str, *, force: bool) -> None:
    """Refuse what could not be written, before the work is done."""
    if output is None:
        return
    from louvain_um.core.atomic_files import check_output

    if output.suffix not in (".json", ".csv", ".npz"):
        raise OptionError(f"output must end in .json, .csv or .npz, not {output.name!r}")
    graphs.refuse_same(source, output)
    check_output(output, force=force)


def write(output: Path, rows: list[dict[str, Any]], trace: Trace, *, force: bool) -> None:
    """Write results, or the recording."""
    if output.suffix == ".npz":
        trace.save(output, force=force)
        return
    import csv
    import json

    from louvain_um.core.atomic_files import replacing

    with replacing(output, force=force) as part, part.open("w", newline="") as file:
        if output.suffix == ".json":
            json.dump({"schema": 1, "results": rows}, file, indent=1)
            file.write("\n")
            return
        columns = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
