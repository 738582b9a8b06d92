"""Public calls with a graph on a device, or an emulated one: who copies it to the host."""

import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import louvain_um as lu
from louvain_um.algorithms import running
from louvain_um.formats import write
from louvain_um.generators import lfr
from louvain_um.gpu.dynamic import cuda
from louvain_um.gpu.generate import generate
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime import device
from louvain_um.graph import export
from louvain_um.placement.memory import copies
from louvain_um.profiling.record import profiler
from tests.gpu.algorithms.emulated_algorithms import NoDevice, emulate
from tests.gpu_emulated.emulated_device import Emulated
from tests.gpu_emulated.emulated_engine import BLOCKS, HostArray, emulated_devices

GRAPH = lfr(200, weights="uniform", seed=3).graph
PATH = lu.Graph.from_edges(range(99), range(1, 100))
LABELS = np.arange(GRAPH.n_vertices) % 7
TABLE = pd.DataFrame({"vertex": range(len(LABELS)), "kind": LABELS % 2 == 0})


def found(graph, **options):
    return lu.louvain(graph, **options)


def written(graph, path):
    """Return the bytes of a file of the graph."""
    lu.write_graph(path, graph, force=True)
    return path.read_bytes()


def loaded(graph, path):
    """Return communities of a graph that were saved, and loaded with it."""
    lu.Communities.of(graph, LABELS).save(path, force=True)
    return lu.Communities.load(path, graph)


CALLS = {
    "louvain": lambda g, at, **on: lu.louvain(g, **on),
    "louvain: cpm": lambda g, at, **on: lu.louvain(g, objective="cpm", resolution=3.0, **on),
    "louvain: fixed": lambda g, at, **on: lu.louvain(g, fixed=[1, 5], **on),
    "louvain: max_size": lambda g, at, **on: lu.louvain(g, max_size=20, **on),
    "louvain: initial": lambda g, at, **on: lu.louvain(g, initial=LABELS, **on),
    "leiden": lambda g, at, **on: lu.leiden(g, **on),
    "modularity": lambda g, at, **on: lu.modularity(g, LABELS),
    "modularity: cpm": lambda g, at, **on: lu.modularity(g, LABELS, objective="cpm"),
    "Communities": lambda g, at, **on: lu.Communities.of(g, LABELS),
    "Communities: quality": lambda g, at, **on: found(g, **on).quality(),
    "Communities: table": lambda g, at, **on: found(g, **on).table().to_dict(),
    "Communities: save": lambda g, at, **on: found(g, **on).save(at / "r.npz", force=True),
    "Communities: frame": lambda g, at, **on: found(g, **on).to_frame().to_dict(),
    "bfs": lambda g, at, **on: lu.bfs(g, 0, **on),
    "sssp": lambda g, at, **on: lu.sssp(g, 0, **on),
    "connected_components": lambda g, at, **on: lu.connected_components(g, **on),
    "minimum_spanning_forest": lambda g, at, **on: lu.minimum_spanning_forest(g, **on),
    "pagerank": lambda g, at, **on: lu.pagerank(g, **on),
    "triangles": lambda g, at, **on: lu.triangles(g, **on),
    "spmv": lambda g, at, **on: lu.spmv(g, LABELS.astype(float), **on),
    "resolution_profile": lambda g, at, **on: lu.resolution_profile(g, points=2, **on).points,
    "Communities: significance": lambda g, at, **on: found(g, **on).significance(graphs=1, **on),
    "plan": lambda g, at, **on: str(lu.plan(g, machine="h200").policy),
    "profile": lambda g, at, **on: profiler._loaded(g, NoDevice()).n_arcs,
    "as_graph": lambda g, at, **on: lu.as_graph(g).degrees,
    "DynamicGraph": lambda g, at, **on: lu.DynamicGraph(g).n_arcs,
    "Tracker": lambda g, at, **on: lu.Tracker(lu.DynamicGraph(g)).modularity,
    "Louvain": lambda g, at, **on: lu.Louvain(**on).fit(g).labels_,
    "Communities: describe": lambda g, at, **on: str(found(g, **on).describe(TABLE)),
    "write_labels": lambda g, at, **on: lu.write_labels(at / "l.csv", found(g, **on), force=True),
    "ensemble": lambda g, at, **on: lu.ensemble(g, runs=2, **on).consensus,
    "write_graph: csv": lambda g, at, **on: written(g, at / "g.csv"),
    "write_graph: mtx": lambda g, at, **on: written(g, at / "g.mtx.gz"),
    "write_graph: metis": lambda g, at, **on: written(g, at / "g.graph"),
    "write_graph: npz": lambda g, at, **on: written(g, at / "g.npz"),
    "write_graph: parquet": lambda g, at, **on: written(g, at / "g.parquet"),
    "write_graph: cyjs": lambda g, at, **on: written(found(g, **on), at / "g.cyjs"),
    "Communities: induced_graph": lambda g, at, **on: lu.louvain(found(g, **on).induced_graph()),
    "Communities: subgraph": lambda g, at, **on: lu.louvain(found(g, **on).subgraph(0)),
    "Communities: to_networkx": lambda g, at, **on: str(found(g, **on).to_networkx().adj),
    "Communities: plot": lambda g, at, **on: found(g, **on).plot("communities").get_title(),
    "Communities: load": lambda g, at, **on: loaded(lu.as_graph(g), at / "r.npz").quality(),
    "Graph: validate": lambda g, at, **on: lu.as_graph(g).validate(),
    "Graph: to_pandas": lambda g, at, **on: lu.as_graph(g, nodes=TABLE).to_pandas().to_dict(),
    "Graph: to_scipy": lambda g, at, **on: lu.as_graph(g).to_scipy().toarray(),
    "Communities: memberships": lambda g, at, **on: found(g, **on).memberships().toarray(),
    "louvain: bipartite": lambda g, at, **on: lu.louvain(g, objective="bipartite", **on),
    "modularity: bipartite": lambda g, at, **on: lu.modularity(
        g, np.arange(100) // 9, objective="bipartite"
    ),
}
"""By public name: a call with a graph, a folder, and the device."""

