"""Which rank holds which rows: consecutive vertices, cut so that each has as many arcs.

Of the next level each rank sends its sums to the rows' owners, which add them up.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.headroom import check_host_memory
from louvain_um.core.parallel import take
from louvain_um.cpu.aggregate import NewRows
from louvain_um.cpu.level import EMPTY, I64, U32, NeighbourTable, add, bits_for, of_thread
from louvain_um.distributed.communicator import Communicator
from louvain_um.errors import GraphError, WorkerLostError
from louvain_um.graph.build import weighted_degrees
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_kinds


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

    def dealt(dtype: Any, part: Callable[[RowBlock], Any]) -> Any:
        given = [None] * ranks.size if blocks is None else map(part, blocks)
        return ranks.alltoallv([np.zeros(0, dtype) if x is None else x for x in given])[0]

    def others(block: RowBlock) -> NDArray[np.uint8]:  # names are of any type
        return np.frombuffer(pickle.dumps((block.first, block.local_names)), np.uint8)

    offsets, targets = dealt(np.int64, lambda b: b.offsets), dealt(np.uint32, lambda b: b.targets)
    weights = dealt(np.uint32 if itemsize == 4 else np.int64, lambda b: b.weights)
    loops = dealt(np.int64, lambda b: b.loops)
    first, names = pickle.loads(dealt(np.uint8, others).tobytes())
    return RowBlock(
        first=first, n_vertices=vertices, offsets=offsets, targets=targets,
        weights=weights if itemsize else None, loops=loops, local_names=names,
    )  # fmt: skip


VERTEX_BYTES: Final = 64
"""Of every vertex on every rank, at least: its state, and messages of it."""

ARC_BYTES: Final = 12
"""Of every arc of a rank's rows, at least: its sum for the next level, and the message of it."""


def host_key() -> int:
    """Return a number of this host, which ranks on it share."""
    digest = hashlib.sha256(platform.node().encode()).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def join_blocks(ranks: Communicator, block: RowBlock) -> RankGraph:
    """Return the graph whose rows the ranks hold in blocks; every rank calls this with its own."""
    needed = VERTEX_BYTES * block.n_vertices + ARC_BYTES * len(block.targets)
    numbers = np.array(
        [block.first, block.last, block.n_vertices, block.weights is not None, host_key(), needed],
        np.int64,
    )
    every = np.stack(ranks.allgatherv(numbers))
    cuts = np.append(every[:, 0], block.n_vertices)
    here = every[:, 4] == every[ranks.rank, 4]
    check_host_memory(
        int(every[here, 5].sum()),
        f"a run of {np.count_nonzero(here):,} ranks on this host",
        "use fewer here, or a host with more memory",
    )
    if (every[:, 2:4] != every[0, 2:4]).any() or (every[:, 1] != cuts[1:]).any() or cuts[0]:
        raise GraphError("the ranks' rows are not parts of one graph; divide it anew")
    local = weighted_degrees(block.offsets, block.weights, block.loops)
    degrees = np.concatenate(ranks.allgatherv(local))
    arcs = int(ranks.sum_exact([len(block.targets)])[0])
    return RankGraph(
        block=block, cuts=cuts, degrees=degrees, n_arcs=arcs, total_weight=int(degrees.sum())
    )


BINS = 1 << 12
"""Ranges of vertices by which arcs are counted: of 64 ranks each gets 64, so that cuts are
within 2 % of even, for 32 KiB in one message."""

CLAIMED = 256
"""Rows a thread claims at a time."""


class RankRows(NamedTuple):
    """Compressed rows of consecutive vertices, and their loops."""

    offsets: I64
    targets: U32
    weights: U32 | I64
    loops: I64


class Pieces(NamedTuple):
    """What ranks sent of each local row: where a rank's piece of a row begins, and their arcs."""

    starts: I64
    targets: U32
    weights: U32 | I64


def cut_rows(ranks: Communicator, offsets: I64) -> I64:
    """Return cuts that give each rank as many arcs of all ranks' rows of the same vertices."""
    count = len(offsets) - 1
    bounds = np.arange(BINS + 1) * count // BINS
    arcs = ranks.sum_exact(np.diff(offsets[bounds]))
    return bounds[cut_by_arcs(np.concatenate(([0], np.cumsum(arcs))), ranks.size)]


