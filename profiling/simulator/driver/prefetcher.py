"""Where a page goes when it faults, and which of a block's pages migrate with it: by density."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import (
    LEAF_WORDS,
    compiled,
    inlined,
    mark_words,
    weigh_words,
)
from louvain_um.profiling.simulator.driver.thrashing import MOVES, THRASHING_PAGES
from louvain_um.profiling.simulator.driver.user_functions import FAILED, mark

DUPLICATE = 4
"""Added to where a page goes if the copies that are there stay."""


class PageAdvice(NamedTuple):
    """What was advised of a page; processors are bits of where a page is, 0 is none."""

    preferred: Any
    accessed_by: Any  # bits of processors
    duplicates: Any  # DISABLED, UNSET or ENABLED


DISABLED = 0
UNSET = 1
ENABLED = 2

FAULT = 0
COUNTERS = 1
FOREIGN = 2
"""Causes of a choice: a fault, a notification of access counters, a fault of another process, which
no trace has."""


@inlined
def advice_of(bits):
    """Return the advice of a block's bits."""
    preferred = c.ON_HOST if bits & c.PREFERS_HOST else c.ON_GPU if bits & c.PREFERS_GPU else 0
    if bits & c.PREFERS_OTHER:
        preferred = c.ON_PEER if bits & c.REACHED else c.ON_OTHER
    accessed_by = c.ON_GPU if bits & c.ACCESSED_BY else 0
    return PageAdvice(preferred, accessed_by, ENABLED if bits & c.READ_MOSTLY else UNSET)


@inlined
def choose(processor, bits, advice, pin, reads, coherent, cause):
    """Return where a page goes that a processor accesses; the first matching rule wins."""
    # From elsewhere, it is mapped over the bus. `pin` is where a thrashing page is pinned. Access
    # counters count as readers.
    where = bits & c.ANYWHERE
    near = where & c.ON_PEER if where & c.ON_PEER else where & ~c.ON_OTHER
    duplicated = where & (where - 1) != 0 and advice.duplicates != DISABLED and pin == 0
    if advice.duplicates == ENABLED or duplicated:
        return processor | DUPLICATE if reads else processor
    if advice.preferred == processor:
        return processor
    if pin != 0:
        return pin
    # Over PCIe, the host does not reach a GPU's memory.
    reaches = processor == c.ON_GPU or coherent
    preferred = advice.preferred if reaches and advice.preferred != c.ON_OTHER else 0
    if where == 0:
        return preferred if preferred != 0 else processor
    if where & processor:
        return processor
    stays = advice.accessed_by & processor != 0 or cause == FOREIGN
    if stays and reaches and near != 0 and cause != COUNTERS:
        return near
    return preferred if preferred != 0 else processor


@inlined
def add_neighbours(s, block, destination, untouched):
    """Mark as BROUGHT the pages of a block that come along with the FAULTED ones."""
    row = s.blocks[block]
    preferred = advice_of(row[c.ADVICE]).preferred
    if s.switches[c.PREFETCHING] == 0 or (preferred != 0 and preferred != destination):
        return
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    if s.switches[c.MIN_FAULTS] > 1 and few_faulted(s, row, destination):
        return
    if preferred == destination and untouched:
        for offset in range(row[c.FIRST] - base, row[c.FIRST] - base + row[c.PAGES]):
            if s.want[offset] == 0:
                s.want[offset] = c.BROUGHT
    elif destination == c.ON_GPU and s.switches[c.USER_PREFETCH]:
        mark_by_user(s, row, base)
    else:
        barring = bar(s, block, row, base)
        add_dense(
            (s.pages, s.words), (s.want, s.marks), (s.tree, s.barred), row[c.FIRST],
            row[c.PAGES], destination, s.switches[c.THRESHOLD], barring,
        )  # fmt: skip


@compiled
def few_faulted(s, row, destination):
    """Count the FAULTED pages of a block; return whether they are too few for neighbours."""
    if row[c.FAULTED_TO] != destination:
        row[c.FAULTED_TO], row[c.FAULTED_PAGES] = destination, 0
    for offset in range(c.BLOCK_PAGES):
        row[c.FAULTED_PAGES] += s.want[offset] == c.FAULTED
    return row[c.FAULTED_PAGES] < s.switches[c.MIN_FAULTS]


