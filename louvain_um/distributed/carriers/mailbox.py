"""Messages that arrived before their receiver asked for them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from louvain_um.distributed.communicator import Array
from louvain_um.errors import WorkerLostError

KEPT: Final = 64
"""Sessions that ended here: their late messages are dropped."""

POLL_SECONDS: Final = 0.1


class Mailbox:
    """The messages of one session to one rank, by step and sender."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._arrived: dict[tuple[int, int], Array] = {}
        self._reason = ""

    def put(self, step: int, sender: int, array: Array) -> None:
        """Keep a message until it is taken."""
        with self._changed:
            self._arrived[step, sender] = array
            self._changed.notify_all()

    def abort(self, reason: str) -> None:
        """Make every `take` raise; the first reason counts."""
        with self._changed:
            self._reason = self._reason or reason
            self._changed.notify_all()

    def check(self) -> None:
        """Raise if the session was aborted."""
        with self._changed:
            if self._reason:
                raise WorkerLostError(self._reason)

    def take(
        self, step: int, sender: int, patience: float, check: Callable[[], None], name: str
    ) -> Array:
        """Return a message, which `name` sends, as soon as it is here."""
        deadline = time.monotonic() + patience
        while True:
            with self._changed:
                if self._reason:
                    raise WorkerLostError(self._reason)
                if (step, sender) in self._arrived:
                    return self._arrived.pop((step, sender))
                self._changed.wait(POLL_SECONDS)
            check()
            if time.monotonic() > deadline:
                raise WorkerLostError(f"{name} did not answer for {patience:g} s")


_open: dict[str, Mailbox] = {}
_closed: deque[str] = deque(maxlen=KEPT)
_lock = threading.Lock()


def mailbox(session: str) -> Mailbox:
    """Return the mailbox of a session; a message may arrive before its rank has started."""
    with _lock:
        return Mailbox() if session in _closed else _open.setdefault(session, Mailbox())


def close_mailbox(session: str) -> None:
    """Drop what a session left, and what still comes of it."""
    with _lock:
        _open.pop(session, None)
        _closed.append(session)