def exchange_rows(
    ranks: Communicator, offsets: I64, targets: U32, weights: U32 | I64, cuts: I64
) -> Pieces:
    """Send every row to its owner; return the pieces received of local rows."""
    ends = offsets[cuts]
    lengths = ranks.alltoallv(np.split(np.diff(offsets).astype(np.uint32), cuts[1:-1]))
    pieces = np.concatenate(ranks.alltoallv(np.split(targets, ends[1:-1])))
    loads = np.concatenate(ranks.alltoallv(np.split(weights, ends[1:-1])))
    starts = np.zeros((ranks.size, len(lengths[ranks.rank]) + 1), np.int64)
    np.cumsum(np.stack(lengths), axis=1, out=starts[:, 1:], dtype=np.int64)
    starts += np.concatenate(([0], np.cumsum(starts[:-1, -1])))[:, None]
    return Pieces(starts, pieces, loads)


def merge_pieces(threads: int, pieces: Pieces, degrees: I64, tables: NeighbourTable) -> RankRows:
    """Add up the pieces of each row; `degrees` are those of the rows' vertices."""
    starts, targets, weights = pieces
    rooms = (starts - starts[:, :1]).sum(axis=0)
    counts, loops = np.empty(len(degrees), np.int64), np.empty(len(degrees), np.int64)
    out = NewRows(np.empty_like(targets), np.empty_like(weights), loops, counts)
    parallel.run(merge_rows, threads, pieces, tables, rooms, degrees, out, np.zeros(1, np.int64))
    offsets = np.empty(len(degrees) + 1, np.int64)
    close_gaps(rooms, out, offsets)
    kept = int(offsets[-1])
    out.targets.resize(kept, refcheck=False)
    out.weights.resize(kept, refcheck=False)
    return RankRows(offsets, out.targets, out.weights, loops)


def gather_rows(ranks: Communicator, rows: RankRows) -> RankRows:
    """Return all ranks' rows, on every rank."""
    lengths = np.concatenate(ranks.allgatherv(np.diff(rows.offsets)))
    return RankRows(
        np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))),
        np.concatenate(ranks.allgatherv(rows.targets)),
        np.concatenate(ranks.allgatherv(rows.weights)),
        np.concatenate(ranks.allgatherv(rows.loops)),
    )


@kernel()
def merge_rows(t, threads, pieces, tables, rooms, degrees, out, counter):
    """Add up the pieces that ranks sent of each row; write it at its place in `rooms`."""
    starts, targets, weights = pieces
    keys, sums, used, _, _ = of_thread(tables, t)
    new_targets, new_weights, loops, counts = out
    rows = len(degrees)
    while True:
        begin = take(counter, CLAIMED)
        if begin >= rows:
            break
        for i in range(begin, min(begin + CLAIMED, rows)):
            bits = bits_for(min(rooms[i + 1] - rooms[i], len(keys) >> 1))
            found = np.uint32(0)
            for r in range(len(starts)):
                low, high = starts[r, i], starts[r, i + 1]
                names, loads = targets[low:high], weights[low:high]
                if high > low:
                    found = add(keys, sums, used, names, loads, np.uint32(high - low), bits, found)
            leaving = 0
            for k in range(found):
                slot = used[k]
                new_targets[rooms[i] + k] = keys[slot]
                new_weights[rooms[i] + k] = sums[slot]
                leaving += sums[slot]
                keys[slot] = EMPTY
            counts[i] = found
            loops[i] = (degrees[i] - leaving) // 2


@kernel()
def close_gaps(rooms, rows, offsets):
    """Move rows behind each other; fill their offsets."""
    targets, weights, _, counts = rows
    offsets[0] = 0
    for i in range(len(counts)):
        out, base = offsets[i], rooms[i]
        for k in range(counts[i]):
            targets[out + k] = targets[base + k]
            weights[out + k] = weights[base + k]
        offsets[i + 1] = out + counts[i]
