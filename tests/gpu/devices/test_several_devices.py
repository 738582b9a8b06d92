"""Several GPUs find the labels of one CPU; two ranks on one GPU run nearly all of the same code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import louvain_um as lu
from louvain_um import Graph
from louvain_um.errors import OptionError
from louvain_um.generators import lfr, rmat, stencil
from louvain_um.gpu.runtime.device import Choice, capabilities
from tests.distributed.runs import METHODS, assert_equal

pytestmark = pytest.mark.gpu

KINDS: dict[str, Callable[[], Graph]] = {
    "lfr": lambda: lfr(1 << 14, max_degree=900, max_community=1500).graph,
    "rmat": lambda: rmat(15).graph,
    "rmat weighted": lambda: rmat(13, weights="uniform").graph,
    "stencil": lambda: stencil((30, 30, 30)).graph,
    "loops": lambda: Graph.from_edges([0, 1, 2, 3, 4, 4], [1, 2, 0, 4, 4, 5], n_vertices=8),
    "no edges": lambda: Graph.from_edges([], [], n_vertices=5),
}


@cache
def graph_of(kind: str) -> Graph:
    """Return a graph."""
    return KINDS[kind]()


@cache
def on_cpu(kind: str, method: str) -> lu.Communities:
    """Return what the CPU finds."""
    found: lu.Communities = getattr(lu, method)(graph_of(kind), device="cpu", seed=3)
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_ranks_on_one_device(gpu: Choice, kind: str, method: str) -> None:
    for devices in ("cuda:0,0", "cuda:0,0,0"):
        found = getattr(lu, method)(graph_of(kind), device=devices, seed=3)
        assert_equal(found, on_cpu(kind, method))
        assert found.provenance["ranks"] == devices.count("0")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_devices(gpu: Choice, kind: str, method: str) -> None:
    if len(capabilities()) < 2:
        pytest.skip("there is one device only")
    found = getattr(lu, method)(graph_of(kind), device="cuda:all", seed=3)
    assert_equal(found, on_cpu(kind, method))
    assert found.provenance["ranks"] == len(capabilities())


def test_repeating_changes_nothing(gpu: Choice) -> None:
    graph = graph_of("rmat")
    first = lu.leiden(graph, device="cuda:0,0")
    for _ in range(5):
        again = lu.leiden(graph, device="cuda:0,0")
        assert np.array_equal(again.labels, first.labels)


def test_policies_are_refused(gpu: Choice) -> None:
    with pytest.raises(OptionError, match="use one device"):
        lu.louvain(graph_of("lfr"), device="cuda:0,0", memory="base")
