import itertools
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.analysis.ensemble import arc_counts, certainty, find_consensus
from louvain_um.core.numbering import number_by_size
from louvain_um.results.agreement import adjusted_rand, contingency
from tests import oracle
from tests.analysis.test_resolution import cliques
from tests.graphs import graphs

LABELS = st.lists(st.lists(st.integers(0, 4), min_size=9, max_size=9), min_size=1, max_size=4)


@given(LABELS)
def test_agreement_is_that_of_scikit_learn(partitions):
    metrics = pytest.importorskip("sklearn.metrics")
    first = number_by_size(partitions[0])
    for labels in partitions:
        other = number_by_size(labels)
        assert adjusted_rand(first, other) == pytest.approx(
            metrics.adjusted_rand_score(first, other)
        )
        table = metrics.cluster.contingency_matrix(first, other)
        assert np.array_equal(contingency(first, other).toarray(), table)


def test_agreement_of_few_vertices():
    nothing, one = np.zeros(0, np.uint32), np.zeros(1, np.uint32)
    assert adjusted_rand(nothing, nothing) == adjusted_rand(one, one) == 1.0


@given(LABELS)
def test_certainty_is_the_share_of_members_met(partitions):
    numbered = [number_by_size(labels) for labels in partitions]
    final = numbered[0]
    expected = []
    for v in range(9):
        others = [u for u in range(9) if u != v and final[u] == final[v]]
        met = [np.mean([labels[u] == labels[v] for u in others]) for labels in numbered if others]
        expected.append(np.mean(met) if others else 1.0)
    assert certainty(final, numbered) == pytest.approx(expected)


@given(graphs(), st.data())
def test_arcs_count_the_runs_that_join_their_ends(graph, data):
    n = graph.n_vertices
    label = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    partitions = [np.array(data.draw(label), np.uint32) for _ in range(3)]
    rows = np.repeat(np.arange(n), np.diff(graph.offsets))
    expected = sum((labels[rows] == labels[graph.targets]).astype(int) for labels in partitions)
    assert np.array_equal(arc_counts(graph, partitions), expected)


def consensus_of(graph, runs):
    """Return the consensus and its rounds, with runs and graphs of agreement in plain Python."""
    n = graph.n_vertices
    rows = np.repeat(np.arange(n), np.diff(graph.offsets)).tolist()
    arcs = [*zip(rows, graph.targets.tolist(), strict=True)]
    for rounds in range(20):
        found = [oracle.detect(graph, "louvain", seed=seed)[0] for seed in range(runs)]
        counts = {(u, v): sum(labels[u] == labels[v] for labels in found) for u, v in arcs}
        kept = {arc for arc, count in counts.items() if count >= 0.2 * runs}
        for v in range(n):
            one_run = [arc for arc in arcs if arc[0] == v]
            best = max(one_run, key=lambda arc: counts[arc], default=None)
            if one_run and not kept & {*one_run} and counts[best]:
                kept |= {best, best[::-1]}
        undecided = sum(counts[arc] < runs for arc in kept)
        if not undecided:
            joined = nx.Graph([*kept])
            joined.add_nodes_from(range(n))
            parts = nx.connected_components(joined)
            return {frozenset(part) for part in parts}, rounds
        if undecided <= 0.02 * len(kept):
            break
        arcs = sorted(kept)
        edges = [(u, v) for u, v in arcs if u < v]
        weights = [counts[edge] for edge in edges]
        graph = lu.Graph.from_edges(*zip(*edges, strict=True), weights, n_vertices=n)
    else:
        rounds = 20
    sets = {label: frozenset(v for v in range(n) if found[0][v] == label) for label in found[0]}
    return {*sets.values()}, rounds


@settings(max_examples=12)
@given(graphs(), st.integers(2, 6))
def test_the_consensus_is_that_of_a_slow_one(graph, runs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lu.GraphWarning)
        found = lu.ensemble(graph, runs=runs, device="cpu")
    parts = {frozenset(part.tolist()) for part in found.consensus.communities()}
    assert (parts, found.rounds) == consensus_of(graph, runs)


def test_planted_cliques_are_found_by_every_run():
    found = lu.ensemble(cliques(), runs=8, device="cpu")
    assert (found.stability, found.rounds, found.converged) == (1.0, 0, True)
    assert found.consensus.n_communities == 6
    assert found.certainty.tolist() == [1.0] * 48
    assert found.notes == ()
    assert np.array_equal(found.agreement, np.ones((8, 8)))


