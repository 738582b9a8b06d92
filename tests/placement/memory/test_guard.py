import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from fake_cuda import GIB

import louvain_um
from louvain_um.errors import MemoryBudgetError
from louvain_um.gpu.building import edges
from louvain_um.gpu.building.device_rows import SHARE
from louvain_um.gpu.dynamic import cuda as dynamic_cuda
from louvain_um.gpu.memory.graph_stats import DegreeStats
from louvain_um.gpu.memory.run_plan import plan_shape
from louvain_um.gpu.memory.shape import Shape
from louvain_um.gpu.runtime.device import Choice
from louvain_um.options import Options
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.memory.arena import Arena, managed_fits
from louvain_um.placement.memory.guard import MARGIN, guard
from louvain_um.placement.policy.policy import Placement


def arena(kind, capacity):
    placement = Placement(kind)
    return Arena(ArenaSpec(name=kind, group="graph", capacity=capacity, placement=placement), 0)


def test_managed_bytes_never_exceed_what_is_free(cuda):
    first = arena("managed", 5 * GIB)
    with pytest.raises(MemoryBudgetError, match="evict") as caught:
        arena("host_mapped", 3 * GIB)
    assert caught.value.needed > caught.value.budget
    assert list(guard.ranges) == [first.address]
    first.close()
    arena("host_mapped", 3 * GIB)


def test_plain_memory_leaves_room_for_managed_bytes_still_to_come(cuda):
    arena("managed", 5 * GIB)
    with pytest.raises(MemoryBudgetError):
        arena("device", 3 * GIB)
    arena("device", 2 * GIB)


def test_bytes_that_are_on_the_device_already_are_not_counted_twice(cuda):
    arena("prefetched", 3 * GIB)
    assert cuda.free_bytes < 5 * GIB
    arena("prefetched", 3 * GIB)
    with pytest.raises(MemoryBudgetError):
        arena("prefetched", 2 * GIB)


def test_the_last_bytes_are_the_drivers(cuda):
    assert guard.room(0) == 8 * GIB - MARGIN


def test_a_full_device_is_reported_in_one_line(cuda):
    with pytest.raises(MemoryBudgetError, match="largest: device") as caught:
        arena("device", 9 * GIB)
    assert "\n" not in str(caught.value)


@pytest.fixture
def crowded(cuda, monkeypatch):
    """A device of which CuPy caches all but 100 MiB."""
    cached, cuda.free_bytes = cuda.free_bytes - (100 << 20), 100 << 20

    def give_back():
        nonlocal cached
        cuda.free_bytes, cached = cuda.free_bytes + cached, 0

    pool = SimpleNamespace(free_all_blocks=give_back)
    cupy, memory = ModuleType("cupy"), ModuleType("cupy.cuda.memory")
    cupy.get_default_memory_pool, cupy.runtime = lambda: pool, cuda.runtime
    memory.OutOfMemoryError = MemoryError
    for name, module in {"cupy": cupy, "cupy.cuda": cupy, memory.__name__: memory}.items():
        monkeypatch.setitem(sys.modules, name, module)
    return cuda


def test_what_cupy_caches_is_room_for_managed_memory(crowded):
    arena("managed", 5 * GIB)


def test_what_cupy_caches_is_room_for_building_a_graph(crowded, monkeypatch):
    there = SimpleNamespace(free_cached=lambda: None)
    monkeypatch.setattr(dynamic_cuda, "CudaDevice", lambda: there)
    monkeypatch.setattr(edges, "_chosen", lambda options: Choice("cuda", 0, ""))
    found = edges._on_device(Options(), lambda device, free: free)
    assert found == int(SHARE * 8 * GIB)


@pytest.mark.parametrize(("arcs", "left"), [(10**6, 100 << 20), (10**8, 8 * GIB)])
def test_what_cupy_caches_is_room_for_a_plan_that_needs_it(crowded, arcs, left):
    shape = Shape(vertices=10**4, arcs=arcs)
    plan = plan_shape(None, Options(), H200, shape, DegreeStats(100, 10**10), 1.0)
    assert {placement.kind for placement in plan.placements.values()} == {"device"}
    assert crowded.free_bytes == left


def test_a_plan_is_not_worse_because_cupy_caches_memory(crowded):
    shape = Shape(vertices=5 * 10**6, arcs=10**8, weight_bytes=4, sum_bytes=8)
    crowded.free_bytes = 3 * GIB  # would do for a run in pages
    plan = plan_shape(None, Options(), H200, shape, DegreeStats(100, 10**10), 1.0)
    assert not plan.in_pages


def test_what_cupy_caches_stays_where_arenas_fit_beside_it(crowded):
    spec = ArenaSpec(name="x", group="graph", capacity=1 << 20, placement=Placement("device"))
    assert managed_fits([spec], 0)
    assert crowded.free_bytes == 100 << 20


def test_nothing_else_allocates_managed_memory():
    root = Path(louvain_um.__file__).parents[1]
    found = [
        file.relative_to(root).as_posix()
        for folder in ("louvain_um", "placement", "profiling", "benchmarks")
        for file in (root / folder).rglob("*")
        if file.suffix in (".py", ".cu", ".cuh")
        and re.search("malloc_?managed", file.read_text(encoding="utf-8"), re.IGNORECASE)
    ]
    # Programs of a benchmark run under `attach`, which guards them and advises it in an error.
    found = [name for name in found if not name.startswith("benchmarks/programs/")]
    assert set(found) == {"placement/memory/guard.py", "profiling/attach/policy.py"}
