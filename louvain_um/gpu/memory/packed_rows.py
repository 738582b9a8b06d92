"""The compiled part of `packed.py`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import take

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
"""Lines that heads can tell apart."""

STRETCH: Final = 1 << 8
"""Blocks that a thread packs at a time."""


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
    t: int,
    threads: int,
    offsets: Any,
    arcs: Any,
    rows: Any,
    placed: Any,
    order: Any,
    begins: Any,
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
    t: int,
    threads: int,
    taken: Any,
    offsets: Any,
    targets: Any,
    order: Any,
    begins: Any,
    bases: Any,
    widths: Any,
) -> None:
    """Find the smallest target of each block, and the bytes that its targets take less that."""
    blocks, arcs = len(bases), begins[len(begins) - 1]
    first = take(taken, STRETCH)
    while first < blocks:
        at = first * PACKED_ARCS
        i = np.searchsorted(begins, at, side="right") - 1
        for b in range(first, min(first + STRETCH, blocks)):
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
        first = take(taken, STRETCH)


@kernel()
def pack_blocks(
    t: int,
    threads: int,
    taken: Any,
    offsets: Any,
    targets: Any,
    order: Any,
    begins: Any,
    heads: Any,
    parts: Any,
) -> None:
    """Write the bytes of targets of blocks that no other thread took, as their heads say."""
    blocks, arcs = len(heads) - 1, begins[len(begins) - 1]
    first = take(taken, STRETCH)
    while first < blocks:
        at = first * PACKED_ARCS
        i = np.searchsorted(begins, at, side="right") - 1
        for b in range(first, min(first + STRETCH, blocks)):
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
        first = take(taken, STRETCH)


@kernel()
def pack_weights(
    t: int, threads: int, taken: Any, offsets: Any, weights: Any, placed: Any, short: Any
) -> None:
    """Write weights of rows that no other thread took to where these are placed."""
    n = len(offsets) - 1
    first = take(taken, STRETCH * STRETCH)
    while first < n:
        for v in range(first, min(first + STRETCH * STRETCH, n)):
            at = (placed[v] & (1 << START_BITS) - 1) - offsets[v]
            for j in range(offsets[v], offsets[v + 1]):
                short[at + j] = weights[j]
        first = take(taken, STRETCH * STRETCH)


@kernel()
def _bits(number: int) -> int:
    """Return how many bits a number has."""
    bits = 0
    while number:
        number >>= 1
        bits += 1
    return bits
