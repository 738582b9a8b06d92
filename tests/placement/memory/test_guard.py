import re
from pathlib import Path

import pytest
from fake_cuda import GIB

import louvain_um
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.memory.arena import Arena
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
