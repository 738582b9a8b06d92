"""``louvain-um compare``: how far two label files agree."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from louvain_um.cli import common
from louvain_um.cli.guard import guarded
from louvain_um.errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from louvain_um.results.comparison import Agreement, Labels

File = "A label file: a vertex and its community a line, or what detect -o wrote; - for stdin."


@guarded
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=File)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another, such as the known communities.")],
    json: common.Json = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
) -> None:
    """Compare two partitions of the same vertices: NMI, ARI, AMI, sizes."""
    from louvain_um.formats.labels.writer import read_labels
    from louvain_um.results.comparison import compare as agreement_of

    if a == b == "-":
        raise OptionError("standard input can be one of the two, not both")
    first, second = read_labels(a), read_labels(b)
    agreement = agreement_of(first, second)
    if json:
        common.print_json(
            {"schema": 1, "a": a, "b": b, **asdict(agreement)}
            | {"sizes": [sizes(first).tolist(), sizes(second).tolist()]}
        )
    elif quiet:
        show_measures(agreement)
    else:
        show(agreement, (a, b), (first, second))


def sizes(labels: Labels) -> NDArray[np.int64]:
    """Return the number of vertices in each community, descending."""
    import numpy as np

    return np.sort(np.unique(labels.communities, return_counts=True)[1])[::-1]


def show(agreement: Agreement, names: tuple[str, str], both: tuple[Labels, Labels]) -> None:
    """Print the agreement for people."""
    from louvain_um.cli import tables
    from louvain_um.results.display import count

    console = tables.console()
    many = count(agreement.vertices, "vertex", "vertices")
    console.print(f"{many} in both", soft_wrap=True)
    for name, alone in zip(names, agreement.unmatched, strict=True):
        if alone:
            console.print(f"{alone:,} only in {name}, left out", soft_wrap=True)
    show_measures(agreement)
    if agreement.identical:
        console.print("The partitions are the same.")
    console.print()
    console.print(size_table(names, both))


def show_measures(agreement: Agreement) -> None:
    """Print how far they agree: the answer of the command."""
    for measure in ("nmi", "ari", "ami"):
        value = getattr(agreement, measure)
        text = "not computed: it would take minutes" if math.isnan(value) else f"{value:.4f}"
        typer.echo(f"{measure.upper()}  {text}")


def size_table(names: tuple[str, str], both: tuple[Labels, Labels]) -> Table:
    """Return a row a file: how many communities, and how large."""
    from louvain_um.cli import tables

    table = tables.new_table("name", "communities", "largest", "median", "smallest", "alone")
    for name, labels in zip(names, both, strict=True):
        counts = sizes(labels)
        if len(counts) == 0:
            table.add_row(name, *"00000")
            continue
        middle = (counts[len(counts) // 2], counts[-1], (counts == 1).sum())
        table.add_row(name, *(f"{x:,}" for x in (len(counts), counts[0], *middle)))
    return table
