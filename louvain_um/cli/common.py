"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

import typer

from louvain_um.cli.terminal import new_table, safe_console
from louvain_um.errors import OptionError
from louvain_um.options import MAX_THREADS, Effort, Method, ObjectiveName
from louvain_um.placement.policy.policy import POLICY_NAMES

Command = Callable[..., None]

GPU = "GPU and memory"
CLUSTER = "Cluster"
SEARCH = "Search and constraints"
WRITING = "Writing"
"""Panels of ``--help``, after the options that most users need."""


def option(names: str, about: str, panel: str | None = None, **how: Any) -> Any:
    """Return an option as its help shows it: its names, unless Typer makes it, and its value."""
    decls = [name for name in names.split() if name.startswith("-")]
    metavar = next((name for name in names.split() if not name.startswith("-")), None)
    shown = "[default: " not in about and "[required]" not in about
    return typer.Option(
        *decls, metavar=metavar, help=about, rich_help_panel=panel, show_default=shown, **how
    )


Json = Annotated[bool, option("--json", "Print the result as one JSON object on stdout.")]
Force = Annotated[bool, option("--force", "Overwrite existing files.")]
SafeCsv = Annotated[
    bool,
    option(
        "--safe-csv",
        "In .csv and .tsv files, write ' before names that a spreadsheet would run as formulas.",
        WRITING,
    ),
]
Quiet = Annotated[bool, option("--quiet -q", "Print only the result: no progress, no notes.")]
Verbose = Annotated[bool, option("--verbose -v", "Print more detail, and tracebacks on errors.")]
Output = Annotated[Path, option("--output -o OUT", "File to write.")]
Seed = Annotated[int, option("N", "Seed, 0 to 2^32 - 1. The same seed gives the same result.")]
Resolution = Annotated[
    float, option("X", "Resolution parameter; above 1 gives more, smaller communities.")
]
Window = Annotated[
    str | None,
    option(
        "N|TIME",
        "Size of the window of timed edges, in edges (100000) or time (30d).  [default: all]",
        callback=lambda window: None if window == "all" else window,
    ),
]
DateFormat = Annotated[
    str | None,
    option(
        "--date-format FORMAT",
        "How dates of timed edges are written: %d.%m.%Y.  [default: numbers or ISO 8601]",
    ),
]
Threshold = Annotated[
    float, option("X", "Stop when a level gains no more modularity than this.", SEARCH)
]
MaxLevel = Annotated[
    int | None, option("N", "Maximum number of levels.  [default: no limit]", SEARCH)
]
Device = Annotated[
    str,
    option(
        "--device DEVICE",
        "auto (a GPU if one is available), cpu, cuda or cuda:N; detect also takes several "
        "GPUs of this host, such as cuda:0,1 or cuda:all.",
        GPU,
    ),
]
EVERYDAY = [name for name in POLICY_NAMES if not name.startswith("adv")]
"""Policies named in help; the others are those of a thesis."""

Memory = Annotated[
    str,
    option(
        "POLICY",
        f"Memory policy of a GPU run: {', '.join(EVERYDAY)}, another by name, or a TOML file.",
        GPU,
    ),
]
Budget = Annotated[
    str | None,
    option(
        "SIZE|N%",
        "Device memory for the run: a size (8GiB), or a share of what it needs with "
        "everything on the GPU (70%).  [default: all free memory]",
        GPU,
    ),
]
Ballast = Annotated[
    str | None,
    option(
        "--ballast SIZE",
        "Device memory to occupy during the run, such as 100GiB, to emulate a GPU that is "
        "smaller for all programs on it.  [default: none]",
        GPU,
    ),
]
AllowEviction = Annotated[
    bool,
    option(
        "--allow-driver-eviction",
        "Run even if --ballast makes the driver evict memory. "
        "This can hang the GPU for all its users.",
        GPU,
    ),
]
Peer = Annotated[
    str | None,
    option(
        "--peer-memory cuda:N",
        "Another GPU of this host, whose memory takes what does not fit on the first, before "
        "the host's.  [default: none]",
        GPU,
    ),
]
Program = Annotated[
    str | None,
    option(
        "ALGORITHM",
        "Another algorithm than community detection: bfs, sssp, components, mst, pagerank, "
        "triangles or spmv.",
    ),
]


def use_threads(context: typer.Context, threads: int | None) -> int | None:
    """Let the whole command use so many threads, reading included."""
    if threads is not None and 1 <= threads <= MAX_THREADS:  # others are refused with the options
        from louvain_um.core.threads import given_threads

        context.with_resource(given_threads(threads))
    return threads


Threads = Annotated[
    int | None, option("N", "CPU threads.  [default: all cores]", callback=use_threads)
]


