"""The row protocol of algorithms on the CPU: a row is its first piece, and those that follow.

Rows are a tuple (begins, ends, targets, weights, width, words, tree, link, step). Row `v` has
``ends[v] - begins[v]`` arcs. A piece is up to `width` of them at consecutive places, from
``begins[v]`` on. Pieces are in blocks of `words` places; from place `link` of a block on are the
numbers of the blocks that follow: the next one of a chain, or both children in a tree, where block
k, from 1, hangs from block k // 2. Where arcs of a block are `step` places from each other, each is
a piece.
Contiguous rows are a single piece; they have None for all these, for which Numba compiles loops
that end after one piece.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from louvain_um.core.compiled import kernel

INLINE: Final = {"forceinline": True, "_nrt": False}
"""Options of functions called per arc. Without `_nrt`, Numba would count references to the arrays
of `state` in every call, with atomic operations: ten times the time of a walk."""


class LinkedBlocks(NamedTuple):
    """Shape of blocks; `step` is None where arcs of a block lie side by side."""

    width: Any
    words: Any
    tree: Any
    link: Any
    step: Any


WHOLE: Final = LinkedBlocks(None, None, None, None, None)
"""Of contiguous rows."""


class BlockPiece(NamedTuple):
    """Consecutive arcs of a row: from `arc` to `stop`, before `left` others."""

    # `block` is where their block begins, of a tree its root; `number` counts pieces.

    arc: Any
    stop: Any
    left: Any
    block: Any
    number: Any


def blocks_of(width: int, words: int, link: int, step: int, *, tree: bool) -> LinkedBlocks:
    """Return the shape of blocks as kernels take it."""
    width, weights = (width, None) if step == 1 else (1, np.uint64(step))
    return LinkedBlocks(
        np.uint64(width), np.uint64(words), np.uint64(tree), np.uint64(link), weights
    )


@kernel(**INLINE)
def row(rows, v):
    """Return begin and end of a row, unsigned so that Numba omits checks for negative indices."""
    return np.uint64(rows[0][np.uint64(v)]), np.uint64(rows[1][np.uint64(v)])


@kernel(**INLINE)
def piece_of(rows, v):
    """Return the first piece of a row; it is empty if the row is."""
    begin, end = row(rows, v)
    return piece_at(rows, begin, end)


@kernel(**INLINE)
def piece_at(rows, begin, end):
    """Return the first piece of a row that begins at a place and has ``end - begin`` arcs."""
    stop = _stop(begin, end, rows[4])
    return BlockPiece(begin, stop, end - stop, begin, np.uint64(1))


@kernel(**INLINE)
def after(rows, piece):
    """Return the next piece of a row; an empty one behind the last."""
    return _after(rows, piece, rows[4], rows[8])


@kernel(**INLINE)
def _stop(begin, end, width):
    # Numba leaves out a branch for None only where that is an argument.
    if width is None:
        return end
    return min(end, begin + width)


@kernel(**INLINE)
def _after(rows, piece, width, step):
    if width is None:
        return BlockPiece(piece.stop, piece.stop, np.uint64(0), piece.block, piece.number)
    block, number = piece.block, piece.number + np.uint64(1)
    if piece.left == 0:
        return BlockPiece(piece.stop, piece.stop, np.uint64(0), block, number)
    if rows[6]:
        arc, bit = block, number
        while bit & (bit - np.uint64(1)):
            bit &= bit - np.uint64(1)
        while bit > 1:
            bit >>= np.uint64(1)
            side = np.uint64((number & bit) != 0)
            arc = np.uint64(rows[2][arc + rows[7] + side]) * rows[5]
    elif step is None:
        arc = block = np.uint64(rows[2][block + rows[7]]) * rows[5]
    else:
        arc = piece.arc + step
        if arc == block + rows[7]:
            arc = block = np.uint64(rows[2][arc]) * rows[5]
    count = min(piece.left, width)
    return BlockPiece(arc, arc + count, piece.left - count, block, number)


@kernel(**INLINE)
def piece_from(rows, v, skipped):
    """Return the rest of the piece with a row's arc `skipped`; an empty one behind all arcs."""
    skip, piece = np.uint64(skipped), piece_of(rows, v)
    while piece.arc < piece.stop and skip >= piece.stop - piece.arc:
        skip -= piece.stop - piece.arc
        piece = after(rows, piece)
    arc = min(piece.arc + skip, piece.stop)
    return BlockPiece(arc, piece.stop, piece.left, piece.block, piece.number)
