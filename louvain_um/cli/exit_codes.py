"""Exceptions become exit codes and one line on stderr, with a traceback under ``-v`` only."""

from __future__ import annotations

import _thread
import errno
import functools
import io
import os
import select
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

import typer

from louvain_um.cli.common import Command, with_options
from louvain_um.cli.terminal import flags, print_line, with_flags
from louvain_um.core import interrupts
from louvain_um.errors import (
    DeviceUnavailableError,
    GraphWarning,
    LouvainUmError,
    OptionError,
    install_hint,
    missing_packages,
)

FAILED, USAGE, NO_DEVICE, SIGNAL = 1, 2, 3, 128

CLOSED_PIPE = SIGNAL + 13
"""The reader closed the pipe, as `head` does; the code of other programs, which SIGPIPE ends."""


def with_exit_code(command: Command) -> Command:
    """Wrap a command with options so that every exception becomes a message and an exit code."""
    # The command's ``quiet`` hides warnings; its ``verbose`` shows tracebacks.
    command = with_options(command)

    @functools.wraps(command)
    def run(**kwargs: Any) -> None:
        try:
            with warnings_as_notes(quiet=bool(kwargs.get("quiet"))):
                command(**kwargs)
                sys.stdout.flush()
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            names = flags(command) if isinstance(error, OptionError) else {}
            code = report_error(error, names, verbose=bool(kwargs.get("verbose")))
            raise typer.Exit(code) from None

    return run


def open_standard_streams() -> None:
    """Open closed standard streams (``>&-``) on the null device; never fail on encoding."""
    # Python sets a closed stream to None. `print` would then write errors to stdout, and the next
    # file opened would get the stream's file descriptor.
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # In this order each gets its own descriptor: the lowest free one.
            null = open(os.devnull, "r" if name == "stdin" else "w")  # noqa: SIM115 - stays open
            setattr(sys, name, null)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Vertex names may contain characters that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")


def print_note(*texts: str) -> None:
    """Print each text as a note on stderr; Python arguments in it become options."""
    for text in texts:
        print_line(f"note: {one_line(with_flags(text))}")


PAGES: Final = ("charts,report", "matplotlib", "jinja2")
"""The extras of pages with charts, and the modules of these."""


def has_packages(what: str, extras: str, *modules: str, quiet: bool) -> bool:
    """Return whether what an output needs is installed; a note says what is missing, and how to."""
    missing = bool(missing_packages(*modules))
    if missing and not quiet:
        print_note(f"no {what}: {install_hint(extras)}")
    return not missing


