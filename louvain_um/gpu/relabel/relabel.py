"""Communities between levels, on the device (`relabel.cu`).

The counterpart of relabelling and splitting in `louvain_um.cpu.refine`, and of
`louvain_um.core.numbering`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.objective import Sums
from louvain_um.gpu.level import NULL, GpuLevel, or_null
from louvain_um.gpu.memory.graph_stats import (
    HUB_DEGREE,
    SAMPLED_FROM,
    STEPS,
    WALKS,
    DegreeStats,
    structure_draws,
    structure_of,
    wedge_draws,
)
from louvain_um.gpu.runtime.kernel_list import (
    PACKED,
    PACKED_OFFSETS32,
    PACKED_WEIGHTS16,
    WEIGHTS8_TARGETS24,
)
from louvain_um.gpu.runtime.launch import Launcher, column_type
from louvain_um.placement.hardware import THREADS
from louvain_um.placement.memory.run_memory import RunMemory

FORMS: Final = {
    **dict.fromkeys((PACKED, *PACKED_WEIGHTS16), 1),
    PACKED_OFFSETS32: 2,
    **dict.fromkeys(WEIGHTS8_TARGETS24, 3),
}
"""How `split_communities` distinguishes levels in fewer bytes."""

RELABEL_RESULT: Final = np.dtype(
    [
        ("barrier", np.uint32, 2),
        ("inside", np.uint64),
        ("squares", np.uint64, 3),
        ("communities", np.uint64),
    ]
)
"""`RelabelResult` of sums.cuh."""

VERTICES_A_BLOCK: Final = 2048
"""Vertices per block, for kernels that read no arcs."""


def new_result(memory: RunMemory, name: str = "relabel_result") -> Any:
    """Return a zeroed `RelabelResult`; free it by its name."""
    result = memory.empty(name, "scratch", RELABEL_RESULT.itemsize, np.uint8)
    result.data.memset_async(0, RELABEL_RESULT.itemsize)
    return result


def new_sums(memory: RunMemory) -> Any:
    """Return a zeroed result for sums of communities, until `relabel_communities` frees it."""
    return new_result(memory, "found_sums")


def sums_in(result: Any) -> Sums:
    """Return the sums in a result; waits for the device."""
    sums = result.get().view(RELABEL_RESULT)[0]
    low, middle, high = sums["squares"].tolist()
    squares = low + (middle << 32) + (high << 64)
    return Sums(int(sums["inside"]), squares, int(sums["communities"]))


def run(name: str, vertices: int, *arguments: Any) -> None:
    """Launch a kernel that reads no arcs; the number of vertices is its first argument."""
    launcher = Launcher("relabel", name, most=vertices // VERTICES_A_BLOCK)
    launcher(np.int64(vertices), *arguments)


def relabel_communities(memory: RunMemory, level: GpuLevel, numbers: Any, new_start: Any) -> Any:
    """Write the communities that the next level starts in, each named by its smallest vertex."""
    first = memory.empty("first", "scratch", level.vertices, np.uint32)
    found = level.found_sums
    result = new_result(memory) if found is None else found
    arguments = (level.labels, numbers, first, new_start, result)
    run("relabel_communities", level.vertices, *arguments)
    memory.free("first")
    return result


def relabelled_sums(memory: RunMemory, level: GpuLevel, result: Any) -> Sums | None:
    """Return the sums of the communities, the same on both levels, if refinement found them."""
    sums = None if level.found_sums is None else sums_in(result)
    memory.free("relabel_result" if level.found_sums is None else "found_sums")
    level.found_sums = None
    return sums


def community_sums(memory: RunMemory, level: GpuLevel) -> Sums:
    """Return the sums of the communities that a level starts in."""
    n = level.vertices
    totals = memory.empty("start_totals", "scratch", n, level.sums)
    used = memory.empty("start_used", "scratch", n, np.uint32)
    result = new_result(memory)
    launch = Launcher("relabel", "sum_communities", level.types, most=level.most_blocks)
    launch(
        np.int64(n), level.offsets, level.targets, or_null(level.weights_argument),
        or_null(level.loops), or_null(level.degrees), level.start, totals, used, result,
    )  # fmt: skip
    sums = sums_in(result)
    memory.free("start_totals", "start_used", "relabel_result")
    return sums


def split(memory: RunMemory, level: GpuLevel, labels: Any) -> None:
    """Label each connected part of a community of a level with its smallest member, in place."""
    parents = memory.empty("parents", "scratch", level.vertices, np.uint32)
    result = new_result(memory)
    form, first = np.uint32(FORMS.get(level.types, 0)), None
    if level.fixed is not None:
        first = memory.empty("first", "scratch", level.vertices, np.uint32)
    fixed = or_null(level.fixed), or_null(first)
    heads = or_null(level.weights_argument if level.compact else None)
    launch = Launcher("relabel", "split_communities", most=level.most_blocks)
    launch(
        np.int64(level.vertices), level.offsets, level.targets, heads, form, *fixed, labels,
        parents, result,
    )  # fmt: skip
    memory.free("parents", "relabel_result", *(["first"] if first is not None else []))


def components(memory: RunMemory, level: GpuLevel) -> None:
    """Take the connected parts of the communities of a level as `refined`."""
    n, name = level.vertices, f"refined.{level.cycle}.{level.number}"
    level.refined = memory.empty(name, "community", n, np.uint32)
    run("follow", n, NULL, level.labels, level.refined)
    split(memory, level, level.refined)


def compose(path: Sequence[GpuLevel], labels: Any) -> None:
    """Write the community of each of the input's vertices after a path of levels."""
    maps = [level.numbers for level in path[:-1]]
    if path[-1].start is not None:
        maps.append(path[-1].start)
    while len(maps) > 2:
        last, before = maps.pop(), maps[-1]
        run("follow", path[len(maps) - 1].vertices, last, before, before)
    whole = or_null(maps.pop() if maps else None)
    run("follow", path[0].vertices, whole, maps[0] if maps else NULL, labels)


