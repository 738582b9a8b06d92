"""What ``louvain-um plan --program`` prints: where arrays of another algorithm would live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from louvain_um.cli import common
from louvain_um.cli.exit_codes import print_note
from louvain_um.cli.terminal.output import echo
from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from louvain_um.cli.reading import Reading
    from louvain_um.placement.program import Program


def declared_program(
    name: str,
    graph: str | None,
    size: tuple[int | None, int | None, Reading],
    quiet: bool,
    json: bool,
) -> Program:
    """Return another algorithm as a program, on a graph or on one of a size."""
    from louvain_um import planning
    from louvain_um.algorithms.programs import check_name, program_for, program_of
    from louvain_um.cli.progress import progress_reporter

    check_name(name)
    n_vertices, n_arcs, reading = size
    if graph is None:
        if n_vertices is None or n_arcs is None:
            raise OptionError(remedy="name a GRAPH, or pass both --vertices and --arcs")
        reading.refuse_without_graph()
        shape = planning.shape_of_size(
            n_vertices, n_arcs, bool(reading.weighted), "louvain", ("vertices", "arcs")
        )
        weights = f"u{shape.weight_bytes}" if shape.weight_bytes else False
        return program_of(name, n_vertices=n_vertices, n_arcs=n_arcs, weighted=weights)
    if n_vertices is not None or n_arcs is not None:
        raise OptionError(remedy="name a GRAPH, or pass --vertices and --arcs, not both")
    with progress_reporter(quiet=quiet) as reporter:
        reporter.step(f"reading {graph}")
        loaded = reading.read(graph)
    if not (json or quiet):
        for text in loaded.notes:
            print_note(text)
    return program_for(name, loaded)


def print_program(
    program: Program, policy: dict[str, Any], graph: str | None, *, json: bool, quiet: bool
) -> None:
    """Print the plan of a program, or only its last line."""
    from louvain_um import planning

    found = planning.plan(program, **policy)
    if json:
        common.print_json({**found.to_dict(), "graph": graph})
        return
    text = str(found)
    echo(text.splitlines()[-1] if quiet else text)
