"""From exceptions to exit codes: one line on stderr, a traceback only with ``-v``."""

from __future__ import annotations

import _thread
import errno
import functools
import io
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec

import typer

from louvain_um.cli.messages import named, spoken
from louvain_um.errors import DeviceUnavailableError, GraphWarning, LouvainUmError, OptionError

P = ParamSpec("P")

FAILED, USAGE, NO_DEVICE, INTERRUPTED = 1, 2, 3, 130


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Let a command end in an exit code whatever happens in it.

    The command's own ``quiet`` and ``verbose`` decide whether warnings and tracebacks show.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with notes(quiet=bool(kwargs.get("quiet"))):
                command(*args, **kwargs)
                sys.stdout.flush()
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(report(error, verbose=bool(kwargs.get("verbose")))) from None

    return run


def open_standard_streams() -> None:
    """Give closed standard streams (``>&-``) to the null device; let any name be printed.

    Python leaves None in their place, `print` then writes errors to stdout, and the next file
    opened would take their number.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # In this order each takes the lowest number free, which is its own.
            null = open(os.devnull, "r" if name == "stdin" else "w")  # noqa: SIM115 - for good
            setattr(sys, name, null)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names may hold what the terminal's encoding lacks, or bytes of no encoding at all.
        sys.stdout.reconfigure(errors="backslashreplace")


def keep_interrupts() -> None:
    """Let an interrupt that comes inside a callback of compiled code be heard a moment later.

    Python can only report exceptions there, as "ignored", and would go on; compiling makes
    many such callbacks.
    """

    def hook(lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            threading.Timer(0.05, _thread.interrupt_main).start()
        else:
            sys.__unraisablehook__(lost)

    sys.unraisablehook = hook


def say(text: str) -> None:
    """Print one line on stderr."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Print something worth knowing on stderr, in the command line's words."""
    say(f"note: {one_line(spoken(text))}")


@contextmanager
def notes(*, quiet: bool) -> Iterator[None]:
    """Show warnings as one-line notes, or not at all."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not quiet:
            note(str(message))

    with warnings.catch_warnings():
        # Only what this package says on purpose; others' deprecations are not the user's.
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=GraphWarning)
        warnings.showwarning = show
        yield


def one_line(text: str) -> str:
    """Fold a message into one line."""
    return " ".join(text.split())


def describe(error: BaseException) -> tuple[str, int]:
    """Return what to tell the user about an error, and the exit code."""
    match error:
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case DeviceUnavailableError():
            return spoken(str(error)), NO_DEVICE
        case OptionError():
            return named(str(error)), USAGE
        case LouvainUmError():
            return spoken(str(error)), FAILED
        case RuntimeError() if "no locator available" in str(error):  # as Numba says it
            return (
                "compiled code can be kept nowhere, neither beside the package nor in the home "
                "folder; set NUMBA_CACHE_DIR to a folder that can be written",
                FAILED,
            )
        case MemoryError():
            return "out of memory; close other programs or use a machine with more", FAILED
        case OSError(errno=errno.ENOSPC):  # as the system says it, a GPU might be meant
            return "the disc is full; make room, or write elsewhere", FAILED
        case OSError() if error.strerror:
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{error.strerror.lower()}", FAILED
    kind = type(error).__name__
    return f"this is a bug, run again with -v and report what it prints ({kind}: {error})", FAILED


def report(error: BaseException, *, verbose: bool = False) -> int:
    """Tell the user about an error; return the exit code."""
    if isinstance(error, OSError):
        # Whatever stdout's buffer still holds would fail again when Python flushes it at exit.
        _stop_printing()
    if isinstance(error, BrokenPipeError):
        return FAILED  # the reader has seen enough, as `head` does
    if verbose:
        traceback.print_exception(error)
    text, code = describe(error)
    say(f"louvain-um: {one_line(text)}")
    return code


def _stop_printing() -> None:
    """Send what is left in stdout's buffer nowhere."""
    with suppress(OSError, ValueError):
        target = sys.stdout.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), target)
