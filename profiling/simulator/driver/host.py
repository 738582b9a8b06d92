"""Touches of the host: its faults are served one by one."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.simulator.driver.compiled import compiled
from louvain_um.profiling.simulator.driver.constants import (
    ACCESSED_BY,
    ADVICE,
    BLOCK_PAGES,
    BOTH,
    COHERENT,
    EVENTS,
    FIRST,
    GATHER,
    HOST,
    MAP_READ,
    MAP_REMOTE,
    ON_GPU,
    ON_HOST,
    OWNER,
    PAGE_BYTES,
    PAGES,
    PER_BYTE_OUT,
    PER_HOST_FAULT,
    PREFERS_GPU,
    PREFETCHING,
    READ,
    RECORD,
    RESIDENT,
    T_DROPPED_COPIES,
    T_HITS,
    T_HOST_FAULTS,
    T_OUT_DEMAND,
    T_REMOTE_MAPS,
    T_TOUCHES,
    THRESHOLD,
    WRITE_BACK,
)
from louvain_um.profiling.simulator.driver.density import BROUGHT, FAULTED, add_dense
from louvain_um.profiling.simulator.driver.eviction import release
from louvain_um.profiling.simulator.driver.launch import EVENT_RESERVE
from louvain_um.profiling.simulator.driver.residency import (
    DUPLICATE,
    HOST_PROCESSOR,
    PREFER,
    STAY,
    choose_for_host,
    is_pinned,
    watch,
)
from louvain_um.profiling.simulator.driver.service import bring_wanted
from louvain_um.profiling.simulator.driver.state import emit, spend

_DTOH = int(Kind.DTOH)
_CPU_FAULT = int(Kind.CPU_FAULT)
_REMOTE_MAP = int(Kind.REMOTE_MAP)
_COHERENCE = int(Cause.COHERENCE)
_PREFETCH = int(Cause.PREFETCH)
_UNKNOWN = int(Cause.UNKNOWN)


@compiled
def put_on_host(s, block, page, duplicate):
    """Make a page resident on the host; return the bytes copied and GPU copies dropped, 0 or 1."""
    row = s.blocks[block]
    bits = s.pages[page]
    copied = 1 if bits & BOTH == ON_GPU else 0
    if duplicate and bits & ON_GPU:
        s.pages[page] = BOTH | MAP_READ
        return copied, 0
    if bits & ON_GPU:
        row[RESIDENT] -= 1
    s.pages[page] = ON_HOST | (MAP_REMOTE if row[ADVICE] & ACCESSED_BY else bits & MAP_REMOTE)
    return copied, 1 if bits & BOTH == BOTH else 0


@compiled
def serve_host(s, block, page, writes, choice):
    """Serve one fault of the host."""
    row = s.blocks[block]
    base = row[FIRST] & ~(BLOCK_PAGES - 1)
    totals = s.totals[row[OWNER]]
    totals[T_HOST_FAULTS] += 1
    spend(s, HOST, s.rates[PER_HOST_FAULT])
    emit(s, _CPU_FAULT, page, 0, 1, _UNKNOWN)
    pinned = watch(s, block, page, HOST_PROCESSOR)
    if choice == PREFER:  # a first home on the GPU, which the host reaches in place
        s.want[page - base] = BROUGHT
        bring_wanted(s, block, 0, 0)
        return
    s.want[page - base] = FAULTED
    if s.switches[PREFETCHING] and not row[ADVICE] & PREFERS_GPU:
        add_dense(
            (s.pages, s.words), (s.want, s.marks), s.tree, row[FIRST], row[PAGES], ON_HOST,
            s.switches[THRESHOLD],
        )  # fmt: skip
    demand = 0
    density = 0
    dropped = 0
    for offset in range(row[FIRST] - base, row[FIRST] - base + row[PAGES]):
        wanted = s.want[offset]
        s.want[offset] = 0
        if wanted == 0 or (wanted == BROUGHT and is_pinned(s, base + offset)):
            continue
        copied, gone = put_on_host(s, block, base + offset, choice == DUPLICATE)
        dropped += gone
        if wanted == FAULTED:
            demand += copied
        else:
            density += copied
    if pinned:
        s.pages[page] |= MAP_REMOTE
        totals[T_REMOTE_MAPS] += 1
        emit(s, _REMOTE_MAP, page, PAGE_BYTES, 1, _COHERENCE)
    if row[RESIDENT] == 0:
        release(s, block)
    spend(s, WRITE_BACK, s.rates[PER_BYTE_OUT] * (demand + density) * PAGE_BYTES)
    totals[T_OUT_DEMAND] += (demand + density) * PAGE_BYTES
    totals[T_DROPPED_COPIES] += dropped * PAGE_BYTES
    if demand:
        emit(s, _DTOH, page, demand * PAGE_BYTES, 1, _COHERENCE)
    if density:
        emit(s, _DTOH, row[FIRST], density * PAGE_BYTES, 1, _PREFETCH)


@compiled
def run_host(s, first, length, ways, cursor):
    """Run the host's touches from `cursor`; return whether they ended, see `launch.run`."""
    while cursor[0] < len(first):
        i = cursor[0]
        writes = ways[i] not in (READ, GATHER)
        for page in range(first[i] + cursor[1], first[i] + length[i]):
            block = s.block_of[page]
            row = s.blocks[block]
            bits = s.pages[page]
            hit = bits & ON_HOST and not (writes and bits & ON_GPU)
            if not hit:
                choice = choose_for_host(bits, row[ADVICE], writes, s.switches[COHERENT] != 0)
                hit = choice == STAY
                if not hit:
                    if s.switches[RECORD] and s.counters[EVENTS] + EVENT_RESERVE > len(s.events):
                        cursor[1] = page - first[i]
                        return False
                    serve_host(s, block, page, writes, choice)
            s.totals[row[OWNER], T_TOUCHES] += 1
            s.totals[row[OWNER], T_HITS] += 1 if hit else 0
        cursor[0] = i + 1
        cursor[1] = 0
    return True
