"""Pages move between host and GPUs: with faults, by their neighbours, or as the program asks."""

from __future__ import annotations

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.eviction import charge, note_empty
from louvain_um.profiling.simulator.driver.gpus import update_others
from louvain_um.profiling.simulator.driver.state import (
    bring_words,
    compiled,
    emit,
    from_python,
    inlined,
    note_change,
    spend,
)
from louvain_um.profiling.simulator.driver.thrashing import forget_pages, note_moves


@inlined
def comes_from_host(s, bits):
    """Return whether a page comes from the host, 0 or 1; count it if it comes from another GPU."""
    # A GPU that is reached is closer than the host; from others, pages come by way of the host.
    if bits & (c.BOTH | c.ON_PEER) == c.ON_HOST:
        return 1
    if bits & c.ELSEWHERE and not bits & c.ON_GPU:
        s.counters[c.BETWEEN] += 1
        s.counters[c.STAGED] += 0 if bits & c.ON_PEER else 1
    return 0


@inlined
def duplicated(bits):
    """Return the state of a page that the GPU got a copy of; one on its way stays on the host."""
    return (bits & c.ANYWHERE) | c.ON_GPU | c.MAP_READ | (c.ON_HOST if bits & c.ON_OTHER else 0)


@inlined
def put_on_gpu(s, block, page, duplicate):
    """Make a page resident on the GPU; return the bytes copied and host copies dropped, 0 or 1."""
    bits = s.pages[page]
    copied = comes_from_host(s, bits)
    if not bits & c.ON_GPU:
        s.blocks[block, c.RESIDENT] += 1
    if duplicate and bits & (c.ON_HOST | c.ELSEWHERE):
        s.pages[page] = duplicated(bits)
        return copied, 0
    s.pages[page] = c.ON_GPU | c.MAP_READ | c.MAP_WRITE
    return copied, 1 if bits & c.BOTH == c.BOTH else 0


@inlined
def bring_along(s, row, duplicate):
    """Make a block's BROUGHT pages resident on the GPU; clear what was wanted."""
    if row[c.PAGES] == c.BLOCK_PAGES and s.switches[c.GPUS] <= 1:
        copies, copied, came = bring_words(s.words[row[c.FIRST] >> 3 :], s.marks, duplicate)
        row[c.RESIDENT] += came
        return copies, copied
    pages = s.pages[row[c.FIRST] : row[c.FIRST] + row[c.PAGES]]
    want = s.want[row[c.FIRST] & (c.BLOCK_PAGES - 1) :]
    copies = 0
    copied = 0
    came = 0
    before = 0
    for i in range(len(pages)):
        coming = 0
        if want[i] == c.BROUGHT:
            bits = pages[i]
            came += 1 - (bits & c.ON_GPU)
            coming = comes_from_host(s, bits)
            if duplicate and bits & (c.ON_HOST | c.ELSEWHERE):
                pages[i] = duplicated(bits)
            else:
                pages[i] = c.ON_GPU | c.MAP_READ | c.MAP_WRITE
        copied += coming
        copies += coming & ~before
        before = coming
        want[i] = 0
    row[c.RESIDENT] += came
    return copies, copied


@inlined
def note_between(s, row, cause):
    """Charge and record pages that came from other GPUs, if any did; return how many."""
    return charge_between(s, row, cause) if s.counters[c.BETWEEN] else 0


