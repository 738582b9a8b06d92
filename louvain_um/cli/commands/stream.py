"""``louvain-um stream``: communities that follow timed edges."""

from __future__ import annotations

import time as clock
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from louvain_um.cli import common
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import PAGES, going_on, has_packages, print_note, with_exit_code
from louvain_um.cli.reading import IdKind, expanded
from louvain_um.cli.terminal import echo
from louvain_um.core import interrupts
from louvain_um.options import Method

if TYPE_CHECKING:
    from louvain_um.cli.progress import Reporter
    from louvain_um.cli.timed_sources import Source
    from louvain_um.dynamic.tracking.stream_folder import StreamFolder
    from louvain_um.dynamic.tracking.tracker import Tracker

CHECKPOINT_SECONDS = 30.0
"""Time between checkpoints: what a kill may cost, at most."""

COLUMNS = "Columns of the file"


def column(what: str) -> Any:
    """Return an option that names a column."""
    return option("COLUMN", f"{what}: a name, or a number from 1.", COLUMNS)


@with_exit_code
def stream(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Timed edges: lines `u v time [weight]`, CSV or Parquet; - for "
            "standard input, followed as edges arrive.",
        ),
    ],
    output: Annotated[
        Path,
        option(
            "--output -o DIR",
            "Folder for tables and report; an interrupted stream continues there.",
        ),
    ],
    every: Annotated[
        str, option("N|TIME", "Size of a batch, in edges (1000) or time (1d).")
    ] = "1000",
    window: common.Window = None,
    method: Annotated[Method, option("", "Method that renews communities.")] = "leiden",
    resolution: common.Resolution = 1.0,
    searching: common.Searching = common.Searching(),
    seed: common.Seed = 0,
    renew: Annotated[
        float,
        option(
            "X", "Share of the weight that may change against communities before they are renewed."
        ),
    ] = 0.02,
    audit: Annotated[
        float,
        option(
            "X",
            "Lead in modularity from which the communities of an audit are taken; 1 for no audits.",
        ),
    ] = 0.003,
    connected: Annotated[
        Literal["renewal", "always"],
        option("", "When communities are split into connected parts."),
    ] = "renewal",
    source: Annotated[str | None, column("First end")] = None,
    target: Annotated[str | None, column("Second end")] = None,
    time: Annotated[str | None, column("Time")] = None,
    weight: Annotated[str | None, column("Weight")] = None,
    header: Annotated[
        bool | None,
        option(
            "--header/--no-header",
            "Whether the first line names the columns.  [default: if none of its fields is a "
            "number or a date]",
            COLUMNS,
        ),
    ] = None,
    separator: Annotated[
        str | None, option("C", r"Character between fields; \t for a tab.", COLUMNS)
    ] = None,
    ids: Annotated[IdKind, option("", "Read ids as numbers or as text.", panel=COLUMNS)] = "auto",
    weighted: Annotated[
        bool | None,
        option("--weighted/--unweighted", "Whether to read weights.  [default: detected]", COLUMNS),
    ] = None,
    date_format: common.DateFormat = None,
    sort: Annotated[bool, option("--sort", "Sort edges by time.", COLUMNS)] = False,
    threads: common.Threads = None,
    safe_csv: common.SafeCsv = False,
    writing: common.Writing = common.Writing(),
) -> None:
    """Follow communities through timed edges; write them as they change."""
    from louvain_um.cli.progress import progress_reporter
    from louvain_um.cli.timed_sources import source_of
    from louvain_um.core.compiled import announced
    from louvain_um.dynamic.tracking.stream_folder import StreamFolder
    from louvain_um.dynamic.windows import span
    from louvain_um.results.display import count

    for name, value in (("every", every), ("window", window)):
        if value is not None:
            span(name, value)
    options: dict[str, Any] = {
        "seed": seed, "renew": renew, "audit": None if audit == 1 else audit,
        "method": method, "resolution": resolution, "connected": connected, **asdict(searching),
    }  # fmt: skip
    refuse_options(options, threads)
    columns: dict[str, Any] = {
        "source": source,
        "target": target,
        "time": time,
        "weight": weight,
        "separator": expanded(separator),
    }
    # What is given distinguishes live streams.
    given = {"header": header, "weighted": weighted, "date_format": date_format}
    columns |= {name: value for name, value in given.items() if value is not None}
    if ids != "auto":
        columns["ids"] = ids
    pages = has_packages("report.html", *PAGES, quiet=writing.quiet)
    with progress_reporter(quiet=writing.quiet) as reporter, announced(reporter):
        edges = source_of(file, columns, every, window, sort=sort, reporter=reporter)
        settings = {**edges.settings, "every": every, "window": window, **options}
        if safe_csv:
            settings["safe_csv"] = True
        folder = StreamFolder(output, settings, edges.names, force=writing.force)
        stopped: KeyboardInterrupt | None = None
        try:
            tracker = folder.resume(threads)
            begun = 0 if tracker is None else tracker.epoch
            edges.resume(begun, folder)
            if tracker is None:
                from louvain_um.dynamic.tracking.tracker import Tracker

                tracker = Tracker(edges.graph(threads), threads=threads, **options)
            since = clock.perf_counter()
            try:
                with going_on(force=writing.force):
                    follow(edges, tracker, folder, reporter)
            except KeyboardInterrupt as signal:
                # To stop is how to end a stream that has no end; its report is drawn all the same.
                if not (edges.live and tracker.epoch):
                    raise
                stopped = signal
            seconds = clock.perf_counter() - since
        finally:
            folder.close()
        if pages:
            reporter.step("drawing the report")
            from louvain_um.drawing.reports import write_report

            write_report(output, edges.title, force=True)
    about = summary(edges, tracker, begun, seconds)
    if writing.json:
        common.print_json({"schema": 1, "folder": str(output), **about})
    else:
        echo(
            f"{count(about['batches'], 'batch', 'batches')}, "
            f"{count(about['edges'], 'edge', 'edges')} of "
            f"{count(about['vertices'], 'vertex', 'vertices')}: "
            f"{count(about['communities'], 'community', 'communities')}, "
            f"modularity {about['modularity']:.4f}"
        )
        if not writing.quiet:
            if begun:
                print_note(f"resumed after batch {begun:,}")
            page = " and report.html" if pages else ""
            tables = f"communities.csv, events.csv{',' if page else ' and'} history.csv"
            print_note(f"{tables}{page} are in {output}")
            if stopped is not None and edges.unread:
                print_note("lines waited in the pipe; send all from the first one to continue")
    if stopped is not None:
        raise stopped


