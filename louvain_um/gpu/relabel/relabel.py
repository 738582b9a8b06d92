"""Communities between levels, on the device: launches `relabel.cu`.

See `louvain_um.cpu.refine` for carrying and splitting, `louvain_um.core.numbering` for numbering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from louvain_um.core.hierarchy import Sums
from louvain_um.gpu.level import NULL, GpuLevel, or_null
from louvain_um.gpu.memory.degree_stats import HUB_DEGREE, DegreeStats
from louvain_um.gpu.runtime.compile import Kernel, Kernels
from louvain_um.gpu.runtime.launch import THREADS, grid_for
from louvain_um.placement.memory.allocator import Allocator

FOUND: Final = np.dtype(
    [
        ("barrier", np.uint32, 2),
        ("inside", np.uint64),
        ("squares", np.uint64, 3),
        ("communities", np.uint64),
    ]
)
"""`Found` of relabel.cu."""

VERTICES_A_BLOCK: Final = 2048
"""Vertices for each block of a grid that looks at vertices alone."""


def new_found(memory: Allocator) -> Any:
    """Return a zeroed `Found`; free it as "found"."""
    found = memory.empty("found", "scratch", FOUND.itemsize, np.uint8)
    found.data.memset_async(0, FOUND.itemsize)
    return found


def blocks_for(kernels: Kernels, kernel: Kernel, vertices: int) -> int:
    """Return the number of blocks for so many vertices: at most what is resident at once."""
    return max(1, min(kernels.resident_blocks(kernel, THREADS), vertices // VERTICES_A_BLOCK))


def run(kernels: Kernels, name: str, vertices: int, *arguments: Any) -> None:
    """Launch a kernel that looks at vertices alone; their number is its first argument."""
    kernel = kernels.get("relabel", name)
    blocks = blocks_for(kernels, kernel, vertices)
    kernel((blocks,), (THREADS,), (np.int64(vertices), *arguments))


def relabel_communities(
    kernels: Kernels, memory: Allocator, level: GpuLevel, numbers: Any, carried: Any
) -> None:
    """Write where the next level's vertices start: the smallest of them in their community."""
    first = memory.empty("first", "scratch", level.vertices, np.uint32)
    found = new_found(memory)
    run(
        kernels, "relabel_communities", level.vertices, level.labels, numbers, first, carried, found
    )
    memory.free("first", "found")


def community_sums(kernels: Kernels, memory: Allocator, level: GpuLevel) -> Sums:
    """Return the sums of the communities a level starts in."""
    n = level.vertices
    totals = memory.empty("start_totals", "scratch", n, level.sums)
    used = memory.empty("start_used", "scratch", n, np.uint32)
    found = new_found(memory)
    kernel = kernels.get("relabel", "sum_communities", level.types)
    kernel(
        (grid_for(kernels, kernel, level),),
        (THREADS,),
        (
            np.int64(n), level.offsets, level.targets, or_null(level.weights),
            or_null(level.loops), or_null(level.degrees), level.start, totals, used, found,
        ),
    )  # fmt: skip
    sums = found.get().view(FOUND)[0]
    memory.free("start_totals", "start_used", "found")
    low, middle, high = sums["squares"].tolist()
    squares = low + (middle << 32) + (high << 64)
    return Sums(int(sums["inside"]), squares, int(sums["communities"]))


def split(kernels: Kernels, memory: Allocator, level: GpuLevel) -> None:
    """Make every connected part of a community that a level starts in one of its own."""
    parents = memory.empty("parents", "scratch", level.vertices, np.uint32)
    found = new_found(memory)
    kernel = kernels.get("relabel", "split_communities")
    packed = np.uint32(level.targets24)
    arguments = (level.offsets, level.targets, packed, level.start, parents, found)
    blocks = grid_for(kernels, kernel, level)
    kernel((blocks,), (THREADS,), (np.int64(level.vertices), *arguments))
    memory.free("parents", "found")


def compose(kernels: Kernels, path: Sequence[GpuLevel], labels: Any) -> None:
    """Write the community of each of the input's vertices at the end of a path."""
    maps = [level.numbers for level in path[:-1]]
    if path[-1].start is not None:
        maps.append(path[-1].start)
    n = path[0].vertices
    run(kernels, "follow", n, or_null(maps[0] if maps else None), NULL, labels)
    for map_ in maps[1:]:
        run(kernels, "follow", n, map_, labels, labels)


def identity(kernels: Kernels, numbers: Any) -> None:
    """Let every vertex be its own number."""
    run(kernels, "follow", len(numbers), NULL, NULL, numbers)


def number_by_size(kernels: Kernels, memory: Allocator, labels: Any) -> None:
    """Renumber communities by descending size, ties by their smallest member, in place.

    Labels are below their number.
    """
    n = len(labels)
    if n == 0:
        return
    sizes = memory.empty("sizes_by_label", "scratch", n, np.uint32)
    first = memory.empty("first_by_label", "scratch", n, np.uint32)
    ranks = memory.empty("ranks", "scratch", n + 1, np.uint32)
    found = new_found(memory)
    kernel = kernels.get("relabel", "rank_communities")
    partials = memory.empty("partials", "scratch", blocks_for(kernels, kernel, n), np.uint32)
    run(kernels, "rank_communities", n, labels, sizes, first, ranks, partials, found)
    count = int(found.get().view(FOUND)[0]["communities"])
    keys = memory.empty("community_keys", "scratch", count, np.uint64)
    run(kernels, "key_communities", n, labels, sizes, first, ranks, keys)
    with room_from(memory, "sort_workspace"):
        keys.sort()
    # Sizes are in the keys: their room holds the new numbers.
    arguments = (np.int64(count), keys, first, ranks, sizes, labels, found)
    run(kernels, "number_communities", n, *arguments)
    memory.free("sizes_by_label", "first_by_label", "ranks", "found", "partials")
    memory.free("community_keys")


@contextmanager
def room_from(memory: Allocator, name: str) -> Iterator[None]:
    """Let CuPy's functions take what they work in from the run's memory, within its budget."""
    import cupy

    taken = list[str]()

    def take(nbytes: int) -> Any:
        taken.append(f"{name}.{len(taken)}")
        return memory.empty(taken[-1], "scratch", nbytes, np.uint8).data

    try:
        with cupy.cuda.using_allocator(take):
            yield
    finally:
        memory.free(*taken)  # whoever has it next comes after it in the stream


def survey(kernels: Kernels, vertices: int, offsets: Any) -> DegreeStats:
    """Return how many arcs vertices have."""
    import cupy

    skew = cupy.zeros(4, np.uint64)
    run(kernels, "survey", vertices, offsets, np.uint64(HUB_DEGREE), skew)
    return DegreeStats(*skew.tolist())
