"""Small programs that the simulator's tests share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.simulator import (
    Access,
    Array,
    Launch,
    Simulation,
    Touches,
    Trace,
    simulate,
)

BLOCK = 2 << 20
PAGES = 512
KIB = 1024


def array(blocks: float = 1, *, name: str = "data", group: Any = "graph", starts: Any = "host"):
    return Array(name=name, group=group, nbytes=int(blocks * BLOCK), starts=starts)


def scan(item: Array, number: int = 0, way: Access = Access.READ) -> Launch:
    return Launch(touches=Touches.runs(number, 0, item.pages, way))


def touch(*pages: int, way: Access = Access.READ, number: int = 0) -> Launch:
    return Launch(touches=Touches.runs(number, list(pages), 1, way))


def run(items: Any, steps: Any, **options: Any) -> Simulation:
    """Simulate with a window of one batch, so that batches are as the test expects."""
    machine = replace(load_machine("h200"), faults_in_flight=options.pop("window", 256))
    coherent = options.pop("coherent", False)
    items = (items,) if isinstance(items, Array) else tuple(items)
    trace = Trace(items, tuple(steps))
    return simulate(trace, replace(machine, coherent=coherent), **options)


def growth(pages: list[int]) -> list[int]:
    """KiB that arrive with each of several single faults, one launch each, in one block."""
    sizes = [
        run(array(), [touch(page) for page in pages[:count]]).bytes_to_device
        for count in range(len(pages) + 1)
    ]
    return (np.diff(sizes) // KIB).tolist()
