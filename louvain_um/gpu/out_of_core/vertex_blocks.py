"""Vertex blocks: ranges of vertices whose arcs are on the device at the same time.

Moving and refinement go block by block where a level's arcs are not all there; the steps are those
of `louvain_um.gpu.move.move` and `louvain_um.gpu.refine.refine`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.core.hierarchy import MoveStats
from louvain_um.gpu.aggregate.coarse_rows import CoarseRows, copy
from louvain_um.gpu.aggregate.kernel_arguments import Aggregation, new_rows, room_after
from louvain_um.gpu.aggregate.limits import AggregationLimits, weights_for
from louvain_um.gpu.level import DeviceRun, GpuLevel, or_null
from louvain_um.gpu.move.arguments import CONTROL, move_rule, new_control
from louvain_um.gpu.move.hub_tables import HubTables
from louvain_um.gpu.move.move import EndedSweep, MoveArrays, move_arrays
from louvain_um.gpu.refine.refine import REFINE_ARRAYS, start_refinement
from louvain_um.gpu.relabel.relabel import identity
from louvain_um.gpu.runtime.launch import Launcher, Struct, layout, pointers
from louvain_um.placement.hardware import PAGE, WARPS
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration.block_cache import BlockCache
from louvain_um.placement.model.cost import FACTORS, tune

TRIAL: Final = 8 << 20
"""Bytes touched to measure one number of pages per warp."""


class PageToucher:
    """Touches every page of a range."""

    def __init__(self, memory: RunMemory, factor: int) -> None:
        self.sink = memory.empty("touched", "scratch", 1, np.uint32)
        self.factor = factor
        self.tuned = False

    def __call__(self, address: int, nbytes: int) -> None:
        """Touch a range of managed memory."""
        left = nbytes
        if not self.tuned and nbytes >= len(FACTORS) * TRIAL:
            self.tuned = True

            def measure(factor: int) -> float:
                nonlocal left
                cuda_calls.synchronize()
                since = time.perf_counter()
                self.touch(address + nbytes - left, TRIAL, factor)
                cuda_calls.synchronize()
                left -= TRIAL
                return time.perf_counter() - since

            self.factor = tune(measure, self.factor)
        self.touch(address + nbytes - left, left, self.factor)

    def touch(self, address: int, nbytes: int, factor: int) -> None:
        """Touch a range with `factor` pages per warp."""
        if nbytes <= 0:
            return
        pages = -(-nbytes // PAGE)
        warps = -(-pages // factor)
        launch = Launcher("vertex_blocks", "touch_pages", most=-(-warps // WARPS))
        launch(
            np.uint64(address), np.int64(0), np.int64(nbytes), np.uint32(PAGE), np.uint32(factor),
            self.sink,
        )  # fmt: skip


@dataclass(slots=True)
class VertexBlocks:
    """The vertex blocks of a level."""

    cache: BlockCache
    touch: PageToucher
    begins: Any
    bounds: list[int]
    forward: bool = True

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.bounds) - 1

    def order(self, wanted: list[int]) -> Iterator[tuple[int, int | None]]:
        """Yield blocks, each with the one after it; every second time backwards."""
        path = wanted if self.forward else wanted[::-1]
        self.forward = not self.forward
        # `wanted` is empty where no vertex is active.
        yield from zip(path, [*path[1:], None][: len(path)], strict=True)


class PartialRows:
    """The partial rows of the blocks aggregated so far."""

    def __init__(
        self,
        memory: RunMemory,
        level: GpuLevel,
        numbers: Any,
        k: int,
        total: int,
        limits: AggregationLimits,
        blocks: VertexBlocks,
    ) -> None:
        self.memory = memory
        self.level = level
        self.numbers = numbers
        self.k = k
        self.total = total
        self.limits = limits
        self.blocks, ends = blocks, blocks.bounds
        self.arcs_before = {end: int(level.offsets[end : end + 1].get()[0]) for end in ends}
        # Most rows that each block adds; merging leaves k.
        added = [min(last - first, k) for first, last in pairwise(ends)]
        self.room = max(min(sum(added), 2 * k), k + max(added))
        self.offsets = memory.empty("partial_offsets", "scratch", self.room + 1, np.int64)
        self.names = memory.empty("partial_names", "scratch", self.room, np.uint32)
        self.offsets.data.memset_async(0, self.offsets.itemsize)
        self.used = self.arcs = self.merged = 0
        self.capacity = room_after(level, limits)
        self.buffers = 0
        self.rows = self.new_rows()

    def new_rows(self) -> CoarseRows:
        """Return memory for partial rows, in addition to those in use."""
        self.buffers += 1
        sums = self.level.sums
        width, widths = np.dtype(sums).itemsize, self.limits.short_weights
        weights = weights_for(self.total, self.capacity, width, widths)
        tag = f"partial.{self.buffers}"
        # The plan has the next level's graph twice for them.
        return CoarseRows(self.memory, tag, "graph", self.capacity, sums, weights)

    def add(self, number: int) -> None:
        """Append the rows of a vertex block."""
        first, last = self.blocks.bounds[number : number + 2]
        arcs = self.arcs_before[last] - self.arcs_before[first]
        if arcs == 0:
            return
        rows_full = self.used + min(last - first, self.k) > self.room
        arcs_full = self.arcs + arcs > self.rows.capacity and self.used > self.merged
        if rows_full or arcs_full:
            self.merge()
        part = replace(
            self.level,
            vertices=last - first,
            arcs=arcs,
            offsets=self.level.offsets[first : last + 1],
            loops=None,
        )
        aggregation = Aggregation(self.memory, part)
        copy(self.numbers[first:last], aggregation.scratch("numbers", last - first, np.uint32))
        aggregation.scratch("ranks", self.k + 1, np.uint32)
        aggregation.set(map=self.numbers, label_bound=self.k, neighbour_bound=self.k, partial=1)
        aggregation.set(names=self.names[self.used :], new_offsets=self.offsets[self.used :])
        aggregation.launch("number_labels")
        added = int(aggregation.read()["vertices"])
        aggregation.group(added)
        state = aggregation.lay_out(self.limits)
        aggregation.make_room(state, self.limits)
        self.blocks.cache.need(number)
        self.arcs = int(aggregation.write(self.rows, int(state["room"]), self.arcs)["arcs"])
        self.used += added
        aggregation.close()

    def aggregation(self) -> tuple[Aggregation, Any]:
        """Return the aggregation that merges all rows, without the new rows, and its state."""
        targets, weights = self.rows.cut(self.arcs)
        graph = replace(
            self.level,
            vertices=self.used,
            arcs=self.arcs,
            offsets=self.offsets[: self.used + 1],
            targets=targets,
            weights=weights,
            loops=None,
            max_degree=self.k,
        )
        aggregation = Aggregation(self.memory, graph)
        aggregation.set(numbers=self.names, neighbour_bound=self.k)
        aggregation.group(self.k)
        state = aggregation.lay_out(self.limits)
        aggregation.make_room(state, self.limits)
        return aggregation, state

    def merge(self) -> None:
        """Merge into one row per community, which keeps the arcs inside it."""
        aggregation, state = self.aggregation()
        offsets = aggregation.scratch("new_offsets", self.k + 1, np.int64)
        aggregation.set(partial=1)
        rows = self.new_rows()
        self.arcs = int(aggregation.write(rows, int(state["room"]))["arcs"])
        copy(offsets, self.offsets)
        identity(self.names[: self.k])
        self.used = self.merged = self.k
        aggregation.close()
        self.rows.free()
        self.rows = rows

    def finish(self, offsets: Any, loops: Any) -> tuple[CoarseRows, Any]:
        """Return the next level's rows and state; fills offsets, and halves the doubled loops."""
        aggregation, state = self.aggregation()
        room = int(state["room"])
        rows = new_rows(self.memory, self.level, self.limits, room, self.total, self.k)
        aggregation.set(new_offsets=offsets, new_loops=loops)
        state = aggregation.write(rows, room)
        aggregation.close()
        self.rows.free()
        self.memory.free("partial_offsets", "partial_names")
        return rows, state


