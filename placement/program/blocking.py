"""Kernel blocking and fewer launches, for any kernel: after Hope, Nag and Qasem, 4.3 and 4.4."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.placement.hardware import WARP
from louvain_um.placement.model.cost import FACTORS, launches
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program.program_plan import ProgramPlan

HEADER: Final = (Path(__file__).parent / "blocked.cuh").read_text(encoding="utf-8")
"""CUDA C++ that defines ``blocked_for(index, count, item_bytes, pages_per_warp)``, to be put before
a kernel's own code; its comment says what the loop does."""


@dataclass(frozen=True, slots=True)
class BlockingCurve:
    """Seconds by pages per warp, all of them measured; `best` is the factor to use.

    Examples
    --------
    >>> from louvain_um.placement.program import tune_blocking
    >>> curve = tune_blocking(lambda pages: abs(pages - 4) + 1.0)
    >>> curve.best, len(curve.seconds)
    (4, 10)
    """

    seconds: Mapping[int, float]

    @property
    def best(self) -> int:
        """The factor that took least time; the smallest of equal ones."""
        return min(self.seconds, key=lambda factor: (self.seconds[factor], factor))


def tune_blocking(
    measure: Callable[[int], float], factors: Iterable[int] = FACTORS
) -> BlockingCurve:
    """Measure every blocking factor, by default 1 to 10, and keep the whole curve.

    Parameters
    ----------
    measure : callable
        Returns the seconds of a run with so many pages per warp.
    factors : iterable of int

    Returns
    -------
    BlockingCurve
        `louvain_um.profiling.views.charts.blocking_chart` draws it.
    """
    curve = {int(factor): float(measure(int(factor))) for factor in factors}
    if not curve:
        raise OptionError("factors", None, "must be at least one number of pages per warp")
    return BlockingCurve(curve)


@dataclass(frozen=True, slots=True)
class Slice:
    """The elements begin … end of one launch, and its grid."""

    begin: int
    end: int
    grid: int


def launches_for(
    plan: ProgramPlan | Mapping[str, tuple[Placement, int]],
    elements: int,
    *,
    capacity: int | None = None,
    threads: int = 256,
    offsets: Any = None,
) -> tuple[Slice, ...]:
    """Return the launches of a kernel: k = ⌊Σ bytes mapped to the device ÷ capacity⌋ + 1.

    What lives on the host needs no launch of its own: if everything does, one is enough.

    Parameters
    ----------
    plan : ProgramPlan, or mapping of str to (Placement, int)
        Where arrays live; or placement and bytes of each.
    elements : int
        What the kernel goes over, one thread for each.
    capacity : int, optional
        Bytes of the device for these arrays, with plain placements.
    threads : int
        Threads of a block.
    offsets : int[elements + 1], optional
        Where the rows begin that are the elements. With a plan they are cut so that the items of
        each slice fit its slices of arrays `by_rows`, at multiples of 32 rows; else into slices
        with nearly as many items each, more than k if whole rows do not fit so many; rows that
        are longer have slices of their own.

    Returns
    -------
    tuple of Slice
        Of nearly equal size, in order; each with the blocks of its launch.

    Raises
    ------
    MemoryBudgetError
        Items of 32 rows do not fit.

    Examples
    --------
    >>> from louvain_um.placement.policy.policy import Placement
    >>> from louvain_um.placement.program import launches_for
    >>> here, there = (Placement("device"), 300), (Placement("host_mapped"), 900)
    >>> [(s.begin, s.end, s.grid) for s in
    ...  launches_for({"in": here, "out": there}, 1000, capacity=200)]
    [(0, 500, 2), (500, 1000, 2)]
    """
    _positive(threads=threads)
    if isinstance(plan, ProgramPlan):
        count = plan.launches
    elif capacity is None:
        raise OptionError("capacity", capacity, "must be given, in bytes, with plain placements")
    else:
        _positive(capacity=capacity)
        mapped = sum(int(at.on_device * size) for at, size in plan.values())
        count = launches(mapped, capacity)
    count = max(1, min(count, elements))
    cuts = [elements * number // count for number in range(count + 1)]
    if offsets is not None and count > 1:
        if isinstance(plan, ProgramPlan):
            cuts = _cut_by_items(plan, offsets)
        else:
            assert capacity is not None  # refused above
            cuts = _cut_evenly(offsets, count, int(offsets[-1]) * capacity // mapped)
    return tuple(
        Slice(begin, end, max(1, -(-(end - begin) // threads))) for begin, end in pairwise(cuts)
    )


def _cut_by_items(plan: ProgramPlan, offsets: Any) -> list[int]:
    """Return where slices of rows begin, and the end: as many rows as the plan's arrays hold."""
    sliced = [array for array in plan.program.arrays if array.by_rows]
    most, rows, cuts = min(array.size for array in sliced), len(offsets) - 1, [0]
    while cuts[-1] < rows:
        begin = cuts[-1]
        end = int(np.searchsorted(offsets, offsets[begin] + most, "right")) - 1
        end = rows if end >= rows else end // WARP * WARP
        if end <= begin:
            end = min(rows, begin + WARP)
            needed = int(offsets[end] - offsets[begin]) * sum(a.itemsize for a in sliced)
            raise MemoryBudgetError(
                needed, sum(array.nbytes for array in sliced), [],
                f"rows from {begin} on are that long; raise the budget, or let memory='auto' place "
                "arrays",
            )  # fmt: skip
        cuts.append(end)
    return cuts


def _cut_evenly(offsets: Any, count: int, most: int) -> list[int]:
    """Return where slices of rows begin that have nearly as many items each, and the end."""
    # Only slices of a single row have more than `most` items.
    rows, cuts = len(offsets) - 1, [0]
    while cuts[-1] < rows:
        begin, done = cuts[-1], int(offsets[cuts[-1]])
        share = -(-(int(offsets[-1]) - done) // max(1, count + 1 - len(cuts)))
        even = int(offsets[np.searchsorted(offsets, done + share)])
        end = int(np.searchsorted(offsets, min(even, done + most), "right")) - 1
        cuts.append(max(begin + 1, end))
    return cuts


def _positive(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise OptionError(name, value, "must be at least 1")
