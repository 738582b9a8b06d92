"""Moving and refining block by block, where a level's arcs are not all on the device.

Launches `vertex_blocks.cu`; the steps are those of `louvain_um.gpu.move.move` and
`louvain_um.gpu.refine.refine`.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.core.hierarchy import MoveStats
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.move.move import MOVE_ARRAYS, Sweep, move_arrays
from louvain_um.gpu.refine.refine import REFINE_ARRAYS, refine_arrays
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.launch import CONTROL, THREADS, HubTables, grid_for, new_control
from louvain_um.options import Options
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.allocator import Allocator
from louvain_um.placement.memory.lru_residency import Residency
from louvain_um.placement.model.cost import FACTORS, tune

NOBODY: Final = 0xFFFFFFFF
SPAN: Final = 8
"""Entries of a span: a class begins at each, the last one says where the part ends."""

PAGE: Final = 4096
WARPS: Final = THREADS // 32
TRIAL: Final = 8 << 20
"""Bytes touched to try how many pages a warp had best ask for."""


@dataclass(slots=True)
class Pages:
    """The blocks of a level.

    Parameters
    ----------
    residency : Residency
        Which of them are on the device.
    touch : Toucher
        How they come, where kernels fault on them.
    begins : uint32[blocks + 1]
        Vertices at which they begin, on the device.
    cuts : list of int
        The same on the host.
    forward : bool
        In which direction the next pass goes.
    """

    residency: Residency
    touch: Toucher
    begins: Any
    cuts: list[int]
    forward: bool = True

    @property
    def blocks(self) -> int:
        """How many there are."""
        return len(self.cuts) - 1

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """First vertex of each block, and the first behind it."""
        return list(pairwise(self.cuts))

    def need_range(self, first: int, last: int) -> None:
        """Bring the arcs of a block, given by its vertices."""
        self.residency.need(self.cuts.index(first))

    def order(self, wanted: list[int]) -> Iterator[tuple[int, int | None]]:
        """Yield blocks, each with the one after it; every second time backwards.

        What was used last is then needed first, and still there.
        """
        path = wanted if self.forward else wanted[::-1]
        self.forward = not self.forward
        # There may be none: no vertex is active.
        yield from zip(path, [*path[1:], None][: len(path)], strict=True)


class Steps:
    """Kernels of a level in pages, with the arguments they share."""

    def __init__(
        self, kernels: Kernels, level: GpuLevel, pages: Pages, rule: np.void, fields: list[Any]
    ) -> None:
        self.kernels = kernels
        self.level = level
        self.pages = pages
        self.rule = rule
        self.fields = fields

    def run(self, name: str, *arguments: Any) -> None:
        """Launch a kernel that looks at vertices."""
        kernel = self.kernels.get("vertex_blocks", name, self.level.types)
        blocks = grid_for(self.kernels, kernel, self.level)
        shared = packed(self.fields)
        kernel((blocks,), (THREADS,), (self.rule, shared, *arguments))

    def run_on(self, block: int, following: int | None, name: str, *arguments: Any) -> None:
        """Bring a block's arcs, then launch a kernel that reads them."""
        self.pages.residency.need(block, following)
        self.run(name, *arguments)


def packed(fields: list[Any]) -> Any:
    """Return a structure of 8-byte fields (arrays, integers, floats) as a kernel's argument."""
    values = [f if isinstance(f, int | float) else 0 if f is None else f.data.ptr for f in fields]
    form = "".join("d" if isinstance(value, float) else "Q" for value in values)
    raw = struct.pack(form, *values)
    return np.frombuffer(raw, np.dtype((np.void, len(raw)))).reshape(())


def move_in_pages(
    kernels: Kernels,
    memory: Allocator,
    options: Options,
    total: int,
    level: GpuLevel,
    pages: Pages,
    low_scratch: bool,
) -> tuple[MoveStats, list[Sweep]]:
    """Sweep until the gain of a sweep falls below the level's tolerance."""
    n, empty = level.vertices, memory.empty
    sizes, queue, proposed, active, next_active = move_arrays(memory, options, level)
    rounds, blocks = rules.SUB_ROUNDS, pages.blocks
    spans = empty("spans", "scratch", rounds * blocks * SPAN, np.uint32)
    present = empty("present", "scratch", rounds * blocks, np.uint8)
    hubs = HubTables(memory, level, low_scratch)
    control = new_control(memory)
    rule = packed(
        [
            level.offsets, level.targets, level.weights, level.degrees, level.labels,
            level.totals, sizes, queue, proposed, float(options.resolution / total), float(total),
            int(options.seed),
        ]
    )  # fmt: skip
    fields = [n, blocks, pages.begins, active, next_active, spans, present, control, 0]
    steps = Steps(kernels, level, pages, rule, fields)
    steps.run("begin_moving", level.start if level.start is not None else np.uint64(0))
    moves, gain, before, iteration = 0, 0, 0, 0
    ended = list[tuple[int, float]]()
    while iteration < rules.MAX_ITERATIONS:
        salt = rules.salt(level.cycle, iteration, options.seed)
        steps.fields[8] = salt | rounds << 32
        present.fill(0)
        steps.run("begin_sweep")
        wakes = rules.prunes(level.start is None, iteration)
        sweep(steps, hubs, present.get().reshape(blocks, rounds), wakes)
        found = control.get().view(CONTROL)[0]
        iteration += 1
        gone = int(found["moves"][0])
        gained = int(found["gain"][0])
        moves, gain = moves + gone, gain + gained
        ended.append((gone, time.perf_counter()))
        if gone == 0 or rules.is_last_sweep(level.number, iteration - 1, gained, before):
            break
        before = gained
        if wakes:
            steps.fields[3], steps.fields[4] = steps.fields[4], steps.fields[3]
    hubs.free()
    memory.free(*MOVE_ARRAYS, "spans", "present", "control")
    last = ended[-1][1]
    sweeps = [Sweep(gone, last - at) for gone, at in ended]
    return MoveStats(iteration, moves, int(found["visited"]), gain), sweeps


