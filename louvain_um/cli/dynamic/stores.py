"""``louvain-um stores``: graphs or timed streams × stores of changing graphs × batch sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common, graphs
from louvain_um.cli.exit_codes import going_on, print_note, with_exit_code
from louvain_um.cli.plans.several import refuse_given
from louvain_um.cli.reading import DEFAULT_READING, Reading, expanded, with_reading
from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from louvain_um.analysis.stores.comparison import Comparison
    from louvain_um.graph.graph import Graph

DEFAULT = "rows,csr"
BATCH, STEPS = "10000", 5


@with_exit_code
@with_reading
def stores(
    graph: Annotated[
        list[str],
        typer.Argument(
            metavar="GRAPH|STREAM",
            help="Graph files, or example:les-miserables; with --every, timed edge lists.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for the results; an interrupted comparison continues there.  [required]",
            show_default=False,
        ),
    ] = None,
    chosen: Annotated[
        str,
        typer.Option("--stores", metavar="LIST", help="Stores, separated by commas, or all."),
    ] = DEFAULT,
    batch: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Edges inserted, and as many deleted, in a step: 1000,100000."
        ),
    ] = BATCH,
    steps: Annotated[
        int, typer.Option(metavar="N", help="Steps of each batch size; medians are shown.")
    ] = STEPS,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="N|TIME",
            help="Replay timed streams: edges (10000) or time (1d) of a step.",
            show_default=False,
        ),
    ] = None,
    window: common.Window = None,
    sort: Annotated[bool, typer.Option("--sort", help="Sort timed streams by time.")] = False,
    also: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Measure these, too: sorted, skew, algorithms, vertices, or all.",
        ),
    ] = "",
    seed: common.Seed = 0,
    device: Annotated[
        str,
        typer.Option(metavar="cpu|cuda", help="Where the graphs are; not all stores are on a GPU."),
    ] = "cpu",
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    reading: Reading = DEFAULT_READING,
) -> None:
    """Compare stores of changing graphs: rates, bytes per arc, moved bytes, traversal."""
    if output is None:
        raise OptionError(remedy="name a folder for the results with -o")
    from louvain_um.cli.dynamic.store_views import draw, table_of, trials_of, write_page
    from louvain_um.cli.kernels import import_numba
    from louvain_um.cli.progress import progress_reporter
    from louvain_um.cli.tables import console

    if every is None:
        refuse_given("a comparison on graphs", {"--sort": sort})
    else:
        columns = replace(
            reading, source=None, target=None, time=None, weight=None, header=None,
            separator=None, trusted=False,
        )  # fmt: skip
        refuse_given(
            "--every",
            {
                "--batch": batch != BATCH,
                "--steps": steps != STEPS,
                "reading options but columns, --header, --separator and --trusted": columns
                != DEFAULT_READING,
            },
        )
    import_numba()
    from louvain_um.analysis.stores.comparison import Comparison, compare_stores
    from louvain_um.analysis.stores.trials import TRIALS
    from louvain_um.dynamic.stores import DEVICE_STORES, STORES
    from louvain_um.dynamic.streams import read_stream
    from louvain_um.dynamic.windows import span

    for option, value in (("every", every), ("window", window)):
        if value is not None:
            span(option, value)
    every_store = STORES if device == "cpu" else DEVICE_STORES
    names = tuple(every_store) if chosen == "all" else tuple(n.strip() for n in chosen.split(","))
    settings = Comparison(
        stores=tuple(dict.fromkeys(names)),
        batches=numbers("batch", batch),
        steps=steps,
        seed=seed,
        every=every,
        window=window,
        device=device,
        also=tuple(TRIALS)
        if also == "all"
        else tuple(filter(None, map(str.strip, also.split(",")))),
    )
    with progress_reporter(quiet=quiet) as reporter:
        sources: list[tuple[str, Any]] = []
        for source in graph:
            reporter.step(f"reading {source}")
            if every is None:
                loaded: Any = reading.read(source)
            else:
                loaded = read_stream(
                    source, source=reading.source, target=reading.target, time=reading.time,
                    weight=reading.weight, header=reading.header,
                    separator=expanded(reading.separator),
                    sort=sort, trusted=reading.trusted,
                )  # fmt: skip
            sources.append((graphs.name_of(source), loaded))
        with going_on(force=force):
            records = compare_stores(sources, settings, output, force=force, tell=reporter.step)
    notes = [few_edges(name, source, settings) for name, source in sources if every is None]
    chart, page = draw(records, output / "rates.svg"), write_page(records, output)
    if json:
        common.print_json({"schema": 1, "folder": str(output), "results": records})
        return
    console().print(table_of(records))
    if settings.also:
        console().print(trials_of(records))
    if not quiet:
        for note in filter(None, [*notes, chart, page]):
            print_note(note)
        drawn = [name for name, note in (("rates.svg", chart), ("report.html", page)) if not note]
        written = ["results.json", "results.csv", *drawn]
        print_note(f"{', '.join(written[:-1])} and {written[-1]} are in {output}")


def few_edges(name: str, source: Graph, settings: Comparison) -> str:
    """Return a note where batches are larger than the graph; nothing otherwise."""
    if max(settings.batches) <= source.n_arcs // 2:
        return ""
    return f"{name} has {source.n_arcs // 2:,} edges: a larger batch replaces all of them"


def numbers(option: str, text: str) -> tuple[int, ...]:
    """Return a list of whole numbers."""
    try:
        return tuple(int(part.replace("_", "")) for part in text.split(","))
    except ValueError:
        raise OptionError(option, text, "must be whole numbers, separated by commas") from None
