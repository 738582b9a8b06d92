"""Moving, refining and aggregating level 0, its rows dealt over devices; launches `ranks.cu`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from louvain_um.core import rules
from louvain_um.core.hierarchy import MoveStats
from louvain_um.gpu.aggregate.aggregate import finish, group_vertices, joined
from louvain_um.gpu.aggregate.coarse_rows import CoarseRows, copy
from louvain_um.gpu.aggregate.kernel_arguments import Aggregation
from louvain_um.gpu.aggregate.limits import Limits
from louvain_um.gpu.level import GpuLevel, or_null
from louvain_um.gpu.move.move import MOVE_ARRAYS, Sweep, move_arrays
from louvain_um.gpu.move.structs import move_rule, refine_rule
from louvain_um.gpu.out_of_core.block_steps import NONE, SPAN, VERTEX_BLOCKS
from louvain_um.gpu.out_of_core.partial_rows import PartialRows
from louvain_um.gpu.refine.refine import REFINE_ARRAYS, start_refinement
from louvain_um.gpu.runtime.compile import Kernel, Kernels
from louvain_um.gpu.runtime.launch import CONTROL, THREADS, HubTables, grid_for, new_control
from louvain_um.gpu.runtime.structs import Struct
from louvain_um.options import Options
from louvain_um.placement.memory.allocator import Allocator

LIMITS: Final = Limits(weights8=False)
"""Of aggregating level 0: the devices copy each other's rows, so that all have the same format."""


class Peers(Protocol):
    """What the devices of a run share: values of one process, pointers among them.

    Parameters
    ----------
    rank, size : int
    bounds : list of int
        First vertex of each device's rows, and the number of vertices.
    """

    rank: int
    size: int
    bounds: list[int]

    def share(self, value: Any) -> list[Any]:
        """Return every device's value, by rank."""

    def after_all(self) -> None:
        """Let this device's stream wait for what all devices have launched so far."""

    def finished(self) -> None:
        """Wait until all devices have finished what they have launched so far."""


