"""Rewrite messages, which name Python arguments, with the options of the command line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from typer.models import OptionInfo

OPTIONS = (
    "allow_rounding", "best_of", "bipartite", "checkpoint", "cluster", "date_format", "device",
    "device_budget", "directed", "duplicates", "effort", "every", "exchange", "fixed", "force",
    "format", "header", "ids", "initial", "kind", "loops", "max_level", "max_size", "memory",
    "method", "n_iterations", "objective", "on_loss", "one_based", "peer_memory", "resolution",
    "seed", "separator", "signed", "sort", "source", "symmetrize", "target", "threads",
    "threshold", "time", "tracer", "trusted", "weight", "weighted",
)  # fmt: skip
"""Arguments that have an option of the same name."""

OPPOSITES = {
    "bipartite": "--one-mode",
    "header": "--no-header",
    "one_based": "--zero-based",
    "weighted": "--unweighted",
}
"""Options that set an argument to False."""

NAME = "|".join(OPTIONS)
ARGUMENT = re.compile(rf"\b({NAME})=(True|False|'[^']*'|…|\.\.\.)( \(--[\w-]+\))?")
TWICE = re.compile(rf"(--[\w-]+) \(({NAME})=True\)")


def with_flags(text: str) -> str:
    """Return a message with Python arguments replaced by options.

    Examples
    --------
    >>> from louvain_um.cli.messages import with_flags
    >>> with_flags("no GPU; use device='cpu'")
    'no GPU; use --device cpu'
    >>> with_flags("a.txt: exists already; pass --force (force=True) to replace it")
    'a.txt: exists already; pass --force to replace it'
    >>> with_flags("weight x is no number; pass weighted=False (--unweighted)")
    'weight x is no number; pass --unweighted'
    """
    text = TWICE.sub(r"\1", text)
    return ARGUMENT.sub(lambda match: option(match[1], match[2]), text)


def flags(command: Callable[..., Any]) -> dict[str, str]:
    """Return the flags of a command's options, by parameter name and by option name.

    Positional arguments are left out.
    """
    result = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        declared = (parameter.default, *getattr(parameter.annotation, "__metadata__", ()))
        for info in declared:
            if isinstance(info, OptionInfo):
                # In an annotation, Typer takes the first name as the default.
                texts = [str(text) for text in (info.default, *(info.param_decls or ()))]
                shown = next((text for text in texts if text.startswith("--")), flag(name))
                shown = shown.partition("/")[0]
                result[name] = result[shown[2:].replace("-", "_")] = shown
    return result


def option(name: str, value: str) -> str:
    """Return the option for an argument and its value."""
    if value == "True":
        return flag(name)
    if value == "False":
        return OPPOSITES.get(name, f"no {flag(name)}")
    return f"{flag(name)} {value.strip(chr(39))}"


def flag(name: str) -> str:
    """Return the option for an argument's name."""
    return f"--{name.replace('_', '-')}"
