"""A neighbour's memory in the place of the host's: the engine's labels, and where its bytes are."""

from dataclasses import replace
from typing import Any

import pytest

from louvain_um.errors import OptionError
from louvain_um.events import ignore
from louvain_um.generators import lfr
from louvain_um.gpu import preparation
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.memory import array_specs, level_room, shape
from louvain_um.options import Options
from louvain_um.placement.migration import pages
from louvain_um.placement.model import cost
from louvain_um.placement.policy import auto
from tests.gpu_emulated.emulated_engine import emulated_devices
from tests.gpu_emulated.memory.less_memory import set_limits

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("way", ["small", "still", "in pages"])
@pytest.mark.parametrize(("method", "budget"), [("louvain", "40%"), ("leiden", "40%")])
def test_what_does_not_fit_lies_on_the_peer(
    monkeypatch, detected, method, budget,
    way,
):  # fmt: skip
    graph = lfr(2500, max_degree=300, min_community=50, max_community=300, seed=3).graph
    plain = Options(method=method, seed=3)
    options = replace(plain, device="cuda:0", peer_memory="cuda:1", device_budget=budget)
    if way != "small":  # larger graphs might be in pages
        for module in (pages, auto):
            monkeypatch.setattr(module, "LEAST_PAGE", 16 << 10)
        for module in (array_specs, shape, level_room):
            monkeypatch.setattr(module, "SMALL", 1 << 10, raising=False)
        set_limits(monkeypatch, small=1 << 10)
    if way == "in pages":  # as for a link that arcs wait for
        monkeypatch.setattr(cost, "WAITING", 0)
    if way == "still":
        monkeypatch.setattr(auto, "LEAST_PAGES", 1 << 30)
    there = detected(graph, options, devices=2)
    plan, taken = there.run.plan, there.runtime.taken
    made = {place for kind, place, _ in there.runtime.created if kind == 1}
    assert there.found.provenance["peer_memory"] == "cuda:1"
    assert plan.in_pages == (way == "in pages")
    if plan.in_pages:
        assert made == {0, 1}
        of_host = [nbytes for kind, _, nbytes in there.runtime.created if kind != 1]
        assert len(of_host) == 1  # the driver is asked whether it maps such pages
    else:
        assert {spec.placement.kind for spec in plan.layout} <= {"device", "split", "peer"}
        assert taken[1] >= plan.host_bytes > 0


def test_a_peer_that_is_full_is_left_to_itself(monkeypatch, emulated):
    graph = lfr(2500, max_degree=300, min_community=50, max_community=300, seed=3).graph
    options = Options(device="cuda:0", peer_memory="cuda:1", device_budget="60%")
    monkeypatch.setattr(preparation, "peer_room", lambda peer: 0)
    chosen = list[Any]()

    def stop(layout, *_, **__):
        chosen.extend(layout)
        raise MemoryError

    monkeypatch.setattr(preparation, "RunMemory", stop)
    with (
        emulated_devices(monkeypatch, emulated, 2),
        GpuEngine(options, ignore) as run,
        pytest.raises(MemoryError),
    ):
        run.load(graph)
    assert "peer" not in {spec.placement.kind for spec in chosen}
    assert "device" in {spec.placement.kind for spec in chosen}


@pytest.mark.parametrize(
    ("device", "peer", "message"),
    [
        ("cpu", "cuda:1", "use device='cuda:0'"),
        ("cuda:0,1", "cuda:2", "use device='cuda:0'"),
        ("cuda:1", "cuda:1", "use device='cuda:0'"),
        ("cuda:0", "gpu1", "such as 'cuda:1'"),
        ("cuda:0", 1, "such as 'cuda:1'"),
    ],
)
def test_options_that_name_no_neighbour(device, peer, message):
    with pytest.raises(OptionError, match=message):
        Options(device=device, peer_memory=peer)
