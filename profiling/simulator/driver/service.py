"""Serving faults: a batch is sorted and coalesced, then served block by block."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.eviction import release
from louvain_um.profiling.simulator.driver.migration import (
    bring_along,
    bring_wanted,
    charge_wanted,
    fill_on_host,
    put_on_host,
)
from louvain_um.profiling.simulator.driver.prefetcher import add_dense
from louvain_um.profiling.simulator.driver.residency import (
    DUPLICATE,
    MIGRATE,
    PREFER,
    advice_of,
    choose,
    is_pinned,
    watch,
)
from louvain_um.profiling.simulator.driver.state import compiled, emit, inlined, spend
from louvain_um.profiling.simulator.driver.user_functions import FAILED, mark


@inlined
def nowhere_resident(s, block):
    """Return whether no page of a block has been touched or filled yet."""
    row = s.blocks[block]
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        if s.pages[page] & c.BOTH:
            return False
    return True


@inlined
def bar(s, row, base):
    """Mark the pages of a block that are pinned for thrashing; return whether there are any."""
    if s.switches[c.DETECT_THRASHING] == 0 or s.counters[c.PINS] == 0:
        return False
    barring = False
    for offset in range(row[c.FIRST] - base, row[c.FIRST] - base + row[c.PAGES]):
        s.barred[offset] = 1 if is_pinned(s, base + offset) else 0
        barring |= s.barred[offset] != 0
    return barring


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
def migrate_counted(s):
    """Bring the blocks whose access counters have reached the threshold to the device."""
    s.counters[c.NOTIFIED] = 0
    threshold = s.switches[c.COUNTER_THRESHOLD]
    for block in range(len(s.blocks)):
        row = s.blocks[block]
        if row[c.REMOTE_USES] < threshold:
            continue
        row[c.REMOTE_USES] = 0
        if row[c.ADVICE] & (c.PREFERS_HOST | c.PINNED | c.DEVICE):
            continue
        base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
        coming = 0
        for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
            if s.pages[page] & c.BOTH == c.ON_HOST and not is_pinned(s, page):
                s.want[page - base] = c.BROUGHT
                coming += 1
        if coming == 0:
            continue
        spend(s, c.FAULT, s.rates[c.PER_SERVICE])
        charge_wanted(s, block)
        rows, moved = bring_along(s, row, False)
        spend(s, c.MIGRATE, s.rates[c.PER_BYTE_IN] * moved * c.PAGE_BYTES)
        s.totals[row[c.OWNER], c.T_IN_COUNTED] += moved * c.PAGE_BYTES
        if moved:
            emit(s, c.K_HTOD, row[c.FIRST], moved * c.PAGE_BYTES, rows, c.C_COUNTED)


@compiled
def serve_block(s, block, low, high):
    """Serve the faults `low` … `high` of the batch, all of one block."""
    row = s.blocks[block]
    advice = row[c.ADVICE]
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    spend(s, c.FAULT, s.rates[c.PER_SERVICE])
    fresh = nowhere_resident(s, block)
    coming = 0
    mapped = 0
    for entry in range(low, high):
        page = s.batch[entry] >> 1
        writes = s.batch[entry] & 1 == 1
        pinned = watch(s, block, page, c.ON_GPU)
        pin = c.ON_HOST if pinned and s.pages[page] & c.BOTH != c.BOTH else 0
        coherent = s.switches[c.COHERENT] != 0
        choice = choose(
            c.ON_GPU, s.pages[page], advice_of(advice), pin, not writes, coherent, False
        )
        if choice in (MIGRATE, DUPLICATE):
            s.want[page - base] = c.FAULTED
            coming += 1
            continue
        if choice == PREFER and fresh:
            fill_on_host(s, block)  # where a block begins to live, all of it does
        elif s.pages[page] & c.BOTH == 0:
            s.pages[page] |= c.ON_HOST
        if s.pages[page] & c.ON_GPU:
            s.pages[page] |= c.MAP_READ | c.MAP_WRITE
        else:
            s.pages[page] |= c.MAP_REMOTE
            mapped += 1
    if mapped:
        s.totals[row[c.OWNER], c.T_REMOTE_MAPS] += mapped
        emit(s, c.K_REMOTE_MAP, s.batch[low] >> 1, mapped * c.PAGE_BYTES, mapped, c.C_COHERENCE)
    if coming == 0:
        return
    if s.switches[c.PREFETCHING]:
        if advice & c.PREFERS_GPU and fresh:
            for offset in range(row[c.FIRST] - base, row[c.FIRST] - base + row[c.PAGES]):
                if s.want[offset] == 0:
                    s.want[offset] = c.BROUGHT
        elif not advice & c.PREFERS_HOST and s.switches[c.USER_PREFETCH]:
            mark_by_user(s, row, base)
        elif not advice & c.PREFERS_HOST:
            add_dense(
                (s.pages, s.words), (s.want, s.marks), (s.tree, s.barred), row[c.FIRST],
                row[c.PAGES], c.ON_GPU, s.switches[c.THRESHOLD], bar(s, row, base),
            )  # fmt: skip
    bring_wanted(s, block, low, high)


@compiled
def serve_batch(s):
    """Serve one batch of the waiting touches; the caller replays them."""
    count = gather_batch(s)
    s.counters[c.BATCHES] += 1
    if s.counters[c.STREAK] % s.switches[c.BATCHES_PER_SERVICE] == 0:
        s.counters[c.SERVICES] += 1
        spend(s, c.FAULT, s.rates[c.PER_WAKE])
    s.counters[c.STREAK] += 1
    spend(s, c.FAULT, s.rates[c.PER_BATCH])
    low = 0
    while low < count:  # one row an array, so that each row has one owner
        owner = s.blocks[s.block_of[s.batch[low] >> 1], c.OWNER]
        high = low
        while high < count and s.blocks[s.block_of[s.batch[high] >> 1], c.OWNER] == owner:
            high += 1
        s.totals[owner, c.T_FAULTS] += high - low
        emit(s, c.K_GROUP, s.batch[low] >> 1, 0, high - low, c.C_UNKNOWN)
        low = high
    low = 0
    while low < count:
        block = s.block_of[s.batch[low] >> 1]
        high = low
        while high < count and s.block_of[s.batch[high] >> 1] == block:
            high += 1
        serve_block(s, block, low, high)
        low = high


@compiled
def sort_keys(keys, count, spare):
    """Sort the first `count` keys, eight bits at a time, unless already sorted."""
    differ = np.int64(0)
    falls = False
    for i in range(1, count):
        differ |= keys[i] ^ keys[0]
        falls |= keys[i] < keys[i - 1]
    if not falls:
        return
    digits, other = spare[: c.DIGITS], spare[c.DIGITS :]
    shift = 0
    while differ >> shift:
        digits[:] = 0
        for i in range(count):
            digits[(keys[i] >> shift) & (c.DIGITS - 1)] += 1
        before = 0
        for digit in range(c.DIGITS):
            here = digits[digit]
            digits[digit] = before
            before += here
        for i in range(count):
            digit = (keys[i] >> shift) & (c.DIGITS - 1)
            other[digits[digit]] = keys[i]
            digits[digit] += 1
        for i in range(count):
            keys[i] = other[i]
        shift += 8


@compiled
def gather_batch(s):
    """Fetch a batch from the waiting touches, sorted, one entry per page; return its length."""
    fetched = min(s.counters[c.WAITING], s.switches[c.BATCH_SIZE])
    s.counters[c.FAULTS] += fetched
    for entry in range(fetched):
        s.batch[entry] = s.queue[entry, 0] * 2 + (s.queue[entry, 1] & 1)
    sort_keys(s.batch, fetched, s.spare)
    kept = 0
    for entry in range(fetched):
        # Of reads and writes of one page the write, which sorts last, stands for all.
        if kept and s.batch[kept - 1] >> 1 == s.batch[entry] >> 1:
            kept -= 1
        s.batch[kept] = s.batch[entry]
        kept += 1
    return kept


@compiled
def serve_host(s, block, page, writes, choice):
    """Serve one fault of the host."""
    row = s.blocks[block]
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    totals = s.totals[row[c.OWNER]]
    totals[c.T_HOST_FAULTS] += 1
    spend(s, c.HOST, s.rates[c.PER_HOST_FAULT])
    emit(s, c.K_CPU_FAULT, page, 0, 1, c.C_UNKNOWN)
    pinned = watch(s, block, page, c.ON_HOST)
    if choice == PREFER:  # a first home on the GPU, which the host reaches in place
        s.want[page - base] = c.BROUGHT
        bring_wanted(s, block, 0, 0)
        return
    s.want[page - base] = c.FAULTED
    if s.switches[c.PREFETCHING] and row[c.ADVICE] & c.PREFERS_HOST and nowhere_resident(s, block):
        for offset in range(row[c.FIRST] - base, row[c.FIRST] - base + row[c.PAGES]):
            if s.want[offset] == 0:
                s.want[offset] = c.BROUGHT
    elif s.switches[c.PREFETCHING] and not row[c.ADVICE] & c.PREFERS_GPU:
        add_dense(
            (s.pages, s.words), (s.want, s.marks), (s.tree, s.barred), row[c.FIRST],
            row[c.PAGES], c.ON_HOST, s.switches[c.THRESHOLD], bar(s, row, base),
        )  # fmt: skip
    demand = 0
    density = 0
    dropped = 0
    for offset in range(row[c.FIRST] - base, row[c.FIRST] - base + row[c.PAGES]):
        wanted = s.want[offset]
        s.want[offset] = 0
        if wanted == 0:
            continue
        copied, gone = put_on_host(s, block, base + offset, choice == DUPLICATE)
        dropped += gone
        if wanted == c.FAULTED:
            demand += copied
        else:
            density += copied
    if pinned:
        s.pages[page] |= c.MAP_REMOTE
        totals[c.T_REMOTE_MAPS] += 1
        emit(s, c.K_REMOTE_MAP, page, c.PAGE_BYTES, 1, c.C_COHERENCE)
    if row[c.RESIDENT] == 0:
        release(s, block)
    spend(s, c.WRITE_BACK, s.rates[c.PER_BYTE_OUT] * (demand + density) * c.PAGE_BYTES)
    totals[c.T_OUT_DEMAND] += (demand + density) * c.PAGE_BYTES
    totals[c.T_DROPPED_COPIES] += dropped * c.PAGE_BYTES
    if demand:
        emit(s, c.K_DTOH, page, demand * c.PAGE_BYTES, 1, c.C_COHERENCE)
    if density:
        emit(s, c.K_DTOH, row[c.FIRST], density * c.PAGE_BYTES, 1, c.C_PREFETCH)
