"""Kernel blocking and fewer launches, for any kernel: after Hope, Nag and Qasem, 4.3 and 4.4."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from louvain_um.errors import OptionError
from louvain_um.placement.hardware import PAGE, WARP
from louvain_um.placement.model.cost import FACTORS, launches
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program.plan import ProgramPlan

HEADER: Final = (Path(__file__).parent / "blocked.cuh").read_text(encoding="utf-8")
"""CUDA C++ that defines ``blocked_for(index, count, item_bytes, pages_per_warp)``, to be put before
a kernel's own code; its comment says what the loop does."""


def blocked_grid(count: int, itemsize: int, pages_per_warp: int, threads: int = 256) -> int:
    """Return how many blocks give each warp one set of pages in ``blocked_for``.

    Parameters
    ----------
    count, itemsize : int
        Elements, and bytes of each.
    pages_per_warp : int
    threads : int
        Threads of a block, a multiple of 32.

    Examples
    --------
    >>> from louvain_um.placement.program import blocked_grid
    >>> blocked_grid(1 << 20, 4, 4)
    32
    """
    _positive(pages_per_warp=pages_per_warp, itemsize=itemsize, threads=threads)
    if threads % WARP:
        raise OptionError("threads", threads, "must be a multiple of 32")
    each = max(1, PAGE * pages_per_warp // itemsize) * (threads // WARP)
    return max(1, -(-count // each))


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
        """The factor that took least time; the smallest of equals."""
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
        Bytes of the device for these arrays; the plan's limit, if left out.
    threads : int
        Threads of a block.

    Returns
    -------
    tuple of Slice
        Of nearly equal size, in order; each with the blocks of its launch.

    Examples
    --------
    >>> from louvain_um.placement.policy.policy import Placement
    >>> from louvain_um.placement.program import launches_for
    >>> here, there = (Placement("device"), 300), (Placement("host_mapped"), 900)
    >>> [(s.begin, s.end, s.grid) for s in
    ...  launches_for({"in": here, "out": there}, 1000, capacity=200)]
    [(0, 500, 2), (500, 1000, 2)]
    """
    if isinstance(plan, ProgramPlan):
        capacity = plan.limit if capacity is None else capacity
        sizes = {a.name: (plan.placements[a.name], a.nbytes) for a in plan.program.arrays}
    else:
        sizes = dict(plan)
    if capacity is None:
        raise OptionError("capacity", capacity, "must be given, in bytes, with plain placements")
    _positive(capacity=capacity, threads=threads)
    mapped = sum(int(where.on_device * nbytes) for where, nbytes in sizes.values())
    count = max(1, min(launches(mapped, capacity), elements))
    cuts = [elements * number // count for number in range(count + 1)]
    return tuple(
        Slice(begin, end, max(1, -(-(end - begin) // threads))) for begin, end in pairwise(cuts)
    )


def _positive(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise OptionError(name, value, "must be at least 1")
