"""``louvain-um profile``: detect communities and record what that did to memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from louvain_um.cli import common, graphs
from louvain_um.cli.common import Method
from louvain_um.cli.guard import guarded, note

if TYPE_CHECKING:
    from louvain_um.profiling import Session


@guarded
@graphs.with_reading
def profile(
    graph: graphs.Source,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="SESSION", help="The recording: .npz, or .parquet, a folder."
        ),
    ],
    method: Annotated[Method, typer.Option(help="What to run.")] = Method.louvain,
    resolution: common.Resolution = 1.0,
    threshold: common.Threshold = 1e-7,
    max_level: common.MaxLevel = None,
    seed: common.Seed = 0,
    device: common.Device = "auto",
    memory: Annotated[
        str,
        typer.Option(
            metavar="POLICY", help="Where a GPU run keeps its arrays; base leaves it to the driver."
        ),
    ] = "base",
    device_budget: common.Budget = None,
    threads: common.Threads = None,
    tracer: Annotated[
        bool,
        typer.Option("--tracer", help="Count every access of every kernel, page by page; slower."),
    ] = False,
    light: Annotated[
        bool,
        typer.Option(
            "--light", help="Migrated bytes in total, not one by one; hardly slows faulting down."
        ),
    ] = False,
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    reading: graphs.Reading = graphs.AS_IT_IS,
) -> None:
    """Find communities and record what that did to memory, array by array."""
    from louvain_um.cli.progress import reporting
    from louvain_um.profiling.record.profiler import LIGHT, SOURCES, check, profile

    # Whatever can be refused is refused before a long run, not after it.
    graphs.refuse_same(graph, output)
    check(output, device=device, memory=memory, force=force, tracer=tracer)
    with reporting(quiet=quiet) as reporter:
        from louvain_um.cpu.compiling import announced

        reporter.step(f"reading {graph}")
        with announced(reporter):
            loaded = reading.read(graph)
        session = profile(
            loaded,
            method=method.value,
            resolution=resolution,
            threshold=threshold,
            max_level=max_level,
            seed=seed,
            device=device,
            memory=memory,
            device_budget=device_budget,
            threads=threads,
            sources=LIGHT if light else SOURCES,
            tracer=tracer,
            observer=reporter,
            save_to=output,
            force=force,
            name=graphs.name_of(graph),
        )
    if not quiet:
        ran_on = session.metadata.get("device")
        for text in (*loaded.notes, *common.idle(ran_on, memory, "base", device_budget)):
            note(text)
        if light and ran_on == "cpu":
            note(
                "the run was the CPU's, which is watched by the engine itself: --light did nothing"
            )
    if json:
        common.print_json(summary(session, output))
        return
    show(session, quiet=quiet)
    if not quiet:
        typer.echo(f"\nsession in {output}; louvain-um report {output} -o report.html shows it")


def summary(session: Session, output: Path) -> dict[str, object]:
    """Return what ``--json`` prints."""
    about = session.metadata
    return {
        "schema": 1,
        "version": about["version"],
        "session": str(output),
        **{
            key: about.get(key)
            for key in ("graph", "method", "device", "policy", "budget_bytes", "seed")
        },
        "modularity": about.get("modularity"),
        "communities": about.get("communities"),
        "peak_bytes": about.get("peak_bytes"),
        **session.summary(),
    }


def show(session: Session, *, quiet: bool) -> None:
    """Print the figures, the answer of the command; notes only where somebody listens."""
    for line in str(session).splitlines():
        text = line.removeprefix("note: ")
        if text == line:
            typer.echo(line)
        elif not quiet:
            note(text)
