"""Touches of kernels and of the host: hits are cheap; those that fault are served and replayed."""

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.eviction import note_use
from louvain_um.profiling.simulator.driver.prefetcher import FAULT, advice_of, choose
from louvain_um.profiling.simulator.driver.service import (
    accesses_of,
    count_remote,
    serve_batch,
    serve_host,
    serve_host_among,
)
from louvain_um.profiling.simulator.driver.state import compiled, from_python, inlined
from louvain_um.profiling.simulator.driver.thrashing import PINNED_ON, relative_to_gpu

EVENT_RESERVE = 1 << 16  # rows that one batch may need

MULTIPLIER = np.int64(6364136223846793005)
INCREMENT = np.int64(1442695040888963407)
MASK = np.int64((1 << 43) - 1)
"""The linear congruential generator of random pages, and the bits of it that are used."""


@compiled
def needed(way):
    """Return the mapping bits, one of which a touch needs."""
    if way in (c.READ, c.GATHER):
        return c.MAP_READ | c.MAP_REMOTE
    return c.MAP_WRITE | c.MAP_REMOTE


@inlined
def is_on_peer(bits):
    """Return whether a page that is mapped over the bus is in another GPU's memory, 0 or 1."""
    return 1 if bits & c.ON_PEER and not bits & c.ON_HOST else 0


@compiled
def count_on_peer(pages):
    """Return how many of some pages are read in another GPU's memory."""
    count = 0
    for bits in pages:
        if bits & c.MAP_REMOTE:
            count += is_on_peer(bits)
    return count


@compiled
def add_up(s, sums):
    """Add up the amounts gathered in `sums[array, LOCAL, REMOTE or FAR, way]` and clear them."""
    for owner in range(sums.shape[0]):
        totals = s.totals[owner]
        for way in range(c.WAYS):
            amount = sums[owner, c.LOCAL, way]
            if amount:
                time = s.per_access[owner, c.LOCAL, way] * amount
                s.costs[c.COMPUTE] += time
                s.clock[c.COMPUTED] += time
                sums[owner, c.LOCAL, way] = 0
            for place in range(c.REMOTE, sums.shape[1]):
                amount = sums[owner, place, way]
                if amount == 0:
                    continue
                sums[owner, place, way] = 0
                time = s.per_access[owner, place, way] * amount
                s.clock[c.READ_REMOTELY] += time
                size = amount if way <= c.WRITE else amount * c.SECTOR_BYTES
                totals[c.T_REMOTE_BYTES] += size
                if place == c.FAR:
                    totals[c.T_PEER_BYTES] += size
                if way <= c.WRITE:
                    s.costs[c.REMOTE_SEQUENTIAL] += time
                elif way >= c.ATOMIC:
                    s.costs[c.REMOTE_BARRIER if way == c.BARRIER else c.REMOTE_ATOMIC] += time
                    totals[c.T_REMOTE_ATOMICS] += amount
                else:
                    s.costs[c.REMOTE_RANDOM] += time
                    totals[c.T_REMOTE_ACCESSES] += amount


@compiled
def replay(s, gpus, sums, tracked):
    """Replay the waiting touches in order; those that fault keep waiting."""
    threshold = s.switches[c.COUNTER_THRESHOLD]
    left = 0
    for entry in range(s.counters[c.WAITING]):
        page = s.queue[entry, c.Q_PAGE]
        way = s.queue[entry, c.Q_WAY] >> 1
        bits = s.pages[page]
        if bits & needed(way):
            block = s.block_of[page]
            if tracked and bits & c.ON_GPU:
                note_use(s.blocks, s.counters, block, s.switches[c.POLICY])
            s.pages[page] = bits & ~np.uint8(c.QUEUED)
            owner = s.queue[entry, c.Q_OWNER]
            s.totals[owner, c.T_TOUCHES] += s.queue[entry, c.Q_TOUCHES]
            amount = s.queue[entry, c.Q_AMOUNT]
            place = c.REMOTE if bits & c.MAP_REMOTE else c.LOCAL
            if gpus is not None and bits & c.MAP_REMOTE and is_on_peer(bits):
                place = c.FAR
            sums[owner, place, way] += amount
            if threshold and bits & c.MAP_REMOTE:
                accesses = accesses_of(way, amount)
                count_remote(s.blocks, s.counters, s.notices, block, page, accesses, threshold)
        else:
            for column in range(c.QUEUE_COLUMNS):
                s.queue[left, column] = s.queue[entry, column]
            left += 1
    if left == 0:
        s.counters[c.STREAK] = 0
    s.counters[c.REPLAYED] += left
    s.counters[c.WAITING] = left


