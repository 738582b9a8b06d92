"""A run in host memory: its threads and memory, and one level of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from louvain_um.core import rules
from louvain_um.core.ledger import HostAllocator
from louvain_um.core.objective import Problem
from louvain_um.cpu.hash_table import EMPTY, Table, slots_for
from louvain_um.events import Event, Observer, Phase, ignore
from louvain_um.options import Options

EMPTY_I64 = np.zeros(0, np.int64)
EMPTY_U32 = np.zeros(0, np.uint32)
EMPTY_U8 = np.zeros(0, np.uint8)
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


def max_degree(offsets: I64) -> int:
    """Return the largest number of arcs of a vertex."""
    return int(np.diff(offsets).max(initial=0))


@dataclass(slots=True)
class Host:
    """What a run in host memory works with; its problem is known once a graph is loaded."""

    options: Options
    observer: Observer
    threads: int
    memory: HostAllocator
    shows: bool = True
    problem: Problem = field(init=False)

    def weights(self, arcs: int) -> U32 | I64:
        """Return an array for weights, of one type at every level so that Numba compiles once."""
        objective = self.problem.objective
        if objective.total < 2**32 and not objective.signed:
            return np.empty(arcs, np.uint32)
        return np.empty(arcs, np.int64)

    def tables(self, level: CpuLevel, distinct: int) -> Table:
        """Return hash tables for `distinct` communities, one row per thread."""
        shape = (self.threads, -1)

        def table(name: str, items: int, dtype: DTypeLike) -> Any:
            size = self.threads * items
            return self.memory.empty(f"tally_{name}", "hash", size, dtype).reshape(shape)

        slots = slots_for(distinct)
        keys, sums = table("keys", slots, np.uint32), table("sums", slots, np.int64)
        keys[:] = EMPTY
        names = table("names", level.max_degree + 1, np.uint32)
        weighted = len(level.weights) > 0
        loads = table("loads", level.max_degree + 1 if weighted else 0, level.weights.dtype)
        return Table(keys, sums, table("used", distinct + 1, np.uint32), names, loads)

    def free_tables(self) -> None:
        """Free the hash tables."""
        self.memory.free(*(f"tally_{name}" for name in Table._fields))

    def show(self, phase: Phase, level: CpuLevel, iteration: int = -1, **step: Any) -> None:
        """Show the observer the arrays of a step, unless rows lie in other processes, too."""
        if self.shows and self.observer is not ignore:
            arrays, k = level.observed | step, level.number
            event = Event(kind="step", phase=phase, level=k, iteration=iteration, step=arrays)
            self.observer(event)


class Rows(NamedTuple):
    """What compiled steps read of a level's graph; `weights` is empty where all are 1."""

    begins: I64
    ends: I64
    targets: U32
    weights: U32 | I64
    degrees: I64
    loops: I64


@dataclass(slots=True)
class CpuLevel:
    """One level: its graph, start communities and results."""

    cycle: int
    number: int
    offsets: I64
    targets: U32
    weights: U32 | I64
    loops: I64
    degrees: I64
    max_degree: int
    arcs: int
    spread: tuple[I64, I64] | None = None
    start: U32 | None = None
    active: NDArray[np.bool_] | None = None
    sub_rounds: int = rules.SUB_ROUNDS
    labels: U32 = field(default_factory=lambda: EMPTY_U32)
    totals: I64 = field(default_factory=lambda: EMPTY_I64)
    second_totals: I64 = field(default_factory=lambda: EMPTY_I64)
    refined: U32 | None = None
    numbers: U32 = field(default_factory=lambda: EMPTY_U32)
    second: I64 = field(default_factory=lambda: EMPTY_I64)
    members: I64 = field(default_factory=lambda: EMPTY_I64)
    whole: bool = False
    fixed: U8 = field(default_factory=lambda: EMPTY_U8)

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.loops)

    @property
    def local(self) -> tuple[int, int]:
        """First vertex whose row lies in this process, and the one behind the last."""
        return 0, self.vertices

    @property
    def bounds(self) -> tuple[I64, I64]:
        """Begin and end of each row in `targets`."""
        return self.spread or (self.offsets[:-1], self.offsets[1:])

    @property
    def rows(self) -> Rows:
        """What compiled steps read of the level's graph."""
        return Rows(*self.bounds, self.targets, self.weights, self.degrees, self.loops)

    @property
    def masses(self) -> dict[str, NDArray[Any]]:
        """Arrays that aggregation sums by community, those in use."""
        held = {name: getattr(self, name) for name in ("second", "members", "fixed")}
        return {"degrees": self.degrees} | {name: a for name, a in held.items() if len(a)}

    @property
    def observed(self) -> dict[str, Any]:
        """Arrays that every step shows to observers."""
        return {
            "cycle": self.cycle,
            "max_degree": self.max_degree,
            "start": self.start,
            "offsets": self.offsets,
            "targets": self.targets,
            "weighted": len(self.weights) > 0,
        }
