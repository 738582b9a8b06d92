"""Explicit prefetches, to the GPU and back."""

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
    DEVICE,
    FIRST,
    MAP_READ,
    MAP_REMOTE,
    ON_GPU,
    ON_HOST,
    OWNER,
    PAGE_BYTES,
    PAGES,
    PER_BYTE_DUPLICATE,
    PER_BYTE_PREFETCH,
    PER_BYTE_PREFETCH_BACK,
    PINNED,
    READ_MOSTLY,
    RESIDENT,
    T_IN_USER,
    T_OUT_USER,
)
from louvain_um.profiling.simulator.driver.constants import PREFETCH as PREFETCH_TERM
from louvain_um.profiling.simulator.driver.density import BROUGHT
from louvain_um.profiling.simulator.driver.eviction import release
from louvain_um.profiling.simulator.driver.host import put_on_host
from louvain_um.profiling.simulator.driver.service import charge_wanted, put_on_gpu
from louvain_um.profiling.simulator.driver.state import emit, spend

_HTOD = int(Kind.HTOD)
_DTOH = int(Kind.DTOH)
_USER = int(Cause.USER)


@compiled
def to_gpu(s, first, end):
    """Bring the pages `first` … `end` that are not on the GPU, in one pass."""
    while first < end:
        block = s.block_of[first]
        row = s.blocks[block]
        stop = min(end, row[FIRST] + row[PAGES])
        if row[ADVICE] & (PINNED | DEVICE):
            first = stop
            continue
        mostly = (row[ADVICE] & READ_MOSTLY) != 0
        missing = 0
        for page in range(first, stop):
            if not s.pages[page] & ON_GPU:
                s.want[page & (BLOCK_PAGES - 1)] = BROUGHT
                missing += 1
        if missing:
            charge_wanted(s, block)
            copies = 0
            for page in range(first, stop):
                if s.want[page & (BLOCK_PAGES - 1)]:
                    s.want[page & (BLOCK_PAGES - 1)] = 0
                    copied, _ = put_on_gpu(s, block, page, mostly)
                    copies += copied
            rate = s.rates[PER_BYTE_DUPLICATE if mostly else PER_BYTE_PREFETCH]
            spend(s, PREFETCH_TERM, rate * copies * PAGE_BYTES)
            s.totals[row[OWNER], T_IN_USER] += copies * PAGE_BYTES
            if copies:
                emit(s, _HTOD, first, copies * PAGE_BYTES, 1, _USER)
        first = stop


@compiled
def to_host(s, first, end):
    """Bring the pages `first` … `end` to the host, clean ones, too."""
    while first < end:
        block = s.block_of[first]
        row = s.blocks[block]
        stop = min(end, row[FIRST] + row[PAGES])
        if row[ADVICE] & (PINNED | DEVICE):
            first = stop
            continue
        copies = 0
        mostly = (row[ADVICE] & READ_MOSTLY) != 0
        resident = row[RESIDENT]
        for page in range(first, stop):
            if s.pages[page] & BOTH == 0:
                s.pages[page] = ON_HOST | (MAP_REMOTE if row[ADVICE] & ACCESSED_BY else 0)
            elif mostly and s.pages[page] & ON_GPU:
                copies += 0 if s.pages[page] & ON_HOST else 1
                s.pages[page] = BOTH | MAP_READ
            elif s.pages[page] & ON_GPU:
                copied, _ = put_on_host(s, block, page, False)
                copies += copied
        if resident and row[RESIDENT] == 0:
            release(s, block)
        spend(s, PREFETCH_TERM, s.rates[PER_BYTE_PREFETCH_BACK] * copies * PAGE_BYTES)
        s.totals[row[OWNER], T_OUT_USER] += copies * PAGE_BYTES
        if copies:
            emit(s, _DTOH, first, copies * PAGE_BYTES, 1, _USER)
        first = stop
