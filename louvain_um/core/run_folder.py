"""Folders in which a run that was stopped resumes: finished points are lines of JSON."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, Self

from louvain_um.core.atomic_files import LockedFolder, appending, is_empty, open_resolved
from louvain_um.core.plain_data import parse
from louvain_um.errors import LouvainUmError, reason_of

POINTS: Final = "points.jsonl"
"""Finished points, one a line, in the order in which they were finished."""

START_AGAIN: Final = "name another folder, or pass --force (force=True) to start again"

LINE_BEGIN: Final = b'{"'
"""Start of every line, by which one that was cut short is known."""

SYNC_SECONDS: Final = 1.0
"""Finished points of so many seconds may be lost if the machine, not the process, stops."""


class RunFolder:
    """A folder that one run at a time writes its finished points to; none is overwritten."""

    def __init__(
        self,
        folder: str | Path,
        take: Callable[[Any], None],
        *,
        setup: Mapping[str, Any] | None = None,
        force: bool = False,
    ) -> None:
        """Open a folder; give `take` each of its points, unless `force` is on.

        A `setup` is the first line, written with the first point; that of others is refused.
        """
        self.folder = Path(folder)
        self._setup, self._take = json.loads(json.dumps(setup)), take
        check_folder(folder, force=force)
        self._lock, self._next_sync = LockedFolder(folder), 0.0
        self._file: IO[bytes] | None = None
        try:
            self._file = open_resolved(self.folder / POINTS, "a+b")
            whole = 0 if force else read_points(self.folder, self._read, START_AGAIN)
            self._file.truncate(whole)
            self._begin = b"" if setup is None or whole else _line({"setup": setup})
        except OSError as error:
            self.close()
            raise LouvainUmError(f"{folder}: {reason_of(error)}; name another folder") from None
        except BaseException:
            self.close()
            raise

    def _read(self, number: int, found: Any) -> None:
        """Take a point, or compare the setup."""
        if number > 1 or self._setup is None:
            self._take(found)
            return
        # A run that was begun without a digest may resume.
        before = {name: value for name, value in self._setup.items() if name != "digest"}
        if found["setup"] not in (self._setup, before):
            raise LouvainUmError(
                f"{self.folder}: holds results of another graph or other options; {START_AGAIN}"
            )

    def write_line(self, value: Mapping[str, Any]) -> None:
        """Append a line."""
        assert self._file is not None
        with appending(self.folder / POINTS):
            self._file.write(self._begin + _line(value))
            self._file.flush()
            self._begin = b""
            if time.monotonic() >= self._next_sync:
                os.fsync(self._file.fileno())
                self._next_sync = time.monotonic() + SYNC_SECONDS

    def close(self) -> None:
        """Let others write to the folder."""
        if self._file is not None:
            with suppress(OSError):  # of what could not be written, an error has been raised
                self._file.close()
            with suppress(OSError):  # a run without a point leaves nothing of its own
                path = self.folder / POINTS
                if not path.stat().st_size and os.listdir(self.folder) == [POINTS]:
                    path.unlink()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def check_folder(folder: str | Path, *, force: bool = False) -> None:
    """Refuse a folder that cannot hold a run's points, before any work is done; create none."""
    path = Path(folder)
    existing = next((each for each in (path, *path.parents) if each.exists()), Path())
    if str(path) == "-" or not existing.is_dir():
        what = "is" if str(path) == "-" or existing == path else f"{existing} is"
        raise LouvainUmError(f"{path}: {what} not a folder; name another one")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise LouvainUmError(f"{path}: permission denied; name another folder")
    if not force and existing == path and not (path / POINTS).exists() and not is_empty(path):
        raise LouvainUmError(f"{path}: holds other files; {START_AGAIN}")


def read_points(folder: Path, take: Callable[[int, Any], None], remedy: str) -> int:
    """Give `take` every whole line, of which it may raise ValueError; return the bytes of these."""
    path, whole, number = folder / POINTS, 0, 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                if line.endswith(b"\n"):
                    take(number, parse(line))
                    whole += len(line)
                elif line[: len(LINE_BEGIN)] not in (LINE_BEGIN, LINE_BEGIN[:1]):
                    raise ValueError("was not cut short by a kill")
            except (ValueError, KeyError, TypeError):
                raise LouvainUmError(
                    f"{path}:{number}: is damaged, or another command's; {remedy}"
                ) from None
    return whole
