"""Several GPUs of one host, driven by one thread; each reads the others' memory over the links.

The rows of level 0 lie on all devices in one range of addresses; labels, totals and states of all
vertices lie on each. A device decides for its own vertices and sums the arcs of its share of the
communities. Large levels after the first are whole on every device and shared in the same way;
small ones are left to the first device.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from louvain_um.core.hierarchy import MoveStats, detect, search
from louvain_um.core.objective import Problem, problem_of
from louvain_um.distributed.communicator import RankSpan, report, summary
from louvain_um.distributed.partition import cut_by_arcs
from louvain_um.distributed.run import refuse_extended_rule, refuse_policies
from louvain_um.events import Observer, array_listener, ignore
from louvain_um.gpu.aggregate import reaggregate
from louvain_um.gpu.aggregate.aggregate import prepare
from louvain_um.gpu.aggregate.coarse_rows import copy
from louvain_um.gpu.aggregate.limits import LIMITS
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.level import DeviceRun, GpuLevel
from louvain_um.gpu.move.move import report_sweeps
from louvain_um.gpu.preparation import Prepared, kernel_types, load_kernels
from louvain_um.gpu.ranks.share import Share, SharedRows, Waits, load_share, turns
from louvain_um.gpu.ranks.steps import aggregate_shared, move_shared, refine_shared
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.runtime.device import capabilities, pick
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.guard import enable_peers
from louvain_um.results.communities import Communities

SHARED_ARCS: Final = 1 << 25
"""Arcs from which a level after the first is shared: fewer gain nothing (`devices_h200.json`)."""


class DevicesEngine:
    """Louvain and Leiden on several devices; what is not shared is left to the first one's."""

    def __init__(self, options: Options, observer: Observer, devices: Sequence[int]) -> None:
        self.options = options
        self.observer = observer
        self.devices = list(devices)
        self.local = local = GpuEngine(options, observer)
        self.inputs: list[Share] = []
        self.team: list[Share] = []
        self.entered = time.perf_counter()
        self.spans: list[list[RankSpan]] = [[] for _ in self.devices]
        self.max_degree = local.max_degree
        self.prepare_restart = local.prepare_restart
        self.sums = local.sums
        self.split_disconnected = local.split_disconnected
        self.coarse_vertices = local.coarse_vertices
        self.coarse_labels = local.coarse_labels
        self.labels = local.labels

    def __enter__(self) -> DevicesEngine:
        return self

    def __exit__(self, *failure: object) -> None:
        with self.local.stack:
            for share in turns(self.inputs):
                cuda_calls.synchronize()
                share.memory.close()

    @property
    def problem(self) -> Problem:
        """What the run is to find."""
        return self.local.problem

    def load(self, graph: Any) -> GpuLevel:
        """Deal the rows over the devices; offsets and degrees are whole on each."""
        problem = problem_of(graph, self.options)
        types, coarse = kernel_types(graph, 0, widths=LIMITS.short_weights)
        for device in dict.fromkeys(self.devices):
            with cuda_calls.current(device):
                load_kernels(problem, self.options, self.observer, types, *coarse)
                units = [("ranks", each) for each in (types, coarse[0], "")]
                kernels.prepare(units, self.observer)
        bounds, arcs_before = cut_evenly(graph.offsets, len(self.devices))
        rows = SharedRows(graph, self.devices, bounds, arcs_before)
        self.local.stack.callback(rows.close)
        listener = array_listener(self.observer)
        # All rows first: every device adds up the weights of all of them.
        for rank, device in enumerate(self.devices):
            with cuda_calls.current(device):
                rows.fill(rank)
        for rank, device in enumerate(self.devices):
            with cuda_calls.current(device):
                share = load_share(rows, rank, None if rank else listener)
            self.inputs.append(share)
        first = self.inputs[0]
        prepare(first.memory, first.level)
        for share in self.inputs:
            share.level.max_degree = first.level.max_degree
        self.team = self.inputs
        run = DeviceRun(
            options=self.options,
            observer=self.observer,
            problem=problem,
            total=graph.total_weight,
            memory=first.memory,
            limits=LIMITS,
        )
        return self.local.begin(Prepared(run=run, level=first.level))

    def shared(self, level: GpuLevel) -> bool:
        """Return whether the devices share the work on a level."""
        return bool(self.team) and self.team[0].level is level

    def move(self, level: GpuLevel) -> MoveStats:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        if not self.shared(level):
            return self.local.move(level)
        waits = None
        if self.observer is not ignore and len(self.team) > 1:
            waits = Waits([0.0] * len(self.team), [0.0] * len(self.team))
        start = time.perf_counter() - self.entered
        moved, sweeps = move_shared(self.team, self.options, self.local.run.total, waits)
        if waits:
            self.note("move", level.number, start, waits)
        report_sweeps(self.observer, level, sweeps)
        return moved

    def note(self, phase: str, level: int, start: float, waits: Waits) -> None:
        """Note what each device did with its time in a phase."""
        for spans, work, waited in zip(self.spans, waits.work, waits.waited, strict=True):
            spans.append(
                RankSpan(
                    phase=phase,
                    level=level,
                    start=start,
                    seconds=work + waited,
                    exchange=waited,
                    received=0,
                )
            )

    def refine(self, level: GpuLevel) -> None:
        """Split communities into connected sub-communities."""
        if not self.shared(level):
            self.local.refine(level)
        elif level.whole:
            # Levels after the first are whole on each device.
            self.local.refine(level)
            self.copy_refined(level)
        else:
            refine_shared(self.team, self.options, self.local.run.total)

    def copy_refined(self, level: GpuLevel) -> None:
        """Give the other devices the sub-communities of a level."""
        cuda_calls.synchronize()
        for share in turns(self.team[1:]):
            name = f"refined.{level.cycle}.{level.number}"
            there = share.memory.empty(name, "community", level.vertices, np.uint32)
            copy(level.refined, there)
            share.level.refined = there

    def aggregate(self, level: GpuLevel) -> GpuLevel:
        """Return the next level; vertices that share a label (or sub-community) become one."""
        if not self.shared(level):
            return self.local.aggregate(level)
        for share in turns(self.team):
            share.memory.free("totals")
        several = len(self.team) > 1
        levels = aggregate_shared(
            self.team, everywhere=lambda arcs: several and arcs >= SHARED_ARCS
        )
        if self.options.method == "leiden":
            self.local.memory.free(f"labels.{level.cycle}.{level.number}")
            level.labels = None
        self.local.current = coarse = levels[0]
        self.team = deal_level(self.team, levels) if len(levels) > 1 else []
        self.tidy(coarse)
        return coarse

    def tidy(self, level: GpuLevel | None = None) -> None:
        """Free what the other devices hold besides the input, and a level that is shared."""
        kept = {f"{name}.0" for name in reaggregate.GRAPH}
        if level is not None and self.shared(level):
            kept |= {f"{name}.{level.tag}" for name in reaggregate.GRAPH}
            kept |= {f"start.{level.cycle}.{level.number}"}
        for share in turns(self.inputs[1:]):
            share.memory.free(*[name for name in share.memory.live if name not in kept])

    def discard_move(self, level: GpuLevel) -> None:
        """Free temporaries after a move phase without moves."""
        self.local.discard_move(level)
        if self.shared(level):
            self.tidy(level)

    def release(self, level: GpuLevel) -> None:
        """Free the graph of a level; the input's, which every cycle needs, stays."""
        self.local.release(level)
        if level.number and self.shared(level):
            self.team = []
            self.tidy()

    def restart(self, path: list[GpuLevel]) -> GpuLevel:
        """Return level 0 of the next cycle, its vertices in the communities of a path."""
        first = self.local.restart(path)
        self.tidy()
        name, shares = f"start.{first.cycle}.0", [replace(self.inputs[0], level=first)]
        cuda_calls.synchronize()
        for share in turns(self.inputs[1:]):
            start = share.memory.empty(name, "community", first.vertices, np.uint32)
            copy(first.start, start)
            # What the last cycle found is of no use any more.
            level = replace(
                share.level, cycle=first.cycle, start=start, refined=None, labels=None, numbers=None
            )
            shares.append(replace(share, level=level))
        self.inputs = self.team = shares
        return first

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group, those of all devices."""
        peaks = dict[Any, int]()
        for share in self.inputs:
            for group, nbytes in share.memory.peak_bytes.items():
                peaks[group] = peaks.get(group, 0) + nbytes
        return peaks

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Devices, policy, budget; what each did with its time, if that was observed."""
        timed = any(self.spans)
        return {
            "device": f"cuda:{','.join(map(str, self.devices))}",
            "policy": "device",
            "budget_bytes": None,
            "ranks": len(self.devices),
            **({"by_rank": [summary(*each) for each in enumerate(self.spans)]} if timed else {}),
        }


