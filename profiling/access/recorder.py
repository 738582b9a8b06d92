"""What a GPU run would touch, page by page, recorded while the CPU engine runs.

The recorder observes an engine and replays each of its steps over its arrays: the arrays are
those that the GPU engine would have, with its names, groups and element sizes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.ledger import Group
from louvain_um.core.rules import SUB_ROUNDS, prunes
from louvain_um.events import Event
from louvain_um.gpu.aggregate.kernel_arguments import STATE
from louvain_um.gpu.aggregate.limits import SLOTS, slots_for
from louvain_um.gpu.memory.graph_stats import graph_stats
from louvain_um.gpu.move.hub_tables import BLOCK_MAX, hub_table_sizes
from louvain_um.graph.graph import Graph
from louvain_um.options import Method, Options
from louvain_um.placement.model.cost import HIDDEN
from louvain_um.profiling.access import counting
from louvain_um.profiling.access.counting import (
    MOVE_SECONDS,
    SWEEP_END_STEPS,
    LevelArcs,
    Members,
    Widths,
    aggregation_waits,
    batches_of,
    sweep_steps,
)
from louvain_um.profiling.access.trace_writer import (
    Slots,
    TraceWriter,
    arcs_before,
    cut_ranges,
    sum_row_touches,
)
from louvain_um.profiling.simulator.driver.constants import PAGE_BYTES
from louvain_um.profiling.simulator.touches import Access, Touches
from louvain_um.profiling.simulator.trace import Trace

GIVEN: Final = {"offsets.0", "targets.0", "weights.0", "loops.0", "degrees.0"}
"""Arrays of the input graph, alive throughout."""

STAYS: Final = np.uint32(0xFFFFFFFF)
"""The value of `proposed` for no move."""

CHUNK_ARCS: Final = 1 << 15
"""Approximate arcs whose accesses are unordered: as many as a small GPU processes at a time."""

MOST_CHUNKS: Final = 256
"""Most chunks of a pass over a graph; those of large graphs are longer."""

LEAST_CHUNK: Final = 1 << 22
"""Least arcs that the chunk for rows of the next level holds; else a quarter of the level's."""

IN_FLIGHT: Final = 1024
"""Communities aggregated concurrently, one per warp: 14 multiprocessors hold 896 warps, 132 hold
8,448. With few communities, the whole graph is in flight."""


def numbered(name: str, level: int) -> str:
    """Return an array's name; those of level 0 carry no number unless the graph's."""
    return name if level == 0 else f"{name}.{level}"


