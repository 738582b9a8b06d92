"""One device's share of a level, and how devices wait for each other and exchange moves.

Devices of one process read each other's memory (`Gate`). Where each belongs to its own process, the
moves of a sub-round are gathered instead, and every device applies them from arrays of its own
(`LinkGate`). Rows of level 0 are in one range of addresses, offsets and degrees on each device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import rules
from louvain_um.core.ledger import Listener
from louvain_um.gpu.aggregate.coarse_rows import copy
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.level import GpuLevel, sum_type, unsigned
from louvain_um.gpu.memory.loading import count_degrees, first_level
from louvain_um.gpu.move.arguments import BINS, queue_entries
from louvain_um.graph.graph import Graph
from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.memory import copies, cuda_calls
from louvain_um.placement.memory.advise import PartAtSide
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.memory.run_memory import RunMemory, view
from louvain_um.placement.memory.vmm import VmmRange
from louvain_um.placement.policy.policy import Placement

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The vertices of a level that a device decides for; it holds the state of all of them."""

    device: int
    memory: RunMemory
    level: GpuLevel
    first: int
    last: int
    arcs: int

    @property
    def local(self) -> GpuLevel:
        """The level with the arcs of local vertices only, for sizing scratch arrays."""
        return replace(self.level, arcs=self.arcs, hub_arcs=None)


def turns(shares: Sequence[Share]) -> Iterator[Share]:
    """Yield each device's share, the device being current meanwhile."""
    for share in shares:
        with cuda_calls.current(share.device):
            yield share


def side_by_side(shares: Sequence[Share], step: Callable[[int], Result]) -> list[Result]:
    """Run a step that waits for its device on all devices at once; return what each returns."""

    def run(rank: int) -> Result:
        with cuda_calls.current(shares[rank].device):
            cuda_calls.bind(shares[rank].device)
            return step(rank)

    if len(shares) == 1:
        return [run(0)]
    pool = threads(len(shares))
    running = [pool.submit(copy_context().run, run, rank) for rank in range(len(shares))]
    wait(running)  # also where one of them fails: the others use what the caller frees then
    return [each.result() for each in running]


@cache
def threads(count: int) -> ThreadPoolExecutor:
    """Return threads for so many devices; they stay, since each step would start new ones."""
    return ThreadPoolExecutor(count, "louvain-um-device")


@dataclass(slots=True)
class Waits:
    """Seconds that each device worked, and waited for the others, between gates."""

    work: list[float]
    waited: list[float]


