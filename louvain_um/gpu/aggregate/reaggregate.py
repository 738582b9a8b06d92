"""The graph of level 2 made from the input's arcs, after level 1 freed its own.

Leiden's refined communities are small: on power-law graphs level 1 has nearly as many arcs as the
input, and the graphs of levels 0, 1 and 2 together are the peak of a run. Level 1 therefore frees
its graph before level 2's is made in its place. Every vertex of level 2 is a group of the input's
vertices, too; there are about as many arcs to read, and every sum is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from louvain_um.gpu.aggregate.aggregate import in_chunks, joined
from louvain_um.gpu.aggregate.kernel_arguments import Aggregation
from louvain_um.gpu.aggregate.limits import Limits
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.relabel import relabel
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.placement.memory.allocator import Allocator

REAGGREGATE_ABOVE: Final = 0.7
"""Share of the input's arcs above which level 1 frees its graph."""

GRAPH: Final = ("offsets", "targets", "weights", "loops", "degrees")
"""Arrays of a level's graph."""


def wanted(first: GpuLevel, level: GpuLevel, limits: Limits, planned: bool) -> bool:
    """Return whether the level after this one is to be made from the input's arcs.

    Without a plan for it, only where this level outgrew its region, which it can give back.
    """
    if level.number != 1 or level.refined is None or limits.region_arcs is None:
        return False
    large = max(level.vertices, level.arcs) > limits.small
    kept = level.arcs > REAGGREGATE_ABOVE * first.arcs
    return large and kept and (planned or level.arcs > limits.region_arcs[0])


def give_back(memory: Allocator, level: GpuLevel, names: Sequence[str] = GRAPH) -> None:
    """Free those arrays of a level's graph that exist."""
    for name in names:
        if f"{name}.{level.tag}" in memory.live:
            memory.free(f"{name}.{level.tag}")
        setattr(level, name, None)


def from_input(
    kernels: Kernels, memory: Allocator, first: GpuLevel, level: GpuLevel, limits: Limits
) -> GpuLevel:
    """Return the level after level 1, made from the input's arcs; frees level 1's graph.

    Overwrites `refined` with each vertex's number on the next level, which becomes `numbers`.

    Parameters
    ----------
    first : GpuLevel
        Level 0, aggregated to `level`.
    """
    # With pages that change sides, level 1's rows would leave instead of being freed.
    assert memory.schedule is None
    numbers, n = level.refined, first.vertices
    k = number_refined(kernels, memory, level)
    arcs, region = level.arcs, level.region
    # Degrees belong to another group, where the freed bytes would not be used.
    give_back(memory, level, GRAPH[:-1])
    through = memory.empty("through", "scratch", n, np.uint32)
    relabel.run(kernels, "follow", n, numbers, first.numbers, through)
    # As if the input were in the other region: the next level is where this one was.
    source = replace(first, number=level.number, region=3 - region, refined=through)
    # The next level has no more arcs than this one.
    coarse = from_numbers(
        kernels, memory, source, through, k, replace(limits, region_arcs=(arcs, arcs))
    )
    memory.free("through")
    return joined(kernels, memory, level, numbers, coarse)


def restore(
    kernels: Kernels, memory: Allocator, first: GpuLevel, level: GpuLevel, limits: Limits
) -> None:
    """Make the graph of level 1 again, after `from_input` freed it."""
    give_back(memory, level)
    source = replace(first, refined=first.numbers)
    made = from_numbers(kernels, memory, source, first.numbers, level.vertices, limits)
    level.tag, level.region, level.arcs = made.tag, made.region, made.arcs
    for name in GRAPH:
        setattr(level, name, getattr(made, name))


def number_refined(kernels: Kernels, memory: Allocator, level: GpuLevel) -> int:
    """Renumber refined communities in the order of their labels; return how many there are."""
    refined = level.refined
    aggregation = Aggregation(kernels, memory, level)
    aggregation.set(numbers=refined, label_bound=level.vertices)
    ranks = aggregation.scratch("ranks", level.vertices + 1, np.uint32)
    aggregation.launch("number_labels")
    k = int(aggregation.read()["vertices"])
    relabel.run(kernels, "follow", level.vertices, ranks, refined, refined)
    aggregation.close()
    return k


def from_numbers(
    kernels: Kernels, memory: Allocator, source: GpuLevel, numbers: Any, k: int, limits: Limits
) -> GpuLevel:
    """Return the level after `source`, whose vertex v becomes number `numbers[v]`, below k."""
    aggregation = Aggregation(kernels, memory, source)
    aggregation.set(numbers=numbers, map=numbers)
    return in_chunks(aggregation, source, limits, k)
