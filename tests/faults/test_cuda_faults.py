"""Every call of CUDA and of its compiler fails once: an error, and nothing stays allocated."""

from types import SimpleNamespace

import numpy as np
import pytest

from louvain_um.errors import DeviceUnavailableError, KernelCompileError, LouvainUmError
from louvain_um.gpu.runtime import compile_cache
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.memory.guard import MARGIN, guard
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.policy.policy import Placement
from tests.placement.fake_cuda import FakeCuda, FakeError, Status, install

MIB = 1 << 20

RELEASES = ("free", "freeHost", "hostUnregister", "cuMemUnmap", "cuMemRelease", "cuMemAddressFree")
"""Calls that give something back: what they cannot free is not the program's to free."""


class Faults:
    """Makes the k-th call to a stand-in of CUDA fail, counting from 0."""

    def __init__(self, cuda, k):
        self.left = k
        for owner in (cuda.runtime, cuda.bindings, cuda.driver):
            for name, call in vars(owner).items():
                records = isinstance(call, type) or name.startswith("CU")
                if callable(call) and not records and name not in RELEASES:
                    setattr(owner, name, self.wrapped(call, owner is cuda.runtime))

    def wrapped(self, call, raises):
        def failing(*arguments):
            self.left -= 1
            if self.left != -1:
                return call(*arguments)
            if raises:
                raise FakeError("cudaErrorMemoryAllocation", 2)
            return (Status(2),)

        return failing

    @property
    def failed(self):
        return self.left < 0


def layout(kinds, lenient):
    groups = ("graph", "hash", "community", "scratch")
    return tuple(
        ArenaSpec(
            name=group,
            group=group,
            capacity=8 * MIB,
            placement=Placement(kind, 0.5) if kind == "split" else Placement(kind),
            lenient=lenient,
        )
        for group, kind in zip(groups, kinds, strict=True)
    )


LAYOUTS = {
    "managed": (layout(("host_mapped", "managed", "prefetched", "read_mostly"), False), 8 << 30),
    "pinned": (layout(("pinned", "device", "split", "device"), False), 8 << 30),
    "lenient": (layout(("host_mapped", "split", "device", "split"), True), MARGIN + 24 * MIB),
}


def use(specs):
    """Do with an allocator what a run does, and close it."""
    memory = RunMemory(specs, 0)
    try:
        memory.empty("targets.0", "graph", 3 * MIB, np.uint8)
        memory.empty("labels.0", "community", 1 * MIB, np.uint32)
        memory.empty("much", "scratch", 24 * MIB, np.uint8)  # more than its arena
        memory.sides("targets.0")
        memory.shrink("labels.0", MIB // 2)
        memory.free("much")
    finally:
        memory.close()


@pytest.mark.parametrize("name", LAYOUTS)
def test_calls_of_cuda(monkeypatch, name):
    specs, free = LAYOUTS[name]
    for k in range(1000):
        cuda = install(monkeypatch, FakeCuda(free=free))
        faults = Faults(cuda, k)
        problem = ""
        try:
            use(specs)
        except LouvainUmError as error:
            problem = str(error)
        except FakeError:
            problem = "CUDA; `api.run` says so, and what to do"
        assert not cuda.alive, (name, k)
        assert not guard.ranges, (name, k)
        assert "\n" not in problem
        if not faults.failed:
            assert not problem
            break
        assert not problem or "; " in problem, problem
    assert 10 < k < 1000


def test_calls_of_the_compiler(monkeypatch, tmp_path):
    try:
        compile_cache.compiler()
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "one.cu").write_text("__global__ void k(int* a) { *a = 1; }\n")
    real = compile_cache._call
    whole = compile_cache.build("one", ["k"], "--gpu-architecture=sm_80", tmp_path)
    problems = []
    for fails_at in range(100):
        counter = SimpleNamespace(left=fails_at)

        def call(function, *arguments, counter=counter):
            counter.left -= 1
            if counter.left == -1:
                raise KernelCompileError(f"{function}: NVRTC_ERROR_OUT_OF_MEMORY")
            return real(function, *arguments)

        monkeypatch.setattr(compile_cache, "_call", call)
        try:
            image = compile_cache.cached_image("one", ["k"], "--gpu-architecture=sm_80", tmp_path)
        except KernelCompileError as error:
            problems.append(str(error))
            assert not list((tmp_path / "cache").rglob("*.*"))
            continue
        assert image == whole
        break
    assert 3 < len(problems) < 99
    assert all("device='cpu'" in problem for problem in problems)
