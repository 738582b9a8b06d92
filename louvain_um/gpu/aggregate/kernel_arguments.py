"""Launches of the kernels in `aggregate.cu`: their arguments and the arrays behind them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from louvain_um.core.ledger import Group
from louvain_um.gpu.aggregate.coarse_rows import MOST_VERTICES, CoarseRows, whole_targets
from louvain_um.gpu.aggregate.limits import (
    BOUNDS,
    AggregationLimits,
    SumTables,
    chunk_for,
    chunk_with_rows,
    range_shift_for,
    reserved,
    rows_expected,
    slots_of,
    tables,
    weights_for,
)
from louvain_um.gpu.level import GpuLevel, next_region, tag_after
from louvain_um.gpu.memory import packed
from louvain_um.gpu.runtime.launch import Launcher, Struct, carve, layout, pointers
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration.mover import Mover

STATE: Final = np.dtype(
    [
        ("barrier", np.uint32, 2),
        *(
            (name, np.uint32)
            for name in (
                "claimed_by_warps", "block_count", "blocks_listed", "claimed_by_blocks",
                "hub_count",
            )
        ),
        *(
            (name, np.uint64)
            for name in (
                "vertices", "room", "kept", "max_arcs", "chunk_room", "arcs", "max_degree",
                "inside", "total", "written", "next_chunk", "nonempty",
            )
        ),
        ("squares", np.uint64, 3),
        ("bounds", np.uint64, BOUNDS),
        ("room_at", np.uint64, BOUNDS),
        ("first", np.uint64),
        ("last", np.uint64),
    ],
    align=True,
)  # fmt: skip
"""`State` of arguments.cuh."""

ARGUMENTS: Final = layout(
    **dict.fromkeys(
        (
            "n", "k", "label_bound", "neighbour_bound", "base", "chunk_arcs", "new_capacity",
            "weight_bytes", "targets24", "partial", "range_shift", "begin", "resume", "part",
            "parts", "near", "near_weights",
        ),
        np.int64,
    ),
    table_slots=np.uint64, heavy_slots=np.uint64,
    **pointers(
        "offsets", "targets", "weights", "loops", "degrees", "far_targets", "far_weights",
        "numbers", "map", "ranks", "names", "members", "starts", "low", "whole", "rooms",
        "chunk_targets", "chunk_weights", "new_offsets", "new_targets", "new_weights",
        "new_loops", "new_degrees", "row_arcs", "row_inner", "block_bin", "hub_bin", "keys", "sums",
        "state", "partials",
    ),
)  # fmt: skip
"""`Arguments` of arguments.cuh."""

LEAST_ROWS: Final = 1 << 20
"""Arcs that new rows hold at first, where no page is free for them."""

WASTED_PAGES: Final = 2
"""Pages of which the two arrays of chunks, or those of rows, use a part at most."""

EXPECTED_SPARE: Final = 1.03
"""Arcs that new rows get in pages, relative to what chunks so far let expect."""

EVERY_ARC: Final = 1 << 62
"""More arcs than there are: all are where they belong."""


class Aggregation:
    """One aggregation: arguments of its kernels, scratch arrays, launches."""

    def __init__(self, memory: RunMemory, level: GpuLevel) -> None:
        self.memory = memory
        self.level = level
        self.names: list[str] = []
        self.partials = 0
        self.arguments = Struct.zeroed(ARGUMENTS)
        self.state = self.scratch("state", STATE.itemsize, np.uint8)
        self.state.data.memset_async(0, STATE.itemsize)
        graph = ("offsets", "targets", "loops", "degrees")
        self.set(n=level.vertices, parts=1, **{name: getattr(level, name) for name in graph})
        self.set(weights=level.weights_argument)
        self.set(near=EVERY_ARC, near_weights=EVERY_ARC)

    def set(self, **values: Any) -> None:
        """Set arguments: numbers, arrays, or None for a null pointer."""
        self.arguments.set(**values)

    def value(self, name: str) -> int:
        """Return an argument: a number or an address."""
        return int(self.arguments.value(name))

    def scratch(self, name: str, size: int, dtype: Any, group: Group = "scratch") -> Any:
        """Allocate an array until `close`, and set the argument of its name to it."""
        array = self.memory.empty(f"aggregate_{name}", group, size, dtype)
        self.names.append(f"aggregate_{name}")
        self.set(**{name: array})
        return array

    def carve(self, **sizes: int) -> None:
        """Set arguments to parts of one array, each of so many bytes, allocated until `close`."""
        self.set(**carve(self.memory, "aggregate", sizes))
        self.names.append("aggregate")

    def drop(self, *names: str) -> None:
        """Free arrays before the end."""
        for name in names:
            self.names.remove(f"aggregate_{name}")
            self.memory.free(f"aggregate_{name}")

    def close(self, *kept: str) -> None:
        """Free all scratch arrays but those to keep."""
        names = {f"aggregate_{name}" for name in kept}
        self.memory.free(*[name for name in self.names if name not in names])
        self.names = [name for name in self.names if name in names]

    def prepare(self, name: str) -> Launcher:
        """Return a kernel with its grid."""
        level = self.level
        return Launcher(level.source("aggregate"), name, level.types, most=level.most_blocks)

    def launch(self, name: str) -> None:
        """Run a kernel, with room for one partial sum per block."""
        launch = self.prepare(name)
        blocks = launch.blocks
        if not self.value("partials") or 0 < self.partials < blocks:
            if self.partials:
                self.drop("partials")
            self.scratch("partials", blocks, np.uint64)
            self.partials = blocks
        if self.memory.mover:  # after all that is allocated, for which arcs may leave
            self.find_arcs(self.memory.mover)
        launch(self.arguments.argument)

    def find_arcs(self, mover: Mover) -> None:
        """Let arcs of the input that are not mapped be read in the host's copy (`Arguments`)."""
        near, far = mover.unmapped_from(f"targets.{self.level.tag}")
        arcs = self.whole_arcs(near) if far else EVERY_ARC
        self.set(near=arcs, far_targets=far)
        if self.level.weights is not None:
            near, far = mover.unmapped_from(f"weights.{self.level.tag}")
            arcs = near // self.level.weights.itemsize
            self.set(near_weights=arcs if far else EVERY_ARC, far_weights=far)

    def whole_arcs(self, nbytes: int) -> int:
        """Return how many of the level's targets are whole in the first bytes of their array."""
        if self.level.compact:
            return packed.whole_arcs(self.level.lines, nbytes)
        return whole_targets(nbytes) if self.level.targets24 else nbytes // 4

    def read(self) -> Any:
        """Wait for the device and return its `State`."""
        return self.state.get().view(STATE)[0]

    def group(self, k: int) -> None:
        """List the members of communities 0 … k − 1."""
        n = self.level.vertices
        shift = range_shift_for(self.level.max_degree)
        if not self.value("members"):
            self.scratch("members", n + 1, np.uint32)
        self.scratch("starts", k + 1, np.uint32)
        self.scratch("low", n + 1, np.uint32)
        self.scratch("whole", (n >> shift) + 1, np.int64)
        self.set(k=k, range_shift=shift)
        self.launch("group_members")
        if self.memory.mover:
            names = "aggregate_members", "aggregate_low"
            self.memory.mover.let_leave(*names, in_order=True)

    def chunk_within(self, limits: AggregationLimits) -> int:
        """Return the arcs of a chunk, whatever the new rows take."""
        width, leiden = np.dtype(self.level.sums).itemsize, self.level.refined is not None
        return chunk_for(self.level.arcs, limits, width=width, leiden=leiden)

    def sample_rows(self, limits: AggregationLimits) -> int:
        """Return how many arcs the new rows are expected to have; size chunks by that."""
        arcs, sums, mover = self.level.arcs, self.level.sums, self.memory.mover
        assert mover is not None
        self.scratch("rooms", self.value("k") + 1, np.uint32)  # before what is idle is looked at
        self.launch("sample_rows")
        state, width = self.read(), np.dtype(sums).itemsize
        rows = rows_expected(int(state["room"]), int(state["kept"]), arcs)
        weight = weights_for(int(state["total"]), rows, width, limits.short_weights).width
        chunk_arc, slots = 4 + width, self.tables(state, limits).slots
        mapped = mover.largest_gap * 7 // 8 // chunk_arc
        least = self.chunk_within(limits)
        most = self.chunk_within(replace(limits, most_chunk=mapped))
        free = mover.room.idle - 2 * WASTED_PAGES * mover.page_bytes - chunk_arc * slots
        shrinks = weight == 1 and self.value("k") <= MOST_VERTICES
        widths = chunk_arc, 4 + weight
        self.set(chunk_arcs=chunk_with_rows(least, most, free, rows, widths, shrinks=shrinks))
        return rows

    def lay_out(self, limits: AggregationLimits) -> Any:
        """Lay out room for the new rows, in chunks; return the state."""
        if not self.value("chunk_arcs"):
            self.scratch("rooms", self.value("k") + 1, np.uint32)
            self.set(chunk_arcs=self.chunk_within(limits))
        self.launch("lay_out")
        state = self.read()
        self.set(neighbour_bound=self.most_neighbours(state))
        return state

    def most_neighbours(self, state: Any) -> int:
        """Return how many neighbours a new row has at most."""
        # Communities without arcs are no neighbours; 0 where degrees were not summed.
        return int(state["nonempty"]) or self.value("neighbour_bound")

    def tables(self, state: Any, limits: AggregationLimits) -> SumTables:
        """Return bins and tables for what `max_arcs` of the state says."""
        arcs, most = self.level.arcs, int(state["max_arcs"])
        width, bound = np.dtype(self.level.sums).itemsize, self.most_neighbours(state)
        found = tables(width, self.value("k"), bound, most, arcs)
        return found._replace(slots=slots_of(found.slots, arcs, limits) if found.slots else 0)

    def make_room(self, state: Any, limits: AggregationLimits) -> None:
        """Allocate what summing a chunk takes."""
        needed = self.tables(state, limits)
        self.scratch("chunk_targets", int(state["chunk_room"]), np.uint32)
        self.scratch("chunk_weights", int(state["chunk_room"]), self.level.sums)
        self.scratch("block_bin", needed.block_bin, np.uint32)
        self.scratch("hub_bin", needed.hub_bin, np.uint32)
        self.scratch("keys", needed.slots, np.uint32, "hash")
        self.scratch("sums", needed.slots, self.level.sums, "hash")
        self.set(table_slots=needed.slots)
        if self.memory.mover:
            self.note_rows(state)

    def note_rows(self, state: Any) -> None:
        """Allocate what is noted of a chunk's rows on the device: new offsets may not be there."""
        bounds = np.clip(state["bounds"], state["first"], state["last"]).astype(np.int64)
        most = int(np.diff(bounds).max(initial=0))
        self.scratch("row_arcs", most + 1, np.uint32)
        self.scratch("row_inner", most, self.level.sums)

    def write(self, rows: CoarseRows, room: int, base: int = 0) -> Any:
        """Write new rows, of at most `room` arcs, after `base` arcs; return the state."""
        first, most, begin, resume, expected = base, base + room, 0, 0, 0
        while True:
            self.set(
                base=base, new_capacity=rows.capacity, begin=begin, resume=resume,
                weight_bytes=rows.short_bytes, heavy_slots=rows.heavy_slots,
                targets24=int(rows.targets24),
                new_targets=rows.targets, new_weights=rows.weights,
            )  # fmt: skip
            self.launch("sum_arcs")
            capacity = rows.capacity
            rows.grow_during_kernel(min(most, expected), base)
            state = self.read()
            if int(state["next_chunk"]) == BOUNDS:
                return state
            so_far, begin, resume = int(state["arcs"]), int(state["next_chunk"]), 1
            if self.memory.mover:
                # Later chunks keep about as much of their arcs as those so far.
                seen = int(state["room_at"][begin + 1]) / max(int(state["room"]), 1)
                expected = first + int((so_far - first) / seen * EXPECTED_SPARE)
                wanted = rows.within(max(so_far, expected), so_far, int(state["written"]))
            else:
                wanted = 2 * max(so_far, rows.capacity)
            base = int(state["written"])
            if rows.capacity == capacity or so_far > rows.capacity:
                rows.grow(min(most, wanted), base)
            rows.free_early(min(most, expected), base)


