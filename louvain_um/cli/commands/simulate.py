"""``louvain-um simulate``: replay a run under policies and memory sizes, on any GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common, terminal
from louvain_um.cli import reading as graphs
from louvain_um.cli.common import (
    POLICIES,
    RATES,
    Budgets,
    Policies,
    Rates,
    option,
    refuse_given,
    results_tables,
)
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.reading import DEFAULT_READING, Reading
from louvain_um.cli.terminal import echo
from louvain_um.core.atomic_files import check_output, write_csv, write_text
from louvain_um.core.ledger import GROUPS
from louvain_um.errors import LouvainUmError, MemoryBudgetError, OptionError
from louvain_um.options import Method, Options

if TYPE_CHECKING:
    from louvain_um.placement.machine.machine import Machine
    from louvain_um.profiling.simulator import Driver, Simulation, Trace
    from louvain_um.profiling.sweep.replay import FinishedReplays

COLUMNS = "columns: oversubscription, the memory withheld; at 30 %, 70 % is left"
RANGE = "ranges come from constants that are assumed: eviction to the host, service of faults"
DRIVER = "Simulated driver"


@with_exit_code
def simulate(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|TRACE|SESSION",
            help="A graph file, a recording of sweep, simulate or profile (.npz), or a table of "
            "addresses, whose column device names the GPU: two.csv --machine h200-x2 has two.",
        ),
    ],
    machine: Annotated[
        str,
        option(
            "PROFILE",
            "h200, h200-x2 (two GPUs), p4000, rtx3060ti, p100, p100-nvlink, gh200, or a file "
            "written by calibrate.",
        ),
    ] = "h200",
    policies: Policies = POLICIES,
    rates: Rates = None,
    device_budget: Budgets = None,
    peer_memory: common.Peer = None,
    output: Annotated[
        Path | None,
        option(
            "--output -o FILE", "Also write the results (.json, .csv), or the recording (.npz)."
        ),
    ] = None,
    method: Annotated[Method, option("", "Method to record for a graph.")] = "louvain",
    program: common.Program = None,
    seed: common.Seed = 0,
    eviction: Annotated[
        str,
        option(
            "ORDER",
            "Eviction by the driver: driver (NVIDIA's order), lru, lfu, second_chance or "
            "tree_pre (sparse regions early). Or program: louvain-um itself moves vertex blocks "
            "off the GPU, so that the driver never evicts. Or FILE.py:NAME, a function of your "
            "own.",
            DRIVER,
        ),
    ] = "driver",
    hold: Annotated[
        str | None,
        option(
            "LIST", "Groups to evict only if nothing else is left, such as community,hash.", DRIVER
        ),
    ] = None,
    prefetcher: Annotated[
        bool,
        option(
            "--prefetcher/--no-prefetcher",
            "Whether the driver also migrates neighbours of faulting pages.",
            DRIVER,
        ),
    ] = True,
    prefetch: Annotated[
        str,
        option(
            "RULE",
            "Which neighbours: density (NVIDIA's rule), or FILE.py:NAME, a function of your own.",
            DRIVER,
        ),
    ] = "density",
    access_counters: Annotated[
        int | None,
        option(
            "N",
            "Accesses over the bus to 2 MiB after which regions of 64 KiB migrate to the GPU; "
            "0: never.  [default: 256 if the host is coherent, with pages above 4 KiB, else 0]",
            DRIVER,
        ),
    ] = None,
    coherent: Annotated[
        bool,
        option(
            "--coherent",
            "The CPU can access device memory without migration, as on Grace Hopper.",
            DRIVER,
        ),
    ] = False,
    session: Annotated[
        Path | None,
        option(
            "--session SESSION",
            "Also write a session (.npz) for louvain-um report; needs a single run.",
        ),
    ] = None,
    writing: common.Writing = common.Writing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Simulate policies on a GPU with limited memory; needs no GPU."""
    from louvain_um.placement.machine.profiles import load_machine
    from louvain_um.profiling.access.recorded_plans import explain_peak, peak_of
    from louvain_um.profiling.access.recordings import is_session, recording_in
    from louvain_um.profiling.sweep.points import parse_policies, parse_sizes, rates_of
    from louvain_um.profiling.sweep.replay import Point, replay
    from louvain_um.profiling.sweep.replay_tables import (
        fastest,
        remarks,
        unknown_arrays,
    )
    from louvain_um.profiling.sweep.results import format_rates

    profile = load_machine(machine)
    profile = replace(profile, coherent=profile.coherent or coherent)
    Options(peer_memory=peer_memory)  # checks the name
    driver = driver_for(
        eviction, hold, prefetcher=prefetcher, prefetch=prefetch, access_counters=access_counters
    )
    names = parse_policies(policies)
    shares = parse_sizes(rates, device_budget, RATES)
    check_output_file(output, graph, force=writing.force)
    if session is not None:
        check_session(session, graph, output, points=len(names) * len(shares), force=writing.force)
    trace = None if program else recording_in(graph)
    if program or trace is not None:
        ignored = {"--method": method != "louvain", "--seed": seed != 0}
        if program:
            refuse_given("--program", ignored)
        else:
            ignored["reading options"] = reading != DEFAULT_READING
            refuse_given(f"the recording {graph}", ignored)
    if program:
        trace = declared(graph, program, reading, quiet=writing.quiet)
    elif trace is None:
        from louvain_um.cli.progress import progress_reporter
        from louvain_um.core.compiled import announced
        from louvain_um.profiling.access.recorder import record

        with progress_reporter(quiet=writing.quiet) as reporter, announced(reporter):
            reporter.step(f"reading {graph}")
            loaded = reading.read(graph)
            trace = record(loaded, method=method, seed=seed, observer=reporter)
        graphs.print_notes({graph: loaded}, quiet=writing.quiet)
    recorded = {array.group for array in trace.arrays}
    absent = [name for name in driver.hold if name not in recorded]
    driver = replace(driver, hold=tuple(name for name in driver.hold if name in recorded))
    percents = rates_of(shares, peak_of(trace))
    rows: list[dict[str, Any]] = []
    known: FinishedReplays = {}
    for name in names:
        for percent in percents:
            point = Point(
                graph=graphs.name_of(graph), policy=name, oversubscription=percent, gpu=machine,
                peer=peer_memory is not None,
            )  # fmt: skip
            row, simulation = replay(trace, point, profile, driver=driver, known=known)
            if session is not None:
                save_session(session, trace, simulation, profile, driver, row, force=writing.force)
            rows.append({**row, "gpu": profile.name})
    if output is not None:
        write_results(output, rows, trace, force=writing.force)
    if writing.json:
        common.print_json({"schema": 1, "results": rows})
    refused = [row for row in rows if not row["feasible"]]
    for row in refused if writing.verbose and not (writing.json or writing.quiet) else ():
        at = format_rates([row["oversubscription"]])
        print_note(f"{row['policy']} at {at}: {row['reason']}")
    if len(refused) == len(rows):
        raise refusal_of(known)
    if writing.json:
        return
    from louvain_um.profiling.simulator.result import CONFORMANCE

    peer = " with a peer GPU" if peer_memory is not None else ""
    echo(f"{graphs.name_of(graph)} on {profile.name}{peer}, modelled")
    echo(explain_peak(trace))
    echo(COLUMNS)
    echo("")
    for table in results_tables(rows):
        terminal.print_table(table)
        echo("")
    if not writing.quiet:
        if refused and not writing.verbose:
            print_note(
                "– marks a policy that cannot run within the memory; --verbose gives the reasons"
            )
        if is_session(graph):
            print_note(
                f"{graph} is a session, which counts accesses by page and bin of time: kernels of "
                "a bin are replayed as one, which mostly takes less time than the graph itself"
            )
        print_note(f"{RANGE}; how closely the model follows the driver: {CONFORMANCE}")
        for name in absent:
            print_note(f"--hold {name} has no effect: no array of that group was recorded")
        print_note(*unknown_arrays(trace, names, graphs.name_of(graph)), *remarks(rows))
    echo(fastest(rows))


