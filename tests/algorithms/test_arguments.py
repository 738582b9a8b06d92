"""What the algorithms take, and what they refuse."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import louvain_um as lu
from louvain_um.algorithms.programs import BUILDERS, program_for, program_of
from louvain_um.errors import DeviceUnavailableError, GraphError, LouvainUmError, OptionError

TRIANGLE = lu.Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 3], n_vertices=5)
NAMED = lu.as_graph((["ann", "bob"], ["bob", "cid"]))


def without(vertex, graph):
    changing = lu.DynamicGraph(graph)
    changing.remove_vertices([vertex])
    return changing


def test_a_source_is_a_name_where_vertices_have_names():
    assert lu.bfs(NAMED, "cid", device="cpu").distances.tolist() == [2, 1, 0]
    numbered = lu.Graph.from_edges([0, 1], [1, 2], names=np.array([10, 7, 30]))
    assert lu.bfs(numbered, np.int64(30), device="cpu").distances.tolist() == [2, 1, 0]


@pytest.mark.parametrize("search", [lu.bfs, lu.sssp])
@pytest.mark.parametrize(
    ("graph", "source", "message"),
    [
        (TRIANGLE, 5, r"5 is not a vertex of the graph; use one of its vertices, 0 … 4"),
        (TRIANGLE, -1, "is not a vertex"),
        (TRIANGLE, "0", "'0' is not a vertex"),
        (TRIANGLE, True, "True is not a vertex"),
        (NAMED, 0, "0 is not a vertex of the graph; use one of its vertices, such as 'ann'"),
        (NAMED, "zoe", "'zoe' is not a vertex"),
        (lu.Graph.from_edges([], []), 0, "of which there are none"),
        (without(1, TRIANGLE), 1, "1 is not a vertex"),
        (without("ann", NAMED), None, "None is not a vertex of the graph; .* such as 'bob'"),
    ],
)
def test_an_unknown_source(search, graph, source, message):
    with pytest.raises(GraphError, match=message):
        search(graph, source, device="cpu")


def test_negative_weights_are_refused():
    with pytest.raises(GraphError, match="negative"):
        lu.sssp(sp.csr_matrix(([-1, -1], ([0, 1], [1, 0])), shape=(2, 2)), 0)


def test_graphs_of_other_libraries():
    graph = nx.karate_club_graph()
    assert lu.triangles(graph, device="cpu").sum() == 3 * 45
    with pytest.raises(GraphError):
        lu.triangles(nx.DiGraph([(0, 1)]))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0], r"float64 of shape \(1,\)"),
        (np.zeros((5, 1)), r"shape \(5, 1\)"),
        (["a"] * 5, "one real number for each of the 5 vertices"),
        (np.zeros(5, complex), "complex128"),
    ],
)
def test_vectors_that_do_not_fit(x, message):
    with pytest.raises(GraphError, match=message):
        lu.spmv(TRIANGLE, x, device="cpu")


def test_infinite_entries_pass_through():
    y = lu.spmv(TRIANGLE, [np.inf, 0, 0, -np.inf, np.nan], device="cpu")
    np.testing.assert_array_equal(y, [0, np.inf, np.inf, -np.inf, 0])


@pytest.mark.parametrize(
    "options",
    [
        {"damping": 1.5}, {"damping": np.nan}, {"damping": True}, {"max_iterations": True},
        {"damping": "x"}, {"tolerance": -1},
        {"tolerance": np.inf}, {"max_iterations": 0}, {"max_iterations": 1.5}, {"threads": 0},
        {"device": "tpu"},
    ],
)  # fmt: skip
def test_options_out_of_range(options):
    with pytest.raises(OptionError):
        lu.pagerank(TRIANGLE, **{"device": "cpu", **options})


def test_ranks_that_do_not_converge():
    with pytest.raises(LouvainUmError, match="after 3 iterations; allow more"):
        lu.pagerank(lu.Graph.from_edges([0, 1], [1, 2]), 1.0, max_iterations=3, device="cpu")


def test_a_device_that_is_not_there():
    with pytest.raises((DeviceUnavailableError, OptionError)):
        lu.bfs(TRIANGLE, 0, device="cuda:99")


def test_loops():
    graph = lu.Graph.from_edges([0, 0, 1], [0, 1, 1], [4, 2, 6])
    assert lu.spmv(graph, [1, 10], device="cpu").tolist() == [24.0, 62.0]
    assert lu.triangles(graph, device="cpu").tolist() == [0, 0]
    assert lu.sssp(graph, 0, device="cpu").distances.tolist() == [0, 2]


def test_progress_is_announced():
    events = []
    lu.pagerank(TRIANGLE, device="cpu", observer=events.append)
    lu.triangles(TRIANGLE, device="cpu", observer=events.append)
    steps = [event for event in events if event.phase == "run"]
    assert len(steps) > 20
    assert all(0 <= event.moved <= event.vertices for event in steps)
    assert steps[-1].moved == 0


def test_a_read_only_graph():
    graph = lu.Graph.from_edges([0, 1, 2], [1, 2, 0], [1, 2, 3])
    for array in (graph.offsets, graph.targets, graph.weights, graph.loops):
        array.flags.writeable = False
    assert lu.minimum_spanning_forest(graph, device="cpu").weights.tolist() == [1, 2]
    assert lu.sssp(graph, 0, device="cpu").distances.tolist() == [0, 1, 3]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", BUILDERS)
def test_every_program_can_be_planned(name, weighted):
    program = program_of(name, n_vertices=10**6, n_arcs=10**8, weighted=weighted)
    whole = lu.plan(program, machine="h200")
    assert whole.fits
    short = lu.plan(program, machine="h200", device_budget="60%")
    assert short.seconds > whole.seconds


def test_an_empty_graph_has_a_program():
    for name in BUILDERS:
        assert lu.plan(program_of(name, n_vertices=0, n_arcs=0), machine="h200").fits


def test_unknown_programs():
    with pytest.raises(OptionError, match="must be one of bfs, sssp"):
        program_of("dfs", n_vertices=1, n_arcs=1)
    with pytest.raises(OptionError, match="negative"):
        program_of("bfs", n_vertices=1, n_arcs=-1)


def test_a_signed_graph_is_no_program():
    signed = lu.as_graph(([0, 1], [1, 2], [1, -1]), signed=True)
    with pytest.raises(GraphError, match="without negative weights"):
        program_for("sssp", signed)
