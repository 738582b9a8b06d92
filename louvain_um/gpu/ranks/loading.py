"""Level 0 on several devices: rows in one range of addresses, offsets and degrees on each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import Any, Final

import numpy as np

from louvain_um.core.ledger import Listener
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.level import GpuLevel, sum_type, unsigned
from louvain_um.gpu.memory.loading import count_degrees, first_level
from louvain_um.gpu.ranks.share import Share
from louvain_um.graph.graph import Graph
from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.memory import copies, cuda_calls
from louvain_um.placement.memory.advise import PartAtSide
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.memory.run_memory import RunMemory, view
from louvain_um.placement.memory.vmm import VmmRange
from louvain_um.placement.policy.policy import Placement

VERTEX_BYTES: Final = 96
"""Bytes of offsets, degrees, labels, totals, queues and maps per vertex, at most."""

LEAST_BYTES: Final = 1 << 26
ROOM: Final = 0.45
"""Share of the free memory that an arena may take: two ranks may share a device."""


class SharedRows:
    """Targets and weights of level 0, dealt over devices that all read all of them."""

    def __init__(
        self,
        graph: Graph | DeviceGraph,
        devices: Sequence[int],
        bounds: Sequence[int],
        arcs_before: Sequence[int],
    ) -> None:
        self.graph = graph
        self.devices = list(devices)
        self.bounds = list(bounds)
        self.arcs_before = list(arcs_before)
        self.ranges: dict[str, VmmRange] = {}
        self.cuts: dict[str, list[int]] = {}
        try:
            for name, array in self.arrays.items():
                cuts = [-(-at * array.itemsize // BLOCK) * BLOCK for at in arcs_before]
                cuts[-1] = max(cuts[-1], BLOCK)
                sizes = [end - begin for begin, end in pairwise(cuts)]
                parts = list(zip(self.devices, sizes, strict=True))
                self.ranges[name], self.cuts[name] = VmmRange(name, parts, self.devices), cuts
        except BaseException:
            self.close()
            raise

    @property
    def arrays(self) -> dict[str, Any]:
        """The graph's arrays with an entry per arc."""
        arrays = {"targets": self.graph.targets, "weights": self.graph.weights}
        return {name: unsigned(array) for name, array in arrays.items() if array is not None}

    def fill(self, rank: int) -> None:
        """Copy a device's part of the rows there; the device is current."""
        for name, array in self.arrays.items():
            begin, end = (min(cut, array.nbytes) for cut in self.cuts[name][rank : rank + 2])
            part = array[begin // array.itemsize : end // array.itemsize]
            put(self.ranges[name].address + begin, part, self.devices[rank])

    def views(self) -> dict[str, Any]:
        """Return the arrays as kernels see them."""
        found = dict[str, Any]()
        for name, array in self.arrays.items():
            range_: Any = self.ranges[name]
            found[name] = view(range_.address, array.size, array.dtype, range_)
        return found

    def close(self) -> None:
        """Free the memory of all devices."""
        while self.ranges:
            self.ranges.popitem()[1].close()


def put(address: int, source: Any, device: int) -> None:
    """Copy values of the host, or of any device, to the current device; wait for it."""
    if not source.nbytes:
        return
    if isinstance(source, np.ndarray):
        copies.fill([PartAtSide(address, source.nbytes, "device")], source, device)
        return
    cuda_calls.copy_later(address, source.data.ptr, source.nbytes, 0)
    cuda_calls.synchronize()


def load_share(rows: SharedRows, rank: int, listener: Listener | None) -> Share:
    """Allocate a device's memory and load level 0, whose rows are filled; the device is current."""
    device = rows.devices[rank]
    first, last = rows.bounds[rank : rank + 2]
    arcs = rows.arcs_before[rank + 1] - rows.arcs_before[rank]
    memory = RunMemory([arena_for(rows.graph, device, arcs)], device, listener=listener)
    try:
        if rank == 0:
            for name, range_ in rows.ranges.items():
                memory.ledger.add(f"{name}.0", "graph", range_.nbytes, range_.address)
        level = load_level(memory, rows, device)
    except BaseException:
        memory.close()
        raise
    return Share(device=device, memory=memory, level=level, first=first, last=last, arcs=arcs)


def load_level(memory: RunMemory, rows: SharedRows, device: int) -> GpuLevel:
    """Return level 0 on a device: its own offsets, loops and degrees, and the shared rows."""

    def load(name: str, array: Any) -> Any:
        there = memory.empty(f"{name}.0", "graph", len(array), array.dtype)
        put(there.data.ptr, array, device)
        return there

    graph, views = rows.graph, rows.views()
    loops: Any = graph.loops
    if loops is not None:
        with nullcontext() if isinstance(loops, np.ndarray) else loops.device:
            loops = loops.astype(sum_type(graph)) if loops.any() else None
    level = first_level(
        graph,
        offsets=load("offsets", graph.offsets),
        targets=views["targets"],
        weights=views.get("weights"),
        loops=None if loops is None else load("loops", loops),
    )
    count_degrees(memory, level)
    return level


def arena_bytes(vertices: int, arcs: int, local: int, width: int) -> int:
    """Return about what a run takes of a device besides its rows: more than it needs."""
    # The next level's rows, one's own part of them, a chunk, and tables of hubs.
    rows = arcs * 2 // 5 + local // 2 + arcs // 8
    return width * rows + VERTEX_BYTES * vertices + LEAST_BYTES


def arena_for(graph: Graph | DeviceGraph, device: int, arcs: int) -> ArenaSpec:
    """Return one arena for about what a run takes; what exceeds it is allocated separately."""
    width = 4 + sum_type(graph).itemsize
    wanted = arena_bytes(graph.n_vertices, graph.n_arcs, arcs, width)
    room = int(guard.room(device) * ROOM)
    placement = Placement("device")
    return ArenaSpec(name="run", group=None, capacity=min(wanted, room), placement=placement)
