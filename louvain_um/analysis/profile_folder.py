"""The folder of a resolution profile: each finished point is on disk before the next begins."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from louvain_um.analysis.profile import (
    PLATEAU_FIELDS,
    POINT_FIELDS,
    Line,
    ResolutionPoint,
    ResolutionProfile,
)
from louvain_um.core.atomic_files import OwnFolder, is_empty, open_resolved, replacing
from louvain_um.core.plain_data import parse
from louvain_um.errors import LouvainUmError

POINTS: Final = "points.jsonl"
"""The setup on the first line, then one finished point a line."""


class ProfileStore:
    """Finished points of a profile, in a folder."""

    def __init__(self, folder: Path, setup: Mapping[str, Any], *, force: bool = False) -> None:
        self.folder = folder
        path = folder / POINTS
        setup = json.loads(json.dumps(setup))
        check_folder(folder, force=force)
        self._own = OwnFolder(folder)
        try:
            self._open(path, setup, force=force)
        except BaseException:
            self._own.close()
            raise

    def _open(self, path: Path, setup: Any, *, force: bool) -> None:
        """Read the points that are there, and cut off what a kill left of another."""
        try:
            self.file: IO[bytes] = open_resolved(path, "a+b")
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            raise LouvainUmError(f"{self.folder}: {reason}; name another folder") from None
        if force:
            self.file.truncate(0)
        self.points: dict[float, ResolutionPoint] = {}
        self.file.seek(0)
        try:
            whole = self._read(setup)
        except LouvainUmError:
            self.file.close()
            raise
        self.file.truncate(whole)
        if not whole:
            self._write_line({"setup": setup})

    def _read(self, setup: Any) -> int:
        """Read the points; return where the last whole line ends."""
        whole = 0
        for number, line in enumerate(self.file):
            if not line.endswith(b"\n"):
                break  # cut short by a kill
            try:
                found = parse(line)
                # A profile that was begun without a digest may go on.
                before = {name: value for name, value in setup.items() if name != "digest"}
                if number == 0 and found["setup"] not in (setup, before):
                    raise LouvainUmError(
                        f"{self.folder}: holds a profile of another graph or other options; name "
                        "another folder, or pass --force (force=True) to start again"
                    )
                if number:
                    point = ResolutionPoint.from_plain(found)
                    self.points[point.resolution] = point
            except (ValueError, KeyError, TypeError):
                raise LouvainUmError(
                    f"{self.folder / POINTS}:{number + 1}: is damaged; name another folder, or "
                    "pass --force (force=True) to start again"
                ) from None
            whole += len(line)
        return whole

    def __enter__(self) -> ProfileStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.file.close()
        self._own.close()

    def add(self, point: ResolutionPoint) -> None:
        """Keep a finished point."""
        self._write_line(point.as_plain())

    def _write_line(self, value: Mapping[str, Any]) -> None:
        self.file.write(json.dumps(value).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def write(self, profile: ResolutionProfile) -> None:
        """Write plateaus and points as tables, and both as JSON."""
        for name, fields, rows in (
            ("plateaus.csv", PLATEAU_FIELDS, profile.plateau_rows()),
            ("points.csv", POINT_FIELDS, profile.point_rows()),
        ):
            with (
                replacing(self.folder / name, force=True) as part,
                part.open("w", newline="", encoding="utf-8") as file,
            ):
                writer = csv.DictWriter(file, fields)
                writer.writeheader()
                writer.writerows(rows)
        with replacing(self.folder / "profile.json", force=True) as part:
            part.write_text(json.dumps(summary(profile), indent=1) + "\n", "utf-8")


def check_folder(folder: Path, *, force: bool) -> None:
    """Raise if a folder cannot take a profile, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise LouvainUmError(f"{folder}: is a file; name a folder")
    if not folder.exists() and not folder.parent.is_dir():
        raise LouvainUmError(f"{folder}: there is no folder {folder.parent}; create it first")
    others = folder.is_dir() and not is_empty(folder) and not (folder / POINTS).is_file()
    if others and not force:
        raise LouvainUmError(
            f"{folder}: holds other files; name another folder, or pass --force (force=True)"
        )


def summary(profile: ResolutionProfile) -> dict[str, Any]:
    """Return a profile as ``--json`` prints it; `run` of a plateau says how to find it again."""
    graph = profile.graph
    return {
        "schema": 1,
        "graph": {"vertices": graph.n_vertices, "edges": graph.n_edges, "arcs": graph.n_arcs},
        "method": profile.options.method,
        "objective": profile.options.objective,
        "low": profile.low,
        "high": profile.high,
        "plateaus": [
            {**row, "run": _run(plateau.line)}
            for row, plateau in zip(profile.plateau_rows(), profile.plateaus, strict=True)
        ],
        "points": profile.point_rows(),
    }


def _run(line: Line) -> dict[str, Any]:
    return {"resolution": line.resolution, "seed": line.seed, "start": line.start}
