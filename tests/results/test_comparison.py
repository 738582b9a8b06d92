from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

import louvain_um as lu
from louvain_um.results import comparison
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Labels, compare

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


@settings(deadline=None)
@given(PAIRS)
def test_measures_are_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs).T
    found = compare(a, b)
    assert found.nmi == pytest.approx(metrics.normalized_mutual_info_score(a, b))
    assert found.ari == pytest.approx(metrics.adjusted_rand_score(a, b))
    assert found.ami == pytest.approx(metrics.adjusted_mutual_info_score(a, b))
    same = len(set(pairs)) == len(set(a)) == len(set(b))
    assert found.identical == same


@settings(deadline=None)
@given(PAIRS)
def test_labels_names_and_order_of_arguments_do_not_matter(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs).T
    renamed = np.array([f"c{9 - c}" for c in a], object)
    one, other = compare(a, b), compare(b, renamed)
    assert other.nmi == pytest.approx(one.nmi)
    assert other.ari == pytest.approx(one.ari)
    assert other.identical == one.identical
    assert compare(a, renamed).identical


def test_vertices_are_matched_by_name() -> None:
    graph = lu.Graph.from_edges([0, 2], [1, 3], names=np.array(["a", "b", "c", "d"], object))
    result = Communities.of(graph, [0, 0, 1, 1])
    truth = Labels(np.array(["d", "b", "a", "z"], object), np.array(["y", "x", "x", "y"], object))
    found = result.compare(truth)
    assert found.identical
    assert found.vertices == 3
    assert found.communities == (2, 2)
    assert found.unmatched == (1, 1)
    assert compare(truth, result).unmatched == (1, 1)


def test_numbers_match_numbers_written_as_text() -> None:
    a = Labels(np.array([10, 2, 1]), np.array([0, 1, 1]))
    b = Labels(np.array(["1", "2", "10"], object), np.array([5, 5, 6]))
    assert compare(a, b).identical


def test_bare_arrays_are_in_vertex_order() -> None:
    graph = lu.Graph.from_edges([0, 2], [1, 3], names=np.array([7, 5, 3, 1]))
    assert Communities.of(graph, [0, 0, 1, 1]).compare([4, 4, 2, 2]).identical


def test_refusals() -> None:
    with pytest.raises(lu.GraphError, match="2 labels against 3"):
        compare([0, 1], [0, 1, 2])
    with pytest.raises(lu.GraphError, match="no vertex in common"):
        compare(
            Labels(np.array(["a"]), np.array([0])),
            Labels(np.array(["b"]), np.array([0])),
        )
    with pytest.raises(lu.GraphError, match="one-dimensional"):
        compare([[0]], [0])


def test_nothing_to_compare() -> None:
    assert compare(np.zeros(0, int), np.zeros(0, int)).identical


def test_ami_is_left_out_where_it_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 1])
    steps = sum(min(x, y) for x in (2, 2, 1) for y in (1, 4))
    assert comparison._ami_steps(np.bincount(a), np.bincount(b)) == steps
    monkeypatch.setattr(comparison, "AMI_STEPS", steps - 1)
    assert math.isnan(compare(a, b).ami)
    assert compare(a, b).nmi > 0


def test_ids_that_are_one_apart_are_told_at_the_callers_line() -> None:
    ids, of = np.arange(4), np.array([0, 0, 1, 1])
    zero, one = (Labels(vertices=ids + base, communities=of) for base in (0, 1))
    for call in (lambda: compare(zero, one), lambda: compare(one, zero)):
        with pytest.warns(lu.GraphWarning, match="one apart") as told:
            call()
        assert told[0].filename == __file__
