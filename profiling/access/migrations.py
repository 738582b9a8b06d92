"""A trace of what another profiler saw: kernels, and pages that came and went around them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import LouvainUmError
from louvain_um.placement.machine.machine import MOST_GPUS
from louvain_um.placement.model.cost import HIDDEN
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.simulator import (
    Access,
    Array,
    HostTouches,
    Launch,
    Prefetch,
    Touches,
    Trace,
    concatenate_touches,
)
from louvain_um.profiling.simulator.addresses import GAP_PAGES
from louvain_um.profiling.simulator.driver.constants import BIG_PAGES, BLOCK_PAGES, PAGE_BYTES
from louvain_um.profiling.simulator.trace import Step

MOST_STEPS: Final = 100_000
"""Launches that differ from the one before them."""

LEAST_ARRIVALS: Final = 16
"""Pages of 64 KiB of an array from which their order says how it was accessed."""

IN_ORDER: Final = 0.5
"""Rank correlation of time and address from which pages came in order."""

FOLLOWING: Final = 2 / 3
"""The same of the pages that came after the one below them: it is large, too, for an array that
many threads go through side by side, of which some fall behind."""

I64 = NDArray[np.int64]


def trace_of_events(session: SessionData, path: str | Path) -> Trace:
    """Return kernels and migrations of a session as a trace; each range of pages is an array."""
    # What was on the GPU was accessed unseen. So each launch of a kernel accesses, once, what any
    # launch of that name brought there: in order, or at random if its pages came out of order. A
    # prefetch by the program is kept, and its pages belong to the next kernel. The host touches
    # what faulted there, or migrated back without being evicted. GPUs are numbered anew, from 0.
    seen = _Seen(session)
    refuse_more_gpus(str(path), seen.gpus)
    if not (seen.came & (seen.at < len(seen.kernels))).any():
        raise LouvainUmError(
            f"{path}: holds no kernel that brought managed memory to the GPU, so no accesses are "
            "known; record with nsys profile --cuda-um-gpu-page-faults true"
        )
    starts = seen.starts()
    if len(starts) > MOST_STEPS:
        raise LouvainUmError(
            f"{path}: has {len(starts):,} launches that differ, more than {MOST_STEPS:,}; record a "
            "part of the run with nsys profile --duration"
        )
    return Trace(seen.arrays(), tuple(seen.steps(starts)), hidden=HIDDEN)


def refuse_more_gpus(what: str, gpus: int) -> None:
    """Raise `LouvainUmError` if a recording is of more GPUs than a simulation has."""
    if gpus > MOST_GPUS:
        raise LouvainUmError(
            f"{what}: has events of {gpus} GPUs, and simulations have up to {MOST_GPUS}; record a "
            "run on fewer GPUs, chosen with CUDA_VISIBLE_DEVICES"
        )


class _Seen:
    """Kernels by their beginning, and events of managed memory by time, each with its kernel."""

    def __init__(self, session: SessionData) -> None:
        events = session.events
        kind, cause, time = (events[name] for name in ("kind", "cause", "time"))
        self.labels = events.kernels
        kernels = np.flatnonzero(kind == Kind.KERNEL)
        kernels = kernels[np.argsort(time[kernels], kind="stable")]
        self.kernels, self.seconds = events["kernel"][kernels], events["duration"][kernels] / 1e9
        arrivals = (Kind.HTOD, Kind.DTOD, Kind.GPU_FAULT_GROUP)
        managed = np.isin(kind, (*arrivals, Kind.DTOH, Kind.CPU_FAULT))
        rows = np.flatnonzero(managed & (events["address"] != 0) & (cause != Cause.EVICTION))
        rows = rows[np.argsort(time[rows], kind="stable")]
        self.kind, self.asked = kind[rows], cause[rows] == Cause.USER
        self.came = np.isin(self.kind, arrivals)
        self.first = (events["address"][rows] // PAGE_BYTES).astype(np.int64)
        # A group's faults lie in one block, the first at its address.
        faults = np.minimum(events["count"][rows], BLOCK_PAGES - self.first % BLOCK_PAGES)
        moved = -(-events["bytes"][rows] // PAGE_BYTES)
        self.pages = np.maximum(1, np.where(self.kind == Kind.GPU_FAULT_GROUP, faults, moved))
        on_gpu = np.concatenate([events["device"][kernels], events["device"][rows[self.came]]])
        numbers = np.unique(on_gpu)
        self.gpus = len(numbers)
        most = max(0, self.gpus - 1)
        self.device, self.gpu = (
            np.minimum(np.searchsorted(numbers, events["device"][each]), most)
            for each in (kernels, rows)
        )
        ended = np.maximum.accumulate(time[kernels] + events["duration"][kernels])
        self.at = np.searchsorted(ended, time[rows], side="right")
        for number in range(self.gpus) if most else ():  # kernels of several GPUs overlap
            mine, launched = self.came & (self.gpu == number), np.flatnonzero(self.device == number)
            ended = np.maximum.accumulate((time + events["duration"])[kernels[launched]])
            after = np.searchsorted(ended, time[rows[mine]], side="right")
            self.at[mine] = np.append(launched, len(kernels))[after]
        self.begins, self.ends = _merged(self.first, self.pages, GAP_PAGES)
        self.owner = np.searchsorted(self.begins, self.first, side="right") - 1
        self.first -= self.begins[self.owner]

    def arrays(self) -> tuple[Array, ...]:
        """Return ranges of pages; what never came from the host begins nowhere."""
        held = np.unique(self.owner[~np.isin(self.kind, (Kind.GPU_FAULT_GROUP, Kind.DTOD))])
        return tuple(
            Array(
                name=f"range {number}", group=f"range {number}", nbytes=int(pages) * PAGE_BYTES,
                starts="host" if number in held else "nowhere",
            )
            for number, pages in enumerate(self.ends - self.begins)
        )  # fmt: skip

    def starts(self) -> list[int]:
        """Return the launches that differ from the one before, or around which bytes moved."""
        new = np.ones(len(self.kernels), np.bool_)
        new[1:] = self.kernels[1:] != self.kernels[:-1]
        new[1:] |= self.device[1:] != self.device[:-1]
        moved = np.unique(self.at)
        for each in (moved, moved + 1):
            new[each[each < len(new)]] = True
        return np.flatnonzero(new).tolist()

    def steps(self, starts: list[int]) -> Iterator[Step]:
        """Yield launches, each after what the host touched and prefetched before its end."""
        edges = [*starts, len(self.kernels)]
        order = np.argsort(self.at, kind="stable")
        cuts = np.searchsorted(self.at[order], edges)
        both = list(zip(self.kernels.tolist(), self.device.tolist(), strict=True))
        known = {each: self._launch(*each) for each in sorted(set(both))}
        for (begin, end), (low, high) in zip(pairwise(edges), pairwise(cuts), strict=True):
            yield from self._between(order[low:high])
            yield known[both[begin]](end - begin)
        yield from self._between(order[cuts[-1] :])

    def _launch(self, name: int, device: int) -> Any:
        """Return what makes a launch of a kernel on a GPU, given how often it is repeated."""
        mine = self.came & (np.append(self.kernels, -2)[self.at] == name)
        mine &= np.append(self.device, 0)[self.at] == device
        touches = concatenate_touches(
            [self._brought(np.flatnonzero(mine & (self.owner == number)), number)
             for number in np.unique(self.owner[mine]).tolist()]
        )  # fmt: skip
        calm = (self.kernels == name) & (self.device == device)
        calm[self.at[self.came & (self.at < len(calm))]] = False
        seconds = float(self.seconds[calm].min()) if calm.any() else None
        label = self.labels[name] if 0 <= name < len(self.labels) else "kernel"
        return lambda repeats: Launch(
            touches=touches, kernel=label, phase=label, compute_seconds=seconds,
            repeats=float(repeats), device=device,
        )  # fmt: skip

    def _brought(self, rows: I64, number: int) -> Touches:
        """Return what a kernel accesses of an array: pages that came, each once."""
        begins, ends = _merged(self.first[rows], self.pages[rows], 0)
        if came_in_order(self.first[rows] // BIG_PAGES):
            return Touches.runs(number, begins, ends - begins)
        each = (ends - begins) * (PAGE_BYTES // 4)  # every element of four bytes
        runs = [
            Touches.at_random(number, begin, pages, Access.GATHER, many)
            for begin, pages, many in zip(begins, ends - begins, each, strict=True)
        ]
        return concatenate_touches(runs)

    def _between(self, rows: I64) -> Iterator[Step]:
        """Yield the host's touches and the prefetches among some events, in order."""
        host = (~self.came & ~self.asked)[rows]
        for part in np.split(rows, np.flatnonzero(np.diff(host)) + 1):
            if not len(part):
                continue
            columns = self.owner[part], self.first[part], self.pages[part]
            if not self.came[part[0]] and not self.asked[part[0]]:
                yield HostTouches(touches=Touches.runs(*columns))
            for row in part[self.asked[part]].tolist():
                yield Prefetch(
                    array=int(self.owner[row]), to="gpu" if self.came[row] else "host",
                    first=int(self.first[row]), pages=int(self.pages[row]),
                    device=int(self.gpu[row]) if self.came[row] else 0,
                )  # fmt: skip


def came_in_order(pages: NDArray[Any]) -> bool:
    """Return whether pages of 64 KiB came first in ascending order, by and large, or are few."""
    arrivals = np.unique(pages, return_index=True)[1]
    if len(arrivals) < LEAST_ARRIVALS:
        return True
    correlation = np.corrcoef(arrivals, np.arange(len(arrivals)))[0, 1]
    return bool(correlation >= IN_ORDER or (np.diff(arrivals) > 0).mean() >= FOLLOWING)


def _merged(first: I64, pages: I64, gap: int) -> tuple[I64, I64]:
    """Return begins and ends of runs of pages whose distance is less than a gap."""
    order = np.argsort(first, kind="stable")
    begins, ends = first[order], np.maximum.accumulate(first[order] + pages[order])
    cuts = np.flatnonzero(begins[1:] > ends[:-1] + gap)
    return np.append(begins[:1], begins[cuts + 1]), np.append(ends[cuts], ends[-1:])
