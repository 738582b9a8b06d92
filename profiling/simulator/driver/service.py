"""Serving faults: a batch is sorted and coalesced, then served block by block."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.simulator.driver.batch import gather_batch
from louvain_um.profiling.simulator.driver.compiled import compiled, inlined
from louvain_um.profiling.simulator.driver.constants import (
    ACCESSED_BY,
    ADVICE,
    BATCHES,
    BATCHES_PER_SERVICE,
    BIG_PAGES,
    BLOCK_PAGES,
    BOTH,
    COUNTER_THRESHOLD,
    DETECT_THRASHING,
    DEVICE,
    FAULT,
    FIRST,
    MAP_READ,
    MAP_REMOTE,
    MAP_WRITE,
    NOTIFIED,
    ON_GPU,
    ON_HOST,
    OWN_PREFETCH,
    OWNER,
    PAGE_BYTES,
    PAGES,
    PER_BATCH,
    PER_BYTE_IN,
    PER_SERVICE,
    PER_WAKE,
    PINNED,
    PREFERS_GPU,
    PREFERS_HOST,
    PREFETCHING,
    READ_MOSTLY,
    REMOTE_USES,
    RESIDENT,
    SERVICES,
    STREAK,
    T_DROPPED_COPIES,
    T_FAULTS,
    T_IN_COUNTED,
    T_IN_DEMAND,
    T_IN_DENSITY,
    T_REMOTE_MAPS,
    THRESHOLD,
)
from louvain_um.profiling.simulator.driver.constants import MIGRATE as MIGRATION
from louvain_um.profiling.simulator.driver.density import BROUGHT, FAULTED, add_dense
from louvain_um.profiling.simulator.driver.eviction import charge
from louvain_um.profiling.simulator.driver.own import FAILED, mark
from louvain_um.profiling.simulator.driver.residency import (
    DUPLICATE,
    GPU_PROCESSOR,
    MIGRATE,
    PREFER,
    choose_for_gpu,
    is_pinned,
    watch,
)
from louvain_um.profiling.simulator.driver.state import emit, spend
from louvain_um.profiling.simulator.driver.words import bring_words

_HTOD = int(Kind.HTOD)
_GROUP = int(Kind.GPU_FAULT_GROUP)
_REMOTE_MAP = int(Kind.REMOTE_MAP)
_COHERENCE = int(Cause.COHERENCE)
_PREFETCH = int(Cause.PREFETCH)
_UNKNOWN = int(Cause.UNKNOWN)
_COUNTED = int(Cause.ACCESS_COUNTERS)


@inlined
def nowhere_resident(s, block):
    """Return whether no page of a block has been touched or filled yet."""
    row = s.blocks[block]
    for page in range(row[FIRST], row[FIRST] + row[PAGES]):  # noqa: SIM110 (compiled)
        if s.pages[page] & BOTH:
            return False
    return True


@inlined
def charge_wanted(s, block):
    """Take device memory for the wanted pages: whole chunk, or in small blocks by 64 KiB."""
    row = s.blocks[block]
    if row[PAGES] == BLOCK_PAGES:
        charge(s, block, 0)
        return
    more = 0
    start = row[FIRST]
    end = row[FIRST] + row[PAGES]
    while start < end:
        stop = min(end, (start & ~(BIG_PAGES - 1)) + BIG_PAGES)
        here = False
        wanted = False
        for page in range(start, stop):
            here |= (s.pages[page] & ON_GPU) != 0
            wanted |= s.want[page & (BLOCK_PAGES - 1)] != 0
        if wanted and not here:
            more += stop - start
        start = stop
    charge(s, block, more)


@inlined
def put_on_gpu(s, block, page, duplicate):
    """Make a page resident on the GPU; return the bytes copied and host copies dropped, 0 or 1."""
    bits = s.pages[page]
    copied = 1 if bits & BOTH == ON_HOST else 0
    if not bits & ON_GPU:
        s.blocks[block, RESIDENT] += 1
    if duplicate and bits & ON_HOST:
        s.pages[page] = BOTH | MAP_READ
        return copied, 0
    s.pages[page] = ON_GPU | MAP_READ | MAP_WRITE
    return copied, 1 if bits & BOTH == BOTH else 0


@inlined
def bring_along(s, row, duplicate):
    """Make a block's BROUGHT pages resident on the GPU; clear what was wanted."""
    if row[PAGES] == BLOCK_PAGES:
        copies, copied, came = bring_words(s.words[row[FIRST] >> 3 :], s.marks, duplicate)
        row[RESIDENT] += came
        return copies, copied
    pages = s.pages[row[FIRST] : row[FIRST] + row[PAGES]]
    want = s.want[row[FIRST] & (BLOCK_PAGES - 1) :]
    copies = 0
    copied = 0
    came = 0
    before = 0
    for i in range(len(pages)):
        coming = 0
        if want[i] == BROUGHT:
            bits = pages[i]
            came += 1 - (bits & ON_GPU)
            coming = 1 if bits & BOTH == ON_HOST else 0
            if duplicate and bits & ON_HOST:
                pages[i] = BOTH | MAP_READ
            else:
                pages[i] = ON_GPU | MAP_READ | MAP_WRITE
        copied += coming
        copies += coming & ~before
        before = coming
        want[i] = 0
    row[RESIDENT] += came
    return copies, copied


