"""Options and the table of results that ``louvain-um sweep`` and ``simulate`` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

POLICIES = "base,adv1,adv2,adv3,adv4,adv5,adv6,adv7,adv8,adv9,auto"
RATES = "0,10,30,50,70"

Policies = Annotated[
    str,
    typer.Option(metavar="LIST", help="Comma-separated policies; names or TOML files."),
]
Rates = Annotated[
    str | None,
    typer.Option(
        "--oversubscription",
        metavar="LIST",
        help="Comma-separated percentages of the in-core footprint withheld; at 70 the run gets "
        f"30 % of what it needs with everything on the GPU.  [default: {RATES}]",
        show_default=False,
    ),
]
Budgets = Annotated[
    str | None,
    typer.Option(
        "--device-budget",
        metavar="LIST",
        help="Instead of --oversubscription: the memory that is left, such as 70%, or 8GiB in "
        "simulate.",
        show_default=False,
    ),
]


def results_table(rows: Sequence[dict[str, Any]]) -> Any:
    """Return a table of seconds: one row per policy, one column per oversubscription."""
    from louvain_um.cli.tables import new_table
    from louvain_um.placement.units import seconds
    from louvain_um.profiling.sweep.by_oversubscription import format_rates

    rates = sorted({row["oversubscription"] for row in rows})
    table = new_table(*(format_rates([rate]) for rate in rates), label="policy")
    for policy in dict.fromkeys(row["policy"] for row in rows):
        by = {row["oversubscription"]: row for row in rows if row["policy"] == policy}
        cells = [
            seconds(by[rate]["seconds"]) if rate in by and by[rate]["feasible"] else "–"
            for rate in rates
        ]
        table.add_row(policy, *cells)
    return table
