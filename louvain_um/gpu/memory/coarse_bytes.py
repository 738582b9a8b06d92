"""Bytes that aggregation takes, and what coarse levels take besides their graphs.

The sizes of coarse levels are not known in advance: they are estimated from the regions that
`coarse_memory.py` reserves for their graphs.
"""

from __future__ import annotations

from typing import Final

from louvain_um.gpu.aggregate.limits import LIMITS, SumTables, chunk_for, slots_of, tables
from louvain_um.gpu.memory.shape import Shape
from louvain_um.gpu.move.hub_tables import hub_bytes, hub_table_sizes

SMALL = 1 << 18
"""Bytes of each group for what is small: tiny levels, partial sums, the rounding of addresses."""


def room_for(shape: Shape, arcs: int, communities: int) -> int:
    """Return the most arcs that a chunk of communities has room for."""
    leiden = shape.method == "leiden"
    chunk = chunk_for(arcs, shape.limits, width=shape.sum_bytes, leiden=leiden)
    # The last community of a chunk may have as many neighbours as there are others.
    return min(chunk + min(communities, shape.filled), arcs)


def at_once_bytes(vertices: int, arcs: int, sums: int) -> int:
    """Return the scratch of aggregating a level by one launch."""
    needed = tables(sums, vertices, vertices, arcs, arcs)
    listed = 16 * vertices + (vertices >> 7) + 4 * (needed.block_bin + needed.hub_bin)
    return listed + (4 + sums) * (arcs + needed.slots) + SMALL // 4


ROUNDING: Final = 1 << 14
"""Bytes of what the kernels of one level count in, and of rounding up each of its arrays."""


def begun_at_once_bytes(n: int, arcs: int, sums: int) -> int:
    """Return the bytes of all arrays of aggregating a level by one launch."""
    return at_once_bytes(n, arcs, sums) + (16 + 2 * sums) * n + (4 + sums) * arcs + ROUNDING


def summing(shape: Shape, communities: int, arcs: int) -> SumTables:
    """Return the bins and tables of aggregating a large level."""
    distinct = min(communities, shape.filled)
    found = tables(shape.sum_bytes, communities, distinct, arcs, arcs)
    if shape.method == "leiden" and shape.kind == "mesh":
        return found._replace(slots=0)  # parts of a mesh are small
    return found._replace(slots=slots_of(found.slots, arcs, shape.limits) if found.slots else 0)


def coarse_community_bytes(shape: Shape) -> tuple[int, int]:
    """Return the most bytes of vertices and communities: of level 1, and of all levels above 0."""
    region, after = shape.coarse_regions
    n, left, sums = region.vertices, min(after.vertices, region.vertices), shape.sum_bytes
    # A finished level keeps its map and, for Leiden, its start labels.
    done = 8 if shape.method == "leiden" else 4
    # The current level also has degrees and totals, sizes or labels; Leiden's sub-communities.
    work = 5 + 4 * sums if shape.method == "leiden" else 4 + 2 * sums
    return (done + work) * n, done * (n + shape.coarse_shares.deep_levels * left) + work * left


def coarse_scratch_bytes(shape: Shape, empty: int) -> int:
    """Return the most scratch of a level above 0, with tables as declared."""
    if shape.at_once:
        return 0
    sums = shape.sum_bytes
    region, after = shape.coarse_regions
    n, k, arcs = region.vertices, min(after.vertices, region.vertices), region.arcs
    moving, adding_tables = coarse_table_bytes(shape)
    moving += 8 * n + n // 4 + (sums * n if shape.method == "leiden" else 0)
    adding = at_once_bytes(min(n, LIMITS.small), min(arcs, LIMITS.small), sums)
    if max(n, arcs) > LIMITS.small:
        room = (4 + sums) * room_for(shape, arcs, k)
        adding = max(adding, 8 * (n + k) + (n >> 7) + room + 4 * (arcs // 300))
    if shape.reaggregates:
        # Level 2 has as many vertices as level 1 at most, and groups those of level 0.
        m, room = shape.vertices, (4 + sums) * room_for(shape, shape.arcs, n)
        adding = max(adding, 12 * m + 8 * n + (m >> 7) + room + 4 * (shape.arcs // 300))
    return max(adding, moving - adding_tables - empty)


def coarse_table_bytes(shape: Shape) -> tuple[int, int]:
    """Return the bytes of tables that moving and aggregation of a coarse level may take."""
    region, after = shape.coarse_regions
    n, arcs, sums = region.vertices, region.arcs, shape.sum_bytes
    if shape.kind == "mesh":
        return 0, 0  # its levels stay even
    hubs = hub_table_sizes(n, arcs, min(shape.filled, arcs), sums, low_scratch=shape.low_scratch)
    moving = hub_bytes(hubs, sums)
    k = min(after.vertices, n)
    large = max(n, arcs) > LIMITS.small
    return moving, (4 + sums) * summing(shape, k, arcs).slots if large else 0
