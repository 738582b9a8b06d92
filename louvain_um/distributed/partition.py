"""Which rank holds which rows: consecutive vertices, cut so that each has as many arcs."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.distributed.communicator import Communicator
from louvain_um.errors import GraphError, WorkerLostError
from louvain_um.graph.build import weighted_degrees
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_kinds

I64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class RowBlock:
    """The rows of consecutive vertices of an undirected graph."""

    first: int
    n_vertices: int
    offsets: I64
    targets: NDArray[np.uint32]
    weights: NDArray[np.uint32] | I64 | None
    loops: I64
    names: I64 | None = None
    local_names: NDArray[Any] | None = None
    scale: float = 1.0
    notes: tuple[str, ...] = ()

    @property
    def last(self) -> int:
        """The vertex behind the block's last."""
        return self.first + len(self.loops)


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class RankGraph:
    """What a rank knows of a graph: its own rows, and all degrees."""

    block: RowBlock
    cuts: I64
    degrees: I64
    n_arcs: int
    total_weight: int


def cut_by_arcs(arcs_before: I64, ranks: int) -> I64:
    """Return where each rank's vertices begin, int64[ranks + 1]."""
    arcs, vertices = int(arcs_before[-1]), len(arcs_before) - 1
    if arcs == 0:
        return np.arange(ranks + 1) * vertices // ranks
    shares = np.arange(1, ranks) * arcs // ranks
    inner = np.searchsorted(arcs_before, shares)
    return np.concatenate(([0], inner, [vertices])).astype(np.int64)


def blocks_of(graph: Graph, ranks: int) -> list[RowBlock]:
    """Return a graph's rows in one block for each rank; its arrays are not copied."""
    refuse_kinds(graph, "ranks take")
    blocks = []
    for first, last in pairwise(cut_by_arcs(graph.offsets, ranks).tolist()):
        low, high = int(graph.offsets[first]), int(graph.offsets[last])
        blocks.append(
            RowBlock(
                first=first,
                n_vertices=graph.n_vertices,
                offsets=graph.offsets[first : last + 1] - low,
                targets=graph.targets[low:high],
                weights=None if graph.weights is None else graph.weights[low:high],
                loops=graph.loops[first:last],
                local_names=None if graph.names is None else graph.names[first:last],
            )
        )
    return blocks


class NoGraphError(WorkerLostError):
    """The first rank could not read the graph, and says why itself."""


def deal(ranks: Communicator, graph: Graph | None) -> RowBlock:
    """Send each rank its rows of the first rank's graph; every rank calls this."""
    header = np.zeros(3, np.int64)
    if graph is not None:
        header[:] = 1, graph.n_vertices, 0 if graph.weights is None else graph.weights.itemsize
    here, vertices, itemsize = ranks.allgatherv(header)[0].tolist()
    if not here:
        raise NoGraphError("the first process has no graph; see its message")
    blocks = blocks_of(graph, ranks.size) if graph is not None and not ranks.rank else None
    empty = {
        "offsets": np.zeros(0, np.int64),
        "targets": np.zeros(0, np.uint32),
        "weights": np.zeros(0, np.uint32 if itemsize == 4 else np.int64),
        "loops": np.zeros(0, np.int64),
        "first": np.zeros(0, np.int64),
        "local_names": np.zeros(0, np.uint8),
    }
    local: dict[str, Any] = {}
    for name, nothing in empty.items():
        sent: list[Any]
        if blocks is None:
            sent = [nothing] * ranks.size
        elif name == "first":
            sent = [np.array([block.first], np.int64) for block in blocks]
        elif name == "local_names":  # of any type
            sent = [np.frombuffer(pickle.dumps(block.local_names), np.uint8) for block in blocks]
        else:
            sent = [nothing if getattr(b, name) is None else getattr(b, name) for b in blocks]
        local[name] = ranks.alltoallv(sent)[0]
    first = int(local.pop("first")[0])
    local["weights"] = local["weights"] if itemsize else None
    local["local_names"] = pickle.loads(local["local_names"].tobytes())
    return RowBlock(first=first, n_vertices=vertices, **local)


def join_blocks(ranks: Communicator, block: RowBlock) -> RankGraph:
    """Return the graph whose rows the ranks hold in blocks; every rank calls this with its own."""
    numbers = np.array(
        [block.first, block.last, block.n_vertices, block.weights is not None], np.int64
    )
    every = np.stack(ranks.allgatherv(numbers))
    cuts = np.append(every[:, 0], block.n_vertices)
    if (every[:, 2:] != every[0, 2:]).any() or (every[:, 1] != cuts[1:]).any() or cuts[0]:
        raise GraphError("the ranks' rows are not parts of one graph; divide it anew")
    local = weighted_degrees(block.offsets, block.weights, block.loops)
    degrees = np.concatenate(ranks.allgatherv(local))
    arcs = int(ranks.sum_exact([len(block.targets)])[0])
    return RankGraph(
        block=block, cuts=cuts, degrees=degrees, n_arcs=arcs, total_weight=int(degrees.sum())
    )
