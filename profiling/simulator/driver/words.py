"""The pages of a whole block, eight at a time: one byte per page, eight pages per word.

Most pages of a thrashing run migrate in whole blocks of 2 MiB, and going through them byte by
byte is what a replay's time would go into. Blocks that are no whole frame go byte by byte, by the
same rules in plainer code, where each function here is called.

Arrays of words come from outside: to view bytes as words here would be done by routines of Numba's
that count references if any other function that does was compiled before.
"""

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import inlined

LOW = np.uint64(0x0101_0101_0101_0101)  # the lowest bit of each byte
BYTE = np.uint64(0xFF)
NONE = np.uint64(0)
EIGHT = np.uint64(8)
ONE = np.uint64(1)
TOP = np.uint64(56)
PAIRS = np.uint64(0x00FF_00FF_00FF_00FF)
FOURS = np.uint64(0x0001_0001_0001_0001)
LAST = np.uint64(48)
GPU_ALONE = np.uint64(c.ON_GPU | c.MAP_READ | c.MAP_WRITE)
SHARED = np.uint64(c.BOTH | c.MAP_READ)
WORDS = c.BLOCK_PAGES // 8
LEAF_WORDS = c.BIG_PAGES // 8


@inlined
def total(sums):
    """Return the sum of a word's bytes, each at most 255."""
    return np.int64((((sums & PAIRS) + ((sums >> EIGHT) & PAIRS)) * FOURS) >> LAST)


@inlined
def weigh_words(pages, want, have, faulted, shift):
    """Fill the pages that each big page has, those with a fault whole; see `density.weigh`."""
    for leaf in range(WORDS // LEAF_WORDS):
        asked = np.uint64(0)
        here = np.uint64(0)
        for word in range(leaf * LEAF_WORDS, (leaf + 1) * LEAF_WORDS):
            asked |= want[word]
            here += (pages[word] >> shift) & LOW
        faulted[leaf] = asked != np.uint64(0)
        have[leaf] = c.BIG_PAGES if asked != np.uint64(0) else total(here)


@inlined
def mark_words(pages, want, first, end, shift):
    """Mark as BROUGHT the pages of words `first` … `end` that are neither here nor wanted."""
    for word in range(first, end):
        there = (pages[word] >> shift) | want[word] | (want[word] >> ONE)
        want[word] |= (~there & LOW) << ONE


@inlined
def bring_words(pages, want, duplicate):
    """Make BROUGHT pages resident on the GPU; clear what was wanted; see `service.bring_along`."""
    copied = np.uint64(0)
    starts = np.uint64(0)
    came = np.uint64(0)
    before = np.uint64(0)
    shared = SHARED if duplicate else GPU_ALONE
    for word in range(WORDS):
        if want[word] == NONE:  # as most, where the driver evicts all the time
            before = NONE
            continue
        bits = pages[word]
        brought = (want[word] >> ONE) & LOW
        on_host = (bits >> ONE) & LOW & brought
        coming = on_host & ~bits
        pages[word] = (
            (bits & ~(brought * BYTE)) | on_host * shared | (brought & ~on_host) * GPU_ALONE
        )
        came += brought & ~bits
        copied += coming
        starts += coming & ~((coming << EIGHT) | before)
        before = coming >> TOP
        want[word] = np.uint64(0)
    return total(starts), total(copied), total(came)


@inlined
def evict_words(pages, after):
    """Evict the pages on the GPU; return how many there were, and how many had a host copy."""
    here = np.uint64(0)
    dropped = np.uint64(0)
    state = np.uint64(after) * LOW
    for word in range(WORDS):
        bits = pages[word]
        on_gpu = bits & LOW
        here += on_gpu
        dropped += on_gpu & (bits >> ONE)
        whole = (on_gpu << EIGHT) - on_gpu  # every bit of these bytes
        pages[word] = (bits & ~whole) | (whole & state)
    return total(here), total(dropped)
