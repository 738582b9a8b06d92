"""Touches of kernels and of the host: hits are cheap; those that fault are served and replayed."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.eviction import note_use
from louvain_um.profiling.simulator.driver.residency import PREFER, STAY, advice_of, choose
from louvain_um.profiling.simulator.driver.service import migrate_counted, serve_batch, serve_host
from louvain_um.profiling.simulator.driver.state import compiled, inlined

EVENT_RESERVE = 1 << 16  # rows that one batch may need

LINE_BYTES = 128
"""Of a streamed page, each line counts as one access."""

MULTIPLIER = np.int64(6364136223846793005)
INCREMENT = np.int64(1442695040888963407)
MASK = np.int64((1 << 43) - 1)
"""The linear congruential generator of random pages, and the bits of it that are used."""

NOTIFICATIONS = 256
"""Blocks that reach the threshold before the driver looks at them."""


@compiled
def needed(way):
    """Return the mapping bits, one of which a touch needs."""
    if way in (c.READ, c.GATHER):
        return c.MAP_READ | c.MAP_REMOTE
    return c.MAP_WRITE | c.MAP_REMOTE


@compiled
def add_up(s, sums):
    """Add up the amounts gathered in `sums[array, LOCAL or REMOTE, way]` and clear them."""
    for owner in range(sums.shape[0]):
        totals = s.totals[owner]
        for way in range(c.WAYS):
            amount = sums[owner, c.LOCAL, way]
            if amount:
                time = s.per_access[owner, c.LOCAL, way] * amount
                s.costs[c.COMPUTE] += time
                s.clock[c.COMPUTED] += time
                sums[owner, c.LOCAL, way] = 0
            amount = sums[owner, c.REMOTE, way]
            if amount == 0:
                continue
            sums[owner, c.REMOTE, way] = 0
            time = s.per_access[owner, c.REMOTE, way] * amount
            s.clock[c.READ_REMOTELY] += time
            if way <= c.WRITE:
                s.costs[c.REMOTE_SEQUENTIAL] += time
                totals[c.T_REMOTE_BYTES] += amount
                continue
            totals[c.T_REMOTE_BYTES] += amount * c.SECTOR_BYTES
            if way >= c.ATOMIC:
                s.costs[c.REMOTE_BARRIER if way == c.BARRIER else c.REMOTE_ATOMIC] += time
                totals[c.T_REMOTE_ATOMICS] += amount
            else:
                s.costs[c.REMOTE_RANDOM] += time
                totals[c.T_REMOTE_ACCESSES] += amount


@compiled
def replay(s, sums, tracked):
    """Replay the waiting touches in order; those that fault keep waiting."""
    left = 0
    for entry in range(s.counters[c.WAITING]):
        page = s.queue[entry, 0]
        way = s.queue[entry, 1] >> 1
        bits = s.pages[page]
        if bits & needed(way):
            block = s.block_of[page]
            if tracked and bits & c.ON_GPU:
                note_use(s.blocks, s.counters, block, s.switches[c.POLICY])
            owner = s.queue[entry, 3]
            s.totals[owner, c.T_TOUCHES] += 1
            sums[owner, c.REMOTE if bits & c.MAP_REMOTE else c.LOCAL, way] += s.queue[entry, 2]
        else:
            for column in range(4):
                s.queue[left, column] = s.queue[entry, column]
            left += 1
    if left == 0:
        s.counters[c.STREAK] = 0
    s.counters[c.REPLAYED] += left
    s.counters[c.WAITING] = left


@inlined
def count_remote(blocks, counters, block, way, amount, threshold):
    """Count accesses over the bus to a block, as the device's access counters do."""
    accesses = amount if way > c.WRITE else (amount + LINE_BYTES - 1) // LINE_BYTES
    before = blocks[block, c.REMOTE_USES]
    blocks[block, c.REMOTE_USES] = before + accesses
    if before < threshold and before + accesses >= threshold:
        counters[c.NOTIFIED] += 1


