"""Pages that processors take from each other: detection, naps, pins and their end.

Here processors are bits that mean the same to all GPUs: 2 is the host, 1 the first GPU, and 4, 8, …
are further ones.
"""

from __future__ import annotations

import numpy as np

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import compiled, emit, from_python, inlined, now

# What a fault is advised to do, besides a location to pin the page at.
PROCEED = 0
NAP = -1

# Columns of a page.
STAMP = 0  # of its last migration
MOVES = 1  # migrations in a row, each within the lapse
NAPS = 2
NAP_END = 3
ASLEEP = 4  # bits of processors
ACCESSORS = 5  # bits of processors
PINNED_ON = 6  # a processor; 0 is none
AWAKE = 7  # the processor that the present nap spares
PINNED_UNTIL = 8

# Columns of a block.
LAST_MOVER = 0
LAST_MOVE = 1
LAST_THRASHING = 2
RESETS = 3
WAS_PINNED = 4
TRACKED = 5  # whether its pages are
THRASHING_PAGES = 6

MOST_MOVES = 7
MOST_NAPS = 255
MOST_RESETS = 4
EPOCH = 2000  # lapses without thrashing after which a block is no longer tracked
TICK = 64  # ns: resolution of a page's times
UNPIN_SLACK = 20_000  # ns
VOTES = 32
MOST_LAPSE = 500_000_000  # ns
MOST_STEP = 50_000_000  # ns

EVERYONE = (1 << 20) - 1


@inlined
def bit_of_gpu(number):
    """Return the bit of a GPU."""
    return c.ON_GPU if number == 0 else c.ON_HOST << number


@inlined
def bit_of(s, processor):
    """Return the bit of a processor that is ON_GPU or ON_HOST to a GPU."""
    return bit_of_gpu(s.switches[c.NUMBER]) if processor == c.ON_GPU else processor


@inlined
def relative_to_gpu(s, found):
    """Return what a processor's bit, or other advice, is to a GPU."""
    if found <= 0 or found == c.ON_HOST:
        return found
    local = bit_of_gpu(s.switches[c.NUMBER])
    return np.int64(c.ON_GPU) if found == local else s.switches[c.LINK]


@inlined
def reaches(s, processor, location):
    """Return whether a processor reaches memory: over PCIe, the host does not reach a GPU's."""
    if processor == location:
        return True
    if processor == c.ON_HOST:
        return s.switches[c.COHERENT] != 0
    return location == c.ON_HOST or s.switches[c.LINK] == c.ON_PEER


@compiled
def all_reach_fast(switches, processors, location):
    """Return whether each of some processors has a fast link, with atomics, to a location."""
    processor = 1
    while processor <= processors:
        with_host = processor == c.ON_HOST or location == c.ON_HOST
        fast = switches[c.COHERENT if with_host else c.FAST_LINK] != 0
        if processors & processor and processor != location and not fast:
            return False
        processor <<= 1
    return True


@compiled
def all_reach(s, processors, location):
    """Return whether each of some processors reaches a location, if there is one."""
    if location == 0:
        return False
    processor = 1
    while processor <= processors:
        if processors & processor and not reaches(s, processor, location):
            return False
        processor <<= 1
    return True


@compiled
def follow(s, block, processor, time):
    """Note a migration of a block; return whether its pages are tracked."""
    info = s.watched[block]
    if info[TRACKED] == 0:
        other = info[LAST_MOVE] != 0 and info[LAST_MOVER] != processor
        if other and time - info[LAST_MOVE] <= s.counters[c.LAPSE]:
            info[TRACKED] = 1
    info[LAST_MOVER] = processor
    info[LAST_MOVE] = time
    return info[TRACKED] != 0


