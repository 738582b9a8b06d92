"""Moving, refining and aggregating a level whose vertices are dealt over devices (`ranks.cu`).

One thread launches for all devices without waiting: between sub-rounds devices wait for each
other, and the host waits once a sweep. Each device sums the arcs of some communities, reading rows
in other devices' memory over the links between them; the rows are then copied to where the next
level is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.core.hierarchy import MoveStats
from louvain_um.gpu.aggregate.aggregate import finish, group_vertices
from louvain_um.gpu.aggregate.coarse_rows import CoarseRows, copy
from louvain_um.gpu.aggregate.kernel_arguments import Aggregation, room_after
from louvain_um.gpu.aggregate.limits import LIMITS, AggregationLimits
from louvain_um.gpu.level import GpuLevel, or_null, tag_after
from louvain_um.gpu.move.arguments import BINS, CONTROL, move_rule, new_control
from louvain_um.gpu.move.hub_tables import HubTables
from louvain_um.gpu.move.move import EndedSweep, MoveArrays, move_arrays
from louvain_um.gpu.ranks.share import NONE, Gate, Link, LinkGate, Share, Waits, side_by_side, turns
from louvain_um.gpu.refine.refine import REFINE_ARRAYS, start_refinement
from louvain_um.gpu.relabel.relabel import VERTICES_A_BLOCK, Join
from louvain_um.gpu.runtime.launch import Launcher, Struct, layout, pointers
from louvain_um.options import Options
from louvain_um.placement.memory import cuda_calls

LOCAL: Final = layout(
    n=np.int64, first=np.int64, last=np.int64,
    **pointers("active", "next_active", "starts", "control"),
    salt=np.uint32, sub_rounds=np.uint32,
)  # fmt: skip
"""`Local` of ranks.cu."""

SHOWN: Final = layout(**pointers("queue", "proposed", "starts", "activated", "weight_to_target"))
"""`Shown` of ranks.cu."""


class Worker:
    """What a device has while vertices move or are refined, and its launches."""

    def __init__(self, share: Share, *names: str) -> None:
        memory = share.memory
        self.share = share
        types, most = share.level.types, share.level.most_blocks
        self.kernels = {name: Launcher("ranks", name, types, most=most) for name in names}
        keys = rules.SUB_ROUNDS * BINS + 1
        self.starts = memory.empty("starts", "scratch", keys, np.uint32)
        self.hubs = HubTables(memory, share.local)
        self.control = new_control(memory)
        self.names = ["starts", "control"]
        self.shown: Any = None
        self.local: Struct
        self.rule: Struct

    def prepare(self, rule: Struct, salt: Any, active: Any = None, next_active: Any = None) -> None:
        """Set the arguments that kernels share."""
        self.rule = rule
        share = self.share
        self.local = Struct(
            LOCAL,
            n=share.level.vertices, first=share.first, last=share.last, active=active,
            next_active=next_active, starts=self.starts, control=self.control, salt=salt,
            sub_rounds=rules.SUB_ROUNDS,
        )  # fmt: skip

    def run(self, name: str, *arguments: Any) -> None:
        """Launch a kernel that decides for local vertices."""
        self.kernels[name](self.rule.argument, self.local.argument, *arguments)

    def apply(self, name: str, devices: int, sub_round: int) -> None:
        """Launch a kernel that applies what all devices propose."""
        where = self.shown, np.uint32(devices), np.uint32(sub_round)
        self.kernels[name](self.rule.argument, *where)

    def scratch(self, name: str, size: int) -> Any:
        """Allocate an array of uint32 until `close`."""
        self.names.append(name)
        return self.share.memory.empty(name, "scratch", size, np.uint32)

    def close(self) -> None:
        """Free the arrays."""
        self.hubs.free()
        self.share.memory.free(*self.names)


def show(workers: Sequence[Worker], arrays: Sequence[dict[str, Any]]) -> None:
    """Give every device the addresses of the arrays that the devices show each other."""
    nothing = dict.fromkeys(SHOWN.names or ())
    structs = [Struct(SHOWN, **{**nothing, **shown}).content for shown in arrays]
    table = np.frombuffer(b"".join(structs), np.uint8)
    for worker, _ in zip(workers, turns([w.share for w in workers]), strict=True):
        worker.shown = worker.share.memory.empty("shown", "scratch", table.size, np.uint8)
        worker.shown.set(table)
        worker.names.append("shown")


def move_shared(
    shares: Sequence[Share],
    options: Options,
    total: int,
    waits: Waits | None = None,
    link: Link | None = None,
) -> tuple[MoveStats, list[EndedSweep]]:
    """Sweep until the gain of a sweep falls below the level's tolerance; fill `waits`, if any."""
    names = "begin_shared", "queue_local", "move_round", "apply_round", "merge_active"
    level = shares[0].level
    workers, shown = list[Worker](), list[dict[str, Any]]()
    for share in turns(shares):
        arrays = move_arrays(share.memory, share.level, leiden=options.method == "leiden")
        worker = Worker(share, *names)
        rule = move_rule(share.memory, share.level, options, total, arrays)
        worker.prepare(rule, 0, arrays.active, arrays.next_active)
        worker.names.extend(MoveArrays._fields)
        worker.run("begin_shared", or_null(share.level.start))
        workers.append(worker)
        shown.append(
            {
                "queue": arrays.queue,
                "proposed": arrays.proposed,
                "starts": worker.starts,
                "activated": arrays.next_active,
            }
        )
    gate: Gate | LinkGate = Gate(shares, waits) if link is None else LinkGate(shares[0], link)
    show(workers, gate.show(shown))
    devices, n = gate.devices, np.int64(level.vertices)
    moves, gain, before, iteration = 0, 0, 0, 0
    ended = list[tuple[int, float]]()
    while iteration < rules.MAX_ITERATIONS:
        salt = rules.salt(level.cycle, iteration, options.seed)
        prunes = rules.prunes(level.start is None, iteration)
        gate.mark()
        for worker, _ in zip(workers, turns(shares), strict=True):
            worker.local.set(salt=salt)
            worker.run("queue_local")
        moved = NONE
        for r in range(rules.SUB_ROUNDS):
            for worker, _ in zip(workers, turns(shares), strict=True):
                if r:
                    worker.apply("apply_round", devices, r - 1)
                worker.run("move_round", worker.hubs.argument, np.uint32(r), moved)
            gate.moved(r)
            moved = np.uint32(r) if prunes else NONE
        for worker, _ in zip(workers, turns(shares), strict=True):
            worker.apply("apply_round", devices, rules.SUB_ROUNDS - 1)
            if prunes:
                worker.run("move_round", worker.hubs.argument, NONE, moved)
        if prunes:
            gate.activated()
            for worker, _ in zip(workers, turns(shares), strict=True):
                active = np.uint64(worker.local.value("active"))
                worker.kernels["merge_active"](n, active, worker.shown, np.uint32(devices))
        gate.mark()
        # Waits for all devices, which have read what they need of each other's memory.
        found = [
            w.control.get().view(CONTROL)[0] for w, _ in zip(workers, turns(shares), strict=True)
        ]
        gate.collect()
        moved_now, gained = gate.sums(
            [sum(int(f[name][0]) for f in found) for name in ("moves", "gain")]
        )
        iteration += 1
        moves, gain = moves + moved_now, gain + gained
        ended.append((moved_now, time.perf_counter()))
        ends = rules.is_last_sweep(level.number, iteration - 1, gained, before, options.effort)
        if moved_now == 0 or ends:
            break
        before = gained
    for worker, _ in zip(workers, turns(shares), strict=True):
        worker.close()
    gate.free()
    level.read_again, visited = gate.sums(
        [sum(int(f[name]) for f in found) for name in ("read_again", "visited")]
    )
    sweeps = [EndedSweep(count, ended[-1][1] - at) for count, at in ended]
    return MoveStats(iteration, moves, visited, gain), sweeps


