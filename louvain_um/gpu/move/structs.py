"""C structures that kernels take by value: their layouts, and how they are filled.

`static_assert` on the device and `tests/gpu_host/test_mirrors.py` hold both sides equal.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.gpu.level import GpuLevel
from louvain_um.options import Options

POINTER: Final = np.uint64
NUMBERS: Final = (int, float, np.generic)


def layout(**fields: Any) -> np.dtype[Any]:
    """Return the layout that a C compiler gives a structure of these fields.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.gpu.move.structs import layout
    >>> layout(seed=np.uint32, rate=np.float64).fields["rate"][1]
    8
    """
    return np.dtype(list(fields.items()), align=True)


def pointers(*names: str) -> dict[str, Any]:
    """Return fields that are pointers."""
    return dict.fromkeys(names, POINTER)


MOVE_RULE: Final = layout(
    **pointers(
        "offsets", "targets", "weights", "degrees", "labels", "totals", "sizes", "queue",
        "proposed",
    ),
    rate=np.float64, total=np.float64, seed=np.uint32,
)  # fmt: skip
"""`MoveRule` of move_rule.cuh."""

SWEEPS: Final = layout(
    n=np.int64, **pointers("start", "active", "next_active", "control"), tolerance=np.int64,
    seed_salt=np.uint32, cycle=np.uint32, sub_rounds=np.uint32, max_iterations=np.uint32,
    full_sweeps=np.uint32, min_sweeps=np.uint32,
)  # fmt: skip
"""`Sweeps` of move.cu."""

REFINE_RULE: Final = layout(
    **pointers(
        "offsets", "targets", "weights", "degrees", "labels", "totals", "refined", "sub_totals",
        "sub_sizes", "external_weight", "queue", "proposed", "weight_to_target",
    ),
    rate=np.float64, seed=np.uint32, salt=np.uint32, sub_rounds=np.uint32, sub_round=np.uint32,
)  # fmt: skip
"""`RefineRule` of refine_rule.cuh."""


class Struct:
    """A structure that kernels take by value.

    Parameters
    ----------
    layout : dtype
    values
        One per field: a number, an array on the device for its address, or None for null.

    Attributes
    ----------
    argument : void[()]
        What a kernel takes. It is plain bytes, because CuPy would look at every field of a
        structured value at each launch.
    """

    __slots__ = ("argument", "record")

    def __init__(self, layout: np.dtype[Any], **values: Any) -> None:
        if values.keys() != set(layout.names or ()):
            raise TypeError(f"fields {sorted(values)} do not fit {layout.names}")
        self.record = np.zeros(1, layout)
        self.argument = self.record.view(np.dtype((np.void, layout.itemsize))).reshape(())
        self.set(**values)

    def set(self, **values: Any) -> None:
        """Set some fields; the next launch takes them."""
        for name, value in values.items():
            self.record[name] = value if isinstance(value, NUMBERS) else address(value)


def address(array: Any) -> int:
    """Return the address of an array on the device; 0 for None."""
    return 0 if array is None else int(array.data.ptr)


def move_rule(
    level: GpuLevel, options: Options, total: int, sizes: Any, queue: Any, proposed: Any
) -> Struct:
    """Return the rule of moving on a level that has labels and totals."""
    return Struct(
        MOVE_RULE,
        offsets=level.offsets, targets=level.targets, weights=level.weights,
        degrees=level.degrees, labels=level.labels, totals=level.totals, sizes=sizes, queue=queue,
        proposed=proposed, rate=options.resolution / total, total=float(total), seed=options.seed,
    )  # fmt: skip


def refine_rule(level: GpuLevel, options: Options, total: int, **arrays: Any) -> Struct:
    """Return the rule of refinement on a level that has `refined`."""
    return Struct(
        REFINE_RULE,
        offsets=level.offsets, targets=level.targets, weights=level.weights,
        degrees=level.degrees, labels=level.labels, totals=level.totals, refined=level.refined,
        rate=options.resolution / total, seed=options.seed,
        salt=rules.salt(level.cycle, rules.REFINE_SWEEP, options.seed),
        sub_rounds=rules.SUB_ROUNDS, sub_round=0, **arrays,
    )  # fmt: skip
