"""What a simulation takes of the host's memory, told before it is allocated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from louvain_um.core.headroom import check_host_memory
from louvain_um.placement.machine.machine import Machine
from louvain_um.profiling.simulator.driver.constants import BLOCK_PAGES
from louvain_um.profiling.simulator.driver.options import Driver
from louvain_um.profiling.simulator.steps import Array

PAGE_STATE: Final = 25
"""Bytes of state of a page, and of temporary arrays that fill it."""

THRASHING_STATE: Final = 40
"""Bytes of a page more, where thrashing is detected."""

BLOCK_STATE: Final = 1000
"""Bytes of a block: a row of a list in Python, and its figures."""

WAITING: Final = 32
"""Bytes of a touch in flight, and of a fault of a batch."""


def check_state(arrays: Sequence[Array], machine: Machine, driver: Driver) -> None:
    """Raise an error if simulating arrays takes more memory than the host has."""
    pages = sum(-(-array.pages // BLOCK_PAGES) * BLOCK_PAGES for array in arrays)
    each = PAGE_STATE + (THRASHING_STATE if driver.thrashing else 0)
    needed = pages * each + pages // BLOCK_PAGES * BLOCK_STATE
    needed += WAITING * (machine.faults_in_flight + driver.batch_size)
    size = sum(array.nbytes for array in arrays)
    check_host_memory(needed, f"simulating arrays of {size:,} bytes", "record a smaller graph")