def refine_shared(
    shares: Sequence[Share], options: Options, total: int, link: Link | None = None
) -> None:
    """Split communities into connected sub-communities; leaves `refined` on the levels."""
    workers, shown = list[Worker](), list[dict[str, Any]]()
    gate: Gate | LinkGate = Gate(shares) if link is None else LinkGate(shares[0], link)
    devices = gate.devices
    salt = rules.salt(shares[0].level.cycle, rules.REFINE_SWEEP, options.seed)
    for share in turns(shares):
        rule = start_refinement(share.memory, share.level, options, total)
        worker = Worker(share, "weigh_local", "refine_round", "join_round")
        worker.names.extend(REFINE_ARRAYS)
        worker.prepare(rule, salt)
        worker.run("weigh_local")
        workers.append(worker)
        names = "queue", "proposed", "weight_to_target"
        shown.append({name: share.memory.live[name] for name in names} | {"starts": worker.starts})
    show(workers, gate.show(shown))
    gate.complete([share.memory.live["refined_totals"] for share in shares], each=2)
    for r in range(rules.SUB_ROUNDS):
        for worker, _ in zip(workers, turns(shares), strict=True):
            if r:
                worker.apply("join_round", devices, r - 1)
            worker.run("refine_round", worker.hubs.argument, np.uint32(r))
        gate.moved(r)
    for worker, _ in zip(workers, turns(shares), strict=True):
        worker.apply("join_round", devices, rules.SUB_ROUNDS - 1)
    # The others read what is freed here.
    gate.close()
    for worker, _ in zip(workers, turns(shares), strict=True):
        worker.close()
    gate.free()


