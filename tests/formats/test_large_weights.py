"""Integer weights beyond 2^52: kept exactly, or an error unless rounding is allowed."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import louvain_um as lu
from louvain_um.errors import GraphError, GraphFormatError
from louvain_um.graph.graph import Graph

LARGE = [2**53 + 1, 2**63 - 1, 2**64 + 1, 9 * 10**18]

FILES = {
    "g.txt": "0 1 5\n# so\n1 2 {}\n",
    "names.csv": "a,b,5\nb,c,{}\n",
    "columns.csv": "weight,source,target\n5,0,1\n{},1,2\n",
    "g.mtx": "%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 5\n3 2 {}\n",
    "general.mtx": "%%MatrixMarket matrix coordinate integer general\n"
    "3 3 4\n2 1 5\n1 2 5\n3 2 {0}\n2 3 {0}\n",
    "g.graph": "3 2 1\n2 5\n1 5 3 {0}\n2 {0}\n",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("weight", LARGE)
def test_files_refuse_to_round(tmp_path, name, weight):
    path = tmp_path / name
    path.write_text(FILES[name].replace("5", "5000000").format(weight))
    with pytest.raises(GraphFormatError, match=r"allow_rounding=True") as raised:
        lu.read_graph(path)
    if weight in (2**53 + 1, 2**63 - 1):  # those that a double rounds are named with their line
        assert str(weight) in str(raised.value)
    graph = lu.read_graph(path, allow_rounding=True)
    assert graph.n_edges == 2
    heaviest = graph.weights.max() / graph.scale
    assert heaviest == pytest.approx(weight, rel=2.0**-50)


@pytest.mark.parametrize("name", FILES)
def test_files_keep_what_a_common_power_of_two_makes_exact(tmp_path, name):
    path = tmp_path / name
    path.write_text(FILES[name].replace("5", f"{3 * 2**55}").format(2**60))
    graph = lu.read_graph(path)
    assert {int(w / graph.scale) for w in graph.weights} == {3 * 2**55, 2**60}
    copy = tmp_path / "copy.csv"
    lu.write_graph(copy, graph)
    again = lu.read_graph(copy)
    assert (again.weights / again.scale).tolist() == (graph.weights / graph.scale).tolist()


def test_the_limit_itself(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text(f"0 1 {2**52 - 2}\n1 2 1\n")
    assert lu.read_graph(path).weights.max() == 2**52 - 2
    path.write_text(f"0 1 {2**52 - 1}\n1 2 1\n")
    with pytest.raises(GraphFormatError, match="above 2\\^52"):
        lu.read_graph(path)


def test_large_integers_among_real_numbers_are_real(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text(f"0 1 0.5\n1 2 {2**53 + 1}\n")
    with pytest.warns(lu.GraphWarning, match="1 of 2 positive weights"):
        graph = lu.read_graph(path)
    assert graph.weights.max() / graph.scale == pytest.approx(2**53, rel=1e-12)


@pytest.mark.parametrize("weight", LARGE)
def test_objects_refuse_to_round(weight):
    network = nx.Graph()
    network.add_weighted_edges_from([(0, 1, 5_000_000), (1, 2, weight)])
    objects = [network]
    if weight < 2**64:
        array = np.array([5_000_000, weight], np.uint64)
        objects.append(([0, 1], [1, 2], array))
        matrix = sparse.coo_array((array, ([0, 1], [1, 2])), shape=(3, 3))
        objects.append(matrix + matrix.T)
    for obj in objects:
        with pytest.raises(GraphError, match="allow_rounding=True"):
            lu.as_graph(obj)
        graph = lu.as_graph(obj, allow_rounding=True)
        assert graph.weights.max() / graph.scale == pytest.approx(weight, rel=2.0**-50)


def test_arrays_keep_what_is_exact():
    graph = Graph.from_edges([0, 1], [1, 2], np.array([2**60, 2**62 + 2**60]))
    assert (graph.weights / graph.scale).tolist() == [2.0**60, 2.0**60, 5 * 2.0**60, 5 * 2.0**60]
    assert not graph.notes


BIG = [2**63, 2**53 + 1]
ENDS = ([0, 1], [1, 2])


def network(weights):
    graph = nx.Graph()
    graph.add_weighted_edges_from(zip(*ENDS, weights, strict=True))
    return graph


@pytest.mark.parametrize("weights", [BIG, [2**53 + 1, 0.5], [2**70, 1]], ids=str)
def test_integers_are_refused_wherever_they_come_from(weights):
    objects = np.array(weights, object)
    frame = pd.DataFrame(dict(zip("uvw", (*ENDS, objects), strict=True)))
    makers = {
        "list": lambda **o: Graph.from_edges(*ENDS, weights, **o),
        "objects": lambda **o: Graph.from_edges(*ENDS, objects, **o),
        "column of objects": lambda **o: Graph.from_edges(*ENDS, pd.Series(objects), **o),
        "tuple": lambda **o: lu.as_graph((*ENDS, weights), **o),
        "tuples": lambda **o: lu.as_graph([*zip(*ENDS, weights, strict=True)], **o),
        "network": lambda **o: lu.as_graph(network(weights), **o),
        "frame": lambda **o: lu.as_graph(frame, **o),
    }
    failed = []
    for name, make in makers.items():
        try:
            make()
        except GraphError as error:
            failed += [name] if "allow_rounding=True" not in str(error) else []
        else:
            failed.append(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lu.GraphWarning)
            assert make(allow_rounding=True).n_edges >= 1
    assert not failed


def test_integers_are_kept_wherever_they_come_from():
    for weights in (
        [2**63, 2**60],
        [np.uint64(2**63), np.int64(2**60)],
        pd.Series([2**63, 2**60], dtype="uint64"),
        np.array([2**63, 2**60], object),
        pd.Series([2**63, 2**60], dtype=object),
    ):
        graph = Graph.from_edges(*ENDS, weights)
        assert sorted(graph.weights / graph.scale) == [2.0**60] * 2 + [2.0**63] * 2


def test_weights_that_vanish_give_a_warning():
    for make in (
        lambda: Graph.from_edges(range(7), range(1, 8), [5e-324] * 7),
        lambda: lu.as_graph((range(7), range(1, 8), [5e-324] * 7)),
        lambda: lu.as_graph(network([1e300, 1e-300])),
    ):
        with pytest.warns(lu.GraphWarning, match="count as 0") as reported:
            make()
        assert len(reported) == 1
        assert reported[0].filename == __file__
