"""Serving faults in batches, block by block, and notifications of access counters."""

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.eviction import charge, note_empty
from louvain_um.profiling.simulator.driver.gpus import (
    copy_counters,
    gpu_of_advice,
    holder,
    nearest,
    number_of,
    state_of,
    update_others,
)
from louvain_um.profiling.simulator.driver.migration import (
    bring_along,
    bring_wanted,
    fill_on_host,
    note_between,
    note_first_touches,
    put_on_gpu,
    put_on_host,
)
from louvain_um.profiling.simulator.driver.prefetcher import (
    COUNTERS,
    DUPLICATE,
    FAULT,
    add_neighbours,
    advice_of,
    choose,
)
from louvain_um.profiling.simulator.driver.state import (
    compiled,
    emit,
    from_python,
    inlined,
    note_change,
    now,
    spend,
)
from louvain_um.profiling.simulator.driver.thrashing import (
    ACCESSORS,
    NAP,
    NAP_END,
    PINNED_ON,
    PROCEED,
    TRACKED,
    bit_of,
    bit_of_gpu,
    hint,
    note_moves,
    relative_to_gpu,
)


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


@inlined
def nowhere_resident(s, block):
    """Return whether no page of a block has been touched or filled yet."""
    row = s.blocks[block]
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        if s.pages[page] & c.ANYWHERE:
            return False
    return True


@inlined
def host_page(s, row, page):
    """Return where the host's page of a page begins and ends within its block."""
    first = page & ~(s.switches[c.HOST_PAGES] - 1)
    end = min(first + s.switches[c.HOST_PAGES], row[c.FIRST] + row[c.PAGES])
    return max(first, row[c.FIRST]), end


@compiled
def map_host(s, row, page):
    """Map the host's page of a faulting page over the bus; return how many pages of 4 KiB."""
    mapped = 0
    first, end = host_page(s, row, page)
    for each in range(first, end):
        if s.pages[each] & c.ANYWHERE == 0:
            s.pages[each] |= c.ON_HOST
        if each == page or s.pages[each] & (c.ANYWHERE | c.MAP_REMOTE) == c.ON_HOST:
            s.pages[each] |= c.MAP_REMOTE
            mapped += 1
    return mapped


@compiled
def advised(s, gpus, block, page, processor):
    """Return what the fault of a page is advised against thrashing; note that it naps."""
    advice = s.blocks[block, c.ADVICE]
    preferred = bit_of(s, advice_of(advice).preferred)
    here = 0
    if gpus is not None:
        here = nearest(s, gpus, page, processor)
        if advice & c.PREFERS_OTHER:
            preferred = bit_of_gpu(gpu_of_advice(advice))
    time = np.int64(now(s))
    found = relative_to_gpu(s, hint(s, block, page, bit_of(s, processor), preferred, time, here))
    if found == NAP:
        s.totals[s.blocks[block, c.OWNER], c.T_THROTTLING] += 1
        emit(s, c.K_THROTTLING, page, c.PAGE_BYTES, 1, c.C_COHERENCE)
    return found


@compiled
def pull_to_host(s, row, block, page):
    """Bring a page of another GPU to the host, where it is to be mapped."""
    if s.switches[c.DETECT_THRASHING]:
        s.want[page & (c.BLOCK_PAGES - 1)] = c.FAULTED
        note_moves(s, block, c.ON_HOST)
        s.want[page & (c.BLOCK_PAGES - 1)] = 0
    copied, _ = put_on_host(s, block, page, False)
    if copied:
        spend(s, c.WRITE_BACK, s.rates[c.PER_BYTE_OUT] * c.PAGE_BYTES)
        s.totals[row[c.OWNER], c.T_OUT_DEMAND] += c.PAGE_BYTES
        emit(s, c.K_DTOH, page, c.PAGE_BYTES, 1, c.C_COHERENCE)


@compiled
def destination(s, gpus, block, page, found, choice):
    """Return the other GPU that a faulting page goes to; NOWHERE if it is mapped where it is."""
    advice = s.blocks[block, c.ADVICE]
    if found > 0:
        number = number_of(s.thrash[page, PINNED_ON])
    elif s.pages[page] & choice and advice & c.ACCESSED_BY:
        return c.NOWHERE
    else:
        number = gpu_of_advice(advice)
    return c.NOWHERE if gpus.pages[number, page] & c.ON_GPU else number


