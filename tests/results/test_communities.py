import itertools
import json
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.core.plain_data import objects
from louvain_um.results.communities import Communities, Level, number_by_size
from louvain_um.results.display import listable, size_rows
from louvain_um.results.quality import modularity

TRIANGLES = ([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])


def level(**changes):
    fields = {
        "vertices": 6,
        "arcs": 14,
        "communities": 2,
        "modularity": 0.25,
        "iterations": 3,
        "arcs_visited": 28,
        "seconds": 0.5,
    }
    return Level(**{**fields, **changes})


def two_levels(names=None):
    graph = lu.Graph.from_edges(*TRIANGLES, names=names)
    return Communities(
        graph=graph,
        labels=np.array([1, 1, 0, 0, 0, 0], np.uint32),
        maps=(np.array([0, 0, 1, 2, 2, 2], np.uint32), np.array([0, 1, 1], np.uint32)),
        levels=(level(communities=3), level(vertices=3)),
        modularity=0.25,
        resolution=1.5,
        method="louvain",
        timings={"total": 1.5},
        memory={"graph": 100},
        provenance={"seed": np.uint32(3), "device": "cpu"},
    )


@given(st.lists(st.integers(-3, 12)))
def test_numbering_is_by_size_then_smallest_member(labels):
    numbered = number_by_size(labels).tolist()
    order = sorted(set(labels), key=lambda c: (-labels.count(c), labels.index(c)))
    assert numbered == [order.index(c) for c in labels]


@pytest.mark.parametrize("labels", [[0.5, 1.0], [[0, 1]], ["a"]])
def test_numbering_refuses_what_is_no_labels(labels):
    with pytest.raises(lu.GraphError):
        number_by_size(labels)


def test_levels_cut_the_dendrogram():
    result = two_levels()
    assert result.at_level(0).tolist() == [1, 1, 2, 0, 0, 0]
    assert result.at_level(1).tolist() == result.labels.tolist()
    assert result.at_level(-1).tolist() == result.labels.tolist()
    assert result.at_level(0).dtype == np.uint32
    for wrong in (2, -3):
        with pytest.raises(lu.OptionError, match="levels 0 … 1"):
            result.at_level(wrong)


def ring_with_chords(seed):
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 1000, 3000)
    return lu.Graph.from_edges(u, (u + rng.integers(1, 30, 3000)) % 1000)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("max_level", [None, 1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_a_hierarchy_nests_and_ends_with_the_communities(method, max_level, seed):
    graph = ring_with_chords(seed)
    result = getattr(lu, method)(graph, device="cpu", seed=seed, max_level=max_level)
    nested = result.hierarchy()
    assert nested[-1].tolist() == result.labels.tolist()
    assert all(part.tolist() == number_by_size(part).tolist() for part in nested)
    for fine, coarse in itertools.pairwise(nested):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == fine.max() + 1
        assert fine.max() > coarse.max()
    if max_level is None:
        assert len(nested) > 1
        assert result.levels[-1].cycle > 0  # so that levels alone do not nest


def test_a_hierarchy_of_one_cycle_of_louvain_is_its_levels():
    result = two_levels()
    assert [part.tolist() for part in result.hierarchy()] == [
        result.at_level(0).tolist(),
        result.at_level(1).tolist(),
    ]
    outside = Communities.of(result.graph, [0, 0, 1, 1, 1, 1])
    assert [part.tolist() for part in outside.hierarchy()] == [outside.labels.tolist()]
    empty = Communities.of(lu.Graph.from_edges([], []), [])
    assert [part.tolist() for part in empty.hierarchy()] == [[]]


def test_a_loaded_result_has_the_same_hierarchy(tmp_path):
    result = lu.leiden(ring_with_chords(0), device="cpu")
    result.save(tmp_path / "r.npz")
    again = Communities.load(tmp_path / "r.npz").hierarchy()
    assert [part.tolist() for part in again] == [part.tolist() for part in result.hierarchy()]


def test_members_and_sizes():
    result = two_levels()
    assert [c.tolist() for c in result.communities()] == [[2, 3, 4, 5], [0, 1]]
    assert result.sizes.tolist() == [4, 2]
    assert result.n_communities == len(result) == 2
    named = two_levels(np.array(list("abcdef"), object))
    assert [c.tolist() for c in named.communities()] == [["c", "d", "e", "f"], ["a", "b"]]


def test_results_are_iterated_and_indexed_by_community():
    for names in (None, np.array(list("abcdef"), object)):
        result = two_levels(names)
        listed = [members.tolist() for members in result.communities()]
        assert [members.tolist() for members in result] == listed
        assert [result[c].tolist() for c in range(len(result))] == listed
        assert result[-1].tolist() == listed[-1]
        by_vertex = result.to_dict()
        assert [by_vertex[v] for members in listed for v in members] == [0, 0, 0, 0, 1, 1]
        assert lu.modularity(result.graph, by_vertex) == lu.modularity(result.graph, result)
        with pytest.raises(IndexError, match="no community 2 among 2 communities"):
            result[2]
        with pytest.raises(IndexError, match="no community -3"):
            result[-3]
        with pytest.raises(TypeError, match="to_dict"):
            result["a"]
        with pytest.raises(TypeError, match="communities"):
            result[0:1]


def test_no_vertices():
    result = Communities.of(lu.Graph.from_edges([], []), [])
    assert result.communities() == []
    assert result.n_communities == 0
    assert result.quality().disconnected == 0
    assert result.induced_graph().n_vertices == 0
    assert "0 vertices in 0 communities" in repr(result)
    assert result._repr_html_()


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2**34)), max_size=40),
    st.lists(st.integers(0, 3), min_size=10, max_size=10),
)
def test_induced_graph_keeps_weight_and_modularity(edges, labels):
    u, v, w = ([e[i] for e in edges] for i in range(3))
    graph = lu.Graph.from_edges(u, v, np.array(w, np.int64), n_vertices=10)
    result = Communities.of(graph, labels)
    small = result.induced_graph()
    assert small.total_weight == graph.total_weight
    assert small.degrees.sum() == graph.degrees.sum()
    alone = modularity(small, np.arange(small.n_vertices))
    assert alone == modularity(graph, labels) == result.modularity
    dense = np.zeros((small.n_vertices,) * 2, np.int64)
    np.add.at(dense, (result.labels[u], result.labels[v]), w)
    dense += dense.T
    for c in range(small.n_vertices):
        row = slice(small.offsets[c], small.offsets[c + 1])
        assert (np.diff(small.targets[row].astype(np.int64)) > 0).all()
        assert dense[c, small.targets[row]].tolist() == small.weights[row].tolist()
        assert dense[c, c] == 2 * small.loops[c]