@compiled
def advance(pages, block_of, blocks, counters, totals, queue, switches, sums, rows, cursor):
    """Run touches from `cursor` (row, page in the row) until a window of them waits or all ran.

    The hot loop: it takes arrays, not the state, and adds amounts to `sums` alone.
    """
    first, length, ways, amounts, owners = rows
    policy = switches[c.POLICY]
    tracked = policy >= c.BY_ACCESS and policy != c.BY_TREE
    window = switches[c.WINDOW]
    waiting = counters[c.WAITING]
    threshold = switches[c.COUNTER_THRESHOLD]
    i, done = cursor[0], cursor[1]
    notified = False
    while i < len(first) and waiting < window and not notified:
        way = ways[i] & (c.SCATTERED - 1)
        need = needed(way)
        amount = amounts[i]
        page = first[i] + done
        end = first[i] + length[i]
        owner = np.int64(owners[i])
        block = -1
        hits = 0
        remote = 0
        if ways[i] & c.SCATTERED:
            state = counters[c.RANDOM]
            while done < amount:
                done += 1
                state = state * MULTIPLIER + INCREMENT
                page = first[i] + ((state >> 20) & MASK) % length[i]
                bits = pages[page]
                if bits & need:
                    hits += 1
                    here = (bits >> 4) & 1
                    remote += here
                    if tracked and bits & c.ON_GPU:
                        note_use(blocks, counters, block_of[page], policy)
                    if threshold and here:
                        count_remote(blocks, counters, block_of[page], way, 1, threshold)
                    continue
                queue[waiting, 0] = page
                queue[waiting, 1] = way * 2 + (0 if way in (c.READ, c.GATHER) else 1)
                queue[waiting, 2] = 1
                queue[waiting, 3] = owner
                waiting += 1
                if waiting == window:
                    break
            counters[c.RANDOM] = state
            notified = threshold > 0 and counters[c.NOTIFIED] >= NOTIFICATIONS
            totals[owner, c.T_HITS] += hits
            totals[owner, c.T_TOUCHES] += hits
            sums[owner, c.LOCAL, way] += hits - remote
            sums[owner, c.REMOTE, way] += remote
            if done == amount:
                i += 1
                done = 0
            continue
        while page < end:
            bits = pages[page]
            if bits & need:
                hits += 1
                remote += (bits >> 4) & 1
                if tracked and bits & c.ON_GPU and block_of[page] != block:
                    block = block_of[page]
                    note_use(blocks, counters, block, policy)
                page += 1
                continue
            queue[waiting, 0] = page
            queue[waiting, 1] = way * 2 + (0 if way in (c.READ, c.GATHER) else 1)
            queue[waiting, 2] = amount
            queue[waiting, 3] = owner
            waiting += 1
            page += 1
            if waiting == window:
                break
        if threshold and remote:
            for other in range(first[i] + done, page):
                if pages[other] & c.MAP_REMOTE:
                    count_remote(blocks, counters, block_of[other], way, amount, threshold)
            notified = counters[c.NOTIFIED] >= NOTIFICATIONS
        totals[owner, c.T_HITS] += hits
        totals[owner, c.T_TOUCHES] += hits
        sums[owner, c.LOCAL, way] += amount * (hits - remote)
        sums[owner, c.REMOTE, way] += amount * remote
        if page < end:
            done = page - first[i]
        else:
            i += 1
            done = 0
    counters[c.WAITING] = waiting
    cursor[0], cursor[1] = i, done


@compiled
def run(s, sums, rows, cursor):
    """Run a kernel's touches from `cursor`; return whether it ended.

    `rows` are their columns: first, length, way, amount, array.
    `sums` is scratch memory of `add_up`, all 0.
    It returns early when the event buffer nears its end; empty it and call again.
    """
    policy = s.switches[c.POLICY]
    tracked = policy >= c.BY_ACCESS and policy != c.BY_TREE
    while True:
        advance(
            s.pages, s.block_of, s.blocks, s.counters, s.totals, s.queue, s.switches,
            sums, rows, cursor,
        )  # fmt: skip
        add_up(s, sums)
        if s.counters[c.NOTIFIED]:
            migrate_counted(s)
        if s.counters[c.WAITING] == 0 and cursor[0] == len(rows[0]):
            return True
        if s.switches[c.RECORD] and s.counters[c.EVENTS] + EVENT_RESERVE > len(s.events):
            return False
        if s.counters[c.WAITING]:
            serve_batch(s)
            replay(s, sums, tracked)


@compiled
def run_host(s, first, length, ways, cursor):
    """Run the host's touches from `cursor`; return whether they ended, see `run`."""
    while cursor[0] < len(first):
        i = cursor[0]
        writes = ways[i] not in (c.READ, c.GATHER)
        for page in range(first[i] + cursor[1], first[i] + length[i]):
            block = s.block_of[page]
            row = s.blocks[block]
            bits = s.pages[page]
            hit = bits & c.ON_HOST and not (writes and bits & c.ON_GPU)
            if not hit:
                coherent = s.switches[c.COHERENT] != 0
                choice = choose(
                    c.ON_HOST, bits, advice_of(row[c.ADVICE]), 0, not writes, coherent, False
                )
                hit = choice in (STAY, PREFER) and bits & c.ON_GPU != 0
                if not hit:
                    if s.switches[c.RECORD] and s.counters[c.EVENTS] + EVENT_RESERVE > len(
                        s.events
                    ):
                        cursor[1] = page - first[i]
                        return False
                    serve_host(s, block, page, writes, choice)
            s.totals[row[c.OWNER], c.T_TOUCHES] += 1
            s.totals[row[c.OWNER], c.T_HITS] += 1 if hit else 0
        cursor[0] = i + 1
        cursor[1] = 0
    return True
