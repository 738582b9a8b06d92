"""``louvain-um stores``: graphs or timed streams × stores of changing graphs × batch sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common, import_numba
from louvain_um.cli import reading as graphs
from louvain_um.cli.common import option, refuse_given, tables_within
from louvain_um.cli.exit_codes import PAGES, going_on, has_packages, print_note, with_exit_code
from louvain_um.cli.reading import DEFAULT_READING, Reading, expanded
from louvain_um.cli.terminal import echo, print_table
from louvain_um.core.atomic_files import write_text
from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from rich.table import Table

DEFAULT = "rows,csr"
BATCH, STEPS = "10000", 5


@with_exit_code
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
        option(
            "--output -o DIR",
            "Folder for the results; an interrupted comparison continues there.  [required]",
        ),
    ] = None,
    chosen: Annotated[
        str, option("--stores LIST", "Stores, as pages:page=128,rows, or all.")
    ] = DEFAULT,
    batch: Annotated[
        str, option("LIST", "Edges inserted, and as many deleted, in a step: 1000,100000.")
    ] = BATCH,
    steps: Annotated[int, option("N", "Steps of each batch size; medians are shown.")] = STEPS,
    every: Annotated[
        str | None,
        option(
            "N|TIME", "Replay timed streams in steps of so many edges (10000) or so much time (1d)."
        ),
    ] = None,
    window: common.Window = None,
    sort: Annotated[bool, option("--sort", "Sort timed streams by time.")] = False,
    date_format: common.DateFormat = None,
    also: Annotated[
        str,
        option("LIST", "Measure these, too: sorted, skew, mixed, algorithms, vertices, or all."),
    ] = "",
    seed: common.Seed = 0,
    device: Annotated[
        str, option("cpu|cuda", "Where the graphs are; the host edits bal and pushes it to a GPU.")
    ] = "cpu",
    writing: common.Writing = common.Writing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Compare stores of changing graphs: rates, bytes per arc, moved bytes, traversal."""
    if output is None:
        raise OptionError(remedy="name a folder for the results with -o")
    from louvain_um.cli.progress import progress_reporter

    if every is None:
        refuse_given(
            "a comparison on graphs", {"--sort": sort, "--date-format": date_format is not None}
        )
    else:
        columns = replace(
            reading, source=None, target=None, time=None, weight=None, header=None,
            separator=None, trusted=False, ids="auto", weighted=None,
        )  # fmt: skip
        refuse_given(
            "--every",
            {
                "--batch": batch != BATCH,
                "--steps": steps != STEPS,
                "reading options but those of tables and --trusted": columns != DEFAULT_READING,
            },
        )
    import_numba()
    from louvain_um.analysis.store_comparison import Comparison, compare_stores
    from louvain_um.dynamic.stores import STORES
    from louvain_um.dynamic.streams import read_stream
    from louvain_um.dynamic.windows import span

    for name, value in (("every", every), ("window", window)):
        if value is not None:
            span(name, value)
    names = tuple(STORES) if chosen == "all" else tuple(n.strip() for n in chosen.split(","))
    settings = Comparison(
        stores=tuple(dict.fromkeys(names)),
        batches=numbers("batch", batch),
        steps=steps,
        seed=seed,
        every=every,
        window=window,
        device=device,
        also=tuple(filter(None, map(str.strip, also.split(",")))),
    )
    charts = has_packages("rates.svg", "charts", "matplotlib", quiet=writing.quiet)
    pages = has_packages("report.html", *PAGES, quiet=writing.quiet)
    with progress_reporter(quiet=writing.quiet) as reporter:
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
                    sort=sort, trusted=reading.trusted, ids=reading.ids,
                    weighted=reading.weighted, date_format=date_format,
                )  # fmt: skip
            sources.append((graphs.name_of(source), loaded))
        with going_on(force=writing.force):
            records = compare_stores(
                sources, settings, output, force=writing.force, progress=reporter.step
            )
    drawn = charts and draw(records, output / "rates.svg")
    if pages:
        write_page(records, output)
    if writing.json:
        common.print_json({"schema": 1, "folder": str(output), "results": records})
        return
    for table in tables_of(records):
        print_table(table)
        echo("")
    if not writing.quiet:
        for name, source in sources if every is None else ():
            if max(settings.batches) > source.n_arcs // 2:
                edges = source.n_arcs // 2
                print_note(f"{name} has {edges:,} edges: a larger batch replaces all of them")
        written = ["results.json", "results.csv", *["rates.svg"] * drawn, *["report.html"] * pages]
        print_note(f"{', '.join(written[:-1])} and {written[-1]} are in {output}")


def numbers(option: str, text: str) -> tuple[int, ...]:
    """Return a list of whole numbers."""
    try:
        return tuple(int(part.replace("_", "")) for part in text.split(","))
    except ValueError:
        raise OptionError(option, text, "must be whole numbers, separated by commas") from None


def tables_of(records: list[dict[str, Any]]) -> Iterator[Table]:
    """Yield tables with a row for each record, as wide as the terminal."""
    from louvain_um.drawing.reports import STORE_COLUMNS, TRIALS

    measured = (each for each in TRIALS if any(r[each[1]] is not None for r in records))
    several = len({r["graph"] for r in records}) > 1
    batches = [f"{r['batch']:,}" if r["batch"] else "stream" for r in records]
    heads = [["<graph", *(r["graph"] for r in records)]] if several else []
    heads += [["<store", *(r["store"] for r in records)], ["batch", *batches]]
    columns = []
    for title, name, unit in (*STORE_COLUMNS, *measured):
        shown = ("–" if r[name] is None else f"{r[name] * unit:.3g}" for r in records)
        what, _, last = title.rpartition(" ")
        columns.append([f"{what.rstrip(',')}\n{last}", *shown])
    return tables_within(heads, columns)


def draw(records: list[dict[str, Any]], file: Path) -> bool:
    """Draw insertions per second by batch size; return whether edges were inserted."""
    from louvain_um.drawing.plots import figure, save_figure
    from louvain_um.drawing.reports import draw_rates

    if not any(r["insert_edges_per_second"] for r in records):
        return False
    named = [{**r, "store": f"{r['graph']}, {r['store']}"} for r in records]
    drawn, axes = figure("sizes")
    draw_rates(axes, records=named, stores=list({r["store"]: 0 for r in named}), what="insert")
    axes.set_ylabel("edges inserted per second")
    save_figure(drawn, file, force=True)
    return True


def write_page(records: list[dict[str, Any]], folder: Path) -> None:
    """Write the page of a comparison."""
    from louvain_um.drawing.reports import REPORT, store_page

    write_text(folder / REPORT, store_page(records), force=True)