@compiled
def send(s, gpus, block, along, fresh):
    """Bring the AWAY pages of a block to other GPUs, and `along` with them what density adds."""
    # All are mapped over the link; return how many.
    row = s.blocks[block]
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    note_change(s, block)
    update_others(s, gpus)
    mapped = 0
    for number in range(len(gpus.pages)):
        if number == s.switches[c.NUMBER]:
            continue
        other = state_of(gpus, number)
        for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
            if other.want[page - base]:  # it is AWAY, to this GPU
                s.want[page - base] = 0
            elif s.want[page - base] == 0 and other.pages[page] & c.ON_GPU:
                s.want[page - base] = c.THERE
        copy_counters(s, other)
        # Each GPU that pages go to is charged as one more service of the block: the driver
        # copies to one after the other.
        bring_asked(other, block, c.C_COHERENCE, along, fresh)
        note_change(other, block)
        update_others(other, gpus)
        copy_counters(other, s)
        for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
            if s.want[page - base] == c.THERE:
                s.want[page - base] = 0
            elif s.want[page - base] == 0 and other.pages[page] & c.ON_GPU:
                s.pages[page] |= c.MAP_REMOTE  # what was evicted there meanwhile faults again
                mapped += 1
    return mapped


@compiled
def serve_block(s, gpus, block, low, high):
    """Serve the faults `low` … `high` of the batch, all of one block; return how many must nap."""
    row = s.blocks[block]
    advice = row[c.ADVICE]
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    spend(s, c.FAULT, s.rates[c.PER_SERVICE])
    fresh = nowhere_resident(s, block)
    coherent = s.switches[c.COHERENT] != 0
    coming = 0
    mapped = 0
    napping = 0
    away = 0
    for entry in range(low, high):
        page = s.batch[entry] >> 1
        writes = s.batch[entry] & 1 == 1
        found = PROCEED
        if s.switches[c.DETECT_THRASHING] and s.watched[block, TRACKED]:
            found = advised(s, gpus, block, page, c.ON_GPU)
        if found == NAP:
            napping += 1
            continue
        choice = choose(
            c.ON_GPU, s.pages[page], advice_of(advice), found, not writes, coherent, FAULT
        )
        if choice & c.ON_GPU:
            first, end = host_page(s, row, page)
            for each in range(first, end):
                if s.want[each - base] == 0:
                    s.want[each - base] = c.BROUGHT
            s.want[page - base] = c.FAULTED
            coming += 1
            continue
        if gpus is not None and choice & c.ELSEWHERE:
            number = destination(s, gpus, block, page, found, choice)
            if number == c.NOWHERE:
                s.pages[page] |= c.MAP_REMOTE
                mapped += 1
            else:
                s.want[page - base] = c.AWAY
                gpus.want[number, page - base] = c.FAULTED
                away += 1
            continue
        if s.pages[page] & c.ELSEWHERE:
            pull_to_host(s, row, block, page)
        if fresh and s.pages[page] & c.ANYWHERE == 0:
            fill_on_host(s, block)  # where a block begins to live, all of it does
        if s.pages[page] & c.ON_GPU:
            s.pages[page] |= c.MAP_READ | c.MAP_WRITE
        else:
            mapped += map_host(s, row, page)
    if gpus is not None and away:
        mapped += send(s, gpus, block, coming == 0, fresh)
    if mapped:
        s.totals[row[c.OWNER], c.T_REMOTE_MAPS] += mapped
        emit(s, c.K_REMOTE_MAP, s.batch[low] >> 1, mapped * c.PAGE_BYTES, mapped, c.C_COHERENCE)
    if coming:
        if not away:
            add_neighbours(s, block, c.ON_GPU, fresh)
        bring_wanted(s, block, low, high)
    return napping


@compiled
def serve_batch(s, gpus):
    """Serve one batch of the waiting touches; the caller replays them."""
    # If all of its faults must nap, so does the GPU: fetches for nothing are not counted.
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
    napping = 0
    while low < count:
        block = s.block_of[s.batch[low] >> 1]
        high = low
        while high < count and s.block_of[s.batch[high] >> 1] == block:
            high += 1
        napping += serve_block(s, gpus, block, low, high)
        if gpus is not None:
            note_change(s, block)
            update_others(s, gpus)
        low = high
    if napping and napping == count:
        wake = np.int64(0)
        for entry in range(count):
            end = s.thrash[s.batch[entry] >> 1, NAP_END]
            wake = end if entry == 0 else min(wake, end)
        spend(s, c.FAULT, max(0.0, wake - now(s)))


