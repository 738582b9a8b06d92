"""``louvain-um detect``: find communities, show them, write them."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common, graphs
from louvain_um.cli.guard import guarded, say

if TYPE_CHECKING:
    from louvain_um.communities import Communities


class Method(StrEnum):
    """The two methods."""

    louvain = "louvain"
    leiden = "leiden"


@guarded
def detect(
    graph: graphs.Source,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="LABELS",
            help="Write every vertex's community: .csv, .tsv, .parquet, .npz or .json.",
        ),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="Leiden takes longer; its communities hang together.")
    ] = Method.louvain,
    resolution: Annotated[
        float, typer.Option(metavar="X", help="Above 1: more, smaller communities.")
    ] = 1.0,
    threshold: Annotated[
        float, typer.Option(metavar="X", help="A level must raise modularity by more than this.")
    ] = 1e-7,
    max_level: Annotated[
        int | None, typer.Option(metavar="N", help="Levels at most.", show_default=False)
    ] = None,
    seed: common.Seed = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    memory: Annotated[
        str, typer.Option(metavar="POLICY", help="Where a GPU run keeps its arrays.")
    ] = "auto",
    device_budget: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Device memory to use, such as 8GiB.",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", help="Threads; by default all cores.", show_default=False),
    ] = None,
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    format: graphs.Format = None,
    weighted: graphs.Weighted = None,
    duplicates: graphs.Repeats = None,
    symmetrize: graphs.Symmetrize = False,
    one_based: graphs.OneBased = None,
    header: graphs.Header = None,
    separator: graphs.Separator = None,
    ids: graphs.Ids = graphs.IdKind.auto,
) -> None:
    """Find the communities of a graph and show the largest ones."""
    from louvain_um.cli.progress import reporting
    from louvain_um.options import Options

    # Whatever can be refused is refused before a long run, not after it.
    options = Options(
        method=method.value,
        resolution=resolution,
        threshold=threshold,
        max_level=max_level,
        seed=seed,
        device=device,
        memory=memory,
        device_budget=device_budget,
        threads=threads,
    )
    if output is not None:
        from louvain_um.formats.labels import check_labels_path

        graphs.refuse_same(graph, output)
        check_labels_path(output, force=force)
    seconds = {"read": 0.0, "detect": 0.0, "write": 0.0}
    with reporting(quiet=quiet) as reporter:
        from louvain_um.api import run
        from louvain_um.cpu.compiling import announced

        reporter.step(f"reading {graph}")
        since = time.perf_counter()
        with announced(reporter):
            loaded = graphs.read(
                graph,
                format=format,
                weighted=weighted,
                duplicates=duplicates,
                symmetrize=symmetrize,
                one_based=one_based,
                header=header,
                separator=separator,
                ids=ids,
            )
        seconds["read"] = time.perf_counter() - since

        since = time.perf_counter()
        result = run(loaded, options, reporter)
        seconds["detect"] = time.perf_counter() - since

        if output is not None:
            from louvain_um.formats.labels import write_labels

            reporter.step(f"writing {output}")
            since = time.perf_counter()
            write_labels(output, result, force=force)
            seconds["write"] = time.perf_counter() - since

    if not quiet:
        for note in loaded.notes:
            say(f"note: {note}")
    if json:
        common.print_json(summary(result, seconds, options.seed))
    elif not quiet:
        show(result, graph, output, verbose=verbose)


def summary(result: Communities, seconds: dict[str, float], seed: int) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    from louvain_um import __version__
    from louvain_um.cli import tables

    graph = result.require_graph()
    return {
        "schema": 1,
        "version": __version__,
        "graph": tables.graph_numbers(graph),
        "method": result.method,
        "modularity": result.modularity,
        "communities": result.n_communities,
        "levels": [
            {
                "vertices": level.vertices,
                "arcs": level.arcs,
                "modularity": level.modularity,
                "iterations": level.iterations,
                "seconds": level.seconds,
            }
            for level in result.levels
        ],
        "seconds": seconds,
        "device": result.provenance.get("device"),
        "policy": result.provenance.get("policy"),
        "budget_bytes": result.provenance.get("budget_bytes"),
        "peak_bytes": {
            group: int(result.memory.get(group, 0))
            for group in ("graph", "hash", "community", "scratch")
        },
        "seed": seed,
    }


def show(result: Communities, source: str, output: Path | None, *, verbose: bool) -> None:
    """Print the result for people."""
    from louvain_um.cli import tables

    console = tables.console()
    name = "standard input" if source == "-" else source
    console.print(tables.graph_line(result.require_graph(), name), soft_wrap=True)
    console.print(tables.result_line(result), soft_wrap=True)
    if result.n_communities:
        console.print()
        console.print(tables.communities_table(result, console.width))
    if verbose:
        console.print()
        console.print(tables.levels_table(result))
        for line in tables.costs(result):
            console.print(line, soft_wrap=True)
    if output is not None:
        console.print(f"\nlabels of {result.n_vertices:,} vertices in {output}", soft_wrap=True)
