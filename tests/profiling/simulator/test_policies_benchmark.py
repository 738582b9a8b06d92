"""How benchmarks/policies.py compares measured points with replays."""

import importlib

import pytest

from louvain_um.generators import lfr
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.access.recorder import record
from tests.paths import BENCHMARKS

FOLDER = BENCHMARKS


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        return importlib.import_module("policies")


@pytest.fixture(scope="module")
def trace():
    return record(lfr(30_000, seed=1).graph)


def test_a_replay_with_the_budget_of_the_measured_run(benchmark, trace):
    machine = load_machine("h200")
    whole = benchmark.model(trace, "base", 2 * trace.peak_bytes, machine)
    assert whole["evictions"] == whole["bytes_to_host"] == 0
    assert benchmark.model(trace, "base", trace.peak_bytes // 2, machine)["feasible"] is False
    assert whole["terms"]["faults"] > 0
    assert benchmark.model(trace, "device", 1 << 20, machine)["feasible"] is False
    placed = benchmark.model(trace, "auto", trace.peak_bytes, machine)
    same = {"feasible": True, "bytes_to_device": placed["bytes_to_device"] - placed["bytes_loaded"],
            "bytes_to_host": placed["bytes_to_host"], "fault_groups": placed["fault_groups"],
            "seconds": placed["seconds"] - placed["load_seconds"]}  # fmt: skip
    assert benchmark.compare(same, placed) == {
        "ratio": {"bytes": 1.0, "fault_groups": 1.0, "seconds": 1.0}, "misses": [],
    }  # fmt: skip


def test_misses_are_counted(benchmark):
    run = {"feasible": True, "bytes_to_device": 100, "bytes_to_host": 0, "fault_groups": 10,
           "seconds": 1.0}  # fmt: skip
    nothing = {**run, "bytes_to_device": 0, "fault_groups": None}
    refused = {"feasible": False, "reason": "needs more"}
    rows = [
        benchmark.compare(run, run),
        benchmark.compare(run, {**run, "seconds": 2.0}),
        benchmark.compare(nothing, run),
        benchmark.compare(run, refused),
        benchmark.compare(refused, refused),
    ]
    assert [row["misses"] for row in rows] == [[], ["seconds"], ["bytes"], ["feasible"], []]
    assert rows[2]["ratio"] == {"bytes": None, "fault_groups": None, "seconds": 1.0}
    assert benchmark.within(rows) == {
        "bytes": "2 of 3", "fault_groups": "2 of 2", "seconds": "2 of 3",
    }  # fmt: skip


def test_the_summary_counts_points_within_limits(benchmark):
    run = {"feasible": True, "bytes_to_device": 100, "bytes_to_host": 0, "fault_groups": 10,
           "seconds": 1.0}  # fmt: skip
    rows = [benchmark.compare(run, {**run, "seconds": at}) for at in (0.5, 0.6, 1.4, 1.5)]
    found = benchmark.summary([*rows, {"ratio": None, "misses": ["feasible"]}])
    assert found["within"] == {"bytes": "4 of 4", "fault_groups": "4 of 4", "seconds": "2 of 4"}
    assert (found["least"], found["median"], found["most"]) == (0.5, 1.0, 1.5)


def test_points_of_a_grid_are_replayed_with_their_budgets(benchmark, monkeypatch):
    graph = lfr(30_000, seed=1).graph
    monkeypatch.setattr(benchmark, "host_graph", lambda name: graph)
    point = {"graph": "g", "policy": "base", "feasible": True, "seconds": 0.01,
             "bytes_to_device": 1, "bytes_to_host": 0, "fault_groups": 1}  # fmt: skip
    points = [
        {**point, "oversubscription": 0, "budget_bytes": None},
        {**point, "oversubscription": 99, "budget_bytes": 100_000},
        {**point, "oversubscription": 10, "feasible": False},
        {**point, "oversubscription": 0, "budget_bytes": None, "graph": "other"},
    ]
    whole, refused = benchmark.replayed(points, "g", load_machine("h200"))
    assert whole["ratio"]["seconds"] == whole["seconds_modelled"] / 0.01
    assert whole["terms"]["waiting"] > 0
    assert (refused["ratio"], refused["misses"]) == (None, ["feasible"])
