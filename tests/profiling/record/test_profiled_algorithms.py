"""Sessions of algorithms other than detection: phases, arrays, and traces that can be simulated."""

import pytest

import louvain_um as lu
from louvain_um.algorithms.programs import BUILDERS
from louvain_um.errors import GraphError, OptionError
from louvain_um.events import Event
from louvain_um.generators import rmat
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling import load, profile
from louvain_um.profiling.access.recordings import recording_in
from louvain_um.profiling.record.jobs import run_algorithm, widest
from louvain_um.profiling.sweep.replay import Point, replay

GRAPH = rmat(13, edge_factor=8, weights="uniform", seed=5).graph
NAMED = lu.as_graph((["ann", "bob", "bob"], ["bob", "cid", "dan"]))


@pytest.mark.parametrize("name", BUILDERS)
def test_a_session_of_every_algorithm(name, tmp_path):
    path = tmp_path / "run.npz"
    session = profile(GRAPH, program=name, device="cpu", save_to=path)
    about = session.metadata
    assert (about["method"], about["program"], about["policy"]) == (name, name, None)
    assert about["sources"]["declared"] == "modelled"
    assert "run" in {span.phase for span in session.phases}
    assert {life.name for life in session.lifetimes} >= {"offsets", "targets", "control"}
    assert {page.array for page in session.maps} >= {"offsets", "targets"}
    assert len(session.events)
    assert str(session)
    trace = recording_in(path)
    starts = {array.name: array.starts for array in trace.arrays}
    assert starts["targets"] == "host"
    assert "host" not in {starts.get(name) for name in ("distances", "ranks", "edges", "counts")}
    point = Point(graph="rmat", policy="base", oversubscription=0, gpu="p4000")
    row, _ = replay(trace, point, load_machine("p4000"))
    assert row["feasible"]
    assert row["bytes_to_device"] >= 4 * GRAPH.n_arcs
    assert load(path).metadata["inputs"] == about["inputs"]


def test_iterations_of_pagerank_are_those_of_the_run():
    session = profile(GRAPH, program="pagerank", device="cpu")
    targets = next(page for page in session.maps if page.array == "targets")
    seen = list[Event]()
    lu.pagerank(GRAPH, device="cpu", observer=seen.append)
    iterations = sum(event.kind == "iteration" for event in seen)
    assert targets.total / GRAPH.n_arcs == pytest.approx(iterations, rel=0.05)


def test_a_search_begins_at_the_vertex_of_most_arcs():
    assert widest(NAMED) == "bob"
    assert run_algorithm("bfs", NAMED, device="cpu").distances.tolist() == [1, 0, 1, 1]
    assert run_algorithm("bfs", NAMED, source="ann", device="cpu").distances.tolist()[0] == 0
    assert profile(NAMED, program="sssp", source="cid", device="cpu").metadata["complete"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"program": "dfs"}, OptionError, "must be one of bfs, sssp"),
        (
            {"program": "pagerank", "source": "ann"},
            OptionError,
            "begins at no vertex; omit source, which",
        ),
        (
            {"source": "ann"},
            OptionError,
            "a detection of communities begins at no vertex; omit source",
        ),
        ({"program": "bfs", "seed": 3}, OptionError, "bfs does not detect communities; omit seed"),
        ({"program": "bfs", "method": "leiden"}, OptionError, "does not detect"),
        ({"program": "bfs", "source": "zoe"}, GraphError, "'zoe' is not a vertex"),
    ],
)
def test_what_cannot_be_profiled_leaves_no_session(options, error, message, tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(error, match=message) as refused:
        profile(NAMED, device="cpu", save_to=path, **options)
    assert "\n" not in str(refused.value)
    assert not path.exists()


def test_a_search_without_vertices_leaves_no_session(tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(GraphError, match="of which there are none"):
        profile(lu.Graph.from_edges([], []), program="bfs", device="cpu", save_to=path)
    assert not path.exists()
