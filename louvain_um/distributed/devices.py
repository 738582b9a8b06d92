"""Several GPUs of one host: a thread for each, arrays read over the links between them.

Level 0, where nearly all time goes, has its rows dealt over the devices; labels, totals and states
of all vertices lie on each. The devices sum their own rows by community and exchange the sums, so
that level 1 and later ones are whole on every device, and each computes them alone: with the same
integers and the same rule they find the same labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from louvain_um.core.hierarchy import MoveStats, detect
from louvain_um.core.objectives.objective import Sums
from louvain_um.core.objectives.problem import problem_of
from louvain_um.distributed.carriers.threads import Meeting, ThreadCommunicator, run_threads
from louvain_um.distributed.partition import cut_by_arcs
from louvain_um.distributed.run import refuse_extended_rule
from louvain_um.errors import DeviceUnavailableError, OptionError
from louvain_um.events import Event, Observer, array_listener, ignore
from louvain_um.gpu.aggregate.aggregate import prepare
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.level import GpuLevel, sum_type
from louvain_um.gpu.memory.loading import upload
from louvain_um.gpu.ranks.steps import aggregate_shared, move_shared, refine_shared
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.gpu.runtime.device import capabilities, pick
from louvain_um.gpu.setup import kernel_types
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.placement.arena_spec import ArenaSpec
from louvain_um.placement.memory.allocator import Allocator
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.policy.policy import Placement
from louvain_um.results.communities import Communities

VERTEX_BYTES: Final = 96
"""Bytes of offsets, degrees, labels, totals, queues and maps per vertex, at most."""

LEAST_BYTES: Final = 1 << 26
ROOM: Final = 0.45
"""Share of the free memory that an arena may take: two ranks may share a device."""


@dataclass(frozen=True, eq=False)
class OwnRows(Graph):
    """The rows of some vertices under the graph's numbers; all other rows are empty."""

    whole: Graph | None = None

    @cached_property
    def degrees(self) -> Any:
        """Weighted degrees of all vertices of the whole graph."""
        return self.given.degrees

    @cached_property
    def total_weight(self) -> int:
        """Sum of all degrees of the whole graph."""
        return self.given.total_weight

    @property
    def given(self) -> Graph:
        """The whole graph."""
        assert self.whole is not None
        return self.whole

    @classmethod
    def of(cls, graph: Graph, first: int, last: int) -> OwnRows:
        """Return rows first … last − 1; targets and weights are not copied."""
        low, high = int(graph.offsets[first]), int(graph.offsets[last])
        weights = None if graph.weights is None else graph.weights[low:high]
        offsets = np.clip(graph.offsets, low, high) - low
        rows = offsets, graph.targets[low:high], weights, graph.loops
        return cls(*rows, graph.scale, check=False, whole=graph)


class DevicePeers:
    """What the devices of a run share, as `louvain_um.gpu.ranks.steps` wants it.

    Parameters
    ----------
    meeting : Meeting
        Of one thread per device.
    rank : int
    bounds : list of int
        First vertex of each device's rows, and the number of vertices.
    """

    def __init__(self, meeting: Meeting, rank: int, bounds: list[int]) -> None:
        self.meeting = meeting
        self.rank = rank
        self.size = meeting.size
        self.bounds = bounds
        self._turn = 0

    def share(self, value: Any) -> list[Any]:
        """Return every device's value, by rank."""
        # Alternating: a rank two turns ahead would have waited for all to have read this one.
        slots = self.meeting.slots[self._turn % 2]
        self._turn += 1
        slots[self.rank] = value
        self.meeting.wait()
        return list(slots)

    def after_all(self) -> None:
        """Let this device's stream wait for what all devices have launched so far."""
        import cupy

        done = cupy.cuda.Event(disable_timing=True)
        done.record()
        stream = cupy.cuda.get_current_stream()
        for event in self.share(done):
            stream.wait_event(event)

    def finished(self) -> None:
        """Wait until all devices have finished what they have launched so far."""
        import cupy

        cupy.cuda.get_current_stream().synchronize()
        self.share(None)


