"""The arrays of a GPU run, declared once: size, stages and accesses of each.

Sizes of level 0 are exact. Those of coarse levels are estimates: each level gets a memory region
(`shape.py`), and what exceeds it is allocated outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from louvain_um.core.array_spec import STAGES, ArraySpec, Role, Stage, Use, identity
from louvain_um.core.ledger import GROUPS, Group
from louvain_um.core.rules import CYCLES, SUB_ROUNDS
from louvain_um.gpu.aggregate.limits import range_shift_for, weights_for
from louvain_um.gpu.memory import packed
from louvain_um.gpu.memory.packed import PACKED_ARCS, heads_of
from louvain_um.gpu.memory.shape import (
    SMALL,
    CoarseRegion,
    Shape,
    at_once_bytes,
    coarse_community_bytes,
    coarse_scratch_bytes,
    coarse_table_bytes,
    room_for,
    summing,
)
from louvain_um.gpu.move.arguments import CONTROL, queue_entries, queued_at_once
from louvain_um.gpu.move.hub_tables import HUB_CHOICE, PARTITION_ARCS, hub_table_sizes
from louvain_um.placement.machine.profiles import rates

SORTING = 64 << 10
"""Bytes that CuPy's sort may take besides 9 for every 8 that it sorts."""

VISITED, READ_AGAIN, LOOKED_UP = rates("accesses").values()
"""How often, by arc of level 0, moving visits it in all cycles together, typically; reads it for
each visit: rows of moved vertices are read once more; and aggregation looks up the source of an
arc, where that vertex' arcs begin, and its target's community."""

LEAST_BLOCK = 1 << 19
"""Bytes of a block of level 0's arcs, at least: there is room for four, or for four MiB."""

SUMMING: Final[tuple[Role, ...]] = ("chunk", "hash_keys", "hash_sums")
"""Roles of what sums a chunk's arcs: as large as there is room, or as communities need."""

ALWAYS: tuple[Stage, ...] = STAGES
COARSE_STAGES: tuple[Stage, ...] = ("aggregate", "coarse")


def declare(shape: Shape, visited: float = VISITED) -> tuple[ArraySpec, ...]:
    """Return every array that a run allocates."""
    rows = [*_graph(shape, visited), *_community(shape, visited), *_scratch(shape, visited)]
    rows += _extended(shape, visited)
    small = (_array(f"small_{group}", group, 1, SMALL, ALWAYS) for group in GROUPS)
    arrays = (*rows, *_tables(shape, visited), *small)
    if shape.at_once:
        return arrays
    return tuple(replace(a, estimated=True) if _of_coarse_levels(a) else a for a in arrays)


def _of_coarse_levels(array: ArraySpec) -> bool:
    """Whether an array's size depends on what a run finds: on communities, or on coarse levels."""
    summing = array.stages == ("aggregate",) and array.role in SUMMING
    return bool(array.level) or array.name.startswith("coarse_") or summing


