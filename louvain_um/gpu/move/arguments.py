"""Arguments of moving and refinement: structures by value, the control block, the queue."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.runtime.launch import Struct, layout, pointers
from louvain_um.options import Options
from louvain_um.placement.memory.run_memory import RunMemory

BINS: Final = 7
"""Degree bins (`bins.cuh`)."""

QUEUE_BLOCK: Final = 1 << 16
MOST_QUEUED: Final = 8566
"""Of any 2¹⁶ vertices from a multiple of that on, at most so many are in one of 8 sub-rounds,
whatever the salt: counted for all 2³² hashes, of which a salt permutes such blocks."""

CONTROL: Final = np.dtype(
    [
        ("barrier", np.uint32, 2),
        ("counts", np.uint32, 32 * 7),
        ("work", np.uint32, 32 * 7),
        ("gain", np.int64, 2),
        ("moves", np.uint64, 2),
        ("total_moves", np.uint64),
        ("total_gain", np.int64),
        ("visited", np.uint64),
        ("iterations", np.uint64),
        ("batch_end", np.uint64),
        ("round_begin", np.uint32),
        ("tail", np.uint32),
        ("ended", np.uint64, 128),
        ("moved", np.uint64, 128),
        ("read_again", np.uint64),
    ]
)
"""`Control` of bins.cuh."""

MOVE_RULE: Final = layout(
    **pointers(
        "offsets", "targets", "weights", "degrees", "labels", "totals", "sizes", "queue",
        "proposed",
    ),
    rate=np.float64, total=np.float64, seed=np.uint32, flags=np.uint32,
)  # fmt: skip
"""`MoveRule` of move_rule.cuh."""

SWEEPS: Final = layout(
    n=np.int64, **pointers("start", "awake", "active", "next_active", "control"),
    tolerance=np.int64, seed_salt=np.uint32, cycle=np.uint32, sub_rounds=np.uint32,
    max_iterations=np.uint32, full_sweeps=np.uint32, min_sweeps=np.uint32,
    queued=np.uint32, summed=np.uint32,
)  # fmt: skip
"""`Sweeps` of move.cu."""

REFINE_RULE: Final = layout(
    **pointers(
        "offsets", "targets", "weights", "degrees", "labels", "totals", "refined", "parts",
        "sub_sizes", "queue", "proposed", "weight_to_target",
    ),
    rate=np.float64, seed=np.uint32, salt=np.uint32, sub_rounds=np.uint32, sub_round=np.uint32,
)  # fmt: skip
"""`RefineRule` of refine_rule.cuh."""


def rate_of(options: Options, total: int) -> float:
    """Return the resolution by the total weight, 0 where the weights of a signed graph cancel."""
    return options.resolution / total if total else 0.0


BYTE_SIZES, COLLECT_SIZES, COLLECT_TOTALS = 1, 2, 4
"""Flags of move_rule.cuh."""


def collected(memory: RunMemory) -> int:
    """Return the flags that let blocks collect what they add to arrays in host memory."""
    far = [memory.host_share(name) > 0 for name in ("sizes", "totals")]
    return COLLECT_SIZES * far[0] | COLLECT_TOTALS * far[1]


def move_rule(
    memory: RunMemory, level: GpuLevel, options: Options, total: int, arrays: Any
) -> Struct:
    """Return the rule of moving on a level that has labels and totals, with `MoveArrays`."""
    flags = BYTE_SIZES * level.byte_sizes | collected(memory)
    return Struct(
        MOVE_RULE,
        offsets=level.offsets, targets=level.targets, weights=level.weights_argument,
        degrees=level.degrees, labels=level.labels, totals=level.totals, sizes=arrays.sizes,
        queue=arrays.queue, proposed=arrays.proposed, rate=rate_of(options, total),
        total=float(total), seed=options.seed, flags=flags,
    )  # fmt: skip


def refine_rule(level: GpuLevel, options: Options, total: int, **arrays: Any) -> Struct:
    """Return the rule of refinement on a level that has `refined`."""
    return Struct(
        REFINE_RULE,
        offsets=level.offsets, targets=level.targets, weights=level.weights_argument,
        degrees=level.degrees, labels=level.labels, totals=level.totals, refined=level.refined,
        rate=rate_of(options, total), seed=options.seed,
        salt=rules.salt(level.cycle, rules.REFINE_SWEEP, options.seed),
        sub_rounds=rules.SUB_ROUNDS, sub_round=0, **arrays,
    )  # fmt: skip


def queued_at_once(vertices: int, *, low_scratch: bool) -> int:
    """Return how many sub-rounds of a level are queued at a time."""
    return 1 if low_scratch and vertices > QUEUE_BLOCK else rules.SUB_ROUNDS


def queue_entries(vertices: int, queued: int) -> int:
    """Return the most vertices that are queued at a time."""
    if queued == rules.SUB_ROUNDS:
        return vertices
    return min(vertices, queued * MOST_QUEUED * -(-vertices // QUEUE_BLOCK))


def new_control(memory: RunMemory, name: str = "control") -> Any:
    """Return a zeroed control block; free it by name."""
    control = memory.empty(name, "scratch", CONTROL.itemsize, np.uint8)
    control.data.memset_async(0, control.nbytes)
    return control
