import numpy as np
import pytest
from scipy.sparse import coo_array

import louvain_um as lu
from louvain_um import Graph, as_graph
from louvain_um.gpu.building import edges, objects
from louvain_um.gpu.building.build import Builder
from louvain_um.gpu.dynamic.cuda import Cuda
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.options import Options
from tests.gpu_emulated.test_emulated_build import IDS, WEIGHTS

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(7)


def same(made, right):
    here = made.to_host()
    pairs = [(getattr(here, a), getattr(right, a)) for a in ("offsets", "targets", "loops")]
    if here.weights is None or right.weights is None:
        alike = here.weights is right.weights
    else:
        alike = here.weights.dtype == right.weights.dtype
        pairs.append((here.weights, right.weights))
    about = (here.scale, here.notes) == (right.scale, right.notes)
    return alike and about and all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("size", [(50, 200), (3000, 200_000), (1, 1000), (200_000, 1_500_000)])
def test_edges_on_the_device_make_the_graph_of_the_host(gpu, kind, size):
    import cupy

    n, m = size
    for number, duplicates in enumerate((None, "once", "sum")):
        u, v = (RNG.integers(0, n, m).astype(IDS[number]) for _ in range(2))
        u[: m // 10] = u[0]  # a hub
        weights = WEIGHTS[kind](m)
        there = [None if a is None else cupy.asarray(a) for a in (u, v, weights)]
        builder = Builder(Cuda(), 1 << (14 + 11 * (number % 2)))
        made = builder.from_edges(*there, duplicates=duplicates)
        try:
            right = Graph.from_edges(u, v, weights, duplicates=duplicates)
        except ValueError:
            assert made is None
            continue
        assert same(made, right)


@pytest.mark.parametrize("kind", ["none", "bytes", "large", "real"])
def test_a_run_on_the_device_makes_the_rows_of_the_host(gpu, kind, monkeypatch):
    n, m = 100_000, 1_200_000
    u, v, weights = RNG.integers(0, n, m), RNG.integers(0, n, m), WEIGHTS[kind](m)
    given = (u, v) if weights is None else (u, v, np.maximum(weights, 1e-3))
    right = as_graph(given)
    made = []
    there = edges._made_there
    monkeypatch.setattr(
        edges, "_made_there", lambda *a, **k: made.append(there(*a, **k)) or made[-1]
    )
    with edges.rows_made_on(Options(device="cuda")):
        graph = as_graph(given)
    assert [rows is not None for rows in made] == [True]
    for name in ("offsets", "targets", "weights", "loops"):
        assert np.array_equal(getattr(graph, name), getattr(right, name)), name
    assert (graph.scale, graph.notes) == (right.scale, right.notes)
    assert np.array_equal(lu.louvain(given, device="cuda").labels, lu.louvain(right).labels)
    with edges.rows_made_on(Options(device="cuda", device_budget="20MB")):
        assert np.array_equal(as_graph(given).targets, right.targets)
    assert made[-1] is None


@pytest.mark.parametrize("kind", ["ones", "bytes", "large", "real", "float32"])
def test_matrices_on_the_device_give_the_labels_of_the_host(gpu, kind):
    import cupyx

    n, m = 5000, 60_000
    u, v = RNG.integers(0, n, m), RNG.integers(0, n, m)
    u, v = u[u != v], v[u != v]
    values = np.maximum(WEIGHTS[kind](len(u)), 1e-3 if kind in ("real", "float32") else 1)
    matrix = coo_array((values, (u, v)), (n, n)).tocsr()
    matrix = (matrix + matrix.T).tocsr().astype(np.float64)
    there = cupyx.scipy.sparse.csr_matrix(matrix)
    made = objects.built_there(there)
    assert made is not None
    assert same(made, as_graph(matrix))
    here, far = lu.louvain(matrix, device="cpu"), lu.louvain(there, device=str(gpu))
    assert np.array_equal(here.labels, far.labels)


def test_arrays_by_dlpack_and_bad_ids(gpu):
    import cupy

    u, v = cupy.asarray([0, 1, 2, 3]), cupy.asarray([1, 2, 0, 3])

    class Packed:
        """An array that only DLPack knows."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    found = lu.louvain((Packed(u), Packed(v)), device=str(gpu))
    assert found.labels.tolist() == lu.louvain((u.get(), v.get()), device="cpu").labels.tolist()
    with pytest.raises(lu.GraphError, match="source at index 0 is negative"):
        lu.louvain((u - 1, v), device=str(gpu))


def test_graphs_on_the_device_serve_what_graphs_serve(gpu, tmp_path):
    graph = as_graph((RNG.integers(0, 50, 300), RNG.integers(0, 50, 300), RNG.random(300) + 0.1))
    there = DeviceGraph.from_host(graph)
    labels = np.arange(graph.n_vertices) % 3
    assert lu.modularity(there, labels) == lu.modularity(graph, labels)
    assert np.array_equal(lu.DynamicGraph(there).host_snapshot().targets, graph.targets)
    lu.write_graph(tmp_path / "g.npz", there)
    assert np.array_equal(lu.read_graph(tmp_path / "g.npz").targets, graph.targets)
