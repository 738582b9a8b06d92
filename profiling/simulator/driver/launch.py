"""A kernel's touches: hits are cheap; those that fault wait, are served and are replayed."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver.compiled import compiled, inlined
from louvain_um.profiling.simulator.driver.constants import (
    ATOMIC,
    BARRIER,
    BY_ACCESS,
    BY_TREE,
    COMPUTE,
    COMPUTED,
    COUNTER_THRESHOLD,
    EVENTS,
    GATHER,
    LOCAL,
    MAP_READ,
    MAP_REMOTE,
    MAP_WRITE,
    NOTIFIED,
    ON_GPU,
    POLICY,
    READ,
    READ_REMOTELY,
    RECORD,
    REMOTE,
    REMOTE_ATOMIC,
    REMOTE_BARRIER,
    REMOTE_RANDOM,
    REMOTE_SEQUENTIAL,
    REMOTE_USES,
    REPLAYED,
    SECTOR_BYTES,
    STREAK,
    T_HITS,
    T_REMOTE_ACCESSES,
    T_REMOTE_ATOMICS,
    T_REMOTE_BYTES,
    T_TOUCHES,
    WAITING,
    WAYS,
    WINDOW,
    WRITE,
)
from louvain_um.profiling.simulator.driver.eviction import note_use
from louvain_um.profiling.simulator.driver.service import migrate_counted, serve_batch

EVENT_RESERVE = 1 << 16  # rows that one batch may need

LINE_BYTES = 128
"""Of a streamed page, each line counts as one access."""

NOTIFICATIONS = 256
"""Blocks that reach the threshold before the driver looks at them."""


@compiled
def needed(way):
    """Return the mapping bits, one of which a touch needs."""
    if way in (READ, GATHER):
        return MAP_READ | MAP_REMOTE
    return MAP_WRITE | MAP_REMOTE


@compiled
def settle(s, sums):
    """Add up the amounts gathered in `sums[array, LOCAL or REMOTE, way]` and clear them."""
    for owner in range(sums.shape[0]):
        totals = s.totals[owner]
        for way in range(WAYS):
            amount = sums[owner, LOCAL, way]
            if amount:
                time = s.per_access[owner, LOCAL, way] * amount
                s.costs[COMPUTE] += time
                s.clock[COMPUTED] += time
                sums[owner, LOCAL, way] = 0
            amount = sums[owner, REMOTE, way]
            if amount == 0:
                continue
            sums[owner, REMOTE, way] = 0
            time = s.per_access[owner, REMOTE, way] * amount
            s.clock[READ_REMOTELY] += time
            if way <= WRITE:
                s.costs[REMOTE_SEQUENTIAL] += time
                totals[T_REMOTE_BYTES] += amount
                continue
            totals[T_REMOTE_BYTES] += amount * SECTOR_BYTES
            if way >= ATOMIC:
                s.costs[REMOTE_BARRIER if way == BARRIER else REMOTE_ATOMIC] += time
                totals[T_REMOTE_ATOMICS] += amount
            else:
                s.costs[REMOTE_RANDOM] += time
                totals[T_REMOTE_ACCESSES] += amount


@compiled
def replay(s, sums, tracked):
    """Replay the waiting touches in order; those that fault keep waiting."""
    left = 0
    for entry in range(s.counters[WAITING]):
        page = s.queue[entry, 0]
        way = s.queue[entry, 1] >> 1
        bits = s.pages[page]
        if bits & needed(way):
            block = s.block_of[page]
            if tracked and bits & ON_GPU:
                note_use(s.blocks, s.counters, block, s.switches[POLICY])
            owner = s.queue[entry, 3]
            s.totals[owner, T_TOUCHES] += 1
            sums[owner, REMOTE if bits & MAP_REMOTE else LOCAL, way] += s.queue[entry, 2]
        else:
            for column in range(4):
                s.queue[left, column] = s.queue[entry, column]
            left += 1
    if left == 0:
        s.counters[STREAK] = 0
    s.counters[REPLAYED] += left
    s.counters[WAITING] = left


@inlined
def count_remote(blocks, counters, block, way, amount, threshold):
    """Count accesses over the bus to a block, as the device's access counters do."""
    accesses = amount if way > WRITE else (amount + LINE_BYTES - 1) // LINE_BYTES
    before = blocks[block, REMOTE_USES]
    blocks[block, REMOTE_USES] = before + accesses
    if before < threshold and before + accesses >= threshold:
        counters[NOTIFIED] += 1


@compiled
def advance(pages, block_of, blocks, counters, totals, queue, switches, sums, rows, cursor):
    """Run touches from `cursor` (row, page in the row) until a window of them waits or all ran.

    The hot loop: it takes arrays, not the state, and adds amounts to `sums` alone.
    """
    first, length, ways, amounts, owners = rows
    policy = switches[POLICY]
    tracked = policy >= BY_ACCESS and policy != BY_TREE
    window = switches[WINDOW]
    waiting = counters[WAITING]
    threshold = switches[COUNTER_THRESHOLD]
    i, done = cursor[0], cursor[1]
    notified = False
    while i < len(first) and waiting < window and not notified:
        way = ways[i]
        need = needed(way)
        amount = amounts[i]
        page = first[i] + done
        end = first[i] + length[i]
        owner = np.int64(owners[i])
        block = -1
        hits = 0
        remote = 0
        while page < end:
            bits = pages[page]
            if bits & need:
                hits += 1
                remote += (bits >> 4) & 1
                if tracked and bits & ON_GPU and block_of[page] != block:
                    block = block_of[page]
                    note_use(blocks, counters, block, policy)
                page += 1
                continue
            queue[waiting, 0] = page
            queue[waiting, 1] = way * 2 + (0 if way in (READ, GATHER) else 1)
            queue[waiting, 2] = amount
            queue[waiting, 3] = owner
            waiting += 1
            page += 1
            if waiting == window:
                break
        if threshold and remote:
            for other in range(first[i] + done, page):
                if pages[other] & MAP_REMOTE:
                    count_remote(blocks, counters, block_of[other], way, amount, threshold)
            notified = counters[NOTIFIED] >= NOTIFICATIONS
        totals[owner, T_HITS] += hits
        totals[owner, T_TOUCHES] += hits
        sums[owner, LOCAL, way] += amount * (hits - remote)
        sums[owner, REMOTE, way] += amount * remote
        if page < end:
            done = page - first[i]
        else:
            i += 1
            done = 0
    counters[WAITING] = waiting
    cursor[0], cursor[1] = i, done


@compiled
def run(s, sums, rows, cursor):
    """Run a kernel's touches from `cursor`; return whether it ended.

    `rows` are their columns: first, length, way, amount, array.
    `sums` is scratch memory of `settle`, all 0.
    It returns early when the event buffer nears its end; empty it and call again.
    """
    policy = s.switches[POLICY]
    tracked = policy >= BY_ACCESS and policy != BY_TREE
    while True:
        advance(
            s.pages, s.block_of, s.blocks, s.counters, s.totals, s.queue, s.switches,
            sums, rows, cursor,
        )  # fmt: skip
        settle(s, sums)
        if s.counters[NOTIFIED]:
            migrate_counted(s)
        if s.counters[WAITING] == 0 and cursor[0] == len(rows[0]):
            return True
        if s.switches[RECORD] and s.counters[EVENTS] + EVENT_RESERVE > len(s.events):
            return False
        if s.counters[WAITING]:
            serve_batch(s)
            replay(s, sums, tracked)