SPARE: Final = 1.2
"""Room for a device's rows, relative to an even part: rows differ in what they keep."""


@dataclass(slots=True)
class SummedPart:
    """The rows of some communities, on the device that summed them."""

    share: Share
    arrays: dict[str, Any]
    communities: int
    state: Any
    rows: CoarseRows
    numbers: Any

    @property
    def range(self) -> slice:
        """Local communities."""
        first, last = int(self.state["first"]), int(self.state["last"])
        return slice(first, max(first, last))

    @property
    def arcs(self) -> int:
        """Arcs of local rows."""
        return int(self.state["arcs"])


def aggregate_shared(
    shares: Sequence[Share], *, everywhere: Callable[[int], bool]
) -> list[GpuLevel]:
    """Return the next level, on the first device only or on every one."""
    count = len(shares)
    limits = replace(LIMITS, short_weights=())
    ranks = list(range(count))
    parts = side_by_side(shares, lambda rank: sum_part(shares[rank], rank, count, limits))
    here = ranks if everywhere(sum(part.arcs for part in parts)) else ranks[:1]
    there = shares[: len(here)]
    # What follows needs no answer from a device: one thread launches it for all of them.
    rows = collect(parts, there)
    levels = [complete(parts, rank, rows[rank]) for rank, _ in zip(here, turns(there), strict=True)]
    wait_for(there)
    for rank, part in enumerate(parts):
        part.rows.free()
        if rank not in here:
            tag = tag_after(part.share.level)
            part.share.memory.free(*(f"{name}.{tag}" for name in part.arrays))
    return levels


def wait_for(shares: Sequence[Share]) -> None:
    """Wait for some devices."""
    for _ in turns(shares):
        cuda_calls.synchronize()


def sum_part(share: Share, part: int, parts: int, limits: AggregationLimits) -> SummedPart:
    """Sum the arcs of a device's part of the communities."""
    level, memory = share.level, share.memory
    numbers = level.labels if level.refined is None else level.refined
    aggregation = Aggregation(memory, level)
    aggregation.set(numbers=numbers, map=numbers, label_bound=level.vertices)
    aggregation.set(part=part, parts=parts)
    arrays, k = group_vertices(aggregation, level)
    state = aggregation.lay_out(limits)
    aggregation.make_room(state, limits)
    room = int(state["room"])
    capacity = min(int(room_after(level, limits) / parts * SPARE), room)
    rows = CoarseRows(memory, "part", "graph", capacity, level.sums, most=room)
    aggregation.set(new_offsets=arrays["offsets"])
    state = aggregation.write(rows, room)
    aggregation.close()
    return SummedPart(share, arrays, k, state, rows, numbers)


