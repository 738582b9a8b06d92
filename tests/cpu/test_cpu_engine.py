"""The CPU engine: ends of levels, quality, isolated vertices, and rows of views."""

import gzip
import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from sklearn.metrics import normalized_mutual_info_score

import louvain_um as lu
from louvain_um import Graph, api
from louvain_um.core import rules
from louvain_um.core.hierarchy import detect
from louvain_um.core.rules import MIN_SWEEPS
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.generators import lfr, stencil
from louvain_um.options import Options
from tests import oracle
from tests.graphs import graphs, scattered


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_levels_of_many_sweeps_end_as_the_oracles_do(method):
    graph = stencil((9, 9, 9)).graph
    labels, levels = oracle.detect(graph, method)
    result = getattr(api, method)(graph, device="cpu")
    assert result.labels.tolist() == labels
    assert [x.iterations for x in result.levels] == [x.iterations for x in levels]
    assert levels[0].iterations > MIN_SWEEPS


@pytest.mark.parametrize("options", [{}, {"objective": "cpm", "resolution": 0.05}, {"max_size": 9}])
@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_small_levels_have_the_same_sweeps_in_one_call_and_where_they_are_observed(method, options):
    graph, seen = lfr(500, seed=1).graph, list[int]()
    chosen = Options(method=method, seed=2, device="cpu", **options)
    observed = api.run(
        graph, chosen, lambda e: seen.append(e.moved) if e.kind == "iteration" else None
    )
    alone = api.run(graph, chosen)
    assert np.array_equal(alone.labels, observed.labels)
    reported = [(x.modularity, x.iterations, x.arcs_visited) for x in alone.levels]
    assert reported == [(x.modularity, x.iterations, x.arcs_visited) for x in observed.levels]
    assert len(seen) >= sum(x.iterations for x in alone.levels)


@pytest.mark.parametrize(
    ("objective", "resolution", "threshold", "given", "cycles"),
    [
        ("modularity", 1.0, 1e-7, False, 2), ("modularity", 1.0, 5e-8, False, 3),
        ("cpm", 0.05, 2e-7, False, 2), ("cpm", 0.05, 1e-7, False, 3),
        ("modularity", 1.0, 2e-7, True, 3),
    ],
)  # fmt: skip
def test_a_third_cycle_follows_only_a_second_that_gained_enough(
    objective, resolution, threshold, given, cycles
):
    near = (12 / np.pi / 1000) ** 0.5
    points = np.random.default_rng(3).random((1000, 2))
    graph = Graph.from_edges(*cKDTree(points).query_pairs(near, output_type="ndarray").T)
    options = {"objective": objective, "resolution": resolution, "threshold": threshold}
    if given:
        options["initial"] = ((points * 9).astype(int) @ (9, 1)).tolist()  # cells of a grid
    labels, levels = oracle.detect(graph, "leiden", **options)
    result = api.leiden(graph, device="cpu", **options)
    assert result.labels.tolist() == labels
    reached = {level.cycle: level.modularity for level in result.levels}
    assert list(reached) == sorted({level.cycle for level in levels}) == list(range(cycles))
    unit = graph.n_arcs / 2 if objective == "cpm" else 1.0
    gained = (reached[1] - reached[0]) / unit
    assert (gained > threshold * rules.LATER_CYCLE_FACTOR) == (cycles == 3 and not given)


# Louvain by igraph 1.0, Leiden by leidenalg 0.12.
REFERENCES = {
    "web-NotreDame.txt.gz": (0.9363, 0.9371),
    "soc-Epinions1.txt.gz": (0.4422, 0.4541),
    "email-Enron.txt.gz": (0.6169, 0.6226),
    "cond-mat-2005.npz": (0.7273, 0.7447),
    "astro-ph.graph": (0.7320, 0.7396),
    "rgg_n_2_15_s0.graph": (0.9670, 0.9677),
}


