"""Cells of an AnnData and their neighbours: read as graphs, given their communities."""

import tempfile
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

import louvain_um as lu
from louvain_um.errors import GraphError
from louvain_um.formats import as_graph, read_graph
from louvain_um.formats import cells as reader

anndata = pytest.importorskip("anndata")


def listed(graph):
    """Return edges with weights, by the order of vertices."""
    upper = np.triu(graph.to_scipy().toarray())
    return [f"{u}-{v}:{upper[u, v]:g}" for u, v in zip(*upper.nonzero(), strict=True)]


def cells(matrix):
    found = anndata.AnnData(np.zeros((matrix.shape[0], 2), np.float32))
    found.obsp["connectivities"] = matrix
    return found


def test_cells_of_anndata(tmp_path):
    near = csr_array(np.array([[0, 2, 0], [2, 0, 1.5], [0, 1.5, 0]]))
    cells = anndata.AnnData(np.zeros((3, 2)), obsp={"connectivities": near, "other": near * 2})
    cells.obs_names = ["z", "y", "x"]
    cells.write_h5ad(tmp_path / "cells.h5ad")
    for graph in (as_graph(cells), read_graph(tmp_path / "cells.h5ad")):
        assert graph.names.tolist() == ["z", "y", "x"]
        assert listed(graph) == ["0-1:2", "1-2:1.5"]
    assert listed(as_graph(cells, weight="other")) == ["0-1:4", "1-2:3"]
    del cells.obsp["connectivities"]
    with pytest.raises(GraphError, match=r"obsp holds 'other'.*weight=…"):
        as_graph(cells)


def test_attributes_of_cells_are_the_same_from_a_file(tmp_path):
    pd = pytest.importorskip("pandas")
    found = cells(csr_array(np.ones((3, 3))))
    found.obs["size"], found.obs["share"], found.obs["known"] = [1, 2, 3], [0.5, np.nan, 1], True
    found.obs["kind"] = pd.Categorical(["a", None, "b"])
    found.obs["count"] = pd.array([1, None, 2**53 + 1], "Int64")
    found.obs["sure"] = pd.array([True, None, False], "boolean")
    found.obs["group"] = pd.Categorical([2, 1, 2])
    found.write_h5ad(tmp_path / "cells.h5ad")
    read, made = read_graph(tmp_path / "cells.h5ad").attributes, as_graph(found).attributes
    assert list(read) == list(made) == ["size", "share", "known", "kind", "count", "sure", "group"]
    assert made["count"].tolist() == [1, None, 2**53 + 1]
    assert (made["sure"].tolist(), made["group"].tolist()) == ([True, None, False], [*"212"])
    for name, values in made.items():
        assert read[name].dtype == values.dtype
        pd.testing.assert_series_equal(pd.Series(read[name]), pd.Series(values))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (None, "does not fit in the temporary folder"),
        (0, "no temporary file can be made for it"),
        (-9, "memory runs out"),
    ],
)
def test_failures_of_the_reading_process_are_not_the_files(tmp_path, monkeypatch, code, message):
    cells(csr_array(np.ones((3, 3)))).write_h5ad(tmp_path / "cells.h5ad")
    if code is None:
        monkeypatch.setattr(reader, "TemporaryFile", partial(open, "/dev/full", "r+b", 0))
    elif code == 0:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    else:
        monkeypatch.setattr(reader, "run", lambda *_: code)
    with pytest.raises(lu.GraphError, match=message) as caught:
        read_graph(tmp_path / "cells.h5ad")
    assert "valid" not in str(caught.value)


def test_hostile_files_of_cells_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    cells(csr_array(np.ones((3, 3)))).write_h5ad(tmp_path / "whole.h5ad")

    def refused(change, message, **options):
        copy = tmp_path / "copy.h5ad"
        copy.write_bytes((tmp_path / "whole.h5ad").read_bytes())
        with h5py.File(copy, "a") as file:
            change(file)
        with pytest.raises(lu.LouvainUmError, match=message):
            read_graph(copy, **options)

    def zeros(file):
        layer = file.create_dataset("layers/x", (3, 10**13), "f4", chunks=(3, 10**6))
        layer.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})

    def names_of_another(file):
        del file["obs/_index"]
        file.create_dataset("obs/_index", (3,), "S1", external=[(__file__, 0, 3)])

    def graph_of_another(file):
        del file["obsp"]
        file["obsp"] = h5py.ExternalLink(str(tmp_path / "whole.h5ad"), "/obsp")

    refused(zeros, "unpacks to more than 200 times")
    refused(zeros, "memory", trusted=True)
    refused(names_of_another, "data from other files")
    refused(graph_of_another, "data from other files")
    refused(lambda file: file["obsp/connectivities/indices"].write_direct(np.full(9, -7, "i4")),
            "damaged")  # fmt: skip


def test_communities_of_cells_are_written_as_scanpy_does(tmp_path):
    """A categorical in the order of numbers, and the parameters; nothing without a key."""
    found = cells(lu.generators.planted(600, blocks=12, degree_out=2, seed=3).graph.to_scipy())
    result = lu.leiden(found, device="cpu")
    assert list(found.obs) == list(found.uns) == []
    again = lu.leiden(found, key_added="groups", resolution=1.5, seed=7, device="cpu")
    column = found.obs["groups"]
    assert column.cat.categories.tolist() == [str(k) for k in range(again.n_communities)]
    assert again.n_communities > 10
    assert column.astype(int).tolist() == again.labels.tolist()
    assert found.uns["groups"]["params"] == {
        "resolution": 1.5, "random_state": 7, "n_iterations": 1 + again.levels[-1].cycle,
        "method": "leiden", "objective": "modularity", "effort": "default", "best_of": 1,
        "threshold": 1e-7,
    }  # fmt: skip
    assert found.uns["groups"]["modularity"] == again.modularity
    lu.louvain(found, key_added="louvain", device="cpu")
    assert found.obs["louvain"].value_counts().iloc[0] == column.size / 12
    found.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert back.obs["groups"].tolist() == column.tolist()
    assert result.n_vertices == 600


def test_where_communities_of_cells_cannot_be_written():
    for graph, key, message in (
        ([(0, 1)], "leiden", "key_added names a column of an AnnData, not of a list"),
        (cells(np.ones((2, 2))), "", "must be text"),
    ):
        with pytest.raises(lu.OptionError, match=message):
            lu.leiden(graph, key_added=key, device="cpu")


def test_neighbours_of_cells_that_are_not_mutual_are_united():
    near = np.array([[0, 0.5, 0.2], [0.25, 0, 0], [0, 1, 0]])
    graph = as_graph(cells(near))
    assert listed(graph) == ["0-1:0.625", "0-2:0.2", "1-2:1"]
    assert any("either is a neighbour" in note for note in graph.notes)
    assert listed(as_graph(cells(4 * near))) == ["0-1:2", "0-2:0.8", "1-2:4"]
    assert as_graph(cells(near), directed=True).kind == "directed"
    rounded = near + near.T
    rounded[0, 1] *= 1 + 1e-8
    assert not any("neighbour" in note for note in as_graph(cells(rounded)).notes)
