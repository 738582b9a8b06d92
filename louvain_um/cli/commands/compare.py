"""``louvain-um compare``: agreement of two label files."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from louvain_um.cli import common, terminal
from louvain_um.cli.exit_codes import with_exit_code
from louvain_um.cli.reading import refuse_two_inputs
from louvain_um.cli.terminal import echo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from louvain_um.results.comparison import Agreement, Labels

FIRST = (
    "A label file: one vertex and its community per line, or an output of detect, also of "
    "--labels-folder; - for stdin."
)
SECOND = "A second label file, such as the known communities; - for stdin."


@with_exit_code
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=FIRST)],
    b: Annotated[str, typer.Argument(metavar="B", help=SECOND)],
    printing: common.Printing = common.Printing(),
) -> None:
    """Compare two partitions of the same vertices: NMI, ARI, AMI, sizes.

    A vertex that is listed several times is in several communities; those are compared by
    overlapping NMI and omega.
    """
    from louvain_um.formats.labels import read_labels
    from louvain_um.results.comparison import compare as agreement_of

    refuse_two_inputs(a, b)
    first, second = (read_labels(path, overlapping=True) for path in (a, b))
    agreement = agreement_of(first, second)
    if printing.json:
        known = {"identical", "vertices", "communities", "unmatched", *agreement.measures}
        measured = {name: value for name, value in asdict(agreement).items() if name in known}
        common.print_json(
            {"schema": 1, "a": a, "b": b, **measured}
            | {"sizes": [sizes(first).tolist(), sizes(second).tolist()]}
        )
    elif printing.quiet:
        show_measures(agreement)
    else:
        show(agreement, (a, b), (first, second))


def sizes(labels: Labels) -> NDArray[np.int64]:
    """Return the number of vertices in each community, descending."""
    import numpy as np

    return np.sort(np.unique(labels.communities, return_counts=True)[1])[::-1]


def show(agreement: Agreement, names: tuple[str, str], both: tuple[Labels, Labels]) -> None:
    """Print the agreement and the sizes."""
    from louvain_um.results.display import count

    many = count(agreement.vertices, "vertex", "vertices")
    echo(f"{many} in both")
    for name, alone in zip(names, agreement.unmatched, strict=True):
        if alone:
            echo(f"{alone:,} only in {name}, ignored")
    for name, labels in zip(names, both, strict=True):
        if several := len(labels) - len(set(labels.vertices.tolist())):
            memberships = count(several, "membership", "memberships")
            echo(f"communities of {name} overlap: {memberships} beyond one for each vertex")
    show_measures(agreement)
    if agreement.identical:
        some = " on the vertices in both" if any(agreement.unmatched) else ""
        echo(f"The partitions are identical{some}.")
    echo("")
    terminal.print_table(size_table(names, both))


def show_measures(agreement: Agreement) -> None:
    """Print NMI, ARI and AMI, or overlapping NMI and omega."""
    names = {"omega": "omega", "onmi_mgh": "ONMI (MGH)", "onmi_lfk": "ONMI (LFK)"}
    for measure in agreement.measures:
        value = getattr(agreement, measure)
        text = "not computed (would take over 10 s)" if math.isnan(value) else f"{value:.4f}"
        echo(f"{names.get(measure, measure.upper())}  {text}")


def size_table(names: tuple[str, str], both: tuple[Labels, Labels]) -> Table:
    """Return a table with one row per file: number and sizes of communities."""
    table = terminal.new_table("<name", "communities", "largest", "median", "smallest", "of size 1")
    for name, labels in zip(names, both, strict=True):
        counts = sizes(labels)
        if len(counts) == 0:
            table.add_row(name, *"00000")
            continue
        median, smallest, singletons = counts[len(counts) // 2], counts[-1], (counts == 1).sum()
        row = (len(counts), counts[0], median, smallest, singletons)
        table.add_row(name, *(f"{value:,}" for value in row))
    return table
