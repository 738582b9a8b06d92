"""What a page fault costs, fitted to first touches of a GiB that were timed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from louvain_um.placement.machine.machine import GIB

Touch = tuple[int, int, float]
"""Batches of faults, services of 2 MiB blocks, and GiB that come from the host."""

WIDE: Final[Mapping[str, Touch]] = {
    "scan": (1024, 1024, 1.0),
    "random": (31, 5643, 1.0),
    "few": (15, 2883, 0.245),
    "first write": (1024, 1024, 0.0),
}
NARROW: Final[Mapping[str, Touch]] = {
    "scan": (2048, 2048, 1.0),
    "random": (130, 6709, 1.0),
    "few": (65, 3426, 0.248),
    "first write": (2048, 2048, 0.0),
}
"""What the driver does when a device first touches a GiB: in order; at random, 500,000 times and
4,096 times; and writing untouched memory. Counted in the page-level model of the driver,
with 264 and with 56 touches that may wait at one time."""

LEAST_SECONDS: Final = 1e-7
"""A cost that the fit finds to be nothing is taken as this; no figure of a machine is 0."""


def fit_faults(
    seconds: Mapping[str, float], *, wide: bool, copying: float = 1e12
) -> dict[str, float]:
    """Return the three costs of a fault that explain measured seconds best."""
    import numpy as np
    from scipy.optimize import lsq_linear

    table = WIDE if wide else NARROW
    rows = np.array([table[name] for name in seconds], float)
    times = np.array(list(seconds.values()))
    # Relative errors count, so each row is divided by its time.
    least = np.array([LEAST_SECONDS, LEAST_SECONDS, GIB / copying])
    scale = np.abs(rows).max(axis=0)  # costs of a batch and of a GiB are far apart
    found = lsq_linear(rows / scale / times[:, None], np.ones(len(times)), (least * scale, np.inf))
    batch, service, gib = (float(cost) for cost in found.x / scale)
    return {
        "fault_batch_seconds": batch,
        "block_service_seconds": service,
        "migrate_to_device": GIB / gib,
    }
