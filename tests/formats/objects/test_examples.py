"""Examples by name, in Python as on the command line."""

import sys
from pathlib import Path

import networkx as nx
import pytest

from louvain_um.errors import GraphError, LouvainUmError, OptionError
from louvain_um.formats import as_graph, read_graph, write_graph
from louvain_um.formats.objects import EXAMPLES

BUILT = {
    "les-miserables": nx.les_miserables_graph,
    "karate": nx.karate_club_graph,
    "florentine-families": nx.florentine_families_graph,
    "southern-women": nx.davis_southern_women_graph,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_those_of_networkx(name):
    graph, built = read_graph(f"example:{name}"), as_graph(BUILT[name]())
    assert (graph.to_scipy() != built.to_scipy()).nnz == 0
    named = [None if each.names is None else each.names.tolist() for each in (graph, built)]
    assert named[0] == named[1]
    assert graph.weighted == built.weighted
    assert as_graph(f"example:{name}").n_edges == graph.n_edges


def test_examples_need_no_other_package(monkeypatch):
    for name in ("networkx", "pandas", "pyarrow", "sklearn"):
        monkeypatch.setitem(sys.modules, name, None)
    assert read_graph("example:les-miserables").n_vertices == 77


def test_examples_are_undirected():
    with pytest.raises(GraphError, match="the graph is undirected"):
        read_graph("example:karate", directed=True)


def test_options_apply_to_examples():
    assert read_graph("example:les-miserables").weighted
    assert not read_graph("example:les-miserables", weighted=False).weighted


def test_an_unknown_example_names_the_known_ones():
    with pytest.raises(OptionError, match=r"unknown example 'karat'; choose from .*karate"):
        read_graph("example:karat")


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("example:karate").write_text("0 1\n")
    assert read_graph("example:karate", format="edges").n_edges == 1


def test_a_graph_is_written_with_either_argument_first(tmp_path):
    graph = as_graph(([0, 1], [1, 2]))
    write_graph(graph, tmp_path / "a.csv")
    write_graph(tmp_path / "b.csv", graph)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_what_is_no_graph_is_reported_with_the_right_call(tmp_path):
    path = tmp_path / "g.csv"
    for wrong in ((nx.path_graph(3), path), (path, nx.path_graph(3)), (path, path)):
        with pytest.raises(LouvainUmError, match=r"call write_graph\('graph.csv'") as caught:
            write_graph(*wrong)
        assert "\n" not in str(caught.value)
    assert not path.exists()
