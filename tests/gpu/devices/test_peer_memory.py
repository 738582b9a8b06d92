"""Arrays that do not fit lie in another GPU's memory; labels are those of a run in core."""

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.core.ledger import GROUPS
from louvain_um.errors import DeviceUnavailableError
from louvain_um.generators import lfr, rmat
from louvain_um.gpu.runtime.device import capabilities
from louvain_um.placement.machine.calibrate import calibrate
from louvain_um.placement.memory.guard import peer_for
from louvain_um.placement.model import cost
from louvain_um.placement.policy.policy import Placement, Policy

pytestmark = pytest.mark.gpu


@pytest.fixture
def neighbours(gpu):
    if len(capabilities()) < 2:
        pytest.skip("there is one device only")


@pytest.mark.parametrize("waiting", [cost.WAITING, 0])  # 0: arcs wait, pages may win
@pytest.mark.parametrize("budget", ["60%", "30%"])
@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("kind", ["lfr", "rmat"])
def test_labels_are_those_in_core(
    neighbours, monkeypatch, kind, method, budget,
    waiting,
):  # fmt: skip
    monkeypatch.setattr(cost, "WAITING", waiting)
    graph = lfr(1 << 16).graph if kind == "lfr" else rmat(16).graph
    detect = getattr(lu, method)
    one = detect(graph, device="cuda:0")
    found = detect(graph, device="cuda:0", device_budget=budget, peer_memory="cuda:1")
    assert np.array_equal(found.labels, one.labels)
    assert found.provenance["peer_memory"] == "cuda:1"


@pytest.mark.parametrize("name", ["bfs", "pagerank", "connected_components", "triangles"])
def test_other_algorithms_find_the_same(neighbours, name):
    graph = rmat(14).graph
    arguments = (graph, 0) if name == "bfs" else (graph,)
    run = getattr(lu, name)
    one = run(*arguments, device="cuda:0")
    # All that may leave the device lies on the neighbour.
    on_peer = Policy(name="on_peer", placements=dict.fromkeys(GROUPS, Placement("peer")))
    found = run(*arguments, device="cuda:0", memory=on_peer, peer_memory="cuda:1")
    for ours, theirs in zip(np.atleast_1d(found), np.atleast_1d(one), strict=True):
        assert np.array_equal(ours, theirs)


def test_a_neighbour_is_measured(neighbours):
    machine = calibrate(0, peer=peer_for("cuda:1", 0))
    assert machine.peer_bandwidth > machine.remote_bandwidth
    assert machine.with_peer().copy_to_device == machine.peer_copy_bandwidth


def test_a_device_is_no_neighbour_of_its_own(gpu):
    with pytest.raises(DeviceUnavailableError, match="name another GPU"):
        peer_for("cuda:0", 0)


def test_a_neighbour_that_is_not_there_is_refused(gpu):
    with pytest.raises(DeviceUnavailableError, match="name another GPU"):
        lu.Placer(device="cuda:0", peer_memory="cuda:99")
    with pytest.raises(DeviceUnavailableError, match="name another GPU"):
        lu.louvain(rmat(8).graph, device="cuda:0", peer_memory="cuda:99")
