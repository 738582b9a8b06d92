"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Nothing but the result: no progress, no notes.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More detail; tracebacks.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="File to write.")]
Seed = Annotated[
    int, typer.Option(metavar="N", help="0 … 2^32 - 1; the same seed, the same result.")
]
Resolution = Annotated[float, typer.Option(metavar="X", help="Above 1: more, smaller communities.")]
Threshold = Annotated[
    float, typer.Option(metavar="X", help="A level must raise modularity by more than this.")
]
MaxLevel = Annotated[
    int | None,
    typer.Option(metavar="N", help="Levels at most.  [default: no limit]", show_default=False),
]
Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="DEVICE", help="auto (a GPU where there is one), cpu, cuda or cuda:N."
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE|N%",
        help="Device memory to use, such as 8GiB, or 70% of what the run takes in core.  "
        "[default: what is free]",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Threads of a CPU run.  [default: all cores]", show_default=False
    ),
]


class Method(StrEnum):
    """The two methods."""

    louvain = "louvain"
    leiden = "leiden"


def idle(device: object, memory: str, usual: str, budget: str | None) -> tuple[str, ...]:
    """Return notes on options of memory that a run on the CPU, which has one only, left aside."""
    if device != "cpu" or (memory == usual and budget is None):
        return ()
    return ("the run was the CPU's: memory policy and device budget are a GPU's, and did nothing",)


def print_json(value: object) -> None:
    """Print one object on stdout; numbers that JSON lacks become null."""
    import json

    typer.echo(json.dumps(plain(value), allow_nan=False))


def plain(value: object) -> object:
    """Return a value of JSON's own types."""
    import math
    from collections.abc import Mapping

    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "item"):
        return plain(value.item())
    return value