def sum_local(share: Share, numbers: Any, communities: int) -> tuple[Any, Any, Any]:
    """Sum the arcs of local vertices alone by the communities of both ends."""
    level, memory = share.level, share.memory
    limits = replace(LIMITS, short_weights=())
    aggregation = Aggregation(memory, level)
    # Degrees are not summed: communities without arcs here may be neighbours of others.
    aggregation.set(
        numbers=numbers, map=numbers, label_bound=communities, neighbour_bound=communities
    )
    aggregation.group(communities)
    state = aggregation.lay_out(limits)
    aggregation.make_room(state, limits)
    room = int(state["room"])
    offsets = aggregation.scratch("new_offsets", communities + 1, np.int64)
    loops = aggregation.scratch("new_loops", communities, level.sums)
    loops.data.memset_async(0, loops.nbytes)
    capacity = min(room_after(level, limits), room)
    rows = CoarseRows(memory, "part", "graph", capacity, level.sums, most=room)
    kept = int(aggregation.write(rows, room)["arcs"])
    found = offsets.get(), rows.targets[:kept].get(), rows.weights[:kept].get()
    aggregation.close()
    rows.free()
    return found


def collect(parts: Sequence[SummedPart], shares: Sequence[Share]) -> list[CoarseRows]:
    """Copy the rows of all devices to some of them, one behind the other; wait for it."""
    # On the default stream, a copy between devices waits for all that both of them do.
    streams = [cuda_calls.new_stream() for _ in turns(shares)]
    try:
        rows = [collect_rows(parts, rank, streams[rank]) for rank, _ in enumerate(turns(shares))]
        for stream, _ in zip(streams, turns(shares), strict=True):
            cuda_calls.wait_for(stream)
        wait_for(shares)
    finally:
        for stream, _ in zip(streams, turns(shares), strict=True):
            cuda_calls.drop_stream(stream)
    return rows


def collect_rows(parts: Sequence[SummedPart], rank: int, stream: int) -> CoarseRows:
    """Copy all rows to a device, which is current: its own and, in a stream, the others'."""
    local, level = parts[rank], parts[rank].share.level
    total = sum(part.arcs for part in parts)
    rows = CoarseRows(local.share.memory, tag_after(level), "graph", total, level.sums)

    def fetch(source: Any, target: Any) -> None:
        if source.nbytes:
            cuda_calls.copy_later(target.data.ptr, source.data.ptr, source.nbytes, stream)

    done = 0
    for part in parts:
        put = copy if part is local else fetch
        if part is not local:
            for name in ("offsets", "loops"):
                fetch(part.arrays[name][part.range], local.arrays[name][part.range])
        put(part.rows.targets[: part.arcs], rows.targets[done : done + part.arcs])
        put(part.rows.weights[: part.arcs], rows.weights[done : done + part.arcs])
        done += part.arcs
    return rows


def complete(parts: Sequence[SummedPart], rank: int, rows: CoarseRows) -> GpuLevel:
    """Return the next level on a device that has all rows."""
    local = parts[rank]
    level, memory, arrays = local.share.level, local.share.memory, dict(local.arrays)
    done = 0
    for part in parts:
        offsets = arrays["offsets"][part.range]
        if done and offsets.size:
            shift = Launcher("ranks", "shift_offsets", most=offsets.size // VERTICES_A_BLOCK)
            shift(np.int64(offsets.size), offsets, np.int64(done))
        done += part.arcs
    arrays["offsets"][local.communities :].fill(done)
    arrays["targets"], arrays["weights"] = rows.targets, rows.weights
    state = local.state.copy()
    state["vertices"], state["arcs"] = local.communities, done
    state["inside"] = sum(int(part.state["inside"]) for part in parts)
    state["max_degree"] = max(int(part.state["max_degree"]) for part in parts)
    return Join(memory, level, local.numbers).finish(finish(level, state, arrays))