@inlined
def bar(s, block, row, base):
    """Mark the pages of a block that thrash; return whether there are any."""
    if s.switches[c.DETECT_THRASHING] == 0 or s.watched[block, THRASHING_PAGES] == 0:
        return False
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        s.barred[page - base] = s.thrash[page, MOVES] >= s.switches[c.THRASH_EVENTS]
    return True


@compiled
def mark_by_user(s, row, base):
    """Let the user's function mark which pages come along with those that faulted."""
    bring = s.bring
    bring[:] = 0
    low = row[c.FIRST] - base
    high = low + row[c.PAGES]
    pages = s.pages[base : base + c.BLOCK_PAGES]
    if mark(s.switches[c.USER_PREFETCH], pages, s.want, bring, low, high) == FAILED:
        raise ValueError("raised an exception")
    for offset in range(c.BLOCK_PAGES):
        page_faulted = s.want[offset] == c.FAULTED
        inside = low <= offset < high
        if inside and bring[offset] and not page_faulted and not pages[offset] & c.ON_GPU:
            s.want[offset] = c.BROUGHT


@compiled
def add_dense(pages, want, scratch, first, count, here, threshold, barring):
    """Mark as BROUGHT the pages that density adds to the FAULTED pages of a block."""
    base = first & ~(c.BLOCK_PAGES - 1)
    bits, words = pages
    wanted, marks = want
    tree = scratch[0]
    if barring or count < c.BLOCK_PAGES:
        frame = bits[base : base + c.BLOCK_PAGES]
        add_dense_pages(frame, wanted, scratch, first - base, count, here, threshold)
        return
    if threshold >= 100:  # more than all of a subtree is never here
        return
    words = words[base >> 3 :]
    have, asked = tree[c.HAVE], tree[c.ASKED]
    shift = np.uint64(here - 1)  # of the destination's bit: ON_GPU is 1, ON_HOST is 2
    weigh_words(words, marks, have[c.LEAVES : 2 * c.LEAVES], asked, shift)
    for node in range(c.LEAVES - 1, 0, -1):
        have[node] = have[2 * node] + have[2 * node + 1]
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
            if have[node] * 100 > width * c.BIG_PAGES * threshold:
                best = leaf & ~(width - 1)
                best_width = width
        end = best + best_width
        mark_words(words, marks, best * LEAF_WORDS, end * LEAF_WORDS, shift)


@compiled
def add_dense_pages(frame, want, scratch, low, count, here, threshold):
    """Do the same page by page: for blocks that are no whole frame, and those with barred pages."""
    # Leaves of the tree are pages. It begins at the block's start, moved to a big page's boundary
    # by leaves that are absent, unless the block holds no whole big page.
    tree, barred = scratch
    sums = tree[c.SUMS]
    boundary = (low + c.BIG_PAGES - 1) & ~(c.BIG_PAGES - 1)
    pad = low % c.BIG_PAGES if boundary + c.BIG_PAGES <= low + count else 0
    leaves = pad + count
    sums[: pad + 1] = 0
    for begin in range(0, leaves, c.BIG_PAGES):
        start, end = max(pad, begin), min(leaves, begin + c.BIG_PAGES)
        asked = False
        closed = False
        for leaf in range(start, end):
            asked |= want[low + leaf - pad] == c.FAULTED
            closed |= barred[low + leaf - pad] != 0
        for leaf in range(start, end):
            offset = low + leaf - pad
            there = frame[offset] & here or want[offset] == c.FAULTED or (asked and not closed)
            sums[leaf + 1] = sums[leaf] + (1 if there else 0)
    last = (-1, -1)
    for leaf in range(pad, leaves):
        offset = low + leaf - pad
        if want[offset] != c.FAULTED or barred[offset]:
            continue
        best = (-1, -1)
        width = 1
        while True:
            begin = leaf & ~(width - 1)
            end = min(begin + width, leaves)
            if (sums[end] - sums[begin]) * 100 > (end - begin) * threshold:
                best = (begin, end)
            if width >= leaves:
                break
            width <<= 1
        if best[0] < 0 or best == last:
            continue
        last = best
        # The leaves that are absent are cut off, not moved.
        begin = best[0] - pad if best[0] >= pad else pad
        for other in range(low + begin, low + best[1] - pad):
            if want[other] == 0 and not barred[other] and not frame[other] & here:
                want[other] = c.BROUGHT
