"""Aggregation on the device: communities become the next level's graph (`aggregate.cu`).

The counterpart of `louvain_um.cpu.aggregate`; only the order of neighbours in a row differs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from louvain_um.gpu.aggregate.kernel_arguments import Aggregation, new_rows, squares
from louvain_um.gpu.aggregate.limits import LIMITS, RANGE_SHIFT, AggregationLimits, tables
from louvain_um.gpu.level import GpuLevel, next_region, tag_after
from louvain_um.gpu.memory.shape import begun_at_once_bytes
from louvain_um.gpu.out_of_core.vertex_blocks import PartialRows, VertexBlocks
from louvain_um.gpu.relabel.relabel import Join
from louvain_um.placement.memory.run_memory import RunMemory


def aggregate(
    memory: RunMemory,
    level: GpuLevel,
    limits: AggregationLimits = LIMITS,
    blocks: VertexBlocks | None = None,
) -> GpuLevel:
    """Return the next level; vertices of one community (of `refined`, if set) become one vertex."""
    if blocks is None:
        return begin(memory, level, limits).finish()
    begun = Begun(memory, level, limits)
    return begun.join.finish(in_blocks(begun.aggregation, level, limits, blocks))


def begin(memory: RunMemory, level: GpuLevel, limits: AggregationLimits) -> Begun:
    """Launch what the aggregation of a level begins with, without waiting for the device."""
    at_once = takes_one_launch(memory, level, limits)
    return (AtOnce if at_once else InChunks)(memory, level, limits)


def takes_one_launch(memory: RunMemory, level: GpuLevel, limits: AggregationLimits) -> bool:
    """Return whether a level is aggregated by one launch: it has few arcs, and room for all."""
    if level.arcs > limits.small or level.vertices <= limits.small:
        return level.arcs <= limits.small
    needed = begun_at_once_bytes(level.vertices, level.arcs, np.dtype(level.sums).itemsize)
    return level.number > 0 and (memory.mover is None or needed <= memory.mover.largest_gap)


class Begun:
    """The aggregation of a level: what it works with, and what it starts the next level in."""

    at_once = False

    def __init__(self, memory: RunMemory, level: GpuLevel, limits: AggregationLimits) -> None:
        self.memory, self.level, self.limits = memory, level, limits
        numbers = level.labels if level.refined is None else level.refined
        self.aggregation = Aggregation(memory, level)
        self.aggregation.set(numbers=numbers, map=numbers, label_bound=level.vertices)
        self.join = Join(memory, level, numbers)

    def finish(self) -> GpuLevel:
        """Wait for the device; return the next level, and set `numbers` of this one."""
        raise NotImplementedError

    def discard(self) -> None:
        """Free what was launched for nothing: the level's vertices did not move far enough."""
        self.aggregation.close()
        self.join.discard()


class InChunks(Begun):
    """The aggregation of a larger level: its communities are numbered before the host waits."""

    def __init__(self, memory: RunMemory, level: GpuLevel, limits: AggregationLimits) -> None:
        super().__init__(memory, level, limits)
        number_labels(self.aggregation)

    def finish(self) -> GpuLevel:
        """Aggregate it; return the next level, and set `numbers` of this one."""
        return self.join.finish(in_chunks(self.aggregation, self.level, self.limits))


class AtOnce(Begun):
    """The aggregation of a level of few arcs: one launch, after which the host need not wait."""

    at_once = True

    def __init__(self, memory: RunMemory, level: GpuLevel, limits: AggregationLimits) -> None:
        super().__init__(memory, level, limits)
        aggregation = self.aggregation
        n, arcs, sums, number = level.vertices, level.arcs, level.sums, level.number + 1
        # Small levels are read often and fit anywhere: they leave the regions to large ones.
        small = level.number and n <= LIMITS.small
        self.tag = tag = f"small.{number}" if small else tag_after(level)
        width, empty = np.dtype(sums).itemsize, memory.empty
        needed = tables(width, n, n, arcs, arcs)
        aggregation.carve(
            members=4 * (n + 1),
            starts=4 * (n + 1),
            low=4 * (n + 1),
            whole=8 * ((n >> RANGE_SHIFT) + 1),
            rooms=4 * (n + 1),
            chunk_targets=4 * arcs,
            chunk_weights=width * arcs,
            block_bin=4 * needed.block_bin,
            hub_bin=4 * needed.hub_bin,
            keys=4 * needed.slots,
            sums=width * needed.slots,
            partials=8 * aggregation.prepare("aggregate_small").blocks,
        )
        aggregation.set(table_slots=needed.slots, range_shift=RANGE_SHIFT, chunk_arcs=max(arcs, 1))
        aggregation.set(ranks=aggregation.value("members"))
        self.arrays = arrays = {
            "offsets": empty(f"offsets.{tag}", "graph", n + 1, np.int64),
            "targets": empty(f"targets.{tag}", "graph", arcs, np.uint32),
            "weights": empty(f"weights.{tag}", "graph", arcs, sums),
            "loops": empty(f"loops.{tag}", "graph", n, sums),
            "degrees": empty(f"degrees.{tag}", "community", n, sums),
        }
        aggregation.set(**{f"new_{name}": array for name, array in arrays.items()})
        aggregation.launch("aggregate_small")
        aggregation.close("state")
        self.join.launch(n)

    def finish(self) -> GpuLevel:
        """Wait for the device; return the next level, and set `numbers` of this one."""
        level, state = self.level, self.aggregation.read()
        self.aggregation.close()
        k, kept = int(state["vertices"]), int(state["arcs"])
        sizes = {"offsets": k + 1, "targets": kept, "weights": kept, "loops": k, "degrees": k}
        arrays = {name: self.arrays[name][:size] for name, size in sizes.items()}
        return self.join.finish(replace(finish(level, state, arrays), tag=self.tag))

    def discard(self) -> None:
        """Free what was launched for nothing, the next level's arrays among it."""
        self.memory.free(*[f"{name}.{self.tag}" for name in self.arrays])
        super().discard()


