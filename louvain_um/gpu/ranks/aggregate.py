"""Aggregating a level whose vertices are dealt over devices.

Each device sums the arcs of some communities, reading rows in other devices' memory over the links
between them; the rows are then copied to where the next level is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from louvain_um.gpu.aggregate.aggregate import finish, group_vertices
from louvain_um.gpu.aggregate.coarse_rows import CoarseRows, copy
from louvain_um.gpu.aggregate.kernel_arguments import Aggregation, room_after
from louvain_um.gpu.aggregate.limits import LIMITS, AggregationLimits
from louvain_um.gpu.level import GpuLevel, tag_after
from louvain_um.gpu.ranks.share import Share, side_by_side, turns
from louvain_um.gpu.relabel.relabel import VERTICES_A_BLOCK, Join
from louvain_um.gpu.runtime.launch import Launcher
from louvain_um.placement.memory import cuda_calls

SPARE: Final = 1.2
"""Room for a device's rows, relative to an even part: rows differ in what they keep."""


@dataclass(slots=True)
class SummedPart:
    """The rows of some communities, on the device that summed them."""

    share: Share
    arrays: dict[str, Any]
    communities: int
    state: Any
    rows: CoarseRows
    numbers: Any

    @property
    def range(self) -> slice:
        """Local communities."""
        first, last = int(self.state["first"]), int(self.state["last"])
        return slice(first, max(first, last))

    @property
    def arcs(self) -> int:
        """Arcs of local rows."""
        return int(self.state["arcs"])


def aggregate_shared(
    shares: Sequence[Share], *, everywhere: Callable[[int], bool]
) -> list[GpuLevel]:
    """Return the next level, on the first device only or on every one."""
    count = len(shares)
    limits = replace(LIMITS, short_weights=())
    ranks = list(range(count))
    parts = side_by_side(shares, lambda rank: sum_part(shares[rank], rank, count, limits))
    here = ranks if everywhere(sum(part.arcs for part in parts)) else ranks[:1]
    there = shares[: len(here)]
    # What follows needs no answer from a device: one thread launches it for all of them.
    rows = collect(parts, there)
    levels = [complete(parts, rank, rows[rank]) for rank, _ in zip(here, turns(there), strict=True)]
    wait_for(there)
    for rank, part in enumerate(parts):
        part.rows.free()
        if rank not in here:
            tag = tag_after(part.share.level)
            part.share.memory.free(*(f"{name}.{tag}" for name in part.arrays))
    return levels


def wait_for(shares: Sequence[Share]) -> None:
    """Wait for some devices."""
    for _ in turns(shares):
        cuda_calls.synchronize()


def sum_part(share: Share, part: int, parts: int, limits: AggregationLimits) -> SummedPart:
    """Sum the arcs of a device's part of the communities."""
    level, memory = share.level, share.memory
    numbers = level.labels if level.refined is None else level.refined
    aggregation = Aggregation(memory, level)
    aggregation.set(numbers=numbers, map=numbers, label_bound=level.vertices)
    aggregation.set(part=part, parts=parts)
    arrays, k = group_vertices(aggregation, level)
    state = aggregation.lay_out(limits)
    aggregation.make_room(state, limits)
    room = int(state["room"])
    capacity = min(int(room_after(level, limits) / parts * SPARE), room)
    rows = CoarseRows(memory, "part", "graph", capacity, level.sums, most=room)
    aggregation.set(new_offsets=arrays["offsets"])
    state = aggregation.write(rows, room)
    aggregation.close()
    return SummedPart(share, arrays, k, state, rows, numbers)


def sum_local(share: Share, numbers: Any, communities: int) -> tuple[Any, Any, Any]:
    """Sum the arcs of local vertices alone by the communities of both ends."""
    level, memory = share.level, share.memory
    limits = replace(LIMITS, short_weights=())
    aggregation = Aggregation(memory, level)
    # Degrees are not summed: communities without arcs here may be neighbours of others.
    aggregation.set(
        numbers=numbers, map=numbers, label_bound=communities, neighbour_bound=communities
    )
    aggregation.group(communities)
    state = aggregation.lay_out(limits)
    aggregation.make_room(state, limits)
    room = int(state["room"])
    offsets = aggregation.scratch("new_offsets", communities + 1, np.int64)
    loops = aggregation.scratch("new_loops", communities, level.sums)
    loops.data.memset_async(0, loops.nbytes)
    capacity = min(room_after(level, limits), room)
    rows = CoarseRows(memory, "part", "graph", capacity, level.sums, most=room)
    kept = int(aggregation.write(rows, room)["arcs"])
    found = offsets.get(), rows.targets[:kept].get(), rows.weights[:kept].get()
    aggregation.close()
    rows.free()
    return found


def collect(parts: Sequence[SummedPart], shares: Sequence[Share]) -> list[CoarseRows]:
    """Copy the rows of all devices to some of them, one behind the other; wait for it."""
    # On the default stream, a copy between devices waits for all that both of them do.
    streams = [cuda_calls.new_stream() for _ in turns(shares)]
    try:
        rows = [collect_rows(parts, rank, streams[rank]) for rank, _ in enumerate(turns(shares))]
        for stream, _ in zip(streams, turns(shares), strict=True):
            cuda_calls.wait_for(stream)
        wait_for(shares)
    finally:
        for stream, _ in zip(streams, turns(shares), strict=True):
            cuda_calls.drop_stream(stream)
    return rows


def collect_rows(parts: Sequence[SummedPart], rank: int, stream: int) -> CoarseRows:
    """Copy all rows to a device, which is current: its own and, in a stream, the others'."""
    local, level = parts[rank], parts[rank].share.level
    total = sum(part.arcs for part in parts)
    rows = CoarseRows(local.share.memory, tag_after(level), "graph", total, level.sums)

    def fetch(source: Any, target: Any) -> None:
        if source.nbytes:
            cuda_calls.copy_later(target.data.ptr, source.data.ptr, source.nbytes, stream)

    done = 0
    for part in parts:
        put = copy if part is local else fetch
        if part is not local:
            for name in ("offsets", "loops"):
                fetch(part.arrays[name][part.range], local.arrays[name][part.range])
        put(part.rows.targets[: part.arcs], rows.targets[done : done + part.arcs])
        put(part.rows.weights[: part.arcs], rows.weights[done : done + part.arcs])
        done += part.arcs
    return rows


def complete(parts: Sequence[SummedPart], rank: int, rows: CoarseRows) -> GpuLevel:
    """Return the next level on a device that has all rows."""
    local = parts[rank]
    level, memory, arrays = local.share.level, local.share.memory, dict(local.arrays)
    done = 0
    for part in parts:
        offsets = arrays["offsets"][part.range]
        if done and offsets.size:
            shift = Launcher("ranks", "shift_offsets", most=offsets.size // VERTICES_A_BLOCK)
            shift(np.int64(offsets.size), offsets, np.int64(done))
        done += part.arcs
    arrays["offsets"][local.communities :].fill(done)
    arrays["targets"], arrays["weights"] = rows.targets, rows.weights
    state = local.state.copy()
    state["vertices"], state["arcs"] = local.communities, done
    state["inside"] = sum(int(part.state["inside"]) for part in parts)
    state["max_degree"] = max(int(part.state["max_degree"]) for part in parts)
    return Join(memory, level, local.numbers).finish(finish(level, state, arrays))