@dataclass(slots=True)
class Launcher:
    """Launches the kernels of a level on this device."""

    kernels: Kernels
    level: GpuLevel

    def typed(self, name: str, *arguments: Any, source: str = "ranks") -> None:
        """Launch a kernel for the level's types."""
        self._launch(self.kernels.get(source, name, self.level.types), arguments)

    def plain(self, name: str, *arguments: Any) -> None:
        """Launch a kernel that has no types."""
        self._launch(self.kernels.get("ranks", name), arguments)

    def _launch(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        kernel((grid_for(self.kernels, kernel, self.level),), (THREADS,), arguments)


@dataclass(slots=True)
class Block:
    """The steps of a vertex block, which this device's rows are, with the arguments they share."""

    launch: Launcher
    rule: Struct
    shared: Struct

    def run(self, name: str, *arguments: Any) -> None:
        """Launch a kernel of `vertex_blocks.cu`."""
        shared = self.rule.argument, self.shared.argument
        self.launch.typed(name, *shared, *arguments, source="vertex_blocks")


def span_at(spans: Any, sub_round: int, rank: int, ranks: int) -> np.uint64:
    """Return the address of a device's span of a sub-round."""
    return np.uint64(int(spans.data.ptr) + 4 * SPAN * (sub_round * ranks + rank))


def begins_of(memory: Allocator, peers: Peers) -> Any:
    """Return the first vertices of the devices' rows as an array of this device."""
    begins = memory.empty("block_starts", "scratch", peers.size + 1, np.uint32)
    begins.set(np.array(peers.bounds, np.uint32))
    return begins


def move_shared(
    kernels: Kernels,
    memory: Allocator,
    options: Options,
    total: int,
    level: GpuLevel,
    peers: Peers,
) -> tuple[MoveStats, list[Sweep]]:
    """Sweep until the gain of a sweep falls below the level's tolerance."""
    sizes, queue, proposed, active, next_active = move_arrays(memory, options, level)
    rounds, ranks, n = rules.SUB_ROUNDS, peers.size, level.vertices
    spans = memory.empty("spans", "scratch", rounds * ranks * SPAN, np.uint32)
    begins = begins_of(memory, peers)
    hubs = HubTables(memory, level)
    control = new_control(memory)
    rule = move_rule(level, options, total, sizes, queue, proposed)
    shared = Struct(
        VERTEX_BLOCKS,
        n=n, count=ranks, begins=begins, active=active, next_active=next_active, spans=spans,
        present=None, control=control, salt=0, sub_rounds=rounds,
    )  # fmt: skip
    launch = Launcher(kernels, level)
    block = Block(launch, rule, shared)
    block.run("begin_moving", or_null(level.start))
    others = peers.share((queue, proposed, spans, next_active))
    theirs = [move_rule(level, options, total, sizes, q, p) for q, p, _, _ in others]
    vertices, own = np.int64(n), np.uint32(peers.rank)
    moves, gain, before, iteration = 0, 0, 0, 0
    ended = list[tuple[int, float]]()
    while iteration < rules.MAX_ITERATIONS:
        shared.set(salt=rules.salt(level.cycle, iteration, options.seed))
        launch.plain("begin_own_sweep", vertices, next_active, control)
        prunes = rules.prunes(level.start is None, iteration)
        moved = NONE
        for r in range(rounds):
            block.run("move_block", hubs.argument, own, np.uint32(r), np.uint32(moved))
            peers.after_all()
            for rank, (_, _, where, _) in enumerate(others):
                span = span_at(where, r, rank, ranks)
                launch.typed("apply_span", theirs[rank].argument, span)
            moved = r if prunes else NONE
        if prunes:
            block.run("move_block", hubs.argument, own, np.uint32(NONE), np.uint32(moved))
            peers.after_all()
            for rank, (_, _, _, flags) in enumerate(others):
                there, first = np.uint64(int(flags.data.ptr)), np.uint32(rank == 0)
                launch.plain("merge_active", vertices, active, there, first)
        # Waits for this device, which has read what it needs of the others' memory.
        found = control.get().view(CONTROL)[0]
        counts = peers.share([int(found[name][0]) for name in ("moves", "gain")])
        sweep_moves, sweep_gain = (sum(column) for column in zip(*counts, strict=True))
        iteration += 1
        moves, gain = moves + sweep_moves, gain + sweep_gain
        ended.append((sweep_moves, time.perf_counter()))
        if sweep_moves == 0 or rules.is_last_sweep(level.number, iteration - 1, sweep_gain, before):
            break
        before = sweep_gain
    visited = sum(peers.share(int(found["visited"])))
    hubs.free()
    memory.free(*MOVE_ARRAYS, "spans", "control", "block_starts")
    last = ended[-1][1]
    sweeps = [Sweep(count, last - at) for count, at in ended]
    return MoveStats(iteration, moves, visited, gain), sweeps


def refine_shared(
    kernels: Kernels,
    memory: Allocator,
    options: Options,
    total: int,
    level: GpuLevel,
    peers: Peers,
) -> None:
    """Split communities into connected sub-communities; leaves `refined` on the level."""
    rule = start_refinement(memory, level, options, total)
    rounds, ranks = rules.SUB_ROUNDS, peers.size
    spans = memory.empty("spans", "scratch", rounds * ranks * SPAN, np.uint32)
    begins = begins_of(memory, peers)
    hubs = HubTables(memory, level)
    control = new_control(memory)
    shared = Struct(
        VERTEX_BLOCKS,
        n=level.vertices, count=ranks, begins=begins, active=None, next_active=None,
        spans=spans, present=None, control=control,
        salt=rules.salt(level.cycle, rules.REFINE_SWEEP, options.seed), sub_rounds=rounds,
    )  # fmt: skip
    launch = Launcher(kernels, level)
    block = Block(launch, rule, shared)
    live, own = memory.live, np.uint32(peers.rank)
    block.run("begin_refining")
    block.run("weigh_block", own)
    names = ("queue", "proposed", "weight_to_target")
    others = peers.share((*(live[name] for name in names), spans, live["external_weight"]))
    peers.finished()
    external = live["external_weight"]
    for rank, (*_, weights) in enumerate(others):
        if rank != peers.rank:
            first, last = peers.bounds[rank : rank + 2]
            copy(weights[first:last], external[first:last])
    peers.finished()
    mine = {
        "sub_totals": live["refined_totals"],
        "sub_sizes": live["refined_sizes"],
        "external_weight": external,
    }
    theirs = [
        refine_rule(level, options, total, **mine, queue=q, proposed=p, weight_to_target=w)
        for q, p, w, _, _ in others
    ]
    for r in range(rounds):
        block.run("refine_block", hubs.argument, own, np.uint32(r))
        peers.after_all()
        for rank, (_, _, _, where, _) in enumerate(others):
            span = span_at(where, r, rank, ranks)
            launch.typed("join_span", theirs[rank].argument, span)
    peers.finished()
    hubs.free()
    memory.free(*REFINE_ARRAYS, "spans", "control", "block_starts")


def aggregate_shared(
    kernels: Kernels, memory: Allocator, level: GpuLevel, peers: Peers
) -> GpuLevel:
    """Return the next level, whole on every device: the sum of the devices' partial rows."""
    numbers = level.labels if level.refined is None else level.refined
    aggregation = Aggregation(kernels, memory, level)
    aggregation.set(numbers=numbers, map=numbers, label_bound=level.vertices)
    arrays, k = group_vertices(aggregation, level)
    sums = aggregation.read()
    total = int(sums["total"])
    aggregation.close()
    first, last = peers.bounds[peers.rank : peers.rank + 2]
    partial = PartialRows(kernels, memory, level, numbers, k, total, LIMITS, [(first, last)])
    partial.add(first, last, lambda first, last: None)
    absorb(kernels, memory, level, partial, peers)
    rows, state = partial.finish(arrays["offsets"], arrays["loops"])
    arrays["targets"], arrays["weights"] = rows.cut(int(state["arcs"]))
    state["vertices"], state["squares"] = k, sums["squares"]
    return joined(kernels, memory, level, numbers, finish(level, state, arrays))


def absorb(
    kernels: Kernels, memory: Allocator, level: GpuLevel, partial: PartialRows, peers: Peers
) -> None:
    """Replace this device's partial rows by those of all devices."""
    targets, weights = partial.rows.cut(partial.arcs)
    parts = peers.share(
        (partial.used, partial.arcs, partial.names, partial.offsets, targets, weights)
    )
    peers.finished()
    used, arcs = (sum(part[k] for part in parts) for k in (0, 1))
    names = memory.empty("all_names", "scratch", used, np.uint32)
    offsets = memory.empty("all_offsets", "scratch", used + 1, np.int64)
    offsets.data.memset_async(0, offsets.itemsize)
    rows = CoarseRows(memory, "all", "graph", arcs, level.sums, 0)
    row, arc = 0, 0
    launch = Launcher(kernels, level)
    for count, size, their_names, their_offsets, their_targets, their_weights in parts:
        copy(their_names[:count], names[row : row + count])
        copy(their_offsets[1 : count + 1], offsets[row + 1 : row + count + 1])
        copy(their_targets[:size], rows.targets[arc : arc + size])
        copy(their_weights[:size], rows.weights[arc : arc + size])
        there = np.uint64(int(offsets.data.ptr) + 8 * (row + 1))
        launch.plain("shift_offsets", np.int64(count), there, np.int64(arc))
        row, arc = row + count, arc + size
    peers.finished()
    partial.replace(names, offsets, rows, used, ("all_names", "all_offsets"))
