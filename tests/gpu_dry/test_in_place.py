"""Bytes read in place follow from arcs visited and placements; without a device."""

import pytest

from louvain_um.options import Options
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.sources.source import InPlaceReads, SessionClock
from tests.gpu_dry import dry_device
from tests.gpu_dry.dry_device import run_dry
from tests.gpu_dry.dry_levels import made_up


@pytest.fixture
def engines(monkeypatch):
    made = []
    plain = dry_device.engine.GpuEngine.__init__

    def note(self, *args):
        plain(self, *args)
        made.append(self)

    monkeypatch.setattr(dry_device.engine.GpuEngine, "__init__", note)
    return made


def reads(engine, stage=None):
    found = {}
    for row in engine.in_place.summary():
        if stage in (None, row["phase"]):
            key = row["array"], row["level"]
            found[key] = found.get(key, 0) + row["bytes"]
    return found


def test_a_graph_in_host_memory_is_read_arc_by_arc(monkeypatch, engines):
    graph, script = made_up("lfr22", "louvain", 16)
    visited = sum(moved.arcs_visited for moved in script.moves if moved.moves == graph.n_vertices)
    aggregated = sum(step.vertices == graph.n_vertices for step in script.steps)
    run_dry(monkeypatch, graph, script, Options(memory="zero_copy"))
    (engine,) = engines
    assert reads(engine, "move")["targets.0", 0] == 4 * visited
    assert reads(engine, "aggregate")["targets.0", 0] == 4 * graph.n_arcs * aggregated
    levels = {level for _, level in reads(engine)}
    assert {0, 1} <= levels
    assert not any(name.startswith("labels") for name, _ in reads(engine))


def test_nothing_is_read_in_place_in_core(monkeypatch, engines):
    for policy in ("device", "auto", "base"):
        graph, script = made_up("lfr22", "louvain", 16)
        run_dry(monkeypatch, graph, script, Options(memory=policy))
        assert not engines[-1].in_place.nbytes, policy


def test_labels_on_the_host_are_gathered_once_an_arc(monkeypatch, engines):
    graph, script = made_up("lfr22", "louvain", 16)
    visited = sum(moved.arcs_visited for moved in script.moves if moved.moves == graph.n_vertices)
    run_dry(monkeypatch, graph, script, Options(memory="adv4"))
    found = reads(engines[0], "move")
    of_input = sum(
        n for (name, level), n in found.items() if name.startswith("labels") and not level
    )
    assert of_input == 4 * visited
    assert not any(name.startswith("targets") for name, _ in found)


def test_only_what_is_on_the_host_counts(monkeypatch, engines):
    found = []
    for budget in ("90%", "50%", "30%"):
        graph, script = made_up("rmat24", "louvain", 16)
        run_dry(monkeypatch, graph, script, Options(device_budget=budget))
        found.append(sum(engines[-1].in_place.nbytes.values()))
    assert found == sorted(found)
    assert found[-1] > 0


def test_a_session_holds_what_the_engine_announced(monkeypatch, engines):
    source = InPlaceReads()
    source.start(SessionClock())
    plain = dry_device.engine.GpuEngine.__init__

    def watched(self, options, observer):
        def both(event):
            observer(event)
            source.observe(event)

        plain(self, options, both)

    monkeypatch.setattr(dry_device.engine.GpuEngine, "__init__", watched)
    graph, script = made_up("lfr22", "louvain", 16)
    run_dry(monkeypatch, graph, script, Options(memory="adv2"))
    table = source.drain()
    whole = sum(engines[0].in_place.nbytes.values())
    assert table.total(Kind.REMOTE_ACCESS) == whole > 0
    assert source.drain() is None
    assert sum(row["bytes"] for row in source.about()["reads"]) == whole
    assert (table["address"] > 0).all()
