"""Several GPUs: each has a state, in which pages are as that GPU sees them.

A GPU's state says of a page that it is here, on the host, or on another GPU. Functions that move
pages work on one state alone and note the blocks; `update_others` then updates other GPUs' states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.eviction import note_empty
from louvain_um.profiling.simulator.driver.state import (
    State,
    compiled,
    from_python,
    inlined,
    inlined_from_python,
)
from louvain_um.profiling.simulator.driver.thrashing import ACCESSORS, PINNED_ON, bit_of_gpu


class Gpus(NamedTuple):
    """The states of several GPUs: what each has of its own by its number, and what they share."""

    shared: State
    pages: NDArray[np.uint8]
    words: NDArray[np.uint64]
    blocks: NDArray[np.int64]
    home: NDArray[np.int32]
    pieces: NDArray[np.int32]
    totals: NDArray[np.int64]
    counters: NDArray[np.int64]
    switches: NDArray[np.int64]
    per_access: NDArray[np.float64]
    want: NDArray[np.uint8]
    marks: NDArray[np.uint64]


def stack_states(states: Sequence[State]) -> Gpus:
    """Return the states of several GPUs as one, with the first one's scratch memory."""
    pages, want = (np.stack([getattr(s, name) for s in states]) for name in ("pages", "want"))
    local = {
        name: np.stack([getattr(s, name) for s in states])
        for name in ("blocks", "home", "pieces", "totals", "counters", "switches", "per_access")
    }
    return Gpus(
        states[0], pages=pages, words=pages.view(np.uint64), want=want,
        marks=want.view(np.uint64), **local,
    )  # fmt: skip


@inlined
def state_of(gpus, number):
    """Return the state of a GPU."""
    s = gpus.shared
    return State(
        gpus.pages[number], gpus.words[number], s.block_of, gpus.blocks[number],
        gpus.home[number], gpus.pieces[number], gpus.totals[number], gpus.counters[number],
        gpus.switches[number], s.clock, s.costs, s.rates, gpus.per_access[number], s.events,
        s.queue, s.batch, s.notices, s.spare, gpus.want[number], gpus.marks[number], s.tree,
        s.bring, s.barred, s.thrash, s.watched,
    )  # fmt: skip


@inlined_from_python
def copy_counters(s, other):
    """Give another GPU the integers of the whole machine, before it works."""
    for column in range(c.BLOCKS, c.COUNTERS):
        other.counters[column] = s.counters[column]


@inlined
def gpu_of_advice(advice):
    """Return the GPU that advice names: the first, if it names none."""
    return max(((advice >> c.TARGET) & 15) - 1, 0)


@inlined
def number_of(bit):
    """Return the number of a GPU, given its bit among processors."""
    number = 0
    while bit > c.ON_HOST:
        bit >>= 1
        number += 1
    return number


@compiled
def holder(s, gpus, page):
    """Return the first other GPU that has a page; NOWHERE if there is none."""
    for number in range(len(gpus.pages)):
        if number != s.switches[c.NUMBER] and gpus.pages[number, page] & c.ON_GPU:
            return number
    return c.NOWHERE


@compiled
def nearest(s, gpus, page, processor):
    """Return the bit of the processor, nearest to one, that has a page; 0 if there is none."""
    bits = s.pages[page]
    if bits & c.ANYWHERE == 0:
        return 0
    if bits & processor == 0 and bits & c.ELSEWHERE:
        if processor == c.ON_GPU and (bits & c.ON_PEER or not bits & c.ON_HOST):
            return bit_of_gpu(holder(s, gpus, page))
        if processor == c.ON_HOST and not bits & c.ON_GPU:
            return bit_of_gpu(holder(s, gpus, page))
    local = bit_of_gpu(s.switches[c.NUMBER])
    if processor == c.ON_HOST:
        return c.ON_HOST if bits & c.ON_HOST else local
    return local if bits & c.ON_GPU else c.ON_HOST


@from_python
def update_others(s, gpus):
    """Update the other GPUs' states of the blocks whose pages one GPU moved."""
    while s.counters[c.CHANGED] != c.NOWHERE:
        block = s.counters[c.CHANGED]
        s.counters[c.CHANGED] = s.blocks[block, c.CHANGED_NEXT]
        s.blocks[block, c.CHANGED_NEXT] = c.UNCHANGED
        for number in range(len(gpus.pages)):
            if number != s.switches[c.NUMBER]:
                follow_up(s, gpus, state_of(gpus, number), block)


@compiled
def follow_up(s, gpus, other, block):
    """Update another GPU's state of a block, of which it may have lost pages."""
    # Copies elsewhere are kept where `s` still has the page elsewhere, too. A page that moved is
    # mapped again only where advice, or a pin against thrashing, gives access.
    row = other.blocks[block]
    number = other.switches[c.NUMBER]
    lost = 0
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        bits = s.pages[page]
        old = other.pages[page]
        kept = old & c.ON_GPU if bits & c.ELSEWHERE else 0
        away = bits & c.ON_GPU != 0
        if bits & c.ELSEWHERE:
            for third in range(len(gpus.pages)):
                if third != number and third != s.switches[c.NUMBER]:
                    away |= gpus.pages[third, page] & c.ON_GPU != 0
        where = kept | (bits & c.ON_HOST) | (other.switches[c.LINK] if away else 0)
        if where == old & c.ANYWHERE:
            continue
        lost += (old & c.ON_GPU) - kept
        maps = 0
        if kept:
            maps = old & (c.MAP_READ | c.MAP_WRITE) if where == c.ON_GPU else c.MAP_READ
        elif where & (where - 1) == 0 and where & (c.ON_HOST | c.ON_PEER):
            asked = row[c.ADVICE] & c.ACCESSED_BY
            if s.switches[c.DETECT_THRASHING] and s.thrash[page, PINNED_ON]:
                asked |= s.thrash[page, ACCESSORS] & bit_of_gpu(number)
            maps = c.MAP_REMOTE if asked else 0
        other.pages[page] = where | maps
    if lost:
        row[c.RESIDENT] -= lost
        if row[c.RESIDENT] == 0:
            note_empty(other, block)
