"""A kernel's touches: hits cost next to nothing; those that fault wait, are served, come again."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np
from numba import njit

from louvain_um.profiling.simulator.constants import (
    ATOMIC,
    BY_ACCESS,
    BY_TREE,
    COMPUTE,
    COMPUTED,
    EVENTS,
    GATHER,
    LOCAL,
    MAP_READ,
    MAP_REMOTE,
    MAP_WRITE,
    ON_GPU,
    OWNER,
    POLICY,
    READ,
    READ_REMOTELY,
    RECORD,
    REMOTE,
    REMOTE_ATOMIC,
    REMOTE_RANDOM,
    REMOTE_SEQUENTIAL,
    REPLAYED,
    SECTOR_BYTES,
    STREAK,
    T_HITS,
    T_REMOTE_ACCESSES,
    T_REMOTE_ATOMICS,
    T_REMOTE_BYTES,
    T_TOUCHES,
    WAITING,
    WINDOW,
    WRITE,
)
from louvain_um.profiling.simulator.eviction import note_use
from louvain_um.profiling.simulator.service import serve_batch

EVENT_RESERVE = 1 << 16  # rows that one batch may need


@njit(nogil=True, cache=True)
def needed(way):
    """Return the mapping bits of which a touch needs one. Odd ways and atomics write."""
    if way == READ or way == GATHER:
        return np.uint8(MAP_READ | MAP_REMOTE)
    return np.uint8(MAP_WRITE | MAP_REMOTE)


@njit(nogil=True, cache=True)
def account(s, owner, way, amount, local, remote):
    """Book `local` and `remote` touched pages with `amount` bytes or accesses each."""
    s.totals[owner, T_TOUCHES] += local + remote
    if local:
        time = s.per_access[owner, LOCAL, way] * amount * local
        s.costs[COMPUTE] += time
        s.clock[COMPUTED] += time
    if remote:
        time = s.per_access[owner, REMOTE, way] * amount * remote
        s.clock[READ_REMOTELY] += time
        if way <= WRITE:
            s.costs[REMOTE_SEQUENTIAL] += time
            s.totals[owner, T_REMOTE_BYTES] += amount * remote
        else:
            s.totals[owner, T_REMOTE_BYTES] += amount * remote * SECTOR_BYTES
            if way == ATOMIC:
                s.costs[REMOTE_ATOMIC] += time
                s.totals[owner, T_REMOTE_ATOMICS] += amount * remote
            else:
                s.costs[REMOTE_RANDOM] += time
                s.totals[owner, T_REMOTE_ACCESSES] += amount * remote


@njit(nogil=True, cache=True)
def replay(s, tracked):
    """Let the waiting touches try again, in order; those that fault go on waiting."""
    left = 0
    for entry in range(s.counters[WAITING]):
        page = s.queue[entry, 0]
        way = s.queue[entry, 1] >> 1
        bits = s.pages[page]
        if bits & needed(way):
            block = s.block_of[page]
            if tracked and bits & ON_GPU:
                note_use(s, block)
            remote = 1 if bits & MAP_REMOTE else 0
            account(s, s.blocks[block, OWNER], way, s.queue[entry, 2], 1 - remote, remote)
        else:
            s.queue[left] = s.queue[entry]
            left += 1
    if left == 0:
        s.counters[STREAK] = 0
    s.counters[REPLAYED] += left
    s.counters[WAITING] = left


@njit(nogil=True, cache=True)
def run(s, first, length, ways, amount, cursor):
    """Run a kernel's touches from `cursor` (row, page in the row); return whether it ended.

    It returns early when the event buffer nears its end; empty it and call again.
    """
    policy = s.switches[POLICY]
    tracked = policy >= BY_ACCESS and policy < BY_TREE
    window = s.switches[WINDOW]
    pages = s.pages
    rows = len(first)
    i, done = cursor[0], cursor[1]
    while True:
        while i < rows and s.counters[WAITING] < window:
            way = ways[i]
            need = needed(way)
            start = first[i] + done
            end = first[i] + length[i]
            block = s.block_of[start]
            owner = s.blocks[block, OWNER]
            hits = 0
            remote = 0
            page = start
            if tracked:
                block = -1
            while page < end:
                bits = pages[page]
                if bits & need:
                    hits += 1
                    remote += (bits >> 4) & 1
                    if tracked and bits & ON_GPU and s.block_of[page] != block:
                        block = s.block_of[page]
                        note_use(s, block)
                else:
                    entry = s.counters[WAITING]
                    s.queue[entry, 0] = page
                    s.queue[entry, 1] = way * 2 + (0 if way == READ or way == GATHER else 1)
                    s.queue[entry, 2] = amount[i]
                    s.counters[WAITING] = entry + 1
                    if entry + 1 == window:
                        page += 1
                        break
                page += 1
            s.totals[owner, T_HITS] += hits
            account(s, owner, way, amount[i], hits - remote, remote)
            if page < end:
                done = page - first[i]
            else:
                i += 1
                done = 0
        if s.counters[WAITING] == 0:
            return True
        cursor[0], cursor[1] = i, done
        if s.switches[RECORD] and s.counters[EVENTS] + EVENT_RESERVE > len(s.events):
            return False
        serve_batch(s)
        replay(s, tracked)
