"""A recorded program whose level 0 exceeds the device: vertex blocks migrate in and out.

The engine's block cache decides which; its transfers here record steps instead of moving bytes. A
sub-round visits the blocks that have vertices in it, every second time in reverse order;
aggregation visits every block once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.rules import SUB_ROUNDS, prunes
from louvain_um.placement.layout import HELD_BLOCKS
from louvain_um.placement.machine.profiles import rate
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.migration.block_cache import ArcArray, BlockCache, Mode
from louvain_um.placement.model.forecast import STEP_SECONDS
from louvain_um.profiling.access.counting import SWEEP_END_STEPS, blocks_for
from louvain_um.profiling.simulator.driver.constants import BIG_PAGES, PAGE_BYTES
from louvain_um.profiling.simulator.touches import Access, Touches, concatenate_touches
from louvain_um.profiling.simulator.trace import Launch, Prefetch, Step, Trace

ARRAY_STRIDE: Final = 1 << 40
"""Address distance between two arrays of arcs."""

PAGES_PER_REGION: Final = 4
"""Pages of a 64 KiB region that fault in one batch when a range is touched: a block of threads
touches a region, two pages per warp. Measured: 4.0 faults a region in a batch of 219
(LFR 22, 8,259 batches, H200)."""

IN_FLIGHT: Final = 1056
"""Such regions touched concurrently: 132 processors with 8 blocks of 256 threads each."""

MERGING: Final = rate("merging")
"""Barriers of merging a block's rows with those of earlier blocks, by those of aggregating it."""


def in_vertex_blocks(
    trace: Trace, placements: Mapping[str, Any], capacity: int, mode: Mode
) -> tuple[Trace, dict[str, Any]]:
    """Return a recording as it runs with `capacity` bytes for level 0's arcs."""
    writer = _BlockReplay(trace, capacity, mode)
    for step in trace.steps:
        writer.add(step)
    in_blocks = {
        # Given as ranges, an array has an arena of its own, at whose start its blocks begin.
        array.name: ((array.pages, str(placements[array.name])),)
        for array in trace.arrays
        if array.holds_input_arcs
    }
    return replace(trace, steps=tuple(writer.steps)), {**placements, **in_blocks}