class Gate:
    """Lets every device wait for what all devices have launched so far; the host does not wait."""

    def __init__(self, shares: Sequence[Share], waits: Waits | None = None) -> None:
        import cupy

        self.shares = shares
        self.waits = waits
        self.marks: list[list[Any]] = [[] for _ in shares]
        self.events = [cupy.cuda.Event(disable_timing=True) for _ in turns(shares)]

    @property
    def devices(self) -> int:
        """Devices whose arrays kernels read."""
        return len(self.shares)

    def show(self, arrays: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        """Return what kernels are to read: the arrays that the devices have to show."""
        return arrays

    def moved(self, sub_round: int) -> None:
        """Close the gate behind what the devices propose in a sub-round."""
        self.close()

    def activated(self) -> None:
        """Close the gate behind what the devices have activated."""
        self.close()

    def complete(self, arrays: Sequence[Any], each: int = 1) -> None:
        """Complete arrays of which each device has the `each` values of its local vertices."""
        self.close()
        for local, share in zip(arrays, turns(self.shares), strict=True):
            for other, theirs in zip(self.shares, arrays, strict=True):
                if other is not share:
                    part = slice(each * other.first, each * other.last)
                    copy(theirs[part], local[part])
        self.close()

    def sums(self, values: Sequence[int]) -> Sequence[int]:
        """Return the sums of all devices' integers: one process has added them up."""
        return values

    def free(self) -> None:
        """Nothing: the devices show arrays that they have anyway."""

    def close(self) -> None:
        """Close the gate behind all launches so far."""
        import cupy

        if len(self.shares) == 1:
            return
        self.mark()
        for event, _ in zip(self.events, turns(self.shares), strict=True):
            event.record()
        for rank, _ in enumerate(turns(self.shares)):
            stream = cupy.cuda.get_current_stream()
            for other, event in enumerate(self.events):
                if other != rank:
                    stream.wait_event(event)
        self.mark()

    def mark(self) -> None:
        """Let every device note the time once it comes here; the first mark begins its work."""
        if self.waits is None:
            return
        import cupy

        for marks, _ in zip(self.marks, turns(self.shares), strict=True):
            event = cupy.cuda.Event()
            event.record()
            marks.append(event)

    def collect(self) -> None:
        """Add up what the devices noted since the last time; they have come here."""
        if self.waits is None:
            return
        from cupy.cuda import get_elapsed_time

        for rank, marks in enumerate(self.marks):
            spans = [get_elapsed_time(*pair) * 1e-3 for pair in pairwise(marks)]
            self.waits.work[rank] += sum(spans[::2])
            self.waits.waited[rank] += sum(spans[1::2])
            marks.clear()


NONE: Final = np.uint32(0xFFFFFFFF)
"""Stands for no sub-round, and for no community."""

GATHERED: Final = ("queue", "proposed", "weight_to_target")
"""What a device exchanges of each move, as far as a step has it."""


class Link(Protocol):
    """How processes exchange arrays that are on their devices; every process calls the same."""

    def gather(self, columns: Sequence[Any], into: Sequence[Any]) -> int:
        """Fill the beginning of `into` with each column of all processes, by rank."""

    def or_bits(self, words: Any) -> None:
        """Set an array, of equal length in all processes, to the bitwise or of all."""

    @property
    def sum_exact(self) -> Callable[[Sequence[int]], NDArray[np.int64]]:
        """What returns the sums of all processes' integers."""


class LinkGate:
    """What `Gate` is to devices of one process, to a device that is alone in its own."""

    devices: Final = 1

    def __init__(self, share: Share, link: Link) -> None:
        self.share = share
        self.link = link
        self.local: dict[str, Any] = {}
        self.everyones: dict[str, Any] = {}
        self.names: list[str] = []
        self.starts: list[int] = []

    def show(self, arrays: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what kernels are to read, for what this device has to show."""
        (self.local,) = arrays
        entries = queue_entries(self.share.level.vertices, 1)
        for name in (*GATHERED, "starts"):
            if name in self.local:
                size = self.local[name].size if name == "starts" else entries
                self.names.append(f"all_{name}")
                self.everyones[name] = self.share.memory.empty(
                    self.names[-1], "scratch", size, self.local[name].dtype
                )
        return [{**self.local, **self.everyones}]

    def close(self) -> None:
        """Nothing: this device reads its own memory only."""

    def mark(self) -> None:
        """Nothing: exchanges are timed by the ranks that they connect."""

    collect = mark

    def moved(self, sub_round: int) -> None:
        """Gather what all devices propose in a sub-round."""
        if not sub_round:  # what is queued for a sweep changes no more
            self.starts = self.local["starts"].get()[::BINS].tolist()
        begin, end = self.starts[sub_round : sub_round + 2]
        # Found once for all columns: the host waits for how many there are.
        moves = (self.local["proposed"][begin:end] != NONE).nonzero()[0]
        held = [name for name in GATHERED if name in self.local]
        columns = [self.local[name][begin:end].take(moves) for name in held]
        count = self.link.gather(columns, [self.everyones[name] for name in held])
        starts = np.zeros(rules.SUB_ROUNDS * BINS + 1, np.uint32)
        starts[(sub_round + 1) * BINS] = count
        self.everyones["starts"].set(starts)

    def activated(self) -> None:
        """Unite what all devices have activated."""
        self.link.or_bits(self.local["activated"])

    def complete(self, arrays: Sequence[Any], each: int = 1) -> None:
        """Complete an array of which each device has the `each` values of its local vertices."""
        (array,) = arrays
        self.link.gather([array[each * self.share.first : each * self.share.last]], [array])

    def sums(self, values: Sequence[int]) -> list[int]:
        """Return the sums of all devices' integers."""
        sums: list[int] = self.link.sum_exact(values).tolist()
        return sums

    def free(self) -> None:
        """Free the arrays."""
        self.local.clear()
        self.everyones.clear()
        self.share.memory.free(*self.names)


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