def read(path):
    """Read a graph by the shortest way, so that a reader's fault cannot hide here."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            return Graph.from_edges(file["u"], file["v"], n_vertices=int(file["n"]))
    if path.suffix == ".graph":
        lines = [line for line in path.read_text().splitlines() if not line.startswith("%")]
        rows = [np.array(line.split(), np.int64) - 1 for line in lines[1:]]
        return Graph.from_edges(
            np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.concatenate(rows)
        )
    with gzip.open(path, "rt") as file:
        edges = np.loadtxt(file, dtype=np.int64)
    ids, ends = np.unique(edges, return_inverse=True)
    ends = ends.reshape(edges.shape)
    return Graph.from_edges(ends[:, 0], ends[:, 1], n_vertices=len(ids))


@pytest.fixture(scope="module", params=list(REFERENCES))
def case(request, shared_data):
    return read(shared_data / request.param), *REFERENCES[request.param]


def test_louvain_with_the_default_seed(case):
    graph, reference, _ = case
    assert api.louvain(graph, device="cpu").modularity >= reference * 0.997


def test_leiden_with_the_default_seed(case):
    graph, _, reference = case
    result = api.leiden(graph, device="cpu")
    assert result.modularity >= reference * 0.993
    assert result.quality().disconnected == 0


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_the_mean_of_several_seeds(method, shared_data):
    graph = read(shared_data / "email-Enron.txt.gz")
    found = [getattr(api, method)(graph, device="cpu", seed=s).modularity for s in range(6)]
    reference = REFERENCES["email-Enron.txt.gz"][method == "leiden"]
    assert np.mean(found) >= reference * (0.993 if method == "leiden" else 0.997)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_karate(method, shared_data):
    edges = np.loadtxt(shared_data / "karate.mtx", comments="%", skiprows=0, usecols=(0, 1))
    u, v = edges[1:].astype(np.int64).T - 1
    assert getattr(api, method)(Graph.from_edges(u, v), device="cpu").modularity >= 0.4188


@pytest.mark.parametrize(
    ("mixing", "expected"), [(0.1, 0.991), (0.3, 0.977), (0.5, 0.951), (0.6, 0.929)]
)
def test_planted_communities_are_found(mixing, expected):
    planted = lfr(
        50_000, min_degree=20, max_degree=100, degree_exponent=2.5, min_community=50,
        max_community=500, community_exponent=1.5, mixing=mixing, seed=1,
    )  # fmt: skip
    found = api.louvain(planted.graph, device="cpu")
    assert normalized_mutual_info_score(planted.labels, found.labels) >= expected - 0.01


VERTICES = 3_000_000


def seconds(graph, method):
    since = time.process_time()
    result = getattr(lu, method)(graph, device="cpu", threads=1)
    took = time.process_time() - since
    assert result.labels.tolist()[:4] == [0, 0, 0, 1]
    assert np.array_equal(result.labels[3:], np.arange(1, VERTICES - 2))
    assert result.levels[-1].communities == result.n_communities == VERTICES - 2
    return took


def test_leiden_counts_many_communities_about_as_fast_as_louvain():
    small, large = (lu.Graph.from_edges([0, 1, 2], [1, 2, 0], n_vertices=n) for n in (10, VERTICES))
    for method in (lu.louvain, lu.leiden):
        method(small, device="cpu", threads=1)  # compiles
    assert seconds(large, "leiden") < 4 * seconds(large, "louvain") + 1


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@settings(max_examples=60)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1), threads=st.sampled_from([1, 2]))
def test_labels_do_not_depend_on_where_rows_lie(method, graph, seed, threads):
    options = Options(method=method, seed=seed, threads=threads, device="cpu")
    results = [
        detect(CpuEngine(options, ignore), source, options, ignore)
        for source in (graph, scattered(graph, seed))
    ]
    assert results[0].labels.tolist() == results[1].labels.tolist()
    assert results[0].modularity == results[1].modularity
    assert [level.arcs for level in results[0].levels] == [
        level.arcs for level in results[1].levels
    ]


TWO_JOIN_AT_ONCE = Graph.from_edges([4, 4, 3, 1, 2, 0, 1], [0, 3, 1, 2, 4, 1, 3])
"""A path of three parts, whose ends join its middle in the same sub-round."""


def is_well_connected(between, degrees, rate):
    """Return whether parts join to one, each pair by at least the weight expected at random.

    That is γ-connectedness of Traag, Waltman and van Eck (2019), except that parts may join one
    that is there at the same time; tries every way to join.
    """
    many = len(degrees)
    subsets = [[i for i in range(many) if chosen >> i & 1] for chosen in range(1 << many)]
    inside = [between[np.ix_(own, own)].sum() / 2 for own in subsets]
    masses = [degrees[own].sum() for own in subsets]

    def joined(part, other):
        weight = inside[part | other] - inside[part] - inside[other]
        return weight >= 0.999999 * rate * masses[part] * masses[other]

    joins = {1 << i for i in range(many)}
    for chosen in range(1, 1 << many):
        part = chosen & (chosen - 1)
        while part and chosen not in joins:
            rest = chosen ^ part
            single = [1 << i for i in range(many) if rest >> i & 1]
            if part in joins and (
                all(joined(part, each) for each in single) or (rest in joins and joined(part, rest))
            ):
                joins.add(chosen)
            part = (part - 1) & chosen
    return (1 << many) - 1 in joins


@pytest.mark.parametrize("objective", ["modularity", "cpm"])
@settings(max_examples=40)
@given(graph=graphs(), resolution=st.sampled_from([0.3, 1.0, 3.0]), seed=st.integers(0, 99))
@example(graph=TWO_JOIN_AT_ONCE, resolution=1.0, seed=32)
def test_communities_are_connected_and_what_they_join_well(objective, graph, resolution, seed):
    found = lu.leiden(graph, device="cpu", objective=objective, resolution=resolution, seed=seed)
    arcs = np.zeros((graph.n_vertices, graph.n_vertices))
    rows = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    arcs[rows, graph.targets] = 1 if graph.weights is None else graph.weights
    total = graph.degrees.sum(dtype=float)
    mass = graph.degrees.astype(float) if objective == "modularity" else np.ones(len(arcs))
    rate = resolution / max(total, 1) if objective == "modularity" else resolution
    inside = (arcs > 0) & (found.labels[:, None] == found.labels)
    assert connected_components(inside, directed=False)[0] == found.n_communities
    finer = np.arange(graph.n_vertices)
    for labels in found.hierarchy()[:-1]:  # the last are communities
        joined = np.zeros((graph.n_vertices, max(finer, default=-1) + 1))
        joined[np.arange(graph.n_vertices), finer] = 1
        between, masses = joined.T @ arcs @ joined, mass @ joined
        np.fill_diagonal(between, 0)
        for community in set(labels.tolist()):
            parts = np.unique(finer[labels == community])
            if 1 < len(parts) < 9:
                assert is_well_connected(between[np.ix_(parts, parts)], masses[parts], rate)
        finer = labels
