"""The density prefetcher: which pages of a block migrate with those that faulted."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import compiled
from louvain_um.profiling.simulator.driver.words import LEAF_WORDS, mark_words, weigh_words


@compiled
def add_dense(pages, want, tree, first, count, here, threshold):
    """Mark as BROUGHT the pages that density adds to the FAULTED pages of a block."""
    base = first & ~(c.BLOCK_PAGES - 1)
    low = first - base
    high = low + count
    bits, words = pages
    wanted, marks = want
    frame = bits[base : base + c.BLOCK_PAGES]
    words = words[base >> 3 :]
    whole = count == c.BLOCK_PAGES
    have, size, asked = tree[c.HAVE], tree[c.SIZE], tree[c.ASKED]
    shift = np.uint64(here - 1)  # of the destination's bit: ON_GPU is 1, ON_HOST is 2
    if whole:
        weigh_words(words, marks, have[c.LEAVES :], asked, shift)
    else:
        weigh(frame, wanted, tree, low, high, here)
    for node in range(c.LEAVES - 1, 0, -1):
        have[node] = have[2 * node] + have[2 * node + 1]
        if not whole:
            size[node] = size[2 * node] + size[2 * node + 1]
    for leaf in range(c.LEAVES):
        if not asked[leaf]:
            continue
        node = c.LEAVES + leaf
        width = 1
        best = leaf
        best_width = 1
        while node > 1:
            node >>= 1
            width <<= 1
            there = width * c.BIG_PAGES if whole else size[node]
            if have[node] * 100 > there * threshold:
                best = leaf & ~(width - 1)
                best_width = width
        end = best + best_width
        if whole:
            mark_words(words, marks, best * LEAF_WORDS, end * LEAF_WORDS, shift)
            continue
        for offset in range(max(low, best * c.BIG_PAGES), min(high, end * c.BIG_PAGES)):
            if wanted[offset] == 0 and not frame[offset] & here:
                wanted[offset] = c.BROUGHT


@compiled
def weigh(frame, want, tree, low, high, here):
    """Fill the leaves of a block that covers only pages `low` … `high` of its frame."""
    for leaf in range(c.LEAVES):
        start = max(low, leaf * c.BIG_PAGES)
        end = min(high, (leaf + 1) * c.BIG_PAGES)
        resident = 0
        asked = False
        for offset in range(start, end):
            asked |= want[offset] == c.FAULTED
            resident += 1 if frame[offset] & here else 0
        size = max(0, end - start)
        tree[c.ASKED, leaf] = asked
        tree[c.SIZE, c.LEAVES + leaf] = size
        tree[c.HAVE, c.LEAVES + leaf] = size if asked else resident