def test_the_graph_of_agreement_keeps_the_strongest_arc_of_a_vertex():
    path = lu.Graph.from_edges([0, 1, 2], [1, 2, 3])
    # Vertex 3 is with 2 in one run of ten, and 0 is with 1 in all.
    together = np.array([0, 0, 1, 1], np.uint32)
    separate = np.array([0, 0, 1, 2], np.uint32)
    seen = []

    def detect(agreed, number):
        agreed.validate()
        seen.append(agreed)
        return [together] * 10

    found = find_consensus(path, [together] + [separate] * 9, detect)
    assert seen[0].to_pandas().to_numpy().tolist() == [[0, 1, 10], [2, 3, 1]]
    assert (found.labels.tolist(), found.rounds, found.converged) == ([0, 0, 1, 1], 1, True)


def test_vertices_that_every_run_leaves_alone_stay_alone():
    path = lu.Graph.from_edges([0, 1], [1, 2])
    alone = np.arange(3, dtype=np.uint32)
    found = find_consensus(path, [alone] * 3, lambda agreed, number: [alone] * 3)
    assert found.labels.tolist() == [0, 1, 2]


def test_a_random_graph_has_no_clear_communities_and_says_so():
    rng = np.random.default_rng(1)
    graph = lu.Graph.from_edges(*rng.integers(0, 400, (2, 1000)), n_vertices=400)
    with pytest.warns(lu.GraphWarning, match="the runs disagree") as caught:
        found = lu.ensemble(graph, runs=6, device="cpu")
    assert caught[0].filename == __file__
    assert found.stability < 0.5
    assert "fewer than half of their community" in found.notes[0]


def test_tables_hold_what_was_found():
    found = lu.ensemble(lu.read_graph("example:les-miserables"), runs=6, device="cpu", seed=3)
    frame = found.to_frame()
    assert frame["certainty"].tolist() == found.certainty.tolist()
    assert frame["vertex"].tolist() == found.consensus.names.tolist()
    table = found.table(hubs=1)
    assert table["size"].sum() == 77
    groups = frame.groupby("community")["certainty"].mean()
    assert table["certainty"].to_numpy() == pytest.approx(groups.to_numpy())
    runs = found.runs_frame()
    assert runs["seed"].tolist() == [3, 4, 5, 6, 7, 8]
    for seed, value in zip(runs["seed"], runs["value"], strict=True):
        single = lu.louvain(found.graph, device="cpu", seed=seed)
        assert value == single.modularity
    pairs = [adjusted_rand(a, b) for a, b in itertools.combinations(found.partitions, 2)]
    assert found.stability == pytest.approx(np.mean(pairs))
    assert found.values[found.best] == found.values.max()


def test_a_consensus_scores_about_as_well_as_a_run():
    graph = lu.read_graph("example:les-miserables")
    found = lu.ensemble(graph, runs=10, method="leiden", device="cpu")
    assert found.consensus.modularity > found.values.mean() - 0.01
    assert found.consensus.method == "consensus of 10 leiden runs"


def test_options_are_checked():
    with pytest.raises(lu.OptionError, match="runs must lie in 1 … 1000"):
        lu.ensemble(cliques(2, 3), runs=0)
    with pytest.raises(lu.OptionError, match="leave room for 20 seeds"):
        lu.ensemble(cliques(2, 3), seed=2**32 - 5)
    with pytest.raises(TypeError, match="max_size"):
        lu.ensemble(cliques(2, 3), max_size=3)


def test_an_ensemble_is_drawn():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    axes = lu.ensemble(cliques(3, 4), runs=2, device="cpu").plot(ax=Figure().add_subplot())
    assert sum(bar.get_height() for bar in axes.patches) == 12


@pytest.mark.parametrize("objective", ["directed", "signed"])
def test_graphs_of_networkx_are_read_as_their_objective_takes_them(objective):
    arcs = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)]
    graph = nx.DiGraph(arcs) if objective == "directed" else nx.Graph(arcs)
    if objective == "signed":
        nx.set_edge_attributes(graph, 1, "weight")
        graph[2][3]["weight"] = -1
    found = lu.ensemble(graph, runs=2, objective=objective, device="cpu")
    assert len(found.consensus) == 2
    profile = lu.resolution_profile(graph, points=4, objective=objective, device="cpu")
    assert profile.points
