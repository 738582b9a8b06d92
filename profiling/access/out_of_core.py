"""What a recorded program does where its level 0 exceeds the device: blocks of arcs come and go.

The engine's own residency decides which; here it is handed a mover that writes steps down instead
of moving anything. A sub-round goes over the blocks that have vertices in it, every second time
backwards; aggregation goes over all once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.rules import SUB_ROUNDS, prunes
from louvain_um.placement.layout import HELD_BLOCKS
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.lru_residency import Mode, Residency, Span
from louvain_um.placement.model.forecast import STEP_SECONDS
from louvain_um.profiling.access.waits import ENDS, blocks_for
from louvain_um.profiling.simulator.driver.constants import BIG_PAGES, PAGE_BYTES
from louvain_um.profiling.simulator.touches import Access, Touches, concatenate_touches
from louvain_um.profiling.simulator.trace import Launch, Prefetch, Step, Trace

APART: Final = 1 << 40
"""Addresses between two arrays of arcs."""

AT_ONCE: Final = 4
"""Pages of a 64 KiB region that fault in one batch where a range is touched: a block of threads
touches a region, two pages a warp. Measured: 4.0 faults a region in a batch of 219
(LFR 22, 8,259 batches, H200)."""

IN_FLIGHT: Final = 1056
"""Such regions touched side by side: 132 processors with 8 blocks of 256 threads each."""


MERGING: Final = 0.7
"""Barriers of merging a block's rows with those of the blocks before, by those of adding it up:
`ranges.py` runs two of five kernels less."""


def in_pages(
    trace: Trace, placements: Mapping[str, Any], capacity: int, mode: Mode
) -> tuple[Trace, dict[str, Any]]:
    """Return a recording as it runs with `capacity` bytes for level 0's arcs, and its placements.

    Parameters
    ----------
    trace : Trace
        Of this program, by `louvain_um.profiling.access.recorder.record`.
    placements : mapping of str to placement
        By name of an array.
    capacity : int
        Bytes of level 0's targets and weights that may be on the device.
    mode : {"fault", "prefetch"}
        How blocks come.
    """
    writer = _Writer(trace, capacity, mode)
    for step in trace.steps:
        writer.add(step)
    own = {
        # An arena of their own, as they have it: blocks are counted from where they begin.
        array.name: ((array.pages, str(placements[array.name])),)
        for array in trace.arrays
        if array.holds_input_arcs
    }
    return replace(trace, steps=tuple(writer.steps)), {**placements, **own}


class _Writer:
    """Steps of the program, block by block; what `Residency` moves with (a `Mover`)."""

    def __init__(self, trace: Trace, capacity: int, mode: Mode) -> None:
        self.trace = trace
        self.steps: list[Step] = []
        self.arcs = [n for n, array in enumerate(trace.arrays) if array.holds_input_arcs]
        self.numbers = {(array.role, array.level): n for n, array in enumerate(trace.arrays)}
        widths = [trace.arrays[n].itemsize for n in self.arcs]
        count = min(trace.arrays[n].nbytes // trace.arrays[n].itemsize for n in self.arcs)
        step = max(1, capacity // HELD_BLOCKS // sum(widths))
        cuts = np.append(np.arange(0, count, step), count).astype(np.int64)
        spans = [Span(n * APART, width) for n, width in zip(self.arcs, widths, strict=True)]
        self.edges = {n: cuts * w // PAGE_BYTES for n, w in zip(self.arcs, widths, strict=True)}
        for n in self.arcs:
            self.edges[n][-1] = trace.arrays[n].pages
        self.residency = Residency(
            spans, cuts, capacity, mode, 0, touch=self.touch, mover=self
        )  # fmt: skip
        self.blocks = len(cuts) - 1
        self.forward = True
        self.now = Launch(touches=concatenate_touches([]))
        self.chain = 0
        self.begun = 0
        self.added = False

    def add(self, step: Step) -> None:
        """Write a step of the recording down."""
        if isinstance(step, Launch) and (step.kernel, step.level) == ("begin", 0):
            self.begun += 1
        if not isinstance(step, Launch) or step.level > 0 or not self._reads(step.touches).any():
            self.added = self.added and not (isinstance(step, Launch) and step.phase == "move")
            self.steps.append(step)
            return
        self.now, self.chain = step, 0
        if step.kernel == "move":
            self.chain = max(0, step.chain - ENDS) // SUB_ROUNDS
            self._sweep(step.touches)
        elif step.kernel == "sum_arcs":
            if not self.added:
                self.chain = round((1 + MERGING) * step.chain)
                waits = self._waits(step.touches)
                for block in range(self.blocks):
                    self._work(block, [self._whole(block), waits])
            self.added = True
            self._launch(self._without(step.touches), step)
        else:
            passes = 1 + SUB_ROUNDS if step.kernel == "refine" else 1
            rest = self._without(step.touches)
            for number in range(passes):
                for block in self._order(range(self.blocks)):
                    self._work(block, [self._whole(block)] if number < 2 else [])
            self._launch(rest, self.now)

    def _sweep(self, touches: Touches) -> None:
        """Write a sweep down, sub-round by sub-round; movers wake others in the next."""
        head, rounds = _sub_rounds(touches, self.numbers["queue", 0], self.numbers["proposed", 0])
        self._launch(head, replace(self.now, chain=ENDS))
        # A level's first sweeps keep every vertex active. The pass after the last sub-round then
        # has no blocks, but reverses the direction like any other.
        waking = prunes(self.begun == 1, self.now.iteration)
        left, there = concatenate_touches([]), set[int]()
        for decided, moved in rounds:
            here = self._blocks(decided)
            self._pass(here | there, [decided, left])
            left, there = moved, here if waking else set()
        self._pass(there, [left])

    def _pass(self, blocks: Iterable[int], parts: list[Touches]) -> None:
        """Go over some blocks; what is no arc is touched with the first."""
        rest = [self._without(part) for part in parts]
        for block in self._order(sorted(blocks)):
            self._work(block, [self._within(part, block) for part in parts] + rest)
            rest = []
        self._launch(
            concatenate_touches(rest), replace(self.now, chain=self.chain, host_seconds=0.0)
        )

    def _order(self, blocks: Iterable[int]) -> Iterator[int]:
        """Yield blocks, every second time backwards."""
        path = list(blocks)
        yield from path if self.forward else path[::-1]
        self.forward = not self.forward

    def _work(self, block: int, parts: list[Touches]) -> None:
        """Bring a block, then touch what a kernel touches of it."""
        self.residency.need(block)
        each = replace(self.now, chain=self.chain, host_seconds=STEP_SECONDS)
        self._launch(concatenate_touches(parts), each)

    def _launch(self, touches: Touches, like: Launch) -> None:
        if len(touches):
            self.steps.append(replace(like, touches=touches))

    def _waits(self, t: Touches) -> Touches:
        """Return what adding up one block waits for, and merging its rows with what was there."""
        arrays = self.trace.arrays
        sizes = {key: arrays[n].nbytes // arrays[n].itemsize for key, n in self.numbers.items()}
        items = sizes["offsets", 0] + sizes["targets", 0]
        # Two blocks' rows are as many as all arcs of the next level, at most, each.
        merged = MERGING * blocks_for(2 * sizes.get(("targets", 1), 0))
        share = (blocks_for(items // self.blocks) + merged) / blocks_for(items)
        mine = _rows(t, t.way >= Access.CONTENDED)
        return replace(mine, amount=np.rint(share * mine.amount).astype(np.int64))

    def _reads(self, t: Touches) -> NDArray[np.bool_]:
        return np.isin(t.array, self.arcs)

    def _without(self, t: Touches) -> Touches:
        """Return the touches of all that is no arc of level 0."""
        return _rows(t, ~self._reads(t))

    def _blocks(self, t: Touches) -> set[int]:
        """Return the blocks that touches fall into."""
        first = self.arcs[0]
        edges, mine = self.edges[first], _rows(t, t.array == first)
        low = np.searchsorted(edges, mine.first, side="right") - 1
        high = np.searchsorted(edges, mine.first + mine.length - 1, side="right") - 1
        found = np.zeros(self.blocks + 1, np.int64)
        np.add.at(found, low, 1)
        np.add.at(found, np.minimum(high, self.blocks - 1) + 1, -1)
        return set(np.flatnonzero(np.cumsum(found)[: self.blocks]).tolist())

    def _within(self, t: Touches, block: int) -> Touches:
        """Return the touches of a block's arcs."""
        parts = []
        for number in self.arcs:
            mine = _rows(t, t.array == number)
            low, high = self.edges[number][block : block + 2]
            first = np.maximum(mine.first, low)
            length = np.minimum(mine.first + mine.length, high) - first
            cut = Touches(mine.array, first, length, mine.way, mine.amount)
            parts.append(_rows(cut, length > 0))
        return concatenate_touches(parts)

    def _whole(self, block: int) -> Touches:
        """Return one reading of a block's arcs."""
        return concatenate_touches(
            Touches.runs(n, low, high - low, Access.READ)
            for n in self.arcs
            for low, high in [self.edges[n][block : block + 2]]
            if high > low
        )

    def touch(self, address: int, nbytes: int) -> None:
        """Write down that a kernel touches every page of a range."""
        number, first, pages = self._place(address, nbytes)
        touched = concatenate_touches(
            _side_by_side(number, begin, min(IN_FLIGHT * BIG_PAGES, first + pages - begin))
            for begin in range(first, first + pages, IN_FLIGHT * BIG_PAGES)
        )
        self.steps.append(
            replace(self.now, touches=touched, kernel="touch_pages", chain=0, host_seconds=0.0)
        )

    def send(self, address: int, nbytes: int, to: int) -> None:
        """Write a prefetch down."""
        number, first, pages = self._place(address, nbytes)
        self.steps.append(
            Prefetch(
                array=number,
                to="host" if to == cuda_calls.HOST else "gpu",
                first=first,
                pages=pages,
            )
        )

    def arrive(self) -> None:
        """Do nothing: here steps follow each other."""

    def _place(self, address: int, nbytes: int) -> tuple[int, int, int]:
        """Return array, first page and pages of a range."""
        number, first = address // APART, address % APART // PAGE_BYTES
        return number, first, min(nbytes // PAGE_BYTES, self.trace.arrays[number].pages - first)


def _rows(t: Touches, kept: NDArray[np.bool_]) -> Touches:
    return Touches(t.array[kept], t.first[kept], t.length[kept], t.way[kept], t.amount[kept])


def _side_by_side(number: int, first: int, pages: int) -> Touches:
    """Return one touch of each page, a few pages of every region first."""
    regions = np.arange(first, first + pages, BIG_PAGES)
    begins = (regions + np.arange(0, BIG_PAGES, AT_ONCE)[:, None]).ravel()
    begins = begins[begins < first + pages]
    length = np.minimum(AT_ONCE, first + pages - begins)
    return Touches.runs(number, begins, length, Access.READ, 32)


def _sub_rounds(
    t: Touches, queue: int, goals: int
) -> tuple[Touches, list[tuple[Touches, Touches]]]:
    """Return what a sweep touches first, and of each sub-round what deciding and moving do."""
    reading = t.way == Access.READ
    deciding, moving = (t.array == queue) & reading, (t.array == goals) & reading
    at = np.flatnonzero(deciding | moving)
    opens = deciding[at] & np.insert(moving[at][:-1], 0, True)
    starts = at[opens]
    ends = np.append(starts[1:], len(t))
    row = np.arange(len(t))
    found = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        moves = np.flatnonzero(moving[start:end])
        middle = start + int(moves[0]) if len(moves) else end
        found.append(
            (_rows(t, (row >= start) & (row < middle)), _rows(t, (row >= middle) & (row < end)))
        )
    head = int(starts[0]) if len(starts) else len(t)
    return _rows(t, row < head), found