@inlined
def wait(pages, queue, waiting, page, way, amount, owner):
    """Let a touch wait, with others of its page and way; return how many such groups wait."""
    code = way * 2 + (0 if way in (c.READ, c.GATHER) else 1)
    if pages[page] & c.QUEUED:
        for entry in range(waiting - 1, -1, -1):
            if queue[entry, c.Q_PAGE] == page and queue[entry, c.Q_WAY] == code:
                queue[entry, c.Q_AMOUNT] += amount
                queue[entry, c.Q_TOUCHES] += 1
                return waiting
    pages[page] |= c.QUEUED
    queue[waiting, c.Q_PAGE] = page
    queue[waiting, c.Q_WAY] = code
    queue[waiting, c.Q_AMOUNT] = amount
    queue[waiting, c.Q_OWNER] = owner
    queue[waiting, c.Q_TOUCHES] = 1
    return waiting + 1


@compiled
def all_hit(pages, need):
    """Return 0 if all pages of a run are read where they are, 1 if over the bus, else -1."""
    side = (pages[0] >> 4) & 1
    for bits in pages:
        if not bits & need or (bits >> 4) & 1 != side:
            return -1
    return np.int64(side)


@compiled
def after(state, steps):
    """Return a state of the generator so many steps on: powers of its map, by squaring."""
    factor, term = MULTIPLIER, INCREMENT
    while steps:
        if steps & 1:
            state = factor * state + term
        term *= factor + 1
        factor *= factor
        steps >>= 1
    return state


@compiled
def advance(arrays, switches, gpus, sums, rows, cursor):
    """Run touches from `cursor` (row, page in the row) until a window of them waits or all ran.

    The hot loop: it takes arrays, not the state, and adds amounts to `sums` alone.
    """
    pages, block_of, blocks, counters, totals, queue, notices = arrays
    first, length, ways, amounts, owners = rows
    policy = switches[c.POLICY]
    tracked = policy >= c.BY_ACCESS and policy != c.BY_TREE
    streaming = switches[c.WINDOW]
    diverging = max(streaming, switches[c.BATCH_SIZE])  # each of a warp's threads faults
    waiting = counters[c.WAITING]
    threshold = switches[c.COUNTER_THRESHOLD]
    i, done = cursor[0], cursor[1]
    notified = False
    while i < len(first) and not notified:
        way = ways[i] & (c.SCATTERED - 1)
        window = diverging if way >= c.GATHER else streaming
        if waiting >= window:
            break
        need = needed(way)
        amount = amounts[i]
        page = first[i] + done
        end = first[i] + length[i]
        last = end
        if threshold:  # a counter's region at a time
            end = min(end, (page & ~(c.BIG_PAGES - 1)) + c.BIG_PAGES)
        owner = np.int64(owners[i])
        block = -1
        hits = 0
        remote = 0
        if ways[i] & c.SCATTERED:
            state = counters[c.RANDOM]
            if not tracked and not threshold and amount - done > length[i]:
                side = all_hit(pages[first[i] : last], need)
                if gpus is not None and side == 1:
                    side = -1
                if side >= 0:
                    hits = amount - done
                    remote = side * hits
                    state = after(state, hits)
                    done = amount
            while done < amount:
                done += 1
                state = state * MULTIPLIER + INCREMENT
                page = first[i] + ((state >> 20) & MASK) % length[i]
                bits = pages[page]
                if bits & need:
                    hits += 1
                    here = (bits >> 4) & 1
                    remote += here
                    if gpus is not None and here:
                        sums[owner, c.FAR, way] += is_on_peer(bits)
                        sums[owner, c.REMOTE, way] -= is_on_peer(bits)
                    if tracked and bits & c.ON_GPU:
                        note_use(blocks, counters, block_of[page], policy)
                    if threshold and here:
                        count_remote(blocks, counters, notices, block_of[page], page, 1, threshold)
                        if counters[c.NOTIFIED]:
                            break
                    continue
                waiting = wait(pages, queue, waiting, page, way, 1, owner)
                if waiting == window:
                    break
            counters[c.RANDOM] = state
            notified = counters[c.NOTIFIED] > 0
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
            waiting = wait(pages, queue, waiting, page, way, amount, owner)
            page += 1
            if waiting == window:
                break
        if threshold and remote:
            accesses = accesses_of(way, amount)
            for other in range(first[i] + done, page):
                if pages[other] & c.MAP_REMOTE:
                    count_remote(
                        blocks, counters, notices, block_of[other], other, accesses, threshold
                    )
            notified = counters[c.NOTIFIED] > 0
        totals[owner, c.T_HITS] += hits
        totals[owner, c.T_TOUCHES] += hits
        sums[owner, c.LOCAL, way] += amount * (hits - remote)
        sums[owner, c.REMOTE, way] += amount * remote
        if gpus is not None and remote:
            peer = amount * count_on_peer(pages[first[i] + done : page])
            sums[owner, c.FAR, way] += peer
            sums[owner, c.REMOTE, way] -= peer
        if page < last:
            done = page - first[i]
        else:
            i += 1
            done = 0
    counters[c.WAITING] = waiting
    cursor[0], cursor[1] = i, done


