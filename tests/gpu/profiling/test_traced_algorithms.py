"""Algorithms profiled on a device: phases, arrays, and traced accesses that can be simulated."""

import pytest

from louvain_um.algorithms.programs import BUILDERS
from louvain_um.generators import rmat
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling import profile
from louvain_um.profiling.access.recordings import recording_in
from louvain_um.profiling.sweep.replay import Point, replay

pytestmark = pytest.mark.gpu

GRAPH = rmat(15, edge_factor=8, weights="uniform", seed=5).graph


@pytest.mark.parametrize("name", BUILDERS)
def test_a_traced_session_can_be_simulated(gpu, name, tmp_path):
    path = tmp_path / "run.npz"
    session = profile(GRAPH, program=name, device=str(gpu), tracer=True, save_to=path)
    phases = {span.phase for span in session.phases}
    assert "load" in phases
    assert phases & {"run", "iterate"}
    assert session.metadata["policy"] == "base"
    groups = {life.name: life.group for life in session.lifetimes}
    assert groups["targets"] == "graph"
    counted = {page.array: page.total for page in session.maps if page.kind == "access"}
    assert counted["offsets"] >= GRAPH.n_vertices
    assert counted["targets"] > 0
    trace = recording_in(path)
    assert {a.name for a in trace.arrays if a.starts == "host"} >= {"offsets", "targets"}
    point = Point(graph="rmat", policy="base", oversubscription=0, gpu="p4000")
    row, _ = replay(trace, point, load_machine("p4000"))
    assert row["feasible"]
    assert row["bytes_to_device"] > 0
