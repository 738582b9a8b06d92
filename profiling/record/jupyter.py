"""``%%louvain_profile`` for notebooks; ``%load_ext louvain_um.profiling`` brings it."""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import Any

from louvain_um.errors import OptionError
from louvain_um.profiling.record.profiler import recording

USAGE = "%%louvain_profile [-o SESSION] [--force] [--device D] [ARRAY ...]"


class _CellError(Exception):
    """A cell raised an error."""


def load_ipython_extension(shell: Any) -> None:
    """Give a shell of IPython the cell magic."""

    def louvain_profile(line: str, cell: str) -> Any:
        """Record what the cell does to managed memory; the session is left in `session`."""
        save_to, force, device, names = parse(line)
        space = shell.user_ns
        absent = [name for name in names if name not in space]
        if absent:
            raise OptionError(remedy=f"there is no variable {absent[0]!r}; {USAGE}")
        arrays = {name: space[name] for name in names}
        outcome = None
        # The shell has shown the cell's error; the session must record it, too.
        with (
            suppress(_CellError),
            recording(device=device, arrays=arrays, save_to=save_to, force=force) as run,
        ):
            outcome = shell.run_cell(cell)
            if outcome is not None and not outcome.success:
                raise _CellError
        space["session"] = run.session
        return run.session if outcome is None or outcome.success else None

    shell.register_magic_function(louvain_profile, "cell", "louvain_profile")


def parse(line: str) -> tuple[str | None, bool, str, list[str]]:
    """Return file, force, device and names of arrays from the magic's line."""
    save_to, force, device = None, False, "auto"
    names = []
    try:
        words = iter(shlex.split(line))
    except ValueError as error:
        raise OptionError(remedy=f"{line!r} is not understood ({error}); {USAGE}") from None
    for word in words:
        if word in ("-o", "--output", "--device"):
            value = next(words, None)
            if value is None:
                raise OptionError(remedy=f"{word} needs a value; {USAGE}")
            save_to, device = (save_to, value) if word == "--device" else (value, device)
        elif word == "--force":
            force = True
        elif word.isidentifier():
            names.append(word)
        else:
            raise OptionError(remedy=f"{word!r} is not understood; {USAGE}")
    return save_to, force, device, names