@compiled
def charge_between(s, row, cause):
    """Charge and record pages that came from other GPUs; return how many."""
    pages = s.counters[c.BETWEEN]
    staged = s.counters[c.STAGED]
    s.counters[c.BETWEEN] = s.counters[c.STAGED] = 0
    direct = (pages - staged) * c.PAGE_BYTES
    staged *= c.PAGE_BYTES
    asked = cause == c.C_USER
    rate = s.rates[c.PER_BYTE_PEER_PREFETCH if asked else c.PER_BYTE_PEER]
    back = s.rates[c.PER_BYTE_PREFETCH_BACK if asked else c.PER_BYTE_OUT]
    there = s.rates[c.PER_BYTE_PREFETCH if asked else c.PER_BYTE_IN]
    spend(s, c.PREFETCH if asked else c.MIGRATE, rate * direct + (back + there) * staged)
    totals = s.totals[row[c.OWNER]]
    totals[c.T_IN_PEER] += direct
    totals[c.T_OUT_USER if asked else c.T_OUT_DEMAND] += staged
    if direct:
        emit(s, c.K_DTOD, row[c.FIRST], direct, 1, cause)
    if staged:
        emit(s, c.K_DTOH, row[c.FIRST], staged, 1, cause)
        emit(s, c.K_HTOD, row[c.FIRST], staged, 1, cause)
    if asked:
        totals[c.T_IN_USER] += staged
    elif cause == c.C_COUNTED:
        totals[c.T_IN_COUNTED] += staged
    else:
        totals[c.T_IN_DENSITY if cause == c.C_PREFETCH else c.T_IN_DEMAND] += staged
    return pages


@inlined
def note_first_touches(s, row, pages):
    """Note pages that came to be on the device without a copy."""
    if pages:
        emit(s, c.K_FIRST_TOUCH, row[c.FIRST], pages * c.PAGE_BYTES, pages, c.C_UNKNOWN)


@inlined
def bring_wanted(s, block, low, high):
    """Bring the wanted pages of a block to the GPU, faults `low` … `high` of the batch first."""
    row = s.blocks[block]
    mostly = (row[c.ADVICE] & c.READ_MOSTLY) != 0
    base = row[c.FIRST] & ~(c.BLOCK_PAGES - 1)
    if s.switches[c.DETECT_THRASHING]:
        note_moves(s, block, c.ON_GPU)
    charge(s, block)
    before = row[c.RESIDENT]
    demand = 0
    dropped = 0
    for entry in range(low, high):
        page = s.batch[entry] >> 1
        if s.want[page - base] == c.FAULTED:
            copied, gone = put_on_gpu(s, block, page, mostly and s.batch[entry] & 1 == 0)
            demand += copied
            dropped += gone
    between = note_between(s, row, c.C_COHERENCE)
    rows, density = bring_along(s, row, mostly)
    between += note_between(s, row, c.C_PREFETCH)
    spend(s, c.MIGRATE, s.rates[c.PER_BYTE_IN] * (demand + density) * c.PAGE_BYTES)
    totals = s.totals[row[c.OWNER]]
    totals[c.T_IN_DEMAND] += demand * c.PAGE_BYTES
    totals[c.T_IN_DENSITY] += density * c.PAGE_BYTES
    totals[c.T_DROPPED_COPIES] += dropped * c.PAGE_BYTES
    if demand:
        emit(s, c.K_HTOD, s.batch[low] >> 1, demand * c.PAGE_BYTES, demand, c.C_COHERENCE)
    if density:
        emit(s, c.K_HTOD, row[c.FIRST], density * c.PAGE_BYTES, rows, c.C_PREFETCH)
    note_first_touches(s, row, row[c.RESIDENT] - before - demand - density - between)


@compiled
def fill_on_host(s, block):
    """Make every untouched page of a block resident on the host."""
    row = s.blocks[block]
    home = c.ON_HOST | (c.MAP_REMOTE if row[c.ADVICE] & c.ACCESSED_BY else 0)
    for page in range(row[c.FIRST], row[c.FIRST] + row[c.PAGES]):
        if s.pages[page] & c.ANYWHERE == 0:
            s.pages[page] = home


@inlined
def put_on_host(s, block, page, duplicate):
    """Make a page resident on the host; return the bytes copied and GPU copies dropped, 0 or 1."""
    row = s.blocks[block]
    bits = s.pages[page]
    on_gpus = 1 if bits & c.ON_GPUS else 0
    on_host = (bits >> 1) & 1
    copied = on_gpus & ~on_host
    if duplicate and bits & c.ON_GPUS:
        s.pages[page] = (bits & c.ANYWHERE) | c.ON_HOST | (c.MAP_READ if bits & c.ON_GPU else 0)
        return copied, 0
    if bits & c.ON_GPU:
        row[c.RESIDENT] -= 1
    s.pages[page] = c.ON_HOST | (
        c.MAP_REMOTE if row[c.ADVICE] & c.ACCESSED_BY else bits & c.MAP_REMOTE
    )
    if bits & c.ELSEWHERE and not row[c.ADVICE] & c.ACCESSED_BY:
        s.pages[page] = c.ON_HOST
    return copied, on_gpus & on_host


