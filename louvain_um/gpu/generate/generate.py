"""Generators on the device; the same graphs as `louvain_um.generators` for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.generators.base import WEIGHT_STREAM, stream_key
from louvain_um.generators.lfr import OUTSIDE_STREAM, RETRIES, lfr_parameters
from louvain_um.generators.rmat import rmat_parameters
from louvain_um.generators.same_degrees import END_STREAM, RandomGraphs, place_bits
from louvain_um.generators.stencil import stencil_parameters
from louvain_um.gpu.building.build import Builder, Ends
from louvain_um.gpu.building.device_rows import building_bytes
from louvain_um.gpu.dynamic.cuda import CudaDevice
from louvain_um.gpu.graph import DeviceGraph, there_of
from louvain_um.gpu.relabel.relabel import community_counts
from louvain_um.gpu.runtime.launch import Launcher
from louvain_um.graph.graph import Graph
from louvain_um.placement.memory import copies

if TYPE_CHECKING:
    import cupy

EDGES: Final = 1 << 24
"""Edges drawn at a time."""

ARCS: Final = 1 << 25
"""Arcs sorted at a time, 40 bytes of scratch memory each; a single row may be longer."""

PAIRING_BYTES: Final = 1 << 30
"""Scratch memory of all blocks that pair stubs, unless one block needs more."""

NULL: Final = np.uint64(0)

Draw = Callable[[int, int], "tuple[cupy.ndarray, cupy.ndarray]"]


@dataclass(frozen=True, slots=True)
class DeviceGenerated:
    """A generated graph on the device and, where the kind plants them, its communities."""

    graph: DeviceGraph
    labels: NDArray[np.uint32] | None = None


def rmat(scale: int, **options: Any) -> DeviceGenerated:
    """Generate an R-MAT graph on the current device; see `louvain_um.generators.rmat`."""
    import cupy

    made = rmat_parameters(scale, **options)
    with separate_memory():
        ids = cupy.asarray(made.ids)

        def draw(first: int, count: int) -> tuple[cupy.ndarray, cupy.ndarray]:
            u, v = cupy.empty(count, np.uint32), cupy.empty(count, np.uint32)
            limits = (np.uint64(x) for x in made.limits)
            args = (made.key, np.int64(first), np.int64(count), np.uint32(made.scale))
            _launch("draw_rmat", *args, *limits, ids, u, v)
            return u, v

        graph = _rows(made.n, made.edges, draw)
        return DeviceGenerated(_weigh(graph, **options))


def stencil(dims: Any, **options: Any) -> DeviceGenerated:
    """Generate a grid on the current device; see `louvain_um.generators.stencil`."""
    import cupy

    made = stencil_parameters(dims, **options)
    with separate_memory():
        ids = cupy.asarray(made.ids)
        flags = np.uint32(made.diagonals), np.uint32(options.get("periodic", False))
        shape = tuple(np.int64(size) for size in made.shape)
        offsets = cupy.zeros(made.n + 1, np.int64)
        _launch("count_stencil", *shape, *flags, ids, offsets[1:])
        offsets = cupy.cumsum(offsets)
        targets = cupy.empty(int(offsets[-1]), np.uint32)
        _launch("fill_stencil", *shape, *flags, ids, offsets, targets)
        return DeviceGenerated(_weigh(DeviceGraph(offsets, targets), **options))


def lfr(n: int, **options: Any) -> DeviceGenerated:
    """Generate an LFR graph on the current device; see `louvain_um.generators.lfr`.

    Draws without replacement, whose number grows with the vertices, run on the host.
    """
    import cupy

    made = lfr_parameters(n, **options)
    with separate_memory():
        ids = cupy.asarray(made.ids)
        u, v = cupy.zeros(made.edges, np.uint32), cupy.zeros(made.edges, np.uint32)
        inside = made.edges_inside
        _pair_inside(made, ids, u, v)
        _pair_outside(made, ids, options.get("seed", 0), u[inside:], v[inside:])
        graph = _rows(
            made.n, made.edges, lambda first, count: (u[first:][:count], v[first:][:count])
        )
        return DeviceGenerated(_weigh(graph, **options), made.labels)


def _pair_inside(made: Any, ids: cupy.ndarray, u: cupy.ndarray, v: cupy.ndarray) -> None:
    """Pair the stubs within each community; communities in any order."""
    import cupy

    most = max(made.max_stubs, 1)
    slots = max(64, 1 << (most - 1).bit_length())
    fitting = PAIRING_BYTES // (8 * most + 12 * slots)
    launch = Launcher("generate", "pair_inside", most=min(fitting, len(made.starts) - 1))
    blocks = launch.blocks
    args = (
        made.key,
        np.uint32(1 + RETRIES),
        np.int64(len(made.starts) - 1),
        *(cupy.asarray(array) for array in (made.starts, made.inner, made.first_edge)),
        ids,
        np.int64(most),
        np.int64(slots),
        cupy.empty(2 * most * blocks, np.uint32),
        cupy.empty(slots * blocks, np.uint64),
        cupy.empty(slots * blocks, np.uint32),
        cupy.zeros(1, np.uint64),
    )
    launch(*args, u, v)


def _pair_outside(
    made: Any, ids: cupy.ndarray, seed: int, u: cupy.ndarray, v: cupy.ndarray
) -> None:
    """Pair the stubs across communities; pairs within one are drawn again a few times."""
    import cupy

    from louvain_um.generators.hashing import permutation

    outer, slots = cupy.asarray(made.outer), cupy.asarray(made.slots)
    stubs = cupy.empty(int(made.outer[-1]), np.uint32)
    _launch("expand_stubs", np.int64(made.n), outer, stubs)
    where: Any = None
    for attempt in range(1 + RETRIES):
        p = cupy.asarray(permutation(stream_key(seed, OUTSIDE_STREAM + attempt), len(stubs)))
        pairs = np.int64(len(stubs) // 2)
        _launch("pair_outside", pairs, p, stubs, NULL if where is None else where, slots, ids, u, v)
        failed = cupy.flatnonzero(u == v if where is None else u[where] == v[where])
        if len(failed) == 0:
            return
        rest = cupy.empty(2 * len(failed), np.uint32)
        _launch("leftover", np.int64(len(failed)), p, stubs, failed, rest)
        stubs = rest
        where = failed if where is None else where[failed]


def _rows(n: int, edges: int, draw: Draw) -> DeviceGraph:
    """Return the graph of a list of edges; those with equal ends are none."""

    def pieces() -> Iterator[Ends]:
        for first in range(0, edges, EDGES):
            yield Ends(*draw(first, min(EDGES, edges - first)))

    made = Builder(CudaDevice(), ARCS).rows(pieces, n, weighted=False, summing=False)
    return DeviceGraph(made.offsets, made.targets)


def _weigh(graph: DeviceGraph, **options: Any) -> DeviceGraph:
    """Give each edge its weight, a function of its two ends, if weights are requested."""
    if options.get("weights", "none") == "none":
        return graph
    import cupy

    from louvain_um.generators.rows import MAX_WEIGHT

    values = cupy.empty(graph.n_arcs, np.uint32)
    key = stream_key(options.get("seed", 0), WEIGHT_STREAM)
    args = (np.int64(graph.n_vertices), key, np.uint32(MAX_WEIGHT))
    _launch("weigh_arcs", *args, graph.offsets, graph.targets, values)
    return replace(graph, weights=values)


def _launch(name: str, *args: Any) -> None:
    """Launch a kernel on the whole device."""
    Launcher("generate", name)(*args)


@contextmanager
def separate_memory(limit: int | None = None) -> Iterator[None]:
    """Take CuPy's memory from a separate pool of at most so many bytes; free unused blocks then."""
    import cupy

    pool = cupy.cuda.MemoryPool()
    pool.set_limit(size=limit or 0)
    try:
        with cupy.cuda.using_allocator(pool.malloc):
            yield
    finally:
        pool.free_all_blocks()