@compiled
def stamp(s, block, page, processor, time):
    """Count a migration of a tracked page."""
    info, row = s.watched[block], s.thrash[page]
    before = row[STAMP]
    row[ACCESSORS] |= processor
    row[STAMP] = time // TICK * TICK
    if before == 0:
        return
    if time - before > s.counters[c.LAPSE]:
        if row[MOVES] >= s.switches[c.THRASH_EVENTS] and row[PINNED_ON] == 0:
            forget_page(s, info, row)
        return
    if row[MOVES] < MOST_MOVES:
        row[MOVES] += 1
        if row[MOVES] == s.switches[c.THRASH_EVENTS]:
            info[THRASHING_PAGES] += 1
            s.totals[s.blocks[block, c.OWNER], c.T_THRASHING] += 1
            emit(s, c.K_THRASHING, page, c.PAGE_BYTES, 1, c.C_COHERENCE)
    if row[MOVES] >= s.switches[c.THRASH_EVENTS]:
        info[LAST_THRASHING] = time


@compiled
def note_moves(s, block, processor):
    """Count the wanted pages of a block that are to be moved to a processor."""
    row = s.blocks[block]
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    away = c.ANYWHERE - processor
    mover = bit_of(s, processor)
    time = np.int64(now(s))
    noted = False
    tracked = False
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        where = s.pages[page] & c.ANYWHERE
        if s.want[page - base] == 0 or where & away == 0 or where & processor:
            continue
        if s.thrash[page, PINNED_ON] != 0:
            continue
        if not noted:
            tracked = follow(s, block, mover, time)
            noted = True
        if tracked:
            stamp(s, block, page, mover, time)


@compiled
def forget_page(s, info, row):
    """Forget that a page thrashed, but not whom it spared nor its naps."""
    if row[MOVES] >= s.switches[c.THRASH_EVENTS]:
        info[THRASHING_PAGES] -= 1
    end_naps(row, EVERYONE)
    if row[PINNED_ON]:
        s.counters[c.PINS] -= 1
    row[PINNED_ON] = row[PINNED_UNTIL] = 0
    row[STAMP] = row[MOVES] = row[ACCESSORS] = 0


@compiled
def forget_pages(s, block, first, end):
    """Forget what is known of thrashing pages that the program moves."""
    info = s.watched[block]
    if info[THRASHING_PAGES]:
        for page in range(first, end):
            if s.thrash[page, MOVES] >= s.switches[c.THRASH_EVENTS]:
                forget_page(s, info, s.thrash[page])


@compiled
def forget_block(s, block):
    """Stop tracking the pages of a block."""
    first = s.blocks[block, c.FIRST]
    for page in range(first, first + s.blocks[block, c.PAGES]):
        s.counters[c.PINS] -= 1 if s.thrash[page, PINNED_ON] else 0
        s.thrash[page] = 0
    s.watched[block, :RESETS] = 0
    s.watched[block, TRACKED:] = 0


@compiled
def end_naps(row, processors):
    """Wake processors."""
    if row[ASLEEP] & processors:
        row[ASLEEP] &= ~processors
        if row[ASLEEP] == 0:
            row[NAP_END] = 0


@compiled
def take_nap(row, processor):
    """Throttle a processor; within a nap, it counts once."""
    if not row[ASLEEP] & processor:
        row[ASLEEP] |= processor
        if row[PINNED_ON] == 0:
            row[NAPS] = min(row[NAPS] + 1, MOST_NAPS)
    return NAP


