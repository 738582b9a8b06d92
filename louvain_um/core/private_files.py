"""Cached files that are loaded as code: only their user can have written them.

A file is read if it and its folder belong to the user or to the administrator, and nobody else
may write to them. One process makes a file while others that need it wait.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Final

from louvain_um.core.atomic_files import lock
from louvain_um.errors import warn

NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)

WAIT_SECONDS: Final = 60
"""For one file; a process that has waited as long for one waits for no other."""

IDLE_SECONDS: Final = 10
"""For a process that does not run meanwhile: it was stopped, or hangs."""

POLL_SECONDS: Final = 0.05

_patient, _warned = True, False


def user() -> str:
    """Return what distinguishes the folder of this user from those of others."""
    return str(os.geteuid()) if hasattr(os, "geteuid") else "user"


def read(path: Path) -> bytes | None:
    """Return the content of a file, None if it is not there or others can have written it."""
    with suppress(OSError):
        if is_private(path.parent.stat()):
            with open(path, "rb", opener=_without_links) as file:
                return file.read() if is_private(os.fstat(file.fileno())) else None
        _warn(path.parent)
    return None


def write(path: Path, content: bytes) -> None:
    """Write a file whole, in a folder made for this user alone; other folders are left alone."""
    # Raises OSError if the disk is full or read-only.
    _make_folder(path.parent)
    if not is_private(path.parent.stat()):
        _warn(path.parent)
        return
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        os.replace(part, path)
    except BaseException:  # an interrupt, too, leaves no file
        with suppress(OSError):
            part.unlink()
        raise


@contextmanager
def made_once(path: Path, in_haste: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Wait while another process makes a file; then let others wait until the block ends."""
    # Waiting ends early if `in_haste` says so, or if the other process takes too long or stands
    # still, which is said in a line.
    locked, descriptor = path.with_name(f"{path.name}.lock"), -1
    with suppress(OSError):  # the folder cannot be written
        _make_folder(path.parent)
        descriptor = os.open(locked, os.O_RDWR | os.O_CREAT | NO_LINK, 0o600)
    held, end, seen, moved = False, time.monotonic() + WAIT_SECONDS, "", 0.0
    try:
        while descriptor >= 0 and not (held := lock(descriptor)) and _patient and not in_haste():
            now, before, seen = time.monotonic(), seen, _work_of_holder(descriptor)
            moved = moved if seen == before else now
            if now > min(end, moved + IDLE_SECONDS):
                _give_up(path.parent)
            time.sleep(POLL_SECONDS)
        if held:
            with suppress(OSError):  # the disk may be full
                os.pwrite(descriptor, b"%-20d" % os.getpid(), 0)
                for part in path.parent.glob(f"{escape(path.stem)}.*.part"):
                    part.unlink()  # of a process that was killed
        yield
    finally:
        if held:
            with suppress(OSError):  # the folder may have been removed
                locked.unlink()
        if descriptor >= 0:
            os.close(descriptor)


def _work_of_holder(descriptor: int) -> str:
    """Return what changes while the process runs that holds a lock; always, if none is known."""
    with suppress(OSError, ValueError):
        about = Path(f"/proc/{int(os.pread(descriptor, 20, 0))}/stat").read_text(errors="replace")
        return " ".join(about.rpartition(")")[2].split()[11:13])  # ticks of user and system
    return str(time.monotonic_ns())


def _give_up(folder: Path) -> None:
    """Wait for no other process from now on."""
    global _patient
    if _patient:
        _patient = False
        warn(
            f"{folder}: another process began to compile what is needed here and does not finish; "
            "compiling it here, too"
        )


def is_private(status: os.stat_result) -> bool:
    """Return whether nobody but this user and the administrator can write to a file or folder."""
    if not hasattr(os, "geteuid"):  # Windows, where homes are private
        return True
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | NO_LINK)


def _make_folder(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def _warn(folder: Path) -> None:
    """Say once in a process that a folder is not used."""
    global _warned
    if not _warned:
        _warned = True
        warn(
            f"{folder}: others can write there, so that compiled code is neither kept there nor "
            "loaded; remove the folder, or set NUMBA_CACHE_DIR and LOUVAIN_UM_CACHE to folders "
            "of your own"
        )