NONE: Final = 0xFFFFFFFF
"""Stands for no sub-round."""

SPAN: Final = 8
"""Entries of a span in the queue: where each bin begins, and where the span ends."""

VERTEX_BLOCKS: Final = layout(
    n=np.int64, count=np.uint64,
    **pointers("begins", "active", "next_active", "spans", "present", "control"),
    salt=np.uint32, sub_rounds=np.uint32,
)  # fmt: skip
"""`VertexBlocks` of vertex_blocks.cu."""


class BlockKernels:
    """The kernels of a level in vertex blocks, with the arguments that they share."""

    def __init__(self, level: GpuLevel, blocks: VertexBlocks, rule: Struct, shared: Struct) -> None:
        self.level = level
        self.blocks = blocks
        self.rule = rule
        self.shared = shared

    def run(self, name: str, *arguments: Any) -> None:
        """Launch a kernel that reads no arcs."""
        launch = Launcher("vertex_blocks", name, self.level.types, most=self.level.most_blocks)
        launch(self.rule.argument, self.shared.argument, *arguments)

    def run_on(self, block: int, following: int | None, name: str, *arguments: Any) -> None:
        """Bring a block's arcs, then launch a kernel that reads them."""
        self.blocks.cache.need(block, following)
        self.run(name, *arguments)


