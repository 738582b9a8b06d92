"""Agreement of communities that overlap: values of cdlib 0.4.1, and definitions written out."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.results import covers
from louvain_um.results.comparison import Labels, compare

KNOWN = [
    ([[0, 1, 2, 3, 4], [4, 5, 6, 7], [7, 8, 9]], [[0, 1, 2, 3], [3, 4, 5, 6, 7], [7, 8, 9]],
     (0.7367062003, 0.7460743297, 0.7267206478)),
    ([[0, 1, 2, 3, 4, 5, 6], [5, 6, 7, 8], [9], [0, 9]], [[0, 1, 2], [2, 3, 4, 5], [5, 6, 7, 8, 9]],
     (0.3421138055, 0.3334099503, 0.2803386642)),
    ([[0, 1, 2, 3, 4, 5, 6, 7], [8, 9], [0, 9]], [[0], [1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2]],
     (0.1736300474, 0.2113727854, -0.2321428571)),
    ([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1]],
     (0.1182263988, 0.1409955916, -0.0218340611)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "values"), KNOWN)
def test_values_are_those_of_cdlib(a, b, values):
    found = compare(list(map(set, a)), list(map(set, b)))
    assert (found.onmi_mgh, found.onmi_lfk, found.omega) == pytest.approx(values)
    assert found.measures == ("onmi_mgh", "onmi_lfk", "omega")
    assert math.isnan(found.nmi)


def information(*counts):
    """Return the entropy of a variable with these frequencies."""
    total = sum(counts)
    return -sum(c / total * math.log2(c / total) for c in counts if c)


def term(count, n):
    return -count / n * math.log2(count / n) if count else 0.0


def left_open(one, cover, n):
    """Return the entropy of being a member of a community, given the best of another cover."""
    alone = information(len(one), n - len(one))
    found = [alone]
    for other in cover:
        d, c, b = len(one & other), len(one - other), len(other - one)
        a = n - b - c - d
        if term(a, n) + term(d, n) > term(b, n) + term(c, n):
            found.append(information(a, b, c, d) - information(len(other), n - len(other)))
    return min(found), alone


def brute_force(a, b, n):
    sides = [[left_open(one, other, n) for one in cover] for cover, other in ((a, b), (b, a))]
    entropies = [sum(alone for _, alone in side) for side in sides]
    gained = sum(alone - left for side in sides for left, alone in side) / 2
    mgh = gained / max(entropies) if max(entropies) else 0.0
    lfk = 1 - sum(np.mean([x / h if h else 1 for x, h in side]) for side in sides) / 2
    together = [
        [sum(u in one and v in one for one in cover) for u, v in combinations(range(n), 2)]
        for cover in (a, b)
    ]
    pairs = n * (n - 1) // 2
    observed = sum(x == y for x, y in zip(*together, strict=True)) / pairs
    times = range(max(map(max, together)) + 1)
    expected = sum(together[0].count(j) * together[1].count(j) for j in times) / pairs**2
    return mgh, lfk, 1.0 if expected == 1 else (observed - expected) / (1 - expected)


COVERS = st.integers(3, 9).flatmap(
    lambda n: st.tuples(
        st.just(n),
        *2 * [st.lists(st.sets(st.integers(0, n - 1), min_size=1), min_size=1, max_size=6)],
    )
)


@settings(max_examples=300)
@given(COVERS)
def test_measures_are_as_defined(drawn):
    n, *both = drawn
    # Each vertex once, as a community of its own or as one more of another's.
    a, b = ([*cover, {*range(n)} - set().union(*cover)] for cover in both)
    a, b = ([each for each in cover if each] for cover in (a, b))
    rows = [
        {v: [k for k, members in enumerate(cover) if v in members] for v in range(n)}
        for cover in (a, b)
    ]
    found = compare(*rows)
    if found.identical:
        assert sorted(map(sorted, a)) == sorted(map(sorted, b))
        assert found.omega == found.onmi_mgh == found.onmi_lfk == 1
    else:
        measured = found.onmi_mgh, found.onmi_lfk, found.omega
        assert measured == pytest.approx(brute_force(a, b, n), abs=1e-9)
    other = compare(*rows[::-1])
    assert (other.onmi_mgh, other.omega) == pytest.approx((found.onmi_mgh, found.omega), abs=1e-9)


SETS = [{0, 1, 2, 3}, {3, 4, 5}]
HALVES = [0, 0, 0, 1, 1, 1]


class NodeClustering:
    """The attributes of cdlib's class of this name, whose package needs many others."""

    communities, overlap = [[0, 1, 2, 3], [3, 4, 5]], True


@pytest.mark.parametrize(
    "cover",
    [
        {v: [k for k, each in enumerate(SETS) if v in each] for v in range(6)},
        NodeClustering(),
        "igraph",
        Labels(np.array([0, 1, 2, 3, 3, 4, 5]), np.array(list("aaaabbb"))),
    ],
)
def test_every_form_says_the_same(cover):
    if cover == "igraph":
        igraph = pytest.importorskip("igraph")
        cover = igraph.VertexCover(igraph.Graph.Full(6), [sorted(each) for each in SETS])
    assert compare(cover, SETS).identical
    one, other = compare(cover, HALVES), compare(SETS, HALVES)
    assert one == other
    assert 0 < one.omega < 1
    assert not one.identical


def test_memberships_of_a_result_compare_with_its_labels():
    found = lu.louvain(lu.read_graph("example:les-miserables"), device="cpu")
    named = {
        name: list(row.indices) for name, row in zip(found.names, found.memberships(), strict=True)
    }
    assert any(len(row) > 1 for row in named.values())
    agreement = found.compare(named)
    assert agreement.vertices == 77
    assert compare(found.memberships(), found.labels).omega == pytest.approx(agreement.omega)
    assert 0.4 < agreement.omega < 1
    same = found.compare(found.memberships())
    assert (same.onmi_mgh, same.omega) == pytest.approx((agreement.onmi_mgh, agreement.omega))


def test_vertices_are_matched_by_name():
    agreement = compare({"a": [0, 1], "b": [0], "c": [1]}, {"c": 5, "a": 4, "b": 4, "z": 9})
    assert agreement.vertices == 3
    assert agreement.unmatched == (0, 1)
    assert agreement.communities == (2, 2)


def test_covers_of_other_lengths_are_refused():
    matrix = lu.louvain([(0, 1), (1, 2)], device="cpu").memberships()
    with pytest.raises(lu.GraphError, match="3 vertices against 2"):
        compare(matrix, matrix[:2])


def test_omega_is_not_computed_where_it_takes_too_long(monkeypatch):
    monkeypatch.setattr(covers, "OMEGA_TERMS", 3)
    found = compare(SETS, HALVES)
    assert math.isnan(found.omega)
    assert found.onmi_mgh > 0
