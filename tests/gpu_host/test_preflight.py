"""Runs on a GPU: on which device, what is refused, what errors say; on a machine without one."""

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import GraphError, KernelCompileError, MemoryBudgetError, OptionError
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime import device
from louvain_um.gpu.runtime.device import MAX_DEGREE, device_of, refuse_high_degrees

TRIANGLE = lu.Graph.from_edges([0, 1, 2], [1, 2, 0])


class CompileError(Exception):
    """What CuPy raises where a kernel of its own does not compile."""


class OutOfMemoryError(MemoryError):
    """What CuPy's pool raises."""

    _size = 1000


@pytest.fixture
def broken(monkeypatch):
    """A GPU whose engine raises what is put into the list."""
    raised = []

    class Engine:
        plan: Any = lu.plan(TRIANGLE, machine="h200")

        def __init__(self, *_): ...

        def __enter__(self):
            return self

        def __exit__(self, *_): ...

        def __getattr__(self, name):
            raise raised[0]

    class Choice(device.Choice):
        @contextmanager
        def current(self):
            yield

    cuda = SimpleNamespace(
        driver=SimpleNamespace(CUDADriverError=KeyError),
        runtime=SimpleNamespace(CUDARuntimeError=KeyError),
        compiler=SimpleNamespace(CompileException=CompileError),
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    )
    modules = {
        "cupy": ModuleType("cupy"),
        "cupy.cuda": cuda,
        "louvain_um.gpu.engine": SimpleNamespace(GpuEngine=Engine),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(device, "pick", lambda name: Choice("cuda", 0, "asked for"))
    return raised


def test_memory_that_went_missing_names_the_largest_arrays(broken):
    broken.append(OutOfMemoryError("out of memory"))
    with pytest.raises(MemoryBudgetError, match=r"largest: .*device_budget") as caught:
        lu.louvain(TRIANGLE, device="cuda")
    assert caught.value.needed - caught.value.budget == 1000


def test_a_kernel_that_does_not_compile_says_what_to_do(broken):
    for error in (CompileError("no such intrinsic"), KernelCompileError("no such intrinsic")):
        broken[:] = [error]
        with pytest.raises(KernelCompileError, match=r"no such intrinsic; .*device='cpu'"):
            lu.louvain(TRIANGLE, device="cuda")


def placed(number):
    offsets = SimpleNamespace(device=SimpleNamespace(id=number))
    return DeviceGraph(offsets, offsets)


def test_a_graph_that_is_on_a_device_is_worked_on_there(monkeypatch):
    assert device_of(TRIANGLE, "cuda:7") == "cuda:7"
    assert device_of(placed(1), "cpu") == "cpu"
    for name in ("cuda", "cuda:1"):
        assert device_of(placed(1), name) == "cuda:1"
    with monkeypatch.context() as patch:
        patch.setattr(device, "pick", lambda name: device.Choice("cuda", int(name[-1]), "there"))
        assert device_of(placed(1), "auto") == "cuda:1"
    monkeypatch.setattr(device, "capabilities", lambda: [(9, 0)])
    assert device_of(placed(1), "auto") == "cpu"  # where such a device is none to run on
    with pytest.raises(OptionError, match=r"on cuda:1, not on cuda:0; .*to_host"):
        lu.louvain(placed(1), device="cuda:0")
    with pytest.raises(OptionError, match="on cuda:1, not on cuda:0"):
        lu.profile(placed(1), device="cuda:0")


def test_a_vertex_that_no_table_holds_is_refused():
    degrees = np.array([0, 5, MAX_DEGREE + 6])  # the second vertex has one too many
    hub = SimpleNamespace(n_vertices=MAX_DEGREE + 2, offsets=degrees)
    with pytest.raises(GraphError, match=r"1,073,741,825 arcs.*device='cpu'"):
        refuse_high_degrees(hub)
    hub.offsets = degrees - np.array([0, 0, 1])
    refuse_high_degrees(hub)
    refuse_high_degrees(TRIANGLE)


def test_a_graph_on_a_device_has_no_edge_of_weight_0():
    offsets, targets = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.uint32)
    there = [offsets, targets, np.array([2, 2, 1, 1], np.uint64)]
    assert DeviceGraph(*there).n_arcs == 4
    there[2] = np.array([2, 2, 0, 0], np.uint32)
    with pytest.raises(GraphError, match=r"arc 2 is 0.*Graph\.from_edges"):
        DeviceGraph(*there)
    assert DeviceGraph(offsets * 0, targets[:0], targets[:0]).n_arcs == 0