def new_rows(
    memory: RunMemory,
    level: GpuLevel,
    limits: AggregationLimits,
    room: int,
    total: int,
    vertices: int,
    expected: int | None = None,
) -> CoarseRows:
    """Return arrays for the arcs of a next level of so many vertices, of total weight `total`."""
    sums, short = np.dtype(level.sums).itemsize, False
    if mover := memory.mover:
        # Pages that are free hold the first arcs, and more are added.
        sampled, arcs = expected is not None, room if expected is None else expected
        weights = weights_for(total, arcs, sums, limits.short_weights)
        arc, page = 4 + weights.width, mover.page_bytes
        # Either array wastes part of a page; where rows were not sampled, as much again is left.
        wasted = (WASTED_PAGES if sampled else 2 * WASTED_PAGES) * page
        fixed = packed.head_bytes(weights.heavy_slots) + wasted
        # Pages are taken from elsewhere only where it is known how many.
        free = mover.room.idle if sampled else mover.room.free
        if weights.width == 1 and vertices <= MOST_VERTICES:  # what may not fit takes fewer bytes
            short = arc * arcs + fixed > free
            arc -= short
        # Arcs of the input leave for those that lack room then; those of other levels may not.
        if sampled and (level.number == 0 or arc * arcs + fixed <= free):
            mover.open_rows(arc * arcs + fixed)
        capacity = min(arcs, max((mover.room.free - fixed) // arc, LEAST_ROWS))
    else:
        capacity = min(room_after(level, limits), room)
        weights = weights_for(total, capacity, sums, limits.short_weights)
    tag = tag_after(level)
    return CoarseRows(memory, tag, "graph", capacity, level.sums, weights, room, targets24=short)


def room_after(level: GpuLevel, limits: AggregationLimits) -> int:
    """Return how many arcs the next level's arrays hold at first."""
    if limits.region_arcs is not None:
        counted = limits.region_arcs[next_region(level) - 1]
        # What a level leaves of both regions is not contiguous.
        left = (sum(limits.region_arcs) - level.arcs) // 8 * 7 if level.number else 0
        return max(counted, min(int(limits.coarse_share * level.arcs), left))
    return reserved(level.arcs, level.number, leiden=level.refined is not None, kept=limits.kept)


def squares(state: Any) -> int:
    """Return a sum of 128 bits from its three parts."""
    low, middle, high = state["squares"].tolist()
    return int(low + (middle << 32) + (high << 64))
