"""Graphs for devices that are too small for them, and such devices."""

from dataclasses import replace

from louvain_um.generators import lfr, stencil
from louvain_um.gpu import preparation
from louvain_um.gpu.aggregate import limits
from louvain_um.gpu.memory import array_specs, level_room, packed, shape
from louvain_um.gpu.move import arguments
from louvain_um.options import Options
from louvain_um.placement.migration import pages
from louvain_um.placement.model import cost
from louvain_um.placement.policy import auto

GRAPHS = {
    "lfr": lambda: lfr(2500, max_degree=300, min_community=50, max_community=300, seed=3).graph,
    "mesh": lambda: stencil((50, 50)).graph,
}


def as_if_larger(monkeypatch):
    """Use for small graphs what is for larger ones."""
    # Host memory is a second device's here. Pages, queues of single sub-rounds and offsets of 32
    # bits are for larger graphs.
    for module in (pages, auto):
        monkeypatch.setattr(module, "LEAST_PAGE", 4 << 10)
    monkeypatch.setattr(cost, "WAITING", 0)  # as arcs do for the host
    for module in (array_specs, shape, level_room):
        monkeypatch.setattr(module, "SMALL", 1 << 10, raising=False)
    monkeypatch.setattr(limits, "LOW_SCRATCH", replace(limits.LOW_SCRATCH, small=1 << 10))
    set_limits(monkeypatch, small=1 << 10)
    monkeypatch.setattr(packed, "OFFSETS_SHARE", 1 << 40)
    monkeypatch.setattr(arguments, "QUEUE_BLOCK", 1 << 8)
    monkeypatch.setattr(arguments, "MOST_QUEUED", 1 << 7)


def set_limits(monkeypatch, **changes):
    """Change limits of aggregation; return all of them."""
    changed = replace(preparation.LIMITS, **changes)
    for module in (preparation, shape):
        monkeypatch.setattr(module, "LIMITS", changed)
    return changed


def squeezed(monkeypatch, method, budget):
    """Return options of a device that lacks memory for a graph."""
    as_if_larger(monkeypatch)
    return Options(
        method=method, seed=3, device="cuda:0", peer_memory="cuda:1", device_budget=budget
    )
