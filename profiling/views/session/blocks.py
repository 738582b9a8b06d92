"""Blocks of 2 MiB migrated more than once: where oversubscription costs most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from louvain_um.placement.hardware import BLOCK
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.views.session.analysis import SessionAnalysis, evidence
from louvain_um.profiling.views.table import Column, Table

TOP = 50
CHUNK = 1 << 20
"""Rows handled at once."""

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


def spread(low: I64, high: I64, weight: F64) -> tuple[NDArray[np.intp], I64, F64]:
    """Spread weights evenly over ranges of whole numbers, both ends included."""
    many = high - low + 1
    source = np.repeat(np.arange(len(low)), many)
    first = np.cumsum(many) - many
    cell = low[source] + (np.arange(len(source)) - first[source])
    return source, cell, (weight / many)[source]


def chunks(rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Yield rows in parts of bounded size."""
    for at in range(0, len(rows), CHUNK):
        yield rows[at : at + CHUNK]


def last_byte(analysis: SessionAnalysis, rows: NDArray[np.intp]) -> I64:
    """Return the address of the last byte of each row."""
    events = analysis.events
    size = np.where(events["rows"][rows] > 1, 1, np.maximum(events["bytes"][rows], 1))
    last: I64 = events["address"][rows].astype(np.int64) + size - 1
    return last


def by_block(analysis: SessionAnalysis, kind: Kind) -> tuple[I64, F64]:
    """Return the blocks that a kind of migration touched, and the bytes of each."""
    blocks: I64 = np.empty(0, np.int64)
    sums: F64 = np.empty(0)
    for rows in chunks(analysis.rows_of(kind)):
        low = analysis.events["address"][rows].astype(np.int64) // BLOCK
        high = last_byte(analysis, rows) // BLOCK
        weight = analysis.events["bytes"][rows].astype(np.float64)
        _, cell, share = spread(low, high, weight)
        blocks, at = np.unique(np.concatenate([blocks, cell]), return_inverse=True)
        sums = np.bincount(at, np.concatenate([sums, share]), len(blocks)).astype(np.float64)
    return blocks, sums


def ping_pong(analysis: SessionAnalysis) -> Table:
    """Return the blocks whose bytes were migrated to the device most often."""
    blocks, bytes_in = by_block(analysis, Kind.HTOD)
    blocks_out, bytes_out = by_block(analysis, Kind.DTOH)
    both = np.zeros(len(blocks))
    _, here, there = np.intersect1d(blocks, blocks_out, assume_unique=True, return_indices=True)
    both[here] = bytes_out[there]
    repeated = np.minimum(np.maximum(bytes_in - BLOCK, 0), both)
    order = [at for at in np.argsort(-repeated, kind="stable")[:TOP].tolist() if repeated[at] > 0]
    rows = []
    for at in order:
        address = int(blocks[at]) * BLOCK
        name, group, offset = _array_at(analysis, address)
        rows.append(
            {
                "array": name,
                "group": group,
                "offset": offset,
                "address": f"{address:#x}",
                "bytes_in": int(bytes_in[at]),
                "bytes_out": int(both[at]),
                "times": float(bytes_in[at] / BLOCK),
            }
        )
    return Table(
        name="ping-pong",
        title="Blocks migrated most often",
        columns=(
            Column("array", "array", "text"),
            Column("group", "group", "text"),
            Column("offset", "offset in array", "bytes"),
            Column("address", "address", "text"),
            Column("bytes_in", "to the device", "bytes"),
            Column("bytes_out", "to the host", "bytes"),
            Column("times", "times filled", "times"),
        ),
        rows=tuple(rows),
        evidence=f"memory {evidence(analysis.session, 'memory')}",
        about="Blocks of 2 MiB, the driver's unit of eviction, migrated in more than once.",
    )


def _array_at(analysis: SessionAnalysis, address: int) -> tuple[str, str, int | None]:
    """Return the array with most bytes in a block, its group, and where in it the block begins."""
    best, most = None, 0
    for life in analysis.session.lifetimes:
        shared = min(life.address + life.nbytes, address + BLOCK) - max(life.address, address)
        if shared > most:
            best, most = life, shared
    if best is None:
        return "(no array of the run)", "other", None
    return best.name, best.group, max(0, address - best.address)


def refetched_bytes(analysis: SessionAnalysis) -> tuple[int, int]:
    """Return bytes migrated to the device, and how many of them beyond a block's first filling."""
    _, bytes_in = by_block(analysis, Kind.HTOD)
    return int(bytes_in.sum()), int(np.maximum(bytes_in - BLOCK, 0).sum())