MethodToRun = Annotated[Method, option("", "Method to run.")]
Objective = Annotated[
    ObjectiveName,
    option(
        "--objective",
        "What to maximise: modularity, the constant Potts model (cpm, whose --resolution "
        "is a density), or modularity of directed, bipartite or signed graphs.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searching:
    """Options of how long to search."""

    effort: Annotated[
        Effort,
        option(
            "--effort",
            "How long to search: fast ends every level earlier; best combines several runs, "
            "which takes about fifteen times as long.",
            SEARCH,
        ),
    ] = "default"
    n_iterations: Annotated[
        int | None,
        option(
            "--n-iterations N",
            "Cycles, each from the communities of the one before; -1: until nothing improves.  "
            "[default: by --threshold]",
            SEARCH,
        ),
    ] = None
    best_of: Annotated[
        int, option("--best-of K", "Number of seeds, of which the best result is kept.", SEARCH)
    ] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Detecting(Searching):
    """Options of detections, but for their method and resolution."""

    objective: Objective = "modularity"
    seed: Seed = 0
    device: Device = "auto"
    threads: Threads = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Printing:
    """Options of what is printed."""

    json: Json = False
    quiet: Quiet = False
    verbose: Verbose = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Options of what is printed, and of files written over."""

    json: Json = False
    force: Force = False
    quiet: Quiet = False
    verbose: Verbose = False


def with_options(command: Command) -> Command:
    """Give a command, in place of each parameter that is a dataclass, the options of that."""
    declared = inspect.signature(command, eval_str=True).parameters
    records: dict[str, type[Any]] = {
        name: p.annotation
        for name, p in declared.items()
        if hasattr(p.annotation, "__dataclass_fields__")
    }
    options = {name: inspect.signature(kind, eval_str=True) for name, kind in records.items()}
    parameters = list[inspect.Parameter]()
    for name, parameter in declared.items():
        parameters += options[name].parameters.values() if name in records else [parameter]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, kind in records.items():
            mine = given.keys() & options[name].parameters.keys()
            given[name] = kind(**{key: given.pop(key) for key in mine})
        command(**given)

    # Typer finds a command's options in its signature and annotations.
    wrapped: Any = run
    wrapped.__signature__ = inspect.Signature(
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    )
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def refuse_given(what: str, given: Mapping[str, object]) -> None:
    """Raise for options that would be ignored; values are false unless the option was given."""
    named = [name for name, value in given.items() if value]
    if named:
        raise OptionError(remedy=f"{what} takes no {', '.join(named)}; leave out what it ignores")


TOP = 10
"""Communities and plateaus to print by default."""


def refuse_top(top: int, *, json: bool) -> None:
    """Raise if fewer or more are to be printed, where all are."""
    if json:
        refuse_given("--json, which prints all,", {"--top": top != TOP})


def ignored_memory_options(
    device: object, memory: str, default: str, budget: str | None, peer: str | None = None
) -> tuple[str, ...]:
    """Return a note if a CPU run was given memory options, which apply to GPU runs only."""
    if device != "cpu":
        return ()
    if peer is not None:
        return ("ran on the CPU; --memory, --device-budget and --peer-memory were ignored",)
    if memory == default and budget is None:
        return ()
    return ("ran on the CPU; --memory and --device-budget were ignored",)


def compiling_notes(seconds: float) -> tuple[str, ...]:
    """Return a note if kernels were compiled meanwhile."""
    if not seconds:
        return ()
    took = f"compiling took {seconds:.1f} s, on the first run only"
    return (f"{took}; the time shown excludes it",)


def print_json(value: object) -> None:
    """Print one JSON object on stdout; infinities and NaN become null."""
    import json

    from louvain_um.core.plain_data import as_json

    typer.echo(json.dumps(as_json(value), allow_nan=False))


POLICIES = "base,adv1,adv2,adv3,adv4,adv5,adv6,adv7,adv8,adv9,auto"
RATES = "0,10,30,50,70"

Policies = Annotated[str, option("LIST", "Comma-separated policies; names or TOML files.")]
Rates = Annotated[
    str | None,
    option(
        "--oversubscription LIST",
        "Comma-separated percentages of the in-core footprint withheld; at 70 the run gets "
        f"30 % of what it needs with everything on the GPU.  [default: {RATES}]",
    ),
]
Budgets = Annotated[
    str | None,
    option(
        "--device-budget LIST",
        "Instead of --oversubscription: the memory that is left, such as 70%, or 8GiB in simulate.",
    ),
]


def results_tables(rows: Sequence[dict[str, Any]]) -> Iterator[Any]:
    """Yield tables of seconds by policy and oversubscription, as wide as the terminal."""
    # Behind modelled ones are their ranges.
    from louvain_um.placement.hardware import seconds
    from louvain_um.profiling.sweep.results import format_rates

    def shown(row: dict[str, Any] | None) -> str:
        if row is None or not row["feasible"]:
            return "–"
        ends = (row.get(f"{which}seconds") for which in ("least_", "", "most_"))
        low, middle, high = (seconds(end or row["seconds"]) for end in ends)
        return middle if low == middle == high else f"{middle} ({low} – {high})"

    by = {(row["policy"], row["oversubscription"]): row for row in rows}
    policies = list(dict.fromkeys(name for name, _ in by))
    columns = [
        [format_rates([rate]), *(shown(by.get((name, rate))) for name in policies)]
        for rate in sorted({rate for _, rate in by})
    ]
    yield from tables_within([["policy", *policies]], columns)


def tables_within(heads: list[list[str]], columns: list[list[str]]) -> Iterator[Any]:
    """Yield tables that begin with `heads`, of as many more columns as fit the terminal."""

    # The first text of a column is its heading.
    def needed(column: list[str]) -> int:
        return 2 + max(len(line) for text in column for line in text.split("\n"))

    room, left = safe_console().width - sum(map(needed, heads)) + 2, columns
    while left:
        ends = accumulate(map(needed, left))
        fitting = max(1, sum(end <= room for end in ends))
        titles, *rows = zip(*heads, *left[:fitting], strict=True)
        table = new_table(*titles[1:], label=titles[0].lstrip("<"))
        for row in rows:
            table.add_row(*row)
        left = left[fitting:]
        yield table
