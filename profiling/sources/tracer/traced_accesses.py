"""What a tracer counted, as plain data, with notes on its meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import COLUMNS, EventTable, Kind, Source
from louvain_um.profiling.sources.tracer.histogram import Histogram
from louvain_um.profiling.sources.tracer.kernels import Register


class AccessCounts(NamedTuple):
    """How often something was accessed."""

    reads: int = 0
    writes: int = 0
    atomics: int = 0

    @property
    def total(self) -> int:
        """All accesses."""
        return sum(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedAccesses:
    """What a tracer counted.

    Parameters
    ----------
    maps : tuple of PageMap
        Of each array: accesses by page and time.
    events : EventTable
        A row of kind ACCESS for each array in each phase: `count` accesses.
    counts : mapping of str to AccessCounts
        Accesses by array.
    elsewhere : AccessCounts
        Accesses outside all arrays.
    log : ndarray of `state.LOG`
        Sampled accesses: address, time in nanoseconds since the session began, use (an index
        into `state.USES`) and kernel (an index into `kernels`).
    kernels : tuple of str
        Symbols of functions in the log.
    dropped : int
        Samples dropped because the log was full.
    notes : tuple of str
        What the numbers mean, and what is missing from them, a sentence each.
    """

    maps: tuple[PageMap, ...]
    events: EventTable
    counts: Mapping[str, AccessCounts]
    elsewhere: AccessCounts
    log: NDArray[Any]
    kernels: tuple[str, ...]
    dropped: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Accesses of an array in a phase."""

    time: int
    address: int
    count: int
    phase: int
    level: int


def table(rows: Sequence[Row]) -> EventTable:
    """Return rows as events of kind ACCESS."""
    columns: dict[str, Any] = {
        each.name: np.array([getattr(row, each.name) for row in rows], COLUMNS[each.name])
        for each in fields(Row)
    }
    columns["source"] = np.full(len(rows), Source.TRACER)
    columns["kind"] = np.full(len(rows), Kind.ACCESS)
    return EventTable(columns)


def notes(
    counters: Histogram,
    register: Register,
    maps: Sequence[PageMap],
    counts: Mapping[str, AccessCounts],
    elsewhere: AccessCounts,
    dropped: int,
    *,
    programs: bool = False,
) -> list[str]:
    """Return notes on what the numbers mean and what is missing from them."""
    found = []
    pages = [page.page_bytes for page in maps]
    width, bins = 1 << int(counters.state["bin_shift"]), int(counters.state["bins"])
    left_out = "copies" if programs else "CuPy's own kernels and copies"
    if pages:
        found.append(
            f"accesses of {len(register.modules)} instrumented modules are counted in pages of "
            f"{min(pages):,} to {max(pages):,} bytes and bins of {width / 1e6:g} ms; "
            f"{left_out} are not counted; instrumented kernels run slower, so all seconds "
            "here are longer"
        )
        if maps[0].edges[-1] == counters.edges()[bins]:
            found.append("the run outlasted the bins: the last one holds all later accesses")
    for kernel, reason in sorted(register.left.items()):
        found.append(f"{kernel} was not instrumented, and its accesses are not counted: {reason}")
    if counters.refused:
        names = ", ".join(sorted(set(counters.refused)))
        found.append(f"no counters were left for {names}: their accesses count as in no array")
    if elsewhere.total:
        share = elsewhere.total / (elsewhere.total + sum(uses.total for uses in counts.values()))
        found.append(f"{elsewhere.total:,} accesses ({share:.2%}) lie in no array")
    if counters.maps.saturated:
        found.append("some counters of the maps are saturated at 2**32 - 1")
    if counters.period:
        found.append(
            f"one access in {counters.period:,} was sampled; {dropped:,} samples were dropped"
        )
    return found