DRAWN_BYTES: Final = 20
"""Scratch memory of putting an end in random order: its key, a word of the sort's, itself."""


class DeviceRandomGraphs:
    """Makes random graphs on a device; ends and weights are copied there once."""

    def __init__(
        self, random: RandomGraphs, builder: Builder, put: Callable[[NDArray[Any]], Any]
    ) -> None:
        self.builder, self.put, self.n_vertices = builder, put, random.n_vertices
        self.ends = put(random.ends)
        self.weights = None if random.weights is None else put(random.weights.view(np.uint64))

    @classmethod
    def of(cls, graph: DeviceGraph, builder: Builder) -> DeviceRandomGraphs:
        """Return the random graphs of the degrees of a graph on the device, where its ends stay."""
        xp, lengths, weights = builder.xp, builder.xp.diff(graph.offsets), graph.weights
        loops = xp.zeros(graph.n_vertices, np.uint64) if graph.loops is None else graph.loops
        if weights is not None:
            once = _repeated(builder, lengths) < graph.targets
            weights = xp.concatenate((weights[once].astype(np.uint64), loops[loops != 0]))
        ends = _repeated(builder, lengths + 2 * (loops != 0))
        random = RandomGraphs(ends=ends, weights=weights, n_vertices=graph.n_vertices)
        return cls(random, builder, lambda there: there)

    def graph(self, seed: int) -> DeviceGraph:
        """Return the random graph that the host makes of a seed."""
        ends = self._shuffled(self.ends, stream_key(seed, END_STREAM))
        weights = None
        if self.weights is not None:
            weights = self._shuffled(self.weights, stream_key(seed, WEIGHT_STREAM))
        pairs = len(ends) // 2
        drawn = Ends(ends[:pairs], ends[pairs:], weights)
        made = self.builder.rows(lambda: [drawn], self.n_vertices, weighted=True, summing=True)
        return DeviceGraph(made.offsets, made.targets, made.weights, made.loops)

    def sums(
        self, graph: DeviceGraph, labels: NDArray[np.uint32]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return, of each community, arcs' weight inside (loops twice) and total degree."""
        inside, totals = community_counts(self.builder.device, graph, labels, parts=False)
        return inside, totals

    def _shuffled(self, values: Any, key: np.uint64) -> Any:
        """Return values in the random order of a key."""
        keys, bits = self.builder.xp.empty(len(values), np.uint64), place_bits(len(values))
        if len(values):
            arguments = np.int64(len(values)), key, np.int64(bits), keys
            self.builder.device.launch("generate", "draw_keys", "", len(values), *arguments)
        keys.sort()
        keys &= np.uint64((1 << bits) - 1)
        return values[keys.view(np.int64)]


def _repeated(builder: Builder, counts: Any) -> Any:
    """Return each vertex, uint32, as often as its count says."""
    offsets = builder.offsets_of(counts.astype(np.uint32))
    ends = builder.xp.empty(int(offsets[-1]), np.uint32)
    if len(counts):
        given = np.int64(len(counts)), offsets, ends
        builder.device.launch("generate", "expand_stubs", "", len(counts), *given)
    return ends


def ends_of(graph: Graph) -> int:
    """Return the ends of all edges that random graphs share out."""
    return graph.n_arcs + 2 * (graph.n_edges - graph.n_arcs // 2)


def held_bytes(graph: Graph) -> int:
    """Return the device memory that random graphs take, one at a time, that graph included."""
    ends, weights = ends_of(graph), 8 * graph.n_edges if graph.weighted else 0
    building = building_bytes(ends // 2, graph.n_vertices, weighted=True)
    return 4 * ends + weights + DRAWN_BYTES * ends + building


@contextmanager
def random_graphs_there(graph: Graph, limit: int | None) -> Iterator[DeviceRandomGraphs]:
    """Make random graphs on the current device, in memory of at most so many bytes."""
    with separate_memory(limit):
        builder, there = Builder(CudaDevice()), there_of(graph)
        if there is not None:
            yield DeviceRandomGraphs.of(there, builder)
        else:
            yield DeviceRandomGraphs(RandomGraphs.like(graph), builder, copies.sent)
