"""What users hold: a session that can save, print and show itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from louvain_um.errors import LouvainUmError, OptionError, check_texts, checks_kinds
from louvain_um.formats.file_types import path_text
from louvain_um.profiling.session import Lifetime, SessionData, storage
from louvain_um.profiling.sources import nsys
from louvain_um.profiling.views.session.analysis import lines, summary


class Session(SessionData):
    """One recorded run; its fields are those of `louvain_um.profiling.session.SessionData`.

    Examples
    --------
    >>> from louvain_um.profiling import Session
    >>> Session(notes=("an empty one",)).summary()["events"]
    0
    """

    __slots__ = ()

    @classmethod
    def of(cls, data: SessionData) -> Self:
        """Return plain data as a session."""
        return cls(**{field.name: getattr(data, field.name) for field in fields(data)})

    def summary(self) -> dict[str, Any]:
        """Return the figures that matter, as `louvain-um profile --json` prints them."""
        return summary(self)

    def __str__(self) -> str:
        return "\n".join(line for line in lines(self) if line)

    def __repr__(self) -> str:
        return str(self).partition("\n")[0]

    def _repr_html_(self) -> str:
        from louvain_um.profiling.views.html import html

        return html(self)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the session: one compressed `.npz` file, or a folder of Parquet (`.parquet`).

        Raises
        ------
        LouvainUmError
            The file exists and `force` is off, or it cannot be written.
        """
        storage.save(self, path_text(path), force=force)

    def report(
        self,
        path: str | Path,
        *,
        other: SessionData | Sequence[SessionData] | None = None,
        force: bool = False,
    ) -> None:
        """Write the session as one self-contained HTML page, compared with others if given.

        Raises
        ------
        LouvainUmError
            The file exists and `force` is off, or it cannot be written; or Jinja is not installed.
        """
        from louvain_um.profiling.views.html import write

        others = () if other is None else (other,) if isinstance(other, SessionData) else other
        check_texts("other", others)
        others = tuple(others)  # an iterator ends after one pass
        if not all(isinstance(each, SessionData) for each in others):
            raise OptionError("other", other, "must be a session, or a list of sessions")
        write((self, *others), path_text(path), force=force)

    def timeline(self, path: str | Path, *, force: bool = False) -> None:
        """Write the phases, arrays and events over time, to be opened in Perfetto.

        Parameters
        ----------
        path : path
            Ends in ``.json`` or ``.json.gz``.
        force : bool
            Replace the file if it exists.

        Raises
        ------
        LouvainUmError
            The suffix is another, the file exists and `force` is off, or it cannot be written.
        """
        from louvain_um.profiling.views import timeline

        path = path_text(path)
        if not path.lower().endswith(timeline.SUFFIXES):
            raise LouvainUmError(f"{path}: must end in {', '.join(timeline.SUFFIXES)}; rename it")
        timeline.write(self, path, force=force)


def load(path: str | Path) -> Session:
    """Read a session that `Session.save` wrote, or an export of Nsight Systems (SQLite, Parquet).

    Raises
    ------
    LouvainUmError
        The file is missing, is no session, or belongs to another version.
    """
    name = path_text(path)
    if nsys.is_export(name):
        return Session.of(nsys.read_export(name))
    return Session.of(storage.load(name))


@checks_kinds
def import_nsys(path: str | Path, *, arrays: Sequence[Lifetime] = ()) -> Session:
    """Read what ``nsys export --type sqlite``, or ``parquetdir``, wrote as a session.

    Parameters
    ----------
    path : path
        The exported database, or folder.
    arrays : sequence of Lifetime, optional
        Arrays of the program, with its addresses and the recording's times, to attribute events
        to; Nsight knows none by name.

    Returns
    -------
    Session
        With kernels, copies, migrations, faults of both sides, and NVTX ranges as phases.

    Raises
    ------
    LouvainUmError
        The file is missing or no export of a CUDA program.
    """
    return Session.of(nsys.read_export(path, arrays=arrays))