def cut_evenly(offsets: Any, ranks: int) -> tuple[list[int], list[int]]:
    """Return where each device's vertices begin, so that each has as many arcs, and these arcs."""
    if isinstance(offsets, np.ndarray):
        cuts = cut_by_arcs(offsets, ranks)
        return cuts.tolist(), offsets[cuts].tolist()
    import cupy

    with offsets.device:
        arcs = int(offsets[-1])
        inner = cupy.searchsorted(offsets, cupy.arange(1, ranks) * arcs // ranks)
        before = offsets[inner].tolist()
    return [0, *inner.tolist(), offsets.size - 1], [0, *before, arcs]


def deal_level(shares: Sequence[Share], levels: Sequence[GpuLevel]) -> list[Share]:
    """Return the devices' shares of a level that is whole on each of them."""
    bounds, before = cut_evenly(levels[0].offsets, len(shares))
    return [
        replace(share, level=level, first=low, last=high, arcs=end - begin)
        for share, level, (low, high), (begin, end) in zip(
            shares, levels, pairwise(bounds), pairwise(before), strict=True
        )
    ]


def devices_of(device: str) -> list[int]:
    """Return the numbers of the devices that an option names."""
    names = device.removeprefix("cuda:")
    if names == "all":
        pick("cuda")
        numbers = list(range(len(capabilities())))
    else:
        numbers = [pick(f"cuda:{number}").index for number in names.split(",")]
    for number in numbers:
        others = [other for other in numbers if other != number]
        enable_peers(number, others, "use one of them, or cluster='local:2'")
    return numbers


def detect_on_devices(
    graph: Graph | DeviceGraph, options: Options, observer: Observer
) -> Communities:
    """Detect communities with several GPUs of this host."""
    refuse_extended_rule(options)
    refuse_policies(options)
    numbers = devices_of(options.device)

    def on_devices(options: Options) -> Communities:
        with DevicesEngine(options, observer, numbers) as engine:
            found = detect(engine, graph, options, observer)
            report(observer, found.provenance)
            return found

    with pick(f"cuda:{numbers[0]}").current():
        return search(on_devices, options)
