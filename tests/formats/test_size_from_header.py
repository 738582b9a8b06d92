import gzip

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import GraphFormatError
from louvain_um.formats.size_from_header import size_from_header

MEASURED = ("dolphins.mtx", "astro-ph.graph", "celegans_metabolic.graph", "cond-mat-2005.npz")


@pytest.mark.parametrize("name", MEASURED)
def test_heads_of_real_files_tell_what_reading_them_does(shared_data, name):
    size, graph = size_from_header(shared_data / name), lu.read_graph(shared_data / name)
    assert (size.vertices, size.arcs) == (graph.n_vertices, graph.n_arcs)
    assert size.weighted is graph.weighted


@pytest.mark.parametrize("ending", [".mtx", ".graph", ".npz", ".mtx.gz", ".graph.gz"])
@pytest.mark.parametrize("weights", [None, [1, 2, 3], [0.5, 1.5, 2.25]])
def test_heads_of_files_we_wrote_are_never_below_the_truth(tmp_path, ending, weights):
    graph = lu.as_graph(([0, 1, 2], [1, 2, 3], weights) if weights else ([0, 1, 2], [1, 2, 3]))
    path = tmp_path / f"a{ending}"
    if ending.startswith(".graph") and weights and isinstance(weights[0], float):
        pytest.skip("METIS holds whole weights")
    lu.write_graph(path, graph)
    size = size_from_header(path)
    assert size.vertices == graph.n_vertices
    assert size.arcs == graph.n_arcs
    assert size.weighted is graph.weighted


def test_nothing_behind_the_head_is_read(tmp_path):
    path = tmp_path / "cut.mtx.gz"
    text = b"%%MatrixMarket matrix coordinate pattern general\n5 5 8\n" + bytes(10_000_000)
    path.write_bytes(gzip.compress(text)[:2000])
    size = size_from_header(path)
    assert (size.vertices, size.arcs, size.weighted) == (5, 8, False)


def test_what_only_reading_tells_is_none(tmp_path):
    assert size_from_header("-") is None
    (tmp_path / "a.csv").write_text("0,1\n")
    assert size_from_header(tmp_path / "a.csv") is None
    np.savez(tmp_path / "edges.npz", u=[0], v=[1])
    assert size_from_header(tmp_path / "edges.npz") is None
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    assert size_from_header(tmp_path / "bad.npz") is None


def test_the_format_may_be_named(tmp_path):
    (tmp_path / "a.txt").write_text("3 2\n2\n1 3\n2\n")
    assert size_from_header(tmp_path / "a.txt") is None
    assert size_from_header(tmp_path / "a.txt", "metis").arcs == 4


@pytest.mark.parametrize("name", ["none.mtx", "folder.graph", "a.unknown"])
def test_files_that_are_not_there_are_named(tmp_path, name):
    (tmp_path / "folder.graph").mkdir()
    (tmp_path / "a.unknown").write_text("")
    with pytest.raises(GraphFormatError, match=name.partition(".")[0]):
        size_from_header(tmp_path / name)
