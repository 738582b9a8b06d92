"""The arrays of a batch on a device: one allocation, and the structures that kernels take."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.gpu.runtime.launch import Struct, layout, pointers

LONG_ROW: Final = 1024
"""Arcs and changes above which all blocks share a row (`long_rows.cuh`)."""

MOST_BLOCKS: Final = 4096
"""Blocks of a launch, at most: each has two partial sums."""

MOST_LISTED: Final = (1 << 30) - 1
"""Operations of a batch, at most: signed 32 bits count its arcs."""

ALIGNMENT: Final = 16

BATCH: Final = layout(
    **pointers("keys", "order", "given"),
    listed=np.int64, deletions=np.int64, decreases=np.int64, summing=np.int64,
    unchecked=np.int64,
    **pointers("loops", "degrees", "spans", "live", "classes", "targets", "weights"),
    frontier=np.int64, queued=np.int64, least=np.int64, linked=np.int64, in_place=np.int64,
    **pointers(
        "asked", "less", "more", "old", "fresh", "places", "gained", "changed", "edges",
        "rows", "starts", "from", "lengths", "wanted", "pages", "rooms", "long_rows",
        "partials", "counts",
    ),
)  # fmt: skip
"""`Batch` of batch.cuh."""

COUNTS: Final = layout(
    **dict.fromkeys(
        ("barrier", "faults", "weight", "first_fault", "first_absent", "missing"), np.uint64
    ),
    **dict.fromkeys(("edges", "arcs", "rows", "gained"), np.int64),
    loops=np.uint64, heaviest=np.uint64,
    **dict.fromkeys(("gain_high", "gain_low", "fresh", "room"), np.int64),
    freed=np.uint64, moved=np.uint64, frontier=np.int64,
    **dict.fromkeys(("longest", "long_rows", "taken", "given"), np.uint64),
    held=np.int64, lacking=np.uint64,
)  # fmt: skip
"""`BatchCounts` of batch.cuh."""


def batch_struct(**values: Any) -> Struct:
    """Return a `Batch` with these fields, as addresses and numbers; others are 0."""
    return Struct.zeroed(BATCH, **values)


def long_rows(arcs: int) -> int:
    """Return how many rows of so many arcs in all may be long."""
    return arcs // LONG_ROW + 1


def scratch_places(
    listed: int, vertices: int, arcs: int, *, weighted: bool, ordered: bool, paged: bool
) -> tuple[dict[str, int], int]:
    """Return where each array of a batch begins in its scratch, and the bytes of it."""
    both, rows = 2 * listed, min(2 * listed, vertices)
    amount, asking, paging = 8 if weighted else 1, both * ordered, rows * paged
    bytes_of = {
        "asked": 4 * asking,
        "less": 8 * asking,
        "more": 8 * asking,
        "old": amount * both,
        "fresh": amount * both,
        "places": 4 * both,  # with the next, one of 64 bits per arc while arcs are sorted
        "gained": 4 * (both + 1),
        "changed": 4 * (both + 1),
        "edges": 4 * listed,
        "rows": 4 * rows,
        "starts": 4 * (rows + 1),
        "from": 8 * paging,
        "lengths": 8 * paging,
        "wanted": paging,
        "pages": 8 * paging,
        "rooms": 8 * paging,
        "long_rows": 8 * long_rows(arcs + both),
    }
    places, end = {}, 0
    for name, size in bytes_of.items():
        places[name] = end
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return places, end