def identity(numbers: Any) -> None:
    """Set each vertex's number to the vertex itself."""
    run("follow", len(numbers), NULL, NULL, numbers)


def number_by_size(memory: RunMemory, labels: Any, names: int) -> None:
    """Renumber communities, named below `names`, by descending size, in place."""
    # Ties are numbered by their smallest member.
    n = len(labels)
    if n == 0:
        return
    if memory.mover:
        memory.mover.let_leave("labels", in_order=True)
    sizes = memory.empty("sizes_by_label", "scratch", names, np.uint32)
    first = memory.empty("first_by_label", "scratch", names, np.uint32)
    result = new_result(memory)
    run("size_communities", n, np.int64(names), labels, sizes, first, result)
    count = int(result.get().view(RELABEL_RESULT)[0]["communities"])
    keys = memory.empty("community_keys", "scratch", count, np.uint64)
    run("key_communities", names, sizes, first, keys, result)
    memory.free("first_by_label")
    with sort_workspace(memory):
        keys.sort()
    # Sizes are part of the keys now: their array holds the new numbers.
    run("number_communities", n, np.int64(count), keys, sizes, labels, result)
    memory.free("sizes_by_label", "community_keys", "relabel_result")


@contextmanager
def sort_workspace(memory: RunMemory) -> Iterator[None]:
    """Let CuPy sort in scratch memory of the run's allocator, within its budget."""
    import cupy

    taken = list[str]()

    def take(nbytes: int) -> Any:
        taken.append(f"sort_workspace.{len(taken)}")
        return memory.empty(taken[-1], "scratch", nbytes, np.uint8).data

    try:
        with cupy.cuda.using_allocator(take):
            yield
    finally:
        memory.free(*taken)  # the next user of this memory comes later in the stream


def survey(offsets: Any, targets: Any) -> DegreeStats:
    """Return statistics of a graph, as `graph_stats` does, but without its weights."""
    import cupy

    arcs, draws, ends = len(targets), structure_draws(), None
    stats = cupy.zeros(8, np.uint64)
    run("survey_degrees", len(offsets) - 1, offsets, np.uint64(HUB_DEGREE), stats)
    if arcs:
        _sample("sample_wedges", offsets, targets, wedge_draws(), stats[4:])
    if arcs >= SAMPLED_FROM:
        ends = cupy.empty(draws.shape[1], np.uint32)
        _sample("sample_structure", offsets, targets, draws, ends, stats[6:], sizes=(WALKS, STEPS))
    max_degree, squares, isolated, hub_arcs, *pairs, paths, closed = stats.tolist()
    return DegreeStats(
        max_degree, squares, isolated, hub_arcs,
        clustering=pairs[1] / max(pairs[0], 1),
        structure=None if ends is None else structure_of(closed / max(paths, 1), ends.get()),
    )  # fmt: skip


