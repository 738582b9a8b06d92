"""Every engine behind one call, for the suite that all of them pass (`test_contract.py`)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final
from unittest import mock

import pytest

from louvain_um import Graph, api
from louvain_um.core.hierarchy import detect
from louvain_um.cpu import move
from louvain_um.distributed import devices
from louvain_um.distributed import run as ranks_run
from louvain_um.distributed.devices import DevicesEngine
from louvain_um.distributed.partition import blocks_of
from louvain_um.distributed.run import Visible, detect_on_rank
from louvain_um.errors import DeviceUnavailableError
from louvain_um.events import ignore
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.runtime.compile import using
from louvain_um.gpu.runtime.device import pick
from louvain_um.options import Options
from louvain_um.results.communities import Communities
from tests.distributed.threads import detect_in_threads, run_threads
from tests.gpu_emulated.emulated_engine import emulated_devices
from tests.gpu_emulated.libraries import libraries
from tests.gpu_emulated.memory.less_memory import as_if_larger

Detect = Callable[[Graph, Options], Communities]


@dataclass(frozen=True)
class Backend:
    """An engine: how to run it, what else it takes, and how many random graphs are few for it."""

    detect: Detect
    examples: int = 6
    seeds: tuple[int, ...] = ()
    """Of runs on larger graphs; none where such a run takes minutes."""
    few: bool = False
    """Whether it takes few kinds of graphs, so that a plain run stays short."""
    extended: bool = False
    """Whether it takes other objectives and constraints."""
    marks: tuple[str, ...] = ()
    """`gpu` if it needs one, or the tier of its tests."""


def on_cpu(graph, options):
    return api.run(graph, replace(options, device="cpu"))


def on_threads(graph, options):
    """Detect on three threads of the CPU, however small a graph is."""
    with mock.patch.object(move, "SERIAL_ARCS", 0):
        return api.run(graph, replace(options, device="cpu", threads=3))


def on_ranks(graph, options):
    """Detect on three ranks that are threads of this process; all levels are divided."""
    return detect_in_threads(graph, replace(options, device="cpu"), ranks=3, collapse_arcs=0)


def on_gpu(graph, options):
    return api.run(graph, replace(options, device="cuda"))


def on_gpus(graph, options):
    """Detect on three devices, which are one GPU."""
    return api.run(graph, replace(options, device="cuda:0,0,0"))


def emulated(graph, options):
    options = replace(options, device="cuda:0")
    with (
        pytest.MonkeyPatch.context() as patch,
        emulated_devices(patch, libraries(), 1),
        GpuEngine(options, ignore) as engine,
    ):
        return detect(engine, graph, options, ignore)


def emulated_with_little_memory(graph, options):
    """Detect on an emulated device that lacks memory, where the graph is not tiny."""
    budget = "50%" if graph.n_arcs > 2000 else None
    options = replace(options, device="cuda:0", peer_memory="cuda:1", device_budget=budget)
    with pytest.MonkeyPatch.context() as patch:
        as_if_larger(patch)
        with (
            emulated_devices(patch, libraries(), 2, late=True),
            GpuEngine(options, ignore) as engine,
        ):
            return detect(engine, graph, options, ignore)


def emulated_together(graph, options):
    """Detect on three emulated devices, which share every level."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "SHARED_ARCS", 1)
        with (
            emulated_devices(patch, libraries(), 3),
            DevicesEngine(options, ignore, [0, 1, 2]) as engine,
        ):
            return detect(engine, graph, options, ignore)


def emulated_ranks(graph, options):
    options = replace(options, device="cuda", threads=1)
    blocks = blocks_of(graph, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks_run, "visible_here", lambda: Visible(host="h", devices=("a", "b")))
        with emulated_devices(patch, libraries(), 2) as kernels:

            def task(own):
                with using(kernels):
                    return detect_on_rank(own, blocks[own.rank], options, ignore, collapse_arcs=0)

            return run_threads(task, 2, patience=60)[0]


BACKENDS: Final = {
    "cpu": Backend(on_cpu, examples=100, extended=True),
    "threads": Backend(on_threads, examples=60, seeds=(0, 3), extended=True),
    "ranks": Backend(on_ranks, examples=20, seeds=(3,)),
    "emulated": Backend(emulated, few=True),
    "emulated, every kind": Backend(emulated, 12, extended=True, marks=("deep",)),
    "emulated, little memory": Backend(emulated_with_little_memory, 12, marks=("deep",)),
    "emulated devices": Backend(emulated_together, 12, marks=("deep",)),
    "emulated ranks": Backend(emulated_ranks, 12, marks=("deep",)),
    "gpu": Backend(on_gpu, examples=180, seeds=tuple(range(8)), extended=True, marks=("gpu",)),
    "gpu ranks": Backend(on_gpus, examples=60, seeds=(0, 3), marks=("gpu",)),
}


def available(name):
    """Return an engine; skip the test where it is not there."""
    backend = BACKENDS[name]
    if "gpu" in backend.marks:
        try:
            pick("cuda")
        except DeviceUnavailableError as error:
            pytest.skip(error.reason)
    if name.startswith("emulated"):
        libraries()
    return backend
