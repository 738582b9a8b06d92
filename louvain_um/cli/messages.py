"""Messages are written for Python; the command line tells them in its own words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from typer.models import OptionInfo

OPTIONS = (
    "device", "device_budget", "duplicates", "force", "format", "header", "ids", "max_level",
    "memory", "method", "one_based", "resolution", "seed", "separator", "symmetrize",
    "threads", "threshold", "weighted",
)  # fmt: skip
"""Arguments that are options of the same name."""

OPPOSITES = {
    "header": "--no-header",
    "one_based": "--zero-based",
    "weighted": "--unweighted",
}
"""What an option that is not so is called."""

NAME = "|".join(OPTIONS)
ARGUMENT = re.compile(rf"\b({NAME})=(True|False|'[^']*'|…|\.\.\.)( \(--[\w-]+\))?")
TWICE = re.compile(rf"(--[\w-]+) \(({NAME})=True\)")


def spoken(text: str) -> str:
    """Return a message with Python's arguments as the options they are.

    Examples
    --------
    >>> from louvain_um.cli.messages import spoken
    >>> spoken("no GPU; use device='cpu'")
    'no GPU; use --device cpu'
    >>> spoken("a.txt: exists already; pass --force (force=True) to replace it")
    'a.txt: exists already; pass --force to replace it'
    >>> spoken("weight x is no number; pass weighted=False (--unweighted)")
    'weight x is no number; pass --unweighted'
    """
    text = TWICE.sub(r"\1", text)
    return ARGUMENT.sub(lambda found: option(found[1], found[2]), text)


def flags(command: Callable[..., Any]) -> dict[str, str]:
    """Return the flag of each of a command's options, by its parameter and by its own name.

    Arguments, which have a place instead of a flag, are left out.
    """
    found = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        declared = (parameter.default, *getattr(parameter.annotation, "__metadata__", ()))
        for info in declared:
            if isinstance(info, OptionInfo):
                # In an annotation, the first declaration stands in the default's place.
                texts = [str(text) for text in (info.default, *(info.param_decls or ()))]
                shown = next((text for text in texts if text.startswith("--")), flag(name))
                shown = shown.partition("/")[0]
                found[name] = found[shown[2:].replace("-", "_")] = shown
    return found


def option(name: str, value: str) -> str:
    """Return an argument and its value as an option."""
    if value == "True":
        return flag(name)
    if value == "False":
        return OPPOSITES.get(name, f"no {flag(name)}")
    return f"{flag(name)} {value.strip(chr(39))}"


def flag(name: str) -> str:
    """Return the option of an argument's name."""
    return f"--{name.replace('_', '-')}"
