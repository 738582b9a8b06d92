"""Public calls with a graph on a device, or an emulated one: who copies it to the host."""

import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import louvain_um as lu
from louvain_um.algorithms import running
from louvain_um.generators import lfr
from louvain_um.gpu.dynamic import cuda
from louvain_um.gpu.generate import generate
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime import device
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
    "write_graph": lambda g, at, **on: lu.write_graph(at / "g.npz", g, force=True),
    "Communities: induced_graph": lambda g, at, **on: found(g, **on).induced_graph().targets,
    "Communities: subgraph": lambda g, at, **on: found(g, **on).subgraph(0).targets,
    "Communities: memberships": lambda g, at, **on: found(g, **on).memberships().toarray(),
    "louvain: bipartite": lambda g, at, **on: lu.louvain(g, objective="bipartite", **on),
}
"""By public name: a call with a graph, a folder, and the device."""

COPIED = {
    "ensemble": "the consensus counts runs by arc on the host",
    "write_graph": "files are written from host memory",
    "Communities: induced_graph": "is a graph in host memory",
    "Communities: subgraph": "is a graph in host memory",
    "Communities: memberships": "is a SciPy matrix",
    "louvain: bipartite": "both modes are found on the host",
}
"""Calls that copy the rows of a graph to the host, with the reason."""

WITHOUT_GRAPH = {
    "Graph", "Placer", "read_graph", "read_labels", "read_partitioned", "read_stream", "recording",
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

    def noted(graph, name):
        rows.extend([name] if name in ("targets", "weights") else [])
        return fetch(graph, name)

    monkeypatch.setattr(DeviceGraph, "fetched", noted)
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
        monkeypatch.setattr(generate, "own_memory", lambda limit: nullcontext())
        monkeypatch.setattr(copies, "sent", lambda values: np.array(values).view(HostArray))
        monkeypatch.setattr(copies, "fetched", np.array)
        yield


def told(result):
    """Return what a call found, without how it was found."""
    if isinstance(result, lu.Communities):
        return result.labels.tolist(), result.modularity, result.value
    if isinstance(result, np.ndarray):
        return result.tolist()
    if isinstance(result, tuple | list):
        return [told(each) for each in result]
    if hasattr(result, "__dataclass_fields__"):
        return {name: told(getattr(result, name)) for name in result.__dataclass_fields__}
    return result


@pytest.mark.parametrize("name", CALLS)
def test_calls_copy_no_rows_to_the_host(fetched, name, tmp_path):
    graph = PATH if "bipartite" in name else GRAPH
    made = told(CALLS[name](DeviceGraph.from_host(graph), tmp_path, device="cuda"))
    assert (fetched != []) == (name in COPIED)
    assert str(made) == str(told(CALLS[name](graph, tmp_path, device="cpu")))


def test_every_public_name_is_called():
    errors = {name for name in lu.__all__ if name.endswith(("Error", "Warning"))}
    called = {name.partition(":")[0] for name in CALLS}
    assert called | WITHOUT_GRAPH | set(BY_OTHERS) | errors == set(lu.__all__)
    assert set(COPIED) < set(CALLS)
