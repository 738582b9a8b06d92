"""Options under names that other commands or earlier versions use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    command: {"--gpu": "--machine"} for command in ("plan", "simulate", "sweep")
}
"""By command, names of earlier versions, and what they are called now."""

SAME: Final[Mapping[str, Mapping[str, str]]] = {
    **{command: {"--policies": "--memory"} for command in ("detect", "plan", "profile")},
    **{command: {"--memory": "--policies"} for command in ("simulate", "sweep")},
}
"""By command, names that others use for the same: --memory takes one policy, --policies several."""

_PLANNED: Final = "is for plan, simulate and sweep; a run uses the GPU that --device names"
_SHARE: Final = "is for simulate and sweep; for 30 % pass --device-budget 70%"

ELSEWHERE: Final[Mapping[str, Mapping[str, str]]] = {
    "detect": {"--machine": _PLANNED, "--gpu": _PLANNED, "--oversubscription": _SHARE},
    "profile": {"--machine": _PLANNED, "--gpu": _PLANNED, "--oversubscription": _SHARE},
    "plan": {"--oversubscription": _SHARE},
}
"""By command, options of other commands, and what to do instead."""


def current_names(
    command: str, arguments: Sequence[str], note: Callable[[str], None]
) -> tuple[list[str], str]:
    """Return a command's arguments with current names of options, and an error or nothing.

    Parameters
    ----------
    command : str
        Name of the command.
    arguments : sequence of str
    note : callable
        Called with a hint for each name of an earlier version.

    Examples
    --------
    >>> from louvain_um.cli.option_names import current_names
    >>> current_names("simulate", ["g.txt", "--gpu", "h200"], print)
    --gpu is called --machine now
    (['g.txt', '--machine', 'h200'], '')
    >>> current_names("plan", ["g.txt", "--policies=base"], print)
    (['g.txt', '--memory=base'], '')
    >>> current_names("plan", ["g.txt", "--oversubscription", "30"], print)[1]
    '--oversubscription is for simulate and sweep; for 30 % pass --device-budget 70%'
    """
    result: list[str] = []
    for number, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[number:]], ""
        name, equals, value = argument.partition("=")
        if name in ELSEWHERE.get(command, {}):
            return [], f"{name} {ELSEWHERE[command][name]}"
        new = RENAMED.get(command, {}).get(name)
        if new is not None:
            note(f"{name} is called {new} now")
        new = new or SAME.get(command, {}).get(name, name)
        result.append(f"{new}{equals}{value}")
    return result, ""
