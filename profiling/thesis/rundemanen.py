"""The thesis's program: page touches of Rundemanen's kernels, derived from a CPU run.

Arrays, groups, lifetimes, buckets and their order are those that the thesis describes (§3.1,
§3.2): every iteration visits all vertices, by degree; communities are aggregated by size; the
buffer of new lists holds all arcs, is filled when allocated and read when the lists are compacted
(these are the six accesses per arc to the thesis's Others in Table 4.4). The communities are those
of this engine. The graph's arrays keep this engine's names, which plans refer to, and its eight
bytes per offset.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from louvain_um.events import Event
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.profiling.access import counting
from louvain_um.profiling.access.counting import LevelArcs, Members, Widths
from louvain_um.profiling.access.recorder import CHUNK_ARCS, STAYS
from louvain_um.profiling.access.trace_writer import (
    Slots,
    TraceWriter,
    arcs_before,
    cut_ranges,
    sum_row_touches,
)
from louvain_um.profiling.simulator.touches import Access, Touches
from louvain_um.profiling.simulator.trace import Trace

RESERVED: Final = 128 << 20
"""Bytes of device memory taken by CUDA's context, its heaps and the display; assumed.

The thesis sizes its ballast from the whole memory of the card, so with a ballast the program has
fewer bytes available by this amount.
"""

DEGREES: Final = ((319, 1 << 62), (5, 8), (9, 16), (1, 4), (17, 32), (33, 83), (84, 318))
"""Buckets of vertices, by degree, in the order in which they move (Algorithm 2)."""

SIZES: Final = ((480, 1 << 62), (128, 479), (1, 127))
"""Buckets of communities, by members, in the order in which they are aggregated (Algorithm 3)."""

TABLED: Final = 128
"""Members from which on a community's table is in global memory, while space lasts."""

VERTEX_TABLES, COMMUNITY_TABLES = 90, 150
"""Most vertices and communities with a table in global memory."""

BLOCKS: Final = 224
WARPS: Final = 896
"""Communities in flight on 14 processors: a block of 128 threads for each large one, a warp for
each small one."""

PRIMES: Final = 300
"""Primes among which tables find their sizes, each some 6 % larger than the last one; assumed."""

ITEM: Final = 8
"""Bytes of a table's item: a community and a weight."""

COMMUNITY: Final = ("n2c", "n2c_old", "n2c_new", "in", "tot", "tot_new", "cardinality",
                    "cardinality_new")  # fmt: skip
MOVING: Final = ("g_next.indices", "g_next.links", "sizesOfNhoods", "wDegs")


