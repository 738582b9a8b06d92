"""``louvain-um sweep``: graphs × policies × oversubscription, with tables and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from louvain_um.cli import common
from louvain_um.cli import reading as graphs
from louvain_um.cli.common import (
    POLICIES,
    RATES,
    Budgets,
    Policies,
    Rates,
    option,
    refuse_given,
)
from louvain_um.cli.exit_codes import going_on, has_packages, print_note, with_exit_code
from louvain_um.cli.reading import DEFAULT_READING, Reading
from louvain_um.cli.terminal import echo
from louvain_um.errors import LouvainUmError, OptionError, check_choice

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph
    from louvain_um.profiling.sweep.run import Subject

STUDY = "Study of Dinçer's thesis"


@with_exit_code
def sweep(
    graph: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GRAPH|TRACE",
            help="Graph files, example:les-miserables, or recordings: .npz of sweep, simulate or "
            "profile, a table of addresses (CSV, Parquet), or an export of Nsight Systems (SQLite, "
            "Parquet). Without them, pass --study.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "--output -o DIR",
            "Folder for the results; an interrupted sweep continues there.  [required]",
        ),
    ] = None,
    policies: Policies = POLICIES,
    rates: Rates = None,
    device_budget: Budgets = None,
    device: Annotated[
        str,
        option(
            "--device DEVICE",
            "cuda or cuda:N measures, cpu simulates; auto measures if there is a GPU and no "
            "--machine. Pass both --device cuda and --machine to do both.",
        ),
    ] = "auto",
    machine: Annotated[
        str | None,
        option(
            "LIST",
            "Machines to simulate: h200, h200-x2 (two GPUs), p4000, rtx3060ti, p100, p100-nvlink, "
            "gh200, or files written by calibrate.  [default: h200]",
        ),
    ] = None,
    study: Annotated[
        str | None,
        option(
            "p4000|rtx3060ti|thesis",
            "Simulate generated stand-ins for the graphs of Dinçer's thesis, on one of its "
            "two GPUs or (thesis) on both.",
            STUDY,
        ),
    ] = None,
    as_thesis: Annotated[
        bool,
        option(
            "--as-thesis",
            "Simulate the thesis's program, Rundemanen's Louvain, instead of this one.",
            STUDY,
        ),
    ] = False,
    scale: Annotated[
        float | None,
        option(
            "X", "Size of the stand-ins, relative to the original graphs.  [default: 0.125]", STUDY
        ),
    ] = None,
    eviction: Annotated[
        str | None,
        option(
            "ORDER",
            "Eviction on simulated GPUs: by the driver, or by the program (louvain-um moves "
            "vertex blocks itself, as in measured runs).  [default: program if runs are also "
            "measured, else driver]",
        ),
    ] = None,
    method: common.MethodToRun = "louvain",
    program: common.Program = None,
    energy: Annotated[
        bool, option("--energy", "Also measure joules: every point on a GPU is repeated for 2 s.")
    ] = False,
    ballast: common.Ballast = None,
    allow_driver_eviction: common.AllowEviction = False,
    seed: common.Seed = 0,
    writing: common.Writing = common.Writing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Run graphs × policies × oversubscription; write tables and a report."""
    from louvain_um.profiling.sweep import run as sweeps

    if output is None:
        raise OptionError(remedy="name a folder for the results with -o")
    if bool(graph) == (study is not None):
        raise OptionError(remedy="name GRAPHs or a --study" + (", not both" if graph else ""))
    if scale is not None and study is None:
        raise OptionError(remedy="--scale needs a --study; graphs are never scaled")
    if scale is not None and not 0 < scale <= 1:
        raise OptionError("scale", scale, "must be above 0 and at most 1")
    other = "--as-thesis" if as_thesis else "a --study"
    if (as_thesis or study is not None) and eviction == "program":
        raise OptionError(
            remedy=f"{other} simulates another program, which leaves eviction to the driver"
        )
    if as_thesis:
        refuse_given(
            "--as-thesis",
            {"--study": study, "--program": program, "--method": method != "louvain",
             "--device": device not in ("auto", "cpu")},
        )  # fmt: skip
        device = "cpu"
    if program is not None:
        from louvain_um.algorithms.programs import check_name

        check_name(program)
        if study is not None or eviction == "program":
            raise OptionError(
                remedy="--program runs an algorithm on graphs, with eviction by the driver; omit "
                "--study and --eviction"
            )
        refuse_given("--program", {"--method": method != "louvain", "--seed": seed != 0})
        eviction = "driver"
    if study is not None:
        refuse_given("--study", {"reading options": reading != DEFAULT_READING})
    graphs.refuse_two_inputs(*(graph or ()))
    gpus, measured, usual = machines_for(device, machine, study)
    from louvain_um.profiling.simulator import Driver
    from louvain_um.profiling.sweep.points import parse_policies, parse_sizes, rates_of
    from louvain_um.profiling.sweep.run import Settings

    settings = Settings(
        policies=parse_policies(policies),
        rates=rates_of(parse_sizes(rates, device_budget, RATES)),
        gpus=gpus,
        device=measured,
        method=method,
        seed=seed,
        energy=energy,
        ballast=ballast,
        allow_driver_eviction=allow_driver_eviction,
        driver=Driver(eviction=eviction or usual),
    )
    # A bad folder raises before graphs are read.
    from louvain_um.profiling.access.recordings import recording_in
    from louvain_um.profiling.sweep.files import check_sweep_folder
    from louvain_um.profiling.sweep.points import subject_of, subject_of_trace
    from louvain_um.profiling.sweep.run import Progress

    check_sweep_folder(output, force=writing.force)
    has_packages("report.html", "report", "jinja2", quiet=writing.quiet)
    notes: list[str] = []
    read: dict[str, Graph] = {}
    from louvain_um.cli.progress import progress_printer

    with progress_printer(quiet=writing.quiet) as tell:
        subjects: list[Subject] = []
        if study is not None:
            from louvain_um.profiling.thesis import stand_ins as studies

            notes += studies.ABOUT
            tell(Progress(0, 0, None, "generating stand-ins"))
            for subject in studies.subjects(studies.SCALE if scale is None else scale, seed):
                tell(Progress(0, 0, None, f"generated {subject.name}"))
                subjects.append(subject)
        for source in graph or ():
            tell(Progress(0, 0, None, f"reading {source}"))
            name = graphs.name_of(source)
            trace = None if program is not None else recording_in(source)
            if trace is not None:
                refuse_given(f"the recording {source}", {"--as-thesis": as_thesis})
                subjects.append(subject_of_trace(name, trace))
                continue
            read[source] = loaded = reading.read(source)
            if as_thesis:
                from louvain_um.profiling.thesis.stand_ins import ABOUT_PROGRAM, as_program

                notes += [note for note in ABOUT_PROGRAM if note not in notes]
                subjects.append(as_program(name, loaded, seed))
            else:
                subjects.append(subject_of(name, loaded, program))
        if study is None and not read:
            refuse_given(
                "a sweep of recordings",
                {"--method": method != "louvain", "--seed": seed != 0,
                 "reading options": reading != DEFAULT_READING},
            )  # fmt: skip
        with going_on(force=writing.force):
            swept = sweeps.sweep(
                subjects, settings, output, force=writing.force, tell=tell, notes=notes
            )
        if study is not None:
            from louvain_um.profiling.thesis.stand_ins import save_sessions

            save_sessions(subjects, settings, output, tell, fresh=writing.force)
    graphs.print_notes(read, quiet=writing.quiet)
    rows = [dict(row) for row in swept.results]
    if writing.json:
        common.print_json({"schema": 1, "folder": str(output), "results": rows})
    if rows and not any(row["feasible"] for row in rows):
        reason = rows[-1]["reason"]
        raise LouvainUmError(f"no run fits, as results.csv in {output} says: {reason}")
    if writing.json:
        return
    from louvain_um.profiling.sweep.replay_tables import fastest

    echo(fastest(rows))
    if not writing.quiet:
        page = " and report.html" if (output / "report.html").exists() else ""
        print_note(f"tables{page} are in {output}")
        if study is not None:
            print_note(
                f"sessions of base are in {output / 'sessions'}, one a graph: louvain-um report "
                f"{output} --charts FOLDER draws Figures 4.1 to 4.19 of each, too"
            )


def machines_for(
    device: str, machine: str | None, study: str | None
) -> tuple[tuple[str, ...], str | None, str]:
    """Return the machines of a sweep, the device to measure on, and what evicts by default."""
    from louvain_um.placement.machine.profiles import load_machine
    from louvain_um.profiling.sweep.points import places_of

    if study is not None:
        from louvain_um.profiling.thesis.published import MACHINES

        check_choice("study", study, ("thesis", *MACHINES))
        if machine is None:
            machine = ",".join(MACHINES) if study == "thesis" else study
        device = "cpu"
    profiles = tuple(dict.fromkeys(n.strip() for n in (machine or "").split(",") if n.strip()))
    if machine is not None and not profiles:
        raise OptionError("machine", machine, "must name at least one machine, such as h200")
    for profile in profiles:
        load_machine(profile)
    gpus, measured = places_of(profiles, device)
    return gpus, measured, "program" if measured and profiles else "driver"
