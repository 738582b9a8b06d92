"""What launches access of each array, declared from their arguments: nothing was traced.

An argument that a kernel's C++ name declares const counts as read, any other as written: once,
whole, in order. An array whose pages came to the device out of order counts as gathered, with an
access for each thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.hardware import LARGE_PAGE
from louvain_um.profiling.access.migrations import LEAST_ARRIVALS, came_in_order
from louvain_um.profiling.access.recordings import BINS, page_map, shift_of
from louvain_um.profiling.session import Lifetime, PageMap, PhaseSpan
from louvain_um.profiling.session.events import EventTable, Kind

ITEM: Final = 4
"""Bytes of an element, where nothing says more."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel's launch: times, threads, and of each array whether it is written, and its bytes."""

    kernel: str
    start_ns: int
    end_ns: int
    threads: int
    arrays: Mapping[str, bool]
    nbytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Declared:
    """Maps of accesses, spans of kernels, and reads and writes by array."""

    maps: tuple[PageMap, ...] = ()
    phases: tuple[PhaseSpan, ...] = ()
    accesses: dict[str, list[float]] = field(default_factory=dict)
    gathered: list[str] = field(default_factory=list)


def constant_arguments(kernel: str) -> list[bool] | None:
    """Return which arguments of a demangled kernel point to constants; None for C names."""
    _, found, rest = kernel.partition("(")
    if not found:
        return None
    parts, depth, begin = list[str](), 0, 0
    text = rest.rpartition(")")[0]
    for at, letter in enumerate(text):
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [_to_constant(part) for part in [*parts, text[begin:]]]


def _to_constant(parameter: str) -> bool:
    """Return whether a parameter is a pointer to constants, as demanglers write it."""
    pointed = parameter.replace("__restrict__", "").strip()
    return pointed.endswith("const*") or (pointed.startswith("const ") and pointed.endswith("*"))


def gathered(events: EventTable, owners: NDArray[np.int32], number: int) -> bool:
    """Return whether pages of an array came to the device out of order while kernels ran."""
    # If they all faulted elsewhere, as in `cudaMemset`, the order of kernels is not known: then,
    # too, as accesses in order would cost less over the bus.
    kind, time = events["kind"], events["time"]
    mine = (owners == number) & np.isin(kind, (Kind.HTOD, Kind.GPU_FAULT_GROUP))
    kernels = np.flatnonzero(kind == Kind.KERNEL)
    kernels = kernels[np.argsort(time[kernels], kind="stable")]
    ends = np.maximum.accumulate(time[kernels] + events["duration"][kernels])
    if len(kernels) and events["duration"][kernels].any():
        at = np.searchsorted(time[kernels], time, side="right") - 1
        during = mine & (at >= 0) & (time < ends[at])
        if not during.any():
            faults = events["count"][mine & (kind == Kind.GPU_FAULT_GROUP)]
            return len(faults) >= LEAST_ARRIVALS
        mine = during
    return not came_in_order(events["address"][mine] // LARGE_PAGE)


def declare(launches: Sequence[Launched], arrays: Sequence[Lifetime], random: set[str]) -> Declared:
    """Return what launches access, in bins of some launches each."""
    if not launches:
        return Declared()
    firsts, each, edges = _bins(launches)
    sizes: dict[str, int] = {}
    for life in arrays:
        sizes[life.name] = max(life.nbytes, sizes.get(life.name, 0))
    sums = {name: np.zeros(len(firsts)) for name in sizes}
    found = Declared()
    for at, launch in enumerate(launches):
        for name, written in launch.arrays.items():
            # Another array of that name may be larger.
            elements = launch.nbytes.get(name, sizes[name]) / ITEM
            count = max(float(launch.threads), elements) if name in random else elements
            sums[name][at // each] += count
            found.accesses.setdefault(name, [0.0, 0.0, 0.0])[written] += count
    found.maps = tuple(
        _map(name, sizes[name], edges, sums[name]) for name in sizes if name in found.accesses
    )
    found.gathered = [name for name in found.accesses if name in random]
    found.phases = _phases([launch.kernel for launch in firsts], edges)
    return found


def over_launches(page: PageMap, launches: Sequence[Launched]) -> PageMap:
    """Return a map of traced accesses with each bin divided among the launches that used it."""
    # Otherwise a replay would take several passes within one bin for a single pass.
    mine = [(at, launch) for at, launch in enumerate(launches) if page.array in launch.arrays]
    if not mine:
        return page
    _, each, edges = _bins(launches)
    columns = np.array([at // each for at, _ in mine])
    begins = np.array([launch.start_ns for _, launch in mine])
    ends = np.array([max(launch.end_ns, launch.start_ns + 1) for _, launch in mine])
    counts = np.zeros((len(page.counts), len(edges) - 1))
    for traced in np.flatnonzero(page.counts.any(axis=0)).tolist():
        low, high = page.edges[traced : traced + 2].tolist()
        shares = np.maximum(0, np.minimum(ends, high) - np.maximum(begins, low))
        if not shares.any():  # clocks differ a little
            shares[np.argmin(np.abs(begins - low))] = 1
        some, where = np.unique(columns[shares > 0], return_inverse=True)
        weights = np.bincount(where, shares[shares > 0]) / shares.sum()
        counts[:, some] += np.outer(page.counts[:, traced], weights)
    whole = np.diff(np.rint(np.cumsum(counts, axis=1)), prepend=0)
    whole = np.minimum(whole, np.iinfo(np.uint32).max)
    return replace(page, edges=edges, counts=whole.astype(np.uint32))


def _bins(launches: Sequence[Launched]) -> tuple[Sequence[Launched], int, NDArray[np.int64]]:
    """Return the first launch of each bin, the number of launches in a bin, and the edges."""
    each = -(-len(launches) // BINS)
    firsts = launches[::each]
    edges = np.array([*(one.start_ns for one in firsts), launches[-1].end_ns + 1], np.int64)
    order = np.arange(len(edges))
    return firsts, each, np.maximum.accumulate(edges - order) + order


def _map(name: str, nbytes: int, edges: NDArray[np.int64], counts: NDArray[np.float64]) -> PageMap:
    """Return a map in which the rows of an array have their shares of the counts."""
    shift = shift_of(nbytes)
    bounds = np.minimum(np.arange(0, nbytes + (1 << shift), 1 << shift), nbytes)
    shares = np.diff(bounds) / nbytes
    return page_map(name, shift, edges, np.outer(shares[shares > 0], counts))


def _phases(kernels: Sequence[str], edges: NDArray[np.int64]) -> tuple[PhaseSpan, ...]:
    """Return a span for bins of one kernel that follow each other."""
    cuts = [0, *(n for n in range(1, len(kernels)) if kernels[n] != kernels[n - 1]), len(kernels)]
    return tuple(
        PhaseSpan(
            phase=kernels[first], level=-1, iteration=-1,
            start_ns=int(edges[first]), end_ns=int(edges[end]),
        )
        for first, end in pairwise(cuts)
    )  # fmt: skip
