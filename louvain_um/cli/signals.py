"""Signals that end a command: it removes unfinished files and exits with 128 + the number."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from types import FrameType

from louvain_um.core import interrupts

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
        raise Interruption(self.first)

    def _unraisable(self, ignored: sys.UnraisableHookArgs) -> None:
        """Raise a signal again that arrived inside a callback of compiled code.

        Python reports exceptions in such callbacks as "ignored" and goes on. Compiling runs many
        of them.
        """
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
    """Return the signal that an error comes from, None for other errors.

    C code that an exception interrupts may report a `SystemError` with that exception as its cause.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return getattr(seen, "number", signal.SIGINT)
        seen = seen.__cause__ or seen.__context__
    return handler.first


def word(number: int) -> str:
    """Return what a command says about a signal."""
    return WORDS.get(signal.Signals(number).name, "interrupted")