@inlined
def bring_wanted(s, block, low, high):
    """Bring the wanted pages of a block to the GPU, faults `low` … `high` of the batch first."""
    row = s.blocks[block]
    mostly = (row[ADVICE] & READ_MOSTLY) != 0
    base = row[FIRST] & ~(BLOCK_PAGES - 1)
    charge_wanted(s, block)
    demand = 0
    dropped = 0
    for entry in range(low, high):
        page = s.batch[entry] >> 1
        if s.want[page - base] == FAULTED:
            copied, gone = put_on_gpu(s, block, page, mostly and s.batch[entry] & 1 == 0)
            demand += copied
            dropped += gone
    rows, density = bring_along(s, row, mostly)
    spend(s, MIGRATION, s.rates[PER_BYTE_IN] * (demand + density) * PAGE_BYTES)
    totals = s.totals[row[OWNER]]
    totals[T_IN_DEMAND] += demand * PAGE_BYTES
    totals[T_IN_DENSITY] += density * PAGE_BYTES
    totals[T_DROPPED_COPIES] += dropped * PAGE_BYTES
    if demand:
        emit(s, _HTOD, s.batch[low] >> 1, demand * PAGE_BYTES, demand, _COHERENCE)
    if density:
        emit(s, _HTOD, row[FIRST], density * PAGE_BYTES, rows, _PREFETCH)


@compiled
def fill_on_host(s, block):
    """Make every untouched page of a block resident on the host."""
    row = s.blocks[block]
    home = ON_HOST | (MAP_REMOTE if row[ADVICE] & ACCESSED_BY else 0)
    for page in range(row[FIRST], row[FIRST] + row[PAGES]):
        if s.pages[page] & BOTH == 0:
            s.pages[page] = home


@compiled
def mark_own(s, row, base):
    """Let the user's function mark which pages come along with those that faulted."""
    bring = s.own
    bring[:] = 0
    low = row[FIRST] - base
    high = low + row[PAGES]
    pages = s.pages[base : base + BLOCK_PAGES]
    if mark(s.switches[OWN_PREFETCH], pages, s.want, bring, low, high) == FAILED:
        raise ValueError("raised an exception")
    for offset in range(BLOCK_PAGES):
        page_faulted = s.want[offset] == FAULTED
        inside = low <= offset < high
        if inside and bring[offset] and not page_faulted and not pages[offset] & ON_GPU:
            s.want[offset] = BROUGHT


