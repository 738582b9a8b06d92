"""The recorder's steps behind moving: refining, and aggregating into the next level."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.events import Event
from louvain_um.gpu.aggregate.kernel_arguments import STATE
from louvain_um.gpu.aggregate.limits import SLOTS, slots_for
from louvain_um.profiling.access.program import Slots, arcs_before, stretches, sum_row_touches
from louvain_um.profiling.access.recorded_arrays import RecordedArrays, numbered
from louvain_um.profiling.access.waits import aggregation_waits, batches_of
from louvain_um.profiling.simulator.driver.constants import PAGE_BYTES
from louvain_um.profiling.simulator.touches import Access, Touches

LEAST_CHUNK: Final = 1 << 22
"""Least arcs that the chunk for rows of the next level holds; else a quarter of the level's."""

IN_FLIGHT: Final = 1024
"""Communities aggregated concurrently, one per warp: 14 multiprocessors hold 896 warps, 132 hold
8,448. With few communities, the whole graph is in flight."""


def refine(recorder: RecordedArrays, event: Event, work: Any) -> None:
    """Replay a refinement: the external weight of all vertices, then one sweep."""
    from louvain_um.profiling.access import counting

    level, n, program = event.level, len(work["offsets"]) - 1, recorder.program
    widths, offsets, targets = recorder.widths(level), work["offsets"], work["targets"]
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
        arcs = arcs_before(offsets, queue)
        for begin, end in stretches(arcs, 0, len(queue), recorder.stretch):
            counting.decide(
                slots.counters, widths, recorder.hubs, offsets, targets, values, queue, begin, end
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


def aggregate(recorder: RecordedArrays, event: Event, work: Any) -> None:
    """Replay an aggregation: members, rows summed into the chunk, rows copied out."""
    from louvain_um.profiling.access import counting

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
    own = {name: named(f"aggregate_{name}", level) for name in sizes}
    slots = Slots(
        program,
        [
            (own["members"], Access.READ), (f"offsets.{level}", Access.GATHER),
            (f"targets.{level}", Access.READ), (f"weights.{level}", Access.READ),
            (labels, Access.GATHER), (own["chunk_targets"], Access.WRITE),
            (own["chunk_weights"], Access.WRITE), (own["starts"], Access.ATOMIC),
            (own["members"], Access.SCATTER), (labels, Access.READ),
            (f"degrees.{level}", Access.READ),
            (f"degrees.{after}", Access.ATOMIC), ("", Access.ATOMIC),
        ],
    )  # fmt: skip
    widths = recorder.widths(level)
    touched = [program.whole(labels, Access.READ), program.whole(labels, Access.WRITE)]
    cursor = starts[:-1].copy()
    for begin in range(0, n, recorder.stretch):
        end = min(n, begin + recorder.stretch)
        counting.group(slots.counters, widths, numbers, cursor, begin, end)
        touched.append(slots.take())
    for name, access in (
        ("before", Access.WRITE),
        ("before", Access.READ),
        ("rooms", Access.WRITE),
    ):
        touched.append(program.whole(own[name], access))
    program.launch("group_members", touched, "aggregate", level)

    before = arcs_before(offsets, members[:n])[starts]
    waits = aggregation_waits(n, np.diff(before), np.diff(found), recorder.sums, coarse=level > 0)
    state = program.numbers[own["state"]]
    together = Slots(
        program,
        [
            (own["chunk_targets"], Access.READ), (own["chunk_weights"], Access.READ),
            (f"targets.{after}", Access.WRITE), (f"weights.{after}", Access.WRITE),
        ],
    )  # fmt: skip
    for first, last in stretches(before, 0, k, chunk):
        # A community larger than the chunk takes all of it.
        places = np.minimum(before - before[first], max(0, chunk - 1))
        places = np.minimum(places, np.maximum(0, chunk - np.diff(found, append=found[-1])))
        lists = (numbers, members, starts, places, found)
        touched = sum_row_touches(
            slots, widths, (offsets, targets), lists, np.arange(first, last), IN_FLIGHT,
            recorder.stretch,
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
    program.launch("offsets", [program.whole(own["rooms"], Access.READ),
                               program.whole(f"offsets.{after}", Access.WRITE),
                               program.whole(f"loops.{after}", Access.WRITE)],
                   "aggregate", level)  # fmt: skip
    program.end(*own.values(), named("totals", level))
