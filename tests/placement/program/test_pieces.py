import re

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import DeviceUnavailableError, LouvainUmError, OptionError
from louvain_um.gpu.runtime import compile_cache
from louvain_um.options import Budget
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.policy.policy import Placement, Policy
from louvain_um.placement.program import (
    HEADER,
    Program,
    ProgramArray,
    Stream,
    launches_for,
    tune_blocking,
)
from louvain_um.placement.program.program_plan import plan_program
from louvain_um.profiling.views.charts import blocking_chart

SUM = """
template <class T>
__global__ void sum(const T* data, unsigned long long count, unsigned pages, T* out) {
  T mine = 0;
  blocked_for(i, count, sizeof *data, pages) mine += data[i];
  atomicAdd(out, mine);
}
"""


@pytest.mark.parametrize("architecture", [75, 80, 90, 100])
def test_the_loop_compiles_for_every_architecture(architecture):
    try:
        option = compile_cache.target(architecture)
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)
    names = ["sum<float>", "sum<unsigned>"]
    image = compile_cache.compile_source("sum.cu", HEADER + SUM, {}, names, ("--std=c++17", option))
    assert sorted(image.names) == sorted(names)


def test_steps_of_32_elements_are_unrolled():
    try:
        options = ("--std=c++17", "--gpu-architecture=compute_90")
        ptx = compile_cache.compile_source("sum.cu", HEADER + SUM, {}, ["sum<float>"], options).code
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)
    offsets = {int(n) for n in re.findall(rb"ld\.global(?:\.nc)?\.f32\s+%f\d+, \[%rd\d+\+(\d+)\]",
                                          ptx)}  # fmt: skip
    assert {128, 256, 384, 512, 640, 768, 896} <= offsets


def test_launches_follow_from_the_bytes_on_the_device():
    device, host = Placement("device"), Placement("host_mapped")
    for here, capacity, count in ((0, 100, 1), (99, 100, 1), (100, 100, 2), (250, 100, 3)):
        slices = launches_for({"in": (device, here), "out": (host, 10**9)}, 1001,
                              capacity=capacity)  # fmt: skip
        assert len(slices) == count
        assert slices[0].begin == 0
        assert slices[-1].end == 1001
        assert [s.end for s in slices[:-1]] == [s.begin for s in slices[1:]]
        assert all(256 * (s.grid - 1) < s.end - s.begin <= 256 * s.grid for s in slices)
    half = {"in": (Placement("split", 0.5), 250)}
    assert len(launches_for(half, 1001, capacity=100)) == 2


def test_slices_of_rows_have_nearly_as_many_items():
    draw = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(draw.integers(0, 50, 1000))])
    arcs = {"targets": (Placement("managed"), 4 * int(offsets[-1]))}
    slices = launches_for(arcs, 1000, capacity=1000, offsets=offsets)
    assert len(slices) >= 4 * offsets[-1] // 1000 + 1
    assert (slices[0].begin, slices[-1].end) == (0, 1000)
    assert [s.end for s in slices[:-1]] == [s.begin for s in slices[1:]]
    sizes = np.array([offsets[s.end] - offsets[s.begin] for s in slices])
    assert sizes.max() <= 250
    assert sizes[:-1].min() > 200
    # A row that is longer than a slice has one of its own.
    offsets = np.array([0, 1, 2, 902, 903, 1000])
    cuts = [s.begin for s in launches_for(arcs, 5, capacity=20_000, offsets=offsets)]
    assert {2, 3} <= set(cuts)
    # Slices end before a row that does not fit them, and hold empty rows.
    offsets = np.array([0, 240, 490, 500, 750, 1000, 1000])
    arcs = {"targets": (Placement("managed"), 4 * int(offsets[-1]))}
    cuts = [s.begin for s in launches_for(arcs, 6, capacity=1000, offsets=offsets)]
    assert cuts == [0, 1, 2, 3, 4]


def test_a_plan_that_fits_needs_one_launch():
    array = ProgramArray(name="x", shape=1 << 20, reads=Stream(9))
    plan = lu.plan(Program(name="p", arrays=[array]), device_budget="8MiB", machine="h200")
    assert [(s.begin, s.end) for s in launches_for(plan, 1 << 20)] == [(0, 1 << 20)]
    exact = lu.plan(plan.program, device_budget="100%", machine="h200")
    assert (exact.launches_before, exact.launches) == (1, 1)
    with pytest.raises(OptionError, match="capacity"):
        launches_for({}, 3)


def test_a_plan_says_how_many_pages_a_warp_goes_over():
    arrays = [ProgramArray(name=name, shape=size, reads=Stream(9))
              for name, size in (("x", 1 << 28), ("y", 1 << 10), ("z", 1 << 10))]  # fmt: skip
    policy = Policy(name="mine", roles={}, arrays={"x": "pinned", "y": "host_mapped"})
    program = Program(name="p", arrays=arrays)
    plan = lu.plan(program, memory=policy, machine="h200")
    assert [plan.pages_per_warp(*names) for names in ("x", "y", "z", ("z", "x"), ("no",))] == [
        5, 2, 0, 5, 0,
    ]  # fmt: skip
    other = plan_program(program, H200.with_peer(), policy, Budget())
    assert other.pages_per_warp("x") == 0


def test_the_whole_curve_of_blocking_factors_is_kept_and_drawn(tmp_path):
    asked = []
    curve = tune_blocking(lambda pages: asked.append(pages) or (pages - 3) ** 2 + 1)
    assert asked == list(range(1, 11))
    assert curve.best == 3
    path = tmp_path / "curve.svg"
    figure = blocking_chart({"bfs": curve}, unblocked={"bfs": 4.0}, save_to=path)
    line = figure.axes[0].get_lines()[0]
    assert line.get_ydata()[2] == 4.0
    assert path.stat().st_size
    with pytest.raises(LouvainUmError, match="force"):
        blocking_chart({"bfs": curve}, save_to=path)
