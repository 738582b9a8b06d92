"""Vertex blocks: ranges of vertices whose arcs are on the device at the same time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from louvain_um.gpu.aggregate.coarse_rows import CoarseRows, copy
from louvain_um.gpu.aggregate.kernel_arguments import Aggregation, new_rows, room_after
from louvain_um.gpu.aggregate.limits import AggregationLimits, weights_for
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.relabel.relabel import identity
from louvain_um.gpu.runtime.launch import Launcher
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