def test_frame():
    frame = two_levels(np.array(list("abcdef"), object)).to_frame(levels=True)
    assert frame.columns.tolist() == ["vertex", "community", "level_0", "level_1"]
    assert frame["vertex"].tolist() == list("abcdef")
    assert frame["level_0"].tolist() == [1, 1, 2, 0, 0, 0]


@pytest.mark.parametrize("library", ["polars", "arrow"])
@pytest.mark.parametrize("names", [None, np.array(list("abcdef"), object)])
def test_frames_of_other_libraries_say_the_same(library, names):
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    result = two_levels(names)
    frame = result.to_frame(levels=True, library=library)
    expected = result.to_frame(levels=True).to_dict("list")
    columns = frame.to_dict(as_series=False) if library == "polars" else frame.to_pydict()
    assert columns == expected
    assert result.compare(frame.select(["vertex", "community"])).identical
    with pytest.raises(lu.OptionError, match="library must be 'pandas', 'polars' or 'arrow'"):
        result.to_frame(library="cudf")


def test_a_frame_is_of_the_library_of_the_table_that_was_given():
    edges = {"source": ["ann", "bob", "cid"], "target": ["bob", "cid", "ann"]}
    for module, kind in (("polars", "DataFrame"), ("pyarrow", "Table"), ("pandas", "DataFrame")):
        library = pytest.importorskip(module)
        given = library.table(edges) if module == "pyarrow" else library.DataFrame(edges)
        found = lu.louvain(given, device="cpu")
        assert type(found.to_frame()) is getattr(library, kind)
        assert found.to_frame(library="arrow").num_rows == 3


def test_cdlib_gets_members_by_name():
    pytest.importorskip("cdlib")
    result = lu.louvain(lu.read_graph("example:karate"), device="cpu")
    found = result.to_cdlib()
    assert result.compare(found).identical
    assert found.newman_girvan_modularity().score == pytest.approx(
        lu.modularity(lu.as_graph(found.graph, weighted=False), result), abs=1e-9
    )


def test_cdlib_must_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "cdlib", None)
    with pytest.raises(lu.LouvainUmError, match="pip install cdlib"):
        two_levels().to_cdlib()


def test_a_frame_names_the_cycle_of_a_level():
    result = lu.louvain(ring_with_chords(0), device="cpu")
    frame = result.to_frame(levels=True)
    columns = frame.columns.tolist()[2:]
    assert len(columns) == len(result.levels)
    for k, (column, found) in enumerate(zip(columns, result.levels, strict=True)):
        assert column == f"level_{k}" + (f"_cycle_{found.cycle}" if found.cycle else "")
        assert frame[column].tolist() == result.at_level(k).tolist()
    assert columns[-1].endswith("_cycle_1")


def test_a_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(lu.LouvainUmError, match=r"needs pandas.*\[formats\]"):
        two_levels().to_frame()


