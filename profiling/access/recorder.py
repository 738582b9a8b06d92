"""What a GPU run would touch, page by page, recorded while the CPU engine runs.

The recorder observes an engine and replays each of its steps over its arrays: the arrays are
those that the GPU engine would have, with its names, groups and element sizes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.core.rules import SUB_ROUNDS, prunes
from louvain_um.events import Event
from louvain_um.graph.graph import Graph
from louvain_um.options import Method
from louvain_um.placement.model.cost import HIDDEN
from louvain_um.profiling.access.program import arcs_before, stretches
from louvain_um.profiling.access.recorded_arrays import RecordedArrays, numbered
from louvain_um.profiling.access.recorder_steps import aggregate, refine
from louvain_um.profiling.access.waits import MOVE_SECONDS, SWEEP_END_STEPS, sweep_steps
from louvain_um.profiling.simulator.touches import Access, Touches
from louvain_um.profiling.simulator.trace import Trace

GIVEN: Final = {"offsets.0", "targets.0", "weights.0", "loops.0", "degrees.0"}
"""Arrays of the input graph, alive throughout."""

STAYS: Final = np.uint32(0xFFFFFFFF)
"""The value of `proposed` for no move."""


class Recorder(RecordedArrays):
    """An observer of the CPU engine that records a `Program`."""

    def __init__(self, graph: Graph, method: Method = "louvain") -> None:
        super().__init__(graph)
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
        from louvain_um.profiling.access import counting

        level = event.level
        if event.iteration == 0:
            self._start_level(event, work)
            self.slots = self.slots_of(level)
        program, slots, widths = self.program, self.slots, self.widths(level)
        offsets, targets = work["offsets"], work["targets"]
        queue, starts, proposed = work["queue"], work["starts"], work["proposed"]
        total = int(starts[-1])
        arcs = arcs_before(offsets, queue[:total])
        activates = prunes(work["start"] is None, event.iteration)
        chain = sweep_steps(np.diff(arcs), starts, self.sums, activates=activates)
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
            counting.apply(slots.counters, widths, self.labels, queue, proposed, first, last, STAYS)
            touched.append(slots.take())
            for begin, end in parts if activates else ():
                counting.activate(
                    slots.counters,
                    offsets,
                    targets,
                    self.labels,
                    queue,
                    proposed,
                    begin,
                    end,
                    STAYS,
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
    from louvain_um.options import Options

    recorder = Recorder(graph, method)

    def tell(event: Event) -> None:
        recorder(event)
        if observer is not None and event.kind != "step":
            observer(event)

    run(graph, Options(method=method, seed=seed, device="cpu", **options), tell)
    return recorder.trace()
