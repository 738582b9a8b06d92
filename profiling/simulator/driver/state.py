"""The state of the simulated machine: plain arrays, so that compiled code can share them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.profiling.simulator.driver import constants as c

#: Without Numba's counts of references: these functions allocate nothing and their arrays belong
#: to the caller, while an atomic step up and down at every use of a row took half of a replay.
#: Nobody calls them from C.
_OPTIONS: dict[str, Any] = {"_nrt": False, "no_cfunc_wrapper": True}

#: What unpacks the state for a call from Python takes longer to compile than most functions.
#: Without it, such a call would end the process.
_INTERNAL = {**_OPTIONS, "no_cpython_wrapper": True}

#: For functions that Python calls.
from_python: Any = kernel(**_OPTIONS)
inlined_from_python: Any = kernel(**_OPTIONS, forceinline=True)

#: For functions that only compiled ones call.
compiled: Any = kernel(**_INTERNAL)

#: The same, put into its callers by LLVM: handing over the state, all its arrays, costs as much
#: as serving a block.
inlined: Any = kernel(**_INTERNAL, forceinline=True)


class State(NamedTuple):
    """Everything the compiled parts read and write; columns are named in `constants`."""

    pages: NDArray[np.uint8]  # state bits of each page
    words: NDArray[np.uint64]  # the same, eight pages each
    block_of: NDArray[np.int32]  # block of each page; −1 in gaps between arrays
    blocks: NDArray[np.int64]
    home: NDArray[np.int32]  # by page of a small block: its piece of device memory, or NOWHERE
    pieces: NDArray[np.int32]  # of the root chunks that small blocks share; see `chunks`
    totals: NDArray[np.int64]  # by array
    counters: NDArray[np.int64]
    switches: NDArray[np.int64]
    clock: NDArray[np.float64]
    costs: NDArray[np.float64]
    rates: NDArray[np.float64]
    per_access: NDArray[np.float64]  # ns by array, LOCAL, REMOTE or FAR, and way
    events: NDArray[np.int64]
    queue: NDArray[np.int64]  # touches that wait, of one page and way each
    batch: NDArray[np.int64]  # keys of the faults being served: 2 · page + write
    notices: NDArray[np.int64]  # pages whose access brought a counter to its threshold
    spare: NDArray[np.int64]  # scratch memory of sorting them
    want: NDArray[np.uint8]  # pages of a block to bring: 1 faulted, 2 by density
    marks: NDArray[np.uint64]  # the same, eight pages each
    tree: NDArray[np.int64]  # scratch memory of the density prefetcher
    bring: NDArray[np.uint8]  # pages of a block that a prefetcher of the user's brings
    barred: NDArray[np.uint8]  # pages of a block that thrash, which the prefetcher leaves alone
    thrash: NDArray[np.int64]  # by page, and by block; columns are named in `thrashing`
    watched: NDArray[np.int64]


class StateSizes(NamedTuple):
    """How much a state has of each, and whether pages are watched for thrashing."""

    pages: int
    blocks: int
    roots: int
    arrays: int
    window: int
    batch: int
    events: int
    thrash: bool


def empty_state(sizes: StateSizes, switches: Any, rates: Any, per_access: Any) -> State:
    """Return the initial state."""
    pages, blocks, roots, arrays, window, batch, events, thrash = sizes
    counters = np.zeros(c.COUNTERS, np.int64)
    counters[c.HEADS : c.BLOCKS] = counters[c.CHANGED] = c.NOWHERE
    counters[c.BLOCKS], counters[c.ROOTS] = blocks, roots
    counters[c.LAPSE] = switches[c.THRASH_WINDOW]
    whole = -(-pages // c.BLOCK_PAGES) * c.BLOCK_PAGES
    rows = np.zeros((blocks + roots, c.BLOCK_COLUMNS), np.int64)
    rows[:, [c.PREV, c.NEXT, c.LISTED, c.CHUNK]] = c.NOWHERE
    rows[:, c.CHANGED_NEXT] = c.UNCHANGED
    bits, want = np.zeros(whole, np.uint8), np.zeros(c.BLOCK_PAGES, np.uint8)
    return State(
        pages=bits,
        words=bits.view(np.uint64),
        block_of=np.full(whole, c.NOWHERE, np.int32),
        blocks=rows,
        home=np.full(whole, c.NOWHERE, np.int32),
        pieces=np.zeros((roots * (c.LEAVES + c.BLOCK_PAGES), c.PIECE_COLUMNS), np.int32),
        totals=np.zeros((arrays, c.TOTALS), np.int64),
        counters=counters,
        switches=switches,
        clock=np.zeros(c.CLOCKS, np.float64),
        costs=np.zeros(c.COST_TERMS, np.float64),
        rates=rates,
        per_access=per_access,
        events=np.zeros((events, c.EVENT_COLUMNS), np.int64),
        queue=np.zeros((window, c.QUEUE_COLUMNS), np.int64),
        batch=np.zeros(batch, np.int64),
        notices=np.zeros(batch, np.int64),
        spare=np.zeros(c.DIGITS + batch, np.int64),
        want=want,
        marks=want.view(np.uint64),
        tree=np.zeros((c.TREE_ROWS, c.TREE_COLUMNS), np.int64),
        bring=np.zeros(c.BLOCK_PAGES, np.uint8),
        barred=np.zeros(c.BLOCK_PAGES, np.uint8),
        thrash=np.zeros((pages if thrash else 1, c.THRASH_COLUMNS), np.int64),
        watched=np.zeros((blocks if thrash else 1, c.WATCHED_COLUMNS), np.int64),
    )


@inlined
def now(s):
    """Return the time in ns; computing and remote reading hide a share of each other."""
    computed, remote = s.clock[c.COMPUTED], s.clock[c.READ_REMOTELY]
    return s.clock[c.STALLED] + computed + remote - s.rates[c.SHARE_HIDDEN] * min(computed, remote)


@inlined_from_python
def spend(s, term, time):
    """Stall the whole GPU for `time` ns, charged to one term."""
    s.costs[term] += time
    s.clock[c.STALLED] += time


@compiled
def put_event(events, counters, gpu, time, kind, page, size, count, cause):
    """Put an event into the buffer; if that is full, count it as dropped."""
    row = counters[c.EVENTS]
    if row == events.shape[0]:
        counters[c.DROPPED] += 1
        return
    events[row, c.E_TIME] = time
    events[row, c.E_KIND] = kind
    events[row, c.E_ADDRESS] = c.BASE_ADDRESS + page * c.PAGE_BYTES
    events[row, c.E_BYTES] = size
    events[row, c.E_COUNT] = count
    events[row, c.E_CAUSE] = cause
    events[row, c.E_BATCH] = counters[c.BATCHES]
    events[row, c.E_GPU] = gpu
    counters[c.EVENTS] = row + 1


@inlined_from_python
def emit(s, kind, page, size, count, cause):
    """Record an event, if events are recorded."""
    if s.switches[c.RECORD]:
        time = np.int64(now(s))
        gpu = s.switches[c.NUMBER]
        put_event(s.events, s.counters, gpu, time, kind, page, size, count, cause)


@inlined
def note_change(s, block):
    """Note that pages of a block moved, if there are other GPUs, which have yet to see it."""
    if s.switches[c.GPUS] > 1 and s.blocks[block, c.CHANGED_NEXT] == c.UNCHANGED:
        s.blocks[block, c.CHANGED_NEXT] = s.counters[c.CHANGED]
        s.counters[c.CHANGED] = block


LOW = np.uint64(0x0101_0101_0101_0101)  # the lowest bit of each byte
BYTE = np.uint64(0xFF)
NONE = np.uint64(0)
EIGHT = np.uint64(8)
ONE = np.uint64(1)
TOP = np.uint64(56)
PAIRS = np.uint64(0x00FF_00FF_00FF_00FF)
FOURS = np.uint64(0x0001_0001_0001_0001)
LAST = np.uint64(48)
GPU_ALONE = np.uint64(c.ON_GPU | c.MAP_READ | c.MAP_WRITE)
SHARED = np.uint64(c.BOTH | c.MAP_READ)
WORDS = c.BLOCK_PAGES // 8
LEAF_WORDS = c.BIG_PAGES // 8


@inlined
def total(sums):
    """Return the sum of a word's bytes, each at most 255."""
    return np.int64((((sums & PAIRS) + ((sums >> EIGHT) & PAIRS)) * FOURS) >> LAST)


