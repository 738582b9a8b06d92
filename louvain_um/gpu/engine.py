"""The CUDA engine: the order in which kernels run; the twin of `louvain_um.cpu.engine`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.events import Event, Observer
from louvain_um.gpu import carry
from louvain_um.gpu.aggregate import aggregate, prepare
from louvain_um.gpu.compile import kernels
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.level import CXX, GpuLevel
from louvain_um.gpu.memory import DeviceAllocator
from louvain_um.gpu.move import add_degrees, move
from louvain_um.gpu.refine import refine
from louvain_um.graph import Graph
from louvain_um.hierarchy import Moved, Sums
from louvain_um.options import Options

RESERVED_PER_VERTEX = 64
RESERVED_PER_ARC = 5
"""Bytes reserved at the start: what Louvain takes beside the graph, measured on R-MAT and LFR."""

U32 = NDArray[np.uint32]


class GpuEngine:
    """Louvain and Leiden on the current CUDA device.

    Close it when the labels are out: `with GpuEngine(...) as engine`.
    """

    def __init__(self, options: Options, observer: Observer) -> None:
        self.options = options
        self.observer = observer
        self.memory = DeviceAllocator(options.budget_bytes)
        self.total = 0

    def __enter__(self) -> GpuEngine:
        return self

    def __exit__(self, *failure: object) -> None:
        self.memory.close()

    def load(self, graph: Graph | DeviceGraph) -> GpuLevel:
        """Bring the graph to the device, unless it is there; every vertex is alone."""
        self.total = graph.total_weight
        vertices, arcs = graph.n_vertices, graph.n_arcs
        reserved = RESERVED_PER_VERTEX * vertices + RESERVED_PER_ARC * arcs
        self.memory.reserve(reserved + (graph.nbytes if isinstance(graph, Graph) else 0))
        narrow = graph.weights is None or graph.weights.dtype == np.uint32
        sums = np.dtype(np.uint32 if narrow and self.total < 2**32 else np.uint64)
        weights = "Unweighted" if graph.weights is None else CXX[graph.weights.dtype]
        typed = {f"{weights}, {CXX[sums]}", f"{CXX[sums]}, {CXX[sums]}"}
        sources = ["move", "aggregate", "carry"]
        sources += ["refine"] if self.options.method == "leiden" else []
        units = [(source, types) for source in sources for types in sorted(typed)]
        kernels.prepare([*units, ("carry", "")], self.observer)
        level = self.upload(graph, sums) if isinstance(graph, Graph) else self.adopt(graph, sums)
        prepare(kernels, self.memory, level)
        return level

    def upload(self, graph: Graph, sums: np.dtype[Any]) -> GpuLevel:
        """Copy a graph of host arrays to the device."""

        def put(name: str, group: Any, array: NDArray[Any]) -> Any:
            there = self.memory.empty(f"{name}.0", group, len(array), array.dtype)
            there.set(np.ascontiguousarray(array))
            return there

        weights = graph.weights
        if weights is not None:
            weights = put("weights", "graph", weights.astype(_unsigned(weights), copy=False))
        loops = None
        if graph.loops.any():
            loops = put("loops", "graph", graph.loops.astype(sums))
        return GpuLevel(
            cycle=0,
            number=0,
            vertices=graph.n_vertices,
            arcs=graph.n_arcs,
            sums=sums,
            offsets=put("offsets", "graph", graph.offsets),
            targets=put("targets", "graph", graph.targets),
            weights=weights,
            loops=loops,
            degrees=put("degrees", "community", graph.degrees.astype(sums)),
        )

    def adopt(self, graph: DeviceGraph, sums: np.dtype[Any]) -> GpuLevel:
        """Work on arrays that are on the device already; they are not changed."""
        import cupy

        n, enter = graph.n_vertices, self.memory.ledger.enter
        for name in ("offsets", "targets", "weights"):
            array = getattr(graph, name)
            if array is not None:
                enter(f"{name}.0", "graph", array.nbytes)
        loops = None
        if graph.loops is not None:
            loops = self.memory.empty("loops.0", "graph", n, sums)
            loops[...] = graph.loops
        level = GpuLevel(
            cycle=0,
            number=0,
            vertices=n,
            arcs=graph.n_arcs,
            sums=sums,
            offsets=graph.offsets,
            targets=graph.targets,
            weights=graph.weights,
            loops=loops,
            degrees=self.memory.empty("degrees.0", "community", n, sums),
        )
        if graph.weights is None and loops is None:
            cupy.subtract(
                graph.offsets[1:], graph.offsets[:-1], out=level.degrees, casting="unsafe"
            )
        else:
            add_degrees(kernels, level)
        return level

    def restart(self, path: list[GpuLevel]) -> GpuLevel:
        """Return level 0 of the next cycle, its vertices in the communities of a path."""
        first = path[0]
        cycle = first.cycle + 1
        start = self.memory.empty(f"start.{cycle}.0", "community", first.vertices, np.uint32)
        carry.compose(kernels, path, start)
        return replace(first, cycle=cycle, start=start, parts=None, numbers=None)

    def size(self, level: GpuLevel) -> tuple[int, int]:
        """Return vertices and arcs of a level."""
        return level.vertices, level.arcs

    def move(self, level: GpuLevel) -> Moved:
        """Sweep until the gain of a sweep falls below the level's tolerance."""
        moved = move(kernels, self.memory, self.options, self.total, level)
        self.observer(
            Event(
                kind="iteration",
                phase="move",
                level=level.number,
                iteration=moved.iterations - 1,
                vertices=level.vertices,
                arcs=level.arcs,
                moved=moved.moves,
            )
        )
        return moved

    def refine(self, level: GpuLevel) -> None:
        """Split communities into parts that hold together."""
        refine(kernels, self.memory, self.options, self.total, level)

    def aggregate(self, level: GpuLevel) -> GpuLevel:
        """Return the next level; vertices that share a label (or part) become one."""
        self.memory.free("totals")
        return aggregate(kernels, self.memory, level)

    def sums(self, level: GpuLevel) -> Sums:
        """Return the sums of the communities a level starts in."""
        if level.start is None:
            return Sums(level.inside, level.squares, level.vertices)
        return carry.community_sums(kernels, self.memory, level)

    def split(self, level: GpuLevel) -> None:
        """Make every connected part of a community a community of its own."""
        if level.start is not None:
            carry.split(kernels, self.memory, level)

    def release(self, level: GpuLevel) -> None:
        """Free the graph of a level; the input's, which every cycle needs, stays."""
        k = level.number
        if k == 0:
            return
        names = ("offsets", "targets", "weights", "loops", "degrees")
        self.memory.free(*(f"{name}.{k}" for name in names))
        level.offsets = level.targets = level.weights = level.loops = level.degrees = None

    def maps(self, path: list[GpuLevel]) -> tuple[U32, ...]:
        """Return each level's map to the next, on the host."""
        return tuple(level.numbers.get() for level in path[:-1])

    def cuts(self, path: list[GpuLevel]) -> tuple[U32, ...]:
        """Return, for each level but the first, the communities its vertices start in."""
        return tuple(level.start.get() for level in path[1:] if level.start is not None)

    def labels(self, path: list[GpuLevel]) -> U32:
        """Return the communities of the input's vertices, numbered by size, on the host."""
        labels = self.memory.empty("labels", "community", path[0].vertices, np.uint32)
        carry.compose(kernels, path, labels)
        carry.number_by_size(kernels, self.memory, labels)
        found: U32 = labels.get()
        return found

    @property
    def peak_bytes(self) -> Mapping[Any, int]:
        """Peak bytes by group."""
        return self.memory.peak_bytes

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Device, policy, budget."""
        import cupy

        device = cupy.cuda.Device()
        name = cupy.cuda.runtime.getDeviceProperties(device.id)["name"].decode()
        return {
            "device": f"cuda:{device.id} ({name})",
            "policy": "device",
            "budget_bytes": self.options.budget_bytes,
            "threads": None,
        }


def _unsigned(weights: NDArray[Any]) -> Any:
    return np.uint32 if weights.dtype == np.uint32 else np.uint64
