"""Targets in as few bytes as their neighbours allow, for graphs that do not fit otherwise.

The targets of 128 arcs that follow each other take 1 to 4 bytes each, depending on the spread of
their ids (`packed.cuh`): one or two in meshes, road networks and other graphs whose vertices are
numbered along the graph, and in any graph no more than the largest number needs. Weights, if there
are any, take 16 bits. This shrinks the largest arrays of a run, and most of the bytes that moving
reads. If the graph fits, targets keep 32 bits: packing takes time, and reading them in core is no
faster.

Rows are sorted by length, short ones first. So the longest rows stay on the host if not all fit:
the bus reads these as one range of bytes, while each short row costs one or two requests. Offsets
then take 8 bytes. Where that would be much compared with the targets, rows of unweighted graphs
keep their order, and offsets take 4 bytes (`sorts`).

Weights of a coarse level take 8 or 16 bits, where few weigh much (`short_weights.cuh`). Heavier
arcs are listed in a hash table in front of the weights, in the same array: entries of arc and
weight, 16 bytes for their number, the weights. All weights of a level add up to no more than the
input's, which bounds the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import default_threads, run, take
from louvain_um.placement.memory.copies import fetched

START_BITS: Final = 40
"""Low bits of an offsets entry: where the row begins. The bits above hold its length."""

CLASSES: Final = 25
"""Lengths of rows have 0 … 24 bits."""

PACKED_ARCS: Final = 128
"""Arcs of a block, which are packed together."""

WIDTH_BITS: Final = 32
LINE_BITS: Final = 34
"""Bits of a head below the bytes of a target less one, and below the line that the block begins in;
the lowest ones are its smallest target."""

LINE_BYTES: Final = 128
"""Bytes of a line: those of a block whose targets take one each."""

MOST_LINES: Final = 1 << 30
"""Lines that heads can distinguish."""

BLOCKS_AT_ONCE: Final = 1 << 8
"""Blocks that a thread packs at a time."""

OFFSETS_SHARE: Final = 8
"""Offsets of 8 bytes that take more than 1 / 8 of the bytes of targets are too much: with 30 % of
the memory, Louvain took 0.81 to 0.88 times as long with rows in order on three kinds of graph above
that, 1.05 times on one, and 1.02 times on one below."""

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
targets of 24 bits."""


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


class SourceRows(NamedTuple):
    """A graph's rows, their vertices in the order in which they are packed, and where each begins.

    Without vertices, rows keep their order.
    """

    offsets: Any
    targets: Any
    order: Any
    begins: Any


class BlockLayout(NamedTuple):
    """Rows, their packed offsets, and each block's smallest target and bytes a target."""

    rows: SourceRows
    placed: Any
    bases: Any
    widths: Any


