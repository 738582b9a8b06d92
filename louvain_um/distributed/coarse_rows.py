"""The next level's rows: each rank's sums go to the rows' owners, which add them up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import take
from louvain_um.cpu.aggregate import NewRows
from louvain_um.cpu.level import EMPTY, I64, U32, NeighbourTable, add, bits_for, of_thread
from louvain_um.distributed.communicator import Communicator
from louvain_um.distributed.partition import cut_by_arcs

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
