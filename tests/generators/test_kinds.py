"""Every kind: its promises on sizes, shapes, seeds, threads and bad values."""

import hashlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.generators import GENERATORS, base, hashing

SMALL: dict[str, dict[str, Any]] = {
    "rmat": {"scale": 9, "edge_factor": 8},
    "lfr": {"n": 900, "min_degree": 5, "max_degree": 60, "max_community": 120},
    "planted": {"n": 403, "blocks": 7, "degree_in": 12, "degree_out": 3},
    "stencil": {"dims": (7, 5, 4)},
    "grid": {"dims": (9, 6)},
    "geometric": {"n": 700, "degree": 9},
    "ring": {"cliques": 6, "size": 5},
}
# Large enough that every kind uses more than one thread.
MEDIUM: dict[str, dict[str, Any]] = {
    "rmat": {"scale": 13},
    "lfr": {"n": 20_000},
    "planted": {"n": 9_000},
    "stencil": {"dims": (30, 30, 30)},
    "grid": {"dims": (150, 150)},
    "geometric": {"n": 20_000},
    "ring": {"cliques": 500, "size": 8},
}
# The same seed gives the same graph in later versions and on other machines.
DIGESTS = {
    "rmat": "054697f921e3",
    "lfr": "30c3856b4164",
    "planted": "790e85d1c553",
    "stencil": "0233646b9fd1",
    "grid": "3a80fb2df2a0",
    "geometric": "64982034b921",
    "ring": "435b562f1e15",
}
SEEDED = sorted(set(SMALL) - {"stencil", "grid", "ring"})


def rows_of(graph):
    return np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))


def edges_of(graph):
    rows = rows_of(graph)
    keep = rows < graph.targets
    return set(zip(rows[keep].tolist(), graph.targets[keep].tolist(), strict=True))


def same(a, b):
    equal = np.array_equal(a.graph.offsets, b.graph.offsets)
    equal = equal and np.array_equal(a.graph.targets, b.graph.targets)
    if a.graph.weights is not None:
        equal = equal and np.array_equal(a.graph.weights, b.graph.weights)
    return equal and (a.labels is None or np.array_equal(a.labels, b.labels))


def test_every_registered_kind_is_tested():
    assert set(SMALL) == set(MEDIUM) == set(GENERATORS)


@pytest.mark.parametrize("permute", [False, True])
@pytest.mark.parametrize("kind", SMALL)
def test_rows_are_ascending_symmetric_without_loops_and_edges_weigh_the_same_twice(kind, permute):
    made = GENERATORS[kind](**SMALL[kind], permute=permute, weights="uniform", seed=4)
    graph, n = made.graph, made.graph.n_vertices
    rows, targets = rows_of(graph), graph.targets.astype(np.int64)
    assert (np.diff(rows * n + targets) > 0).all()
    assert (rows != targets).all()
    assert not graph.loops.any()
    weights = graph.weights
    assert weights.dtype == np.uint32
    assert weights.min() >= 1
    assert weights.max() <= 16
    assert len(np.unique(weights)) > 8
    dense = np.zeros((n, n), np.int64)
    dense[rows, targets] = weights
    assert (dense == dense.T).all()
    if made.labels is not None:
        assert made.labels.shape == (n,)
        assert made.labels.dtype == np.uint32


@pytest.mark.parametrize("kind", MEDIUM)
def test_threads_do_not_change_a_graph(kind, monkeypatch):
    made = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("LOUVAIN_UM_THREADS", threads)
        made.append(GENERATORS[kind](**MEDIUM[kind], permute=True, weights="uniform", seed=7))
    assert same(made[0], made[1])
    assert same(made[0], made[2])


@pytest.mark.parametrize("kind", SMALL)
def test_permuting_ids_keeps_the_degrees(kind):
    plain = GENERATORS[kind](**SMALL[kind], permute=False, seed=2).graph
    moved = GENERATORS[kind](**SMALL[kind], permute=True, seed=2).graph
    assert np.array_equal(np.sort(plain.degrees), np.sort(moved.degrees))
    assert edges_of(plain) != edges_of(moved)


@pytest.mark.parametrize("kind", SMALL)
def test_a_seed_gives_the_graph_it_always_gave(kind):
    graph = GENERATORS[kind](**SMALL[kind], permute=True, weights="uniform", seed=1).graph
    content = graph.targets.astype("<u4").tobytes() + graph.weights.astype("<u4").tobytes()
    assert hashlib.sha1(content).hexdigest()[:12] == DIGESTS[kind]


@pytest.mark.parametrize("kind", SEEDED)
def test_seeds_matter(kind):
    one, two = (GENERATORS[kind](**SMALL[kind], permute=False, seed=s) for s in (0, 1))
    assert not same(one, two)