@from_python
def run(s, gpus, sums, rows, cursor):
    """Run a kernel's touches from `cursor`; return whether it ended.

    `gpus` are all GPUs, None if there is one. `rows` are the touches' columns: first, length, way,
    amount, array.
    `sums` is scratch memory of `add_up`, all 0.
    It returns early when the event buffer nears its end, or if access counters have notified the
    driver; empty it, serve them, and call again.
    """
    policy = s.switches[c.POLICY]
    tracked = policy >= c.BY_ACCESS and policy != c.BY_TREE
    while True:
        arrays = s.pages, s.block_of, s.blocks, s.counters, s.totals, s.queue, s.notices
        advance(arrays, s.switches, gpus, sums, rows, cursor)
        add_up(s, sums)
        if s.counters[c.NOTIFIED]:
            return False
        if s.counters[c.WAITING] == 0 and cursor[0] == len(rows[0]):
            return True
        if s.switches[c.RECORD] and s.counters[c.EVENTS] + EVENT_RESERVE > len(s.events):
            return False
        if s.counters[c.WAITING]:
            serve_batch(s, gpus)
            replay(s, gpus, sums, tracked)


@from_python
def run_host(s, gpus, first, length, ways, cursor):
    """Run the host's touches from `cursor`; return whether they ended, see `run`."""
    while cursor[0] < len(first):
        i = cursor[0]
        writes = ways[i] not in (c.READ, c.GATHER)
        for page in range(first[i] + cursor[1], first[i] + length[i]):
            block = s.block_of[page]
            row = s.blocks[block]
            bits = s.pages[page]
            hit = bits & c.ON_HOST and not (writes and bits & c.ON_GPUS)
            if not hit:
                coherent = s.switches[c.COHERENT] != 0
                if coherent and bits & c.ON_GPUS:
                    pin = 0
                    if s.switches[c.DETECT_THRASHING]:
                        pin = relative_to_gpu(s, s.thrash[page, PINNED_ON])
                    hit = (
                        choose(
                            c.ON_HOST,
                            bits,
                            advice_of(row[c.ADVICE]),
                            pin,
                            not writes,
                            coherent,
                            FAULT,
                        )
                        & bits
                        & c.ON_GPUS
                    )
                if not hit:
                    if s.switches[c.RECORD] and s.counters[c.EVENTS] + EVENT_RESERVE > len(
                        s.events
                    ):
                        cursor[1] = page - first[i]
                        return False
                    if gpus is not None:
                        serve_host_among(s, gpus, block, page, writes)
                    else:
                        serve_host(s, None, block, page, writes)
            s.totals[row[c.OWNER], c.T_TOUCHES] += 1
            s.totals[row[c.OWNER], c.T_HITS] += 1 if hit else 0
        cursor[0] = i + 1
        cursor[1] = 0
    return True