@compiled
def gather_batch(s):
    """Fetch a batch from the waiting touches, sorted, one entry per page; return its length."""
    fetched = min(s.counters[c.WAITING], s.switches[c.BATCH_SIZE])
    s.counters[c.FAULTS] += fetched
    for entry in range(fetched):
        s.batch[entry] = s.queue[entry, c.Q_PAGE] * 2 + (s.queue[entry, c.Q_WAY] & 1)
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
def serve_host_among(s, gpus, block, page, writes):
    """Serve one fault of the host, on the state of the GPU that it concerns most."""
    # That is where the page is pinned, else which it prefers, else which has it.
    number = s.switches[c.NUMBER]
    advice = s.blocks[block, c.ADVICE]
    pinned = s.thrash[page, PINNED_ON] if s.switches[c.DETECT_THRASHING] else 0
    if pinned and pinned != c.ON_HOST:
        number = number_of(pinned)
    elif advice & (c.PREFERS_GPU | c.PREFERS_OTHER):
        number = gpu_of_advice(advice)
    elif not s.pages[page] & c.ON_GPU and s.pages[page] & c.ELSEWHERE:
        number = holder(s, gpus, page)
    if number == s.switches[c.NUMBER]:
        serve_host(s, gpus, block, page, writes)
        note_change(s, block)
        update_others(s, gpus)
        return
    other = state_of(gpus, number)
    copy_counters(s, other)
    serve_host(other, gpus, block, page, writes)
    note_change(other, block)
    update_others(other, gpus)
    copy_counters(other, s)


@compiled
def serve_host(s, gpus, block, page, writes):
    """Serve one fault of the host; it sleeps through its naps."""
    row = s.blocks[block]
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    totals = s.totals[row[c.OWNER]]
    totals[c.T_HOST_FAULTS] += 1
    spend(s, c.HOST, s.rates[c.PER_HOST_FAULT])
    emit(s, c.K_CPU_FAULT, page, 0, 1, c.C_UNKNOWN)
    found = PROCEED
    if s.switches[c.DETECT_THRASHING] and s.watched[block, TRACKED]:
        found = advised(s, gpus, block, page, c.ON_HOST)
        while found == NAP:
            spend(s, c.HOST, max(0.0, s.thrash[page, NAP_END] - now(s)))
            found = advised(s, gpus, block, page, c.ON_HOST)
    coherent = s.switches[c.COHERENT] != 0
    choice = choose(
        c.ON_HOST, s.pages[page], advice_of(row[c.ADVICE]), found, not writes, coherent, FAULT
    )
    if choice & c.ON_GPU:  # which the host reaches in place
        s.want[page - base] = c.BROUGHT
        bring_wanted(s, block, 0, 0)
        return
    fresh = nowhere_resident(s, block)
    first, end = host_page(s, row, page)
    for each in range(first, end):
        s.want[each - base] = c.FAULTED
    add_neighbours(s, block, c.ON_HOST, fresh)
    if s.switches[c.DETECT_THRASHING]:
        note_moves(s, block, c.ON_HOST)
    demand = 0
    density = 0
    dropped = 0
    for offset in range(row[c.FIRST] - base, row[c.FIRST] - base + row[c.PAGES]):
        wanted = s.want[offset]
        s.want[offset] = 0
        if wanted == 0:
            continue
        copied, gone = put_on_host(s, block, base + offset, choice & DUPLICATE != 0)
        dropped += gone
        if wanted == c.FAULTED:
            demand += copied
        else:
            density += copied
    if found == c.ON_HOST and s.thrash[page, ACCESSORS] & bit_of(s, c.ON_GPU):
        s.pages[page] |= c.MAP_REMOTE
        totals[c.T_REMOTE_MAPS] += 1
        emit(s, c.K_REMOTE_MAP, page, c.PAGE_BYTES, 1, c.C_COHERENCE)
    if row[c.RESIDENT] == 0:
        note_empty(s, block)
    spend(s, c.WRITE_BACK, s.rates[c.PER_BYTE_OUT] * (demand + density) * c.PAGE_BYTES)
    totals[c.T_OUT_DEMAND] += (demand + density) * c.PAGE_BYTES
    totals[c.T_DROPPED_COPIES] += dropped * c.PAGE_BYTES
    if demand:
        emit(s, c.K_DTOH, page, demand * c.PAGE_BYTES, 1, c.C_COHERENCE)
    if density:
        emit(s, c.K_DTOH, row[c.FIRST], density * c.PAGE_BYTES, 1, c.C_PREFETCH)


LINE_BYTES = 128
"""Of a streamed page, each line counts as one access."""


