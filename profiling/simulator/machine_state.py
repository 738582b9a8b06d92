"""From a trace, placements and a machine to the compiled parts' initial state."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.machine import Machine
from louvain_um.profiling.simulator import constants as c
from louvain_um.profiling.simulator.driver import EVICTIONS, Driver
from louvain_um.profiling.simulator.layout import Layout
from louvain_um.profiling.simulator.state import State, empty_state
from louvain_um.profiling.simulator.trace import Allocate, Array, Trace, live_peak

_EVENT_ROWS = 1 << 18


def build_state(
    trace: Trace,
    layout: Layout,
    machine: Machine,
    driver: Driver,
    *,
    capacity: int,
    record: bool,
    host_touches: bool,
    brought: Set[int],
) -> State:
    """Return the machine before the first step.

    `capacity` is in bytes; `brought` are the arrays that the program prefetches to the device.

    Raises
    ------
    MemoryBudgetError
        The device arrays, and one block beside them if anything else may migrate, do not fit.
    """
    arrays = trace.arrays
    detect = driver.thrashing and host_touches
    switches = np.zeros(c.SWITCHES, np.int64)
    switches[c.CAPACITY] = capacity // c.PAGE_BYTES
    switches[c.POLICY] = EVICTIONS.index(driver.eviction)
    switches[c.BATCH_SIZE] = driver.batch_size
    switches[c.THRESHOLD] = driver.density_percent
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
    switches[c.THRASH_PIN] = round(driver.thrash_pin_seconds * 1e9)
    state = empty_state(
        layout.pages,
        len(layout.blocks),
        len(arrays),
        switches,
        _rates(machine),
        _per_access(arrays, layout, machine),
        window=machine.faults_in_flight,
        batch=driver.batch_size,
        events=_EVENT_ROWS if record else 1,
        thrash=detect,
    )
    _fill(state, arrays, layout)
    _check_room(state, trace, layout, capacity, brought)
    return state


def _rates(machine: Machine) -> NDArray[np.float64]:
    rates = np.zeros(c.RATES)
    rates[c.PER_BATCH] = machine.fault_batch_seconds * 1e9
    rates[c.PER_SERVICE] = machine.block_service_seconds * 1e9
    rates[c.PER_HOST_FAULT] = machine.cpu_fault_seconds * 1e9
    rates[c.PER_BYTE_IN] = 1e9 / machine.migrate_to_device
    rates[c.PER_BYTE_OUT] = 1e9 / machine.evict_to_host
    rates[c.PER_BYTE_PREFETCH] = 1e9 / machine.prefetch_to_device
    rates[c.PER_BYTE_PREFETCH_BACK] = 1e9 / machine.prefetch_to_host
    rates[c.PER_BYTE_DUPLICATE] = 1e9 / machine.prefetch_duplicate
    return rates


def _per_access(arrays: tuple[Array, ...], layout: Layout, machine: Machine) -> NDArray[np.float64]:
    """Return ns by array, LOCAL or REMOTE, and way; page-locked memory has a rate of its own."""
    table = np.zeros((len(arrays), 2, c.WAYS))
    table[:, c.LOCAL, [c.READ, c.WRITE]] = 1e9 / machine.device_bandwidth
    table[:, c.LOCAL, [c.GATHER, c.SCATTER]] = 1e9 / machine.device_random_rate
    table[:, c.LOCAL, c.ATOMIC] = 1e9 / machine.device_atomic_rate
    table[:, c.REMOTE, c.READ] = 1e9 / machine.remote_bandwidth
    table[:, c.REMOTE, c.WRITE] = 1e9 / machine.remote_write_bandwidth
    table[:, c.REMOTE, [c.GATHER, c.SCATTER]] = 1e9 / machine.remote_random_rate
    table[:, c.REMOTE, c.ATOMIC] = 1e9 / machine.remote_atomic_rate
    for part in layout.ranges:
        if part.advice & c.PINNED:
            rate = 1e9 / machine.pinned_random_rate
            table[part.array, c.REMOTE, [c.GATHER, c.SCATTER]] = rate
    return table


def _fill(state: State, arrays: tuple[Array, ...], layout: Layout) -> None:
    """Put blocks and pages into their initial state."""
    blocks = state.blocks
    blocks[:, [c.FIRST, c.PAGES, c.OWNER, c.ADVICE]] = layout.blocks
    blocks[:, [c.PREV, c.NEXT, c.LISTED]] = c.NOWHERE
    lengths = layout.blocks[:, 1]
    numbers = np.repeat(np.arange(len(blocks), dtype=np.int32), lengths)
    within = np.arange(len(numbers)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    state.block_of[np.repeat(layout.blocks[:, 0], lengths) + within] = numbers
    for part in layout.ranges:
        if part.advice & c.DEVICE:
            bits = c.ON_GPU | c.MAP_READ | c.MAP_WRITE
        elif part.advice & c.PINNED:
            bits = c.ON_HOST | c.MAP_REMOTE
        elif arrays[part.array].starts == "nowhere":
            bits = 0
        else:
            bits = c.ON_HOST | (c.MAP_REMOTE if part.advice & c.ACCESSED_BY else 0)
        state.pages[part.first : part.end] = bits


def _check_room(
    state: State, trace: Trace, layout: Layout, capacity: int, brought: Set[int]
) -> None:
    """Take room for device ranges and leave a block for all that migrates."""
    arrays = trace.arrays
    taken = [0] * len(arrays)
    migrates = False
    for part in layout.ranges:
        if part.advice & c.DEVICE:
            taken[part.array] += part.end - part.first
        elif part.array in brought or not part.advice & (c.PINNED | c.PREFERS_HOST):
            migrates = True
    needed = live_peak(trace, taken) * c.PAGE_BYTES
    # The driver gives device memory out in whole blocks.
    needed = -(-needed // c.BLOCK_BYTES) * c.BLOCK_BYTES + (c.BLOCK_BYTES if migrates else 0)
    if needed > capacity:
        order = sorted(range(len(arrays)), key=lambda number: -taken[number])[:3]
        largest = [(arrays[i].name, taken[i] * c.PAGE_BYTES) for i in order if taken[i]]
        raise MemoryBudgetError(needed, capacity, largest)
    later = {step.array for step in trace.steps if isinstance(step, Allocate)}
    pages = sum(size for number, size in enumerate(taken) if number not in later)
    state.counters[c.USED] = state.counters[c.PEAK] = pages
