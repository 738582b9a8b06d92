"""Several emulated devices find the labels of the CPU: the whole engine, without a device."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from louvain_um.core import rules
from louvain_um.core.hierarchy import detect
from louvain_um.cpu.engine import CpuEngine
from louvain_um.distributed import devices
from louvain_um.distributed.devices import DevicesEngine
from louvain_um.errors import DeviceUnavailableError, MemoryBudgetError
from louvain_um.events import Event, ignore
from louvain_um.gpu.dynamic.cuda import CudaDevice
from louvain_um.gpu.ranks import share
from louvain_um.options import Options
from louvain_um.placement.memory import cuda_calls
from tests.distributed.runs import assert_equal
from tests.gpu_emulated.emulated_engine import emulated_devices
from tests.graphs import KINDS

pytestmark = pytest.mark.deep


def test_events_and_spans_are_those_of_each_device(monkeypatch, emulated):
    graph = KINDS["weighted"]()
    options = Options(method="leiden", seed=3)
    seen = list[Event]()
    with (
        emulated_devices(monkeypatch, emulated, 2) as kernels,
        DevicesEngine(options, seen.append, [0, 1]) as engine,
    ):
        found = detect(engine, graph, options, ignore)
    assert_equal(found, detect(CpuEngine(options, ignore), graph, options, ignore))
    assert [each["rank"] for each in found.provenance["by_rank"]] == [0, 1]
    assert all(each["spans"][0]["phase"] == "move" for each in found.provenance["by_rank"])
    assert {event.kind for event in seen} >= {"iteration", "array"}
    for name in ("queue_local", "sum_arcs"):
        assert {device for device, kernel in kernels.launched if kernel == name} >= {0, 1}


@pytest.mark.parametrize("kind", ["rmat", "weighted"])
def test_a_shared_level_is_split_into_whole_communities(monkeypatch, emulated, kind):
    monkeypatch.setattr(rules, "MOST_KEPT", 0.5)
    monkeypatch.setattr(devices, "SHARED_ARCS", 1)
    graph = KINDS[kind]()
    options = Options(method="leiden", seed=3)
    one = detect(CpuEngine(options, ignore), graph, options, ignore)
    assert one.levels[1].arcs > rules.MOST_KEPT * graph.n_arcs
    with (
        emulated_devices(monkeypatch, emulated, 3) as kernels,
        DevicesEngine(options, ignore, [0, 1, 2]) as engine,
    ):
        found = detect(engine, graph, options, ignore)
    assert np.array_equal(found.labels, one.labels)
    assert found.modularity == one.modularity
    # Once at the end of each cycle, besides.
    launched = [kernel for _, kernel in kernels.launched]
    assert launched.count("split_communities") > len({level.cycle for level in one.levels})


def test_memory_is_freed_where_a_device_has_too_little(monkeypatch, emulated):
    graph, taken = KINDS["lfr"](), share.RunMemory.empty

    def empty(self, name, *arguments, **more):
        if self.device == 1 and name == "degrees.0":
            raise MemoryBudgetError(2, 1, [(name, 2)])
        return taken(self, name, *arguments, **more)

    monkeypatch.setattr(share.RunMemory, "empty", empty)
    with (
        emulated_devices(monkeypatch, emulated, 2),  # reports memory that is left
        DevicesEngine(Options(), ignore, [0, 1]) as engine,
        pytest.raises(MemoryBudgetError),
    ):
        engine.load(graph)


def test_a_store_refuses_kernels_on_another_device(monkeypatch, emulated):
    with emulated_devices(monkeypatch, emulated, 2):
        there = CudaDevice()
        cuda_calls.bind(1)
        with pytest.raises(DeviceUnavailableError, match=r"on cuda:0.*cupy.cuda.Device\(0\)"):
            there.launch("batches", "net_batch", "u32", 1)
        with pytest.raises(DeviceUnavailableError, match="not the current"), there.errors():
            pytest.fail("nothing is to run")


class OutOfMemoryError(MemoryError):
    _size = 3 << 20


@pytest.mark.parametrize(
    ("raised", "error", "message"),
    [
        (
            OutOfMemoryError("CuPy's text"),
            MemoryBudgetError,
            "3,145,728 bytes more than .*split the",
        ),
        (BrokenPipeError("cudaErrorIllegalAddress: x"), DeviceUnavailableError, "start again"),
        (KeyError("of one's own"), KeyError, "of one's own"),
    ],
)
def test_what_fails_on_a_device_of_a_store_is_reported_in_a_line(
    monkeypatch, emulated, raised,
    error, message,
):  # fmt: skip
    with emulated_devices(monkeypatch, emulated, 1):
        cuda = sys.modules["cupy.cuda"]
        for module, name, kind in (
            ("compiler", "CompileException", ZeroDivisionError),
            ("memory", "OutOfMemoryError", OutOfMemoryError),
            ("driver", "CUDADriverError", ZeroDivisionError),
        ):
            setattr(cuda, module, SimpleNamespace(**{name: kind}))
        cuda.runtime.CUDARuntimeError = BrokenPipeError
        with pytest.raises(error, match=message) as reported, CudaDevice().errors():
            raise raised
    assert "\n" not in str(reported.value)
