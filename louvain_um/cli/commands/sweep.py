"""``louvain-um sweep``: policies × oversubscription × graphs, to tables and one report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common, graphs
from louvain_um.cli.common import Method
from louvain_um.cli.guard import guarded, note, say
from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from louvain_um.profiling.sweep.progress import Progress, Tell
    from louvain_um.profiling.sweep.run import Settings, Subject

POLICIES = "base,adv1,adv2,adv3,adv4,adv5,adv6,adv7,adv8,adv9,auto"
RATES = "0,10,30,50,70"
TELL_EVERY = 10.0
"""Seconds between lines of progress where there is no terminal."""

STUDY = "The thesis's study"

Policies = Annotated[
    str,
    typer.Option(metavar="LIST", help="Policies, commas between them; a .toml file counts, too."),
]
Rates = Annotated[
    str,
    typer.Option(
        "--oversubscription",
        metavar="LIST",
        help="Percentages r: device memory is (1 - r) of the run's peak.",
    ),
]


@guarded
@graphs.with_reading
def sweep(
    graph: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GRAPH",
            help="Graph files, or example:les-miserables; or say --study instead.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder of the results; one that a killed sweep left is completed.",
            show_default=False,
        ),
    ] = None,
    policies: Policies = POLICIES,
    rates: Rates = RATES,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="DEVICE",
            help="cuda or cuda:N measures, cpu simulates; auto measures where there is a GPU, "
            "unless --gpu is said. Say both cuda and --gpu to have both.",
        ),
    ] = "auto",
    gpu: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="GPUs to simulate: h200, p4000, rtx3060ti, or files that calibrate wrote.  "
            "[default: h200]",
            show_default=False,
        ),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Stand-ins for the thesis's graphs on its machines, p4000 and rtx3060ti: "
            "thesis for both, or one of them.",
            show_default=False,
            rich_help_panel=STUDY,
        ),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Vertices of a stand-in by those of its original.  [default: 1/32]",
            show_default=False,
            rich_help_panel=STUDY,
        ),
    ] = None,
    eviction: Annotated[
        str | None,
        typer.Option(
            metavar="WHO",
            help="Who makes room on simulated GPUs: driver, which evicts, or program, which moves "
            "blocks itself, as louvain-um does where it is measured.  [default: program beside "
            "measured runs, driver otherwise]",
            show_default=False,
        ),
    ] = None,
    method: Annotated[Method, typer.Option(help="What to run.")] = Method.louvain,
    seed: common.Seed = 0,
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    reading: graphs.Reading = graphs.AS_IT_IS,
) -> None:
    """Run policies × oversubscription × graphs; write tables and a report."""
    from louvain_um.profiling.sweep import run as sweeps

    if output is None:
        raise OptionError("say with -o in which folder the results are to be")
    if bool(graph) == (study is not None):
        raise OptionError("name GRAPHs, or a --study, not both" if graph else
                          "name GRAPHs, or a --study")  # fmt: skip
    if scale is not None and study is None:
        raise OptionError("--scale is of a --study; graphs are taken as they are")
    if scale is not None and not 0 < scale <= 1:
        raise OptionError(f"--scale must be above 0 and at most 1, not {scale:g}")
    if study is not None and eviction == "program":
        raise OptionError("a --study is of another program, which leaves its memory to the driver")
    settings = settings_for(policies, rates, device, gpu, study, method.value, seed, eviction)
    # A folder that cannot be used is refused before graphs are read.
    from louvain_um.profiling.sweep.progress import Progress
    from louvain_um.profiling.sweep.store import check_folder

    check_folder(output, force=force)
    notes: list[str] = []
    with telling(quiet=quiet) as tell:
        subjects: list[Subject] = []
        if study is not None:
            from louvain_um.profiling.thesis import stand_ins as studies

            notes += studies.ABOUT
            for original in studies.GRAPHS:
                tell(Progress(0, 0, None, f"making {original.name}"))
                subjects.append(original.subject(studies.SCALE if scale is None else scale, seed))
        for source in graph or ():
            tell(Progress(0, 0, None, f"reading {source}"))
            loaded = reading.read(source)
            subjects.append(sweeps.Subject(name=graphs.name_of(source), graph=loaded))
        found = sweeps.sweep(subjects, settings, output, force=force, tell=tell, notes=notes)
    rows = [dict(row) for row in found.results]
    if json:
        common.print_json({"schema": 1, "folder": str(output), "results": rows})
        return
    from louvain_um.profiling.sweep.replay_tables import best

    typer.echo(best(rows))
    if not quiet:
        note(f"tables and report.html are in {output}")


def settings_for(
    policies: str, rates: str, device: str, gpu: str | None, study: str | None, method: Any,
    seed: int, eviction: Any = None,
) -> Settings:  # fmt: skip
    """Return what is to be swept, checked."""
    from louvain_um.gpu.runtime.device import pick
    from louvain_um.placement.machine.machine import load_machine
    from louvain_um.profiling.simulator import Driver
    from louvain_um.profiling.sweep.parsing import parse_policies, parse_rates
    from louvain_um.profiling.sweep.run import Settings

    if study is not None:
        from louvain_um.profiling.thesis.stand_ins import MACHINES

        known = ("thesis", *MACHINES)
        if study not in known:
            raise OptionError(f"study must be one of {', '.join(known)}, not {study!r}")
        gpu = gpu if gpu is not None else (",".join(MACHINES) if study == "thesis" else study)
        device = "cpu"
    wanted = tuple(dict.fromkeys(n.strip() for n in (gpu or "").split(",") if n.strip()))
    if gpu is not None and not wanted:
        raise OptionError(f"gpu must name a machine at least, like h200, not {gpu!r}")
    for each in wanted:
        load_machine(each)
    chosen = pick("cpu" if device == "auto" and wanted else device)
    measured = str(chosen) if chosen.kind == "cuda" else None
    return Settings(
        policies=parse_policies(policies),
        rates=parse_rates(rates),
        gpus=wanted or (() if measured else ("h200",)),
        device=measured,
        method=method,
        seed=seed,
        driver=Driver(eviction=eviction or ("program" if measured and wanted else "driver")),
    )


@contextmanager
def telling(*, quiet: bool) -> Iterator[Tell]:
    """Yield a function that shows progress on stderr: a bar, or a line now and then."""
    import sys
    import time

    if quiet:
        yield lambda progress: None
        return
    if not sys.stderr.isatty():
        last = time.perf_counter()

        def line(progress: Progress) -> None:
            nonlocal last
            if progress.total and time.perf_counter() - last >= TELL_EVERY:
                last = time.perf_counter()
                say(spoken(progress))

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20),
               MofNCompleteColumn(), TextColumn("{task.fields[left]}"))  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, left="")

        def move(progress: Progress) -> None:
            bar.update(
                task, description=progress.text, total=progress.total or None,
                completed=progress.done, left=ahead(progress),
            )  # fmt: skip

        yield move


def spoken(progress: Progress) -> str:
    """Return progress as a line."""
    parts = [f"{progress.done} of {progress.total} points", progress.text, ahead(progress)]
    return ", ".join(part for part in parts if part)


def ahead(progress: Progress) -> str:
    """Return the time left as text."""
    if progress.left is None:
        return ""
    minutes, seconds = divmod(round(progress.left), 60)
    return f"{minutes} min {seconds} s left" if minutes else f"{seconds} s left"


def results_table(rows: Sequence[dict[str, Any]]) -> Any:
    """Return a row a policy, a column an oversubscription: seconds."""
    from louvain_um.cli.commands.plan import new_table
    from louvain_um.placement.reasons import seconds

    rates = sorted({row["oversubscription"] for row in rows})
    table = new_table("policy", *(f"{rate:g} %" for rate in rates))
    for policy in dict.fromkeys(row["policy"] for row in rows):
        by = {row["oversubscription"]: row for row in rows if row["policy"] == policy}
        cells = [
            seconds(by[rate]["seconds"]) if rate in by and by[rate]["feasible"] else "–"
            for rate in rates
        ]
        table.add_row(policy, *cells)
    return table