def refusal_of(replays: FinishedReplays) -> LouvainUmError:
    """Return the error of runs of which none fits: what the least demanding of them needs."""
    errors = [(key[0], it) for key, it in replays.items() if isinstance(it, MemoryBudgetError)]
    policy, least = min(errors, key=lambda error: (error[1].needed, -error[1].budget))
    several = len({name for name, _ in errors}) > 1
    return LouvainUmError(
        f"no run fits: {policy}{', the least demanding policy,' if several else ''} {least}"
    )


def declared(graph: str, program: str, reading: Reading, *, quiet: bool) -> Trace:
    """Return a trace of another algorithm on a graph, as it declares its accesses."""
    from louvain_um.algorithms.programs import check_name, program_for
    from louvain_um.cli.progress import progress_reporter
    from louvain_um.profiling.access.recorded_plans import trace_of

    check_name(program)
    with progress_reporter(quiet=quiet) as reporter:
        reporter.step(f"reading {graph}")
        return trace_of(program_for(program, reading.read(graph)))


def driver_for(
    eviction: str,
    hold: str | None,
    *,
    prefetcher: bool,
    prefetch: str = "density",
    access_counters: int | None = None,
) -> Driver:
    """Return the settings of the simulated driver."""
    from louvain_um.profiling.simulator import Driver
    from louvain_um.profiling.simulator.driver.user_functions import load_functions

    if eviction == "program":
        refuse_given("--eviction program, which leaves nothing to evict,", {"--hold": hold})
    if not prefetcher:
        refuse_given("--no-prefetcher", {"--prefetch": prefetch != "density"})
    held = tuple(name.strip() for name in (hold or "").split(",") if name.strip())
    unknown = [name for name in held if name not in GROUPS]
    if unknown:
        raise OptionError("hold", unknown[0], f"must name groups: {', '.join(GROUPS)}")
    return Driver(
        eviction=load_functions(eviction),
        hold=held,
        prefetcher=prefetcher,
        prefetch=load_functions(prefetch),
        access_counters=access_counters,
    )


