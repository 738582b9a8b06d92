"""One recorded run as plain data; whatever recorded it, views read only this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.ledger import Group
from louvain_um.profiling.session.events import EventTable, Kind

SCHEMA = 1
"""Raised whenever older code could no longer read what `Session.save` writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """One array, from its allocation to its end, in nanoseconds since the session began.

    `level` is the level whose array it is, −1 for those of no level.
    """

    name: str
    group: Group
    address: int
    nbytes: int
    start_ns: int
    end_ns: int
    level: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpan:
    """A phase (`iteration` −1) or one iteration of it; iterations lie inside their phase.

    `phase` is one of the engines' (`louvain_um.events.Phase`), or a name that a user's code gave.
    """

    phase: str
    level: int
    iteration: int
    start_ns: int
    end_ns: int
    vertices: int = 0
    arcs: int = 0
    moved: int = 0
    modularity: float = float("nan")

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageMap:
    """How often each stretch of an array was touched in each stretch of time.

    Parameters
    ----------
    array : str
        Name of the array, as in the lifetimes.
    page_bytes : int
        Bytes of the array that one row stands for; the last row may stand for fewer.
    edges : int64[bins + 1]
        Where bins of time begin and end, in nanoseconds since the session began.
    counts : uint32[rows, bins]
        Accesses, or faults, of a row in a bin.
    kind : {"access", "fault"}
    """

    array: str
    page_bytes: int
    edges: NDArray[np.int64]
    counts: NDArray[np.uint32]
    kind: Literal["access", "fault"] = "access"

    def __post_init__(self) -> None:
        if self.counts.ndim != 2 or self.counts.shape[1] + 1 != len(self.edges):
            raise ValueError(
                f"map of {self.array!r}: {len(self.edges)} edges bound {len(self.edges) - 1} "
                f"bins, the counts have shape {self.counts.shape}"
            )

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.counts.sum(dtype=np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Session:
    """One recorded run.

    Parameters
    ----------
    metadata : mapping
        What ran where. Always there: `version`, `created` (ISO 8601), `device`, `policy`,
        `seconds` (of the run), `complete` (False in a session whose run was cut short), and
        `sources`, a mapping from the name of each source ("cupti", "nvml", "tracer",
        "recorder", "nsys", "engine") to "measured", "modelled" or "not available: why". Of a
        detection also `method`, `seed`, `graph` (`vertices`, `edges`, `arcs`, `weighted`),
        `modularity`, `communities`, `arcs_visited`, `timings`, `peak_bytes` by group, and the
        result's provenance (`budget_bytes`, `placements` …). `about_sources` holds what each
        source says of itself: events, `dropped`, the driver's totals beside those recorded.
    plan : mapping, optional
        The plan made for the run, as `louvain-um plan --json` prints it.
    lifetimes : tuple of Lifetime
        Arrays, in the order of their allocation; a name may come back later.
    phases : tuple of PhaseSpan
        Phases and their iterations, in order of their beginnings.
    events : EventTable
        In order of time.
    maps : tuple of PageMap
    notes : tuple of str
        What is missing, sampled, merged or dropped, a sentence each.
    energy : mapping, optional
        `joules` and `seconds` of the run, `times_ns` and `watts` of samples, `counter`
        ("total energy" or "integrated power").
    schema : int

    Examples
    --------
    >>> from louvain_um.profiling.session.session import Session
    >>> from louvain_um.profiling.session.events import EventTable
    >>> Session(events=EventTable({"kind": [1], "bytes": [65536]})).owners().tolist()
    [-1]
    """

    metadata: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] | None = None
    lifetimes: tuple[Lifetime, ...] = ()
    phases: tuple[PhaseSpan, ...] = ()
    events: EventTable = field(default_factory=lambda: EventTable({}))
    maps: tuple[PageMap, ...] = ()
    notes: tuple[str, ...] = ()
    energy: Mapping[str, Any] | None = None
    schema: int = SCHEMA

    def owners(self) -> NDArray[np.int32]:
        """Return for each event which of `lifetimes` its address lies in; −1 for none.

        Events of memory count; kernels and copies have no address and so no owner.
        """
        from louvain_um.profiling.record.attribution import owners

        return owners(self.events, self.lifetimes)

    @property
    def unattributed(self) -> int:
        """Rows of unified-memory events that lie in no array."""
        memory = self.events["kind"] <= Kind.DTOD
        return int(np.count_nonzero(self.owners()[memory] < 0))

    @property
    def seconds(self) -> float:
        """Length of the run; of what was recorded, where the run's own is not known."""
        if "seconds" in self.metadata:
            return float(self.metadata["seconds"])
        ends = [span.end_ns for span in self.phases]
        if len(self.events):
            ends.append(int((self.events["time"] + self.events["duration"]).max()))
        return max(ends, default=0) / 1e9

    def summary(self) -> dict[str, Any]:
        """Return the figures that matter, as `louvain-um profile --json` prints them."""
        from louvain_um.profiling.session.summary import summary

        return summary(self)

    def __str__(self) -> str:
        from louvain_um.profiling.session.summary import lines

        return "\n".join(line for line in lines(self) if line)

    def __repr__(self) -> str:
        return str(self).partition("\n")[0]

    def _repr_html_(self) -> str:
        from louvain_um.profiling.views.notebook import html

        return html(self)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the session: one compressed `.npz` file, or a folder of Parquet (`.parquet`).

        Raises
        ------
        LouvainUmError
            The file exists and `force` is off, or it cannot be written.
        """
        from louvain_um.profiling.session.storage import save

        save(self, path, force=force)

    def report(
        self, path: str | Path, *, other: Session | None = None, force: bool = False
    ) -> None:
        """Write the session as one self-contained HTML page, beside another if one is given.

        Raises
        ------
        LouvainUmError
            The file exists and `force` is off, or it cannot be written; or Jinja is not installed.
        """
        from louvain_um.profiling.views.html import write

        write(self, path, other=other, force=force)


def load(path: str | Path) -> Session:
    """Read a session that `Session.save` wrote, or an export of Nsight Systems (SQLite).

    Raises
    ------
    LouvainUmError
        The file is missing, is no session, or belongs to another version.
    """
    from louvain_um.profiling.session.storage import load

    return load(path)