@inlined
def weigh_words(pages, want, have, faulted, shift):
    """Fill the pages that each big page has, those with a fault whole; see `density.weigh`."""
    for leaf in range(WORDS // LEAF_WORDS):
        asked = np.uint64(0)
        here = np.uint64(0)
        for word in range(leaf * LEAF_WORDS, (leaf + 1) * LEAF_WORDS):
            asked |= want[word]
            here += (pages[word] >> shift) & LOW
        faulted[leaf] = asked != np.uint64(0)
        have[leaf] = c.BIG_PAGES if asked != np.uint64(0) else total(here)


@inlined
def mark_words(pages, want, first, end, shift):
    """Mark as BROUGHT the pages of words `first` … `end` that are neither here nor wanted."""
    for word in range(first, end):
        there = (pages[word] >> shift) | want[word] | (want[word] >> ONE)
        want[word] |= (~there & LOW) << ONE


@inlined
def bring_words(pages, want, duplicate):
    """Make BROUGHT pages resident on the GPU; clear what was wanted; see `service.bring_along`."""
    copied = np.uint64(0)
    starts = np.uint64(0)
    came = np.uint64(0)
    before = np.uint64(0)
    shared = SHARED if duplicate else GPU_ALONE
    for word in range(WORDS):
        if want[word] == NONE:  # as most, where the driver evicts all the time
            before = NONE
            continue
        bits = pages[word]
        brought = (want[word] >> ONE) & LOW
        on_host = (bits >> ONE) & LOW & brought
        coming = on_host & ~bits
        pages[word] = (
            (bits & ~(brought * BYTE)) | on_host * shared | (brought & ~on_host) * GPU_ALONE
        )
        came += brought & ~bits
        copied += coming
        starts += coming & ~((coming << EIGHT) | before)
        before = coming >> TOP
        want[word] = np.uint64(0)
    return total(starts), total(copied), total(came)


@inlined
def evict_words(pages, after):
    """Evict the pages on the GPU; return how many there were, and how many had a host copy."""
    here = np.uint64(0)
    dropped = np.uint64(0)
    state = np.uint64(after) * LOW
    for word in range(WORDS):
        bits = pages[word]
        on_gpu = bits & LOW
        here += on_gpu
        dropped += on_gpu & (bits >> ONE)
        whole = (on_gpu << EIGHT) - on_gpu  # every bit of these bytes
        pages[word] = (bits & ~whole) | (whole & state)
    return total(here), total(dropped)
