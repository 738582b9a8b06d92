"""The tracer on a user's own kernels: raw, element-wise and in modules, old and new, by array."""

from __future__ import annotations

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.gpu.runtime.device import Choice
from louvain_um.placement.program import Gather, Phase, Stream
from louvain_um.profiling.access.recordings import of_session
from louvain_um.profiling.sources.tracer import Tracer

pytestmark = pytest.mark.gpu

COUNT = 1 << 20

SOURCE = r"""
extern "C" __global__ void twice(const float* x, float* y, unsigned long long count) {
  unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < count) y[i] = 2 * x[i];
}
extern "C" __global__ void pick(const unsigned* at, const float* x, float* y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[at[i] % 524288u];
}
"""


def launched(kernel, *args: object) -> None:
    kernel((COUNT // 256,), (256,), args)


def test_kernels_of_any_kind_are_counted_by_array(gpu: Choice) -> None:
    import cupy

    old = cupy.RawKernel(SOURCE, "twice")
    scale = cupy.ElementwiseKernel("float32 x", "float32 y", "y = 3 * x", "scale_by_three")
    x, y = (cupy.arange(COUNT, dtype=np.float32) for _ in range(2))
    launched(old, x, y, np.uint64(COUNT))
    scale(x, y)
    with Tracer(programs=True) as tracer, lu.Placer(device=gpu.index) as place:
        from louvain_um.events import observing

        with observing(tracer.observe):
            a = place.array("a", COUNT, source=np.arange(COUNT, dtype=np.float32), reads=Stream())
            b = place.array("b", COUNT, writes=Stream())
            place.solve()
            with place.phase("iterate"):
                launched(old, a, b, np.uint64(COUNT))
                scale(a, b)
                new = cupy.RawModule(code=SOURCE).get_function("twice")
                launched(new, a, b, np.uint64(COUNT))
                assert np.array_equal(b.get(), 2 * np.arange(COUNT, dtype=np.float32))
    counts = tracer.result().counts
    assert (counts["a"].reads, counts["a"].writes) == (3 * COUNT, 0)
    assert (counts["b"].reads, counts["b"].writes) == (0, 3 * COUNT)
    launched(old, x, y, np.uint64(COUNT))
    launched(new, x, y, np.uint64(COUNT))
    scale(x, y)
    assert np.array_equal(y.get(), 3 * np.arange(COUNT, dtype=np.float32))


def test_a_recorded_program_becomes_a_trace(gpu: Choice) -> None:
    import cupy

    kernel = cupy.RawKernel(SOURCE, "twice")
    with (
        lu.recording(tracer=True, sources=()) as run,
        lu.Placer(device=gpu.index) as place,
    ):
        x = place.array("x", COUNT, group="mine", source=np.ones(COUNT, np.float32))
        y = place.array("y", COUNT, group="mine")
        with place.phase("iterate"):
            launched(kernel, x, y, np.uint64(COUNT))
    session = run.session
    assert {life.name: life.group for life in session.lifetimes} == {"x": "mine", "y": "mine"}
    trace = of_session(session)
    assert {array.name: array.starts for array in trace.arrays} == {"x": "host", "y": "nowhere"}
    assert {step.phase for step in trace.steps} == {"iterate"}


def test_a_placer_learns_accesses(gpu: Choice) -> None:
    import cupy

    kernel = cupy.RawKernel(SOURCE, "pick")
    rng = np.random.default_rng(0)
    phases = [Phase(name="iterate", passes=10)]
    with lu.Placer(device=gpu.index, phases=phases) as place:
        at = place.array("at", COUNT, np.uint32, source=rng.integers(0, 1 << 32, COUNT, np.uint32))
        x = place.array("x", COUNT, source=np.arange(COUNT, dtype=np.float32))
        y = place.array("y", COUNT)
        with place.learn("iterate", Tracer(programs=True)):
            launched(kernel, at, x, y)
        specs = {name: slot.spec for name, slot in place.slots.items()}
        (streamed,) = specs["at"].reads["iterate"]
        assert isinstance(streamed, Stream)
        assert streamed.passes == pytest.approx(10)
        (gathered,) = specs["x"].reads["iterate"]
        assert isinstance(gathered, Gather)
        assert gathered.count == 10 * COUNT
        assert gathered.share == pytest.approx(0.5, abs=0.02)
        assert specs["y"].writes["iterate"][0].passes == pytest.approx(10)
        with place.phase("iterate"):
            launched(kernel, at, x, y)
            assert float(y[0]) == float(at[0] % 524288)