class DeviceEngine(GpuEngine):
    """One device of a run on several."""

    def __init__(
        self, options: Options, observer: Observer, peers: DevicePeers, device: int, arcs: int
    ) -> None:
        super().__init__(options, observer)
        self.peers = peers
        self.device = device
        self.arcs = arcs

    def load(self, graph: Any) -> GpuLevel:
        """Upload this device's rows, and the degrees of all vertices."""
        rows: OwnRows = graph
        self.problem = problem_of(rows.given, self.options)
        self.total = rows.total_weight
        types, coarse = kernel_types(rows, 0)
        self.compile(types, *coarse)
        kernels.prepare([(s, t) for s in ("vertex_blocks", "ranks") for t in (types, "")])
        listener = array_listener(self.observer)
        self.memory = Allocator([arena_for(rows, self.device)], self.device, listener=listener)
        level = upload(self.memory, rows)
        prepare(kernels, self.memory, level)
        self.begin(level, ())
        return level

    def size(self, level: GpuLevel) -> tuple[int, int]:
        """Return vertices and arcs of a level, those of all devices."""
        return level.vertices, level.arcs if level.number else self.arcs

    def move(self, level: GpuLevel) -> MoveStats:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        if level.number:
            return super().move(level)
        run = (kernels, self.memory, self.options, self.total, level)
        moved, sweeps = move_shared(*run, self.peers)
        vertices, arcs = self.size(level)
        for iteration, sweep in enumerate(sweeps):
            self.observer(
                Event(
                    kind="iteration",
                    phase="move",
                    level=0,
                    iteration=iteration,
                    vertices=vertices,
                    arcs=arcs,
                    moved=sweep.moved,
                    seconds_ago=sweep.seconds_ago,
                )
            )
        return moved

    def refine(self, level: GpuLevel) -> None:
        """Split communities into connected sub-communities."""
        if level.number:
            super().refine(level)
            return
        refine_shared(kernels, self.memory, self.options, self.total, level, self.peers)

    def aggregate(self, level: GpuLevel) -> GpuLevel:
        """Return the next level; vertices that share a label (or sub-community) become one."""
        if level.number:
            return super().aggregate(level)
        self.memory.free("totals")
        coarse = aggregate_shared(kernels, self.memory, level, self.peers)
        if self.options.method == "leiden":
            self.memory.free(f"labels.{level.cycle}.{level.number}")
            level.labels = None
        self.current = coarse
        return coarse

    def sums(self, level: GpuLevel) -> Sums:
        """Return the sums of the communities a level starts in."""
        if level.number == 0 and level.start is not None:
            raise AssertionError("arcs inside communities of level 0 lie on several devices")
        return super().sums(level)

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget."""
        return {"device": f"cuda:{self.device}", "policy": "device", "budget_bytes": None}


def arena_for(rows: OwnRows, device: int) -> ArenaSpec:
    """Return one arena for about what a run takes; what exceeds it is allocated apart."""
    sums = sum_type(rows).itemsize
    own = (4 + (sums if rows.weighted else 0)) * rows.n_arcs
    coarse = (4 + sums) * rows.n_arcs
    wanted = own + coarse + VERTEX_BYTES * rows.n_vertices + LEAST_BYTES
    room = int(guard.room(device) * ROOM)
    placement = Placement("device")
    return ArenaSpec(name="run", group=None, capacity=min(wanted, room), placement=placement)


def devices_of(device: str) -> list[int]:
    """Return the numbers of the devices that an option names.

    Raises
    ------
    DeviceUnavailableError
        One is not there, or two cannot read each other's memory.

    Examples
    --------
    >>> from louvain_um.distributed.devices import is_several
    >>> is_several("cuda:0,1"), is_several("cuda:all"), is_several("cuda:1")
    (True, True, False)
    """
    names = device.removeprefix("cuda:")
    if names == "all":
        pick("cuda")
        numbers = list(range(len(capabilities())))
    else:
        numbers = [pick(f"cuda:{number}").index for number in names.split(",")]
    for number in numbers:
        enable_peers(number, [other for other in numbers if other != number])
    return numbers


def is_several(device: str) -> bool:
    """Return whether an option names several devices."""
    return "," in device or device == "cuda:all"


def enable_peers(device: int, others: list[int]) -> None:
    """Let a device read the others' memory: copies by way of the host are ten times slower."""
    from cupy.cuda import runtime

    before = runtime.getDevice()
    runtime.setDevice(device)
    try:
        for other in dict.fromkeys(others):
            if not runtime.deviceCanAccessPeer(device, other):
                raise DeviceUnavailableError(
                    f"cuda:{device} cannot read the memory of cuda:{other}; use one of them, or "
                    "cluster='local:2'"
                )
            try:
                runtime.deviceEnablePeerAccess(other)
            except runtime.CUDARuntimeError as error:
                if "PeerAccessAlreadyEnabled" not in str(error):
                    raise
    finally:
        runtime.setDevice(before)


def detect_on_devices(
    graph: Graph, options: Options, observer: Observer, *, patience: float = 600.0
) -> Communities:
    """Detect communities with several GPUs of this host.

    Raises
    ------
    OptionError
        A policy or a budget: graph and state lie in device memory.
    DeviceUnavailableError
        A device is not there, or cannot read another's memory.
    """
    refuse_extended_rule(options)
    given = options.memory if isinstance(options.memory, str) else options.memory.name
    if given not in ("auto", "device") or options.device_budget is not None:
        problem = "several devices hold everything in their own memory"
        raise OptionError("memory", given, "drop it, or use one device", problem=problem)
    numbers = devices_of(options.device)
    bounds = [int(cut) for cut in cut_by_arcs(graph.offsets, len(numbers))]

    def task(own: ThreadCommunicator) -> Communities:
        rank = own.rank
        peers = DevicePeers(own.meeting, rank, bounds)
        watcher = ignore if rank else observer
        rows = OwnRows.of(graph, *bounds[rank : rank + 2])
        with (
            pick(f"cuda:{numbers[rank]}").current(),
            DeviceEngine(options, watcher, peers, numbers[rank], graph.n_arcs) as engine,
        ):
            return detect(engine, rows, options, watcher)

    found = run_threads(task, len(numbers), patience=patience)
    names = ",".join(map(str, numbers))
    return replace(
        found[0],
        graph=graph,
        provenance={**found[0].provenance, "device": f"cuda:{names}", "ranks": len(numbers)},
    )