@compiled
def adapt(s, late):
    """Let a fault that comes late, or not, vote on the lapse within which migrations count."""
    s.counters[c.VOTE] += 1 if late else -1
    vote = s.counters[c.VOTE]
    if 0 <= vote < VOTES:
        return
    # The driver compares the vote as an unsigned number, so one below zero widens the lapse, too.
    lapse = s.counters[c.LAPSE]
    if lapse < MOST_LAPSE:
        s.counters[c.LAPSE] = lapse + min(lapse // 8, MOST_STEP)
    s.counters[c.VOTE] = max(vote // 2, 0) if vote > 0 else 0


@compiled
def hint(s, block, page, processor, preferred, time, nearest=0):
    """Return what a fault is advised: PROCEED, NAP or where the page is pinned."""
    # `nearest` is where the page is, closest to the processor, if there are several GPUs.
    info, row = s.watched[block], s.thrash[page]
    if info[TRACKED] == 0:
        return PROCEED
    quiet = time - info[LAST_THRASHING] > EPOCH * s.switches[c.THRASH_WINDOW]
    may_reset = info[WAS_PINNED] == 0 and info[RESETS] < MOST_RESETS
    if info[LAST_THRASHING] != 0 and quiet and may_reset:
        forget_block(s, block)
        info[RESETS] += 1
        return PROCEED
    if row[MOVES] < s.switches[c.THRASH_EVENTS]:
        return PROCEED
    if row[ASLEEP] & processor:
        if time < row[NAP_END] and row[AWAKE] != processor:
            return take_nap(row, processor)
        end_naps(row, processor)
    late = time - row[STAMP] > s.counters[c.LAPSE]
    if s.switches[c.ADAPTIVE]:
        adapt(s, late)
    if late and row[PINNED_ON] == 0:
        return PROCEED
    row[ACCESSORS] |= processor
    if time > row[NAP_END]:
        row[NAP_END] = (time + s.switches[c.THRASH_WINDOW]) // TICK * TICK
        row[AWAKE] = 0 if row[AWAKE] == processor else processor
    elif row[AWAKE] == 0:
        row[AWAKE] = processor
    where = s.pages[page] & c.BOTH
    here = nearest if nearest else processor if where & processor else where
    found = advise(s, row, processor, here, preferred)
    if found == NAP:
        return take_nap(row, processor)
    if found != PROCEED:
        pin(s, info, row, here, found, time)
    return found


@compiled
def advise(s, row, processor, here, preferred):
    """Return PROCEED, NAP or a location for a thrashing page, which is at `here`."""
    accessors, pinned, awake = row[ACCESSORS], row[PINNED_ON], row[AWAKE]
    if all_reach(s, accessors, preferred):
        return preferred
    if all_reach_fast(s.switches, accessors, here) and not accessors & preferred:
        # All reach the page where it is; a GPU takes it from the host.
        if here != c.ON_HOST:
            return here
        return processor if processor != c.ON_HOST else PROCEED
    enough = row[NAPS] >= s.switches[c.THRASH_THROTTLES]
    if processor == preferred:
        if pinned:
            return preferred if preferred in (pinned, awake) else NAP
    elif pinned:
        if processor == awake:
            return processor if all_reach(s, accessors, processor) else c.ON_HOST
        return pinned if reaches(s, processor, pinned) else NAP
    if processor != awake:
        return NAP
    return processor if enough else PROCEED


@compiled
def pin(s, info, row, here, location, time):
    """Pin a page to a location."""
    if row[PINNED_ON] == 0 or here != location:
        end_naps(row, EVERYONE)
    if row[PINNED_ON] == 0:
        row[PINNED_UNTIL] = time + s.switches[c.THRASH_PIN]
        row[NAPS] = 0
        info[WAS_PINNED] = 1
        if s.counters[c.PINS] == 0 or row[PINNED_UNTIL] < s.counters[c.UNPIN_TIME]:
            s.counters[c.UNPIN_TIME] = row[PINNED_UNTIL]
        s.counters[c.PINS] += 1
    row[PINNED_ON] = location


@from_python
def unpin(s, gpus=None):
    """Remove expired pins, and their mappings over the bus; return how many."""
    time = np.int64(now(s)) + UNPIN_SLACK
    if s.counters[c.PINS] == 0 or s.counters[c.UNPIN_TIME] > time:
        return 0
    gone = 0
    soonest = np.int64(1) << 62
    for page in range(len(s.thrash)):
        row = s.thrash[page]
        if row[PINNED_ON] == 0:
            continue
        if row[PINNED_UNTIL] > time:
            soonest = min(soonest, row[PINNED_UNTIL])
            continue
        block = s.block_of[page]
        forget_page(s, s.watched[block], row)
        gone += 1
        if not s.blocks[block, c.ADVICE] & c.ACCESSED_BY:
            s.pages[page] &= ~np.uint8(c.MAP_REMOTE)
        if gpus is not None:
            for number in range(len(gpus.pages)):
                if not gpus.blocks[number, block, c.ADVICE] & c.ACCESSED_BY:
                    gpus.pages[number, page] &= ~np.uint8(c.MAP_REMOTE)
    s.counters[c.UNPIN_TIME] = soonest
    return gone
