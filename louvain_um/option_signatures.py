"""Signatures and docstrings of functions that take the options of a run, derived from `Options`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from dataclasses import fields
from difflib import get_close_matches
from inspect import Parameter, Signature, cleandoc, signature
from typing import Any, Final, TypedDict, TypeVar

from louvain_um.options import Budget, Effort, ObjectiveName, Options


class RunValues(TypedDict, total=False):
    """Types of the options that say where a run happens."""

    device: str
    memory: Any
    device_budget: int | str | Budget | None
    peer_memory: str | None
    threads: int | None


class OptionValues(RunValues, total=False):
    """Types of the options that users pass, for static checkers; a test holds it to `Options`."""

    resolution: float
    threshold: float
    max_level: int | None
    effort: Effort
    n_iterations: int | None
    best_of: int
    objective: ObjectiveName
    initial: Any
    fixed: Any
    max_size: int | None
    seed: int


SHOWN: Final = [each.name for each in fields(Options) if each.name in OptionValues.__annotations__]
OF_DETECTION: Final = [name for name in SHOWN if name not in RunValues.__annotations__]

Function = TypeVar("Function", bound=Callable[..., Any])

ELSEWHERE: Final = {
    "gamma": "resolution",
    "initial_membership": "initial",
    "is_membership_fixed": "fixed",
    "max_comm_size": "max_size",
    "max_iter": "n_iterations",
    "n_jobs": "threads",
    "objective_function": "objective",
    "partition": "initial",
    "partition_type": "objective",
    "random_state": "seed",
    "resolution_parameter": "resolution",
}
"""What python-louvain, leidenalg, igraph, cuGraph and scikit-learn call an option, to name ours."""


def takes_options(*without: str, **defaults: Any) -> Callable[[Function], Function]:
    """Show the options of a run in the signature and docstring of a function with ``**options``."""
    known = {item.name: item for item in fields(Options)}
    added = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=defaults.get(name, known[name].default),
            annotation=known[name].type,
        )
        for name in SHOWN
        if name not in without
    ]

    def decorate(function: Function) -> Function:
        shown = signature(function)
        own = [p for p in shown.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        first = [p for p in own if p.kind is not Parameter.KEYWORD_ONLY or p.name == "method"]
        last = [p for p in own if p not in first]
        shown = shown.replace(parameters=[*first, *added, *last])

        @functools.wraps(function)
        def wrapper(*args: Any, **values: Any) -> Any:
            try:
                shown.bind(*args, **values)
            except TypeError as error:
                hint = _hint(shown, len(args), values)
                raise TypeError(f"{function.__qualname__}() {error}{hint}") from None
            return function(*args, **(defaults | values))

        found: Any = wrapper
        found.__signature__ = shown
        found.__doc__ = with_entries(function.__doc__, without)
        return found  # type: ignore[no-any-return]

    return decorate


def _hint(shown: Signature, given: int, values: Collection[str]) -> str:
    """Return what to pass instead of arguments that a function does not take, to end an error."""
    from louvain_um.formats.read_options import where_taken

    by_name = [p.name for p in shown.parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    if given > len(shown.parameters) - len(by_name):
        return f"; pass options by name, as in {by_name[0]}=…"
    for name in values:
        if name in shown.parameters:
            continue
        if read := where_taken(["weight" if name == "weights" else name]):
            return read
        # Short words resemble others by chance.
        close = get_close_matches(name, shown.parameters, 1, 0.88) if len(name) > 5 else []
        known = ELSEWHERE.get(name) or (close[0] if close else None)
        if known in shown.parameters:
            return f"; pass {known}=…"
    return ""


def with_entries(doc: str | None, without: Collection[str] = ()) -> str | None:
    """Return a docstring with its entry ``**options`` replaced by the entries of `Options`."""
    entry = re.search(r"^( *)\*\*options\n(?:\1 +[^\n]*\n)*", doc or "", re.MULTILINE)
    if doc is None or entry is None:
        return doc
    names = (name for name in SHOWN if name not in without)
    text = "".join(_entry(name, entry[1]) for name in names)
    return f"{doc[: entry.start()]}{text}{doc[entry.end() :]}"


def _entry(name: str, indent: str) -> str:
    """Return the entry of an option in the docstring of `Options`, indented."""
    doc = cleandoc(Options.__doc__ or "")
    found = re.search(rf"^{name} : [^\n]*\n(?: {{4}}[^\n]*\n)*", doc, re.MULTILINE)
    return "".join(f"{indent}{line}\n" for line in found[0].splitlines()) if found else ""
