"""The CPU engine: arrays, threads and the order in which the compiled steps run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um import parallel, rules
from louvain_um.cpu import aggregate, move, refine
from louvain_um.cpu.tally import EMPTY
from louvain_um.events import Event, Observer, tell_arrays
from louvain_um.graph import Graph
from louvain_um.hierarchy import Moved, Sums
from louvain_um.ledger import HostAllocator
from louvain_um.numbering import number_by_size
from louvain_um.options import Options
from louvain_um.quality import sum_of_squares

NONE = np.zeros(0, np.int64)
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


@dataclass(slots=True)
class CpuLevel:
    """One level: its graph, where its vertices start, and what became of them.

    Parameters
    ----------
    cycle, number : int
    offsets, targets, weights, loops, degrees
        As in `Graph`; no weights is an empty array.
    start : uint32[n] or None
        Community each vertex starts in; None when every one is alone.
    labels : uint32[n]
        Communities after moving.
    numbers : uint32[n]
        Vertex of the next level for each vertex.
    """

    cycle: int
    number: int
    offsets: I64
    targets: U32
    weights: U32 | I64
    loops: I64
    degrees: I64
    start: U32 | None = None
    labels: U32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    totals: I64 = field(default_factory=lambda: NONE)
    parts: U32 | None = None
    numbers: U32 = field(default_factory=lambda: np.zeros(0, np.uint32))

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.loops)


class CpuEngine:
    """Louvain and Leiden with Numba on all cores of the machine."""

    def __init__(self, options: Options, observer: Observer) -> None:
        self.options = options
        self.observer = observer
        self.threads = options.threads or parallel.default_threads()
        self.memory = HostAllocator(tell_arrays(observer))
        self.total = 0

    def load(self, graph: Graph) -> CpuLevel:
        """Return level 0, every vertex alone; the graph's arrays are shared, not copied."""
        enter = self.memory.ledger.enter
        self.total = graph.total_weight
        weights = self.weights(0) if graph.weights is None else graph.weights
        for name in ("offsets", "targets", "weights", "loops"):
            array = weights if name == "weights" else getattr(graph, name)
            enter(f"{name}.0", "graph", array.nbytes, array.ctypes.data)
        degrees = graph.degrees
        enter("degrees.0", "community", degrees.nbytes, degrees.ctypes.data)
        return CpuLevel(0, 0, graph.offsets, graph.targets, weights, graph.loops, degrees)

    def weights(self, arcs: int) -> U32 | I64:
        """Return room for weights; of one type at every level, so that Numba compiles once."""
        if self.total < 2**32:
            return np.empty(arcs, np.uint32)
        return np.empty(arcs, np.int64)

    def restart(self, path: list[CpuLevel]) -> CpuLevel:
        """Return level 0 of the next cycle, its vertices in the communities of a path."""
        first = path[0]
        start = self.memory.empty(
            f"start.{first.cycle + 1}.0", "community", first.vertices, np.uint32
        )
        start[:] = self.compose(path)
        return replace(first, cycle=first.cycle + 1, start=start)

    def size(self, level: CpuLevel) -> tuple[int, int]:
        """Return vertices and arcs of a level."""
        return level.vertices, len(level.targets)

    def move(self, level: CpuLevel) -> Moved:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        n, empty, threads = level.vertices, self.memory.empty, self.threads
        number, tag = level.number, f"{level.cycle}.{level.number}"
        labels = empty(f"labels.{tag}", "community", n, np.uint32)
        labels[:] = np.arange(n, dtype=np.uint32) if level.start is None else level.start
        totals = empty("totals", "community", n, np.int64)
        sizes = empty("sizes", "community", n, np.uint32)
        active = empty("active", "scratch", n, np.uint8)
        queue = empty("queue", "scratch", n, np.uint32)
        moved = empty("moved", "scratch", n, np.uint32)
        goals = empty("goals", "scratch", n, np.uint32)
        tallies = self.tallies(level.offsets, n)
        graph = (level.offsets, level.targets, level.weights, level.degrees)
        state = (labels, totals, sizes, active, moved, goals)
        move.start(level.degrees, labels, totals, sizes, active)

        starts = np.zeros(rules.SUB_ROUNDS + 1, np.int64)
        claim = np.zeros(3, np.int64)
        rate, seed = self.options.resolution / self.total, np.uint32(self.options.seed)
        total, iteration, visited, moves = float(self.total), 0, 0, 0
        while iteration < rules.MAX_ITERATIONS:
            salt = rules.salt(level.cycle, iteration, self.options.seed)
            arcs = move.queue_active(
                level.offsets, active, np.uint32(salt), rules.SUB_ROUNDS, queue, starts
            )
            visited += arcs
            iteration += 1
            rule = (rate, total, seed, claim)
            if threads == 1 or arcs < move.SERIAL_ARCS:
                count, gain = move.sweep(graph, state, tallies, queue, starts, *rule)
            else:
                count, gain = self.sweep(graph, state, tallies, queue, starts, *rule)
            moves += count
            self.observer(
                Event(
                    kind="iteration",
                    phase="move",
                    level=number,
                    iteration=iteration - 1,
                    vertices=n,
                    arcs=len(level.targets),
                    moved=count,
                )
            )
            if count == 0 or gain < rules.tolerance(number):
                break
        level.labels, level.totals = labels, totals
        self.memory.free("totals", "sizes", "active", "queue", "moved", "goals")
        self.memory.free("tally keys", "tally sums", "tally used")
        return Moved(iteration, moves, visited)

    def sweep(
        self, graph: Any, state: Any, tallies: Any, queue: U32, starts: I64, rate: float,
        total: float, seed: np.uint32, claim: I64,
    ) -> tuple[int, int]:  # fmt: skip
        """Run all sub-rounds of a sweep on all threads; return moves and gain."""
        moves, gain = 0, 0
        for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            claim[:] = 0
            parallel.run(
                move.decide, self.threads, graph, state, tallies, queue, first, last, rate, total,
                seed, claim,
            )  # fmt: skip
            parallel.run(move.apply, self.threads, graph, state, claim)
            claim[0] = 0
            parallel.run(move.activate, self.threads, graph, state, claim)
            moves += int(claim[1])
            gain += int(claim[2])
        return moves, gain

    def tallies(self, offsets: I64, distinct: int) -> tuple[U32, I64, U32]:
        """Return hash tables, one row a thread, for the widest vertex of a level."""
        widest = min(int(np.diff(offsets).max(initial=0)), distinct)
        slots = 1 << max(2, (2 * widest - 1).bit_length())
        keys = self.memory.empty("tally keys", "hash", self.threads * slots, np.uint32)
        sums = self.memory.empty("tally sums", "hash", self.threads * slots, np.int64)
        used = self.memory.empty("tally used", "hash", self.threads * (widest + 1), np.uint32)
        keys[:] = EMPTY
        shape = (self.threads, -1)
        return keys.reshape(shape), sums.reshape(shape), used.reshape(shape)

    def refine(self, level: CpuLevel) -> None:
        """Split communities into sub-communities that hold together (`level.parts`)."""
        n, empty, threads = level.vertices, self.memory.empty, self.threads
        parts = empty(f"parts.{level.cycle}.{level.number}", "community", n, np.uint32)
        part_totals = empty("part totals", "community", n, np.int64)
        part_sizes = empty("part sizes", "community", n, np.uint32)
        cuts = empty("cuts", "community", n, np.int64)
        queue = empty("queue", "scratch", n, np.uint32)
        moved = empty("moved", "scratch", n, np.uint32)
        goals = empty("goals", "scratch", n, np.uint32)
        ties = empty("ties", "scratch", n, np.int64)
        tallies = self.tallies(level.offsets, n)
        graph = (level.offsets, level.targets, level.weights, level.degrees)
        parallel.run(
            refine.start, threads, graph, level.labels, parts, part_totals, part_sizes, cuts
        )
        everyone = np.ones(n, np.uint8)
        starts = np.zeros(rules.SUB_ROUNDS + 1, np.int64)
        salt = np.uint32(rules.salt(level.cycle, rules.REFINE_SWEEP, self.options.seed))
        move.queue_active(level.offsets, everyone, salt, rules.SUB_ROUNDS, queue, starts)
        state = (
            level.labels, level.totals, parts, part_totals, part_sizes, cuts, moved, goals, ties
        )  # fmt: skip
        claim = np.zeros(3, np.int64)
        rate, seed = self.options.resolution / self.total, np.uint32(self.options.seed)
        for r in range(rules.SUB_ROUNDS):
            claim[:] = 0
            parallel.run(
                refine.decide, threads, graph, state, tallies, salt, rules.SUB_ROUNDS, r, queue,
                starts[r], starts[r + 1], rate, seed, claim,
            )  # fmt: skip
            parallel.run(refine.apply, threads, graph, state, claim)
        level.parts = parts
        self.memory.free("part totals", "part sizes", "cuts", "queue", "moved", "goals", "ties")
        self.memory.free("tally keys", "tally sums", "tally used")

    def aggregate(self, level: CpuLevel) -> CpuLevel:
        """Return the next level; vertices that share a label (or part) become one."""
        n, arcs, empty, threads = *self.size(level), self.memory.empty, self.threads
        number, tag = level.number + 1, f"{level.cycle}.{level.number + 1}"
        ranks = empty("ranks", "scratch", n, np.uint32)
        numbers = level.labels if level.parts is None else level.parts
        carried = None
        communities = level.labels if level.parts is None else level.labels.copy()
        count = aggregate.renumber(numbers, ranks)
        if level.parts is not None:
            carried = empty(f"start.{tag}", "community", count, np.uint32)
            refine.carry_labels(communities, numbers, ranks, carried)
        self.memory.free("ranks")

        members = empty("members", "scratch", n, np.uint32)
        starts = empty("member starts", "scratch", count + 1, np.int64)
        rooms = empty("rooms", "scratch", count + 1, np.int64)
        widest = aggregate.group_members(level.offsets, numbers, members, starts, rooms)
        tallies = self.tallies(np.array([0, widest]), count)
        targets = np.empty(arcs, np.uint32)
        weights = self.weights(arcs)
        offsets = empty(f"offsets.{number}", "graph", count + 1, np.int64)
        loops = empty(f"loops.{number}", "graph", count, np.int64)
        graph = (level.offsets, level.targets, level.weights, level.degrees, level.loops)
        out = (targets, weights, loops, offsets)
        claim = np.zeros(1, np.int64)
        parallel.run(
            aggregate.add_up, threads if arcs > move.SERIAL_ARCS else 1, graph, numbers, members,
            starts, rooms, tallies, out, claim,
        )  # fmt: skip
        kept = aggregate.close_gaps(rooms, offsets, targets, weights)
        # Shrinking in place gives the room behind the arcs back without a copy.
        targets.resize(kept, refcheck=False)
        weights.resize(kept, refcheck=False)
        self.memory.ledger.enter(f"targets.{number}", "graph", targets.nbytes)
        self.memory.ledger.enter(f"weights.{number}", "graph", weights.nbytes)
        self.memory.free("members", "member starts", "rooms")
        self.memory.free("tally keys", "tally sums", "tally used")

        degrees = empty(f"degrees.{number}", "community", count, np.int64)
        degrees[:] = 0
        move.add_degrees(level.degrees, numbers, degrees)
        level.numbers, level.labels, level.parts = numbers, communities, None
        return CpuLevel(
            level.cycle, number, offsets, targets, weights, loops, degrees, start=carried
        )

    def sums(self, level: CpuLevel) -> Sums:
        """Return the sums of the communities a level starts in."""
        if level.start is None:
            return Sums(2 * int(level.loops.sum()), sum_of_squares(level.degrees), level.vertices)
        totals = np.zeros(level.vertices, np.int64)
        graph = (level.offsets, level.targets, level.weights, level.degrees, level.loops)
        inside = move.weigh(graph, level.start, totals)
        return Sums(int(inside), sum_of_squares(totals), len(np.unique(level.start)))

    def split(self, level: CpuLevel) -> None:
        """Make every connected part of a community a community of its own."""
        if level.start is None:
            return
        refine.split(level.offsets, level.targets, level.start, np.empty_like(level.start))

    def release(self, level: CpuLevel) -> None:
        """Free the graph of a level; the input's, which every cycle needs, stays."""
        k = level.number
        if k == 0:
            return
        self.memory.free(*(f"{name}.{k}" for name in ("offsets", "targets", "weights", "loops")))
        self.memory.free(f"degrees.{k}")
        level.offsets = level.degrees = NONE
        level.targets, level.weights = np.zeros(0, np.uint32), NONE

    def maps(self, path: list[CpuLevel]) -> tuple[U32, ...]:
        """Return each level's map to the next."""
        return tuple(level.numbers for level in path[:-1])

    def cuts(self, path: list[CpuLevel]) -> tuple[U32, ...]:
        """Return, for each level but the first, the communities its vertices start in."""
        return tuple(level.start for level in path[1:] if level.start is not None)

    def labels(self, path: list[CpuLevel]) -> U32:
        """Return the communities of the input's vertices, numbered by size."""
        return number_by_size(self.compose(path))

    def compose(self, path: list[CpuLevel]) -> U32:
        """Return the community of each of the input's vertices at the end of a path."""
        last = path[-1]
        alone = np.arange(last.vertices, dtype=np.uint32)
        labels = alone if last.start is None else last.start
        for map_ in reversed(self.maps(path)):
            labels = labels[map_]
        return labels

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group."""
        return self.memory.peak_bytes

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget, threads."""
        return {"device": "cpu", "policy": "host", "budget_bytes": None, "threads": self.threads}