LIBRARIES = {
    "write_graph: cyjs": ["networkx"],
    "write_graph: parquet": ["pyarrow"],
    "Communities: to_networkx": ["networkx"],
    "Communities: plot": ["networkx", "matplotlib"],
}
"""What calls need beside the package's own requirements."""

COPIED = {
    "Graph: to_scipy": "is a matrix in host memory",
}
"""Calls that copy all rows of a graph to the host at once, with the reason."""

PIECE = 256
"""Arcs that may come to the host at a time, to be written or counted."""

WITHOUT_GRAPH = {
    "Placer", "read_graph", "read_labels", "read_partitioned", "read_stream", "recording",
}  # fmt: skip
"""Public names that take no graph."""

BY_OTHERS = {
    "detect_partitioned": "ranks are other processes, which get their rows from the host",
    "sweep": "points are measured in other processes",
}
"""Names whose runs are other processes', so that rows go there by way of the host."""


class HostDevice(Emulated):
    """A device whose arrays are those of the engine's emulated device."""

    class Arrays:
        def __getattr__(self, name):
            return getattr(np, name)

        def empty(self, shape, dtype=float):
            return np.empty(shape, dtype).view(HostArray)

        def zeros(self, shape, dtype=float):
            return np.zeros(shape, dtype).view(HostArray)

        def asarray(self, values):
            return np.asarray(values).view(HostArray)

    xp = Arrays()


@pytest.fixture(
    params=[
        pytest.param("emulated", marks=pytest.mark.deep),
        pytest.param("gpu", marks=pytest.mark.gpu),
    ]
)
def fetched(request, monkeypatch):
    """Let public calls run on a device; return the rows that are copied to the host."""
    rows, fetch = [], DeviceGraph.fetched

    def noted(graph, name, part=slice(None)):
        many = len(range(graph.n_arcs)[part]) > PIECE
        rows.extend([name] if many and name in ("targets", "weights") else [])
        return fetch(graph, name, part)

    monkeypatch.setattr(DeviceGraph, "fetched", noted)
    for module in (export, write):
        monkeypatch.setattr(module, "BLOCK_ARCS", PIECE)
    if request.param == "gpu":
        request.getfixturevalue("gpu")
        yield rows
        return
    with emulated_calls(monkeypatch, request.getfixturevalue("emulated")):
        yield rows


@contextmanager
def emulated_calls(monkeypatch, emulated):
    """Let every public call run on an emulated device."""
    with emulated_devices(monkeypatch, emulated, 1):
        emulate(monkeypatch, emulated["algorithms"])
        there = sys.modules["cupy.cuda"]
        there.memory = SimpleNamespace(OutOfMemoryError=MemoryError)
        there.compiler = SimpleNamespace(CompileException=ImportError)
        there.driver = SimpleNamespace(CUDADriverError=ImportError)
        there.runtime.CUDARuntimeError = ImportError
        for name in ("memory", "runtime"):
            monkeypatch.setitem(sys.modules, f"cupy.cuda.{name}", getattr(there, name))
        monkeypatch.setattr(device, "usable", lambda index: index or 0)
        monkeypatch.setattr(running, "pick", lambda name: NoDevice())
        for module in (cuda, generate):
            monkeypatch.setattr(module, "CudaDevice", lambda: HostDevice(emulated, BLOCKS))
        monkeypatch.setattr(generate, "separate_memory", lambda limit: nullcontext())
        monkeypatch.setattr(copies, "sent", lambda values: np.array(values).view(HostArray))
        monkeypatch.setattr(copies, "fetched", np.array)
        yield


def plain(result):
    """Return what a call found, without how it was found."""
    if isinstance(result, lu.Communities):
        return result.labels.tolist(), result.modularity, result.value
    if isinstance(result, np.ndarray):
        return result.tolist()
    if isinstance(result, tuple | list):
        return [plain(each) for each in result]
    if hasattr(result, "__dataclass_fields__"):
        return {name: plain(getattr(result, name)) for name in result.__dataclass_fields__}
    return result


@pytest.mark.parametrize("name", CALLS)
def test_calls_copy_no_rows_to_the_host(fetched, name, tmp_path):
    for library in LIBRARIES.get(name, ()):
        pytest.importorskip(library)
    graph = PATH if "bipartite" in name else GRAPH
    made = plain(CALLS[name](DeviceGraph.from_host(graph), tmp_path, device="cuda"))
    assert (fetched != []) == (name in COPIED)
    assert str(made) == str(plain(CALLS[name](graph, tmp_path, device="cpu")))


def test_rows_that_are_no_graph_are_not_written(fetched, tmp_path):
    targets = GRAPH.targets.copy()
    targets[0] = targets[1]
    bad = lu.Graph(GRAPH.offsets, targets, GRAPH.weights, GRAPH.loops, GRAPH.scale, check=False)
    with pytest.raises(lu.GraphError, match="ascend"):
        lu.write_graph(tmp_path / "g.csv", DeviceGraph.from_host(bad))


def test_every_public_name_is_called():
    errors = {name for name in lu.__all__ if name.endswith(("Error", "Warning"))}
    called = {name.partition(":")[0] for name in CALLS}
    assert called | WITHOUT_GRAPH | set(BY_OTHERS) | errors == set(lu.__all__)
    assert set(COPIED) < set(CALLS)
