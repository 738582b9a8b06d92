"""The density prefetcher: which pages of a block come along with those that faulted."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np
from numba import njit

from louvain_um.profiling.simulator.constants import BIG_PAGES, BLOCK_PAGES

FAULTED = np.uint8(1)
BROUGHT = np.uint8(2)
_LEAVES = BLOCK_PAGES // BIG_PAGES


@njit(nogil=True, cache=True)
def add_dense(pages, want, first, count, here, threshold):
    """Mark as BROUGHT what density adds to the FAULTED pages of one block.

    Every big page with a fault is filled; then each of them grows to the largest aligned subtree
    of the block in which more than `threshold` percent of the pages are here or asked for.

    Parameters
    ----------
    pages : uint8 array
        State of all pages.
    want : uint8[512]
        By offset in the 2 MiB frame; FAULTED where a fault is to be served here.
    first, count : int
        The block's pages.
    here : int
        ON_GPU or ON_HOST, the destination's bit.
    threshold : int
        Percent; the driver's is 51.
    """
    base = first & ~(BLOCK_PAGES - 1)
    low = first - base
    high = low + count
    have = np.zeros(2 * _LEAVES, np.int64)
    size = np.zeros(2 * _LEAVES, np.int64)
    faulted = np.zeros(_LEAVES, np.bool_)
    for offset in range(low, high):
        if want[offset] == FAULTED:
            faulted[offset // BIG_PAGES] = True
    for leaf in range(_LEAVES):
        start = max(low, leaf * BIG_PAGES)
        end = min(high, (leaf + 1) * BIG_PAGES)
        if start >= end:
            continue
        size[_LEAVES + leaf] = end - start
        if faulted[leaf]:
            have[_LEAVES + leaf] = end - start
        else:
            for offset in range(start, end):
                if pages[base + offset] & here:
                    have[_LEAVES + leaf] += 1
    for node in range(_LEAVES - 1, 0, -1):
        have[node] = have[2 * node] + have[2 * node + 1]
        size[node] = size[2 * node] + size[2 * node + 1]
    for leaf in range(_LEAVES):
        if not faulted[leaf]:
            continue
        node = _LEAVES + leaf
        width = 1
        best = leaf
        best_width = 1
        while node > 1:
            node >>= 1
            width <<= 1
            if have[node] * 100 > size[node] * threshold:
                best = leaf & ~(width - 1)
                best_width = width
        start = max(low, best * BIG_PAGES)
        end = min(high, (best + best_width) * BIG_PAGES)
        for offset in range(start, end):
            if want[offset] == 0 and not pages[base + offset] & here:
                want[offset] = BROUGHT
