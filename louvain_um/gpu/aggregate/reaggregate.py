"""The next level's graph out of the input's arcs, where the level between has given its own back.

Leiden's parts are small: where hubs rule, level 1 has nearly as many arcs as the input. Graphs of
three levels at once are what a run would need most memory for. So such a level gives its graph
back before the next one's is made, in its place: the vertices of level 2 are groups of the input's
vertices too. The input's arcs are about as many to read, and every sum is the same.
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
"""Share of the input's arcs above which level 1 gives its graph back."""

GRAPH: Final = ("offsets", "targets", "weights", "loops", "degrees")
"""Arrays of a level's graph."""


def wanted(first: GpuLevel, level: GpuLevel, limits: Limits, planned: bool) -> bool:
    """Return whether the level after this one is to be made of the input's arcs.

    Where that was not `planned`, a level that outgrew its region has room to give back.
    """
    if level.number != 1 or level.refined is None or limits.region_arcs is None:
        return False
    large = max(level.vertices, level.arcs) > limits.small
    kept = level.arcs > REAGGREGATE_ABOVE * first.arcs
    return large and kept and (planned or level.arcs > limits.region_arcs[0])


def give_back(memory: Allocator, level: GpuLevel, names: Sequence[str] = GRAPH) -> None:
    """Free the graph of a level, or what there is of it."""
    for name in names:
        if f"{name}.{level.tag}" in memory.live:
            memory.free(f"{name}.{level.tag}")
        setattr(level, name, None)


def from_input(
    kernels: Kernels, memory: Allocator, first: GpuLevel, level: GpuLevel, limits: Limits
) -> GpuLevel:
    """Return the level after level 1, whose graph is given back.

    Overwrites the parts with the vertices' numbers on the next level, and leaves them as
    `numbers`.

    Parameters
    ----------
    first : GpuLevel
        Level 0, aggregated to `level`.
    """
    numbers, n = level.refined, first.vertices
    k = number_parts(kernels, memory, level)
    arcs, region = level.arcs, level.region
    # Degrees lie among communities, where a hole would be of no use.
    give_back(memory, level, GRAPH[:-1])
    through = memory.empty("through", "scratch", n, np.uint32)
    relabel.run(kernels, "follow", n, numbers, first.numbers, through)
    # As if the input were in the other region: the next level is where this one was.
    source = replace(first, number=level.number, region=3 - region, refined=through)
    # There are no more arcs than on the level between.
    coarse = from_numbers(
        kernels, memory, source, through, k, replace(limits, region_arcs=(arcs, arcs))
    )
    memory.free("through")
    return joined(kernels, memory, level, numbers, coarse)


def restore(
    kernels: Kernels, memory: Allocator, first: GpuLevel, level: GpuLevel, limits: Limits
) -> None:
    """Make the graph of level 1 once more, after `aggregate_again` gave it back."""
    give_back(memory, level)
    source = replace(first, refined=first.numbers)
    made = from_numbers(kernels, memory, source, first.numbers, level.vertices, limits)
    level.tag, level.region, level.arcs = made.tag, made.region, made.arcs
    for name in GRAPH:
        setattr(level, name, getattr(made, name))


def number_parts(kernels: Kernels, memory: Allocator, level: GpuLevel) -> int:
    """Give the parts of a level numbers in the order of their labels; return how many."""
    parts = level.refined
    aggregation = Aggregation(kernels, memory, level)
    aggregation.set(numbers=parts, labels=level.vertices)
    ranks = aggregation.scratch("ranks", level.vertices + 1, np.uint32)
    aggregation.launch("number_labels")
    k = int(aggregation.read()["vertices"])
    relabel.run(kernels, "follow", level.vertices, ranks, parts, parts)
    aggregation.close()
    return k


def from_numbers(
    kernels: Kernels, memory: Allocator, source: GpuLevel, numbers: Any, k: int, limits: Limits
) -> GpuLevel:
    """Return the level after `source`, whose vertices become `numbers`, below k."""
    aggregation = Aggregation(kernels, memory, source)
    aggregation.set(numbers=numbers, map=numbers)
    return in_chunks(aggregation, source, limits, k)