def in_chunks(
    aggregation: Aggregation, level: GpuLevel, limits: AggregationLimits, k: int | None = None
) -> GpuLevel:
    """Aggregate a large level, one chunk of communities at a time."""
    memory = aggregation.memory
    arrays, k = group_vertices(aggregation, level, k)
    sampled = memory.mover is not None and level.refined is not None
    expected = aggregation.sample_rows(limits) if sampled else None
    state = aggregation.lay_out(limits)
    aggregation.make_room(state, limits)
    room, total = int(state["room"]), int(state["total"])
    rows = new_rows(memory, level, limits, room, total, k, expected)
    aggregation.set(new_offsets=arrays["offsets"])
    state = aggregation.write(rows, room)
    aggregation.close()
    arrays["targets"], arrays["weights"] = rows.cut(int(state["arcs"]))
    state["vertices"] = k
    return finish(level, state, arrays)


def in_blocks(
    aggregation: Aggregation, level: GpuLevel, limits: AggregationLimits, blocks: VertexBlocks
) -> GpuLevel:
    """Aggregate a level whose arcs are read one vertex block at a time."""
    arrays, k = group_vertices(aggregation, level)
    sums = aggregation.read()
    numbers = level.labels if level.refined is None else level.refined
    total = int(sums["total"])
    aggregation.close()
    partial = PartialRows(aggregation.memory, level, numbers, k, total, limits, blocks)
    for number in range(blocks.count):
        partial.add(number)
    rows, state = partial.finish(arrays["offsets"], arrays["loops"])
    arrays["targets"], arrays["weights"] = rows.cut(int(state["arcs"]))
    state["vertices"], state["squares"] = k, sums["squares"]
    return finish(level, state, arrays)


def number_labels(aggregation: Aggregation) -> None:
    """Count the labels in use, and number them."""
    aggregation.scratch("members", aggregation.level.vertices + 1, np.uint32)
    aggregation.set(ranks=aggregation.value("members"))
    aggregation.launch("number_labels")


def group_vertices(
    aggregation: Aggregation, level: GpuLevel, k: int | None = None
) -> tuple[dict[str, Any], int]:
    """Group vertices by community; return the next level's arrays per vertex, and its vertices."""
    tag, sums, empty = tag_after(level), level.sums, aggregation.memory.empty
    if k is None:
        if not aggregation.value("ranks"):
            number_labels(aggregation)
        k = int(aggregation.read()["vertices"])
    aggregation.group(k)
    arrays = {
        "offsets": empty(f"offsets.{tag}", "graph", k + 1, np.int64, cold=True),
        "loops": empty(f"loops.{tag}", "graph", k, sums, cold=True),
        "degrees": empty(f"degrees.{tag}", "community", k, sums, cold=True),
    }
    aggregation.set(new_loops=arrays["loops"], new_degrees=arrays["degrees"], neighbour_bound=k)
    aggregation.launch("sum_members")
    return arrays, k


def finish(level: GpuLevel, state: Any, arrays: dict[str, Any]) -> GpuLevel:
    """Return the next level."""
    return GpuLevel(
        cycle=level.cycle,
        number=level.number + 1,
        vertices=int(state["vertices"]),
        arcs=int(state["arcs"]),
        sums=level.sums,
        inside=int(state["inside"]),
        squares=squares(state),
        max_degree=int(state["max_degree"]),
        region=next_region(level),
        tag=tag_after(level),
        **arrays,
    )


def prepare(memory: RunMemory, level: GpuLevel) -> None:
    """Set `inside`, `squares` and `max_degree` of a level; every vertex is a community."""
    aggregation = Aggregation(memory, level)
    aggregation.launch("sum_level")
    state = aggregation.read()
    aggregation.close()
    level.inside, level.max_degree = int(state["inside"]), int(state["max_degree"])
    level.squares = squares(state)
