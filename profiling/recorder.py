"""What a GPU run would touch, page by page, recorded while the CPU engine runs.

The recorder observes an engine and replays each of its steps over its arrays: the arrays are
those that the GPU engine would have, with its names, groups and element sizes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.events import Event
from louvain_um.gpu.launch import BLOCK_MAX, giant_tables
from louvain_um.graph import Graph
from louvain_um.ledger import Group
from louvain_um.options import Method
from louvain_um.profiling.program import Program, Slots, stretches
from louvain_um.profiling.simulator.touches import Touches, Way
from louvain_um.profiling.simulator.trace import Trace
from louvain_um.rules import SUB_ROUNDS

STRETCH: Final = 1 << 15
"""Arcs, about, whose touches have no order: as many as a small GPU works on at one time."""

MOST_STRETCHES: Final = 256
"""Stretches that a pass over a large graph is cut into; its stretches are longer."""

ROOM: Final = 1 << 22
"""Arcs that the room for rows of the next level holds at least, or a quarter of the level's."""

IN_FLIGHT: Final = 1024
"""Communities that are aggregated at one time, a warp each: 14 processors hold 896 warps, 132 hold
8,448. Where there are few, all of the graph is in flight at once."""

STAYS: Final = np.uint32(0xFFFFFFFF)
"""A goal that stands for none."""


