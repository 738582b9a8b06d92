"""Moving and refining a level whose vertices are dealt over devices; launches `ranks.cu`.

One thread launches for all devices without waiting: between sub-rounds devices wait for each
other, and the host waits once a sweep.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.core.hierarchy import MoveStats
from louvain_um.gpu.level import or_null
from louvain_um.gpu.move.arguments import BINS, CONTROL, move_rule, new_control
from louvain_um.gpu.move.hub_tables import HubTables
from louvain_um.gpu.move.move import EndedSweep, MoveArrays, move_arrays
from louvain_um.gpu.ranks.share import NONE, Gate, Link, LinkGate, Share, Waits, turns
from louvain_um.gpu.refine.refine import REFINE_ARRAYS, start_refinement
from louvain_um.gpu.runtime.launch import Launcher
from louvain_um.gpu.runtime.structs import Struct, layout, pointers
from louvain_um.options import Options

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
    shares: Sequence[Share],
    options: Options,
    total: int,
    link: Link | None = None,
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
