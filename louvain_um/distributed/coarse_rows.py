"""The next level's rows: each rank's sums go to the rows' owners, which add them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from louvain_um.core import parallel
from louvain_um.cpu.level import I64, U32
from louvain_um.distributed import kernels
from louvain_um.distributed.communicator import Communicator
from louvain_um.distributed.partition import cut_by_arcs

BINS = 1 << 12
"""Ranges of vertices by which arcs are counted: of 64 ranks each gets 64, so that cuts are
within 2 % of even, for 32 KiB in one message."""


@dataclass(eq=False, slots=True)
class Rows:
    """Compressed rows of consecutive vertices, and what is known of them."""

    offsets: I64
    targets: U32
    weights: U32 | I64
    loops: I64


def cut_rows(ranks: Communicator, offsets: I64) -> I64:
    """Return cuts that give each rank as many arcs of all ranks' rows of the same vertices."""
    count = len(offsets) - 1
    bounds = np.arange(BINS + 1) * count // BINS
    arcs = ranks.sum_exact(np.diff(offsets[bounds]))
    return bounds[cut_by_arcs(np.concatenate(([0], np.cumsum(arcs))), ranks.size)]


def exchange_rows(
    ranks: Communicator, offsets: I64, targets: U32, weights: U32 | I64, cuts: I64
) -> tuple[I64, U32, U32 | I64]:
    """Send every row to its owner; return the pieces received of own rows."""
    ends = offsets[cuts]
    lengths = ranks.alltoallv(np.split(np.diff(offsets).astype(np.uint32), cuts[1:-1]))
    pieces = np.concatenate(ranks.alltoallv(np.split(targets, ends[1:-1])))
    loads = np.concatenate(ranks.alltoallv(np.split(weights, ends[1:-1])))
    starts = np.zeros((ranks.size, len(lengths[ranks.rank]) + 1), np.int64)
    np.cumsum(np.stack(lengths), axis=1, out=starts[:, 1:], dtype=np.int64)
    starts += np.concatenate(([0], np.cumsum(starts[:-1, -1])))[:, None]
    return starts, pieces, loads


def merge_pieces(
    threads: int, starts: I64, targets: U32, weights: U32 | I64, degrees: I64, tallies: Any
) -> Rows:
    """Add up the pieces of each row; `degrees` are those of the rows' vertices."""
    rooms = (starts - starts[:, :1]).sum(axis=0)
    new_targets, new_weights = np.empty_like(targets), np.empty_like(weights)
    counts, loops = np.empty(len(degrees), np.int64), np.empty(len(degrees), np.int64)
    parallel.run(
        kernels.merge_rows, threads, starts, (targets, weights), tallies, rooms, degrees,
        (new_targets, new_weights, counts, loops), np.zeros(1, np.int64),
    )  # fmt: skip
    offsets = np.empty(len(degrees) + 1, np.int64)
    kernels.close_gaps(rooms, counts, new_targets, new_weights, offsets)
    kept = int(offsets[-1])
    new_targets.resize(kept, refcheck=False)
    new_weights.resize(kept, refcheck=False)
    return Rows(offsets, new_targets, new_weights, loops)


def gather_rows(ranks: Communicator, rows: Rows) -> Rows:
    """Return all ranks' rows, on every rank."""
    lengths = np.concatenate(ranks.allgatherv(np.diff(rows.offsets)))
    return Rows(
        np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))),
        np.concatenate(ranks.allgatherv(rows.targets)),
        np.concatenate(ranks.allgatherv(rows.weights)),
        np.concatenate(ranks.allgatherv(rows.loops)),
    )
