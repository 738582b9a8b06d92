"""Level 2 out of the input's arcs is the level 2 out of level 1's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from louvain_um import api, generators
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.gpu import engine
from louvain_um.gpu.aggregate import reaggregate
from louvain_um.gpu.aggregate.aggregate import LIMITS, Limits
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory.short_weights import widened
from louvain_um.graph.graph import Graph
from louvain_um.options import Options

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

CHUNKED = replace(LIMITS, small=0, chunk=1, chunks=64, arcs_a_slot=1 << 30)


def weighted(graph: Graph, top: int) -> Graph:
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    keep = u <= graph.targets
    w = np.random.default_rng(2).integers(0, top, int(keep.sum()))
    return Graph.from_edges(u[keep], graph.targets[keep], w, n_vertices=graph.n_vertices)


def looped(graph: Graph) -> Graph:
    return replace(graph, loops=np.arange(graph.n_vertices, dtype=np.int64) % 3)


GRAPHS = {
    "rmat": lambda: generators.rmat(14).graph,
    "rmat loops": lambda: looped(generators.rmat(13).graph),
    "rmat u32": lambda: weighted(generators.rmat(13).graph, 50),
    "rmat u64": lambda: weighted(generators.rmat(13).graph, 2**33),
    "lfr": lambda: generators.lfr(20_000).graph,
}


@pytest.fixture(params=GRAPHS, scope="module")
def graph(request: pytest.FixtureRequest) -> Graph:
    made: Graph = GRAPHS[request.param]()
    return made


@pytest.fixture(params=[LIMITS, CHUNKED], ids=["chunk", "chunks"])
def always(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small level 1 is, and whatever it keeps, level 2 takes its place."""
    limits: Limits = replace(request.param, small=0)
    monkeypatch.setattr(engine, "LIMITS", limits)
    monkeypatch.setattr(reaggregate, "wanted", lambda first, level, *_: level.number == 1)


def arcs_of(level: GpuLevel) -> list[np.ndarray]:
    offsets = level.offsets.get()
    short = level.weights.dtype.itemsize < 4
    weights = widened(level.weights) if short else level.weights.get()
    source, targets = np.repeat(np.arange(level.vertices), np.diff(offsets)), level.targets.get()
    order = np.lexsort((targets, source))
    found = [offsets, targets[order], weights[order], level.loops.get(), level.degrees.get()]
    return [x.astype(np.int64) for x in found]


@pytest.mark.usefixtures("always")
def test_labels_are_the_same(graph: Graph) -> None:
    expected = api.leiden(graph, device="cpu")
    found = api.leiden(graph, device="cuda")
    assert np.array_equal(found.labels, expected.labels)
    for a, b in zip(found.maps, expected.maps, strict=True):
        assert np.array_equal(a, b)
    for x, y in zip(found.levels, expected.levels, strict=True):
        assert (x.vertices, x.arcs, x.arcs_visited) == (y.vertices, y.arcs, y.arcs_visited)


@pytest.mark.usefixtures("always")
def test_levels_are_those_of_the_cpu_and_come_back(graph: Graph) -> None:
    options = Options(method="leiden")
    cpu = CpuEngine(options, ignore)
    with GpuEngine(options, ignore) as gpu:
        level, exact = gpu.load(graph), cpu.load(graph)
        levels = [level]
        for _ in range(2):
            for step in (gpu, cpu):
                step.move(level if step is gpu else exact)
                step.refine(level if step is gpu else exact)
            level, exact = gpu.aggregate(level), cpu.aggregate(exact)
            levels.append(level)
            if level.number == 1:
                before = arcs_of(level)
        first = levels[1]
        assert first.offsets is None
        assert np.array_equal(level.start.get(), exact.start)
        assert (level.tag, level.max_degree) == ("1.2", int(np.diff(exact.offsets).max()))
        assert gpu.sums(level) == cpu.sums(exact)
        offsets, targets, weights, loops, degrees = arcs_of(level)
        for a, b in zip(
            (offsets, loops, degrees), (exact.offsets, exact.loops, exact.degrees), strict=True
        ):
            assert np.array_equal(a, b)
        order = np.lexsort((exact.targets, np.repeat(np.arange(level.vertices), np.diff(offsets))))
        assert np.array_equal(targets, exact.targets[order])
        assert np.array_equal(weights, exact.weights[order].astype(np.int64))
        gpu.release(level)
        gpu.split_disconnected(first)
        for a, b in zip(arcs_of(first), before, strict=True):
            assert np.array_equal(a, b)
