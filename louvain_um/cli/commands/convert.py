"""``louvain-um convert``: read a graph in one format, write it in another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louvain_um.cli import common, graphs
from louvain_um.cli.guard import guarded, note


@guarded
@graphs.with_reading
def convert(
    source: graphs.Source,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.")],
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    reading: graphs.Reading = graphs.AS_IT_IS,
) -> None:
    """Write a graph in another format."""
    from louvain_um.cli import tables
    from louvain_um.cli.progress import reporting
    from louvain_um.cpu.compiling import announced
    from louvain_um.formats import write_graph

    graphs.refuse_same(source, output)
    graphs.check_output(output, force=force)
    with reporting(quiet=quiet) as reporter, announced(reporter):
        reporter.step(f"reading {source}")
        graph = reading.read(source)
        reporter.step(f"writing {output}")
        lost = write_graph(output, graph, force=force)
    if not quiet:
        for text in (*graph.notes, *lost):
            note(text)
    if json:
        numbers = tables.graph_numbers(graph)
        common.print_json({"schema": 1, "file": str(output), "graph": numbers})
    elif not quiet:
        typer.echo(tables.graph_line(graph, str(output)))
