import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_clusterer
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import louvain_um as lu
from louvain_um.options import Options

BLOCKS = np.kron(np.eye(3), np.ones((4, 4)) - np.eye(4))
BLOCKS[0, 4] = BLOCKS[4, 0] = BLOCKS[4, 8] = BLOCKS[8, 4] = 1.0


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.coo_matrix, np.ndarray.tolist])
def test_finds_blocks(method, kind):
    model = lu.Louvain(method=method, device="cpu")
    assert model.fit_predict(kind(BLOCKS)).tolist() == np.repeat([0, 1, 2], 4).tolist()
    assert model.n_communities_ == 3
    assert model.n_features_in_ == 12
    assert model.n_iter_ == len(model.communities_.levels)
    graph = model.communities_.graph
    assert model.modularity_ == pytest.approx(lu.modularity(graph, model.labels_))


def test_labels_are_those_of_the_function():
    graph = lu.as_graph(sp.csr_array(BLOCKS))
    model = lu.Louvain(resolution=3.0, seed=7, device="cpu").fit(graph)
    expected = lu.louvain(graph, resolution=3.0, seed=7, device="cpu").labels
    assert model.labels_.tolist() == expected.tolist()


def test_frames_and_bytes_in_another_order_are_matrices():
    expected = lu.Louvain(device="cpu").fit_predict(BLOCKS).tolist()
    for matrix in (pd.DataFrame(BLOCKS), BLOCKS.astype(">f8"), BLOCKS.astype(np.float16)):
        assert lu.Louvain(device="cpu").fit_predict(matrix).tolist() == expected


def test_parameters_are_the_options():
    defaults = lu.Louvain().get_params()
    assert defaults.pop("symmetrize") is False
    names = dict(inspect.signature(Options).parameters)
    for experiment in ("ballast", "allow_driver_eviction"):
        del names[experiment]
    assert defaults == {name: p.default for name, p in names.items()}


def test_scikit_learn_conventions():
    """Other tests than those of `check_estimator`."""
    model = lu.Louvain(resolution=0.5, method="leiden")
    with pytest.raises(ValueError, match="no parameter 'gamma'"):
        model.set_params(gamma=1)
    assert repr(model) == "Louvain(method='leiden', resolution=0.5)"
    assert is_clusterer(model)
    assert not hasattr(clone(lu.Louvain(device="cpu").fit(BLOCKS)), "labels_")


def test_bad_parameters_show_when_fitting():
    with pytest.raises(lu.OptionError, match="resolution"):
        lu.Louvain(resolution=0).fit(BLOCKS)


@pytest.mark.parametrize("shape", [(3,), (3, 2), (2, 2, 2)])
def test_only_square_matrices(shape):
    with pytest.raises(lu.OptionError, match="square"):
        lu.Louvain(device="cpu").fit(np.ones(shape))


def test_directed_matrices_take_symmetrize():
    upper = np.triu(BLOCKS)
    with pytest.raises(lu.GraphError, match="symmetrize"):
        lu.Louvain(device="cpu").fit(upper)
    assert lu.Louvain(device="cpu", symmetrize=True).fit(upper).n_communities_ == 3


def test_objectives_of_directed_and_signed_matrices():
    upper = np.triu(BLOCKS)
    found = lu.Louvain(device="cpu", objective="directed").fit(upper)
    assert found.n_communities_ == 3
    assert found.communities_.objective == "directed"
    signed = BLOCKS - 0.5 * (BLOCKS == 0)
    np.fill_diagonal(signed, 0)
    found = lu.Louvain(device="cpu", method="leiden", objective="signed").fit(signed)
    assert found.n_communities_ == 3


def test_scikit_learn_is_not_imported():
    code = "import louvain_um, sys; louvain_um.Louvain(); sys.exit('sklearn' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.filterwarnings("ignore:Estimator Louvain does not inherit:UserWarning")
def test_scikit_learn_checks_pass():
    pytest.importorskip("sklearn", minversion="1.6")  # returns results from then on
    # Skipped by scikit-learn itself: the array API, which is off unless SCIPY_ARRAY_API is set.
    results = check_estimator(lu.Louvain(device="cpu"), on_skip=None)
    assert len(results) > 30
    skipped = {result["check_name"] for result in results if result["status"] != "passed"}
    assert skipped <= {"check_array_api_input"}


