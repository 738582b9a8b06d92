"""Options of reading that would have no effect are refused."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import louvain_um as lu

OPTIONS = [{"header": True}, {"separator": ","}, {"ids": "text"}, {"one_based": False}]


@pytest.fixture(params=["mtx", "graph", "gml", "json", "npz", "sparse.npz", "parquet"])
def other(request, tmp_path):
    """Return a file of two edges that is no edge list."""
    path = tmp_path / f"g.{request.param}"
    texts = {
        "mtx": "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n",
        "graph": "3 2\n2\n1 3\n2\n",
        "gml": "graph [ node [id 0] node [id 1] edge [source 0 target 1] ]",
        "json": '{"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2}]}',
    }
    if request.param in texts:
        path.write_text(texts[request.param])
    elif request.param == "npz":
        np.savez(path, u=[0, 1], v=[1, 2])
    elif request.param == "parquet":
        pd.DataFrame({"source": [0, 1], "target": [1, 2]}).to_parquet(path)
    else:
        scipy.sparse.save_npz(path, scipy.sparse.eye(3).tocsr())
    return path


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_options_of_edge_lists_are_for_edge_lists(other, option):
    if other.suffix == ".parquet" and "one_based" in option:
        assert lu.read_graph(other, **option).n_vertices == 3
        return
    with pytest.raises(lu.GraphFormatError, match=f"only edge lists take {next(iter(option))}="):
        lu.read_graph(other, **option)


def test_graphs_of_this_package_are_taken_as_they_are():
    g = lu.Graph.from_edges([0, 1, 1], [1, 2, 1])
    assert lu.as_graph(g, symmetrize=True, allow_rounding=True) is g
    directed = lu.Graph.from_edges([0, 1], [1, 2], kind="directed")
    for given, option in (
        (g, {"loops": "drop"}),
        (g, {"weighted": False}),
        (lu.DynamicGraph(g), {"duplicates": "sum"}),
        (directed, {"symmetrize": True}),
    ):
        with pytest.raises(lu.GraphError, match="is taken as it is; pass options of reading to"):
            lu.as_graph(given, **option)


def test_parquet_is_read_from_redirected_standard_input(tmp_path):
    pd.DataFrame({"source": [0, 1], "target": [1, 2]}).to_parquet(tmp_path / "g.parquet")
    code = "import louvain_um as lu; print(lu.read_graph('-').n_edges)"
    with (tmp_path / "g.parquet").open("rb") as file:
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True)
    assert done.stdout.strip() == b"2", done.stderr
