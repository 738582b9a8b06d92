"""``louvain-um generate``: seeded graphs. A kind's options are its generator's arguments."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from louvain_um.cli import common, terminal
from louvain_um.cli import reading as graphs
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import with_exit_code
from louvain_um.cli.help import Command, Group
from louvain_um.cli.terminal import echo, flag
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.formats import format_of, write_graph
from louvain_um.formats.file_types import check_table_path
from louvain_um.options import parse_count

Planted = Annotated[
    Path | None,
    option("--planted LABELS", "Also write the planted communities, to compare with those found."),
]

METAVARS = {int: "N", float: "X", int | None: "N", float | None: "X"}
"""Placeholders of option values in the help."""


class Kinds(Group):
    """A group that makes its subcommands on demand, since importing the generators is slow."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the kinds."""
        from louvain_um.generators import GENERATORS

        return list(GENERATORS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a kind's command, None for an unknown kind."""
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
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Generate a graph: `louvain-um generate lfr 100000 -o g.mtx`.",
)


@app.callback()
def kinds() -> None:
    """Generate a graph: `louvain-um generate lfr 100000 -o g.mtx`."""


def command_of(title: str, generator: Callable[..., Any]) -> Callable[..., None]:
    """Return a command with the generator's arguments and the options of `write`."""
    descriptions = parameter_descriptions(generator.__doc__ or "")
    hints = get_type_hints(generator)
    parameters = []
    counts = set[str]()
    for name, parameter in inspect.signature(generator).parameters.items():
        text = descriptions.get(name, "")
        required = parameter.default is inspect.Parameter.empty
        type_ = cli_type(hints[name])
        default = ... if required else parameter.default
        info: Any
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            metavar = METAVARS.get(type_)
            info = typer.Option(
                default, help=text, metavar=metavar, show_default=default is not None
            )
        else:
            metavar = "100x100" if name == "dims" else name.upper()
            if type_ is int:  # like 1M
                type_ = str
                counts.add(name)
            info = typer.Argument(default, help=text, metavar=metavar)
        parameters.append(parameter.replace(default=info, annotation=type_))
    writing = list(inspect.signature(write, eval_str=True).parameters.values())[2:]
    signature = inspect.Signature(
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*parameters, *writing)]
    )

    def command(**values: Any) -> None:
        for name in counts:
            values[name] = parse_count(values[name], name)
        write(generator, values, **{p.name: values.pop(p.name) for p in writing})

    command.__doc__ = (generator.__doc__ or title).strip().split("\n\n")[0]
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return with_exit_code(command)


def write(
    generator: Callable[..., Any],
    arguments: dict[str, Any],
    output: common.Output,
    planted: Planted = None,
    writing: common.Writing = common.Writing(),
) -> None:
    """Generate a graph and write it."""
    from louvain_um.cli.progress import progress_reporter
    from louvain_um.formats.labels import write_labels
    from louvain_um.results.comparison import Labels

    graphs.check_output(output, force=writing.force)
    if planted is not None:
        check_table_path(planted, force=writing.force)
        if os.path.realpath(planted) == os.path.realpath(output):
            raise LouvainUmError(
                f"{planted}: is also the graph's file; choose another name for one of the two"
            )
    if "dims" in arguments:
        arguments["dims"] = parse_dimensions(arguments["dims"])
    with progress_reporter(quiet=writing.quiet) as reporter:
        from louvain_um.core.compiled import announced

        reporter.step("generating")
        with announced(reporter):
            generated = generator(**arguments)
            if planted is not None and generated.labels is None:
                raise OptionError(
                    "planted", planted, "omit --planted", problem="this kind plants no communities"
                )
            reporter.step(f"writing {output}")
            write_graph(output, generated.graph, force=writing.force)
    if planted is not None:
        import numpy as np

        # Numbered as in the graph's file: some formats count from 1.
        base = int(format_of(str(output)) in ("matrixmarket", "metis"))
        vertices = np.arange(base, generated.graph.n_vertices + base, dtype=np.int64)
        write_labels(Labels(vertices, generated.labels), planted, force=writing.force)
    graph = generated.graph
    if writing.json:
        common.print_json(
            {
                "schema": 1,
                "file": str(output),
                "planted": None if planted is None else str(planted),
                "graph": terminal.graph_numbers(graph),
            }
        )
    elif not writing.quiet:
        echo(terminal.graph_line(graph, str(output)))


def parse_dimensions(text: str) -> tuple[int, ...]:
    """Return the numbers of ``100x100``."""
    if not re.fullmatch(r"\d+([x,]\d+)*", text):
        raise OptionError("dims", text, "must look like 100x100 or 20x20x20")
    return tuple(int(part) for part in re.split("[x,]", text))


def cli_type(hint: Any) -> Any:
    """Return the type that Typer parses for an argument's type."""
    if get_origin(hint) is Literal:
        return StrEnum("Choice", list(get_args(hint)))
    if hint in (int, float, bool, str):
        return hint
    if type(None) in get_args(hint):
        return hint
    return str


def parameter_descriptions(doc: str) -> dict[str, str]:
    """Return each parameter's description from a numpydoc docstring, on one line."""
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
    return {name: as_help(text, found) for name, text in found.items()}


def as_help(text: str, known: Iterable[str]) -> str:
    """Return a docstring's text without backticks; arguments become options."""
    arguments = [name for name in known if "_" in name]
    return re.sub(
        r"`([^`]*)`", lambda match: flag(match[1]) if match[1] in arguments else match[1], text
    )
