"""A stand-in for a device: arrays are addresses, kernels those of `dry_kernels`."""

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from louvain_um.core.hierarchy import detect
from louvain_um.gpu import engine, followed_plan, preparation
from louvain_um.gpu.memory import loading
from louvain_um.gpu.memory.array_specs import SORTING
from louvain_um.gpu.runtime.compile import using
from louvain_um.placement.memory import run_memory
from tests.gpu_dry.dry_kernels import DryKernels
from tests.placement.fake_cuda import FakeCuda, install

ALLOCATORS: list[Any] = []
"""Allocators of CuPy's own functions, innermost last."""


@contextmanager
def using_allocator(take):
    ALLOCATORS.append(take)
    try:
        yield
    finally:
        ALLOCATORS.pop()


H200_FREE = 139 << 30


class Sized:
    """Stands for a CuPy array: an address and a length, and the values written to it, if any."""

    def __init__(self, values, base, at, size, dtype):
        self.values, self.base, self.at = values, base, at
        self.size, self.dtype = size, np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        self.nbytes = size * self.itemsize
        nothing = lambda *_: None  # noqa: E731
        self.data = SimpleNamespace(
            ptr=base + at * self.itemsize, memset_async=nothing, copy_from_device_async=nothing
        )

    def __len__(self):
        return self.size

    def __getitem__(self, part):
        first, last, _ = part.indices(self.size)
        return Sized(self.values, self.base, self.at + first, max(last - first, 0), self.dtype)

    def get(self):
        if self.base in self.values:
            return self.values[self.base][self.at : self.at + self.size]
        return np.zeros(self.size, self.dtype)

    def fill(self, value):
        pass

    def set(self, values):
        assert len(values) == self.size

    def sort(self):
        """Allocate the scratch memory of CuPy's sort: a second array, and tables."""
        for nbytes in (self.nbytes, self.size + SORTING // 2):
            ALLOCATORS[-1](nbytes)


class Watched(run_memory.RunMemory):
    """The allocator, recording every request."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.asked = dict[tuple[str, str], int]()
        self.most = dict[str, dict[str, int]]()
        self.fullest = (0, dict[str, int]())
        self.spilled = dict[str, int]()

    def empty(self, name, group, shape, dtype, **more):
        peaks, total = self.ledger.peak_bytes.get(group, 0), self.ledger.peak_total
        array = super().empty(name, group, shape, dtype, **more)
        nbytes = array.nbytes
        self.asked[name, group] = max(nbytes, self.asked.get((name, group), 0))
        entries = self.ledger.entries
        if self.ledger.peak_bytes[group] > peaks:
            self.most[group] = {k: e.nbytes for k, e in entries.items() if e.group == group}
        if self.ledger.peak_total > total:
            self.fullest = self.ledger.peak_total, {k: e.nbytes for k, e in entries.items()}
        if self.allocations[name].alone:
            self.spilled[name] = max(nbytes, self.spilled.get(name, 0))
        return array

    def close(self):
        self.late = self.mover.room.pool.late if self.mover else 0
        self.filled = {a.spec.name: (a.peak, a.nbytes) for a in self.arenas}
        super().close()


@contextmanager
def dry_engine(patch, graph, script, options, observer, kernels=DryKernels):
    """Pose as a device for an engine that is to run on a graph."""
    values = {}

    def view(address, shape, dtype, arena, owner=None):
        values.pop(address, None)
        return Sized(values, address, 0, shape, dtype)

    def fill(sides, source, device):
        values.update({sides[0][0]: source} if source is graph.offsets else {})

    with patch.context() as patch:
        install(patch, FakeCuda(free=H200_FREE))
        _pose_as_cupy(patch)
        patch.setattr(followed_plan, "name_of", lambda index: "none")
        patch.setattr(run_memory, "view", view)
        patch.setattr(run_memory, "fill", fill)
        patch.setattr(run_memory, "fetch", lambda sides, values: None)
        # What is laid out exists nowhere: the memory of this host sets no limit.
        patch.setattr(preparation, "check_host_room", lambda layout: None)
        still = SimpleNamespace(need=lambda *_: None, traffic=followed_plan.BlockTraffic())
        patch.setattr(loading, "BlockCache", lambda *_, **__: still)
        skew = script.survey or loading.survey(graph)
        patch.setattr(preparation, "survey", lambda _: skew)
        own = kernels(script, values)
        with using(own), engine.GpuEngine(options, observer) as run:
            yield run


def run_dry(monkeypatch, graph, script, options):
    """Run the engine on a graph; return its plan and what it asked of its allocator."""
    plans = []

    def observe(event):
        if event.kind == "plan":
            plans.append(event.plan)

    with monkeypatch.context() as patch:
        patch.setattr(preparation, "RunMemory", Watched)
        with dry_engine(patch, graph, script, options, observe) as dry:
            detect(dry, graph, options, dry.observer)
            memory = dry.memory
        assert not script.steps
        assert not script.sums
        assert [plan.request for plan in plans] == [dry.plan.request]
        return dry.plan, memory


def _pose_as_cupy(patch):
    cupy = ModuleType("cupy")
    runtime = SimpleNamespace(getDevice=lambda: 0)
    cupy.cuda = SimpleNamespace(
        runtime=runtime, Device=lambda: SimpleNamespace(id=0), using_allocator=using_allocator
    )
    cupy.subtract = lambda *_, **__: None
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    cupy.get_default_memory_pool = lambda: pool
    patch.setitem(sys.modules, "cupy", cupy)