def move_blocks(
    run: DeviceRun, level: GpuLevel, blocks: VertexBlocks
) -> tuple[MoveStats, list[EndedSweep]]:
    """Sweep until the gain of a sweep falls below the level's tolerance."""
    memory, options = run.memory, run.options
    arrays = move_arrays(memory, level, leiden=run.leiden)
    active, next_active = arrays.active, arrays.next_active
    rounds, count = rules.SUB_ROUNDS, blocks.count
    spans = memory.empty("spans", "scratch", rounds * count * SPAN, np.uint32)
    present = memory.empty("present", "scratch", rounds * count, np.uint8)
    hubs = HubTables(memory, level, run.low_scratch)
    control = new_control(memory)
    rule = move_rule(memory, level, options, run.total, arrays)
    shared = Struct(
        VERTEX_BLOCKS,
        n=level.vertices, count=count, begins=blocks.begins, active=active,
        next_active=next_active, spans=spans, present=present, control=control, salt=0,
        sub_rounds=rounds,
    )  # fmt: skip
    steps = BlockKernels(level, blocks, rule, shared)
    steps.run("begin_moving", or_null(level.start))
    moves, gain, before, iteration = 0, 0, 0, 0
    ended = list[tuple[int, float]]()
    while iteration < rules.MAX_ITERATIONS:
        shared.set(salt=rules.salt(level.cycle, iteration, options.seed))
        present.fill(0)
        steps.run("begin_sweep")
        prunes = rules.prunes(level.start is None, iteration)
        sweep(steps, hubs, present.get().reshape(count, rounds), prunes)
        found = control.get().view(CONTROL)[0]
        iteration += 1
        moved, gained = int(found["moves"][0]), int(found["gain"][0])
        moves, gain = moves + moved, gain + gained
        ended.append((moved, time.perf_counter()))
        ends = rules.is_last_sweep(level.number, iteration - 1, gained, before, options.effort)
        if moved == 0 or ends:
            break
        before = gained
        if prunes:
            active, next_active = next_active, active
            shared.set(active=active, next_active=next_active)
    hubs.free()
    memory.free(*MoveArrays._fields, "spans", "present", "control")
    level.read_again = int(found["read_again"])
    last = ended[-1][1]
    sweeps = [EndedSweep(moved, last - at) for moved, at in ended]
    return MoveStats(iteration, moves, int(found["visited"]), gain), sweeps


def sweep(steps: BlockKernels, hubs: HubTables, present: Any, prunes: bool) -> None:
    """Decide and apply, sub-round by sub-round and block by block.

    With `prunes`, the pass over the blocks of a sub-round also activates the neighbours of the
    vertices that moved in the sub-round before.
    """
    before, there = NONE, set[int]()
    for number in range(present.shape[1]):
        here = set(np.flatnonzero(present[:, number]).tolist())
        if not here:
            continue
        for block, following in steps.blocks.order(sorted(here | there)):
            steps.run_on(
                block, following, "move_block", hubs.argument, np.uint32(block),
                np.uint32(number if block in here else NONE),
                np.uint32(before if block in there else NONE),
            )  # fmt: skip
        steps.run("end_move_round")
        if prunes:
            before, there = number, here
    for block, following in steps.blocks.order(sorted(there)):
        steps.run_on(
            block, following, "move_block", hubs.argument, np.uint32(block), np.uint32(NONE),
            np.uint32(before),
        )  # fmt: skip


def refine_blocks(run: DeviceRun, level: GpuLevel, blocks: VertexBlocks) -> None:
    """Split communities into connected sub-communities; leaves `refined` on the level."""
    memory, options = run.memory, run.options
    rule = start_refinement(memory, level, options, run.total)
    rounds, count = rules.SUB_ROUNDS, blocks.count
    spans = memory.empty("spans", "scratch", rounds * count * SPAN, np.uint32)
    hubs = HubTables(memory, level, run.low_scratch)
    control = new_control(memory)
    shared = Struct(
        VERTEX_BLOCKS,
        n=level.vertices, count=count, begins=blocks.begins, active=None, next_active=None,
        spans=spans, present=None, control=control,
        salt=rules.salt(level.cycle, rules.REFINE_SWEEP, options.seed), sub_rounds=rounds,
    )  # fmt: skip
    steps = BlockKernels(level, blocks, rule, shared)
    steps.run("begin_refining")
    every = list(range(count))
    for block, following in blocks.order(every):
        steps.run_on(block, following, "weigh_block", np.uint32(block))
    for number in range(rounds):
        for block, following in blocks.order(every):
            steps.run_on(
                block, following, "refine_block", hubs.argument, np.uint32(block),
                np.uint32(number),
            )  # fmt: skip
        steps.run("end_refine_round")
    hubs.free()
    memory.free(*REFINE_ARRAYS, "spans", "control")