class Recorder:
    """An observer of the CPU engine that records a `TraceWriter`'s program."""

    def __init__(self, graph: Graph, method: Method = "louvain") -> None:
        self.program = TraceWriter()
        self.vertices, self.arcs = graph.n_vertices, graph.n_arcs
        self.weight = 0 if graph.weights is None else graph.weights.dtype.itemsize
        self.sums = 4 if graph.total_weight < 2**32 else 8
        self.has_loops = graph.has_loops
        self.degrees = graph_stats(graph)
        self.chunk_arcs = max(CHUNK_ARCS, self.arcs // MOST_CHUNKS)
        self.hubs = (0, 0)
        self.labels = np.empty(0, np.uint32)
        self.level = (-1, -1)
        given = self.program.given
        given("offsets.0", "graph", 8, self.vertices + 1)
        given("targets.0", "graph", 4, self.arcs)
        if self.weight:
            given("weights.0", "graph", self.weight, self.arcs)
        if self.has_loops:
            given("loops.0", "graph", self.sums, self.vertices)
        # They come with the graph, so the host wrote them.
        given("degrees.0", "community", self.sums, self.vertices)
        self.about = {**self.facts(), "method": method}

    def __call__(self, event: Event) -> None:
        """Observe."""
        if event.kind != "step":
            return
        if event.phase == "move":
            self._move(event, event.step)
        elif event.phase == "refine":
            refine(self, event, event.step)
        else:
            aggregate(self, event, event.step)

    def trace(self) -> Trace:
        """Return the program; its final copy of labels to the host migrates no page."""
        program = self.program
        if "labels" in program.alive:
            program.begin("input_labels", "community", 4, self.vertices)
            touched = [
                program.whole("labels", Access.READ),
                program.whole("input_labels", Access.WRITE),
            ]
            program.launch("number", touched, "fetch", -1)
            program.end(*sorted(program.alive - GIVEN))
        # Kernels have barriers, at which all warps wait for the slowest rows.
        return program.trace(HIDDEN, self.about)

    def _start_level(self, event: Event, work: Any) -> None:
        """Make and fill the arrays of moving on a level."""
        level, n = event.level, len(work["offsets"]) - 1
        program, named = self.program, numbered
        self.level = (work["cycle"], level)
        self.drop_coarser(level)
        self.begin("community", level, n, labels=4, totals=self.sums, sizes=4)
        if work["start"] is not None:
            self.begin("community", level, n, start=4)
        self.begin(
            "scratch", level, n, **{"queue": 4, "proposed": 4, "active": 1, "next_active": 1}
        )
        start = work["start"]
        self.labels = np.arange(n, dtype=np.uint32) if start is None else start.copy()
        touched = [program.whole(f"degrees.{level}", Access.READ)]
        touched += [program.whole(named("start", level), Access.READ)] if start is not None else []
        for name in ("labels", "totals", "sizes", "active", "next_active"):
            touched.append(program.whole(named(name, level), Access.WRITE))
        self.hubs = self.make_hub_tables(work, level)
        for name in ("hub_keys", "hub_sums"):
            touched.append(program.whole(named(name, level), Access.WRITE))
        program.launch(
            "begin", touched, "move", level, chain=SWEEP_END_STEPS, host_seconds=MOVE_SECONDS
        )

    def _move(self, event: Event, work: Any) -> None:
        """Replay one sweep."""
        level = event.level
        if event.iteration == 0:
            self._start_level(event, work)
            self.slots = self.slots_of(level)
        program, slots, widths = self.program, self.slots, self.widths(level)
        rows = LevelArcs(work["offsets"], work["targets"])
        queue, starts, proposed = work["queue"], work["starts"], work["proposed"]
        total = int(starts[-1])
        arcs = arcs_before(rows.offsets, queue[:total])
        activates = prunes(work["start"] is None, event.iteration)
        chain = sweep_steps(np.diff(arcs), starts, self.sums, activates=activates)
        touched = self._enqueued(level, total)
        for r in range(SUB_ROUNDS):
            first, last = int(starts[r]), int(starts[r + 1])
            parts = cut_ranges(arcs, first, last, self.chunk_arcs)
            for begin, end in parts:
                counting.count_decisions(
                    slots.counters, widths, self.hubs, rows, self.labels, queue, begin, end
                )
                touched.append(slots.take())
            counting.apply_moves(
                slots.counters, widths, self.labels, queue, proposed, first, last, STAYS
            )
            touched.append(slots.take())
            for begin, end in parts if activates else ():
                counting.count_activations(
                    slots.counters, rows, self.labels, queue, proposed, begin, end, STAYS
                )
                touched.append(slots.take())
        program.launch("move", touched, "move", level, event.iteration, chain=chain)

    def _enqueued(self, level: int, total: int) -> list[Touches]:
        """Return the accesses of queueing active vertices."""
        program, named = self.program, numbered
        touched = [
            program.whole(named(name, level), Access.READ) for name in ("active", "next_active")
        ]
        touched.append(program.whole(named("active", level), Access.WRITE))
        if total:
            touched.append(program.whole(named("queue", level), Access.WRITE, 4 * total))
        return touched

    def facts(self) -> dict[str, Any]:
        """Return what a plan of the run follows from."""
        return {
            "vertices": self.vertices,
            "arcs": self.arcs,
            "weight_bytes": self.weight,
            "sum_bytes": self.sums,
            "loops": self.has_loops,
            "max_degree": self.degrees.max_degree,
            "isolated": self.degrees.isolated,
            "hub_arcs": self.degrees.hub_arcs,
            "skew": self.degrees.degree_squares / max(self.arcs, 1),
            "clustering": self.degrees.clustering,
        }

    def begin(self, group: Group, level: int, size: int, **widths: int) -> None:
        """Note that a level's arrays of a group are made; `widths` are bytes by name."""
        for name, width in widths.items():
            self.program.begin(numbered(name, level), group, width, size)

    def drop_coarser(self, level: int) -> None:
        """Free the arrays of finished levels."""
        for name in sorted(self.program.alive):
            stem, _, number = name.rpartition(".")
            if not number.isdecimal() or stem in ("labels", "start"):
                continue
            over = int(number) > level or (0 < int(number) < level)
            if over:
                self.program.end(name)
        if level == 0:
            kept = [name for name in self.program.alive if name.startswith(("labels.", "start."))]
            self.program.end(*sorted(kept))

    def make_hub_tables(self, work: Any, level: int) -> tuple[int, int]:
        """Make the tables of hubs; return the largest degree of other vertices, and the slots."""
        n, arcs = len(work["offsets"]) - 1, len(work["targets"])
        wide = self.degrees.hub_arcs if level == 0 else None  # as in the engine
        count, slots = hub_table_sizes(n, arcs, work["max_degree"], self.sums, hub_arcs=wide)
        self.begin("hash", level, slots, **{"hub_keys": 4, "hub_sums": self.sums})
        self.begin("hash", level, count, **{"hub_slots": 8})
        return BLOCK_MAX[self.sums], slots

    def slots_of(self, level: int, labels: str = "labels") -> Slots:
        """Return the slots of moving, in the order of `counting`."""
        name = partial(numbered, level=level)
        return Slots(
            self.program,
            [
                (name("queue"), Access.READ),
                (f"offsets.{level}", Access.GATHER),
                (f"degrees.{level}", Access.GATHER),
                (name(labels), Access.GATHER),
                (f"targets.{level}", Access.READ),
                (f"weights.{level}", Access.READ),
                (name(labels), Access.GATHER),
                (name("totals"), Access.GATHER),
                (name("hub_keys"), Access.ATOMIC),
                (name("hub_sums"), Access.ATOMIC),
                (name("proposed"), Access.WRITE),
                (name("proposed"), Access.READ),
                (name(labels), Access.SCATTER),
                (name("totals"), Access.ATOMIC),
                (name("sizes"), Access.ATOMIC),
                (name("next_active"), Access.SCATTER),
            ],
        )

    def widths(self, level: int) -> Widths:
        """Return bytes of a weight and of a sum on a level."""
        return Widths(self.weight if level == 0 else self.sums, self.sums)


def refine(recorder: Recorder, event: Event, work: Any) -> None:
    """Replay a refinement: the external weight of all vertices, then one sweep."""
    level, n, program = event.level, len(work["offsets"]) - 1, recorder.program
    widths, rows = recorder.widths(level), LevelArcs(work["offsets"], work["targets"])
    recorder.begin(
        "community", level, n,
        **{"refined": 4, "refined_totals": 2 * recorder.sums, "refined_sizes": 1},
    )  # fmt: skip
    recorder.begin("scratch", level, n, **{"weight_to_target": recorder.sums})
    whole, named = program.whole, numbered
    touched = [
        whole(named(name, level), Access.WRITE)
        for name in ("refined", "refined_totals", "refined_sizes")
    ]
    every = np.arange(n, dtype=np.uint32)
    for labels, values, queue in (
        ("labels", recorder.labels, every),
        ("refined", work["refined"], work["queue"]),
    ):
        slots = recorder.slots_of(level, labels)
        arcs = arcs_before(rows.offsets, queue)
        for begin, end in cut_ranges(arcs, 0, len(queue), recorder.chunk_arcs):
            counting.count_decisions(
                slots.counters, widths, recorder.hubs, rows, values, queue, begin, end
            )
            touched.append(slots.take())
    program.launch("refine", touched, "refine", level)
    freed = ("refined_totals", "refined_sizes", "weight_to_target")
    program.end(*(named(name, level) for name in freed))


def hub_rows(
    kept: Any, arcs: Any, width: int, first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where additions to the lengths of hubs' rows queue, and how many."""
    hubs = first + np.flatnonzero(kept[first:last] > SLOTS[width] // 4 * 3)
    if not len(hubs):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    slots = np.array([slots_for(int(min(arcs[c], len(kept)))) for c in hubs], np.int64)
    found = slots / 32 * (1 - (1 - kept[hubs] / slots) ** 32)
    queues = [
        begin + int(np.argmax(found[begin:end]))
        for begin, end in batches_of(slots, int(arcs.sum()))
    ]
    return 8 * hubs[queues] // PAGE_BYTES, np.rint(found[queues]).astype(np.int64)


def aggregate(recorder: Recorder, event: Event, work: Any) -> None:
    """Replay an aggregation: members, rows summed into the chunk, rows copied out."""
    level, after, program, named = event.level, event.level + 1, recorder.program, numbered
    offsets, targets, numbers = work["offsets"], work["targets"], work["numbers"]
    members, starts, found = work["members"], work["member_starts"], work["coarse_offsets"]
    n, k, arcs, kept = len(offsets) - 1, len(found) - 1, len(targets), int(found[-1])
    program.end(*(named(x, level) for x in ("queue", "proposed", "active", "next_active", "sizes")))
    program.end(*(named(x, level) for x in ("hub_keys", "hub_sums", "hub_slots")))
    chunk = max(1, min(arcs, max(LEAST_CHUNK, -(-arcs // 4))))
    sizes = {
        "members": (4, n + 1), "starts": (4, n + 1), "before": (8, n + 1), "rooms": (8, k + 1),
        "chunk_targets": (4, chunk), "chunk_weights": (recorder.sums, chunk),
        "state": (1, STATE.itemsize),
    }  # fmt: skip
    for name, (width, size) in sizes.items():
        program.begin(named(f"aggregate_{name}", level), "scratch", width, size)
    recorder.begin("graph", 0, k + 1, **{f"offsets.{after}": 8})
    recorder.begin("graph", 0, k, **{f"loops.{after}": recorder.sums})
    recorder.begin("community", 0, k, **{f"degrees.{after}": recorder.sums})
    recorder.begin("graph", 0, kept, **{f"targets.{after}": 4, f"weights.{after}": recorder.sums})

    labels = named("refined" if event.level == level and named("refined", level) in program.alive
                   else "labels", level)  # fmt: skip
    scratch = {name: named(f"aggregate_{name}", level) for name in sizes}
    slots = Slots(
        program,
        [
            (scratch["members"], Access.READ), (f"offsets.{level}", Access.GATHER),
            (f"targets.{level}", Access.READ), (f"weights.{level}", Access.READ),
            (labels, Access.GATHER), (scratch["chunk_targets"], Access.WRITE),
            (scratch["chunk_weights"], Access.WRITE), (scratch["starts"], Access.ATOMIC),
            (scratch["members"], Access.SCATTER), (labels, Access.READ),
            (f"degrees.{level}", Access.READ),
            (f"degrees.{after}", Access.ATOMIC), ("", Access.ATOMIC),
        ],
    )  # fmt: skip
    widths = recorder.widths(level)
    touched = [program.whole(labels, Access.READ), program.whole(labels, Access.WRITE)]
    cursor = starts[:-1].copy()
    for begin in range(0, n, recorder.chunk_arcs):
        end = min(n, begin + recorder.chunk_arcs)
        counting.count_grouping(slots.counters, widths, numbers, cursor, begin, end)
        touched.append(slots.take())
    for name, access in (
        ("before", Access.WRITE),
        ("before", Access.READ),
        ("rooms", Access.WRITE),
    ):
        touched.append(program.whole(scratch[name], access))
    program.launch("group_members", touched, "aggregate", level)

    before = arcs_before(offsets, members[:n])[starts]
    waits = aggregation_waits(n, np.diff(before), np.diff(found), recorder.sums, coarse=level > 0)
    state = program.numbers[scratch["state"]]
    together = Slots(
        program,
        [
            (scratch["chunk_targets"], Access.READ), (scratch["chunk_weights"], Access.READ),
            (f"targets.{after}", Access.WRITE), (f"weights.{after}", Access.WRITE),
        ],
    )  # fmt: skip
    for first, last in cut_ranges(before, 0, k, chunk):
        # A community larger than the chunk takes all of it.
        places = np.minimum(before - before[first], max(0, chunk - 1))
        places = np.minimum(places, np.maximum(0, chunk - np.diff(found, append=found[-1])))
        groups = Members(numbers, members, starts, places, found)
        touched = sum_row_touches(
            slots, widths, LevelArcs(offsets, targets), groups, np.arange(first, last), IN_FLIGHT,
            recorder.chunk_arcs,
        )  # fmt: skip
        at, queued = hub_rows(np.diff(found), np.diff(before), recorder.sums, first, last)
        if len(at):
            number = program.numbers[f"offsets.{after}"]
            touched.append(Touches.of(number, at, Access.CONTENDED, queued))
        if first == 0:
            # What all members of the largest community queue for is there, too.
            queue = counting.longest_queue(numbers, k)
            amounts = [waits.arrivals, waits.claims + queue, waits.plan_reads]
            ways = [Access.BARRIER, Access.CONTENDED, Access.GATHER]
            touched.append(Touches.runs(state, 0, 1, ways, amounts))
        program.launch(
            "sum_arcs", touched, "aggregate", level,
            chain=waits.chain if first == 0 else 0, host_seconds=waits.seconds if first == 0 else 0,
        )  # fmt: skip
        counting.compact_rows(together.counters, recorder.sums, places, found, first, last)
        program.launch("move_arcs", [together.take()], "aggregate", level)
    program.launch("offsets", [program.whole(scratch["rooms"], Access.READ),
                               program.whole(f"offsets.{after}", Access.WRITE),
                               program.whole(f"loops.{after}", Access.WRITE)],
                   "aggregate", level)  # fmt: skip
    program.end(*scratch.values(), named("totals", level))


def record(
    graph: Graph, *, method: Method = "louvain", seed: int = 0, observer: Any = None, **options: Any
) -> Trace:
    """Run the CPU engine on a graph and return what a GPU run of it would touch.

    Parameters
    ----------
    graph : Graph
    method, seed
        As in `louvain`.
    observer : callable, optional
        Also gets every event of the run.
    **options
        Further options of `louvain`.

    Returns
    -------
    Trace

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.profiling.access.recorder import record
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> record(g).steps[-1]
    Free(array=...)
    """
    from louvain_um.api import run

    recorder = Recorder(graph, method)

    def tell(event: Event) -> None:
        recorder(event)
        if observer is not None and event.kind != "step":
            observer(event)

    run(graph, Options(method=method, seed=seed, device="cpu", **options), tell)
    return recorder.trace()
