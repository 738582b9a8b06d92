"""What steps on the CPU share: a run in host memory, a level of it, and tables of neighbours.

The size of a table follows the largest number of neighbours, not the graph: 12 bytes per slot, at
most four slots per neighbour. `keys` holds a community in each used slot, else EMPTY; `sums`
is valid in used slots; `used` lists them, so that clearing costs only what was used.

Most of an engine's time is spent here, waiting for labels at random addresses and for mispredicted
branches. So a vertex takes two passes without branches that depend on labels. `collect` fetches the
labels of all neighbours and keeps those of other communities (in `names`, their weights in
`loads`); `add` puts these into the table. A vertex whose neighbours all share its community ends
after the first pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from louvain_um.core import rules
from louvain_um.core.compiled import kernel, prefetch
from louvain_um.core.ledger import HostAllocator
from louvain_um.core.objective import Problem
from louvain_um.cpu.walk import WHOLE, LinkedBlocks, after, piece_at
from louvain_um.events import Event, Observer, Phase, ignore
from louvain_um.options import Options

EMPTY = np.uint32(0xFFFFFFFF)
MULTIPLIER = np.uint32(0x9E3779B1)
LEAST_BITS = 8
"""log2 of the fewest slots: 3 KiB fit the first-level cache, and few neighbours seldom collide."""
PREFETCHED = 4
"""Number of vertices between the one at work and the one whose arcs are prefetched."""


class NeighbourTable(NamedTuple):
    """The arrays of a table: of one thread, or of all threads, a row each."""

    keys: NDArray[np.uint32]
    sums: NDArray[np.int64]
    used: NDArray[np.uint32]
    names: NDArray[np.uint32]
    loads: NDArray[Any]


def slots_for(neighbours: int) -> int:
    """Return the number of slots of a table for `neighbours` neighbours."""
    return 1 << max(LEAST_BITS, (2 * neighbours - 1).bit_length())


@kernel(inline="always")
def bits_for(neighbours):
    """Return log2 of the number of slots for `neighbours` neighbours."""
    bits = LEAST_BITS
    while (1 << bits) < 2 * neighbours:
        bits += 1
    return bits


@kernel(forceinline=True)
def of_thread(tables, t):
    """Return the table of a thread."""
    return NeighbourTable(
        tables.keys[t], tables.sums[t], tables.used[t], tables.names[t], tables.loads[t]
    )


@kernel(forceinline=True)
def fetch_row(begins, targets, v):
    """Prefetch 17 to 32 arcs of a vertex that is processed soon."""
    prefetch(targets, begins[v])
    prefetch(targets, begins[v] + 16)


@kernel(forceinline=True)
def collect(labels, rows, low, high, own, names):
    """Keep in `names` the labels of the targets of a row other than `own`; return how many."""
    count, piece = np.uint32(0), piece_at(rows, np.uint64(low), np.uint64(high))
    while True:
        for j in range(np.int64(piece.arc), np.int64(piece.stop)):
            label = labels[rows.targets[np.uint64(j)]]
            names[count] = label
            count = np.uint32(count + np.uint32(label != own))
        piece = after(rows, piece)
        if piece.arc == piece.stop:
            return count


@kernel(forceinline=True)
def collect_weighted(labels, rows, low, high, own, names, loads):
    """Do as `collect`, with the weights in `loads`; return those of `own` and the rest."""
    count, piece = np.uint32(0), piece_at(rows, np.uint64(low), np.uint64(high))
    inside, outside = np.int64(0), np.int64(0)
    while True:
        for j in range(np.int64(piece.arc), np.int64(piece.stop)):
            label = labels[rows.targets[np.uint64(j)]]
            weight = rows.weights[np.uint64(j)]
            names[count] = label
            loads[count] = weight
            count = np.uint32(count + np.uint32(label != own))
            inside += np.int64(weight) * np.int64(label == own)
            outside += np.int64(weight)
        piece = after(rows, piece)
        if piece.arc == piece.stop:
            return count, inside, outside - inside


@kernel(forceinline=True)
def add(keys, sums, used, names, loads, count, bits, n_used):
    """Add the first `count` of the names to the table; return how many slots are in use."""
    weighted = len(loads) > 0
    mask = np.uint32((1 << bits) - 1)
    shift = np.uint32(32 - bits)
    n_used = np.uint32(n_used)
    for k in range(count):
        name = names[k]
        slot = np.uint32(np.uint32(name * MULTIPLIER) >> shift)
        there = keys[slot]
        # One comparison for "taken by another": a second branch would often be mispredicted.
        while min(there ^ EMPTY, there ^ name) != 0:
            slot = np.uint32(slot + np.uint32(1)) & mask
            there = keys[slot]
        used[n_used] = slot
        n_used = np.uint32(n_used + np.uint32(there == EMPTY))
        keys[slot] = name
        weight = np.int64(loads[k]) if weighted else np.int64(1)
        sums[slot] = sums[slot] * np.int64(there != EMPTY) + weight
    return n_used


EMPTY_I64 = np.zeros(0, np.int64)
EMPTY_U32 = np.zeros(0, np.uint32)
EMPTY_U8 = np.zeros(0, np.uint8)
KEPT_BYTES: Final = 1 << 20
"""Hash tables of at most so many bytes stay for the next phases: small levels have many of them."""

LEAST_ROW: Final = 1 << LEAST_BITS
"""Neighbours that tables have room for, at least, so that they suit all small levels."""

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


def max_degree(offsets: I64) -> int:
    """Return the largest number of arcs of a vertex."""
    return int((offsets[1:] - offsets[:-1]).max(initial=0))


@dataclass(slots=True)
class Host:
    """What a run in host memory works with; its problem is known once a graph is loaded."""

    options: Options
    observer: Observer
    threads: int
    memory: HostAllocator
    shows: bool = True
    problem: Problem = field(init=False)
    kept: NeighbourTable | None = field(init=False, default=None)

    def weights(self, arcs: int) -> U32 | I64:
        """Return an array for weights, of one type at every level so that Numba compiles once."""
        objective = self.problem.objective
        if objective.total < 2**32 and not objective.signed:
            return np.empty(arcs, np.uint32)
        return np.empty(arcs, np.int64)

    def tables(self, level: CpuLevel, distinct: int) -> NeighbourTable:
        """Return hash tables for `distinct` communities, one row per thread."""
        slots, row = slots_for(distinct), max(level.max_degree + 1, LEAST_ROW)
        used, loads = max(distinct + 1, LEAST_ROW), row if len(level.weights) else 0
        sizes = dict(zip(NeighbourTable._fields, (slots, slots, used, row, loads), strict=True))
        kept, dtype = self.kept, level.weights.dtype
        if kept is not None:
            arrays: tuple[NDArray[Any], ...] = kept
            fits = all(
                array.shape[1] >= size for array, size in zip(arrays, sizes.values(), strict=True)
            )
            if fits and kept.loads.dtype == dtype:
                # Of unweighted rows there are none.
                return kept if loads else kept._replace(loads=np.empty((self.threads, 0), dtype))
            self.free_tables(0)

        def table(name: str, dtype: DTypeLike) -> Any:
            size = self.threads * sizes[name]
            return self.memory.empty(f"tally_{name}", "hash", size, dtype).reshape(self.threads, -1)

        self.kept = NeighbourTable(
            keys=table("keys", np.uint32),
            sums=table("sums", np.int64),
            used=table("used", np.uint32),
            names=table("names", np.uint32),
            loads=table("loads", dtype),
        )
        self.kept.keys[:] = EMPTY
        return self.kept

    def free_tables(self, most: int = KEPT_BYTES) -> None:
        """Free the hash tables, which are empty again, unless they take at most so many bytes."""
        if self.kept is not None and sum(array.nbytes for array in self.kept) > most:
            self.memory.free(*(f"tally_{name}" for name in NeighbourTable._fields))
            self.kept = None

    def show(self, phase: Phase, level: CpuLevel, iteration: int = -1, **step: Any) -> None:
        """Show the observer the arrays of a step, unless rows lie in other processes, too."""
        if self.shows and self.observer is not ignore:
            arrays, k = level.observed | step, level.number
            event = Event(kind="step", phase=phase, level=k, iteration=iteration, step=arrays)
            self.observer(event)


class LevelRows(NamedTuple):
    """What compiled steps read of a level's graph; `weights` is empty where all are 1."""

    # The first nine are rows as `louvain_um.cpu.walk` has them.
    begins: I64
    ends: I64
    targets: U32
    weights: U32 | I64
    width: Any
    words: Any
    tree: Any
    link: Any
    step: Any
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
    blocks: LinkedBlocks | None = None

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
    def rows(self) -> LevelRows:
        """What compiled steps read of the level's graph."""
        blocks = self.blocks or WHOLE
        return LevelRows(
            *self.bounds, self.targets, self.weights, *blocks, self.degrees, self.loops
        )

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