def test_rounding_is_no_asymmetry():
    exact = BLOCKS / 3
    rounded = exact.copy()
    rounded[0, 1] *= 1 + 1e-12
    labels = lu.Louvain(device="cpu").fit_predict(exact).tolist()
    for kind in (np.asarray, sp.csr_array, sp.dia_array, sp.lil_array):
        assert lu.Louvain(device="cpu").fit_predict(kind(rounded)).tolist() == labels
    rounded[0, 1] *= 1 + 1e-6
    with pytest.raises(lu.GraphError, match="not symmetric"):
        lu.Louvain(device="cpu").fit(rounded)


@pytest.mark.parametrize(("value", "text"), [(np.nan, "NaN"), (np.inf, "infinity"), (1j, "omplex")])
def test_values_that_are_no_weights(value, text):
    damaged = BLOCKS.astype(type(value))
    damaged[0, 1] = damaged[1, 0] = value
    for kind in (np.asarray, sp.csr_array):
        with pytest.raises(lu.GraphError, match=text):
            lu.Louvain(device="cpu").fit(kind(damaged))
    with pytest.raises(lu.GraphError, match="X must hold numbers, not <U1"):
        lu.Louvain(device="cpu").fit([["0", "1"], ["1", "0"]])


def spots():
    random = np.random.default_rng(5)
    centres = np.repeat(np.arange(4) * 20.0, 30)
    return np.stack((centres, centres % 3), 1) + random.normal(size=(120, 2))


@pytest.mark.parametrize("mode", ["connectivity", "distance"])
def test_neighbours_of_scikit_learn_in_a_pipeline(mode):
    """Pairs are joined if either is a neighbour of the other; distances are not weights."""
    points = spots()
    steps = make_pipeline(
        KNeighborsTransformer(n_neighbors=8, mode=mode), lu.Louvain(device="cpu", method="leiden")
    )
    expected = np.repeat(np.arange(4), 30)
    if mode == "distance":
        with pytest.warns(lu.GraphWarning, match="distances are not weights"):
            labels = steps.fit_predict(points)
    else:
        labels = steps.fit_predict(points)
    found = steps[-1].communities_
    assert lu.Communities.of(found.graph, expected).modularity <= found.modularity + 1e-12
    assert all(len(set(labels[at : at + 30])) <= 3 for at in range(0, 120, 30))
    assert not any(set(labels[:30]) & set(labels[at : at + 30]) for at in (30, 60, 90))
    # Each point is one of its neighbours in a matrix of connectivities.
    listed = kneighbors_graph(points, 8 - (mode == "connectivity")).toarray() > 0
    assert found.graph.n_edges == np.count_nonzero(np.triu(listed | listed.T))
    assert any("either is a neighbour" in note for note in found.graph.notes)


def test_the_same_matrix_is_united_outside_of_pipelines():
    near = KNeighborsTransformer(n_neighbors=8, mode="connectivity").fit_transform(spots())
    found, graph = lu.Louvain(device="cpu").fit(near).communities_, lu.as_graph(near)
    assert (graph.to_scipy() != found.graph.to_scipy()).nnz == 0
    assert graph.notes == found.graph.notes
    assert lu.as_graph(near, directed=True).kind == "directed"
    shares, ends = [0.1, 0.2, 0.4, 0.3, 0.5, 0.6, 0.7, 0.9], [2, 1, 3, 2, 1, 0, 1, 2]
    unsorted = sp.csr_array((shares, ends, [0, 2, 4, 6, 8]), shape=(4, 4))
    before = unsorted.toarray()
    weights = lu.as_graph(unsorted).to_scipy().toarray()
    assert np.array_equal(unsorted.toarray(), before)
    assert np.allclose(weights, before + before.T - before * before.T)
    for refused in (-near, near * np.nan):
        with pytest.raises(lu.GraphError):
            lu.as_graph(refused)
    near.data[0] = 0
    near.eliminate_zeros()  # not as many neighbours everywhere
    with pytest.raises(lu.GraphError, match="not symmetric"):
        lu.as_graph(near)