@inlined
def count_remote(blocks, counters, notices, block, page, accesses, threshold):
    """Count accesses over the bus in a block's counter; at the threshold, notify the driver."""
    before = blocks[block, c.REMOTE_USES]
    blocks[block, c.REMOTE_USES] = before + accesses
    blocks[block, c.REGIONS] |= np.int64(1) << ((page & (c.BLOCK_PAGES - 1)) // c.BIG_PAGES)
    noticed = counters[c.NOTIFIED]
    if before < threshold <= before + accesses and noticed < len(notices):
        notices[noticed] = page
        counters[c.NOTIFIED] = noticed + 1


@inlined
def accesses_of(way, amount):
    """Return how often a touch counts: as single accesses, or by line of a stream."""
    return amount if way > c.WRITE else (amount + LINE_BYTES - 1) // LINE_BYTES


@compiled
def want_counted(s, block, page, regions, whole):
    """Mark as FAULTED what a notification asks for: regions of 64 KiB in which accesses were."""
    # Unless the host's memory of the block is one piece, only the region of the page is.
    row = s.blocks[block]
    where = s.pages[page] & c.ANYWHERE
    if row[c.ADVICE] & (c.PINNED | c.DEVICE) or where == 0 or where & c.ON_GPU:
        return
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    if not whole:
        regions = np.int64(1) << ((page - base) // c.BIG_PAGES)
    coherent = s.switches[c.COHERENT] != 0
    for each in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        bits = s.pages[each]
        asked = (regions >> ((each - base) // c.BIG_PAGES)) & 1
        if not asked or bits & c.ANYWHERE == 0 or bits & c.ON_GPU:
            continue
        pin = 0
        if s.switches[c.DETECT_THRASHING]:
            pin = relative_to_gpu(s, s.thrash[each, PINNED_ON])
        found = choose(c.ON_GPU, bits, advice_of(row[c.ADVICE]), pin, True, coherent, COUNTERS)
        if found & c.ON_GPU:
            s.want[each - base] = c.FAULTED


@compiled
def bring_counted(s, block):
    """Bring the FAULTED pages of a block, which counters ask for, and those that density adds."""
    bring_asked(s, block, c.C_COUNTED, True, False)


@compiled
def bring_asked(s, block, cause, along, fresh):
    """Bring the FAULTED pages of a block to the GPU, and `along` with them what density adds."""
    row = s.blocks[block]
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    mostly = (row[c.ADVICE] & c.READ_MOSTLY) != 0
    asked = 0
    for offset in range(c.BLOCK_PAGES):
        asked += s.want[offset] == c.FAULTED
    if asked == 0:
        return
    spend(s, c.FAULT, s.rates[c.PER_SERVICE])
    if along:
        add_neighbours(s, block, c.ON_GPU, fresh)
    if s.switches[c.DETECT_THRASHING]:
        note_moves(s, block, c.ON_GPU)
    charge(s, block)
    before = row[c.RESIDENT]
    counted = 0
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        if s.want[page - base] == c.FAULTED:
            s.want[page - base] = 0
            copied, _ = put_on_gpu(s, block, page, mostly)
            counted += copied
    between = note_between(s, row, cause)
    rows, density = bring_along(s, row, mostly)
    between += note_between(s, row, c.C_PREFETCH)
    spend(s, c.MIGRATE, s.rates[c.PER_BYTE_IN] * (counted + density) * c.PAGE_BYTES)
    into = c.T_IN_COUNTED if cause == c.C_COUNTED else c.T_IN_DEMAND
    s.totals[row[c.OWNER], into] += counted * c.PAGE_BYTES
    s.totals[row[c.OWNER], c.T_IN_DENSITY] += density * c.PAGE_BYTES
    if counted:
        emit(s, c.K_HTOD, row[c.FIRST], counted * c.PAGE_BYTES, 1, cause)
    if density:
        emit(s, c.K_HTOD, row[c.FIRST], density * c.PAGE_BYTES, rows, c.C_PREFETCH)
    if cause != c.C_COUNTED:
        note_first_touches(s, row, row[c.RESIDENT] - before - counted - density - between)


@from_python
def serve_notices(s, gpus):
    """Serve the notifications that have come, by address; their counters begin anew."""
    count = s.counters[c.NOTIFIED]
    s.counters[c.NOTIFIED] = 0
    sort_keys(s.notices, count, s.spare)
    for notice in range(count):
        page = s.notices[notice]
        block = s.block_of[page]
        row = s.blocks[block]
        want_counted(s, block, page, row[c.REGIONS], row[c.PAGES] == c.BLOCK_PAGES)
        row[c.REMOTE_USES] = row[c.REGIONS] = 0
        bring_counted(s, block)
        if gpus is not None and not row[c.ADVICE] & c.PINNED:  # such memory is not the driver's
            note_change(s, block)
            update_others(s, gpus)
