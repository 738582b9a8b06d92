"""What a program did: its arrays and, in time order, its launches, host touches and prefetches.

A trace does not fix where arrays lie; it can be replayed under any placement, GPU and size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from louvain_um.core.plain_data import Within, check_fields
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.placement.units import size
from louvain_um.profiling.simulator.driver.constants import BIG_PAGES, BLOCK_PAGES, PAGE_BYTES
from louvain_um.profiling.simulator.steps import (
    MOST_ARRAYS,
    MOST_BYTES,
    Allocate,
    Array,
    Free,
    HostTouches,
    Launch,
    Prefetch,
    Step,
    Touching,
    is_inside,
)
from louvain_um.profiling.simulator.trace_files import read_parts, save_parts

__all__ = [
    "Allocate",
    "Array",
    "Free",
    "HostTouches",
    "Launch",
    "Prefetch",
    "Step",
    "Touching",
    "Trace",
    "live_peak",
    "load_trace",
]


@dataclass(frozen=True, slots=True)
class Trace:
    """Arrays and steps of one program.

    Of the shorter of the two, computing and reading over the bus, kernels hide the share `hidden`
    beside the other: all of it, unless they wait for their slowest. `about` is what the program's
    own plan follows from, if that is known.

    Raises
    ------
    OptionError
        Two arrays share a name, or a step touches what no array holds.

    Examples
    --------
    >>> from louvain_um.profiling.simulator import Array, Launch, Touches, Trace
    >>> data = Array(name="targets", group="graph", nbytes=1 << 20)
    >>> Trace((data,), (Launch(touches=Touches.runs(0, 0, data.pages)),)).touches
    256
    """

    arrays: tuple[Array, ...]
    steps: tuple[Step, ...]
    hidden: Annotated[float, Within(0, 1)] = 1.0
    about: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        # Compiled code trusts all of this: it indexes with what a trace holds.
        try:
            self._check()
        except ValueError as error:
            raise OptionError(remedy=f"no valid trace: {error}") from None

    def __repr__(self) -> str:
        return (
            f"Trace({len(self.arrays)} arrays of {size(self.peak_bytes)} at most, "
            f"{len(self.steps):,} steps)"
        )

    def _check(self) -> None:
        """Raise ValueError for anything that is not as documented."""
        check_fields(self, "trace")
        if len(self.arrays) > MOST_ARRAYS:
            raise ValueError(f"{len(self.arrays):,} arrays; at most {MOST_ARRAYS:,} are allowed")
        for number, array in enumerate(self.arrays):
            check_fields(array, f"array {number}")
        names = [array.name for array in self.arrays]
        if len(set(names)) < len(names):
            raise ValueError("two arrays share a name; every name must be unique")
        if sum(array.nbytes for array in self.arrays) > MOST_BYTES:
            raise ValueError(f"its arrays have more than {MOST_BYTES:,} bytes")
        pages = np.array([array.pages for array in self.arrays], np.int64)
        for number, step in enumerate(self.steps):
            check_fields(step, f"step {number}")
            if not is_inside(step, pages):
                raise ValueError(f"step {number} touches pages that no array holds")

    @property
    def touches(self) -> int:
        """Number of single page touches of all steps."""
        return sum(step.touches.touches for step in self.steps if isinstance(step, Touching))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together, whether they are there at one time or not."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def peak_bytes(self) -> int:
        """Most bytes of device memory that the arrays occupy at one time when all are there.

        As the driver gives it out: whole blocks of 2 MiB, and 64 KiB at a time of smaller ones;
        rounded up to whole blocks.
        """
        pages = live_peak(self, [_occupied(array.pages) for array in self.arrays])
        return -(-pages // BLOCK_PAGES) * BLOCK_PAGES * PAGE_BYTES

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the trace as a compressed NPZ file."""
        save_parts(path, self.arrays, self.steps, self.hidden, self.about, force=force)


def load_trace(path: str | Path) -> Trace:
    """Read a trace that `Trace.save` wrote.

    Raises
    ------
    LouvainUmError
        The file is missing or is not a trace.
    """
    try:
        return Trace(*read_parts(path))
    except OptionError as error:
        raise LouvainUmError(f"{path}: {error}; record the trace again") from None


def live_peak(trace: Trace, sizes: Sequence[int]) -> int:
    """Return the largest sum, at one time, of the sizes of the arrays that are there."""
    later = {step.array for step in trace.steps if isinstance(step, Allocate)}
    live = peak = sum(size for number, size in enumerate(sizes) if number not in later)
    for step in trace.steps:
        if isinstance(step, Allocate):
            live += sizes[step.array]
            peak = max(peak, live)
        elif isinstance(step, Free):
            live -= sizes[step.array]
    return peak


def _occupied(pages: int) -> int:
    """Return the pages that the driver gives out for so many."""
    whole = pages // BLOCK_PAGES * BLOCK_PAGES
    return whole + -(-(pages - whole) // BIG_PAGES) * BIG_PAGES