def _sample(
    name: str, offsets: Any, targets: Any, draws: NDArray[np.float64], *found: Any, sizes: Any = ()
) -> None:
    """Launch a kernel with a thread for each sample: its reads follow from each other."""
    import cupy

    samples = draws.shape[1]
    launch = Launcher("relabel", name, most=-(-samples // THREADS))
    counts = [np.int64(count) for count in (samples, *sizes)]
    launch(*counts, offsets, targets, np.int64(len(targets)), cupy.asarray(draws), *found)


class Join:
    """Finds the communities that the next level's vertices start in, by Leiden."""

    def __init__(self, memory: RunMemory, level: GpuLevel, numbers: Any) -> None:
        self.memory = memory
        self.level = level
        self.numbers = numbers
        self.start: Any = None
        self.sums: Any = None

    def launch(self, vertices: int) -> None:
        """Launch it, for a level of so many vertices, or fewer."""
        level, memory = self.level, self.memory
        if level.refined is not None:
            name = start_after(level)
            self.start = memory.empty(name, "community", vertices, np.uint32)
            self.sums = relabel_communities(memory, level, self.numbers, self.start)

    def finish(self, coarse: GpuLevel) -> GpuLevel:
        """Give them to the next level, and this level the numbers; wait for the device."""
        level = self.level
        if level.refined is not None:
            if self.start is None:
                self.launch(coarse.vertices)
            else:
                self.start = self.memory.shrink(start_after(level), coarse.vertices)
            coarse.start = self.start
            coarse.start_sums = relabelled_sums(self.memory, level, self.sums)
        level.numbers, level.refined = self.numbers, None
        return coarse

    def discard(self) -> None:
        """Free what was launched for nothing, and what it was made of."""
        level = self.level
        if level.refined is not None:
            sums = "relabel_result" if level.found_sums is None else "found_sums"
            self.memory.free(f"refined.{level.cycle}.{level.number}", sums)
            if self.start is not None:
                self.memory.free(start_after(level))
            level.refined = level.found_sums = None


def start_after(level: GpuLevel) -> str:
    """Return the name of the communities that the next level starts in."""
    return f"start.{level.cycle}.{level.number + 1}"


def agreed_counts(
    device: Any,
    graph: Any,
    partitions: Sequence[NDArray[np.uint32]],
    least: int,
    choose: Callable[[NDArray[np.uint64], int], NDArray[np.uint32]],
) -> tuple[Any, int]:
    """Return in how many partitions the ends of each arc are together, 0 for arcs to drop."""
    # The counts are uint32 on the device; with them, how many arcs that stay are not in all.
    # `choose` returns the arcs to keep below `least`, of each vertex' strongest one.
    xp, n = device.xp, graph.n_vertices
    rows = np.int64(n), graph.offsets, graph.targets
    counts, undecided = xp.zeros(graph.n_arcs, np.uint32), xp.zeros(1, np.uint64)
    strongest = xp.zeros(n, np.uint64)
    if not graph.n_arcs:
        return counts, 0
    for labels in partitions:
        device.launch("relabel", "count_together", "", n, *rows, xp.asarray(labels), counts)
    device.launch("relabel", "strongest_arcs", "", 32 * n, *rows, counts, strongest)
    chosen = xp.asarray(choose(device.get(strongest), least))
    limits = np.uint32(least), np.uint32(len(partitions))
    device.launch("relabel", "drop_weak", "", n, *rows, chosen, *limits, counts, undecided)
    return counts, int(device.get(undecided)[0])


def community_counts(device: Any, graph: Any, labels: Any, *, parts: bool) -> NDArray[np.int64]:
    """Return rows of int64[k] of a graph's communities, given as uint32[n] on a device or here."""
    # These are arcs' weight inside (loops twice) and total degree; with `parts`, also arcs inside
    # and connected parts.
    xp, n = device.xp, graph.n_vertices
    labels, named = xp.asarray(labels), None
    communities = int(labels.max()) + 1 if n else 0
    sums = xp.zeros((4 if parts else 2, communities), np.uint64)
    rows = np.int64(n), graph.offsets, graph.targets
    if parts and n:
        named, parents = labels.copy(), xp.empty(n, np.uint32)
        result = xp.zeros(RELABEL_RESULT.itemsize, np.uint8)
        device.launch(
            "relabel", "split_communities", "", n, *rows, None, np.uint32(0), None, None, named,
            parents, result,
        )  # fmt: skip
    if n:
        device.launch(
            "relabel", "weigh_communities", "", 32 * n, rows[0], np.int64(communities), *rows[1:],
            graph.weights, column_type(graph.weights), graph.loops, labels, named, sums,
        )  # fmt: skip
    counted: NDArray[np.int64] = device.get(sums).view(np.int64)
    return counted
