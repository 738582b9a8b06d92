"""GEXF, GraphML and Cytoscape JSON: read back as written, with communities as attributes."""

import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import louvain_um as lu
from louvain_um.formats import read_graph, write_graph
from tests.graphs import graphs, same

SUFFIXES = ["gexf", "graphml", "cyjs", "gexf.gz", "graphml.gz", "cyjs.gz"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=40)
@given(graph=graphs())
def test_round_trip(tmp_path_factory, suffix, graph):
    path = tmp_path_factory.mktemp("trip") / f"g.{suffix}"
    assert write_graph(path, graph) == ()
    back = read_graph(path)
    if graph.n_edges or not graph.weighted:
        assert same(graph, back)
    assert back.n_vertices == graph.n_vertices
    assert back.names is None


def communities():
    edges = (["ann", "bob", "<c&d>", "x", "y", "ümit"], ["bob", "<c&d>", "ann", "y", "ümit", "x"])
    return lu.louvain(lu.as_graph((*edges, [0.1, 2, 3, 1, 1, 1])), device="cpu")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_and_communities_are_attributes(tmp_path, suffix):
    result = communities()
    path = tmp_path / f"g.{suffix}"
    write_graph(path, result)
    if suffix.startswith("gexf"):
        found = nx.read_gexf(path)
    elif suffix.startswith("graphml"):
        found = nx.read_graphml(path)
    elif suffix == "cyjs":
        found = nx.cytoscape_graph(json.loads(path.read_text()))
    else:
        return
    by_name = {data["label"]: data["community"] for _, data in found.nodes(data=True)}
    assert by_name == result.to_dict()
    back = read_graph(path)
    assert sorted(back.names.tolist()) == sorted(by_name)
    assert sorted((back.weights / back.scale).round(12).tolist())[:2] == [0.1, 0.1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_communities_are_read_back_as_labels(tmp_path, suffix):
    named = communities()
    numbered = lu.louvain(lu.Graph.from_edges([0, 1, 3], [1, 2, 4]), device="cpu")
    for result in (named, numbered):
        path = tmp_path / f"g{result.n_vertices}.{suffix}"
        write_graph(path, result)
        back = lu.read_labels(path)
        assert dict(zip(back.vertices.tolist(), back.communities.tolist(), strict=True)) == (
            result.to_dict()
        )
        assert result.compare(back).identical


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_graph_without_communities_has_no_labels(tmp_path, suffix):
    path = tmp_path / f"g.{suffix}"
    write_graph(path, communities().require_graph())
    with pytest.raises(lu.GraphFormatError, match="6 of 6 vertices have no"):
        lu.read_labels(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_graph_gives_the_same_bytes(tmp_path, suffix, monkeypatch):
    import time

    result = communities()
    write_graph(tmp_path / f"a.{suffix}", result)
    monkeypatch.setattr(time, "strftime", lambda *_: "2001-01-01")
    write_graph(tmp_path / f"b.{suffix}", result)
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_edge_lists_have_no_place_for_communities(tmp_path):
    with pytest.raises(lu.GraphError, match="no place for communities"):
        write_graph(tmp_path / "g.csv", communities())
    assert not (tmp_path / "g.csv").exists()


@pytest.mark.parametrize("names", [[(1, 2), "a"], [7, "7x"], [None, 1.5]])
def test_names_of_several_types_are_written_as_text(tmp_path, names):
    array = np.empty(2, object)
    array[:] = names
    graph = lu.Graph.from_edges([0], [1], names=array)
    for suffix in ("gexf", "graphml", "cyjs"):
        write_graph(tmp_path / f"g.{suffix}", graph)
        assert read_graph(tmp_path / f"g.{suffix}").names.tolist() == sorted(map(str, names))


@pytest.mark.parametrize(
    ("suffix", "text"),
    [("gexf", "<gexf"), ("gexf", "<gexf></gexf>"), ("gexf", ""), ("cyjs", "{"), ("cyjs", "[]"),
     ("cyjs", '{"elements": 3}'), ("cyjs", '{"data": [], "elements": {"nodes": [{}]}}')],
)  # fmt: skip
def test_damaged_files_are_one_line(tmp_path, suffix, text):
    path = tmp_path / f"g.{suffix}"
    path.write_text(text)
    with pytest.raises(lu.GraphFormatError, match=r"write it again|empty") as caught:
        read_graph(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("keys", "kept"), [(["label", "name"], "name"), (["name"], "title")])
def test_attributes_that_do_not_name_vertices_are_kept(tmp_path, keys, kept):
    made = nx.path_graph(["a", "b", "c"])
    for key in keys:
        nx.set_node_attributes(made, {"a": f"{key} 1", "b": f"{key} 2", "c": f"{key} 3"}, key)
    nx.set_node_attributes(made, "same", kept)
    nx.write_graphml(made, tmp_path / "g.graphml")
    found = read_graph(tmp_path / "g.graphml")
    assert found.names.tolist() == [f"{keys[0]} {number}" for number in (1, 2, 3)]
    assert {key: values.tolist() for key, values in found.attributes.items()} == {
        kept: ["same"] * 3
    }


DECLARED = {
    "graphml": """<graphml>
        <key id="d0" for="node" attr.name="open" attr.type="boolean"><default>true</default></key>
        <key id="d1" for="node" attr.name="name" attr.type="string"><default>no</default></key>
        <key id="d2" for="all" attr.name="size" attr.type="int"><default>7</default></key>
        <graph><node id="a"/><node id="b"><data key="d0">False</data><data key="d2">8</data></node>
        <edge source="a" target="b"/></graph></graphml>""",
    "gexf": """<gexf><graph>
        <attributes class="node">
        <attribute id="0" title="open" type="boolean"><default>true</default></attribute>
        <attribute id="1" title="name" type="string"><default>no</default></attribute>
        <attribute id="2" title="size" type="integer"><default>7</default></attribute></attributes>
        <nodes><node id="a"/><node id="b"><attvalues><attvalue for="0" value="false"/>
        <attvalue for="2" value="8"/></attvalues></node></nodes>
        <edges><edge source="a" target="b"/></edges></graph></gexf>""",
}
"""Vertices with truth values and numbers, of which the first has those declared for all."""


@pytest.mark.filterwarnings("ignore::louvain_um.errors.GraphWarning")
@pytest.mark.parametrize("suffix", DECLARED)
def test_attributes_have_their_declared_types_and_defaults(tmp_path, suffix):
    path = tmp_path / f"g.{suffix}"
    path.write_text(DECLARED[suffix])
    graph = read_graph(path)
    assert graph.names.tolist() == ["a", "b"]
    given = {name: values.tolist() for name, values in graph.attributes.items()}
    assert given == {"open": [True, False], "size": [7, 8]}
    write_graph(tmp_path / f"again.{suffix}", graph)
    assert read_graph(tmp_path / f"again.{suffix}").attributes["open"].tolist() == [True, False]


@pytest.mark.parametrize("suffix", ["gexf", "graphml", "cyjs"])
def test_attributes_of_a_graph_are_written_with_it(tmp_path, suffix):
    columns = {
        "age": [np.int64(34), None, 2**53 + 1],
        "share": [0.5, float("nan"), 1], "sure": [True, None, False],
        "mixed": [1, "x\0", None], "id": [7, 7, 7], "label": ["l", "l", "m"], "huge": [2**70, 1, 2],
    }  # fmt: skip
    made = nx.Graph([("a", "b"), ("b", "c")])
    for name, values in columns.items():
        nx.set_node_attributes(made, dict(zip("abc", values, strict=True)), name)
    path = tmp_path / f"g.{suffix}"
    graph = lu.as_graph(made)
    assert write_graph(path, graph) == ()
    back = read_graph(path)
    assert back.names.tolist() == ["a", "b", "c"]
    given = {name: values.tolist() for name, values in back.attributes.items()}
    assert given.pop("label_2") == ["l", "l", "m"]
    assert given.pop("id" if suffix == "graphml" else "id_2") == [7, 7, 7]
    assert given["age"] == [34, None, 2**53 + 1]
    assert given["share"][::2] == [0.5, 1]
    assert [str(value).lower() for value in given["sure"]] == ["true", "none", "false"]
    assert given["mixed"] == ["1", "x\ufffd", None]
    assert given["huge"] == [str(2**70), "1", "2"]
    write_graph(path, lu.Communities.of(graph, [0, 0, 1]), force=True)
    assert {"community", "age"} <= set(read_graph(path).attributes)
    (note,) = write_graph(tmp_path / "g.csv", graph)
    assert note == "attributes of vertices are left out; .gexf, .graphml, .cyjs keep them"
