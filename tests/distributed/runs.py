"""Graphs, ranks that fail, and what equal results are."""

from collections.abc import Callable
from functools import cache
from operator import attrgetter

import numpy as np

from louvain_um import Graph, api
from louvain_um.generators import geometric, lfr, rmat, stencil
from tests.distributed.threads import ThreadCommunicator

METHODS = ("louvain", "leiden")
COUNTED = attrgetter(
    "cycle", "vertices", "arcs", "communities", "modularity", "iterations", "arcs_visited"
)
"""What levels of equal results have in common: all but their seconds."""
GRAPHS: dict[str, Callable[[], Graph]] = {
    "lfr": lambda: lfr(1 << 11).graph,
    "rmat": lambda: rmat(11).graph,
    "stencil": lambda: stencil((12, 12, 12)).graph,
    "geometric": lambda: geometric(4000).graph,
    "weighted lfr": lambda: lfr(1 << 11, weights="uniform").graph,
    "weighted rmat": lambda: rmat(10, weights="uniform").graph,
}


@cache
def graph_named(name):
    return GRAPHS[name]()


@cache
def one_process(name, method, seed=0):
    return getattr(api, method)(graph_named(name), device="cpu", seed=seed)


def assert_equal(one, other):
    """Every number of both results is the same, bit for bit."""
    assert np.array_equal(one.labels, other.labels)
    assert one.modularity == other.modularity
    for a, b in ((one.maps, other.maps), (one.coarse_labels, other.coarse_labels)):
        assert len(a) == len(b)
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert [*map(COUNTED, one.levels)] == [*map(COUNTED, other.levels)]


class Counting(ThreadCommunicator):
    """Calls `act` before collective `at` of rank `victim`."""

    def __init__(self, meeting, rank, victim, at, act):
        super().__init__(meeting, rank)
        self.victim, self.at, self.act, self.calls = victim, at, act, 0

    def exchange(self, arrays):
        if self.rank == self.victim and self.calls == self.at:
            self.act()
        self.calls += 1
        return super().exchange(arrays)
