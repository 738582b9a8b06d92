"""Targets in as few bytes as their neighbours allow, for graphs that do not fit otherwise.

The targets of 128 arcs that follow each other take 1 to 4 bytes each, by how far apart they are
(`packed.cuh`): one or two in meshes, road networks and other graphs whose vertices are numbered
along the graph, and in any graph no more than the largest number needs. Weights, if there are any,
take 16 bits. This shrinks the largest arrays of a run, and most of the bytes that moving reads. If
the graph fits, targets keep 32 bits: packing takes time, and reading them in core is no faster.

Rows are sorted by length, short ones first. So the longest rows stay on the host if not all fit:
the bus reads these as one range of bytes, while each short row costs one or two requests. Offsets
then take 8 bytes. Where that would be much beside the targets, rows of unweighted graphs keep their
order, and offsets take 4 bytes (`sorts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.gpu.memory.packed_rows import (
    LINE_BITS,
    LINE_BYTES,
    MOST_LINES,
    PACKED_ARCS,
    START_BITS,
    WIDTH_BITS,
)
from louvain_um.placement.memory.staging import fetched

OFFSETS_SHARE: Final = 8
"""Offsets of 8 bytes that take more than 1 / 8 of the bytes of targets are too much: with 30 % of
the memory, Louvain took 0.81 to 0.88 times as long with rows in order on three kinds of graph above
that, 1.05 times on one, and 1.02 times on one below (`rows_in_order_h200.json`)."""

MOST_LENGTH: Final = 1 << 64 - START_BITS
"""Arcs that no sorted row may have."""

MOST_ARCS: Final = MOST_LINES * LINE_BYTES // 4
"""Arcs that fit the lines of heads, whatever their targets take."""

MOST_WEIGHT: Final = (1 << 16) - 1
"""Largest weight of 16 bits."""

HEADER: Final = 2
"""Words in front of the heads: bytes a target if all take as many, else 0, and the address of the
weights."""

WORTH: Final = 0.9
"""Bytes of packed targets, by those that the largest number needs, below which blocks have heads:
with these, runs on nested blocks at 30 to 70 % of the memory took 2 to 13 % longer than with
targets of 24 bits (`packed_heads_h200.json`)."""


def sorts(vertices: int, arcs: int) -> bool:
    """Say whether rows of an unweighted graph are sorted by length."""
    return OFFSETS_SHARE * 8 * vertices <= most_bytes(vertices) * arcs


def heads_of(vertices: int, arcs: int, target_bytes: float | None) -> int:
    """Return the words of the heads of packed targets, `HEADER` included."""
    varies = target_bytes is not None and target_bytes <= WORTH * most_bytes(vertices)
    return HEADER + varies * -(-arcs // PACKED_ARCS) + 1


def most_bytes(vertices: int) -> int:
    """Return the most bytes that a target takes in a graph of so many vertices."""
    return max(1, -(-(vertices - 1).bit_length() // 8))


@dataclass(frozen=True, slots=True)
class Packed:
    """A graph in fewer bytes."""

    offsets: NDArray[Any]
    heads: NDArray[np.int64]
    lines: NDArray[np.uint32]
    targets: NDArray[np.uint32]
    weights: NDArray[np.uint16] | None


class Packer:
    """Packs a graph, and knows before how many bytes that takes."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.arrays: tuple[Any, Any] | None = None
        self.found: dict[bool, tuple[Any, ...]] = {}

    def target_bytes(self, *, sort: bool) -> float:
        """Return the bytes of a packed target, on average; rows are sorted or not."""
        widths = self._blocks(sort)[-1]
        lines = int(widths.sum(dtype=np.int64))
        return float(lines * LINE_BYTES / max(self.graph.n_arcs, 1))

    def pack(self, *, sort: bool) -> Packed:
        """Return the graph in fewer bytes."""
        from louvain_um.core.parallel import default_threads, run
        from louvain_um.gpu.memory.packed_rows import pack_blocks, pack_weights

        placed, order, begins, bases, widths = self._blocks(sort)
        offsets, targets = self._on_host()
        lines = np.zeros(len(bases) + 1, np.uint32)
        np.cumsum(widths, out=lines[1:])
        own = lines.astype(np.int64) << LINE_BITS
        own[:-1] |= (widths.astype(np.int64) - 1) << WIDTH_BITS | bases
        known = self.graph.n_vertices, len(targets), self.target_bytes(sort=sort)
        heads = np.zeros(heads_of(*known), np.int64)
        if len(heads) > HEADER + 1:
            heads[HEADER:] = own
        else:
            heads[0] = most_bytes(self.graph.n_vertices)
        threads, short = default_threads(), None
        if heads[0] == targets.itemsize and not sort:
            packed = targets  # as it is
        else:
            packed = np.zeros(int(lines[-1]) * LINE_BYTES // 4, np.uint32)
            rows = offsets, targets, order, begins
            run(pack_blocks, threads, np.zeros(1, np.int64), *rows, own, packed.view(np.uint8))
        weights = on_host(self.graph.weights)
        if weights is not None:
            short = np.empty(len(weights), np.uint16)
            run(pack_weights, threads, np.zeros(1, np.int64), offsets, weights, placed, short)
        self.arrays, self.found = None, {}
        return Packed(placed, heads, lines, packed, short)

    def _blocks(self, sort: bool) -> tuple[Any, ...]:
        """Return offsets, the rows in order and their begins, and each block's base and width."""
        if sort in self.found:
            return self.found[sort]
        from louvain_um.core.parallel import default_threads, run
        from louvain_um.gpu.memory.packed_rows import measure_blocks

        offsets, targets = self._on_host()
        if sort:
            placed, order, begins = sorted_rows(offsets)
        else:
            placed, order, begins = offsets.astype(np.uint32), np.empty(0, np.uint32), offsets
        blocks = -(-len(targets) // PACKED_ARCS)
        bases, widths = np.zeros(blocks, np.uint32), np.zeros(blocks, np.uint8)
        rows = offsets, targets, order, begins
        run(measure_blocks, default_threads(), np.zeros(1, np.int64), *rows, bases, widths)
        most = most_bytes(self.graph.n_vertices)
        if widths.sum(dtype=np.int64) * LINE_BYTES > WORTH * most * len(targets):
            bases[:], widths[:] = 0, most  # all alike: without heads
        self.found[sort] = placed, order, begins, bases, widths
        return self.found[sort]

    def _on_host(self) -> tuple[Any, Any]:
        """Return offsets and targets in host memory, wherever they are."""
        if self.arrays is None:
            self.arrays = on_host(self.graph.offsets), on_host(self.graph.targets)
        return self.arrays


def sorted_rows(offsets: NDArray[np.int64]) -> tuple[Any, Any, Any]:
    """Return rows sorted by length: begins and lengths by vertex, vertices."""
    from louvain_um.core.parallel import PIECE, default_threads, run
    from louvain_um.gpu.memory.packed_rows import CLASSES, count_rows, place_rows

    n = len(offsets) - 1
    threads = default_threads() if n > PIECE else 1
    counts = np.zeros((2, threads, CLASSES), np.int64)
    run(count_rows, threads, offsets, *counts)
    # Before a class are those of fewer bits, and before a thread's share of it those of others.
    before = counts.transpose(0, 2, 1).reshape(2, -1).cumsum(axis=1)[:, :-1]
    before = np.insert(before, 0, 0, axis=1).reshape(2, CLASSES, threads).transpose(0, 2, 1)
    placed, begins = np.zeros(n + 1, np.int64), np.empty(n + 1, np.int64)
    order = np.empty(n, np.uint32)
    run(place_rows, threads, offsets, *np.ascontiguousarray(before), placed, order, begins)
    begins[n] = offsets[n]
    return placed, order, begins


def on_host(array: Any) -> Any:
    """Return an array in host memory, wherever it is; None for None."""
    return array if array is None or isinstance(array, np.ndarray) else fetched(array)


def whole_arcs(lines: NDArray[np.uint32], nbytes: int) -> int:
    """Return how many arcs are in blocks that are whole in the first bytes of packed targets."""
    wanted = np.uint32(min(nbytes // LINE_BYTES, MOST_LINES))
    return (int(np.searchsorted(lines, wanted, side="right")) - 1) * PACKED_ARCS
