"""Where a page goes when it faults."""

from __future__ import annotations

from typing import Any, NamedTuple

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import inlined

DUPLICATE = 4
"""Added to where a page goes if the copies that are there stay."""


class Advice(NamedTuple):
    """What was advised of a page; processors are ON_HOST and ON_GPU, 0 is none."""

    preferred: Any
    accessed_by: Any  # bits of processors
    duplicates: Any  # DISABLED, UNSET or ENABLED


DISABLED = 0
UNSET = 1
ENABLED = 2


@inlined
def advice_of(bits):
    """Return the advice of a block's bits."""
    preferred = c.ON_HOST if bits & c.PREFERS_HOST else c.ON_GPU if bits & c.PREFERS_GPU else 0
    accessed_by = c.ON_GPU if bits & c.ACCESSED_BY else 0
    return Advice(preferred, accessed_by, ENABLED if bits & c.READ_MOSTLY else UNSET)


@inlined
def choose(processor, bits, advice, pin, reads, coherent, counted):
    """Return where a page goes that a processor accesses; the first matching rule wins.

    From elsewhere, it is mapped over the bus. `pin` is where a thrashing page is pinned, `counted`
    whether access counters ask, which count as readers.
    """
    where = bits & c.BOTH
    duplicated = where == c.BOTH and advice.duplicates != DISABLED and pin == 0
    if advice.duplicates == ENABLED or duplicated:
        return processor | DUPLICATE if reads else processor
    if advice.preferred == processor:
        return processor
    if pin != 0:
        return pin
    # Over PCIe, the host does not reach the GPU's memory.
    reaches = processor == c.ON_GPU or coherent
    if where == 0:
        return advice.preferred if advice.preferred != 0 and reaches else processor
    if where & processor:
        return processor
    if advice.accessed_by & processor and reaches and not counted:
        return where
    if advice.preferred != 0 and reaches:
        return advice.preferred
    return processor
