"""The backend of networkx: its own tests, algorithms, and errors."""

import itertools
import logging
import os
import random
import re
import subprocess
import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.interop import networkx_backend as backend
from tests.paths import ROOT

community = nx.community
HERE = {"backend": "louvain_um"}


@pytest.fixture(autouse=True)
def _no_cache_warning():
    before = set(nx.config.warnings_to_ignore)
    nx.config.warnings_to_ignore = before | {"cache"}
    yield
    nx.config.warnings_to_ignore = before


@pytest.fixture
def karate():
    graph = nx.karate_club_graph()
    return nx.relabel_nodes(graph, {v: f"v{v}" if v % 2 else (v, v) for v in graph})


def test_is_known_to_networkx():
    info = nx.utils.backends.backend_info["louvain_um"]
    assert info["package"] == "louvain_um"
    for name in info["functions"]:
        assert "louvain_um" in getattr(nx, name, getattr(nx.community, name, None)).backends


def test_signatures_are_networkx_own():
    import inspect

    for name in backend.ABOUT:
        ours = inspect.signature(getattr(backend, name)).parameters
        theirs = inspect.signature(getattr(community, name).orig_func).parameters
        plain = {n: p.default for n, p in ours.items() if p.kind is not p.VAR_KEYWORD}
        assert plain == {n: p.default for n, p in theirs.items()}


@pytest.mark.parametrize("name", ["louvain_communities", "leiden_communities"])
def test_more_effort_finds_no_worse_partitions(karate, name):
    found = {
        effort: community.modularity(
            karate, getattr(community, name)(karate, effort=effort, **HERE)
        )
        for effort in ("fast", "best")
    }
    assert found["best"] >= found["fast"]
    with pytest.raises(lu.OptionError, match="effort must be"):
        getattr(community, name)(karate, effort="most", **HERE)


@pytest.mark.parametrize("name", ["louvain_communities", "leiden_communities"])
@pytest.mark.parametrize("weight", ["weight", None])
def test_partitions_are_good(karate, name, weight):
    parts = getattr(community, name)(karate, weight=weight, seed=1, **HERE)
    assert community.is_partition(karate, parts)
    assert [len(p) for p in parts] == sorted(map(len, parts), reverse=True)
    best = max(
        community.modularity(karate, community.louvain_communities(karate, weight, seed=s), weight)
        for s in range(5)
    )
    assert community.modularity(karate, parts, weight=weight) > best - 0.03
    if name == "leiden_communities":
        assert all(nx.is_connected(karate.subgraph(p)) for p in parts)


@pytest.mark.parametrize("weight", ["weight", "missing", None])
@pytest.mark.parametrize("resolution", [0.3, 1, 2.5])
def test_modularity_is_networkx_own(karate, weight, resolution):
    karate.add_edge("v1", "v1", weight=2.5)
    parts = community.label_propagation_communities(karate)
    expected = community.modularity(karate, parts, weight, resolution)
    found = community.modularity(karate, parts, weight, resolution, **HERE)
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_cached_weighted_graph_serves_an_unweighted_call(karate):
    parts = [set(list(karate)[:17]), set(list(karate)[17:])]
    for weight in ("weight", None, "weight"):
        found = community.modularity(karate, parts, weight=weight, **HERE)
        assert found == pytest.approx(community.modularity(karate, parts, weight=weight))


def test_resolution_and_levels_reach_the_run(karate):
    counts = [
        len(community.louvain_communities(karate, resolution=r, seed=1, **HERE))
        for r in (0.2, 1, 5)
    ]
    assert counts[0] < counts[1] < counts[2]
    levels = list(community.louvain_partitions(karate, seed=1, **HERE))
    assert levels[-1] == community.louvain_communities(karate, seed=1, **HERE)
    for fine, coarse in itertools.pairwise(levels):
        assert all(any(f <= c for c in coarse) for f in fine)
    with pytest.raises(ValueError, match="max_level"):
        community.louvain_communities(karate, max_level=0, **HERE)
    with pytest.raises(ValueError, match="max_level"):
        community.leiden_communities(karate, max_level=-1, **HERE)


@pytest.mark.parametrize(
    "make", [lambda: 5, lambda: random.Random(5), lambda: np.random.RandomState(5),
             lambda: np.random.default_rng(5)]
)  # fmt: skip
def test_a_seed_repeats(make):
    graph = nx.gnm_random_graph(60, 150, seed=1)
    first, second = (community.louvain_communities(graph, seed=make(), **HERE) for _ in "ab")
    assert first == second
    assert 0 <= backend._seed(make()) < 2**32


def test_without_a_seed_runs_are_the_same():
    graph = nx.gnm_random_graph(60, 150, seed=1)
    given = community.louvain_communities(graph, seed=None, **HERE)
    random.seed(7)
    assert community.louvain_communities(graph, **HERE) == given
    assert list(community.louvain_partitions(graph, **HERE))[-1] == given
    leiden = [community.leiden_communities(graph, **HERE) for _ in "ab"]
    assert leiden[0] == leiden[1]
    assert backend._seed(None) == 0


