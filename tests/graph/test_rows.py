"""Rows from edges: the same as a slow, plain way gives, whatever the threads."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.errors import GraphError
from louvain_um.graph import rows
from louvain_um.graph.graph import Graph


def plainly(
    u: NDArray[np.uint32], v: NDArray[np.uint32], w: NDArray[np.int64] | None, summing: bool
) -> tuple[dict[tuple[int, int], int], int]:
    """Return the weight of each edge, 0 included, and how many edges repeat another."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    weights = np.ones(len(u), np.int64) if w is None else w
    for a, b, x in zip(u.tolist(), v.tolist(), weights.tolist(), strict=True):
        found[min(a, b), max(a, b)].append(x)
    merge = sum if summing else max
    return {edge: merge(x) for edge, x in found.items()}, len(u) - len(found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("n", "edges", "hub"),
    [(1, 3, 0.0), (5, 40, 0.0), (300, 0, 0.0), (1 << 20, 500, 0.0), (400, 30000, 0.0),
     (90_000, 120_000, 0.5)],
)  # fmt: skip
def test_rows_as_the_plain_way_gives_them(
    n: int, edges: int, hub: float, threads: int, weighted: bool
) -> None:
    rng = np.random.default_rng(n + edges)
    u, v = (rng.integers(0, n, edges).astype(np.uint32) for _ in range(2))
    u[rng.random(edges) < hub] = n // 3
    w = rng.integers(0, 2**33 if edges == 40 else 9, edges) if weighted else None
    made = rows.compress(u, v, w, n, summing=weighted, threads=threads)
    expected, repeats = plainly(u, v, w, weighted)
    assert made.repeats == repeats
    assert made.weightless == sum(weight == 0 for weight in expected.values())
    expected = {edge: weight for edge, weight in expected.items() if weight > 0}
    row = np.repeat(np.arange(n), np.diff(made.offsets))
    order = np.lexsort((made.targets, row))
    assert np.array_equal(order, np.arange(len(row)))
    weights = np.ones(len(row), np.int64) if made.weights is None else made.weights
    got = {
        (a, b): x
        for a, b, x in zip(row.tolist(), made.targets.tolist(), weights.tolist(), strict=True)
    }
    assert got == {arc: x for (a, b), x in expected.items() if a != b for arc in ((a, b), (b, a))}
    loops = {a: x for (a, b), x in expected.items() if a == b and x}
    assert {int(a): int(made.loops[a]) for a in np.flatnonzero(made.loops)} == loops


def test_the_largest_weight_counts_where_they_do_not_add_up() -> None:
    graph = Graph.from_edges([0, 1, 2, 2], [1, 0, 2, 2], [3, 7, 5, 4], duplicates="once")
    assert graph.weights is not None
    assert graph.weights.tolist() == [7, 7]
    assert graph.loops.tolist() == [0, 0, 5]


def test_repeats_and_loops_are_told() -> None:
    twice = Graph.from_edges([0, 1, 1, 2, 2], [1, 0, 2, 2, 2])
    assert twice.notes[0].startswith("2 of 5 edges repeat one listed before")
    assert "counts once" in twice.notes[0]
    assert twice.notes[1].startswith("1 edge is a loop")
    added = Graph.from_edges([0, 1], [1, 0], [1, 2])
    assert "add up" in added.notes[0]
    assert Graph.from_edges([0, 1], [1, 2]).notes == ()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_stream_keeps_the_order(threads: int) -> None:
    fetched = []

    def items() -> object:
        for i in range(20):
            fetched.append(i)
            yield i

    assert list(parallel.stream(lambda i: i * i, items(), threads)) == [i * i for i in range(20)]  # type: ignore[arg-type, var-annotated]
    assert fetched == list(range(20))
    assert list(parallel.stream(abs, [], threads)) == []
    with pytest.raises(ZeroDivisionError):
        list(parallel.stream(lambda i: 1 // (i - 7), range(20), threads))


@pytest.mark.parametrize("number", [np.int64(9), np.uint8(9), np.array(9), 9])
def test_a_number_of_vertices_may_be_numpys(number: Any) -> None:
    assert Graph.from_edges([0, 1], [1, 2], n_vertices=number).n_vertices == 9


@pytest.mark.parametrize("number", [-1, 2.5, True, "9", np.array([9])])
def test_what_is_no_number_of_vertices_is_refused(number: Any) -> None:
    with pytest.raises(GraphError, match="n_vertices must be a whole number"):
        Graph.from_edges([0], [1], n_vertices=number)
