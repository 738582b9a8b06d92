"""Levels read in ranges, and stored in other ways, are what they are at once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from louvain_um import Graph, api
from louvain_um.events import ignore
from louvain_um.gpu import engine
from louvain_um.gpu.aggregate.aggregate import LIMITS, Limits, aggregate
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.runtime.compile import kernels
from louvain_um.options import Options
from tests.gpu.test_aggregate import CHUNKED, GRAPHS, WAYS, arcs_of, partitions

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

PIECES = (1, 2, 13)
KEPT = {"roomy": None, "merging": 0.3, "growing": 0.01}

CASES = [
    (kind, pieces, kept)
    for i, kind in enumerate(GRAPHS)
    for j, pieces in enumerate(PIECES)
    for k, kept in enumerate(KEPT)
    if (i + j + k) % 3 == 0
]
"""Each graph with all numbers of ranges and all ways; each pair of these with some graph."""


@cache
def graph_of(kind: str) -> Graph:
    return GRAPHS[kind]()


def found_of(level: Any, coarse: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Return the arrays and the numbers of an aggregated level."""
    arrays = [x.get() for x in (coarse.offsets, level.numbers, coarse.loops, coarse.degrees)]
    sums = coarse.inside, coarse.squares, coarse.max_degree, coarse.arcs, coarse.vertices
    return [*arrays, *arcs_of(coarse)], sums


def with_labels(gpu: GpuEngine, graph: Graph, labels: Any) -> Any:
    """Return level 0 with these communities."""
    level = gpu.load(graph)
    level.labels = gpu.memory.empty("labels.0.0", "community", level.vertices, "u4")
    level.labels.set(labels.astype(np.uint32))
    return level


@cache
def at_once(kind: str) -> dict[str, tuple[list[Any], tuple[int, ...]]]:
    """Return what a graph is aggregated to, by partition."""
    found = {}
    for name, labels in partitions(graph_of(kind).n_vertices).items():
        with GpuEngine(Options(), ignore) as gpu:
            level = with_labels(gpu, graph_of(kind), labels)
            found[name] = found_of(level, aggregate(kernels, gpu.memory, level, LIMITS))
    return found


@pytest.mark.parametrize(("kind", "pieces", "kept"), CASES)
def test_reading_in_ranges_changes_nothing(kind: str, pieces: int, kept: str) -> None:
    graph = graph_of(kind)
    n = graph.n_vertices
    ranges = list(pairwise(n * i // pieces for i in range(pieces + 1)))
    limits = replace(CHUNKED, chunks=3, kept=KEPT[kept])
    for name, labels in partitions(n).items():
        with GpuEngine(Options(), ignore) as gpu:
            level = with_labels(gpu, graph, labels)
            live = set(gpu.memory.live)
            asked = list[tuple[int, int]]()
            coarse = aggregate(
                kernels,
                gpu.memory,
                level,
                limits,
                ranges,
                lambda *ends, asked=asked: asked.append(ends),
            )
            where = f"{name}, {pieces} ranges"
            assert asked == [ends for ends in ranges if ends in asked], where
            arrays, sums = found_of(level, coarse)
            expected, exact = at_once(kind)[name]
            for a, b in zip(arrays, expected, strict=True):
                assert np.array_equal(a, b), where
            assert sums == exact, where
            gpu.release(coarse)
            assert set(gpu.memory.live) == live, where


def with_limits(limits: Limits, *args: Any) -> Any:
    kernels, memory, level, _, *where = args
    return aggregate(kernels, memory, level, limits, *where)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("kind", ["rmat", "lfr", "rmat u32", "rmat u64"])
def test_labels_do_not_depend_on_how_levels_are_stored(
    kind: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = GRAPHS[kind]()
    expected = getattr(api, method)(graph, device="cpu")
    for limits in WAYS.values():
        instead = partial(with_limits, limits)
        monkeypatch.setattr(engine, "aggregate", instead)
        found = getattr(api, method)(graph, device="cuda")
        assert np.array_equal(found.labels, expected.labels)
        visited = [[(x.arcs, x.arcs_visited) for x in y.levels] for y in (found, expected)]
        assert visited[0] == visited[1]