@pytest.mark.parametrize(
    "names",
    [
        None,
        np.array([5, 6, 7, 8, 9, 10]),
        np.array(list("abcdef")),
        np.array(["a\n", 'q"', "ü", "", "e", "f"], object),
        np.array([1, "b", 2.5, "d", "e", "f"], object),
        objects([((0,), "a"), ((), 1), (2, (3, (4,))), "d", True, -1.5]),
    ],
)
def test_saving_and_loading_return_the_same(tmp_path, names):
    result = two_levels(names)
    result.save(tmp_path / "r.npz")
    for graph in (result.graph, None):
        again = Communities.load(tmp_path / "r.npz", graph)
        assert again.labels.tolist() == result.labels.tolist()
        assert again.levels == result.levels
        assert (again.modularity, again.resolution, again.method) == (0.25, 1.5, "louvain")
        assert again.timings == result.timings
        assert again.provenance == {"seed": 3, "device": "cpu"}
        assert again.at_level(0).tolist() == result.at_level(0).tolist()
        assert (again.names is None) == (names is None)
        if names is not None:
            assert again.names.tolist() == names.tolist()
    with pytest.raises(lu.GraphError, match="graph=") as caught:
        Communities.load(tmp_path / "r.npz").quality()
    assert "\n" not in str(caught.value)


def test_saving_refuses_to_overwrite_and_leaves_no_half(tmp_path):
    target = tmp_path / "r.npz"
    target.write_text("mine")
    with pytest.raises(lu.LouvainUmError, match="exists already"):
        two_levels().save(target)
    assert target.read_text() == "mine"
    two_levels().save(target, force=True)
    assert Communities.load(target).n_communities == 2
    with pytest.raises(lu.LouvainUmError, match="no folder"):
        two_levels().save(tmp_path / "no" / "r.npz")
    with pytest.raises(lu.LouvainUmError, match=r"\.npz"):
        two_levels().save(tmp_path / "r.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["r.npz"]


def test_loading_refuses_foreign_files(tmp_path):
    result = two_levels()
    result.save(tmp_path / "r.npz")
    arrays = dict(np.load(tmp_path / "r.npz"))
    about = json.loads(arrays["about"].tobytes())
    about["schema_version"] = 99
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(tmp_path / "new.npz", **arrays)
    np.savez(tmp_path / "foreign.npz", labels=arrays["labels"])
    (tmp_path / "noise.npz").write_bytes(b"PK\x03\x04 noise")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "r.npz").read_bytes()[:-40])
    np.savez(tmp_path / "pickle.npz", labels=np.array([{}], object))
    expected = {
        "new": "version 99",
        "foreign": "not a result",
        "noise": "not a whole",
        "cut": "not a whole",
        "pickle": "not a whole",
        "missing": "no such file",
    }
    for name, text in expected.items():
        with pytest.raises(lu.LouvainUmError, match=text) as caught:
            Communities.load(tmp_path / f"{name}.npz")
        assert f"{name}.npz" in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(lu.GraphError, match="another graph"):
        Communities.load(tmp_path / "r.npz", lu.Graph.from_edges([0], [1], n_vertices=6))


def test_views():
    import rich.console

    names = np.array(["<b>", "[red]x", "c", "d", "e", "f"], object)
    result = two_levels(names)
    assert repr(result) == (
        "Communities(6 vertices in 2 communities, modularity 0.2500, louvain, 2 levels)"
    )
    html = result._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    console = rich.console.Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(result)
    text = console.export_text()
    assert "[red]x" in text
    assert "modularity 0.2500" in text


def test_labels_must_fit_the_graph():
    graph = lu.Graph.from_edges([0], [1])
    with pytest.raises(lu.GraphError, match="3 labels for a graph of 2"):
        Communities(graph=graph, labels=np.zeros(3, np.uint32), modularity=0.0)
    with pytest.raises(lu.GraphError, match="uint32"):
        Communities(graph=graph, labels=np.zeros(2, np.int64), modularity=0.0)


def test_labels_are_wrapped_with_graphs_of_other_libraries():
    club = nx.karate_club_graph()
    found = lu.leiden(club, device="cpu")
    again = Communities.of(club, found.to_dict())
    assert again.modularity == found.modularity
    assert again.compare(found).identical
    with pytest.raises(lu.GraphError, match="no community"):
        Communities.of(club, {0: 1})


def test_names_with_commas_are_quoted_in_lists():
    assert listable(["Smith, J.", "Bob", 7]) == ['"Smith, J."', "Bob", "7"]
    graph = lu.as_graph((["Smith, J.", "Bob"], ["Bob", "Cid"]))
    assert size_rows(lu.louvain(graph, device="cpu"))[0][2] == 'Bob, Cid, "Smith, J."'