@compiled
def migrate_counted(s):
    """Bring the blocks whose access counters have reached the threshold to the device."""
    s.counters[NOTIFIED] = 0
    threshold = s.switches[COUNTER_THRESHOLD]
    for block in range(len(s.blocks)):
        row = s.blocks[block]
        if row[REMOTE_USES] < threshold:
            continue
        row[REMOTE_USES] = 0
        if row[ADVICE] & (PREFERS_HOST | PINNED | DEVICE):
            continue
        base = row[FIRST] & ~(BLOCK_PAGES - 1)
        coming = 0
        for page in range(row[FIRST], row[FIRST] + row[PAGES]):
            if s.pages[page] & BOTH == ON_HOST and not is_pinned(s, page):
                s.want[page - base] = BROUGHT
                coming += 1
        if coming == 0:
            continue
        spend(s, FAULT, s.rates[PER_SERVICE])
        charge_wanted(s, block)
        rows, moved = bring_along(s, row, False)
        spend(s, MIGRATION, s.rates[PER_BYTE_IN] * moved * PAGE_BYTES)
        s.totals[row[OWNER], T_IN_COUNTED] += moved * PAGE_BYTES
        if moved:
            emit(s, _HTOD, row[FIRST], moved * PAGE_BYTES, rows, _COUNTED)


@compiled
def serve_block(s, block, low, high):
    """Serve the faults `low` … `high` of the batch, all of one block."""
    row = s.blocks[block]
    advice = row[ADVICE]
    base = row[FIRST] & ~(BLOCK_PAGES - 1)
    spend(s, FAULT, s.rates[PER_SERVICE])
    fresh = nowhere_resident(s, block)
    coming = 0
    mapped = 0
    for entry in range(low, high):
        page = s.batch[entry] >> 1
        writes = s.batch[entry] & 1 == 1
        pinned = watch(s, block, page, GPU_PROCESSOR)
        choice = choose_for_gpu(s.pages[page], advice, writes, pinned)
        if choice in (MIGRATE, DUPLICATE):
            s.want[page - base] = FAULTED
            coming += 1
            continue
        if choice == PREFER and fresh:
            fill_on_host(s, block)  # where a block begins to live, all of it does
        elif s.pages[page] & BOTH == 0:
            s.pages[page] |= ON_HOST
        if s.pages[page] & ON_GPU:
            s.pages[page] |= MAP_READ | MAP_WRITE
        else:
            s.pages[page] |= MAP_REMOTE
            mapped += 1
    if mapped:
        s.totals[row[OWNER], T_REMOTE_MAPS] += mapped
        emit(s, _REMOTE_MAP, s.batch[low] >> 1, mapped * PAGE_BYTES, mapped, _COHERENCE)
    if coming == 0:
        return
    if s.switches[PREFETCHING]:
        if advice & PREFERS_GPU and fresh:
            for offset in range(row[FIRST] - base, row[FIRST] - base + row[PAGES]):
                if s.want[offset] == 0:
                    s.want[offset] = BROUGHT
        elif not advice & PREFERS_HOST and s.switches[OWN_PREFETCH]:
            mark_own(s, row, base)
        elif not advice & PREFERS_HOST:
            add_dense(
                (s.pages, s.words), (s.want, s.marks), s.tree, row[FIRST], row[PAGES], ON_GPU,
                s.switches[THRESHOLD],
            )  # fmt: skip
            if s.switches[DETECT_THRASHING]:
                for offset in range(row[FIRST] - base, row[FIRST] - base + row[PAGES]):
                    if s.want[offset] == BROUGHT and is_pinned(s, base + offset):
                        s.want[offset] = 0
    bring_wanted(s, block, low, high)


@compiled
def serve_batch(s):
    """Serve one batch of the waiting touches; the caller replays them."""
    count = gather_batch(s)
    s.counters[BATCHES] += 1
    if s.counters[STREAK] % s.switches[BATCHES_PER_SERVICE] == 0:
        s.counters[SERVICES] += 1
        spend(s, FAULT, s.rates[PER_WAKE])
    s.counters[STREAK] += 1
    spend(s, FAULT, s.rates[PER_BATCH])
    low = 0
    while low < count:  # one row an array, so that each row has one owner
        owner = s.blocks[s.block_of[s.batch[low] >> 1], OWNER]
        high = low
        while high < count and s.blocks[s.block_of[s.batch[high] >> 1], OWNER] == owner:
            high += 1
        s.totals[owner, T_FAULTS] += high - low
        emit(s, _GROUP, s.batch[low] >> 1, 0, high - low, _UNKNOWN)
        low = high
    low = 0
    while low < count:
        block = s.block_of[s.batch[low] >> 1]
        high = low
        while high < count and s.block_of[s.batch[high] >> 1] == block:
            high += 1
        serve_block(s, block, low, high)
        low = high
