"""A batch of faults, as the driver fetches it from the waiting touches."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

from louvain_um.profiling.simulator.compiled import compiled
from louvain_um.profiling.simulator.constants import BATCH_SIZE, FAULTS, WAITING


@compiled
def sort_keys(keys, count):
    """Sort the first `count` keys, shell sort: batches are short and mostly in order."""
    gap = 1
    while gap * 3 < count:
        gap = gap * 3 + 1
    while gap > 0:
        for i in range(gap, count):
            key = keys[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap //= 3


@compiled
def gather_batch(s):
    """Fetch a batch from the waiting touches, sorted and one entry a page; return its length."""
    fetched = min(s.counters[WAITING], s.switches[BATCH_SIZE])
    s.counters[FAULTS] += fetched
    for entry in range(fetched):
        s.batch[entry] = s.queue[entry, 0] * 2 + (s.queue[entry, 1] & 1)
    sort_keys(s.batch, fetched)
    kept = 0
    for entry in range(fetched):
        # Of reads and writes of one page the write, which sorts last, stands for all.
        if kept and s.batch[kept - 1] >> 1 == s.batch[entry] >> 1:
            kept -= 1
        s.batch[kept] = s.batch[entry]
        kept += 1
    return kept
