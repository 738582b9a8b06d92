"""The density prefetcher: which pages of a block migrate with those that faulted."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver.compiled import compiled
from louvain_um.profiling.simulator.driver.constants import BIG_PAGES, BLOCK_PAGES
from louvain_um.profiling.simulator.driver.words import LEAF_WORDS, mark_words, weigh_words

FAULTED = np.uint8(1)
BROUGHT = np.uint8(2)
LEAVES = BLOCK_PAGES // BIG_PAGES

# Rows of the prefetcher's scratch memory.
HAVE = 0  # by node of the tree: pages here or asked for; the root is 1, leaves are the last
SIZE = 1  # by node: pages of a block that is no whole frame
ASKED = 2  # by big page: whether one of its pages faulted
TREE_ROWS = 3


@compiled
def add_dense(pages, want, tree, first, count, here, threshold):
    """Mark as BROUGHT the pages that density adds to the FAULTED pages of a block."""
    base = first & ~(BLOCK_PAGES - 1)
    low = first - base
    high = low + count
    bits, words = pages
    wanted, marks = want
    frame = bits[base : base + BLOCK_PAGES]
    words = words[base >> 3 :]
    whole = count == BLOCK_PAGES
    have, size, asked = tree[HAVE], tree[SIZE], tree[ASKED]
    shift = np.uint64(here - 1)  # of the destination's bit: ON_GPU is 1, ON_HOST is 2
    if whole:
        weigh_words(words, marks, have[LEAVES:], asked, shift)
    else:
        weigh(frame, wanted, tree, low, high, here)
    for node in range(LEAVES - 1, 0, -1):
        have[node] = have[2 * node] + have[2 * node + 1]
        if not whole:
            size[node] = size[2 * node] + size[2 * node + 1]
    for leaf in range(LEAVES):
        if not asked[leaf]:
            continue
        node = LEAVES + leaf
        width = 1
        best = leaf
        best_width = 1
        while node > 1:
            node >>= 1
            width <<= 1
            there = width * BIG_PAGES if whole else size[node]
            if have[node] * 100 > there * threshold:
                best = leaf & ~(width - 1)
                best_width = width
        end = best + best_width
        if whole:
            mark_words(words, marks, best * LEAF_WORDS, end * LEAF_WORDS, shift)
            continue
        for offset in range(max(low, best * BIG_PAGES), min(high, end * BIG_PAGES)):
            if wanted[offset] == 0 and not frame[offset] & here:
                wanted[offset] = BROUGHT


@compiled
def weigh(frame, want, tree, low, high, here):
    """Fill the leaves of a block that covers only pages `low` … `high` of its frame."""
    for leaf in range(LEAVES):
        start = max(low, leaf * BIG_PAGES)
        end = min(high, (leaf + 1) * BIG_PAGES)
        resident = 0
        asked = False
        for offset in range(start, end):
            asked |= want[offset] == FAULTED
            resident += 1 if frame[offset] & here else 0
        size = max(0, end - start)
        tree[ASKED, leaf] = asked
        tree[SIZE, LEAVES + leaf] = size
        tree[HAVE, LEAVES + leaf] = size if asked else resident