class _BlockReplay:
    """Records the program's steps block by block; the `Transfers` of `BlockCache`."""

    def __init__(self, trace: Trace, capacity: int, mode: Mode) -> None:
        self.trace = trace
        self.steps: list[Step] = []
        self.arcs = [n for n, array in enumerate(trace.arrays) if array.holds_input_arcs]
        self.numbers = {(array.role, array.level): n for n, array in enumerate(trace.arrays)}
        widths = [trace.arrays[n].itemsize for n in self.arcs]
        count = min(trace.arrays[n].nbytes // trace.arrays[n].itemsize for n in self.arcs)
        step = max(1, capacity // HELD_BLOCKS // sum(widths))
        cuts = np.append(np.arange(0, count, step), count).astype(np.int64)
        held = zip(self.arcs, widths, strict=True)
        arrays = [ArcArray(n * ARRAY_STRIDE, width) for n, width in held]
        self.edges = {n: cuts * w // PAGE_BYTES for n, w in zip(self.arcs, widths, strict=True)}
        for n in self.arcs:
            self.edges[n][-1] = trace.arrays[n].pages
        self.cache = BlockCache(
            arrays, cuts, capacity, mode, 0, touch=self.touch, transfers=self
        )  # fmt: skip
        self.blocks = len(cuts) - 1
        self.forward = True
        self.current = Launch(touches=concatenate_touches([]))
        self.chain = 0
        self.move_phases = 0
        self.aggregated = False

    def add(self, step: Step) -> None:
        """Add a step of the recording, block by block where it accesses level 0's arcs."""
        if isinstance(step, Launch) and (step.kernel, step.level) == ("begin", 0):
            self.move_phases += 1
        if not isinstance(step, Launch) or step.level > 0 or not self._reads(step.touches).any():
            if isinstance(step, Launch) and step.phase == "move":
                self.aggregated = False
            self.steps.append(step)
            return
        self.current, self.chain = step, 0
        if step.kernel == "move":
            self.chain = max(0, step.chain - SWEEP_END_STEPS) // SUB_ROUNDS
            self._sweep(step.touches)
        elif step.kernel == "sum_arcs":
            if not self.aggregated:
                self.chain = round((1 + MERGING) * step.chain)
                waits = self._waits(step.touches)
                for block in range(self.blocks):
                    self._work(block, [self._whole(block), waits])
            self.aggregated = True
            self._launch(self._without(step.touches), step)
        else:
            passes = 1 + SUB_ROUNDS if step.kernel == "refine" else 1
            rest = self._without(step.touches)
            for number in range(passes):
                for block in self._order(range(self.blocks)):
                    self._work(block, [self._whole(block)] if number < 2 else [])
            self._launch(rest, self.current)

    def _sweep(self, touches: Touches) -> None:
        """Add a sweep by sub-rounds; moved vertices activate others during the next one."""
        head, rounds = _sub_rounds(touches, self.numbers["queue", 0], self.numbers["proposed", 0])
        self._launch(head, replace(self.current, chain=SWEEP_END_STEPS))
        # A level's first sweeps keep every vertex active. The pass after the last sub-round then
        # has no blocks, but reverses the direction like any other.
        waking = prunes(self.move_phases == 1, self.current.iteration)
        left, there = concatenate_touches([]), set[int]()
        for decided, moved in rounds:
            here = self._blocks(decided)
            self._pass(here | there, [decided, left])
            left, there = moved, here if waking else set()
        self._pass(there, [left])

    def _pass(self, blocks: Iterable[int], parts: list[Touches]) -> None:
        """Visit some blocks; other arrays are accessed with the first."""
        rest = [self._without(part) for part in parts]
        for block in self._order(sorted(blocks)):
            self._work(block, [self._within(part, block) for part in parts] + rest)
            rest = []
        self._launch(
            concatenate_touches(rest), replace(self.current, chain=self.chain, host_seconds=0.0)
        )

    def _order(self, blocks: Iterable[int]) -> Iterator[int]:
        """Yield blocks, every second time in reverse order."""
        path = list(blocks)
        yield from path if self.forward else path[::-1]
        self.forward = not self.forward

    def _work(self, block: int, parts: list[Touches]) -> None:
        """Bring a block to the device, then add a kernel's accesses to it."""
        self.cache.need(block)
        each = replace(self.current, chain=self.chain, host_seconds=STEP_SECONDS)
        self._launch(concatenate_touches(parts), each)

    def _launch(self, touches: Touches, like: Launch) -> None:
        if len(touches):
            self.steps.append(replace(like, touches=touches))

    def _waits(self, t: Touches) -> Touches:
        """Return the waits of aggregating one block and merging its rows with earlier ones."""
        arrays = self.trace.arrays
        sizes = {key: arrays[n].nbytes // arrays[n].itemsize for key, n in self.numbers.items()}
        items = sizes["offsets", 0] + sizes["targets", 0]
        # Each of the two sides merged has at most as many arcs as the next level.
        merged = MERGING * blocks_for(2 * sizes.get(("targets", 1), 0))
        share = (blocks_for(items // self.blocks) + merged) / blocks_for(items)
        mine = t.select(t.way >= Access.CONTENDED)
        return replace(mine, amount=np.rint(share * mine.amount).astype(np.int64))

    def _reads(self, t: Touches) -> NDArray[np.bool_]:
        return np.isin(t.array, self.arcs)

    def _without(self, t: Touches) -> Touches:
        """Return the touches of arrays other than level 0's arcs."""
        return t.select(~self._reads(t))

    def _blocks(self, t: Touches) -> set[int]:
        """Return the blocks that touches fall into."""
        first = self.arcs[0]
        edges, mine = self.edges[first], t.select(t.array == first)
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
            mine = t.select(t.array == number)
            low, high = self.edges[number][block : block + 2]
            first = np.maximum(mine.first, low)
            length = np.minimum(mine.first + mine.length, high) - first
            cut = Touches(mine.array, first, length, mine.way, mine.amount)
            parts.append(cut.select(length > 0))
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
        """Add a kernel that touches every page of a range."""
        number, first, pages = self._place(address, nbytes)
        touched = concatenate_touches(
            _side_by_side(number, begin, min(IN_FLIGHT * BIG_PAGES, first + pages - begin))
            for begin in range(first, first + pages, IN_FLIGHT * BIG_PAGES)
        )
        self.steps.append(
            replace(self.current, touches=touched, kernel="touch_pages", chain=0, host_seconds=0.0)
        )

    def send(self, address: int, nbytes: int, to: int) -> None:
        """Add a prefetch."""
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
        """Do nothing: recorded steps are sequential."""

    def _place(self, address: int, nbytes: int) -> tuple[int, int, int]:
        """Return array, first page and pages of a range."""
        number, first = address // ARRAY_STRIDE, address % ARRAY_STRIDE // PAGE_BYTES
        return number, first, min(nbytes // PAGE_BYTES, self.trace.arrays[number].pages - first)


def _side_by_side(number: int, first: int, pages: int) -> Touches:
    """Return one touch per page, ordered by a few pages of every region at a time."""
    regions = np.arange(first, first + pages, BIG_PAGES)
    begins = (regions + np.arange(0, BIG_PAGES, PAGES_PER_REGION)[:, None]).ravel()
    begins = begins[begins < first + pages]
    length = np.minimum(PAGES_PER_REGION, first + pages - begins)
    return Touches.runs(number, begins, length, Access.READ, 32)


def _sub_rounds(
    t: Touches, queue: int, proposed: int
) -> tuple[Touches, list[tuple[Touches, Touches]]]:
    """Return a sweep's touches before its sub-rounds, and those of deciding and moving in each."""
    reading = t.way == Access.READ
    deciding, moving = (t.array == queue) & reading, (t.array == proposed) & reading
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
            (t.select((row >= start) & (row < middle)), t.select((row >= middle) & (row < end)))
        )
    head = int(starts[0]) if len(starts) else len(t)
    return t.select(row < head), found