class Packer:
    """Packs a graph, and knows before how many bytes that takes."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.arrays: tuple[Any, Any] | None = None
        self.found: dict[bool, BlockLayout] = {}

    def target_bytes(self, *, sort: bool) -> float:
        """Return the bytes of a packed target, on average; rows are sorted or not."""
        lines = int(self._blocks(sort).widths.sum(dtype=np.int64))
        return float(lines * LINE_BYTES / max(self.graph.n_arcs, 1))

    def pack(self, *, sort: bool) -> Packed:
        """Return the graph in fewer bytes."""
        rows, placed, bases, widths = self._blocks(sort)
        offsets, targets = rows.offsets, rows.targets
        lines = np.zeros(len(bases) + 1, np.uint32)
        np.cumsum(widths, out=lines[1:])
        whole_heads = lines.astype(np.int64) << LINE_BITS
        whole_heads[:-1] |= (widths.astype(np.int64) - 1) << WIDTH_BITS | bases
        known = self.graph.n_vertices, len(targets), self.target_bytes(sort=sort)
        heads = np.zeros(heads_of(*known), np.int64)
        if len(heads) > HEADER + 1:
            heads[HEADER:] = whole_heads
        else:
            heads[0] = most_bytes(self.graph.n_vertices)
        threads, short = default_threads(), None
        if heads[0] == targets.itemsize and not sort:
            packed = targets  # as it is
        else:
            packed = np.zeros(int(lines[-1]) * LINE_BYTES // 4, np.uint32)
            run(
                pack_blocks,
                threads,
                np.zeros(1, np.int64),
                rows,
                whole_heads,
                packed.view(np.uint8),
            )
        weights = on_host(self.graph.weights)
        if weights is not None:
            short = np.empty(len(weights), np.uint16)
            run(pack_weights, threads, np.zeros(1, np.int64), offsets, weights, placed, short)
        self.arrays, self.found = None, {}
        return Packed(placed, heads, lines, packed, short)

    def _blocks(self, sort: bool) -> BlockLayout:
        """Return how blocks of targets are packed, if rows are sorted or if they are not."""
        if sort in self.found:
            return self.found[sort]
        if self.arrays is None:
            self.arrays = on_host(self.graph.offsets), on_host(self.graph.targets)
        offsets, targets = self.arrays
        if sort:
            placed, order, begins = sorted_rows(offsets)
        else:
            placed, order, begins = offsets.astype(np.uint32), np.empty(0, np.uint32), offsets
        blocks = -(-len(targets) // PACKED_ARCS)
        bases, widths = np.zeros(blocks, np.uint32), np.zeros(blocks, np.uint8)
        rows = SourceRows(offsets, targets, order, begins)
        run(measure_blocks, default_threads(), np.zeros(1, np.int64), rows, bases, widths)
        most = most_bytes(self.graph.n_vertices)
        if widths.sum(dtype=np.int64) * LINE_BYTES > WORTH * most * len(targets):
            bases[:], widths[:] = 0, most  # all alike: without heads
        self.found[sort] = BlockLayout(rows, placed, bases, widths)
        return self.found[sort]


def sorted_rows(offsets: NDArray[np.int64]) -> tuple[Any, Any, Any]:
    """Return rows sorted by length: begins and lengths by vertex, vertices."""
    n = len(offsets) - 1
    threads = default_threads() if n > parallel.PIECE else 1
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


@kernel()
def count_rows(t: int, threads: int, offsets: Any, arcs: Any, rows: Any) -> None:
    """Count arcs and rows of each class of lengths, [t, class], among a thread's share of rows."""
    n = len(offsets) - 1
    for v in range(n * t // threads, n * (t + 1) // threads):
        length = offsets[v + 1] - offsets[v]
        k = _bits(length)
        arcs[t, k] += length
        rows[t, k] += 1


@kernel()
def place_rows(
    t: int, threads: int, offsets: Any, arcs: Any, rows: Any, placed: Any, order: Any, begins: Any
) -> None:
    """Sort a thread's share of rows by length, shorter classes first."""
    n = len(offsets) - 1
    for v in range(n * t // threads, n * (t + 1) // threads):
        length = offsets[v + 1] - offsets[v]
        k = _bits(length)
        placed[v] = arcs[t, k] | length << START_BITS
        order[rows[t, k]], begins[rows[t, k]] = v, arcs[t, k]
        arcs[t, k] += length
        rows[t, k] += 1


@kernel()
def measure_blocks(
    t: int, threads: int, taken: Any, rows: SourceRows, bases: Any, widths: Any
) -> None:
    """Find the smallest target of each block, and the bytes that its targets take less that."""
    offsets, targets, order, begins = rows
    blocks, arcs = len(bases), begins[len(begins) - 1]
    first = take(taken, BLOCKS_AT_ONCE)
    while first < blocks:
        at = first * PACKED_ARCS
        i = np.searchsorted(begins, at, side="right") - 1
        for b in range(first, min(first + BLOCKS_AT_ONCE, blocks)):
            end = min((b + 1) * PACKED_ARCS, arcs)
            least, most = np.int64(0xFFFFFFFF), np.int64(0)
            while at < end:
                while begins[i + 1] <= at:
                    i += 1
                v = order[i] if len(order) else i
                source = offsets[v] - begins[i]
                last = min(end, begins[i + 1])
                for j in range(source + at, source + last):
                    value = np.int64(targets[j])
                    least, most = min(least, value), max(most, value)
                at = last
            bases[b] = least
            widths[b] = 1 + (most - least >= 1 << 8) + (most - least >= 1 << 16)
            widths[b] += most - least >= 1 << 24
        first = take(taken, BLOCKS_AT_ONCE)


@kernel()
def pack_blocks(t: int, threads: int, taken: Any, rows: SourceRows, heads: Any, parts: Any) -> None:
    """Write the bytes of targets of blocks that no other thread took, as their heads say."""
    offsets, targets, order, begins = rows
    blocks, arcs = len(heads) - 1, begins[len(begins) - 1]
    first = take(taken, BLOCKS_AT_ONCE)
    while first < blocks:
        at = first * PACKED_ARCS
        i = np.searchsorted(begins, at, side="right") - 1
        for b in range(first, min(first + BLOCKS_AT_ONCE, blocks)):
            end, head = min((b + 1) * PACKED_ARCS, arcs), heads[b]
            base, width = head & 0xFFFFFFFF, (head >> WIDTH_BITS & 3) + 1
            to = (head >> LINE_BITS & MOST_LINES - 1) * LINE_BYTES
            while at < end:
                while begins[i + 1] <= at:
                    i += 1
                v = order[i] if len(order) else i
                source = offsets[v] - begins[i]
                last = min(end, begins[i + 1])
                if width == 1:
                    for j in range(source + at, source + last):
                        parts[to] = np.int64(targets[j]) - base
                        to += 1
                elif width == 2:
                    for j in range(source + at, source + last):
                        value = np.int64(targets[j]) - base
                        parts[to], parts[to + 1] = value & 0xFF, value >> 8
                        to += 2
                else:
                    for j in range(source + at, source + last):
                        value = np.int64(targets[j]) - base
                        parts[to], parts[to + 1] = value & 0xFF, value >> 8 & 0xFF
                        parts[to + 2] = value >> 16 & 0xFF
                        if width == 4:
                            parts[to + 3] = value >> 24
                        to += width
                at = last
        first = take(taken, BLOCKS_AT_ONCE)


@kernel()
def pack_weights(
    t: int, threads: int, taken: Any, offsets: Any, weights: Any, placed: Any, short: Any
) -> None:
    """Write weights of rows that no other thread took to where these are placed."""
    n = len(offsets) - 1
    first = take(taken, BLOCKS_AT_ONCE * BLOCKS_AT_ONCE)
    while first < n:
        for v in range(first, min(first + BLOCKS_AT_ONCE * BLOCKS_AT_ONCE, n)):
            at = (placed[v] & (1 << START_BITS) - 1) - offsets[v]
            for j in range(offsets[v], offsets[v + 1]):
                short[at + j] = weights[j]
        first = take(taken, BLOCKS_AT_ONCE * BLOCKS_AT_ONCE)


@kernel()
def _bits(number: int) -> int:
    """Return how many bits a number has."""
    bits = 0
    while number:
        number >>= 1
        bits += 1
    return bits


ENTRY: Final = 16
"""Bytes of an entry, and of the number of entries."""


def widths(*, weighted: bool) -> tuple[int, ...]:
    """Return the bytes that weights may take."""
    return (1, 2) if weighted else (1,)


def heavy_bits(width: int) -> int:
    """Return what stands for an arc that weighs as much or more, of weights of so many bytes."""
    return (1 << 8 * width) - 1


def slots_for(total: int, width: int) -> int:
    """Return the table's entries for arcs that weigh so much together."""
    return total // heavy_bits(width) * 4 // 3 + 1


def head_bytes(slots: int) -> int:
    """Return the bytes in front of the weights."""
    return ENTRY * (slots + 1)
