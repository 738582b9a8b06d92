"""``louvain-um generate``: seeded graphs; each kind's options are its function's arguments."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from louvain_um.cli import common, graphs
from louvain_um.cli.guard import guarded
from louvain_um.cli.help import Command, Group
from louvain_um.cli.messages import flag
from louvain_um.errors import LouvainUmError, OptionError

Planted = Annotated[
    Path | None,
    typer.Option(
        "--planted",
        metavar="LABELS",
        help="Write the communities planted, to compare with those found.",
    ),
]

METAVARS = {int: "N", float: "X", int | None: "N", float | None: "X"}
"""What stands for an option's value in the help."""


class Kinds(Group):
    """Subcommands made when asked for: importing the generators takes its time."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the kinds' names."""
        from louvain_um.generators import GENERATORS

        return list(GENERATORS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a kind, None if there is no such kind."""
        from louvain_um.generators import GENERATORS

        if cmd_name not in GENERATORS:
            return None
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        settings = {"help_option_names": ["-h", "--help"]}
        single.command(cmd_name, cls=Command, context_settings=settings)(
            command_of(cmd_name, GENERATORS[cmd_name])
        )
        return typer.main.get_command(single)


app = typer.Typer(
    cls=Kinds,
    no_args_is_help=True,
    help="Generate a graph: `louvain-um generate lfr 100000 -o g.mtx`.",
)


@app.callback()
def kinds() -> None:
    """Generate a graph: `louvain-um generate lfr 100000 -o g.mtx`."""


def command_of(title: str, generator: Callable[..., Any]) -> Callable[..., None]:
    """Return a command whose arguments are the generator's, and those of writing."""
    described = descriptions(generator.__doc__ or "")
    hints = get_type_hints(generator)
    parameters = []
    for name, parameter in inspect.signature(generator).parameters.items():
        text = described.get(name, "")
        required = parameter.default is inspect.Parameter.empty
        accepted = simple(hints[name])
        default = ... if required else parameter.default
        info: Any
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            metavar = METAVARS.get(accepted)
            info = typer.Option(
                default, help=text, metavar=metavar, show_default=default is not None
            )
        else:
            metavar = "100x100" if name == "dims" else name.upper()
            info = typer.Argument(default, help=text, metavar=metavar)
        parameters.append(parameter.replace(default=info, annotation=accepted))
    own = list(inspect.signature(write, eval_str=True).parameters.values())[2:]
    signature = inspect.Signature(
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*parameters, *own)]
    )

    def command(**given: Any) -> None:
        write(generator, given, **{p.name: given.pop(p.name) for p in own})

    command.__doc__ = (generator.__doc__ or title).strip().split("\n\n")[0]
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return guarded(command)


def write(
    generator: Callable[..., Any],
    given: dict[str, Any],
    output: common.Output,
    planted: Planted = None,
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
) -> None:
    """Generate a graph and write it."""
    from louvain_um.cli import tables
    from louvain_um.cli.progress import reporting
    from louvain_um.formats import format_of, write_graph
    from louvain_um.formats.labels.writer import check_labels_path, write_labels
    from louvain_um.results.comparison import Labels

    graphs.check_output(output, force=force)
    if planted is not None:
        check_labels_path(planted, force=force)
        if os.path.realpath(planted) == os.path.realpath(output):
            raise LouvainUmError(
                f"{planted}: is named for the graph and for its communities; "
                "choose another name for one"
            )
    if "dims" in given:
        given["dims"] = dimensions(given["dims"])
    with reporting(quiet=quiet) as reporter:
        from louvain_um.cpu.compiling import announced

        reporter.step("generating")
        with announced(reporter):
            made = generator(**given)
            if planted is not None and made.labels is None:
                raise OptionError("this kind plants no communities; leave --planted out")
            reporter.step(f"writing {output}")
            write_graph(output, made.graph, force=force)
    if planted is not None:
        import numpy as np

        # As the graph's own file numbers them: some formats count from 1.
        base = int(format_of(str(output)) in ("matrixmarket", "metis"))
        vertices = np.arange(base, made.graph.n_vertices + base, dtype=np.int64)
        write_labels(planted, Labels(vertices, made.labels), force=force)
    graph = made.graph
    if json:
        common.print_json(
            {
                "schema": 1,
                "file": str(output),
                "planted": None if planted is None else str(planted),
                "graph": tables.graph_numbers(graph),
            }
        )
    elif not quiet:
        typer.echo(tables.graph_line(graph, str(output)))


def dimensions(text: str) -> tuple[int, ...]:
    """Return the numbers of ``100x100``."""
    if not re.fullmatch(r"\d+([x,]\d+)*", text):
        raise OptionError(f"dimensions look like 100x100 or 20x20x20, not {text!r}")
    return tuple(int(part) for part in re.split("[x,]", text))


def simple(hint: Any) -> Any:
    """Return a type that the command line can parse for an argument's type."""
    if get_origin(hint) is Literal:
        return StrEnum("Choice", list(get_args(hint)))
    if hint in (int, float, bool, str):
        return hint
    if type(None) in get_args(hint):
        return hint
    return str


def descriptions(doc: str) -> dict[str, str]:
    """Return what a numpydoc docstring says of each parameter, in one line each."""
    section = re.search(r"Parameters\n\s*-+\n(.*?)(?:\n\s*\n|\Z)", doc, re.DOTALL)
    found: dict[str, str] = {}
    names: list[str] = []
    for line in (section[1] if section else "").splitlines():
        head = re.match(r"^ {4}(\w[\w, ]*) : ", line)
        if head:
            names = head[1].split(", ")
            continue
        for name in names:
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return {name: in_words(text, found) for name, text in found.items()}


def in_words(text: str, known: Iterable[str]) -> str:
    """Return a docstring's text without quotes, its arguments as options."""
    arguments = [name for name in known if "_" in name]
    return re.sub(
        r"`([^`]*)`", lambda quoted: flag(quoted[1]) if quoted[1] in arguments else quoted[1], text
    )
