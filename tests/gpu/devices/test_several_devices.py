"""Devices and streams that a run is given; several GPUs find the labels of one CPU."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import OptionError
from louvain_um.generators import lfr, rmat
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime.device import capabilities
from tests.distributed.runs import METHODS, assert_equal
from tests.graphs import LARGER

pytestmark = pytest.mark.gpu


@pytest.fixture
def devices(gpu):
    """Return how many devices there are; skip a test where there is one only."""
    if len(capabilities()) < 2:
        pytest.skip("there is one device only")
    return len(capabilities())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", LARGER)
def test_all_devices(devices, kind, method):
    found = getattr(lu, method)(LARGER[kind](), device="cuda:all", seed=3)
    assert_equal(found, getattr(lu, method)(LARGER[kind](), device="cpu", seed=3))
    assert found.provenance["ranks"] == devices


def test_policies_are_refused(gpu):
    with pytest.raises(OptionError, match="use one device"):
        lu.louvain(rmat(8).graph, device="cuda:0,0", memory="base")


@pytest.mark.parametrize("memory", ["auto", "base", "adv7"])
@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_another_stream_than_the_default(gpu, method, memory):
    import cupy

    graph = lfr(1 << 13, max_degree=400, seed=5).graph
    want = getattr(lu, method)(graph, device="cpu").labels
    with cupy.cuda.Stream(non_blocking=True):
        found = getattr(lu, method)(graph, device="cuda", memory=memory)
        np.testing.assert_array_equal(found.labels, want)
        there = DeviceGraph.from_host(graph)
        np.testing.assert_array_equal(getattr(lu, method)(there, device="cuda").labels, want)
        if memory == "auto":  # pages change sides
            for budget in ("50%", "30%"):
                found = getattr(lu, method)(graph, device="cuda", device_budget=budget)
                np.testing.assert_array_equal(found.labels, want)


def test_two_runs_at_once_have_arenas_of_their_own(gpu):
    graphs = [lfr(1 << 13, max_degree=400, seed=seed).graph for seed in range(4)]
    want = [lu.louvain(graph, device="cpu").labels for graph in graphs]
    policies = ["device", "base", "adv2", "auto"]

    def detect(k):
        return lu.louvain(graphs[k], device="cuda", memory=policies[k]).labels

    with ThreadPoolExecutor(4) as pool:
        for found, labels in zip(pool.map(detect, range(4)), want, strict=True):
            np.testing.assert_array_equal(found, labels)


def test_the_second_device(devices):
    import cupy

    graph = lfr(1 << 14, max_degree=400, seed=7).graph
    want = lu.louvain(graph, device="cpu").labels
    before = cupy.cuda.runtime.getDevice()
    for policy in ("auto", "base", "adv7"):
        found = lu.louvain(graph, device="cuda:1", memory=policy)
        np.testing.assert_array_equal(found.labels, want)
        assert found.provenance["device"].startswith("cuda:1")
        assert cupy.cuda.runtime.getDevice() == before


def test_a_graph_on_the_second_device_is_worked_on_there(devices):
    import cupy

    graph = lfr(1 << 14, max_degree=400, seed=7).graph
    want = lu.louvain(graph, device="cpu").labels
    with cupy.cuda.Device(1):
        there = DeviceGraph.from_host(graph)
    for name in ("auto", "cuda", "cuda:1"):
        found = lu.louvain(there, device=name)
        np.testing.assert_array_equal(found.labels, want)
        assert found.provenance["device"].startswith("cuda:1")
    with pytest.raises(lu.OptionError, match="on cuda:1, not on cuda:0"):
        lu.louvain(there, device="cuda:0")