class Recorder:
    """An observer of the CPU engine that writes a `Program` down.

    Parameters
    ----------
    graph : Graph
    room : float, optional
        Arcs of the room for rows of the next level, by arcs of the level; by default as the
        GPU engine has it.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.profiling.recorder import Recorder
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> recorder = Recorder(g)
    >>> result = lu.louvain(g, device="cpu", observer=recorder)
    >>> trace = recorder.trace()
    >>> trace.arrays[1].name, trace.arrays[1].nbytes
    ('targets.0', 56)
    """

    def __init__(self, graph: Graph, room: float | None = None) -> None:
        self.program = Program()
        self.vertices, self.arcs = graph.n_vertices, graph.n_arcs
        self.weight = 0 if graph.weights is None else graph.weights.dtype.itemsize
        narrow = self.weight == 0 and graph.total_weight < 2**32
        self.sums = 4 if narrow or graph.total_weight < 2**32 else 8
        self.room = room
        self.stretch = max(STRETCH, self.arcs // MOST_STRETCHES)
        self.giants = (0, 0)
        self.labels = np.empty(0, np.uint32)
        self.level = (-1, -1)
        given = self.program.given
        given("offsets.0", "graph", 8, self.vertices + 1)
        given("targets.0", "graph", 4, self.arcs)
        if self.weight:
            given("weights.0", "graph", self.weight, self.arcs)
        if graph.loops is not None and bool(graph.loops.any()):
            given("loops.0", "graph", self.sums, self.vertices)

    def __call__(self, event: Event) -> None:
        """Observe."""
        if event.kind != "work":
            return
        work = event.work
        {"move": self._move, "refine": self._refine, "aggregate": self._aggregate}[event.phase](
            event, work
        )

    def trace(self) -> Trace:
        """Return the program, labels on the host at its end."""
        program = self.program
        if "labels" in program.alive:
            program.begin("labels of the input", "community", 4, self.vertices)
            touched = [
                program.whole("labels", Way.READ),
                program.whole("labels of the input", Way.WRITE),
            ]
            program.launch("number", touched, "fetch", -1)
            program.on_host(program.whole("labels of the input", Way.READ))
            program.end(*sorted(program.alive - {"offsets.0", "targets.0", "weights.0"}))
        return program.trace()

    def _named(self, name: str, level: int) -> str:
        """Return an array's name; those of level 0 carry no number unless the graph's."""
        return name if level == 0 else f"{name}.{level}"

    def _begin(self, group: Group, level: int, size: int, **widths: int) -> None:
        for name, width in widths.items():
            self.program.begin(self._named(name, level), group, width, size)

    def _start_level(self, event: Event, work: Any) -> None:
        """Make what moving on a level needs, and fill it."""
        level, n = event.level, len(work["offsets"]) - 1
        program, named, first = self.program, self._named, self.level == (-1, -1)
        self.level = (work["cycle"], level)
        self._drop_coarser(level)
        if level == 0:
            self._begin("community", 0, n, **{"degrees.0": self.sums})
        if first:
            given = [program.whole(name, Way.READ) for name in ("offsets.0", "weights.0")]
            filled = program.whole("degrees.0", Way.WRITE)
            program.launch("add_degrees", [*given, filled], "load", -1)
        self._begin("community", level, n, labels=4, totals=self.sums, sizes=4)
        if work["start"] is not None:
            self._begin("community", level, n, start=4)
        self._begin("scratch", level, n, queue=4, goals=4, awake=1, woken=1)
        start = work["start"]
        self.labels = np.arange(n, dtype=np.uint32) if start is None else start.copy()
        touched = [program.whole(f"degrees.{level}", Way.READ)]
        touched += [program.whole(named("start", level), Way.READ)] if start is not None else []
        for name in ("labels", "totals", "sizes", "awake", "woken"):
            touched.append(program.whole(named(name, level), Way.WRITE))
        self.giants = self._giants(work, level)
        for name in ("giant keys", "giant sums"):
            touched.append(program.whole(named(name, level), Way.WRITE))
        program.launch("begin", touched, "move", level)

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

    def _giants(self, work: Any, level: int) -> tuple[int, int]:
        """Make the tables of vertices too wide for shared memory; return degree and slots."""
        n, arcs = len(work["offsets"]) - 1, len(work["targets"])
        count, slots = giant_tables(n, arcs, work["widest"], self.sums)
        self._begin("hash", level, slots, **{"giant keys": 4, "giant sums": self.sums})
        self._begin("hash", level, count, **{"giant slots": 8})
        return BLOCK_MAX[self.sums], slots

    def _slots(self, level: int, width: int, labels: str = "labels") -> Slots:
        """Return the slots of moving, in the order of `counting`."""
        named = self._named
        arrays = [
            ("queue", Way.READ), (f"offsets.{level}", Way.GATHER), (f"degrees.{level}", Way.GATHER),
            (named(labels, level), Way.GATHER), (f"targets.{level}", Way.READ),
            (f"weights.{level}", Way.READ), (named(labels, level), Way.GATHER),
            ("totals", Way.GATHER), ("giant keys", Way.ATOMIC), ("giant sums", Way.ATOMIC),
            ("goals", Way.WRITE), ("goals", Way.READ), (named(labels, level), Way.SCATTER),
            ("totals", Way.ATOMIC), ("sizes", Way.ATOMIC), ("woken", Way.SCATTER),
        ]  # fmt: skip
        plain = ("queue", "totals", "giant keys", "giant sums", "goals", "sizes", "woken")
        return Slots(
            self.program,
            [(named(name, level) if name in plain else name, way) for name, way in arrays],
        )

    def _widths(self, level: int) -> tuple[int, int]:
        """Return bytes of a weight and of a sum on a level."""
        return (self.weight if level == 0 else self.sums), self.sums

    def _move(self, event: Event, work: Any) -> None:
        """Replay one sweep."""
        from louvain_um.profiling import counting

        level = event.level
        if event.iteration == 0:
            self._start_level(event, work)
            self.slots = self._slots(level, self.sums)
        program, slots, widths = self.program, self.slots, self._widths(level)
        offsets, targets = work["offsets"], work["targets"]
        queue, starts, goals = work["queue"], work["starts"], work["goals"]
        total = int(starts[-1])
        arcs = running(offsets, queue[:total])
        touched = self._enqueued(level, total)
        for r in range(SUB_ROUNDS):
            first, last = int(starts[r]), int(starts[r + 1])
            parts = stretches(arcs, first, last, self.stretch)
            for begin, end in parts:
                counting.decide(
                    slots.book, widths, self.giants, offsets, targets, self.labels, queue, begin,
                    end,
                )  # fmt: skip
                touched.append(slots.take())
            counting.apply(slots.book, widths, self.labels, queue, goals, first, last, STAYS)
            touched.append(slots.take())
            for begin, end in parts:
                counting.activate(
                    slots.book, offsets, targets, self.labels, queue, goals, begin, end, STAYS
                )
                touched.append(slots.take())
        program.launch("move", touched, "move", level, event.iteration)

    def _enqueued(self, level: int, total: int) -> list[Touches]:
        """Return what listing the awake vertices touches."""
        program, named = self.program, self._named
        touched = [program.whole(named(name, level), Way.READ) for name in ("awake", "woken")]
        touched.append(program.whole(named("awake", level), Way.WRITE))
        if total:
            touched.append(program.whole(named("queue", level), Way.WRITE, 4 * total))
        return touched

    def _refine(self, event: Event, work: Any) -> None:
        """Replay a refinement: the ties of all vertices, then one sweep."""
        from louvain_um.profiling import counting

        level, n, program = event.level, len(work["offsets"]) - 1, self.program
        widths, offsets, targets = self._widths(level), work["offsets"], work["targets"]
        self._begin(
            "community", level, n,
            **{"parts": 4, "part totals": self.sums, "part sizes": 4, "cuts": self.sums},
        )  # fmt: skip
        self._begin("scratch", level, n, ties=self.sums)
        whole, named = program.whole, self._named
        touched = [
            whole(named(name, level), Way.WRITE)
            for name in ("parts", "part totals", "part sizes", "cuts")
        ]
        every = np.arange(n, dtype=np.uint32)
        for labels, values, queue in (
            ("labels", self.labels, every),
            ("parts", work["parts"], work["queue"]),
        ):
            slots = self._slots(level, self.sums, labels)
            arcs = running(offsets, queue)
            for begin, end in stretches(arcs, 0, len(queue), self.stretch):
                counting.decide(
                    slots.book, widths, self.giants, offsets, targets, values, queue, begin, end
                )
                touched.append(slots.take())
        program.launch("refine", touched, "refine", level)
        program.end(*(named(name, level) for name in ("part totals", "part sizes", "cuts", "ties")))

    def _aggregate(self, event: Event, work: Any) -> None:
        """Replay an aggregation: members, rows added up into the room, rows moved together."""
        from louvain_um.profiling import counting

        level, after, program, named = event.level, event.level + 1, self.program, self._named
        offsets, targets, numbers = work["offsets"], work["targets"], work["numbers"]
        members, starts, found = work["members"], work["member_starts"], work["coarse_offsets"]
        n, k, arcs, kept = len(offsets) - 1, len(found) - 1, len(targets), int(found[-1])
        program.end(*(named(x, level) for x in ("queue", "goals", "awake", "woken", "sizes")))
        program.end(*(named(x, level) for x in ("giant keys", "giant sums", "giant slots")))
        room = min(arcs, max(ROOM, -(-arcs // 4)))
        room = max(1, room if self.room is None else int(self.room * arcs))
        sizes = {
            "members": (4, n + 1), "starts": (4, n + 1), "before": (8, n + 1), "rooms": (8, k + 1),
            "room_targets": (4, room), "room_weights": (self.sums, room),
        }  # fmt: skip
        for name, (width, size) in sizes.items():
            program.begin(named(f"aggregate {name}", level), "scratch", width, size)
        self._begin("graph", 0, k + 1, **{f"offsets.{after}": 8})
        self._begin("graph", 0, k, **{f"loops.{after}": self.sums})
        self._begin("community", 0, k, **{f"degrees.{after}": self.sums})
        self._begin("graph", 0, kept, **{f"targets.{after}": 4, f"weights.{after}": self.sums})

        labels = named("parts" if event.level == level and named("parts", level) in program.alive
                       else "labels", level)  # fmt: skip
        own = {name: named(f"aggregate {name}", level) for name in sizes}
        slots = Slots(
            program,
            [
                (own["members"], Way.READ), (f"offsets.{level}", Way.GATHER),
                (f"targets.{level}", Way.READ), (f"weights.{level}", Way.READ),
                (labels, Way.GATHER), (own["room_targets"], Way.WRITE),
                (own["room_weights"], Way.WRITE), (own["starts"], Way.ATOMIC),
                (own["members"], Way.SCATTER), (labels, Way.READ), (f"degrees.{level}", Way.READ),
                (f"degrees.{after}", Way.ATOMIC), ("", Way.ATOMIC),
            ],
        )  # fmt: skip
        widths = self._widths(level)
        touched = [program.whole(labels, Way.READ), program.whole(labels, Way.WRITE)]
        cursor = starts[:-1].copy()
        for begin in range(0, n, self.stretch):
            counting.group(slots.book, widths, numbers, cursor, begin, min(n, begin + self.stretch))
            touched.append(slots.take())
        touched += [program.whole(own["before"], Way.WRITE), program.whole(own["before"], Way.READ)]
        touched.append(program.whole(own["rooms"], Way.WRITE))
        program.launch("group_members", touched, "aggregate", level)

        before = running(offsets, members[:n])[starts]
        together = Slots(
            program,
            [
                (own["room_targets"], Way.READ), (own["room_weights"], Way.READ),
                (f"targets.{after}", Way.WRITE), (f"weights.{after}", Way.WRITE),
            ],
        )  # fmt: skip
        for first, last in stretches(before, 0, k, room):
            # A community larger than the room has the whole of it.
            places = np.minimum(before - before[first], max(0, room - 1))
            places = np.minimum(places, np.maximum(0, room - np.diff(found, append=found[-1])))
            lists = (numbers, members, starts, places, found)
            touched = added_up(
                slots, widths, (offsets, targets), lists, np.arange(first, last), IN_FLIGHT,
                self.stretch,
            )  # fmt: skip
            program.launch("sum_arcs", touched, "aggregate", level)
            counting.move_together(together.book, self.sums, places, found, first, last)
            program.launch("move_arcs", [together.take()], "aggregate", level)
        program.launch("offsets", [program.whole(own["rooms"], Way.READ),
                                   program.whole(f"offsets.{after}", Way.WRITE),
                                   program.whole(f"loops.{after}", Way.WRITE)],
                       "aggregate", level)  # fmt: skip
        program.end(*own.values(), named("totals", level))


def added_up(
    slots: Slots,
    widths: tuple[int, int],
    graph: tuple[Any, Any],
    lists: tuple[Any, ...],
    order: Any,
    workers: int,
    stretch: int,
    keys: tuple[int, int] = (0, 0),
) -> list[Touches]:
    """Return what adding up the arcs of communities, in an order, touches.

    `workers` of them are in flight at a time; see `counting.add_up`.
    """
    from louvain_um.profiling.counting import add_up

    workers = max(1, min(workers, len(order)))
    quota = max(1, stretch // workers)
    flight = np.full(2 * workers + 1, -1, np.int64)
    flight[-1] = 0
    touched = []
    busy = len(order) > 0
    while busy:
        busy = add_up(slots.book, widths, graph, lists, order, len(order), flight, quota, keys)
        touched.append(slots.take())
    return touched


def running(offsets: Any, vertices: Any) -> Any:
    """Return the arcs of all vertices of a list before each, and of all."""
    degrees = np.diff(offsets)[vertices]
    return np.concatenate([[0], np.cumsum(degrees)])


def record(
    graph: Graph,
    *,
    method: Method = "louvain",
    seed: int = 0,
    observer: Any = None,
    room: float | None = None,
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
    room : float, optional
        As in `Recorder`.
    **options
        Further options of `louvain`.

    Returns
    -------
    Trace

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.profiling.recorder import record
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> record(g).steps[-1]
    Free(array=...)
    """
    from louvain_um.api import run
    from louvain_um.options import Options

    recorder = Recorder(graph, room)

    def tell(event: Event) -> None:
        recorder(event)
        if observer is not None and event.kind != "work":
            observer(event)

    run(graph, Options(method=method, seed=seed, device="cpu", **options), tell)
    return recorder.trace()
