"""From a trace, placements and a machine to the compiled parts' initial state."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.headroom import check_host_memory
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import rate
from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import State, StateSizes, empty_state
from louvain_um.profiling.simulator.driver.user_functions import (
    COUNTER_THRESHOLD,
    EVICTIONS,
    Driver,
    eviction_address,
    prefetcher_address,
)
from louvain_um.profiling.simulator.layout import Layout
from louvain_um.profiling.simulator.touches import Access, Touches
from louvain_um.profiling.simulator.trace import (
    Array,
    HostTouches,
    Launch,
    Prefetch,
    Step,
    Trace,
    begun_later,
    live_peak,
)

CONTENDED_NS = 1e9 * rate("contended")
"""Time of an atomic over the bus to a contended address."""

BLOCKS = 2.5
"""Resident blocks per touch in flight: an H200 has 660 and 264."""

PAGE_STATE: Final = 29
"""Bytes of state of a page, and of temporary arrays that fill it."""

THRASHING_STATE: Final = 72
"""Bytes of a page more, where thrashing is detected."""

BLOCK_STATE: Final = 1000
"""Bytes of a block: a row of a list in Python, and its figures."""

WAITING: Final = 40
"""Bytes of a touch in flight, and of a fault of a batch."""

_EVENT_ROWS = 1 << 18
_PARTIAL_ROOTS = 4  # where less than a root chunk of memory is left
_MAPPED = c.PREFERS_HOST | c.ACCESSED_BY


def build_state(
    trace: Trace,
    layout: Layout,
    machine: Machine,
    driver: Driver,
    *,
    capacity: int,
    record: bool,
    gpus: int = 1,
    number: int = 0,
) -> State:
    """Return the state of one GPU, by its number among several, before the first step."""
    arrays = trace.arrays
    host_touches = any(isinstance(step, HostTouches) for step in trace.steps)
    brought = {s.array for s in trace.steps if isinstance(s, Prefetch) and s.to == "gpu"}
    detect = driver.thrashing and (host_touches or gpus > 1)
    switches = np.zeros(c.SWITCHES, np.int64)
    switches[c.CAPACITY] = capacity // c.PAGE_BYTES
    # If the program evicts, the driver's own order is the fallback.
    orders: dict[str, int] = {name: number for number, name in enumerate(EVICTIONS)}
    orders["program"] = c.BY_MIGRATION
    switches[c.POLICY] = orders.get(driver.eviction, c.BY_USER)
    switches[c.USER_EVICTION] = eviction_address(driver.eviction)
    switches[c.USER_PREFETCH] = prefetcher_address(driver.prefetch)
    heeded = machine.coherent and machine.host_page_bytes > c.PAGE_BYTES
    counted = COUNTER_THRESHOLD if heeded else 0
    given = driver.access_counters
    switches[c.COUNTER_THRESHOLD] = counted if given is None else given
    switches[c.BATCH_SIZE] = driver.batch_size
    switches[c.THRESHOLD] = driver.density_percent
    switches[c.MIN_FAULTS] = driver.min_faults
    switches[c.COHERENT] = machine.coherent
    switches[c.WINDOW] = machine.faults_in_flight
    switches[c.DETECT_THRASHING] = detect
    switches[c.RECORD] = record
    switches[c.PASSES] = driver.prefetch_passes
    switches[c.BATCHES_PER_SERVICE] = driver.batches_per_service
    switches[c.PREFETCHING] = driver.prefetcher
    switches[c.THRASH_EVENTS] = driver.thrash_events
    switches[c.THRASH_WINDOW] = round(driver.thrash_window_seconds * 1e9)
    switches[c.THRASH_THROTTLES] = driver.thrash_throttles
    switches[c.ADAPTIVE] = driver.version != "580"
    switches[c.HOST_PAGES] = machine.host_page_bytes // c.PAGE_BYTES
    switches[c.THRASH_PIN] = round(driver.thrash_pin_seconds * 1e9)
    switches[c.GPUS], switches[c.NUMBER] = gpus, number
    switches[c.LINK] = c.ON_OTHER if machine.peer_link == "none" else c.ON_PEER
    switches[c.FAST_LINK] = machine.peer_link == "nvlink"
    sizes = StateSizes(
        pages=layout.pages,
        blocks=len(layout.blocks),
        roots=_roots(layout.blocks),
        arrays=len(arrays),
        window=max(machine.faults_in_flight, driver.batch_size),
        batch=driver.batch_size,
        events=_EVENT_ROWS if record else 1,
        thrash=detect,
    )
    per_access = _per_access(arrays, layout, machine, several=gpus > 1)
    state = empty_state(sizes, switches, _rates(machine, trace.hidden), per_access)
    later = begun_later(trace.steps)
    _fill(state, arrays, layout, later, driver)
    _check_room(state, trace, layout, capacity, brought)
    return state


def arrivals(touches: Touches, chain: int, machine: Machine) -> NDArray[np.int64]:
    """Return the amounts of touches on a machine, which may hold fewer blocks than recorded."""
    if not chain:
        return touches.amount
    most = chain * int(BLOCKS * machine.faults_in_flight)
    barrier = touches.way == Access.BARRIER
    return np.where(barrier, np.minimum(touches.amount, most), touches.amount)


def _rates(machine: Machine, hidden: float) -> NDArray[np.float64]:
    rates = np.zeros(c.RATES)
    rates[c.PER_BATCH] = machine.fault_batch_seconds * 1e9
    rates[c.PER_WAKE] = machine.fault_wake_seconds * 1e9
    rates[c.PER_SERVICE] = machine.block_service_seconds * 1e9
    rates[c.PER_HOST_FAULT] = machine.cpu_fault_seconds * 1e9
    rates[c.PER_BYTE_IN] = 1e9 / machine.migrate_to_device
    rates[c.PER_BYTE_OUT] = 1e9 / machine.evict_to_host
    rates[c.PER_BYTE_PREFETCH] = 1e9 / machine.prefetch_to_device
    rates[c.PER_BYTE_PREFETCH_BACK] = 1e9 / machine.prefetch_to_host
    rates[c.PER_BYTE_DUPLICATE] = 1e9 / machine.prefetch_duplicate
    rates[c.SHARE_HIDDEN] = hidden
    peer = 1e9 / (machine.peer_copy_bandwidth or machine.copy_to_device)
    rates[c.PER_BYTE_PEER] = peer * machine.copy_to_device / machine.migrate_to_device
    rates[c.PER_BYTE_PEER_PREFETCH] = peer * machine.copy_to_device / machine.prefetch_to_device
    return rates


def _per_access(
    arrays: tuple[Array, ...], layout: Layout, machine: Machine, *, several: bool
) -> NDArray[np.float64]:
    """Return ns by array, LOCAL, REMOTE or FAR, and way, by where an array is not managed."""
    table = np.zeros((len(arrays), 3 if several else 2, c.WAYS))
    table[:, c.LOCAL, [c.READ, c.WRITE]] = 1e9 / machine.device_bandwidth
    table[:, c.LOCAL, [c.GATHER, c.SCATTER]] = 1e9 / machine.device_random_rate
    table[:, c.LOCAL, [c.ATOMIC, c.CONTENDED]] = 1e9 / machine.device_atomic_rate
    table[:, c.REMOTE, c.READ] = 1e9 / machine.remote_bandwidth
    table[:, c.REMOTE, c.WRITE] = 1e9 / machine.remote_write_bandwidth
    table[:, c.REMOTE, [c.GATHER, c.SCATTER]] = 1e9 / machine.remote_random_rate
    table[:, c.REMOTE, c.ATOMIC] = 1e9 / machine.remote_atomic_rate
    table[:, c.REMOTE, c.CONTENDED] = CONTENDED_NS
    table[:, c.REMOTE, c.BARRIER] = machine.arrival_seconds * 1e9
    peer = machine.with_peer()
    for number, array in enumerate(arrays):
        advice = {part.advice for part in layout.parts(number, array.pages)}
        if any(each & c.PINNED for each in advice):
            rate = 1e9 / machine.pinned_random_rate
            table[number, c.REMOTE, [c.GATHER, c.SCATTER]] = rate
        places = [c.FAR] if several else []
        if any(each & c.PEER for each in advice):
            places.append(c.REMOTE)
        for place in places:
            there = table[number, place]
            there[:] = table[number, c.REMOTE]
            there[c.READ] = 1e9 / peer.remote_bandwidth
            there[c.WRITE] = 1e9 / peer.remote_write_bandwidth
            there[[c.GATHER, c.SCATTER]] = 1e9 / peer.pinned_random_rate
            there[c.ATOMIC] = 1e9 / peer.remote_atomic_rate
            # Assumed: as much faster as other atomics.
            there[c.CONTENDED] *= machine.remote_atomic_rate / peer.remote_atomic_rate
    return table


def _fill(
    state: State, arrays: tuple[Array, ...], layout: Layout, later: Set[int], driver: Driver
) -> None:
    """Put blocks and pages into their initial state."""
    count = len(layout.blocks)
    blocks = state.blocks[:count]
    blocks[:, [c.FIRST, c.PAGES, c.OWNER, c.ADVICE]] = layout.blocks
    managed = layout.blocks[:, 3] & (c.DEVICE | c.PINNED) == 0
    whole = np.flatnonzero(managed & (layout.blocks[:, 1] == c.BLOCK_PAGES))
    blocks[whole, c.CHUNK] = whole
    lengths = layout.blocks[:, 1]
    numbers = np.repeat(np.arange(count, dtype=np.int32), lengths)
    within = np.arange(len(numbers)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    state.block_of[np.repeat(layout.blocks[:, 0], lengths) + within] = numbers
    for part in layout.ranges:
        if part.advice & c.DEVICE:
            bits = c.ON_GPU | c.MAP_READ | c.MAP_WRITE
        elif part.advice & c.PINNED or (layout.pooled and part.advice & _MAPPED == _MAPPED):
            bits = c.ON_HOST | c.MAP_REMOTE  # a host arena is filled before its first use
        else:
            bits = 0
        state.pages[part.first : part.end] = bits
    for number, array in enumerate(arrays):
        shared = layout.pooled or number in layout.pools
        if array.starts != "host" or (shared and number in later):
            continue
        for part in layout.parts(number, array.pages):
            if not part.advice & (c.DEVICE | c.PINNED):
                bits = c.ON_HOST | (c.MAP_REMOTE if part.advice & c.ACCESSED_BY else 0)
                end = part.end
                if layout.pooled and not part.advice & _MAPPED:
                    end = _written(part.end, layout, driver)
                state.pages[part.first : end] = bits


def _roots(blocks: NDArray[np.int64]) -> int:
    """Return how many root chunks small blocks share at most."""
    first, pages, _, advice = blocks.T
    # Also those placed on a device, which others see as a peer: they may leave and return.
    small = (pages < c.BLOCK_PAGES) & (advice & (c.PINNED | c.PEER) != c.PINNED)
    low = -(-first // c.BIG_PAGES)
    big = np.maximum((first + pages) // c.BIG_PAGES - low, 0)
    # A further piece is split, or a further root chunk, only if no piece is free.
    split = (pages - big * c.BIG_PAGES)[small].sum() // c.BIG_PAGES + 1
    slots = int(big[small].sum() + split)
    return -(-slots // c.LEAVES) + _PARTIAL_ROOTS if small.any() else 0


def _written(end: int, layout: Layout, driver: Driver) -> int:
    """Return where the pages end that are on the host once it wrote an arena up to `end`."""
    there = max(part.end for part in layout.ranges if part.first < end <= part.end)
    base = (end - 1) // c.BLOCK_PAGES * c.BLOCK_PAGES
    count = -(-(end - base) // c.BIG_PAGES) * c.BIG_PAGES if driver.prefetcher else end - base
    size = c.BIG_PAGES
    while driver.prefetcher and size < c.BLOCK_PAGES:
        size *= 2
        if count < size and 100 * count > driver.density_percent * size:
            count = size
    return min(base + count, there)


def _check_room(
    state: State, trace: Trace, layout: Layout, capacity: int, brought: Set[int]
) -> None:
    """Reserve memory for device ranges, and a block if anything migrates."""
    arrays = trace.arrays
    taken = [0] * len(arrays)
    returning = _returning(trace.steps)
    migrates = False
    for number, array in enumerate(arrays):
        for part in layout.parts(number, array.pages):
            if part.advice & c.DEVICE:
                taken[number] += part.end - part.first
                migrates |= number in returning
            elif number in brought or not part.advice & (c.PINNED | c.PREFERS_HOST):
                migrates = True
    later = begun_later(trace.steps)
    pages = sum(size for number, size in enumerate(taken) if number not in later)
    needed = live_peak(trace, taken)
    if layout.pooled:  # arenas are allocated whole at the start
        pages = needed = sum(p.end - p.first for p in layout.ranges if p.advice & c.DEVICE)
    # The driver allocates device memory in whole blocks.
    needed *= c.PAGE_BYTES
    needed = -(-needed // c.BLOCK_BYTES) * c.BLOCK_BYTES + (c.BLOCK_BYTES if migrates else 0)
    if needed > capacity:
        order = sorted(range(len(arrays)), key=lambda number: -taken[number])[:3]
        largest = [(arrays[i].name, taken[i] * c.PAGE_BYTES) for i in order if taken[i]]
        remedy = f"raise the budget to {needed >> 20}MiB or choose another memory policy"
        raise MemoryBudgetError(needed, capacity, largest, remedy)
    state.counters[c.USED] = state.counters[c.PEAK] = pages


def _returning(steps: Sequence[Step]) -> set[int]:
    """Return arrays that the host touches, and a kernel after that."""
    away, found = set[int](), set[int]()
    for step in steps:
        if isinstance(step, HostTouches):
            away |= set(step.touches.array.tolist())
        elif isinstance(step, Launch) and away:
            found |= away & set(np.unique(step.touches.array).tolist())
    return found


def check_peer(trace: Trace, layout: Layout, room: int) -> None:
    """Raise an error if what the placement "peer" puts in another GPU's memory does not fit."""
    taken = {
        array.name: c.PAGE_BYTES
        * sum(p.end - p.first for p in layout.parts(number, array.pages) if p.advice & c.PEER)
        for number, array in enumerate(trace.arrays)
    }
    if sum(taken.values()) > room:
        raise MemoryBudgetError(
            sum(taken.values()), room, taken.items(), remedy="leave out the other GPU's memory"
        )


def check_state(arrays: Sequence[Array], machine: Machine, driver: Driver, gpus: int = 1) -> None:
    """Raise an error if simulating arrays takes more memory than the host has."""
    pages = sum(-(-array.pages // c.BLOCK_PAGES) * c.BLOCK_PAGES for array in arrays)
    each = PAGE_STATE * gpus + (THRASHING_STATE if driver.thrashing else 0)
    needed = pages * each + pages // c.BLOCK_PAGES * BLOCK_STATE * gpus
    needed += WAITING * (machine.faults_in_flight + driver.batch_size)
    size = sum(array.nbytes for array in arrays)
    check_host_memory(needed, f"simulating arrays of {size:,} bytes", "record a smaller graph")
