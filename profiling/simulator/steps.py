"""Arrays of a program, and the steps that touch them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.array_names import Role, level_of, role_of
from louvain_um.core.plain_data import Within
from louvain_um.profiling.session.events import MOST_LEVELS
from louvain_um.profiling.simulator.driver.constants import PAGE_BYTES, WAYS
from louvain_um.profiling.simulator.touches import Touches

MOST_ARRAYS = 1 << 15
"""Arrays of a trace: touches number them in 16 bits."""

MOST_BYTES = 1 << 52
"""Bytes of an array, and of all arrays together."""

MOST_TOUCHED = 1 << 60
"""Bytes, or accesses, of all touches of a step."""

MOST_SECONDS = 1e9
"""Seconds of one step: nanoseconds of all steps have to fit into int64."""

Position = Annotated[int, Within(-1, MOST_LEVELS - 1)]
Count = Annotated[int, Within(0, 1 << 40)]
Seconds = Annotated[float, Within(0, MOST_SECONDS)]
Index = Annotated[int, Within(0, MOST_ARRAYS - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """One array: name, group, bytes, and where its bytes are when the program begins.

    `starts` is "host" for data that the host wrote, "nowhere" for memory that was never touched.
    `itemsize` is the bytes of an element.
    """

    name: str
    group: str
    nbytes: Annotated[int, Within(0, MOST_BYTES)]
    starts: Literal["host", "nowhere"] = "host"
    itemsize: Annotated[int, Within(1, 1 << 16)] = 4

    @property
    def role(self) -> Role:
        """What an array of this program is for; recordings know it by its name."""
        return role_of(self.name)

    @property
    def level(self) -> int | None:
        """The level that an array of this program is planned for."""
        return level_of(self.name)

    @property
    def holds_input_arcs(self) -> bool:
        """Whether it holds targets or weights of level 0."""
        return self.role in ("targets", "weights") and self.level == 0

    @property
    def pages(self) -> int:
        """Pages of 4 KiB that the array occupies."""
        return max(1, -(-self.nbytes // PAGE_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A kernel: what it touched, in time order, and where in the run it stood.

    `compute_seconds` is the kernel's time with all its data on the device, if it was measured;
    without it the time comes from the touches and the machine's rates, and from its `chain`: so
    many steps wait for each other, and each takes its time however little it does. `host_seconds`
    is what the host takes besides the launch.
    """

    touches: Touches
    kernel: str = "kernel"
    phase: str | None = None
    level: Position = -1
    iteration: Annotated[int, Within(-1, (1 << 31) - 1)] = -1
    compute_seconds: Seconds | None = None
    chain: Annotated[int, Within(0, 1 << 32)] = 0
    host_seconds: Seconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTouches:
    """Touches of the host, between launches."""

    touches: Touches


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch:
    """An explicit prefetch of part of an array, or its writing back (`to` = "host")."""

    array: Index
    to: Literal["gpu", "host"] = "gpu"
    first: Count = 0
    pages: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocate:
    """An array begins to be there; one without such a step is there from the beginning."""

    array: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """An array is given back, whole: its contents are lost, its device memory is free."""

    array: Index


Step = Launch | HostTouches | Prefetch | Allocate | Free
Touching = Launch | HostTouches


def is_inside(step: Step, pages: NDArray[np.int64]) -> bool:
    """Return whether all that a step touches lies in arrays of so many pages."""
    if not isinstance(step, Touching):
        if step.array >= len(pages):
            return False
        if not isinstance(step, Prefetch):
            return True
        behind = int(pages[step.array]) - step.first
        return behind > 0 and (step.pages is None or 0 < step.pages <= behind)
    t = step.touches
    t.check()
    if not len(t):
        return True
    if t.array.min() < 0 or t.array.max() >= len(pages):
        return False
    # Written so that no sum overflows.
    left = pages[t.array] - t.first
    if t.first.min() < 0 or t.length.min() <= 0 or not np.all(t.length <= left):
        return False
    if t.way.max() >= WAYS or t.amount.min() < 0:
        return False
    return float(np.dot(t.length.astype(np.float64), t.amount)) < MOST_TOUCHED
