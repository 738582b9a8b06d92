"""Compiled kernels on a device: the rule's arithmetic, and the cache."""

from contextlib import suppress

import numpy as np
import pytest

from louvain_um.core import rules
from louvain_um.errors import DeviceUnavailableError, KernelCompileError
from louvain_um.events import Event
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.device import pick

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
def folder(gpu, tmp_path, monkeypatch):
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "add.cu").write_text(SOURCE)
    return tmp_path


def test_kernels_are_compiled_once_and_launched_as_one_grid(folder):
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


def test_a_kernel_that_does_not_compile(folder):
    (folder / "bad.cu").write_text("__global__ void bad() { nothing; }\n")
    with pytest.raises(KernelCompileError, match=r"bad\.cu\(1\)"):
        Kernels(folder, lambda source, types: ["bad"]).get("bad", "bad")


def test_the_device_before_is_current_again(gpu):
    from cupy.cuda.runtime import getDevice, getDeviceCount

    before = getDevice()
    with suppress(ZeroDivisionError), pick(f"cuda:{getDeviceCount() - 1}").current():
        assert getDevice() == getDeviceCount() - 1
        raise ZeroDivisionError
    assert getDevice() == before
    with pytest.raises(DeviceUnavailableError, match="there is no cuda:99"):
        pick("cuda:99")


SEED = 20


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(SEED)
    edges = np.array([0, 1, 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], np.uint32)
    a = np.concatenate((edges, rng.integers(0, 2**32, 2000, np.uint32)))
    return a, np.concatenate((a[:500], rng.permutation(a)))[: len(a)]


@pytest.mark.parametrize("sub_rounds", [1, 2, 8])
def test_mixing_buckets_and_tie_breaks_match_the_rule(probes, numbers, sub_rounds):
    import cupy

    a, b = (cupy.asarray(x) for x in numbers)
    n = len(a)
    mixed, rounds = cupy.empty(n, np.uint32), cupy.empty(n, np.uint32)
    first = cupy.empty(n, np.uint8)
    salt = rules.salt(1, 3, SEED)
    args = (a, b, mixed, rounds, first, np.int64(n))
    rest = (np.uint32(salt), np.uint32(sub_rounds), np.uint32(SEED))
    probes.get("rule_probe", "probe_rule")((4,), (128,), (*args, *rest))
    left, right = (x.tolist() for x in numbers)
    assert mixed.get().tolist() == [rules.mix32(x) for x in left]
    assert rounds.get().tolist() == [rules.bucket(x, salt, sub_rounds) for x in left]
    order = [
        (rules.mix32(x ^ SEED), x) < (rules.mix32(y ^ SEED), y)
        for x, y in zip(left, right, strict=True)
    ]
    assert first.get().astype(bool).tolist() == order


def test_scores_round_each_operation_on_its_own(probes):
    import cupy

    rng = np.random.default_rng(SEED)
    n = 5000
    weight = rng.integers(0, 2 ** rng.integers(1, 53, n), dtype=np.uint64)
    total = rng.integers(0, 2 ** rng.integers(1, 53, n), dtype=np.uint64)
    pull = rng.random(n)
    score = cupy.empty(n, np.float64)
    args = (cupy.asarray(weight), cupy.asarray(pull), cupy.asarray(total), score, np.int64(n))
    probes.get("rule_probe", "probe_score")((4,), (128,), args)
    expected = weight.astype(np.float64) - pull * total.astype(np.float64)
    assert np.array_equal(score.get(), expected)
