"""The folder that a followed stream is written to, and where an interrupted one resumes.

Rows are appended as the batches are followed; a checkpoint says how long the tables were when the
tracker was saved. Going on cuts them to that length and follows the batches since again, which
gives the same rows.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.atomic_files import (
    LockedFolder,
    appending,
    is_empty,
    open_resolved,
    write_text,
)
from louvain_um.core.plain_data import Whole, build, read_archive, read_json, write_archive
from louvain_um.dynamic.streams import EdgeStream
from louvain_um.dynamic.tracking.identity import EVENT
from louvain_um.dynamic.tracking.tracked import TrackedCommunities
from louvain_um.dynamic.tracking.tracker import Tracker
from louvain_um.dynamic.tracking.tracker_file import REFUSAL
from louvain_um.errors import LouvainUmError
from louvain_um.formats.labels.text import spreadsheet_safe

SETTINGS: Final = "stream.json"
STATE: Final = "tracker.npz"
CHECKPOINTS: Final = "checkpoints.json"

HISTORY: Final = (
    "time", "epoch", "edges", "modularity", "communities", "edges_changed", "marked", "split",
    "moves", "changed", "renewed", "audit_lead", "arcs_visited", "seconds",
)  # fmt: skip
TABLES: Final[dict[str, tuple[str, ...]]] = {
    "communities": ("time", "vertex", "community"),
    "events": ("time", *(EVENT.names or ())),
    "history": HISTORY,
}
"""Tables of a followed stream, and their columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Bytes of each table at a checkpoint."""

    communities: Whole
    events: Whole
    history: Whole


class StreamFolder:
    """The tables and the state of a followed stream."""

    def __init__(
        self,
        folder: str | Path,
        settings: Mapping[str, Any],
        names: NDArray[Any] | None = None,
        *,
        force: bool = False,
    ) -> None:
        self.folder, self.names = Path(folder), names
        self.safe_csv = bool(settings.get("safe_csv"))
        self.tables: dict[str, IO[bytes]] = {}
        self._lengths: dict[str, dict[str, int]] = {}
        self._made: list[Path] = []
        self._lock = LockedFolder(folder)
        try:
            self._check(dict(settings), force=force)
        except BaseException:
            self._lock.close()
            raise

    def _check(self, settings: dict[str, Any], *, force: bool) -> None:
        """Refuse a folder of something else; write down what this one is of."""
        path = self.folder / SETTINGS
        if not force and path.exists():
            held = _written(path)
            if held == settings:
                return
            if self._begun():
                raise LouvainUmError(f"{self.folder}: {_other_stream(held, settings)}")
        elif not force and not is_empty(self.folder):
            raise LouvainUmError(
                f"{self.folder}: is not empty; name another folder, or pass --force"
            )
        for left in (self.folder / STATE, self.folder / CHECKPOINTS, *self._places()):
            left.unlink(missing_ok=True)
        self._made += [] if path.exists() else [path]
        write_text(path, json.dumps(settings), force=True)

    def _begun(self) -> bool:
        """Return whether the folder holds a batch; a stream may have failed before its first."""
        if (self.folder / STATE).exists():
            return True
        try:
            with self.table("history").open("rb") as file:
                return len(file.readlines(1 << 12)) > 1
        except FileNotFoundError:
            return False

    def resume(self, threads: int | None = None) -> Tracker | None:
        """Open the tables; return the tracker as it was last saved, None to begin."""
        state, lengths = self.folder / STATE, dict.fromkeys(TABLES, 0)
        tracker = None
        if state.exists():
            try:
                tracker = Tracker.load(state, threads=threads)
            except LouvainUmError as error:
                if str(error).endswith(REFUSAL):
                    raise LouvainUmError(damaged(state)) from None
                raise
            self._lengths = _written(self.folder / CHECKPOINTS)
            try:
                found = build(Lengths, self._lengths[str(tracker.epoch)], "lengths")
            except (KeyError, ValueError):
                raise LouvainUmError(
                    f"{self.folder / CHECKPOINTS}: does not fit {STATE}; pass --force to start "
                    "again"
                ) from None
            lengths = asdict(found)
        for name, length in lengths.items():
            path = self.table(name)
            self._made += [] if path.exists() else [path]
            file = open_resolved(path, "r+b" if path.exists() else "w+b")
            self.tables[name] = file
            if file.seek(0, os.SEEK_END) < length:
                raise LouvainUmError(f"{path}: has lost rows; pass --force to start again")
            file.seek(max(length - 1, 0))
            if length and file.read(1) != b"\n":
                raise LouvainUmError(f"{path}: is damaged; pass --force to start again")
            file.truncate(length)
            file.seek(length)
            if not length:
                self._write(name, [TABLES[name]])
        return tracker

    def table(self, name: str) -> Path:
        """Return the file of a table."""
        return self.folder / f"{name}.csv"

    def add(
        self, time: int | float | str, edges: int, found: TrackedCommunities, row: Mapping[str, Any]
    ) -> None:
        """Append what a batch changed."""
        changed = found.changed
        names = found.vertex_names if self.names is None else self.names
        vertices = changed if names is None else names[changed]
        ids = found.ids[changed]
        if self.safe_csv:
            vertices = spreadsheet_safe(np.asarray(vertices))
        pairs = zip(np.asarray(vertices).tolist(), ids.tolist(), strict=True)
        self._write("communities", ((time, *pair) for pair in pairs))
        self._write("events", ((time, *event.tolist()) for event in found.events))
        full = {**row, "time": time, "edges": edges}
        self._write("history", [[full[name] for name in HISTORY]])
        for name, file in self.tables.items():
            with appending(self.table(name)):
                file.flush()

    def left(self, epoch: int) -> dict[str, NDArray[Any]] | None:
        """Return the place of a live stream that was saved with a batch; None for a file's."""
        path = self._place(epoch)
        return read_archive(path, damaged(path)) if path.exists() else None

    def _place(self, epoch: int) -> Path:
        return self.folder / f"place-{epoch}.npz"

    def _places(self) -> list[Path]:
        return list(self.folder.glob("place-*.npz"))

    def save(self, tracker: Tracker, place: Mapping[str, NDArray[Any]] | None = None) -> None:
        """Make a checkpoint: a stream that is killed resumes from here."""
        lengths = {}
        for name, file in self.tables.items():
            with appending(self.table(name)):
                file.flush()
                os.fsync(file.fileno())
            lengths[name] = file.tell()
        # The last checkpoint stays known until the state of this one is in its place.
        kept = list(self._lengths.items())[-1:]
        self._lengths = {**dict(kept), str(tracker.epoch): lengths}
        write_text(self.folder / CHECKPOINTS, json.dumps(self._lengths), force=True)
        mine = self._place(tracker.epoch)
        if place is not None:
            write_archive(mine, place, force=True)
        tracker.save(self.folder / STATE, force=True)
        for left in self._places():
            if left != mine:
                left.unlink()

    def close(self) -> None:
        """Close the tables; without a batch, remove what was made."""
        for file in self.tables.values():
            with suppress(OSError):  # of what could not be written, an error has been raised
                file.close()
        with suppress(OSError):
            for path in [] if self._begun() else self._made:
                path.unlink(missing_ok=True)
        self._lock.close()

    def _write(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        text = codecs.getwriter("utf-8")(self.tables[name], "surrogateescape")
        with appending(self.table(name)):
            csv.writer(text, lineterminator="\n").writerows(rows)


def fingerprint(stream: EdgeStream) -> str:
    """Return a digest of a stream's edges and times."""
    edges, digest = stream.edges, hashlib.sha256()
    for column in (edges.u, edges.v, edges.times, edges.weights):
        if column is not None:
            digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()[:32]


def fingerprint_of_names(names: NDArray[Any]) -> str:
    """Return a digest of vertices' names."""
    text = json.dumps(names.tolist(), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _other_stream(held: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return what to say of a folder whose stream has other settings."""
    others = {name for name in held.keys() | settings if held.get(name) != settings.get(name)}
    if "edges" in held.keys() & settings and others <= {"edges", "names"}:
        return (
            "holds a stream of another file, or of this one before it changed; name another "
            "folder, or pass --force to start again (a file that grows is followed through a pipe: "
            "tail -n +1 -f FILE | louvain-um stream -)"
        )
    return (
        "holds a stream of another file, or with other options; name another folder, or pass "
        "--force to start again"
    )


def _written(path: Path) -> dict[str, Any]:
    """Return an object of a file written here."""
    found = read_json(path)
    if found is None:
        raise LouvainUmError(damaged(path))
    return found


def damaged(path: Path) -> str:
    """Return the error of a file from which a stream cannot resume."""
    return f"{path}: is damaged; pass --force to start again"
