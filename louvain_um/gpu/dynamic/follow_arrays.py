"""What kernels that follow a changing graph take and leave (`follow.cu`), and the bytes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from louvain_um.gpu.dynamic.batch_arrays import long_rows
from louvain_um.gpu.move.arguments import CONTROL
from louvain_um.gpu.move.hub_tables import HubSizes, hub_bytes, hub_table_sizes
from louvain_um.gpu.runtime.launch import layout, pointers

FOLLOW: Final = layout(
    n=np.int64, n_before=np.int64,
    **pointers("spans", "targets", "weights", "degrees", "alive", "alive_before"),
    edges=np.int64,
    **pointers(
        "u", "v", "before", "after", "names", "whole", "labels", "next_names", "sizes", "masses",
        "sizes_before", "masses_before", "members", "totals",
        "marks", "flags", "touched", "first", "long_rows", "counts",
    ),
)  # fmt: skip
"""`Follow` of follow.cuh."""

COUNTS: Final = layout(
    barrier=np.uint64, inside=np.int64,
    **dict.fromkeys(
        ("turnover", "changed", "loosened", "unnamed", "flagged", "checked", "marked", "split"),
        np.uint64,
    ),
    squares=(np.uint64, 3),
    **dict.fromkeys(("communities", "differing", "listed", "long_rows"), np.uint64),
)  # fmt: skip
"""`FollowCounts` of follow.cuh."""

DIFFERING: Final = layout(
    **dict.fromkeys(
        (
            "vertex", "name", "name_before", "living", "size", "size_before", "old_size",
            "old_size_before", "members", "unused",
        ),
        np.uint32,
    ),
    **dict.fromkeys(("degree", "mass", "mass_before", "old_mass", "old_mass_before"), np.uint64),
)  # fmt: skip
"""`Differing` of follow.cu."""

STATE: Final = {"names": np.uint32, "sizes": np.uint32, "masses": np.uint64}
"""Arrays of a partition, one entry per vertex or name.

There are three of each while a renewal, an audit or a split compares what it found with the moves
of the batch, and the partition before that is still known.
"""

KEPT: Final = {"touched": np.uint64, "alive_before": np.uint8}
"""What else is kept between batches, one entry per vertex."""

MOST_PENDING: Final = 8
"""Batches whose ids wait to be asked for; each holds the names of all vertices."""

MOST_SINGLE: Final = 1 << 15
"""Vertices that are listed each by itself; more are sorted by their communities before and after,
which costs a launch or two per column, and listed once for each pair of these."""

MOST_LISTED: Final = 32
"""Bytes per vertex of lists of renamed vertices that wait on the device; the others do on the host.
"""

SCRATCH: Final = {
    **dict.fromkeys(("whole", "labels", "first", "queue", "proposed", "move_sizes"), np.uint32),
    "totals": np.uint64,
    **dict.fromkeys(("marks", "flags", "active", "next_active"), np.uint8),
}
"""What a batch needs while it is followed, one entry per vertex."""


def hub_sizes(vertices: int, arcs: int, longest: int) -> HubSizes:
    """Return what hubs take, for sums of 64 bits."""
    return hub_table_sizes(vertices, arcs, longest, 8, low_scratch=True)


def follow_bytes(vertices: int, arcs: int, longest: int) -> dict[str, int]:
    """Return the bytes that following takes on a device, besides the graph and runs on it."""

    def each(types: Mapping[str, Any]) -> int:
        return sum(np.dtype(kind).itemsize for kind in types.values())

    return {
        # `touched` is copied, so that an error leaves it as it was; a renewal has a start. Ids of
        # names, and of vertices when these are asked for.
        "communities": vertices * (3 * each(STATE) + each(KEPT) + 8 + 4 + 2 * 8),
        "waiting": vertices * (4 * MOST_PENDING + MOST_LISTED),
        # A vertex and a key for each that is renamed, before they are grouped.
        "scratch": vertices * (each(SCRATCH) + 4 + 8)
        + 3 * min(vertices, MOST_SINGLE) * DIFFERING.itemsize
        + 16 * long_rows(arcs)
        + COUNTS.itemsize
        + CONTROL.itemsize,
        "hash": hub_bytes(hub_sizes(vertices, arcs, longest), 8),
    }
