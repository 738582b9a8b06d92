from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from louvain_um.errors import DeviceUnavailableError, KernelCompileError
from louvain_um.events import Event
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.device import Choice, pick

pytestmark = pytest.mark.gpu

SOURCE = """
#include "grid.cuh"
struct Pair { u64 first; u32 second; };
__global__ void add(Pair pair, u32* out, Barrier* barrier) {
  if (threadIdx.x == 0) atomicAdd(out, pair.second);
  grid_sync(barrier);
  if (threadIdx.x == 0) out[1 + blockIdx.x] = ((volatile u32*)out)[0] + (u32)pair.first;
}
"""


@pytest.fixture
def folder(gpu: Choice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "add.cu").write_text(SOURCE)
    return tmp_path


def test_kernels_are_compiled_once_and_launched_as_one_grid(folder: Path) -> None:
    import cupy

    for expected in (["start", "end"], []):
        kernels, events = Kernels(folder, lambda source, types: ["add"]), list[Event]()
        kernel = kernels.get("add", "add", observer=events.append)
        assert kernels.get("add", "add", observer=events.append) is kernel
        assert [event.kind for event in events] == expected
        assert {event.phase for event in events} <= {"compile"}
        blocks = kernels.resident_blocks(kernel, 64)
        out, barrier = cupy.zeros(1 + blocks, np.uint32), cupy.zeros(2, np.uint32)
        pair = np.array((7, 2), np.dtype([("first", np.uint64), ("second", np.uint32)], align=True))
        kernel((blocks,), (64,), (pair, out, barrier))
        assert out.get().tolist() == [2 * blocks] + [2 * blocks + 7] * blocks


def test_a_kernel_that_does_not_compile(folder: Path) -> None:
    (folder / "bad.cu").write_text("__global__ void bad() { nothing; }\n")
    with pytest.raises(KernelCompileError, match=r"bad\.cu\(1\)"):
        Kernels(folder, lambda source, types: ["bad"]).get("bad", "bad")


def test_the_device_before_is_current_again(gpu: Choice) -> None:
    from cupy.cuda.runtime import getDevice, getDeviceCount

    before = getDevice()
    with suppress(ZeroDivisionError), pick(f"cuda:{getDeviceCount() - 1}").current():
        assert getDevice() == getDeviceCount() - 1
        raise ZeroDivisionError
    assert getDevice() == before
    with pytest.raises(DeviceUnavailableError, match="there is no cuda:99"):
        pick("cuda:99")
