"""What `auto` does with another GPU's memory: prices decide between ways to use it."""

import json
from dataclasses import replace
from functools import partial

import pytest

from louvain_um.gpu.memory.run_plan import declare_compact, declared
from louvain_um.gpu.memory.shape import Shape
from louvain_um.placement.detection_plan import make_plan
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.model import cost, forecast
from louvain_um.placement.model.cost import exposed_share
from louvain_um.placement.model.workload import Facts
from louvain_um.placement.policy.auto import DeclaredRun
from tests.paths import MEASURED, RESULTS

SHAPES = json.loads((MEASURED / "host_arrays_h200.json").read_text())["shapes"]
RECORD = json.loads((RESULTS / "devices_h200.json").read_text())["peer"]
LINKED = H200.with_peer()
BY_BUS = replace(H200, peer_bandwidth=H200.remote_bandwidth).with_peer()


def planned(name, budget, machine):
    shape = Shape(**SHAPES[name])
    arrays = DeclaredRun(
        arrays=partial(declared, shape), compact=declare_compact(shape), kept=shape.kept
    )
    facts = Facts(kind=shape.kind, max_degree=shape.max_degree)
    return make_plan(arrays, "auto", machine, budget, facts)


@pytest.mark.parametrize("budget", ["70%", "50%", "30%", "20%"])
@pytest.mark.parametrize("name", ["lfr24", "rmat24"])
def test_what_does_not_fit_stays_on_a_fast_peer_as_it_is(name, budget):
    found = planned(name, budget, LINKED)
    if found.expected.remote:  # otherwise all that is known fits
        assert not found.in_pages
        assert not found.compact
    assert found.device_bytes <= found.limit
    assert {spec.placement.kind for spec in found.layout} <= {"device", "split", "peer"}
    assert found.seconds < 1.16 * found.seconds_in_core
    assert found.seconds in found.seconds_range


def test_runs_take_as_many_times_as_in_core_as_is_predicted():
    rows = RECORD["results"]
    cores = {row["graph"]: row["seconds"] for row in rows if "device_budget" not in row}
    for row in rows:
        if "device_budget" in row:
            plan = planned(row["graph"], row["device_budget"], LINKED)
            times = plan.seconds / plan.seconds_in_core
            assert times == pytest.approx(row["seconds"] / cores[row["graph"]], abs=0.04)
            assert times < 1.1


@pytest.mark.parametrize("name", ["lfr24", "rmat24"])
def test_arcs_leave_first(name):
    found = planned(name, "50%", LINKED)
    assert 0 < found.placement_of("targets.0").on_device < 1
    for hot in ("labels", "totals", "offsets.0"):
        assert found.placement_of(hot).on_device == 1


@pytest.mark.parametrize("name", ["lfr24", "rmat24"])
def test_a_peer_behind_a_bus_is_used_like_the_host(name):
    assert exposed_share(BY_BUS) == exposed_share(H200) == 1
    found, on_host = planned(name, "30%", BY_BUS), planned(name, "30%", H200)
    assert found.in_pages
    assert found.compact
    assert (found.low_scratch, found.in_pages) == (on_host.low_scratch, on_host.in_pages)


def test_pages_win_where_they_cost_nothing(monkeypatch):
    monkeypatch.setattr(forecast, "REMAPPED", 0.0)
    monkeypatch.setattr(forecast, "PACKED_MOVE", 1.0)
    assert planned("lfr24", "70%", LINKED).in_pages


def test_a_larger_budget_takes_no_longer(monkeypatch):
    took = [planned("lfr24", f"{percent}%", LINKED).seconds for percent in range(20, 101, 10)]
    assert took == sorted(took, reverse=True)


def test_less_is_waited_for_the_faster_the_link():
    shares = [exposed_share(replace(H200, remote_bandwidth=1e9 * rate)) for rate in (50, 200, 400)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1
    busy = cost.WHOLE * H200.device_random_rate / 400e9
    assert shares[2] == pytest.approx(busy**2)