def declare_out_of_core(shape: Shape) -> tuple[ArraySpec, ...]:
    """Return the additional arrays of an out-of-core run, and those that are larger then."""
    region, rounds = shape.coarse_regions[0], 8 * SUB_ROUNDS
    k = 2 * region.vertices
    itemsize, size = _weights(shape, region)
    blocks = -(-(4 + shape.weight_bytes) * shape.arcs // LEAST_BLOCK) + 2
    once: tuple[Stage, ...] = ("aggregate",)
    more = sum(region.arcs for region in shape.out_of_core_regions) - sum(
        region.arcs for region in shape.coarse_regions
    )
    return (
        _array("coarse_rows", "graph", 4 + itemsize, more, ("coarse",)),
        _array("partial_offsets", "scratch", 8, k + 1, once),
        _array("partial_names", "scratch", 4, k, once),
        _array("targets.partial", "graph", 4, region.arcs, once),
        _array("weights.partial", "graph", itemsize, size, once),
        _array("aggregate_ranks", "scratch", 4, region.vertices + 1, once),
        _array("aggregate_new_offsets", "scratch", 8, region.vertices + 1, once),
        _array("block_starts", "scratch", 4, blocks, ALWAYS),
        _array("spans", "scratch", 4, rounds * blocks, ("move", "refine")),
        _array("present", "scratch", 1, rounds * blocks, ("move",)),
        *_queues(shape, VISITED, shape.vertices),
    )


def _graph(shape: Shape, visited: float) -> Iterator[ArraySpec]:
    """Yield the graphs of level 0 and of coarse levels."""
    n, arcs = shape.vertices, shape.arcs
    seen = visited * arcs
    passes: dict[tuple[Stage, Use], float] = {
        ("move", "stream"): READ_AGAIN * seen,
        ("aggregate", "stream"): CYCLES[shape.method] * arcs,
    }
    if shape.method == "leiden":
        passes["refine", "stream"] = 2 * arcs
    if shape.reaggregates:
        passes["coarse", "stream"] = CYCLES[shape.method] * arcs
    rows: dict[tuple[Stage, Use], float] = {
        ("move", "gather"): visited * n,
        ("aggregate", "gather"): LOOKED_UP * CYCLES[shape.method] * arcs,
    }
    if shape.method == "leiden":
        # Rows are weighed, and decided for while their vertices are alone.
        rows["refine", "gather"] = 2 * CYCLES[shape.method] * n
    yield _array("offsets.0", "graph", 4 if shape.offsets32 else 8, n + 1, ALWAYS, rows)
    if shape.compact:
        heads = heads_of(n, arcs, shape.target_bytes)
        yield _array("heads.0", "graph", 8, heads, ALWAYS, small=True)
        width, by_length = shape.packed_bytes, shape.sorted_rows
        yield _array("targets.0", "graph", width, arcs + PACKED_ARCS, ALWAYS, passes, by_length)
        if shape.weight_bytes:
            yield _array("weights.0", "graph", 2, arcs, ALWAYS, passes, by_length)
    else:
        yield _array("targets.0", "graph", 4, arcs, ALWAYS, passes)
        if shape.weight_bytes:
            yield _array("weights.0", "graph", shape.weight_bytes, arcs, ALWAYS, passes)
    if shape.loops:
        yield _array("loops.0", "graph", shape.sum_bytes, n, ALWAYS)
    for number, region in enumerate(shape.coarse_regions, start=1):
        yield from _coarse_graph(shape, number, region, visited)


def _coarse_graph(
    shape: Shape, number: int, region: CoarseRegion, visited: float
) -> Iterator[ArraySpec]:
    """Yield the graph of level 1 and every second one after it, or of level 2 and so on."""
    stages: tuple[Stage, ...] = COARSE_STAGES if number == 1 else ("coarse",)
    kept, rows, sums = region.arcs, region.vertices, shape.sum_bytes
    later: dict[tuple[Stage, Use], float] = {("coarse", "stream"): visited * kept}
    # Every run of arcs that is written looks for its row.
    searched: dict[tuple[Stage, Use], float] = {("coarse", "gather"): visited * rows}
    added: dict[tuple[Stage, Use], float] = {}
    if number == 1:
        later["aggregate", "stream"] = searched["aggregate", "gather"] = kept
        added["aggregate", "atomic"] = shape.vertices
    weights = _weights(shape, region)
    yield _array(f"offsets.{number}", "graph", 8, rows + 1, stages, searched)
    yield _array(f"targets.{number}", "graph", 4, kept, stages, later)
    yield _array(f"weights.{number}", "graph", *weights, stages, later)
    yield _array(f"loops.{number}", "graph", sums, rows, stages, added)


def _weights(shape: Shape, region: CoarseRegion) -> tuple[int, int]:
    """Return bytes of an element, and elements, of a region's weights."""
    sums, total, slots, width = shape.sum_bytes, shape.total_weight, 0, 0
    if not shape.weight_bytes:  # an arc weighs 1
        total = shape.arcs + 2 * shape.vertices * shape.loops
    if total is not None and not shape.extended:
        widths = packed.widths(weighted=shape.weight_bytes > 0)
        width, slots = weights_for(total, region.arcs, sums, widths)
    if not slots:
        return sums, max(region.arcs, region.wide_weights)
    head = packed.head_bytes(slots) // width
    return width, max(head + region.arcs, sums // width * region.wide_weights)


def _community(shape: Shape, visited: float) -> Iterator[ArraySpec]:
    """Yield labels, degrees and sums of communities."""
    n, sums = shape.vertices, shape.sum_bytes
    seen = visited * shape.arcs
    leiden = shape.method == "leiden"
    region, after = shape.coarse_regions
    moving: tuple[Stage, ...] = ("move", "refine", "aggregate")
    if not leiden:
        moving = (*moving, "coarse", "fetch")
    if shape.weight_bytes or not shape.compact:
        yield _array("degrees.0", "community", sums, n, ALWAYS, {("move", "gather"): visited * n})
    mapped = LOOKED_UP * CYCLES[shape.method] * shape.arcs
    labels: dict[tuple[Stage, Use], float] = {("move", "gather"): seen}
    if leiden:
        labels["refine", "gather"] = 2 * shape.arcs
        labels["aggregate", "stream"] = n
    else:
        labels["aggregate", "gather"] = mapped
    yield _array("labels", "community", 4, n, moving, labels)
    # What a level begins with is there until a later one is better; Leiden adds it up, too.
    begun: dict[tuple[Stage, Use], float] = {("move", "stream"): 3 * n}
    if leiden:
        begun["aggregate", "gather"] = n
    yield _array("start", "community", 4, n, ("move", "refine", "aggregate"), begun)
    totals: dict[tuple[Stage, Use], float] = {("move", "gather"): seen / 2, ("move", "atomic"): n}
    if leiden:
        totals["refine", "gather"] = n
    yield _array("totals", "community", sums, n, ("move", "refine"), totals)
    # A move changes two; those of single vertices that would swap places are looked up.
    looked: dict[tuple[Stage, Use], float] = {("move", "gather"): n, ("move", "atomic"): 2 * n}
    width = 1 if shape.byte_sizes else 4
    yield _array("sizes", "community", width, -(-n // 4) * 4, ("move",), looked)
    if leiden:
        joined: dict[tuple[Stage, Use], float] = {("refine", "gather"): shape.arcs}
        refined: dict[tuple[Stage, Use], float] = {**joined, ("aggregate", "gather"): mapped}
        yield _array("refined", "community", 4, n, ("refine", *COARSE_STAGES, "fetch"), refined)
        # With the weight of each sub-community to the rest of its community next to its total.
        yield _array("refined_totals", "community", 2 * sums, n, ("refine",), joined)
        yield _array("refined_sizes", "community", 1, n, ("refine",), joined)
    added: dict[tuple[Stage, Use], float] = {("aggregate", "atomic"): n}
    yield _array("degrees.1", "community", sums, region.vertices, COARSE_STAGES, added)
    yield _array("degrees.2", "community", sums, after.vertices, ("fetch",))
    first, deep = coarse_community_bytes(shape)
    yield _array("coarse_communities", "community", 1, first - sums * region.vertices, ("coarse",))
    # On the last levels graph and scratch are negligible; maps live until labels are fetched.
    rest = deep - 4 * n - sums * after.vertices
    yield _array("coarse_maps", "community", 1, max(0, rest), ("fetch",))
    yield _array("input_labels", "community", 4, n, ("fetch",))


def _scratch(shape: Shape, visited: float) -> Iterator[ArraySpec]:
    """Yield what lives no longer than a step."""
    n = shape.vertices
    queued = queued_at_once(n, low_scratch=shape.low_scratch)
    yield from _queues(shape, visited, queue_entries(n, queued))
    # Each sweep goes over the flags twice, once more for each sub-round that is queued alone.
    scans = 2 * SUB_ROUNDS // queued
    again = (READ_AGAIN - 1) * visited * shape.arcs
    gone_over: dict[tuple[Stage, Use], float] = {
        ("move", "stream"): scans * visited * n / 32,
        ("move", "gather"): again,  # whether a neighbour is queued anyway
    }
    yield _array("active", "scratch", 4, -(-n // 32), ("move",), gone_over)
    activated: dict[tuple[Stage, Use], float] = {("move", "gather"): visited * n + again}
    yield _array("next_active", "scratch", 4, -(-n // 32), ("move",), activated)
    yield _array("control", "scratch", 1, CONTROL.itemsize, ("move",), small=True)
    yield _array("refine_control", "scratch", 1, CONTROL.itemsize, ("refine",), small=True)
    k = shape.communities
    yield from _aggregation(shape)
    yield _array("sizes_by_label", "scratch", 4, n, ("fetch",))
    yield _array("first_by_label", "scratch", 4, n, ("fetch",))
    yield _array("community_keys", "scratch", 8, k, ("fetch",))
    yield _array("sort_workspace", "scratch", 1, 9 * k + SORTING, ("fetch",))
    empty = sum(array.nbytes for array in _coarse_graph(shape, 2, shape.coarse_regions[1], visited))
    yield _array("coarse_scratch", "scratch", 1, coarse_scratch_bytes(shape, empty), ("coarse",))


def _queues(shape: Shape, visited: float, entries: int) -> Iterator[ArraySpec]:
    """Yield the queue of vertices that decide, and what is noted for each of them."""
    queued: dict[tuple[Stage, Use], float] = {("move", "gather"): visited * shape.vertices}
    yield _array("queue", "scratch", 4, entries, ("move", "refine"), queued)
    yield _array("proposed", "scratch", 4, entries, ("move", "refine"), queued)
    if shape.method == "leiden":
        yield _array("weight_to_target", "scratch", shape.sum_bytes, entries, ("refine",))


def _extended(shape: Shape, visited: float) -> Iterator[ArraySpec]:
    """Yield what the extended rule adds: masses of all levels, and sums by community."""
    n = shape.vertices
    every = n + sum(region.vertices for region in shape.coarse_regions)
    seen: dict[tuple[Stage, Use], float] = {("move", "gather"): visited * shape.arcs / 2}
    for used, name in (
        (shape.second, "second"),
        (shape.members, "members"),
        (shape.fixed, "fixed"),
    ):
        if used:
            yield _array(name, "community", 8, every, ALWAYS, {("move", "gather"): visited * n})
    if shape.second:
        yield _array("second_totals", "community", 8, n, ("move", "refine"), seen)
        if shape.method == "leiden":
            yield _array("refined_seconds", "community", 8, n, ("refine",))
    if shape.members:
        yield _array("member_totals", "scratch", 8, n, ("move",), seen)
        for name, width in (("gains", 8), ("incoming", 8), ("champions", 4)):
            yield _array(name, "scratch", width, n, ("move",))
    if shape.fixed:
        yield _array("pinned", "scratch", 1, n, ("move",))


def _aggregation(shape: Shape) -> Iterator[ArraySpec]:
    """Yield the scratch of aggregating level 0."""
    n, sums, k = shape.vertices, shape.sum_bytes, shape.communities
    stages: tuple[Stage, ...] = ("aggregate",)
    if shape.at_once:
        yield _array("aggregate", "scratch", 1, at_once_bytes(n, shape.arcs, sums), stages)
        return
    looked_up = LOOKED_UP * CYCLES[shape.method] * shape.arcs
    found: dict[tuple[Stage, Use], float] = {("aggregate", "gather"): 2 * n + looked_up}
    ranked: dict[tuple[Stage, Use], float] = {("aggregate", "gather"): 2 * n}
    for name, size in (("members", n), ("low", n)):
        yield _array(f"aggregate_{name}", "scratch", 4, size + 1, stages, found)
    for name, size in (("starts", k), ("rooms", k)):
        yield _array(f"aggregate_{name}", "scratch", 4, size + 1, stages, ranked)
    runs = (n >> range_shift_for(n if shape.max_degree is None else shape.max_degree)) + 1
    yield _array("aggregate_whole", "scratch", 8, runs, stages, found)
    room = room_for(shape, shape.arcs, k)
    written: dict[tuple[Stage, Use], float] = {("aggregate", "stream"): shape.arcs}
    for name, width in (("targets", 4), ("weights", sums)):
        yield _array(f"aggregate_chunk_{name}", "scratch", width, room, stages, written)


def _tables(shape: Shape, visited: float) -> Iterator[ArraySpec]:
    """Yield hash tables in global memory: those of hubs, vertices and communities."""
    max_degree = shape.arcs if shape.max_degree is None else shape.max_degree
    if shape.max_degree is None:
        max_degree = min(max_degree, max(1, shape.vertices // 4))
    size = shape.vertices, shape.arcs, max_degree, shape.sum_bytes
    hubs = hub_table_sizes(*size, low_scratch=shape.low_scratch, hub_arcs=shape.hub_arcs)
    used: dict[tuple[Stage, Use], float] = {("move", "atomic"): visited * shape.arcs / 8}
    stages: tuple[Stage, ...] = ("move", "refine")
    yield _array("hub_keys", "hash", 4, hubs.slots, stages, used)
    yield _array("hub_sums", "hash", shape.sum_bytes, hubs.slots, stages, used)
    yield _array("hub_slots", "hash", 8, hubs.hubs + 1, stages)
    yield _array("hub_fills", "hash", 4, hubs.hubs + 1, stages)
    yield _array("hub_drains", "hash", 4, hubs.hubs + 1, stages)
    yield _array("hub_own_weights", "hash", shape.sum_bytes, hubs.hubs + 1, stages)
    choices = hubs.slots // PARTITION_ARCS + hubs.hubs
    yield _array("hub_choices", "hash", HUB_CHOICE.itemsize, choices, stages)
    moving, adding = coarse_table_bytes(shape)
    yield _array("coarse_tables", "hash", 1, adding, ("coarse",))
    # In a shared arena they use the second region's memory; else this is what they need,
    # when nothing else is there.
    yield _array("coarse_hubs", "hash", 1, moving, ("load",))
    if shape.at_once:
        return
    needed = summing(shape, shape.communities, shape.arcs)
    filled: dict[tuple[Stage, Use], float] = {("aggregate", "atomic"): shape.arcs / 4}
    yield _array("aggregate_keys", "hash", 4, needed.slots, ("aggregate",), filled)
    yield _array("aggregate_sums", "hash", shape.sum_bytes, needed.slots, ("aggregate",), filled)
    yield _array("aggregate_block_bin", "scratch", 4, needed.block_bin, ("aggregate",))
    yield _array("aggregate_hub_bin", "scratch", 4, needed.hub_bin, ("aggregate",))


def _array(
    name: str,
    group: Group,
    itemsize: float,
    size: int,
    stages: tuple[Stage, ...],
    accesses: dict[tuple[Stage, Use], float] | None = None,
    by_length: bool = False,
    *,
    small: bool = False,
) -> ArraySpec:
    return ArraySpec(
        **identity(name),
        group=group,
        itemsize=itemsize,
        size=size,
        stages=stages,
        accesses=accesses or {},
        device_only=small,
        by_length=by_length,
    )