def check_output_file(output: Path | None, source: str, *, force: bool) -> None:
    """Raise if the output cannot be written, before any work is done."""
    if output is None:
        return
    if output.suffix not in (".json", ".csv", ".npz"):
        raise OptionError("output", output.name, "must end in .json, .csv or .npz")
    graphs.refuse_same(source, output)
    check_output(output, force=force)


def write_results(output: Path, rows: list[dict[str, Any]], trace: Trace, *, force: bool) -> None:
    """Write the results, or the recording."""
    if output.suffix == ".npz":
        trace.save(output, force=force)
        return
    if output.suffix == ".csv":
        write_csv(output, rows, force=force)
        return
    import json

    write_text(output, json.dumps({"schema": 1, "results": rows}, indent=1) + "\n", force=force)


def check_session(
    path: Path, source: str, output: Path | None, *, points: int, force: bool
) -> None:
    """Raise if the session cannot be written, or if there is more than one run."""
    from louvain_um.profiling.session.storage import check_target

    if points > 1:
        raise OptionError(
            "session", f"{points} runs", "must be of one policy at one oversubscription"
        )
    graphs.refuse_same(source, path)
    if output is not None and path.resolve() == output.resolve():
        raise OptionError(
            remedy=f"{path}: --session and --output are the same file; choose two names"
        )
    check_target(path, force=force)


def save_session(
    path: Path,
    trace: Trace,
    simulation: Simulation | None,
    machine: Machine,
    driver: Driver,
    row: dict[str, Any],
    *,
    force: bool,
) -> None:
    """Simulate a run once more, with its events, and save its session."""
    from louvain_um.profiling.simulator import simulate
    from louvain_um.profiling.simulator.to_session import session_of

    if simulation is None:
        raise LouvainUmError(f"{path}: no session to save: {row['reason']}")
    run = simulate(
        simulation.trace, machine, placements=simulation.provenance["placements"],
        capacity=simulation.capacity_bytes, driver=driver, peer=simulation.provenance["peer"],
    )  # fmt: skip
    about = {"policy": row["policy"], "graph": {"name": row["graph"]}}
    session_of(trace, run, **about).save(path, force=force)