@from_python
def to_gpu(s, gpus, first, end):
    """Bring the pages `first` … `end` that are not on the GPU, in one pass."""
    while first < end:
        block = s.block_of[first]
        row = s.blocks[block]
        stop = min(end, row[c.FIRST] + row[c.PAGES])
        if row[c.ADVICE] & (c.PINNED | c.DEVICE):
            first = stop
            continue
        if s.switches[c.DETECT_THRASHING]:
            forget_pages(s, block, first, stop)
        mostly = (row[c.ADVICE] & c.READ_MOSTLY) != 0
        missing = 0
        for page in range(first, stop):
            if not s.pages[page] & c.ON_GPU:
                s.want[page & (c.BLOCK_PAGES - 1)] = c.BROUGHT
                missing += 1
        if missing:
            charge(s, block)
            before = row[c.RESIDENT]
            copies = 0
            for page in range(first, stop):
                if s.want[page & (c.BLOCK_PAGES - 1)]:
                    s.want[page & (c.BLOCK_PAGES - 1)] = 0
                    copied, _ = put_on_gpu(s, block, page, mostly)
                    copies += copied
            rate = s.rates[c.PER_BYTE_DUPLICATE if mostly else c.PER_BYTE_PREFETCH]
            spend(s, c.PREFETCH, rate * copies * c.PAGE_BYTES)
            s.totals[row[c.OWNER], c.T_IN_USER] += copies * c.PAGE_BYTES
            if copies:
                emit(s, c.K_HTOD, first, copies * c.PAGE_BYTES, 1, c.C_USER)
            between = note_between(s, row, c.C_USER)
            note_first_touches(s, row, row[c.RESIDENT] - before - copies - between)
            if gpus is not None:
                note_change(s, block)
                update_others(s, gpus)
        first = stop


@from_python
def to_host(s, gpus, first, end):
    """Bring the pages `first` … `end` of the GPU to the host, clean ones, too."""
    while first < end:
        block = s.block_of[first]
        row = s.blocks[block]
        stop = min(end, row[c.FIRST] + row[c.PAGES])
        if row[c.ADVICE] & (c.PINNED | c.DEVICE):
            first = stop
            continue
        if s.switches[c.DETECT_THRASHING]:
            forget_pages(s, block, first, stop)
        copies = 0
        mostly = (row[c.ADVICE] & c.READ_MOSTLY) != 0
        resident = row[c.RESIDENT]
        for page in range(first, stop):
            if s.pages[page] & c.ANYWHERE == 0:
                s.pages[page] = c.ON_HOST | (c.MAP_REMOTE if row[c.ADVICE] & c.ACCESSED_BY else 0)
            elif mostly and s.pages[page] & c.ON_GPU:
                copies += 0 if s.pages[page] & c.ON_HOST else 1
                s.pages[page] = (s.pages[page] & c.ANYWHERE) | c.ON_HOST | c.MAP_READ
            elif s.pages[page] & c.ON_GPU:
                copied, _ = put_on_host(s, block, page, False)
                copies += copied
        if resident and row[c.RESIDENT] == 0:
            note_empty(s, block)
        spend(s, c.PREFETCH, s.rates[c.PER_BYTE_PREFETCH_BACK] * copies * c.PAGE_BYTES)
        s.totals[row[c.OWNER], c.T_OUT_USER] += copies * c.PAGE_BYTES
        if copies:
            emit(s, c.K_DTOH, first, copies * c.PAGE_BYTES, 1, c.C_USER)
        if gpus is not None:
            note_change(s, block)
            update_others(s, gpus)
        first = stop
