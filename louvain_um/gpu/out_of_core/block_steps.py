"""Moving and refinement block by block, where a level's arcs are not all on the device.

Launches `vertex_blocks.cu`; the steps are those of `louvain_um.gpu.move.move` and
`louvain_um.gpu.refine.refine`.
"""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.core.hierarchy import MoveStats
from louvain_um.gpu.level import DeviceRun, GpuLevel, or_null
from louvain_um.gpu.move.arguments import CONTROL, move_rule, new_control
from louvain_um.gpu.move.hub_tables import HubTables
from louvain_um.gpu.move.move import EndedSweep, MoveArrays, move_arrays
from louvain_um.gpu.out_of_core.vertex_blocks import VertexBlocks
from louvain_um.gpu.refine.refine import REFINE_ARRAYS, start_refinement
from louvain_um.gpu.runtime.launch import Launcher
from louvain_um.gpu.runtime.structs import Struct, layout, pointers

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
