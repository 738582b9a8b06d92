"""Where a page goes when it faults."""

from __future__ import annotations

from typing import Any, NamedTuple

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.state import inlined

DUPLICATE = 4
"""Added to where a page goes if the copies that are there stay."""


class PageAdvice(NamedTuple):
    """What was advised of a page; processors are ON_HOST, ON_GPU and ON_OTHER, 0 is none."""

    preferred: Any
    accessed_by: Any  # bits of processors
    duplicates: Any  # DISABLED, UNSET or ENABLED


DISABLED = 0
UNSET = 1
ENABLED = 2

FAULT = 0
COUNTERS = 1
FOREIGN = 2
"""Causes of a choice: a fault, a notification of access counters, a fault of another process, which
no trace has."""


@inlined
def advice_of(bits):
    """Return the advice of a block's bits."""
    preferred = c.ON_HOST if bits & c.PREFERS_HOST else c.ON_GPU if bits & c.PREFERS_GPU else 0
    accessed_by = c.ON_GPU if bits & c.ACCESSED_BY else 0
    return PageAdvice(preferred, accessed_by, ENABLED if bits & c.READ_MOSTLY else UNSET)


@inlined
def choose(processor, bits, advice, pin, reads, coherent, cause):
    """Return where a page goes that a processor accesses; the first matching rule wins.

    From elsewhere, it is mapped over the bus. `pin` is where a thrashing page is pinned. Access
    counters count as readers.
    """
    where = bits & c.ANYWHERE
    duplicated = where == c.BOTH and advice.duplicates != DISABLED and pin == 0
    if advice.duplicates == ENABLED or duplicated:
        return processor | DUPLICATE if reads else processor
    if advice.preferred == processor:
        return processor
    if pin != 0:
        return pin
    # Over PCIe, the host does not reach the GPU's memory; a GPU never that of a second one.
    reaches = processor == c.ON_GPU or coherent
    preferred = advice.preferred if reaches and advice.preferred != c.ON_OTHER else 0
    if where == 0:
        return preferred if preferred != 0 else processor
    if where & processor:
        return processor
    stays = advice.accessed_by & processor != 0 or cause == FOREIGN
    if stays and reaches and where != c.ON_OTHER and cause != COUNTERS:
        return where
    return preferred if preferred != 0 else processor
