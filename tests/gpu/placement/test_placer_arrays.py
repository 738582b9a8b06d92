"""Arrays of a Placer on a device: kernels use them, values follow them, nothing stays behind."""

import gc

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import PlacementError
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.policy.policy import KINDS, Placement, Policy
from louvain_um.placement.program import (
    HEADER,
    Gather,
    Phase,
    tune_blocking,
)
from louvain_um.placement.smart import placement_of

pytestmark = pytest.mark.gpu

COUNT = 8 << 20

DOUBLE = r"""
extern "C" __global__ void twice(const float* x, float* y, unsigned long long count) {
  unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < count) y[i] = 2 * x[i];
}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_read_and_write_arrays_wherever_they_live(gpu, kind):
    import cupy

    twice = cupy.RawKernel(DOUBLE, "twice")
    where = Placement("split", 0.5) if kind == "split" else Placement(kind)
    policy = Policy(name="mine", groups={"arrays": where})
    values = np.random.default_rng(0).random((COUNT // 4, 4), np.float32)
    other = None
    if kind == "peer":
        if cupy.cuda.runtime.getDeviceCount() < 2:
            pytest.skip("needs two GPUs")
        other = "cuda:1"
    with lu.Placer(memory=policy, device=gpu.index, peer_memory=other) as place:
        x = place.array("x", values.shape, source=values)
        y = place.array("y", values.shape, phases=["run"])
        place.solve()
        assert isinstance(x, cupy.ndarray)
        assert str(placement_of(x)) == str(where)
        with pytest.raises(PlacementError, match="lives only in phase run"):
            y[0]
        with place.phase("run"):
            twice((COUNT // 256,), (256,), (x, y, np.uint64(COUNT)))
            assert np.array_equal(y.get(), 2 * values)
            assert np.array_equal(place.get("y"), 2 * values)
            assert float(cupy.abs(x + y - 3 * x).max()) == 0
            if kind in ("host_mapped", "pinned"):
                assert np.array_equal(y.host, 2 * values)
                x.host[1, 2] = 5
                assert float(x[1, 2]) == 5
                assert x[1:].host[0, 2] == 5
            else:
                with pytest.raises(PlacementError, match="get"):
                    _ = x.host
    with pytest.raises(PlacementError, match="its Placer was closed"):
        x.get()
    del x, y
    gc.collect()
    assert not guard.ranges


def test_values_follow_an_array_that_moves(gpu):
    values = np.arange(COUNT, dtype=np.uint32)
    phases = [Phase(name="iterate", passes=100)]
    with lu.Placer("64MiB", device=gpu.index, phases=phases) as place:
        x = place.array("x", COUNT, np.uint32, source=values, reads=Gather(100), to_host=3)
        before = place.solve().placements["x"]
        assert (before.kind, before.on_device) == ("pinned", 0)
        address = x.data.ptr
        with place.phase("iterate"):
            for _ in range(300):
                total = int(x.sum(dtype=np.uint64))
        assert total == COUNT * (COUNT - 1) // 2
        assert place.plan.placements["x"].on_device == 1
        assert x.data.ptr != address
        assert np.array_equal(x.get(), values)
    del x
    gc.collect()
    assert not guard.ranges


def test_blocked_loops_take_every_element_once_with_every_factor(gpu):
    import cupy

    source = HEADER + (
        'extern "C" __global__ void sum(const unsigned* data, unsigned long long count,'
        " unsigned pages, unsigned long long* out) { unsigned long long mine = 0;"
        " blocked_for(i, count, 4, pages) mine += data[i]; atomicAdd(out, mine); }"
    )
    kernel = cupy.RawModule(code=source, options=("--std=c++17",)).get_function("sum")
    policy = Policy(name="mine", groups={"arrays": "host_mapped"})
    with lu.Placer(memory=policy, device=gpu.index) as place:
        values = np.arange(COUNT, dtype=np.uint32)
        x = place.array("x", COUNT, np.uint32, source=values, reads=Gather(1))
        place.solve()
        out = cupy.zeros(1, np.uint64)

        def measure(pages):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            out.fill(0)
            begin.record()
            kernel((264,), (256,), (x, np.uint64(COUNT), np.uint32(pages), out))
            end.record()
            end.synchronize()
            assert int(out[0]) == COUNT * (COUNT - 1) // 2
            return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3

        curve = tune_blocking(measure)
        assert set(curve.seconds) == set(range(1, 11))
        assert curve.best in curve.seconds
