"""Real files, with the sizes that their README gives."""

import numpy as np
import pytest

from louvain_um.formats import read_graph

SIZES = {
    "web-NotreDame.txt.gz": (325_729, 1_090_108),
    "soc-Epinions1.txt.gz": (75_879, 405_740),
    "email-Enron.txt.gz": (36_692, 183_831),
    "cond-mat-2005.npz": (40_421, 175_693),
    "astro-ph.graph": (16_706, 121_251),
    "rgg_n_2_15_s0.graph": (32_768, 160_240),
    "delaunay_n15.graph": (32_768, 98_274),
    "celegans_metabolic.graph": (453, 2_025),
    "facebook_combined.txt": (4_039, 88_234),
    "wiki-Vote.txt": (7_115, 100_762),
    "karate.mtx": (34, 78),
    "dolphins.mtx": (62, 159),
    "polbooks.mtx": (105, 441),
    "football.gml": (115, 613),
    "email-Eu-core.txt": (1_005, 16_064),
    "simulated_blockmodel_graph_1000_nodes.tsv": (1_000, None),
    "simulated_blockmodel_graph_5000_nodes.tsv": (5_000, None),
    "sx-mathoverflow.txt.gz": (24_818, None),
    "CollegeMsg.txt.gz": (1_899, None),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(shared_data, name):
    graph = read_graph(shared_data / name)
    vertices, edges = SIZES[name]
    assert graph.n_vertices == vertices
    if edges is not None:
        assert graph.n_arcs == 2 * edges


def test_a_header_of_words_is_passed_over_and_mentioned(shared_data):
    (note,) = read_graph(shared_data / "facebook_combined.txt").notes
    assert "line 1" in note
    assert "header=False" in note


def test_times_are_no_weights(shared_data):
    path = shared_data / "CollegeMsg.txt.gz"
    graph = read_graph(path)
    assert not graph.weighted
    assert "times" in graph.notes[0]
    events = read_graph(path, weighted=False, duplicates="sum")
    assert events.total_weight // 2 == 59_835
    assert read_graph(path, weighted=True).weighted


def test_ids_of_the_source_survive(shared_data):
    votes = read_graph(shared_data / "wiki-Vote.txt")
    assert votes.names[0] == 3
    assert votes.names[-1] == 8297
    assert read_graph(shared_data / "football.gml").names[0] == "AirForce"
    karate = read_graph(shared_data / "karate.mtx")
    assert np.array_equal(karate.names, np.arange(1, 35))


def test_weighted_triples(shared_data):
    graph = read_graph(shared_data / "simulated_blockmodel_graph_1000_nodes.tsv")
    assert graph.weighted
    assert graph.scale == 1.0
