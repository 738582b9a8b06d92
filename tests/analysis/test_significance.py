import networkx as nx
import numpy as np
import pytest
from scipy.stats import chisquare

import louvain_um as lu
from louvain_um.generators.same_degrees import RandomGraphs, shuffled


def degrees(graph):
    matrix = graph.to_scipy()
    return np.asarray(matrix.sum(axis=1)).ravel() + matrix.diagonal()  # a loop has two ends


@pytest.mark.parametrize("weighted", [False, True])
def test_random_graphs_keep_degrees_and_weights(weighted):
    graph = nx.gnm_random_graph(60, 200, seed=3)
    graph.add_edge(5, 5)
    if weighted:
        nx.set_edge_attributes(graph, {e: k % 7 + 0.5 for k, e in enumerate(graph.edges)}, "weight")
    graph = lu.as_graph(graph)
    random = RandomGraphs.like(graph)
    one, other = random.graph(1), random.graph(2)
    assert (one.to_scipy() != other.to_scipy()).nnz > 0
    assert (one.to_scipy() != random.graph(1).to_scipy()).nnz == 0
    assert one.total_weight == graph.total_weight
    assert np.array_equal(np.bincount(random.ends), np.diff(graph.offsets) + 2 * (graph.loops > 0))
    if not weighted:
        assert np.array_equal(degrees(one), degrees(graph))


def test_all_pairings_are_as_likely():
    """Six ends pair in 15 ways."""
    ends, runs = np.arange(6), 3000
    orders = [shuffled(ends, np.uint64(key)).reshape(2, 3) for key in range(runs)]
    found = [tuple(sorted(map(tuple, np.sort(pairs.T).tolist()))) for pairs in orders]
    _, counts = np.unique(np.array(found).reshape(runs, 6), axis=0, return_counts=True)
    assert len(counts) == 15
    assert chisquare(counts).pvalue > 0.001


def test_random_graphs_are_those_of_the_configuration_model():
    graph = lu.as_graph(nx.barabasi_albert_graph(300, 3, seed=1))
    sequence = degrees(graph).astype(int).tolist()
    theirs = [
        lu.louvain(nx.configuration_model(sequence, seed=k), device="cpu").modularity
        for k in range(20)
    ]
    found = lu.louvain(graph, device="cpu").significance(graphs=20, device="cpu")
    assert found.null.mean() == pytest.approx(np.mean(theirs), abs=4 * np.std(theirs) / 20**0.5)


def test_planted_communities_are_more_than_chance_and_random_ones_are_not():
    planted = nx.planted_partition_graph(5, 40, 0.3, 0.01, seed=1)
    found = lu.louvain(planted, device="cpu").significance(graphs=30, device="cpu")
    assert found.z > 10
    assert found.p_value == pytest.approx(1 / 31)
    assert (found.communities < 0.05).all()
    random = lu.louvain(nx.gnm_random_graph(200, 800, seed=2), device="cpu")
    found = random.significance(graphs=30, device="cpu")
    assert found.p_value > 0.05
    assert "is what random graphs of the same degrees give" in str(found)


def test_p_values_of_communities_are_those_of_counting():
    graph = lu.as_graph(nx.planted_partition_graph(4, 20, 0.4, 0.15, seed=2))
    found = lu.louvain(graph, device="cpu")
    tested = found.significance(graphs=12, device="cpu")

    def communities(of, labels):
        matrix = of.to_scipy().toarray()
        matrix[np.diag_indices_from(matrix)] *= 2  # a loop has two ends
        mine = [labels == c for c in range(labels.max() + 1)]
        return [(matrix[m].sum(), matrix[m][:, m].sum() / max(matrix[m].sum(), 1)) for m in mine]

    random = [RandomGraphs.like(graph).graph(seed) for seed in range(12)]
    runs = [lu.louvain(each, seed=seed, device="cpu") for seed, each in enumerate(random)]
    assert tested.null.tolist() == [run.modularity for run in runs]
    all_of_them = [c for each, run in zip(random, runs, strict=True)
                   for c in communities(each, run.labels)]  # fmt: skip
    for (volume, share), p in zip(
        communities(graph, found.labels), tested.communities, strict=True
    ):
        like = [s for v, s in all_of_them if volume / 2 <= v <= 2 * volume]
        assert p == pytest.approx((1 + sum(s >= share for s in like)) / (1 + len(like)))


def test_other_objectives_and_missing_graphs_are_refused(tmp_path):
    found = lu.louvain(nx.karate_club_graph(), objective="cpm", resolution=0.1, device="cpu")
    with pytest.raises(lu.LouvainUmError, match="has no random graphs"):
        found.significance()
    with pytest.raises(lu.LouvainUmError, match="graphs must lie in"):
        lu.louvain(found.graph, device="cpu").significance(graphs=0)
    found.save(tmp_path / "r.npz")
    with pytest.raises(lu.GraphError, match="without its graph"):
        lu.Communities.load(tmp_path / "r.npz").significance()


def test_the_command_prints_a_sentence(tmp_path):
    from typer.testing import CliRunner

    from louvain_um.cli import app

    nx.write_edgelist(nx.karate_club_graph(), tmp_path / "k.txt", data=False)
    words = ["detect", str(tmp_path / "k.txt"), "--device", "cpu", "--significance", "25"]
    assert "random graphs of the same degrees" in CliRunner().invoke(app, words).stdout
    done = CliRunner().invoke(app, [*words, "--objective", "cpm"])
    assert (done.exit_code, "is for modularity" in done.stderr) == (2, True)
