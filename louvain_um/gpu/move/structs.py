"""Arguments of moving and refinement: the structures that their kernels take by value."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.runtime.structs import Struct, layout, pointers
from louvain_um.options import Options

MOVE_RULE: Final = layout(
    **pointers(
        "offsets", "targets", "weights", "degrees", "labels", "totals", "sizes", "queue",
        "proposed",
    ),
    rate=np.float64, total=np.float64, seed=np.uint32, byte_sizes=np.uint32,
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


def move_rule(
    level: GpuLevel, options: Options, total: int, sizes: Any, queue: Any, proposed: Any
) -> Struct:
    """Return the rule of moving on a level that has labels and totals."""
    return Struct(
        MOVE_RULE,
        offsets=level.offsets, targets=level.targets, weights=level.weights_argument,
        degrees=level.degrees, labels=level.labels, totals=level.totals, sizes=sizes, queue=queue,
        proposed=proposed, rate=rate_of(options, total), total=float(total), seed=options.seed,
        byte_sizes=level.byte_sizes,
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