def sweep(steps: Steps, hubs: HubTables, present: Any, wakes: bool) -> None:
    """Decide and move, sub-round by sub-round and block by block.

    A sweep that `wakes` also wakes those whom the moved ones left behind.
    """
    before, there = NOBODY, set[int]()
    for number in range(present.shape[1]):
        here = set(np.flatnonzero(present[:, number]).tolist())
        if not here:
            continue
        for block, following in steps.pages.order(sorted(here | there)):
            steps.run_on(
                block, following, "move_block", hubs.argument, np.uint32(block),
                np.uint32(number if block in here else NOBODY),
                np.uint32(before if block in there else NOBODY),
            )  # fmt: skip
        steps.run("end_move_round")
        if wakes:
            before, there = number, here
    for block, following in steps.pages.order(sorted(there)):
        steps.run_on(
            block, following, "move_block", hubs.argument, np.uint32(block),
            np.uint32(NOBODY), np.uint32(before),
        )  # fmt: skip


def refine_in_pages(
    kernels: Kernels,
    memory: Allocator,
    options: Options,
    total: int,
    level: GpuLevel,
    pages: Pages,
    low_scratch: bool,
) -> None:
    """Split communities into connected sub-communities; leaves `refined` on the level."""
    n = level.vertices
    sub_totals, sub_sizes, external_weight, queue, proposed, weight_to_target = refine_arrays(
        memory, level
    )
    rounds, blocks = rules.SUB_ROUNDS, pages.blocks
    spans = memory.empty("spans", "scratch", rounds * blocks * SPAN, np.uint32)
    hubs = HubTables(memory, level, low_scratch)
    control = new_control(memory)
    salt = rules.salt(level.cycle, rules.REFINE_SWEEP, options.seed)
    rule = packed(
        [
            level.offsets, level.targets, level.weights, level.degrees, level.labels,
            level.totals, level.refined, sub_totals, sub_sizes, external_weight, queue, proposed,
            weight_to_target,
            float(options.resolution / total), int(options.seed) | salt << 32, rounds,
        ]
    )  # fmt: skip
    fields = [n, blocks, pages.begins, None, None, spans, None, control, salt | rounds << 32]
    steps = Steps(kernels, level, pages, rule, fields)
    steps.run("begin_refining")
    everything = list(range(blocks))
    for block, following in pages.order(everything):
        steps.run_on(block, following, "weigh_block", np.uint32(block))
    for number in range(rounds):
        for block, following in pages.order(everything):
            steps.run_on(
                block, following, "refine_block", hubs.argument, np.uint32(block),
                np.uint32(number),
            )  # fmt: skip
        steps.run("end_refine_round")
    hubs.free()
    memory.free(*REFINE_ARRAYS, "spans", "control")


class Toucher:
    """Touches every page of a range, as a program that knows nothing of placement would.

    How many pages a warp asks for is tuned, once, on the first range that is large enough.

    Parameters
    ----------
    kernels : Kernels
    memory : Allocator
    factor : int
        Pages a warp to begin with, 1 … 10.
    """

    def __init__(self, kernels: Kernels, memory: Allocator, factor: int) -> None:
        self.kernels = kernels
        self.kernel = kernels.get("vertex_blocks", "touch_pages")
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
        """Touch a range with so many pages a warp."""
        if nbytes <= 0:
            return
        pages = -(-nbytes // PAGE)
        warps = -(-pages // factor)
        blocks = min(self.kernels.resident_blocks(self.kernel, THREADS), -(-warps // WARPS))
        self.kernel(
            (blocks,), (THREADS,),
            (np.uint64(address), np.int64(0), np.int64(nbytes), np.uint32(PAGE),
             np.uint32(factor), self.sink),
        )  # fmt: skip
