from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from louvain_um.core.hierarchy import detect
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.graph import DeviceGraph, FetchedGraph
from tests.distributed.runs import assert_equal
from tests.gpu_emulated.emulated_engine import emulated_devices


class Detected(NamedTuple):
    """A run on emulated devices: its result, its engine, and the kernels that it launched."""

    found: Any
    run: GpuEngine
    launched: list[str]
    runtime: Any


@pytest.fixture
def detected(monkeypatch, emulated):
    """Return a function that detects on emulated devices, and compares with the CPU."""
    with ExitStack() as stack:

        def detect_there(graph, options, *, devices=1, late=False, sent=False):
            one = detect(CpuEngine(options, ignore), graph, options, ignore)
            kernels = stack.enter_context(
                emulated_devices(monkeypatch, emulated, devices, late=late)
            )
            run = stack.enter_context(GpuEngine(options, ignore))
            there = DeviceGraph.from_host(graph) if sent else graph
            if sent == "built":
                there = FetchedGraph.of(there, scale=1.0, names=None, notes=())
            found = detect(run, there, options, ignore)
            assert_equal(found, one)
            names = [kernel for _, kernel in kernels.launched]
            return Detected(found, run, names, kernels.runtime)

        yield detect_there
