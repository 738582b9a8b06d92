"""Generated streams: the same arguments give the same batches, as often as they are replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.windows import Step
from louvain_um.errors import OptionError, check_choice
from louvain_um.generators import rmat as rmat_graph
from louvain_um.graph.graph import Graph

U32 = NDArray[np.uint32]
Ends = tuple[U32, U32]

PLANTED: Final = ("migrate", "merge", "split", "grow")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """A graph and the batches that change it.

    Parameters
    ----------
    initial : Graph
        Unweighted.
    labels : uint32[n] or None
        Communities planted in it.
    steps : callable
        Returns the steps from the first on.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.dynamic.scenarios import churn
    >>> scenario = churn(lu.Graph.from_edges([0, 1, 2], [1, 2, 3]), batch=2, steps=2, seed=1)
    >>> g = lu.DynamicGraph(scenario.initial)
    >>> for step in scenario.steps():
    ...     _ = step.apply(g)
    >>> g.epoch
    2
    """

    initial: Graph
    labels: U32 | None = None
    steps: Callable[[], Iterator[Step]]


def ends_of(graph: Graph) -> Ends:
    """Return the edges of a graph that are not loops, smaller end first."""
    u = np.repeat(np.arange(graph.n_vertices, dtype=np.uint32), np.diff(graph.offsets))
    once = u < graph.targets
    return u[once], graph.targets[once]


def random_ends(rng: np.random.Generator, n: int, count: int) -> Ends:
    """Return random pairs of different vertices."""
    u = rng.integers(0, n, count, np.uint32)
    v = rng.integers(0, max(n - 1, 1), count, np.uint32)
    return u, (v + (v >= u)).astype(np.uint32) if n > 1 else v


def check(**counts: int) -> None:
    """Raise an OptionError unless all are whole numbers of at least 1."""
    for name, value in counts.items():
        if not isinstance(value, int | np.integer) or value < 1:
            raise OptionError(name, value, "must be a whole number of at least 1")


def churn(graph: Graph, *, batch: int, steps: int, seed: int = 0) -> Scenario:
    """Delete `batch` random edges and insert as many between random vertices, each step."""
    check(batch=batch, steps=steps)

    def made() -> Iterator[Step]:
        rng = np.random.default_rng(seed)
        u, v = (ends.copy() for ends in ends_of(graph))
        for number in range(steps):
            gone = rng.choice(len(u), min(batch, len(u)), replace=False)
            delete = u[gone], v[gone]
            u[gone], v[gone] = random_ends(rng, graph.n_vertices, len(gone))
            yield Step(time=number, delete=delete, insert=(u[gone], v[gone]))

    return Scenario(initial=graph, steps=made)


def growth(graph: Graph, *, steps: int, start: float = 0.5, seed: int = 0) -> Scenario:
    """Begin with a share `start` of the edges; insert the rest in a random order."""
    check(steps=steps)
    if not 0 <= start <= 1:
        raise OptionError("start", start, "must lie in 0 … 1")
    u, v = ends_of(graph)
    order = np.random.default_rng(seed).permutation(len(u))
    first, rest = np.split(order, [int(start * len(u))])
    initial = Graph.from_edges(u[first], v[first], n_vertices=graph.n_vertices)

    def made() -> Iterator[Step]:
        for number, part in enumerate(np.array_split(rest, steps)):
            yield Step(time=number, insert=(u[part], v[part]))

    return Scenario(initial=initial, steps=made)


def rmat(scale: int, *, batch: int, steps: int, edge_factor: int = 16, seed: int = 0) -> Scenario:
    """Insert edges of an R-MAT graph and delete the oldest, `batch` of each a step.

    The graph begins with the edges of `edge_factor`; further ones come of the same generator.
    """
    check(batch=batch, steps=steps)
    later = -(-batch * steps // (1 << scale)) + 1
    u, v = ends_of(rmat_graph(scale, edge_factor=edge_factor + later, seed=seed).graph)
    order = np.random.default_rng(seed).permutation(len(u))
    u, v = u[order], v[order]
    held = max(len(u) - batch * steps, min(len(u), batch))
    initial = Graph.from_edges(u[:held], v[:held], n_vertices=1 << scale)

    def made() -> Iterator[Step]:
        for number in range(steps):
            gone = slice(number * batch, (number + 1) * batch)
            fresh = slice(held + number * batch, held + (number + 1) * batch)
            yield Step(time=number, delete=(u[gone], v[gone]), insert=(u[fresh], v[fresh]))

    return Scenario(initial=initial, steps=made)


def vertices(graph: Graph, *, count: int, degree: int = 8, steps: int, seed: int = 0) -> Scenario:
    """Remove `count` random vertices a step and add as many, with `degree` random edges each."""
    check(count=count, degree=degree, steps=steps)

    def made() -> Iterator[Step]:
        rng = np.random.default_rng(seed)
        living, n = np.arange(graph.n_vertices, dtype=np.uint32), graph.n_vertices
        for number in range(steps):
            gone = rng.choice(len(living), min(count, len(living)), replace=False)
            fresh = np.arange(n, n + count, dtype=np.uint32)
            removed = np.sort(living[gone])
            living, n = np.concatenate([np.delete(living, gone), fresh]), n + count
            others = living[rng.integers(0, len(living), degree * count)]
            yield Step(
                time=number,
                new_vertices=count,
                remove=removed,
                insert=(np.repeat(fresh, degree), others),
            )

    return Scenario(initial=graph, steps=made)


def planted(
    n: int,
    *,
    communities: int = 16,
    degree_in: float = 12.0,
    degree_out: float = 3.0,
    change: str = "migrate",
    batch: int = 8,
    steps: int = 100,
    seed: int = 0,
) -> Scenario:
    """Plant communities and change them, `batch` vertices a step: their edges are drawn anew.

    Parameters
    ----------
    n, communities : int
        Vertices, and communities of equal size.
    degree_in, degree_out : float
        Mean edges of a vertex inside its community and to all others.
    change : {"migrate", "merge", "split", "grow"}
        Vertices go to another community; those of every odd community go to the one before; the
        later half of every community leaves for a new one; or new vertices join communities.
    batch, steps, seed : int
    """
    check(n=n, communities=communities, batch=batch, steps=steps)
    check_choice("change", change, PLANTED)
    if communities > n:
        raise OptionError("communities", communities, f"must be at most n, {n}")
    start = (np.arange(n, dtype=np.int64) * communities // n).astype(np.uint32)
    rng = np.random.default_rng(seed)
    every = np.arange(n, dtype=np.uint32)
    initial = Graph.from_edges(
        *_drawn(rng, every, start, degree_in / 2, degree_out / 2), n_vertices=n
    )

    def made() -> Iterator[Step]:
        rng = np.random.default_rng([seed, 1])
        labels = start.copy()
        u, v = (ends.copy() for ends in ends_of(initial))
        movers = _movers(rng, start, change)
        for number in range(steps):
            if change == "grow":
                moving = np.arange(len(labels), len(labels) + batch, dtype=np.uint32)
                joined = rng.integers(0, communities, batch, np.uint32)
                labels = np.concatenate([labels, joined])
            elif change == "migrate":
                moving = rng.choice(n, min(batch, n), replace=False).astype(np.uint32)
                labels[moving] = rng.integers(0, communities, len(moving))
            else:
                moving = movers[number * batch : (number + 1) * batch]
                labels[moving] += (
                    np.uint32(communities) if change == "split" else np.uint32(-1 % 2**32)
                )
            touched = np.zeros(len(labels), np.bool_)
            touched[moving] = True
            gone = touched[u] | touched[v]
            delete = u[gone], v[gone]
            insert = _drawn(rng, moving, labels, degree_in, degree_out)
            u, v = (
                np.concatenate([old[~gone], new]) for old, new in zip((u, v), insert, strict=True)
            )
            yield Step(
                time=number,
                new_vertices=len(moving) if change == "grow" else 0,
                delete=delete,
                insert=insert,
                labels=labels.copy(),
            )

    return Scenario(initial=initial, labels=start, steps=made)


def _movers(rng: np.random.Generator, labels: U32, change: str) -> U32:
    """Return the vertices that merge or split, in a random order."""
    if change == "merge":
        chosen = np.flatnonzero(labels % 2 == 1)
    else:
        sizes = np.bincount(labels)
        rank = np.arange(len(labels)) - (np.cumsum(sizes) - sizes)[labels]
        chosen = np.flatnonzero(rank >= (sizes[labels] + 1) // 2)
    return rng.permutation(chosen).astype(np.uint32)


def _drawn(rng: np.random.Generator, of: U32, labels: U32, inside: float, outside: float) -> Ends:
    """Draw edges of some vertices: as many on average within their communities, and to any."""
    order = np.argsort(labels, kind="stable").astype(np.uint32)
    sizes = np.bincount(labels)
    firsts = np.cumsum(sizes) - sizes
    within = np.repeat(of, rng.poisson(inside, len(of)))
    groups = labels[within]
    mates = order[firsts[groups] + (rng.random(len(within)) * sizes[groups]).astype(np.int64)]
    beyond = np.repeat(of, rng.poisson(outside, len(of)))
    others = rng.integers(0, len(labels), len(beyond), np.uint32)
    u, v = np.concatenate([within, beyond]), np.concatenate([mates, others])
    proper = u != v
    return u[proper], v[proper]
