"""Aggregating a level whose vertices are dealt over devices.

Each device sums the arcs of some communities, reading rows in other devices' memory over the links
between them; the rows are then copied to where the next level is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from louvain_um.gpu.aggregate.aggregate import finish, group_vertices, joined
from louvain_um.gpu.aggregate.coarse_rows import CoarseRows, copy
from louvain_um.gpu.aggregate.kernel_arguments import Aggregation, room_after
from louvain_um.gpu.aggregate.limits import LIMITS, Limits
from louvain_um.gpu.level import GpuLevel, tag_after
from louvain_um.gpu.ranks.share import Share, side_by_side
from louvain_um.gpu.relabel.relabel import blocks_for
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.launch import THREADS

SPARE: Final = 1.2
"""Room for a device's rows, beside an even part: rows differ in what they keep."""


@dataclass(slots=True)
class Part:
    """The rows of some communities, on the device that summed them.

    Parameters
    ----------
    share : Share
    arrays : dict
        Arrays of the next level's vertices; offsets and loops of own communities only.
    communities : int
        Of all devices.
    state
        `State` of the aggregation.
    rows : CoarseRows
    numbers
        Community of each vertex.
    """

    share: Share
    arrays: dict[str, Any]
    communities: int
    state: Any
    rows: CoarseRows
    numbers: Any

    @property
    def range(self) -> slice:
        """Own communities."""
        first, last = int(self.state["first"]), int(self.state["last"])
        return slice(first, max(first, last))

    @property
    def arcs(self) -> int:
        """Arcs of own rows."""
        return int(self.state["arcs"])


def aggregate_shared(
    kernels: Kernels, shares: Sequence[Share], *, everywhere: Callable[[int], bool]
) -> list[GpuLevel]:
    """Return the next level, on the first device only or on every one.

    Parameters
    ----------
    everywhere : callable
        Called with the arcs of the next level: whether every device is to have it.
    """
    count = len(shares)
    limits = replace(LIMITS, weights8=False)
    ranks = list(range(count))
    parts = side_by_side(shares, lambda rank: sum_part(kernels, shares[rank], rank, count, limits))
    here = ranks if everywhere(sum(part.arcs for part in parts)) else ranks[:1]
    rows = side_by_side(shares[: len(here)], lambda rank: collect(parts, rank))
    levels = side_by_side(
        shares[: len(here)], lambda rank: complete(kernels, parts, rank, rows[rank])
    )
    for rank, part in enumerate(parts):
        part.rows.free()
        if rank not in here:
            tag = tag_after(part.share.level)
            part.share.memory.free(*(f"{name}.{tag}" for name in part.arrays))
    return levels


def sum_part(kernels: Kernels, share: Share, part: int, parts: int, limits: Limits) -> Part:
    """Sum the arcs of a device's part of the communities."""
    level, memory = share.level, share.memory
    numbers = level.labels if level.refined is None else level.refined
    aggregation = Aggregation(kernels, memory, level)
    aggregation.set(numbers=numbers, map=numbers, label_bound=level.vertices)
    aggregation.set(part=part, parts=parts)
    arrays, k = group_vertices(aggregation, level)
    state = aggregation.lay_out(limits)
    aggregation.make_room(state, limits)
    room = int(state["room"])
    capacity = min(int(room_after(level, limits) / parts * SPARE), room)
    rows = CoarseRows(memory, "part", "graph", capacity, level.sums, 0, room)
    aggregation.set(new_offsets=arrays["offsets"])
    state = aggregation.write(rows, room)
    aggregation.close()
    return Part(share, arrays, k, state, rows, numbers)


def collect(parts: Sequence[Part], rank: int) -> CoarseRows:
    """Copy the rows of all devices to one of them, one behind the other; wait for it."""
    import cupy

    own, level = parts[rank], parts[rank].share.level
    total = sum(part.arcs for part in parts)
    rows = CoarseRows(own.share.memory, tag_after(level), "graph", total, level.sums, 0)
    done = 0
    for part in parts:
        if part is not own:
            for name in ("offsets", "loops"):
                copy(part.arrays[name][part.range], own.arrays[name][part.range])
        copy(part.rows.targets[: part.arcs], rows.targets[done : done + part.arcs])
        copy(part.rows.weights[: part.arcs], rows.weights[done : done + part.arcs])
        done += part.arcs
    cupy.cuda.get_current_stream().synchronize()
    return rows


def complete(kernels: Kernels, parts: Sequence[Part], rank: int, rows: CoarseRows) -> GpuLevel:
    """Return the next level on a device that has all rows."""
    own = parts[rank]
    level, memory, arrays = own.share.level, own.share.memory, dict(own.arrays)
    shift = kernels.get("ranks", "shift_offsets")
    done = 0
    for part in parts:
        offsets = arrays["offsets"][part.range]
        if done and offsets.size:
            blocks = blocks_for(kernels, shift, offsets.size)
            shift((blocks,), (THREADS,), (np.int64(offsets.size), offsets, np.int64(done)))
        done += part.arcs
    arrays["offsets"][own.communities :].fill(done)
    arrays["targets"], arrays["weights"] = rows.targets, rows.weights
    state = own.state.copy()
    state["vertices"], state["arcs"] = own.communities, done
    state["inside"] = sum(int(part.state["inside"]) for part in parts)
    state["max_degree"] = max(int(part.state["max_degree"]) for part in parts)
    return joined(kernels, memory, level, own.numbers, finish(level, state, arrays))
