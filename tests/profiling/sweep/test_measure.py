"""What a measured point is made of; the runs themselves need a device."""

from types import SimpleNamespace

import pytest

import louvain_um.api
import louvain_um.profiling.record.profiler
from louvain_um.errors import MemoryBudgetError
from louvain_um.options import Budget
from louvain_um.profiling import Session
from louvain_um.profiling.sweep.measure import measure, options_for
from louvain_um.profiling.sweep.run import Settings

SETTINGS = Settings(policies=("base",), rates=(30.0,), device="cuda:0", seed=7)


def result(move):
    return SimpleNamespace(
        timings={"load": 5.0, "move": move, "aggregate": 0.5, "fetch": 1.0, "total": 99.0},
        memory={"graph": 100, "hash": 0},
        provenance={"budget_bytes": 70, "traffic_bytes": {"to_device": 11, "to_host": 22}},
        modularity=0.5,
    )


@pytest.fixture
def engine(monkeypatch):
    asked = []
    runs = iter([result(2.0), result(1.0)])

    def run(graph, options, observer=None):
        asked.append(options)
        return next(runs)

    monkeypatch.setattr(louvain_um.api, "run", run)
    monkeypatch.setattr(louvain_um.profiling.record.profiler, "profile", lambda *_, **__: Session())
    return asked


def test_a_point_is_the_algorithm_alone_at_its_best(engine):
    row = measure(None, "adv2", 30.0, SETTINGS)
    assert row["seconds"] == 1.5
    assert (row["bytes_to_device"], row["bytes_to_host"]) == (11, 22)
    assert (row["peak_bytes"], row["budget_bytes"], row["feasible"]) == (100, 70, True)
    assert {(o.device_budget, o.memory, o.device, o.seed) for o in engine} == {
        (Budget(fraction=0.7), "adv2", "cuda:0", 7)
    }


def test_budgets_are_what_a_user_would_write():
    budgets = [options_for("base", rate, SETTINGS).budget for rate in (0.0, 99.9, 99.9999999)]
    assert budgets == [Budget.parse(text) for text in ("100%", "0.1%", "0.0000001%")]


def test_what_a_source_saw_comes_before_what_the_run_moved(engine, monkeypatch):
    figures = {"bytes_to_device": 33, "bytes_to_host": None, "gpu_faults": 4, "gpu_fault_groups": 2}
    watched = SimpleNamespace(summary=lambda: figures)
    monkeypatch.setattr(louvain_um.profiling.record.profiler, "profile", lambda *_, **__: watched)
    row = measure(None, "base", 0.0, SETTINGS)
    assert (row["bytes_to_device"], row["bytes_to_host"]) == (33, 22)
    assert (row["faults"], row["fault_groups"], row["bytes_remote"]) == (4, 2, None)


def test_bytes_read_in_place_are_the_engines(monkeypatch):
    reads = [{"array": "targets.0", "phase": "move", "level": 0, "bytes": n} for n in (5, 7)]
    made = result(1.0)
    made.provenance = {**made.provenance, "read_in_place": reads}
    monkeypatch.setattr(louvain_um.api, "run", lambda *_: made)
    monkeypatch.setattr(louvain_um.profiling.record.profiler, "profile", lambda *_, **__: Session())
    assert measure(None, "zero_copy", 0.0, SETTINGS)["bytes_remote"] == 12


def test_a_policy_that_cannot_keep_to_the_budget_is_not_run(monkeypatch):
    def refuse(*_, **__):
        raise MemoryBudgetError(100, 70, [("targets.0", 60)])

    monkeypatch.setattr(louvain_um.api, "run", refuse)
    row = measure(None, "base", 30.0, SETTINGS)
    assert row["feasible"] is False
    assert row["seconds"] is None
    assert row["budget_bytes"] == 70


def test_energy_is_that_of_runs_repeated_for_two_seconds(monkeypatch):
    from louvain_um.profiling.sweep import measure as module

    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(module, "idle_watts", lambda device: 120.0)

    def run():
        clock.now += 0.75

    def metered(work, device):
        work()
        return 300 * clock.now, clock.now

    monkeypatch.setattr(module, "metered", metered)
    found = module.energy(run, 1000, "cuda:0")
    assert clock.now == 2.25
    assert found == {
        "joules": 225.0, "watts": 300.0, "idle_watts": 120.0, "arcs_per_joule": 1000 / 225,
    }  # fmt: skip
    monkeypatch.setattr(module, "metered", lambda work, device: None)
    assert module.energy(run, 1000, "cuda:0") == {}


def test_a_point_of_another_program(monkeypatch):
    from louvain_um.events import Event
    from louvain_um.generators import rmat
    from louvain_um.profiling.record import jobs
    from louvain_um.profiling.sweep.measure import measure_program

    asked = []

    def run(name, graph, *, observer, **how):
        asked.append((name, how))
        if how["memory"] == "base":
            raise MemoryBudgetError(100, 70, [("targets", 60)])
        observer(Event(kind="plan", plan=SimpleNamespace(launches=3)))
        for phase in ("load", "run", "fetch"):
            for kind in ("start", "end"):
                observer(Event(kind=kind, phase=phase))

    monkeypatch.setattr(jobs, "run_algorithm", run)
    watched = SimpleNamespace(summary=lambda: {"bytes_to_device": 33})
    seen = []
    monkeypatch.setattr(
        louvain_um.profiling.record.profiler,
        "profile",
        lambda *_, **how: seen.append(how["program"]) or watched,
    )
    graph = rmat(8, seed=1).graph
    row = measure_program("bfs", graph, "zero_copy", 30.0, SETTINGS)
    assert 0 < row["seconds"] < 1
    assert (row["feasible"], row["bytes_to_device"]) == (True, 33)
    assert row["budget_bytes"] == int(0.7 * row["peak_bytes"])
    assert row["launches"] == 3
    assert (len(asked), seen) == (2, ["bfs"])
    refused = measure_program("bfs", graph, "base", 30.0, SETTINGS)
    assert (refused["feasible"], refused["seconds"], refused["budget_bytes"]) == (False, None, 70)
