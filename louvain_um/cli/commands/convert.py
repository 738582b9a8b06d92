"""``louvain-um convert``: convert a graph to another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louvain_um.cli import common, terminal
from louvain_um.cli import reading as graphs
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.reading import DEFAULT_READING, GraphArgument, Reading
from louvain_um.cli.terminal import echo
from louvain_um.errors import Taken
from louvain_um.formats import write_graph


@with_exit_code
def convert(
    graph: GraphArgument,
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="File to write; its suffix decides the format.")
    ],
    writing: common.Writing = common.Writing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Convert a graph to another format."""
    from louvain_um.cli.progress import progress_reporter
    from louvain_um.core.compiled import announced

    graphs.refuse_same(graph, output)
    graphs.check_output(output, force=writing.force)
    with progress_reporter(quiet=writing.quiet) as reporter, announced(reporter):
        reporter.step(f"reading {graph}")
        loaded = reading.read(graph)
        reporter.step(f"writing {output}")
        loss_notes = write_graph(output, loaded, force=writing.force)
    if not writing.quiet:
        kept = (text for text in loaded.notes if not isinstance(text, Taken))  # with the graph
        print_note(*kept, *loss_notes)
    if writing.json:
        numbers = terminal.graph_numbers(loaded)
        common.print_json({"schema": 1, "file": str(output), "graph": numbers})
    elif not writing.quiet:
        echo(terminal.graph_line(loaded, str(output)))
