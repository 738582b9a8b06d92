"""Messages are written for Python; the command line tells them in its own words."""

from __future__ import annotations

import re

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
PLACES = "n|scale|dims|cliques"
"""Arguments that have a place instead of a name."""

ARGUMENT = re.compile(rf"\b({NAME})=(True|False|'[^']*'|…|\.\.\.)( \(--[\w-]+\))?")
TWICE = re.compile(rf"(--[\w-]+) \(({NAME})=True\)")
SUBJECT = re.compile(rf"^(?!(?:{PLACES}) )[a-z]+(?:_[a-z]+)*(?= must\b)")


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


def named(text: str) -> str:
    """Return what is wrong with an option so that it begins with the option's name.

    Examples
    --------
    >>> from louvain_um.cli.messages import named
    >>> named("max_level must be at least 1, not 0")
    '--max-level must be at least 1, not 0'
    """
    return SUBJECT.sub(lambda found: flag(found[0]), spoken(text))


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
