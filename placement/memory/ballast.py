"""Ballast: the thesis's way to make a card smaller, a plain allocation that does nothing.

With too little left for the managed memory of a run the driver evicts, for real. The usual way
is a budget instead, which cannot hurt; see `residency`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.guard import guard

WARNING: Final = "driver eviction can hang the GPU for all its users until the machine is restarted"
"""Shown before it is allowed."""


@contextmanager
def ballast(
    nbytes: int, managed: int, device: int, *, allow_driver_eviction: bool = False
) -> Iterator[int]:
    """Hold plain memory of a device, so that a run has less."""
    with cuda_calls.current(device):
        room = guard.room(device)
        if nbytes + managed > room and not allow_driver_eviction:
            raise MemoryBudgetError(
                nbytes + managed,
                max(room, 0),
                [("ballast", nbytes), ("managed memory", managed)],
                f"use --device-budget, or --allow-driver-eviction if you must: {WARNING}",
            )
        address = guard.plain("ballast", nbytes, device)
        try:
            if allow_driver_eviction:
                with guard.permit_eviction(device):
                    yield address
            else:
                yield address
        finally:
            with cuda_calls.current(device):
                cuda_calls.release("free", address)
