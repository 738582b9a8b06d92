"""Small programs that the simulator's tests share."""

from dataclasses import replace

import numpy as np
from numba import njit

from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.simulator import Access, Array, Launch, Touches, Trace, simulate

BLOCK = 2 << 20
PAGES = 512
KIB = 1024


def called(function):
    """Return a function that Python can call: those of the driver call each other alone."""
    return njit(lambda *args: function(*args))


def array(blocks=1, *, name="data", group="graph", starts="host"):
    return Array(name=name, group=group, nbytes=int(blocks * BLOCK), starts=starts)


def scan(item, number=0, way=Access.READ):
    return Launch(touches=Touches.runs(number, 0, item.pages, way))


def touch(*pages, way=Access.READ, number=0):
    return Launch(touches=Touches.runs(number, list(pages), 1, way))


def run(items, steps, **options):
    """Simulate with a window of one batch, so that batches are as the test expects."""
    machine = replace(load_machine("h200"), faults_in_flight=options.pop("window", 256))
    coherent = options.pop("coherent", False)
    items = (items,) if isinstance(items, Array) else tuple(items)
    trace = Trace(items, tuple(steps))
    return simulate(trace, replace(machine, coherent=coherent), **options)


def growth(pages):
    """KiB that arrive with each of several single faults, one launch each, in one block."""
    sizes = [
        run(array(), [touch(page) for page in pages[:count]]).bytes_to_device
        for count in range(len(pages) + 1)
    ]
    return (np.diff(sizes) // KIB).tolist()