def refuse_options(options: dict[str, Any], threads: int | None) -> None:
    """Raise for options that a tracker refuses, before anything is read."""
    from louvain_um.dynamic.graph import DynamicGraph
    from louvain_um.dynamic.tracking.tracker import Tracker

    Tracker(DynamicGraph(0), threads=threads, **options)


def follow(edges: Source, tracker: Tracker, folder: StreamFolder, reporter: Reporter) -> None:
    """Follow all batches that are left, or that arrive.

    A signal waits for the end of a batch; what was followed is saved before any error is raised.
    """
    since = saved = clock.perf_counter()
    inserted, followed, whole = 0, tracker.epoch, True
    try:
        for step in edges.steps():
            if step is not None:
                with interrupts.held():
                    whole = False
                    found = tracker.update(step.apply(tracker.graph))
                    row = {**tracker.rows[-1], "communities": communities_now(tracker)}
                    folder.add(edges.written(step.time), edges.seen, found, row)
                    whole = True
                inserted += 0 if step.insert is None else len(step.insert[0])
            now = clock.perf_counter()
            if tracker.epoch > followed and now - saved > CHECKPOINT_SECONDS:
                folder.save(tracker, edges.place())
                saved, followed = now, tracker.epoch
            rate = inserted / max(now - since, 1e-9)
            reporter.step(  # what matters most first: a narrow terminal cuts the rest
                f"batch {tracker.epoch:,} · Q {tracker.modularity:.4f} · {rate:,.0f}/s · "
                f"{edges.progress()} · {communities_now(tracker):,} communities"
            )
    except BaseException:
        if whole and tracker.epoch > followed:
            folder.save(tracker, edges.place())
        raise
    folder.save(tracker, edges.place())


def communities_now(tracker: Tracker) -> int:
    """Return the number of communities; vertices whose edges have left the window are none."""
    import numpy as np

    labels = np.asarray(tracker.communities.labels)
    there = tracker.graph.degrees[: len(labels)] > 0
    return int(np.count_nonzero(np.bincount(labels[there])))


def summary(edges: Source, tracker: Tracker, begun: int, seconds: float) -> dict[str, Any]:
    """Return what the command says at its end."""
    history = tracker.rows
    return {
        "edges": edges.seen,
        "vertices": tracker.graph.n_vertices,
        "batches": tracker.epoch,
        "resumed_after": begun,
        "communities": communities_now(tracker),
        "modularity": tracker.modularity,
        "renewals": sum(bool(row["renewed"]) for row in history),
        "audits": sum(row["audit_lead"] == row["audit_lead"] for row in history),
        "seconds": seconds,
    }
