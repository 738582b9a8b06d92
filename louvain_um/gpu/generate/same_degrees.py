"""Random graphs of the same degrees on the device; the host's for the same seed, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.generators.base import WEIGHT_STREAM, stream_key
from louvain_um.generators.same_degrees import END_STREAM, RandomGraphs, place_bits
from louvain_um.gpu.building.build import COLUMNS, Builder, Ends
from louvain_um.gpu.building.edges import building_bytes
from louvain_um.gpu.dynamic.cuda import CudaDevice
from louvain_um.gpu.generate.generate import own_memory
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.placement.memory import copies

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
        device, weights = self.builder.device, graph.weights
        assert weights is not None
        communities = int(labels.max()) + 1 if len(labels) else 0
        sums = self.builder.xp.zeros((2, communities), np.uint64)
        if len(labels):
            device.launch(
                "generate", "weigh_communities", "", 32 * len(labels), np.int64(len(labels)),
                graph.offsets, graph.targets, weights, np.int64(COLUMNS[weights.dtype]),
                graph.loops, self.put(labels), *sums,
            )  # fmt: skip
        inside, totals = device.get(sums).view(np.int64)
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


def held_bytes(random: RandomGraphs) -> int:
    """Return the device memory that random graphs take, one at a time, that graph included."""
    ends, weights = len(random.ends), 0 if random.weights is None else random.weights.nbytes
    building = building_bytes(ends // 2, random.n_vertices, weighted=True)
    return random.ends.nbytes + weights + DRAWN_BYTES * ends + building


@contextmanager
def random_graphs_there(random: RandomGraphs, limit: int | None) -> Iterator[DeviceRandomGraphs]:
    """Make random graphs on the current device, in memory of at most so many bytes."""
    with own_memory(limit):
        yield DeviceRandomGraphs(random, Builder(CudaDevice()), copies.sent)