def test_rmat_edges_are_those_of_the_plain_rule():
    scale, factor, seed = 6, 3, 11
    key = int(base.stream_key(seed, 16))
    limits = [round(x * 2**32) for x in (0.57, 0.57 + 0.19, 0.57 + 0.19 + 0.19)]
    expected = set()
    for i in range(factor << scale):
        u = v = 0
        for level in range(scale):
            word = base.mix64(key + (i * 16 + level // 2 + 1) * 0x9E37_79B9_7F4A_7C15)
            r = word >> 32 * (level % 2) & 0xFFFF_FFFF
            quadrant = sum(r >= limit for limit in limits)
            u, v = 2 * u + quadrant // 2, 2 * v + quadrant % 2
        if u != v:
            expected.add((min(u, v), max(u, v)))
    made = GENERATORS["rmat"](scale, edge_factor=factor, permute=False, seed=seed)
    assert edges_of(made.graph) == expected


def test_rmat_quadrants_at_the_ends_of_their_range():
    assert GENERATORS["rmat"](5, a=1.0, b=0.0, c=0.0).graph.n_arcs == 0
    assert GENERATORS["rmat"](5, a=0.0, b=1.0, c=0.0, permute=False).graph.n_edges == 1
    assert GENERATORS["rmat"](0).graph.n_vertices == 1


def test_lfr_keeps_to_mixing_degrees_and_sizes():
    made = GENERATORS["lfr"](
        20_000,
        min_degree=10,
        max_degree=80,
        degree_exponent=2.5,
        min_community=60,
        max_community=400,
        mixing=0.4,
        seed=1,
    )
    graph, labels = made.graph, made.labels
    assert labels is not None
    sizes = np.bincount(labels)
    assert sizes.sum() == 20_000
    assert sizes.min() >= 60
    assert sizes.max() <= 401
    outside = labels[rows_of(graph)] != labels[graph.targets]
    assert outside.mean() == pytest.approx(0.4, abs=0.01)
    law = np.arange(10, 81) ** -2.5
    mean = (law * np.arange(10, 81)).sum() / law.sum()
    assert graph.n_arcs / 20_000 == pytest.approx(mean, rel=0.02)
    assert graph.degrees.max() <= 80
    assert (graph.degrees < 9).mean() < 0.01
    # Every vertex, not only the whole, has its share outside.
    share = np.bincount(rows_of(graph), weights=outside) / graph.degrees
    assert share[graph.degrees >= 40].std() < 0.05


@pytest.mark.parametrize(("mixing", "low"), [(0.1, 0.975), (0.5, 0.93)])
def test_louvain_finds_the_communities_of_lfr(mixing, low):
    igraph = pytest.importorskip("igraph")
    made = GENERATORS["lfr"](
        10_000,
        min_degree=10,
        max_degree=100,
        degree_exponent=2.5,
        min_community=50,
        max_community=500,
        mixing=mixing,
    )
    found = igraph.Graph(n=10_000, edges=list(edges_of(made.graph))).community_multilevel()
    assert normalized_mutual_info_score(made.labels, found.membership) > low


@pytest.mark.parametrize("mixing", [0.0, 1.0])
def test_lfr_without_mixing_or_nothing_but(mixing):
    made = GENERATORS["lfr"](**SMALL["lfr"], mixing=mixing)
    outside = made.labels[rows_of(made.graph)] != made.labels[made.graph.targets]
    assert (outside == bool(mixing)).all()
    assert made.graph.n_arcs > 0


@pytest.mark.parametrize("n", [20, 25, 39, 41, 100])
def test_lfr_of_few_vertices_has_exactly_as_many(n):
    for seed in range(5):
        made = GENERATORS["lfr"](n, min_degree=3, seed=seed)
        assert made.graph.n_vertices == n
        assert made.labels is not None
        assert np.bincount(made.labels).sum() == n


def test_lfr_degrees_too_large_for_any_community_spill_outside():
    made = GENERATORS["lfr"](
        2000, min_degree=60, max_degree=90, max_community=30, mixing=0.1, seed=3
    )
    assert made.graph.n_arcs / 2000 > 50


@pytest.mark.parametrize("blocks", [1, 2, 5, 13])
def test_planted_numbers_of_edges_are_exact(blocks):
    n = 200
    out = 0 if blocks == 1 else 4
    made = GENERATORS["planted"](n, blocks=blocks, degree_in=8, degree_out=out, seed=blocks)
    labels = made.labels
    inside = labels[rows_of(made.graph)] == labels[made.graph.targets]
    assert inside.sum() == 8 * n
    assert (~inside).sum() == out * n
    sizes = np.bincount(labels, minlength=blocks)
    assert sizes.max() - sizes.min() <= 1


def test_planted_to_the_brim_is_complete():
    made = GENERATORS["planted"](15, blocks=4, degree_in=2.8, degree_out=11.2)
    assert made.graph.n_edges == 15 * 14 // 2


def brute_stencil(dims, diagonals, periodic):
    points = [p[::-1] for p in np.ndindex(*dims[::-1])]
    edges = set()
    for i, p in enumerate(points):
        for j in range(i):
            gaps = [abs(a - b) for a, b in zip(p, points[j], strict=True)]
            if periodic:
                gaps = [min(g, d - g) for g, d in zip(gaps, dims, strict=True)]
            if max(gaps) == 1 and (diagonals or sum(gaps) == 1):
                edges.add((j, i))
    return edges


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(
    ("dims", "points", "diagonals"),
    [
        ((6,), 2, False),
        ((5, 4), 4, False),
        ((5, 4), 8, True),
        ((3, 4, 5), 6, False),
        ((3, 4, 5), 26, True),
        ((3, 4, 5), 27, True),
        ((4, 3), 5, False),
        ((4, 3), None, True),
    ],
)
def test_stencil_equals_brute_force(dims, points, diagonals, periodic):
    made = GENERATORS["stencil"](dims, points=points, periodic=periodic)
    assert edges_of(made.graph) == brute_stencil(dims, diagonals, periodic)


def test_thin_grids():
    assert edges_of(GENERATORS["stencil"]((1, 1, 4)).graph) == {(0, 1), (1, 2), (2, 3)}
    assert GENERATORS["stencil"]((1, 1, 1)).graph.n_arcs == 0
    assert GENERATORS["grid"]((2, 2)).graph.n_edges == 4


@pytest.mark.parametrize("radius", [0.0, 0.01, 0.3, 1.2, 1.5])
def test_geometric_equals_brute_force(radius):
    from louvain_um.generators import hashing
    from louvain_um.generators.rows import place_points
    from louvain_um.generators.stencil import POINT_STREAM

    n = 150
    side = max(1, min(int(1 / radius) if radius else n, int(np.sqrt(n))))
    draws = hashing.draws(base.stream_key(6, POINT_STREAM), 0, n)
    _, x, y = place_points(base.stream_key(6, POINT_STREAM), n, side)
    drawn = sorted(zip((draws >> 32) & (2**31 - 1), draws & (2**31 - 1), strict=True))
    assert sorted(zip(x.tolist(), y.tolist(), strict=True)) == drawn
    made = GENERATORS["geometric"](n, radius=radius, seed=6)
    gaps = np.hypot(*(np.subtract.outer(c.astype(float), c.astype(float)) for c in (x, y)))
    near = {(i, j) for i in range(n) for j in range(i + 1, n) if gaps[i, j] <= radius * 2**31}
    assert edges_of(made.graph) == near


@pytest.mark.parametrize("degree", [3, 15, 200])
def test_geometric_meets_the_mean_degree(degree):
    made = GENERATORS["geometric"](4000, degree=degree, seed=2)
    assert made.graph.n_arcs / 4000 == pytest.approx(degree, rel=0.05)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_geometric_of_hardly_any_vertices(n):
    assert GENERATORS["geometric"](n).graph.n_vertices == n


def test_ring_of_cliques_is_what_it_says():
    made = GENERATORS["ring"](4, size=3, permute=True, seed=5)
    labels = made.labels
    pairs = [(labels[a], labels[b]) for a, b in edges_of(made.graph)]
    assert sum(a == b for a, b in pairs) == 12
    assert len({(min(p), max(p)) for p in pairs if p[0] != p[1]}) == 4
    assert GENERATORS["ring"](1, size=4).graph.n_edges == 6
    assert GENERATORS["ring"](2, size=1).graph.n_edges == 1


@pytest.mark.parametrize(
    ("kind", "change", "says"),
    [
        ("rmat", {"scale": -1}, "scale must be a whole number from 0 to 31"),
        ("rmat", {"scale": True}, "scale must be a whole number"),
        ("rmat", {"edge_factor": -1}, "edge_factor"),
        ("rmat", {"a": 1.5}, "a must be a number from 0 to 1"),
        ("rmat", {"a": 0.6, "b": 0.3, "c": 0.3}, "a \\+ b \\+ c"),
        ("rmat", {"seed": -1}, "seed"),
        ("rmat", {"weights": "heavy"}, "weights must be"),
        ("lfr", {"n": 1}, "n must be a whole number from 2"),
        ("lfr", {"min_degree": 900}, "min_degree must be at most 899 for 900 vertices, not 900"),
        ("lfr", {"min_degree": 50, "max_degree": 20}, "max_degree"),
        ("lfr", {"min_community": 1000}, "min_community must be at most 900 for 900 vertices"),
        ("lfr", {"mixing": 1.1}, "mixing must be a number from 0 to 1"),
        ("lfr", {"degree_exponent": -1}, "degree_exponent"),
        ("planted", {"blocks": 0}, "blocks"),
        ("planted", {"degree_in": 400}, "degree_in must be at most"),
        ("planted", {"blocks": 1}, "degree_out must be at most 0"),
        ("planted", {"degree_out": "many"}, "degree_out"),
        ("stencil", {"dims": (1, 2, 3, 4)}, "dims"),
        ("stencil", {"dims": (3, 0)}, "dims"),
        ("stencil", {"dims": (3, 2), "periodic": True}, "dims"),
        ("stencil", {"dims": (2**20, 2**20)}, "dims must multiply"),
        ("stencil", {"points": 5}, "points must be 6 or 26 in 3 dimensions, not 5"),
        ("geometric", {"n": -1}, "n must be"),
        ("geometric", {"radius": 0.1}, "not both"),
        ("geometric", {"degree": 699}, "degree must be at most"),
        ("geometric", {"degree": None, "radius": 2.0}, "radius"),
        ("ring", {"cliques": 0}, "cliques"),
    ],
)
def test_bad_values_are_refused_in_one_line(kind, change, says):
    with pytest.raises(OptionError, match=says) as caught:
        GENERATORS[kind](**{**SMALL[kind], **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("rmat", {"scale": 31, "edge_factor": 1000}),
        ("geometric", {"n": 2**31, "degree": 1e6}),
        ("stencil", {"dims": (1600, 1600, 1600), "points": 26}),
    ],
)
def test_what_cannot_fit_is_refused_before_it_is_tried(kind, options):
    with pytest.raises(MemoryBudgetError, match="fewer vertices"):
        GENERATORS[kind](**options)


def test_importing_the_generators_does_not_load_the_compiler():
    code = "import sys, louvain_um.generators; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compiled_finaliser_equals_the_plain_one_and_splitmix64():
    for x in (0, 1, 12345, 2**63, 2**64 - 1):
        assert int(hashing.mix64(np.uint64(x))) == base.mix64(x)
    # First output of splitmix64 seeded with 0, as published.
    assert int(hashing.draw(np.uint64(0), 0)) == 0xE220_A839_7B1D_CDAF


@settings(max_examples=60)
@given(st.integers(1, 3000), st.integers(0, 2**32 - 1), st.booleans())
def test_a_permutation_hits_everything_once_and_can_be_undone(n, seed, wanted):
    p = hashing.permutation(base.stream_key(seed, 5), n, wanted)
    images = hashing.permute_all(p, n)
    assert np.array_equal(np.sort(images), np.arange(n))
    assert wanted or np.array_equal(images, np.arange(n))
    assert all(hashing.unpermute(p, np.uint64(y)) == x for x, y in enumerate(images[:50]))


@pytest.mark.parametrize("n", [2**31 + 11, 2**40 - 3, 2**62])
def test_large_permutations_can_be_undone(n):
    p = hashing.permutation(base.stream_key(1, 2), n)
    for x in (0, 1, 2, n // 2, n - 1):
        y = hashing.permute(p, np.uint64(x))
        assert y < n
        assert hashing.unpermute(p, y) == x


@pytest.mark.parametrize("n", [7, 20, 64])
def test_permutations_of_many_keys_spread_evenly_over_pairs(n):
    """Neighbouring arguments, as stubs are paired, meet every other image equally often."""
    keys = 6000
    together = np.zeros((n, n))
    for seed in range(keys):
        images = hashing.permute_all(hashing.permutation(base.stream_key(seed, 9), n), n)
        together[images[0], images[1]] += 1
    off = ~np.eye(n, dtype=bool)
    expected = keys / (n * (n - 1))
    chi = ((together[off] - expected) ** 2 / expected).sum()
    freedom = n * (n - 1) - 1
    assert abs(chi - freedom) < 6 * np.sqrt(2 * freedom)


def test_thresholds_of_a_power_law_give_its_frequencies():
    table = base.power_law(2, 10, 2.0)
    draws = hashing.draws(base.stream_key(0, 0), 0, 200_000)
    values = 2 + np.minimum(np.searchsorted(table, draws, side="right"), 8)
    weights = np.arange(2, 11) ** -2.0
    seen = np.bincount(values, minlength=11)[2:] / len(draws)
    assert np.abs(seen - weights / weights.sum()).max() < 0.005


def test_streams_of_one_seed_and_seeds_of_one_stream_differ():
    keys = {int(base.stream_key(s, k)) for s in range(50) for k in range(50)}
    assert len(keys) == 2500