@contextmanager
def warnings_as_notes(*, quiet: bool) -> Iterator[None]:
    """Print warnings as one-line notes, or hide them if quiet."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not quiet:
            print_note(str(message))

    with warnings.catch_warnings():
        # Only this package's own warnings: users cannot act on deprecations of libraries.
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=GraphWarning)
        warnings.showwarning = show
        yield


@contextmanager
def going_on(*, force: bool) -> Iterator[None]:
    """Say of an interruption that the same command continues from there."""
    try:
        yield
    except KeyboardInterrupt as signal:
        signal.add_note(f"repeat the command{' without --force' if force else ''} to continue")
        raise


LONGEST_WORD = 500
"""Characters of a word in a message: above nearly all paths, below names that fill screens."""


def one_line(text: str) -> str:
    """Join the lines of a message, and cut words that are too long."""
    words = text.split()
    return " ".join(f"{word[:80]}…" if len(word) > LONGEST_WORD else word for word in words)


def message_and_code(error: BaseException, names: Mapping[str, str]) -> tuple[str, int]:
    """Return the message for an error, with options under the names given, and the exit code."""
    number = interruption(error)
    if number is not None:
        return "; ".join([word(number), *getattr(error, "__notes__", ())]), SIGNAL + number
    match error:
        case DeviceUnavailableError():
            return with_flags(str(error)), NO_DEVICE
        case OptionError():
            return with_flags(error.message(names.get(error.option, error.option))), USAGE
        case LouvainUmError():
            return with_flags(str(error)), FAILED
        case RuntimeError() if "no locator available" in str(error):  # Numba's message
            return (
                "compiled code cannot be cached: neither the package folder nor the home folder is "
                "writable; set NUMBA_CACHE_DIR to a writable folder",
                FAILED,
            )
        case RuntimeError() if "can't start new thread" in str(error):
            return (
                "no more threads can be started; close other programs, or pass --threads 1",
                FAILED,
            )
        case UnicodeEncodeError() if error.reason == "surrogates not allowed":
            return "a file name is not UTF-8 text; rename the file or its folder", FAILED
        case MemoryError() if "LOUVAIN_UM_THREADS" in str(error):
            return str(error), FAILED
        case MemoryError():
            return "out of memory; close other programs or use a machine with more memory", FAILED
        case OSError(errno=errno.ENOSPC):  # "No space left on device" could mean a GPU
            return "the disk is full; free some space or write to another place", FAILED
        case ConnectionError():  # of a cluster, say
            return (
                f"the other end of a connection ended ({error.strerror or error}); check the "
                "processes there, and run again",
                FAILED,
            )
        case OSError() if error.strerror:
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{error.strerror.lower()}; check the file and its disk", FAILED
    if _for_want_of_memory(error):
        return message_and_code(MemoryError(), names)
    kind = type(error).__name__
    return f"this is a bug; run again with -v and report the output ({kind}: {error})", FAILED


UNMAPPED: Final = "failed to map segment"
"""What the system says of a library for which there is no room."""


def _for_want_of_memory(error: BaseException) -> bool:
    """Return whether an error, or one that was handled when it came up, is for want of memory."""
    return any(isinstance(each, MemoryError) or UNMAPPED in str(each) for each in origins(error))


def origins(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it came from, each once: they may lead back to one."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__ or error.__context__


def report_error(
    error: BaseException, names: Mapping[str, str] | None = None, *, verbose: bool = False
) -> int:
    """Print the message for an error; return the exit code."""
    # `names` gives the flags of the command's options by the names of its parameters.
    closed = isinstance(error, BrokenPipeError) and _reader_gone()
    if isinstance(error, OSError):
        # Python would flush stdout's buffer at exit, and fail again.
        _discard_stdout()
    if closed:
        return CLOSED_PIPE
    if verbose:
        traceback.print_exception(error)
    text, code = message_and_code(error, names or {})
    print_line(f"louvain-um: {one_line(text)}")
    return code


def _reader_gone() -> bool:
    """Return whether what reads stdout or stderr has closed it; a pipe may be another one."""
    poll = getattr(select, "poll", None)
    if poll is None:  # on Windows
        return True
    waiting = poll()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            waiting.register(stream.fileno(), 0)
    return any(state & (select.POLLERR | select.POLLHUP) for _, state in waiting.poll(0))


def _discard_stdout() -> None:
    """Redirect stdout, with what is left in its buffer, to the null device."""
    with suppress(OSError, ValueError):
        target = sys.stdout.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), target)


WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminal closed"}
"""What a command says about each signal that it handles."""

PAUSE = 1.0
"""Seconds in which further signals are ignored: a closed terminal sends several."""


class Interruption(KeyboardInterrupt):
    """A signal that ends the command."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.number = number


class Handler:
    """Raises the first signal as an exception, and later ones if they come after a pause."""

    def __init__(self) -> None:
        self.first: int | None = None
        self._raised = -PAUSE

    def install(self) -> None:
        """Handle signals, except those that the caller handles, or ignores as ``nohup`` does."""
        for name in WORDS:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) in (
                signal.SIG_DFL,
                signal.default_int_handler,
            ):
                signal.signal(number, self)
        sys.unraisablehook = self._unraisable

    def remove(self) -> None:
        """Let signals end the process at once, when there is nothing left to clean up."""
        for name in WORDS:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is self:
                signal.signal(number, signal.SIG_DFL)

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Raise a signal as an exception."""
        if interrupts.wait(lambda: self(number, None)):
            return
        now = time.monotonic()
        if now - self._raised < PAUSE:
            return
        self._raised = now
        self.first = self.first or number
        if "logging" in sys.modules:  # what libraries lose now is not worth their lines
            sys.modules["logging"].disable()
        raise Interruption(self.first)

    def _unraisable(self, ignored: sys.UnraisableHookArgs) -> None:
        """Raise a signal again that arrived inside a callback of compiled code."""
        # Python reports exceptions in such callbacks, of which compiling has many, as "ignored".
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            # Of a file, say, that cannot be closed: the error that left it open is reported.
            if sys.flags.dev_mode:
                sys.__unraisablehook__(ignored)
            return
        self._raised = -PAUSE
        again = threading.Timer(0.05, _thread.interrupt_main, (self.first or signal.SIGINT,))
        again.daemon = True
        again.start()


handler = Handler()


def interruption(error: BaseException) -> int | None:
    """Return the signal that an error comes from, None for other errors."""
    # C code that an exception interrupts may report a `SystemError` with that exception as its
    # cause.
    for each in origins(error):
        if isinstance(each, KeyboardInterrupt):
            return getattr(each, "number", signal.SIGINT)
    return handler.first


def word(number: int) -> str:
    """Return what a command says about a signal."""
    return WORDS.get(signal.Signals(number).name, "interrupted")