def test_no_edges():
    graph = nx.empty_graph(3)
    assert community.louvain_communities(graph, **HERE) == [{0}, {1}, {2}]
    assert list(community.louvain_partitions(graph, **HERE)) == [[{0}, {1}, {2}]]
    assert community.leiden_communities(nx.Graph(), **HERE) == []


def refused():
    path = nx.path_graph(3)
    return {
        "multigraph": ("leiden_communities", nx.MultiGraph(path), {}, "multigraph"),
        "resolution": ("louvain_communities", path, {"resolution": 0}, "resolution"),
        "threshold": ("louvain_partitions", path, {"threshold": -1}, "threshold"),
        "no edges": ("modularity", nx.empty_graph(2), {"communities": [{0}, {1}]}, "no|without"),
    }


@pytest.mark.parametrize("case", refused())
def test_declines_with_the_reason(case, caplog):
    name, graph, options, reason = refused()[case]
    answer = backend.can_run(name, (graph,), options)
    assert isinstance(answer, str)
    assert re.search(reason, answer)
    with caplog.at_level(logging.DEBUG, "networkx"), pytest.raises(NotImplementedError):
        list(getattr(community, name)(graph, **options, **HERE))
    assert answer in caplog.text


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "heavy", None, 2**70, [1]])
def test_declines_weights_it_cannot_take(value):
    graph = nx.path_graph(3)
    graph.add_edge(0, 1, weight=value)
    with pytest.raises(NotImplementedError):
        community.louvain_communities(graph, **HERE)
    parts = community.louvain_communities(graph, weight=None, **HERE)
    assert community.is_partition(graph, parts)


@pytest.mark.parametrize("weight", [None, "weight"])
def test_directed_graphs(weight):
    graph = nx.gnp_random_graph(80, 0.06, seed=2, directed=True)
    for place, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = place % 3 + 0.5
    graph.add_edge(3, 3, weight=2)
    parts = community.louvain_communities(graph, weight=weight, **HERE)
    assert community.is_partition(graph, parts)
    found = community.modularity(graph, parts, weight=weight, **HERE)
    assert found == pytest.approx(community.modularity(graph, parts, weight=weight))
    own = community.louvain_communities(graph, weight=weight, seed=1)
    assert found > 0.95 * community.modularity(graph, own, weight=weight)
    assert "directed" in str(backend.can_run("triangles", (graph,), {}))


def test_what_it_declines_falls_back_to_networkx():
    small, directed = nx.karate_club_graph(), nx.DiGraph([(0, 1), (1, 0), (2, 3)])
    with nx.config(backend_priority=["louvain_um"]):
        for graph in (small, directed):
            assert community.is_partition(graph, community.louvain_communities(graph, seed=1))
        negative = nx.gnm_random_graph(200, 3000, seed=1)
        negative.add_edge(0, 1, weight=-1)
        parts = community.louvain_communities(negative, seed=1)
        assert community.is_partition(negative, parts)
        assert len(community.leiden_communities(small, seed=1)) > 1


def test_large_graphs_are_taken(caplog):
    assert backend.should_run("louvain_communities", (nx.karate_club_graph(),), {}) != True  # noqa: E712
    graph = nx.gnm_random_graph(500, 3000, seed=1)
    assert backend.should_run("louvain_communities", (graph,), {}) is True
    with nx.config(backend_priority=["louvain_um"]), caplog.at_level(logging.DEBUG, "networkx"):
        parts = community.louvain_communities(graph, seed=1)
    assert "Using backend 'louvain_um'" in caplog.text
    assert backend.should_run("modularity", (graph, parts), {}) is True
    assert backend.should_run("modularity", (nx.path_graph(9), []), {}) is not True


@pytest.mark.parametrize("parts", [[{0, 1}], [{0, 1, 2}, {2}], [{0, 1, 2, 9}], [[0, 0, 1], [2]]])
def test_modularity_wants_a_partition(parts):
    with pytest.raises(nx.NetworkXError, match="not a valid partition"):
        community.modularity(nx.path_graph(3), parts, **HERE)


def test_converting_there_and_back(karate):
    converted = backend.convert_from_nx(karate, edge_attrs={"weight": 1})
    again = backend.convert_to_nx(converted)
    assert list(again) == list(karate)
    assert nx.to_dict_of_dicts(again) == nx.to_dict_of_dicts(karate)
    assert community.is_partition(karate, community.louvain_communities(converted))


