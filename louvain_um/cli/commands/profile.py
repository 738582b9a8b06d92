"""``louvain-um profile``: run an algorithm and record memory behaviour."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from louvain_um.cli import common
from louvain_um.cli import reading as graphs
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.reading import DEFAULT_READING, GraphArgument, Reading
from louvain_um.cli.terminal import echo

if TYPE_CHECKING:
    from louvain_um.profiling import Session


PRINTED = (
    "graph", "method", "program", "options", "device", "policy", "budget_bytes", "seed",
    "modularity", "communities", "peak_bytes",
)  # fmt: skip
"""What ``--json`` prints of a session's metadata."""


@with_exit_code
def profile(
    graph: GraphArgument,
    output: Annotated[
        Path, option("--output -o SESSION", "Session to write: .npz, or .parquet (a folder).")
    ],
    method: common.MethodToRun = "louvain",
    program: common.Program = None,
    start: Annotated[
        str | None,
        option(
            "--from VERTEX",
            "Start vertex of bfs and sssp, as in the file.  [default: the one with most edges]",
        ),
    ] = None,
    resolution: common.Resolution = 1.0,
    threshold: common.Threshold = 1e-7,
    max_level: common.MaxLevel = None,
    searching: common.Searching = common.Searching(),
    seed: common.Seed = 0,
    device: common.Device = "auto",
    memory: Annotated[
        str,
        option(
            "POLICY",
            "Memory policy of a GPU run. The default leaves placement to the driver, to show "
            "its page faults and migrations; detect uses auto.",
        ),
    ] = "base",
    device_budget: common.Budget = None,
    ballast: common.Ballast = None,
    allow_driver_eviction: common.AllowEviction = False,
    threads: common.Threads = None,
    tracer: Annotated[
        bool, option("--tracer", "Count every memory access of every kernel, by page; slower.")
    ] = False,
    light: Annotated[
        bool,
        option("--light", "Record only totals of migrated bytes; less overhead on page faults."),
    ] = False,
    writing: common.Writing = common.Writing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Run an algorithm and record accesses, page faults and migrations by array."""
    from louvain_um.cli.progress import progress_reporter
    from louvain_um.profiling.record.jobs import check_source
    from louvain_um.profiling.record.profiler import check, profile
    from louvain_um.profiling.sources.source import LIGHT, SOURCES

    # Bad options raise here, before the graph is read.
    graphs.refuse_same(graph, output)
    check(
        output, device=device, memory=memory, force=writing.force, tracer=tracer, program=program,
        ballast=ballast, allow_driver_eviction=allow_driver_eviction,
    )  # fmt: skip
    check_source(program or "a detection of communities", start, "start")
    with progress_reporter(quiet=writing.quiet) as reporter:
        from louvain_um.core.compiled import announced

        reporter.step(f"reading {graph}")
        with announced(reporter):
            loaded = reading.read(graph)
        session = profile(
            loaded,
            method=method,
            program=program,
            source=None if start is None else graphs.named(loaded, start),
            resolution=resolution,
            threshold=threshold,
            max_level=max_level,
            **asdict(searching),
            seed=seed,
            device=device,
            memory=memory,
            device_budget=device_budget,
            ballast=ballast,
            allow_driver_eviction=allow_driver_eviction,
            threads=threads,
            sources=LIGHT if light else SOURCES,
            tracer=tracer,
            observer=reporter,
            save_to=output,
            force=writing.force,
            name=graphs.name_of(graph),
        )
    if not writing.quiet:
        ran_on = session.metadata.get("device")
        print_note(*loaded.notes)
        print_note(*common.ignored_memory_options(ran_on, memory, "base", device_budget))
        if light and ran_on == "cpu":
            print_note("ran on the CPU; --light was ignored")
    if writing.json:
        common.print_json(summary(session, output))
        return
    show(session, quiet=writing.quiet)
    if not writing.quiet:
        echo(
            f"\nsession written to {output}; to view it: louvain-um report {output} -o report.html"
        )


def summary(session: Session, output: Path) -> dict[str, object]:
    """Return what ``--json`` prints."""
    about = session.metadata
    return {
        "schema": 1,
        "version": about["version"],
        "session": str(output),
        **{key: about.get(key) for key in PRINTED},
        **session.summary(),
    }


def show(session: Session, *, quiet: bool) -> None:
    """Print the figures; unless quiet, also the notes."""
    for line in str(session).splitlines():
        text = line.removeprefix("note: ")
        if text == line:
            echo(line)
        elif not quiet:
            print_note(text)
