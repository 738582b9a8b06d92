"""What a GPU run would touch, page by page, recorded while the CPU engine runs.

The recorder observes an engine and replays each of its steps over its arrays: the arrays are
those that the GPU engine would have, with its names, groups and element sizes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from louvain_um.core.ledger import Group
from louvain_um.core.rules import SUB_ROUNDS, prunes
from louvain_um.events import Event
from louvain_um.gpu.memory.degree_stats import degree_stats
from louvain_um.gpu.runtime.launch import BLOCK_MAX, hub_table_sizes
from louvain_um.graph.graph import Graph
from louvain_um.options import Method
from louvain_um.placement.model.cost import HIDDEN
from louvain_um.profiling.access.program import Program, Slots, arcs_before, stretches
from louvain_um.profiling.access.recorder_steps import aggregate, numbered, refine
from louvain_um.profiling.access.waits import ENDS, MOVE_SECONDS, sweep_steps
from louvain_um.profiling.simulator.touches import Access, Touches
from louvain_um.profiling.simulator.trace import Trace

STRETCH: Final = 1 << 15
"""Arcs, about, whose touches have no order: as many as a small GPU works on at one time."""

MOST_STRETCHES: Final = 256
"""Stretches that a pass over a large graph is cut into; its stretches are longer."""

GIVEN: Final = {"offsets.0", "targets.0", "weights.0", "loops.0", "degrees.0"}
"""Arrays of the graph, there from the beginning to the end."""

STAYS: Final = np.uint32(0xFFFFFFFF)
"""A goal that stands for none."""


class Recorder:
    """An observer of the CPU engine that writes a `Program` down.

    Parameters
    ----------
    graph : Graph
    method : {"louvain", "leiden"}

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.profiling.access.recorder import Recorder
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> recorder = Recorder(g)
    >>> result = lu.louvain(g, device="cpu", observer=recorder)
    >>> trace = recorder.trace()
    >>> trace.arrays[1].name, trace.arrays[1].nbytes
    ('targets.0', 56)
    """

    def __init__(self, graph: Graph, method: Method = "louvain") -> None:
        self.program = Program()
        self.vertices, self.arcs = graph.n_vertices, graph.n_arcs
        self.weight = 0 if graph.weights is None else graph.weights.dtype.itemsize
        narrow = self.weight == 0 and graph.total_weight < 2**32
        self.sums = 4 if narrow or graph.total_weight < 2**32 else 8
        self.degrees = degree_stats(graph.offsets)
        self.about = {
            "vertices": self.vertices,
            "arcs": self.arcs,
            "weight_bytes": self.weight,
            "sum_bytes": self.sums,
            "loops": graph.loops is not None and bool(graph.loops.any()),
            "max_degree": self.degrees.max_degree,
            "isolated": self.degrees.isolated,
            "hub_arcs": self.degrees.hub_arcs,
            "skew": self.degrees.degree_squares / max(self.arcs, 1),
            "method": method,
        }
        self.stretch = max(STRETCH, self.arcs // MOST_STRETCHES)
        self.hubs = (0, 0)
        self.labels = np.empty(0, np.uint32)
        self.level = (-1, -1)
        given = self.program.given
        given("offsets.0", "graph", 8, self.vertices + 1)
        given("targets.0", "graph", 4, self.arcs)
        if self.weight:
            given("weights.0", "graph", self.weight, self.arcs)
        if graph.loops is not None and bool(graph.loops.any()):
            given("loops.0", "graph", self.sums, self.vertices)
        # The host knows them, too: they come with the graph.
        given("degrees.0", "community", self.sums, self.vertices)

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
        """Return the program; its end copies labels to the host, which moves no page."""
        program = self.program
        if "labels" in program.alive:
            program.begin("labels of the input", "community", 4, self.vertices)
            touched = [
                program.whole("labels", Access.READ),
                program.whole("labels of the input", Access.WRITE),
            ]
            program.launch("number", touched, "fetch", -1)
            program.end(*sorted(program.alive - GIVEN))
        # Its kernels have barriers, at which all wait for the slowest rows.
        return replace(program.trace(), hidden=HIDDEN, about=self.about)

    def begin(self, group: Group, level: int, size: int, **widths: int) -> None:
        """Note that a level's arrays of a group are made; `widths` are bytes by name."""
        for name, width in widths.items():
            self.program.begin(numbered(name, level), group, width, size)

    def _start_level(self, event: Event, work: Any) -> None:
        """Make what moving on a level needs, and fill it."""
        level, n = event.level, len(work["offsets"]) - 1
        program, named = self.program, numbered
        self.level = (work["cycle"], level)
        self._drop_coarser(level)
        self.begin("community", level, n, labels=4, totals=self.sums, sizes=4)
        if work["start"] is not None:
            self.begin("community", level, n, start=4)
        self.begin(
            "scratch", level, n, **{"queue": 4, "proposed": 4, "active": 1, "next active": 1}
        )
        start = work["start"]
        self.labels = np.arange(n, dtype=np.uint32) if start is None else start.copy()
        touched = [program.whole(f"degrees.{level}", Access.READ)]
        touched += [program.whole(named("start", level), Access.READ)] if start is not None else []
        for name in ("labels", "totals", "sizes", "active", "next active"):
            touched.append(program.whole(named(name, level), Access.WRITE))
        self.hubs = self._hubs(work, level)
        for name in ("hub keys", "hub sums"):
            touched.append(program.whole(named(name, level), Access.WRITE))
        program.launch("begin", touched, "move", level, chain=ENDS, host_seconds=MOVE_SECONDS)

    def _drop_coarser(self, level: int) -> None:
        """Give back what belongs to levels that are over."""
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

    def _hubs(self, work: Any, level: int) -> tuple[int, int]:
        """Make the tables of vertices too wide for shared memory; return degree and slots."""
        n, arcs = len(work["offsets"]) - 1, len(work["targets"])
        wide = self.degrees.hub_arcs if level == 0 else None  # as the engine knows it
        count, slots = hub_table_sizes(n, arcs, work["max_degree"], self.sums, wide=wide)
        self.begin("hash", level, slots, **{"hub keys": 4, "hub sums": self.sums})
        self.begin("hash", level, count, **{"hub slots": 8})
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
                (name("hub keys"), Access.ATOMIC),
                (name("hub sums"), Access.ATOMIC),
                (name("proposed"), Access.WRITE),
                (name("proposed"), Access.READ),
                (name(labels), Access.SCATTER),
                (name("totals"), Access.ATOMIC),
                (name("sizes"), Access.ATOMIC),
                (name("next active"), Access.SCATTER),
            ],
        )

    def widths(self, level: int) -> tuple[int, int]:
        """Return bytes of a weight and of a sum on a level."""
        return (self.weight if level == 0 else self.sums), self.sums

    def _move(self, event: Event, work: Any) -> None:
        """Replay one sweep."""
        from louvain_um.profiling.access import counting

        level = event.level
        if event.iteration == 0:
            self._start_level(event, work)
            self.slots = self.slots_of(level)
        program, slots, widths = self.program, self.slots, self.widths(level)
        offsets, targets = work["offsets"], work["targets"]
        queue, starts, goals = work["queue"], work["starts"], work["proposed"]
        total = int(starts[-1])
        arcs = arcs_before(offsets, queue[:total])
        waking = prunes(work["start"] is None, event.iteration)
        chain = sweep_steps(np.diff(arcs), starts, self.sums, wakes=waking)
        touched = self._enqueued(level, total)
        for r in range(SUB_ROUNDS):
            first, last = int(starts[r]), int(starts[r + 1])
            parts = stretches(arcs, first, last, self.stretch)
            for begin, end in parts:
                counting.decide(
                    slots.counters, widths, self.hubs, offsets, targets, self.labels, queue, begin,
                    end,
                )  # fmt: skip
                touched.append(slots.take())
            counting.apply(slots.counters, widths, self.labels, queue, goals, first, last, STAYS)
            touched.append(slots.take())
            for begin, end in parts if waking else ():
                counting.activate(
                    slots.counters, offsets, targets, self.labels, queue, goals, begin, end, STAYS
                )
                touched.append(slots.take())
        program.launch("move", touched, "move", level, event.iteration, chain=chain)

    def _enqueued(self, level: int, total: int) -> list[Touches]:
        """Return what listing the active vertices touches."""
        program, named = self.program, numbered
        touched = [
            program.whole(named(name, level), Access.READ) for name in ("active", "next active")
        ]
        touched.append(program.whole(named("active", level), Access.WRITE))
        if total:
            touched.append(program.whole(named("queue", level), Access.WRITE, 4 * total))
        return touched


def record(
    graph: Graph,
    *,
    method: Method = "louvain",
    seed: int = 0,
    observer: Any = None,
    **options: Any,
) -> Trace:
    """Run the CPU engine on a graph and return what a GPU run of it would touch.

    Parameters
    ----------
    graph : Graph
    method, seed
        As in `louvain`.
    observer : callable, optional
        Is told of everything besides.
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
    from louvain_um.options import Options

    recorder = Recorder(graph, method)

    def tell(event: Event) -> None:
        recorder(event)
        if observer is not None and event.kind != "step":
            observer(event)

    run(graph, Options(method=method, seed=seed, device="cpu", **options), tell)
    return recorder.trace()
