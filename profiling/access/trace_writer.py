"""The program that a recorder writes: arrays allocated and freed, and page accesses of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.ledger import Group
from louvain_um.errors import LouvainUmError
from louvain_um.profiling.access.counting import (
    Counters,
    LevelArcs,
    Members,
    Widths,
    emit,
    sum_rows,
)
from louvain_um.profiling.simulator.driver.constants import PAGE_BYTES
from louvain_um.profiling.simulator.touches import Access, Touches, concatenate_touches
from louvain_um.profiling.simulator.trace import (
    Allocate,
    Array,
    Free,
    HostTouches,
    Launch,
    Step,
    Trace,
)

I64 = NDArray[np.int64]


class TraceWriter:
    """A program's arrays and steps in order of time; `trace` is what the simulator takes."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.numbers: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.alive: set[str] = set()
        self.steps: list[Step] = []

    def given(self, name: str, group: Group, itemsize: int, size: int) -> None:
        """Add an array that the host wrote before the program began."""
        self._know(name, group, itemsize, size, "host")
        self.alive.add(name)

    def begin(self, name: str, group: Group, itemsize: int, size: int) -> None:
        """Allocate an array, unless it exists or is empty."""
        if name in self.alive or size == 0:
            return
        self._know(name, group, itemsize, size, "nowhere")
        self.alive.add(name)
        self.steps.append(Allocate(array=self.numbers[name]))

    def end(self, *names: str) -> None:
        """Free those of some arrays that exist."""
        for name in names:
            if name in self.alive:
                self.alive.remove(name)
                self.steps.append(Free(array=self.numbers[name]))

    def _know(
        self, name: str, group: Group, itemsize: int, size: int, starts: Literal["host", "nowhere"]
    ) -> None:
        nbytes = itemsize * size
        self.sizes[name] = nbytes
        known = self.arrays.get(name)
        if known is None:
            self.numbers[name] = len(self.arrays)
            self.arrays[name] = Array(
                name=name, group=group, nbytes=nbytes, starts=starts, itemsize=itemsize
            )
        elif known.nbytes < nbytes:
            self.arrays[name] = replace(known, nbytes=nbytes)

    def whole(self, name: str, way: Access, nbytes: int | None = None) -> Touches:
        """Return touches of the first bytes of an array, by default all, one page after another."""
        size = self.sizes.get(name, 0) if nbytes is None else nbytes
        if not size or name not in self.alive:
            return concatenate_touches([])
        last = (size - 1) // PAGE_BYTES
        rows = [(0, last, PAGE_BYTES)] if last else []
        rows.append((last, 1, size - last * PAGE_BYTES))
        first, length, amount = zip(*rows, strict=True)
        return Touches.runs(self.numbers[name], first, length, way, amount)

    def launch(
        self,
        kernel: str,
        touches: Sequence[Touches],
        phase: str,
        level: int,
        iteration: int = -1,
        *,
        chain: int = 0,
        host_seconds: float = 0.0,
    ) -> None:
        """Add a kernel and its touches, in order."""
        whole = concatenate_touches(touches)
        if len(whole):
            self.steps.append(
                Launch(touches=whole, kernel=kernel, phase=phase, level=level,
                       iteration=iteration, chain=chain, host_seconds=host_seconds)
            )  # fmt: skip

    def on_host(self, *touches: Touches) -> None:
        """Add touches of the host."""
        whole = concatenate_touches(touches)
        if len(whole):
            self.steps.append(HostTouches(touches=whole))

    def trace(self, hidden: float = 1.0, about: Mapping[str, Any] | None = None) -> Trace:
        """Return the program so far; `Trace` documents the arguments."""
        return Trace(tuple(self.arrays.values()), tuple(self.steps), hidden, about)


class Slots:
    """Counters for a step: one for each page of each slot; `take` turns them into touches."""

    def __init__(self, program: TraceWriter, slots: Sequence[tuple[str, Access]]) -> None:
        self.names = [name for name, _ in slots]
        pages = [max(1, -(-program.sizes.get(name, 0) // PAGE_BYTES)) for name in self.names]
        bases = np.cumsum([0, *pages])[:-1].astype(np.int64)
        total = sum(pages)
        self.counters = Counters(
            counts=np.zeros(total, np.int64),
            bases=bases,
            low=np.full(len(slots), total, np.int64),
            high=np.full(len(slots), -1, np.int64),
            last=np.array(pages, np.uint64) - np.uint64(1),
        )
        self.arrays = np.array(
            [program.numbers.get(name, -1) if name in program.alive else -1 for name, _ in slots],
            np.int16,
        )
        self.ways = np.array([int(way) for _, way in slots], np.uint8)
        self.out = np.empty((2 * total, 4), np.int64)

    def take(self) -> Touches:
        """Return the counts since the last call as touches."""
        last = self.counters.last.astype(np.int64)
        beyond = np.flatnonzero((self.counters.low < 0) | (self.counters.high > last))
        if len(beyond):
            raise LouvainUmError(
                f"recording accessed array {self.names[beyond[0]]!r} beyond its end, or there is "
                "no such array; report this with the graph"
            )
        rows = emit(self.counters, self.out)
        slot = self.out[:rows, 0]
        kept = self.arrays[slot] >= 0
        slot, first, length, amount = (column[kept] for column in self.out[:rows].T)
        columns: tuple[Any, ...] = (first.copy(), length.copy(), self.ways[slot], amount.copy())
        return Touches(self.arrays[slot], *columns)


def cut_ranges(weights: I64, begin: int, end: int, most: int) -> list[tuple[int, int]]:
    """Cut items begin … end into ranges of about `most` weight, with one item at least."""
    cuts = [begin]
    while cuts[-1] < end:
        reached = int(np.searchsorted(weights, weights[cuts[-1]] + most, side="right")) - 1
        cuts.append(min(end, max(reached, cuts[-1] + 1)))
    return list(pairwise(cuts))


def sum_row_touches(
    slots: Slots,
    widths: Widths,
    rows: LevelArcs,
    groups: Members,
    order: Any,
    workers: int,
    at_once: int,
    keys: tuple[int, int] = (0, 0),
) -> list[Touches]:
    """Return the accesses of summing the arcs of communities in an order."""
    workers = max(1, min(workers, len(order)))
    quota = max(1, at_once // workers)
    flight = np.full(2 * workers + 1, -1, np.int64)
    flight[-1] = 0
    touched = []
    busy = len(order) > 0
    while busy:
        busy = sum_rows(slots.counters, widths, rows, groups, order, flight, quota, keys)
        touched.append(slots.take())
    return touched


def arcs_before(offsets: Any, vertices: Any) -> Any:
    """Return the arcs of all vertices of a list before each, and of all."""
    # Not `[vertices]`: NumPy crashes where it gets no memory to widen indices of 32 bits.
    degrees = np.diff(offsets).take(vertices)
    return np.concatenate([[0], np.cumsum(degrees)])
