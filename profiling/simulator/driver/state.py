"""The state of the simulated machine: plain arrays, so that compiled code can share them."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.profiling.simulator.driver import constants as c

#: Without Numba's counts of references: these functions allocate nothing and their arrays belong
#: to the caller, while an atomic step up and down at every use of a row took half of a replay.
_OPTIONS: dict[str, Any] = {"_nrt": False}

compiled: Any = kernel(**_OPTIONS)

#: The same, put into its callers by LLVM: handing over the state, nineteen arrays, costs as much
#: as serving a block.
inlined: Any = kernel(**_OPTIONS, forceinline=True)


class State(NamedTuple):
    """Everything the compiled parts read and write; columns are named in `constants`."""

    pages: NDArray[np.uint8]  # state bits of each page
    words: NDArray[np.uint64]  # the same, eight pages each
    block_of: NDArray[np.int32]  # block of each page; −1 in gaps between arrays
    blocks: NDArray[np.int64]
    totals: NDArray[np.int64]  # by array
    counters: NDArray[np.int64]
    switches: NDArray[np.int64]
    clock: NDArray[np.float64]
    costs: NDArray[np.float64]
    rates: NDArray[np.float64]
    per_access: NDArray[np.float64]  # ns by array, LOCAL or REMOTE, and way
    events: NDArray[np.int64]
    queue: NDArray[np.int64]  # page, way, amount, array of each touch that waits
    batch: NDArray[np.int64]  # keys of the faults being served: 2 · page + write
    spare: NDArray[np.int64]  # scratch memory of sorting them
    want: NDArray[np.uint8]  # pages of a block to bring: 1 faulted, 2 by density
    marks: NDArray[np.uint64]  # the same, eight pages each
    tree: NDArray[np.int64]  # scratch memory of the density prefetcher
    bring: NDArray[np.uint8]  # pages of a block that a prefetcher of the user's brings
    barred: NDArray[np.uint8]  # pages of a block that thrash, which the prefetcher leaves alone
    thrash: NDArray[np.int64]  # by page: last time, last processor, events, throttles, pinned until


def empty_state(
    pages: int,
    blocks: int,
    arrays: int,
    switches: Any,
    rates: Any,
    per_access: Any,
    *,
    window: int,
    batch: int,
    events: int,
    thrash: bool,
) -> State:
    """Return the initial state."""
    counters = np.zeros(c.COUNTERS, np.int64)
    counters[c.HEADS : c.HEADS + 2] = c.NOWHERE
    counters[c.TAILS : c.TAILS + 2] = c.NOWHERE
    whole = -(-pages // c.BLOCK_PAGES) * c.BLOCK_PAGES
    bits, want = np.zeros(whole, np.uint8), np.zeros(c.BLOCK_PAGES, np.uint8)
    return State(
        pages=bits,
        words=bits.view(np.uint64),
        block_of=np.full(whole, c.NOWHERE, np.int32),
        blocks=np.zeros((blocks, c.BLOCK_COLUMNS), np.int64),
        totals=np.zeros((arrays, c.TOTALS), np.int64),
        counters=counters,
        switches=switches,
        clock=np.zeros(c.CLOCKS, np.float64),
        costs=np.zeros(c.COST_TERMS, np.float64),
        rates=rates,
        per_access=per_access,
        events=np.zeros((events, c.EVENT_COLUMNS), np.int64),
        queue=np.zeros((window, 4), np.int64),
        batch=np.zeros(batch, np.int64),
        spare=np.zeros(c.DIGITS + batch, np.int64),
        want=want,
        marks=want.view(np.uint64),
        tree=np.zeros((c.TREE_ROWS, c.TREE_COLUMNS), np.int64),
        bring=np.zeros(c.BLOCK_PAGES, np.uint8),
        barred=np.zeros(c.BLOCK_PAGES, np.uint8),
        thrash=np.zeros((pages if thrash else 1, 5), np.int64),
    )


@inlined
def now(s):
    """Return the time in ns; computing and remote reading hide a share of each other."""
    computed, remote = s.clock[c.COMPUTED], s.clock[c.READ_REMOTELY]
    return s.clock[c.STALLED] + computed + remote - s.rates[c.SHARE_HIDDEN] * min(computed, remote)


@inlined
def spend(s, term, time):
    """Stall the whole GPU for `time` ns, charged to one term."""
    s.costs[term] += time
    s.clock[c.STALLED] += time


@inlined
def emit(s, kind, page, size, count, cause):
    """Record an event; if the buffer is full, count it as dropped."""
    if s.switches[c.RECORD] == 0:
        return
    row = s.counters[c.EVENTS]
    if row == s.events.shape[0]:
        s.counters[c.DROPPED] += 1
        return
    s.events[row, c.E_TIME] = np.int64(now(s))
    s.events[row, c.E_KIND] = kind
    s.events[row, c.E_ADDRESS] = c.BASE_ADDRESS + page * c.PAGE_BYTES
    s.events[row, c.E_BYTES] = size
    s.events[row, c.E_COUNT] = count
    s.events[row, c.E_CAUSE] = cause
    s.events[row, c.E_BATCH] = s.counters[c.BATCHES]
    s.counters[c.EVENTS] = row + 1