class Rundemanen:
    """An observer of the CPU engine that records the thesis's program."""

    def __init__(self, graph: Graph, scale: float = 1.0, passes: int | None = None) -> None:
        self.passes, self.scale = passes, scale
        self.tables = [max(1, round(n * scale)) for n in (VERTEX_TABLES, COMMUNITY_TABLES)]
        self.program = TraceWriter()
        self.weight = 0 if graph.weights is None else 4
        self.level = -1
        self.labels = np.empty(0, np.uint32)
        self.order = np.empty(0, np.uint32)
        given = self.program.given
        given("offsets.0", "graph", 8, graph.n_vertices + 1)
        given("targets.0", "graph", 4, graph.n_arcs)
        if self.weight:
            given("weights.0", "graph", 4, graph.n_arcs)
        given("devPrimes", "hash", 4, PRIMES)

    def __call__(self, event: Event) -> None:
        """Record the event's phase; the thesis's program runs a single cycle."""
        if event.kind == "step" and event.step["cycle"] == 0:
            if event.phase == "move" and (self.passes is None or event.iteration < self.passes):
                self._move(event.level, event.iteration, event.step)
            elif event.phase == "aggregate":
                self._aggregate(event.level, event.step)

    def trace(self) -> Trace:
        """Return the trace; the communities are copied to the host at its end."""
        program = self.program
        program.on_host(program.whole("n2c", Access.READ))
        program.end(*sorted(program.alive - {"offsets.0", "targets.0", "weights.0", "devPrimes"}))
        return replace(program.trace(), reserved=round(RESERVED * self.scale))

    def _whole(self, way: Access, *names: str) -> list[Touches]:
        return [self.program.whole(name, way) for name in names]

    def _start(self, level: int, work: Any) -> None:
        """Allocate the arrays of a level's move phase; sort its vertices into buckets."""
        program, n = self.program, len(work["offsets"]) - 1
        self.level, self.labels = level, np.arange(n, dtype=np.uint32)
        degrees = np.diff(work["offsets"])
        buckets = [np.flatnonzero((degrees >= a) & (degrees <= b)) for a, b in DEGREES]
        self.order = np.concatenate(buckets).astype(np.uint32)
        for name in COMMUNITY:
            program.begin(name, "community", 4, n)
        for name in MOVING:
            program.begin(name, "scratch", 4, n)
        program.begin("result_array", "scratch", 8, n)
        large = np.sort(np.concatenate([degrees[buckets[0]], degrees[buckets[-1]]]))
        self.slots = 2 * int(large[-self.tables[0] :].sum())
        program.begin("globalHashTable", "hash", ITEM, self.slots)
        program.begin("hashTablePtrs", "hash", 4, min(len(large), self.tables[0]) + 1)
        touched = self._whole(Access.READ, f"offsets.{level}", f"weights.{level}")
        touched += self._whole(Access.WRITE, *MOVING, "n2c", "tot", "in", "cardinality")
        program.launch("initialize", touched, "move", level)
        self.counts = Slots(
            program,
            [
                ("g_next.indices", Access.READ), (f"offsets.{level}", Access.GATHER),
                ("wDegs", Access.GATHER), ("n2c", Access.GATHER), (f"targets.{level}", Access.READ),
                (f"weights.{level}", Access.READ), ("n2c", Access.GATHER), ("tot", Access.GATHER),
                ("globalHashTable", Access.ATOMIC), ("globalHashTable", Access.ATOMIC),
                ("n2c_new", Access.WRITE),
                ("n2c_new", Access.READ), ("n2c", Access.SCATTER), ("tot_new", Access.ATOMIC),
                ("cardinality_new", Access.ATOMIC), ("", Access.SCATTER),
            ],
        )  # fmt: skip

    def _move(self, level: int, iteration: int, work: Any) -> None:
        """Replay an iteration: all vertices decide, bucket by bucket; then the moves."""
        if iteration == 0:
            self._start(level, work)
        slots, order = self.counts, self.order
        rows = LevelArcs(work["offsets"], work["targets"])
        widths = Widths(self.weight if level == 0 else 4, 4)
        touched = self._whole(Access.WRITE, "n2c_new", "tot_new", "cardinality_new")
        arcs = arcs_before(rows.offsets, order)
        for begin, end in cut_ranges(arcs, 0, len(order), CHUNK_ARCS):
            counting.count_decisions(
                slots.counters, widths, (318, self.slots), rows, self.labels, order, begin, end
            )
            touched.append(slots.take())
        last = int(work["starts"][-1])
        counting.apply_moves(
            slots.counters, widths, self.labels, work["queue"], work["proposed"], 0, last, STAYS
        )
        touched.append(slots.take())
        touched += self._whole(Access.READ, "hashTablePtrs", "devPrimes")
        touched += self._whole(Access.READ, "n2c_new", "tot_new", "cardinality_new", "in")
        touched += self._whole(Access.WRITE, "n2c", "n2c_old", "tot", "cardinality", "result_array")
        self.program.launch("move", touched, "move", level, iteration)

    def _aggregate(self, level: int, work: Any) -> None:
        """Replay an aggregation: communities by size, lists into the buffer, then compacted."""
        program, after = self.program, level + 1
        offsets, targets, numbers = work["offsets"], work["targets"], work["numbers"]
        members, starts, coarse_offsets = (
            work["members"],
            work["member_starts"],
            work["coarse_offsets"],
        )
        n, k, arcs, kept = (
            len(offsets) - 1,
            len(coarse_offsets) - 1,
            len(targets),
            int(coarse_offsets[-1]),
        )
        program.end("n2c_old", "tot", "tot_new", "cardinality_new", "in", "globalHashTable",
                    "hashTablePtrs", "sizesOfNhoods", "wDegs", "result_array",
                    "g_next.links")  # fmt: skip
        sizes = np.diff(starts)
        before = arcs_before(offsets, members[:n])[starts]
        room = np.diff(before)
        large = np.sort(room[sizes >= TABLED])[::-1][: self.tables[1]]
        slots = int(large.sum())
        program.begin("comm_nodes", "community", 4, n)
        program.begin("renumber", "scratch", 4, n)
        for name in ("pos_ptr_of_new_comm", "super_node_ptrs", "estimatedSizeOfNeighborhoods",
                     "member_count_per_new_comm"):  # fmt: skip
            program.begin(name, "scratch", 4, k + 1)
        program.begin("globalHashTable", "hash", ITEM, slots)
        program.begin("hashTablePtrs", "hash", 4, len(large) + 1)
        lists = ("new_neighbor_lists", "new_weight_lists")
        for name in lists:
            program.begin(name, "scratch", 4, arcs)
        program.launch("fill", self._whole(Access.WRITE, *lists), "aggregate", level)
        program.begin(f"offsets.{after}", "scratch", 8, k + 1)
        for name in (f"targets.{after}", f"weights.{after}"):
            program.begin(name, "scratch", 4, kept)

        counts = Slots(
            program,
            [
                ("comm_nodes", Access.READ), (f"offsets.{level}", Access.GATHER),
                (f"targets.{level}", Access.READ), (f"weights.{level}", Access.READ),
                ("n2c", Access.GATHER), ("new_neighbor_lists", Access.WRITE),
                ("new_weight_lists", Access.WRITE), ("pos_ptr_of_new_comm", Access.ATOMIC),
                ("comm_nodes", Access.SCATTER), ("n2c", Access.READ), ("renumber", Access.READ),
                ("estimatedSizeOfNeighborhoods", Access.ATOMIC),
                ("globalHashTable", Access.ATOMIC),
            ],
        )  # fmt: skip
        widths = Widths(self.weight if level == 0 else 4, 4)
        touched = self._whole(Access.WRITE, "renumber")
        touched += self._whole(Access.READ, "cardinality", "renumber")
        cursor = starts[:-1].copy()
        for begin in range(0, n, CHUNK_ARCS):
            end = min(n, begin + CHUNK_ARCS)
            counting.count_grouping(counts.counters, widths, numbers, cursor, begin, end)
            touched.append(counts.take())
        touched += self._whole(Access.WRITE, "super_node_ptrs", "estimatedSizeOfNeighborhoods")
        program.launch("renumber", touched, "aggregate", level)

        groups = Members(numbers, members, starts, before[:-1], coarse_offsets)
        for low, high in SIZES:
            order = np.flatnonzero((sizes >= low) & (sizes <= high))
            workers = WARPS if low < TABLED else BLOCKS
            touched = sum_row_touches(
                counts, widths, LevelArcs(offsets, targets), groups, order, workers, CHUNK_ARCS,
                (slots, TABLED),
            )  # fmt: skip
            program.launch("aggregate", touched, "aggregate", level)
        touched = self._whole(
            Access.READ, *lists, "member_count_per_new_comm", "hashTablePtrs", "devPrimes"
        )
        touched += self._whole(
            Access.WRITE, f"targets.{after}", f"weights.{after}", f"offsets.{after}"
        )
        program.launch("to_csr", touched, "aggregate", level)
        # The new graph replaces the old one; the input is not read again.
        program.end(*sorted(name for name in program.alive
                            if not name.endswith((f".{after}", "devPrimes"))))  # fmt: skip


def record_thesis(
    graph: Graph, *, scale: float = 1.0, passes: int | None = None, seed: int = 0
) -> Trace:
    """Run the CPU engine on a graph and return what the thesis's program would touch."""
    from louvain_um.api import run

    recorder = Rundemanen(graph, scale, passes)
    run(graph, Options(method="louvain", seed=seed, device="cpu"), recorder)
    return recorder.trace()