def test_importing_networkx_stays_cheap():
    code = (
        "import networkx, sys; assert networkx.utils.backends.backend_info['louvain_um'];"
        "sys.exit(any(m in sys.modules for m in ('numba', 'numpy', 'louvain_um.graph.graph')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


OURS: dict[str, Any] = {"backend": "louvain_um"}


@st.composite
def given_graphs(draw):
    """Return graphs with nodes of any name, loops, isolated nodes and whole weights."""
    n = draw(st.integers(1, 25))
    graph = nx.Graph()
    graph.add_nodes_from(f"n{i}" if i % 3 else (i, "x") for i in range(n))
    nodes = list(graph)
    pairs = st.tuples(st.sampled_from(nodes), st.sampled_from(nodes), st.integers(1, 5))
    graph.add_weighted_edges_from(draw(st.lists(pairs, max_size=60)))
    return graph


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore:Note. conversions:UserWarning")
@settings(max_examples=100, database=None)
@given(given_graphs())
def test_answers_are_those_of_networkx(graph):
    source = next(iter(graph))
    assert list(nx.connected_components(graph, **OURS)) == list(nx.connected_components(graph))
    expected = nx.number_connected_components(graph)
    assert nx.number_connected_components(graph, **OURS) == expected
    for search in (nx.single_source_shortest_path_length, nx.single_source_dijkstra_path_length):
        found = search(graph, source, **OURS)
        assert found == search(graph, source)
        assert list(found.values()) == sorted(found.values())
    assert nx.triangles(graph, **OURS) == nx.triangles(graph)
    ranks = nx.pagerank(graph, tol=1e-10, max_iter=1000, **OURS)
    assert ranks == pytest.approx(nx.pagerank(graph, tol=1e-10, max_iter=1000), abs=1e-8)
    tree = graph.edge_subgraph(nx.minimum_spanning_edges(graph, data=False, **OURS))
    assert tree.size("weight") == nx.minimum_spanning_tree(graph).size("weight")


@pytest.mark.filterwarnings("ignore:Note. conversions:UserWarning")
def test_failures_are_those_of_networkx():
    graph = nx.path_graph(5)
    with pytest.raises(nx.NodeNotFound):
        nx.single_source_shortest_path_length(graph, "x", **OURS)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(graph, max_iter=1, tol=1e-12, **OURS)
    assert nx.pagerank(nx.Graph(), **OURS) == {}


@pytest.mark.filterwarnings("ignore:Note. conversions:UserWarning")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("single_source_shortest_path_length", {"source": 0, "cutoff": 2}),
        ("single_source_dijkstra_path_length", {"source": 0, "weight": lambda u, v, d: 1}),
        ("triangles", {"nodes": [0]}),
        ("pagerank", {"personalization": {0: 1}}),
        ("pagerank", {"alpha": 1.5}),
        ("minimum_spanning_edges", {}),
    ],
)
def test_declined_calls_say_why(name, arguments):
    reason = backend.can_run(name, (nx.path_graph(3),), arguments)
    assert isinstance(reason, str)
    assert reason


@pytest.mark.filterwarnings("ignore:Note. conversions:UserWarning")
@pytest.mark.parametrize("length", [0, 0.5, -1])
def test_lengths_that_a_graph_cannot_keep(length):
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=length)
    graph.add_edge(1, 2, weight=1)
    with pytest.raises(NotImplementedError):
        nx.single_source_dijkstra_path_length(graph, 0, **OURS)


@pytest.mark.filterwarnings("ignore:Note. conversions:UserWarning")
def test_cheap_calls_wait_for_a_converted_graph():
    graph = nx.gnm_random_graph(500, 3000, seed=1)
    assert isinstance(backend.should_run("connected_components", (graph,), {}), str)
    assert backend.should_run("triangles", (graph,), {}) is True
    nx.triangles(graph, **OURS)
    assert backend.should_run("connected_components", (graph,), {}) is True


MODULES = (
    "networkx.algorithms.community",
    "networkx.algorithms.components.tests.test_connected",
    "networkx.algorithms.link_analysis.tests.test_pagerank",
    "networkx.algorithms.shortest_paths.tests.test_unweighted",
    "networkx.algorithms.shortest_paths.tests.test_weighted",
    "networkx.algorithms.tests.test_cluster",
    "networkx.algorithms.tree.tests.test_mst",
    "networkx.utils.tests.test_backends",
)


@pytest.mark.system
@pytest.mark.parametrize("fall_back", ["", "1"])
def test_networkx_tests_pass(tmp_path, fall_back):
    # Its conftest documents the variables; without a fallback, what is not ours is expected to
    # fail. An empty folder and configuration keep the settings of this repository away.
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = os.environ | {
        "NETWORKX_TEST_BACKEND": "louvain_um",
        "NETWORKX_FALLBACK_TO_NX": fall_back,
        "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # pytest's own tracebacks of hundreds of expected failures take longer than the tests.
    ran = subprocess.run(
        [*command, "--tb=native", "--pyargs", *MODULES],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert " passed" in ran.stdout
