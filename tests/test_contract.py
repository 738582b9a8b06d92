"""What every engine promises: the same labels, bit for bit, of the same graphs and options."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louvain_um import Graph, GraphError, OptionError, api, modularity
from louvain_um.core import rules
from louvain_um.options import Options
from tests import oracle
from tests.backends import BACKENDS, available, on_cpu
from tests.distributed.runs import assert_equal
from tests.graphs import KINDS, LARGER, cases, constraints, edge_lists, graphs, of_kind
from tests.tiers import EXAMPLES

METHODS: Any = ("louvain", "leiden")


@pytest.fixture(
    params=[
        pytest.param(name, marks=[getattr(pytest.mark, mark) for mark in each.marks])
        for name, each in BACKENDS.items()
    ],
    scope="module",
)
def backend(request):
    return available(request.param)


@pytest.fixture
def kinds(backend):
    few = {name: KINDS[name] for name in ("weighted", "stencil", "loops")}
    return few if backend.few else KINDS


def differing(backend, runs):
    """Return the runs of which labels, levels or modularity are not those of the CPU.

    The CPU's are compared with the oracle's.
    """
    found = []
    for name, graph, options in runs:
        result = backend.detect(graph, options)
        try:
            assert_expected(backend, graph, options, result)
        except AssertionError:
            found.append(f"{name}, {options}")
    return found


def assert_expected(backend, graph, options, found):
    """Compare with the oracle if an engine is the CPU's, else with that."""
    if backend.detect is not on_cpu:
        assert_equal(found, on_cpu(graph, options))
        return
    given = {name: getattr(options, name) for name in ORACLES}
    labels, levels = oracle.detect(graph, options.method, **given)
    assert found.labels.tolist() == labels
    assert shown(found.levels) == shown(levels)


ORACLES = (
    "seed",
    "resolution",
    "max_level",
    "threshold",
    "effort",
    "n_iterations",
    "objective",
    "initial",
    "fixed",
    "max_size",
)
"""Options that the oracle takes."""


def shown(levels):
    """Return what the oracle knows of levels, too."""
    return [
        (x.cycle, x.vertices, x.communities, x.modularity, x.iterations, x.arcs_visited)
        for x in levels
    ]


@pytest.mark.parametrize("method", METHODS)
def test_graphs_of_every_kind(backend, kinds, method):
    options = Options(method=method, seed=3)
    assert not differing(backend, [(kind, graph(), options) for kind, graph in kinds.items()])


@pytest.mark.parametrize("method", METHODS)
def test_larger_graphs_of_every_kind(backend, method):
    if not backend.seeds:
        pytest.skip("this engine takes minutes, or there is nothing to compare with")
    runs = [
        (kind, graph(), Options(method=method, seed=seed))
        for kind, graph in LARGER.items()
        for seed in backend.seeds
    ]
    assert not differing(backend, runs)


@pytest.mark.parametrize("method", METHODS)
def test_options(backend, kinds, method):
    options = [
        {"resolution": 0.3},
        {"resolution": 4.0, "seed": 2**32 - 1},
        {"max_level": 1},
        {"threshold": 1e-2, "seed": 7},
        {"effort": "fast"},
        {"n_iterations": 1},
        {"n_iterations": -1},
    ]
    runs = [
        (kind, KINDS[kind](), Options(method=method, **each))
        for kind in ("rmat", "weighted")
        if kind in kinds
        for each in options
    ]
    if "deep" in backend.marks:  # a run of these takes seconds, and random ones take all options
        runs = [run for run in runs if run[0] == "weighted"][::3]
    assert not differing(backend, runs)


BLOCKS_OF_20 = [v // 20 for v in range(900)]
EXTENDED: dict[str, tuple[Callable[[], Graph], dict[str, Any]]] = {
    "cpm": (KINDS["lfr"], {"objective": "cpm", "resolution": 0.05}),
    "cpm of weights": (KINDS["weighted"], {"objective": "cpm", "resolution": 0.5}),
    "directed": (lambda: of_kind("directed"), {"objective": "directed", "max_size": 30}),
    "bipartite": (lambda: of_kind("bipartite"), {"objective": "bipartite"}),
    "signed": (lambda: of_kind("signed"), {"objective": "signed"}),
    "signed cpm": (lambda: of_kind("signed"), {"objective": "cpm", "resolution": 0.02}),
    "size": (KINDS["weighted"], {"max_size": 7}),
    "start": (KINDS["lfr"], {"initial": BLOCKS_OF_20}),
    "fixed": (KINDS["lfr"], {"initial": BLOCKS_OF_20, "fixed": list(range(0, 900, 7))}),
    "all": (
        KINDS["lfr"],
        {"objective": "cpm", "resolution": 0.1, "initial": BLOCKS_OF_20, "max_size": 22,
         "fixed": list(range(0, 900, 50))},
    ),
}  # fmt: skip
"""Other objectives, and constraints."""


@pytest.mark.parametrize("method", METHODS)
def test_objectives_and_constraints(backend, method):
    if not backend.extended:
        pytest.skip("this engine takes modularity without constraints")
    runs = [
        (name, graph(), Options(method=method, **options))
        for name, (graph, options) in EXTENDED.items()
    ]
    assert not differing(backend, runs)


SEVERAL = [
    "cpu",
    "threads",
    "ranks",
    *(pytest.param(x, marks=pytest.mark.gpu) for x in ("gpu", "gpu ranks")),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SEVERAL)
def test_the_best_of_some_seeds_is_kept(name, method):
    graph = KINDS["rmat"]()
    runs = [on_cpu(graph, Options(method=method, seed=seed)) for seed in (3, 4, 5)]
    best = max(runs, key=lambda run: run.value)
    found = available(name).detect(graph, Options(method=method, seed=3, best_of=3))
    assert_equal(found, best)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", [each for each in SEVERAL if "ranks" not in str(each)])
def test_best_effort_is_the_same_everywhere_and_no_worse(name, method):
    for kind in ("rmat", "weighted"):
        graph, options = KINDS[kind](), Options(method=method, effort="best", seed=3)
        found = available(name).detect(graph, options)
        assert_equal(found, on_cpu(graph, options))
        assert found.value >= on_cpu(graph, Options(method=method, n_iterations=3, seed=3)).value
        assert found.value == modularity(graph, found)


@pytest.mark.parametrize("name", ["ranks", pytest.param("gpu ranks", marks=pytest.mark.gpu)])
def test_ranks_refuse_other_objectives_and_constraints(name):
    for graph, options in [*EXTENDED.values(), (KINDS["rmat"], {"effort": "best"})]:
        with pytest.raises((OptionError, GraphError)):
            available(name).detect(graph(), Options(**options))


@pytest.mark.parametrize("method", METHODS)
def test_random_graphs_and_options(backend, method):
    """The CPU's labels and levels are the oracle's, another engine's the CPU's."""

    @settings(max_examples=EXAMPLES * backend.examples)
    @given(
        data=st.data(),
        seed=st.integers(0, 2**32 - 1),
        resolution=st.sampled_from([0.05, 0.3, 1.0, 1.7]),
        max_level=st.sampled_from([None, None, 1, 2]),
        threshold=st.sampled_from([1e-7, 1e-7, 0.0, 1e-3, 1.0]),
        effort=st.sampled_from(["default", "default", "fast"]),
        n_iterations=st.sampled_from([None, None, 1, 4, -1]),
        most_kept=st.sampled_from([rules.MOST_KEPT, 0.3]),
    )
    def check(data, most_kept, **options):
        if backend.extended and data.draw(st.booleans()):
            graph, options["objective"] = data.draw(cases())
            options |= data.draw(constraints(graph.n_vertices))
        else:
            graph = data.draw(graphs())
        with mock.patch.object(rules, "MOST_KEPT", most_kept):
            found = backend.detect(graph, Options(method=method, **options))
            assert_expected(backend, graph, Options(method=method, **options), found)
        if backend.detect is on_cpu:
            check_result(graph, found, method, **options)

    check()


def check_result(
    graph,
    result,
    method,
    *,
    resolution,
    objective="modularity",
    initial=None,
    fixed=(),
    max_size=None,
    **_,
):
    """Check values, levels, sizes, fixed vertices, and that Leiden's communities are connected."""
    given = {"objective": objective}
    assert result.value == modularity(graph, result, resolution, **given)
    for k, level in enumerate(result.levels):
        labels = result.at_level(k)
        assert len(np.unique(labels)) == level.communities
        if objective == "modularity":
            assert level.modularity == modularity(graph, labels, resolution)
    if result.levels:
        assert np.array_equal(result.at_level(-1), result.labels)
    if objective == "modularity" and initial is max_size is None and not fixed:
        values = [level.modularity for level in result.levels]
        assert values == sorted(values)
    initial = range(graph.n_vertices) if initial is None else initial
    if max_size is not None and graph.n_vertices:
        assert result.sizes.max() <= max_size
    for u in fixed:
        for v in fixed:
            assert (result.labels[u] == result.labels[v]) == (initial[u] == initial[v])
    if method == "leiden" and not len(fixed):
        assert result.quality().disconnected == 0


def on(graph, method, **options):
    found = getattr(api, method)(graph, device="cpu", **options)
    return found


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=50)
@given(edges=edge_lists(), shuffle=st.randoms(use_true_random=False))
def test_order_and_direction_of_edges_do_not_matter(method, edges, shuffle):
    n, u, v, w = edges
    order = list(range(len(u)))
    shuffle.shuffle(order)
    reversed_ = Graph.from_edges(v[order], u[order], None if w is None else w[order], n_vertices=n)
    straight = Graph.from_edges(u, v, w, n_vertices=n)
    assert np.array_equal(on(straight, method).labels, on(reversed_, method).labels)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=50)
@given(graph=graphs(), factor=st.sampled_from([2, 64]))
def test_a_power_of_two_in_the_weights_changes_nothing(method, graph, factor):
    weights = np.ones(graph.n_arcs, np.int64) if graph.weights is None else graph.weights
    if graph.total_weight * factor >= 2**53:
        return
    scaled = Graph(
        graph.offsets, graph.targets, weights.astype(np.int64) * factor, graph.loops * factor
    )
    one, other = on(graph, method), on(scaled, method)
    assert np.array_equal(one.labels, other.labels)
    assert one.modularity == other.modularity


@settings(max_examples=50)
@given(graph=graphs(), shuffle=st.randoms(use_true_random=False))
def test_relabelling_keeps_the_modularity_of_a_partition(graph, shuffle):
    labels = on(graph, "louvain").labels
    order = list(range(graph.n_vertices))
    shuffle.shuffle(order)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    half = u < graph.targets
    loop = np.flatnonzero(graph.loops)
    weights = np.ones(graph.n_arcs, np.int64) if graph.weights is None else graph.weights
    moved = Graph.from_edges(
        np.concatenate((place[u[half]], place[loop])),
        np.concatenate((place[graph.targets[half]], place[loop])),
        np.concatenate((weights[half].astype(np.int64), graph.loops[loop])),
        n_vertices=graph.n_vertices,
    )
    assert modularity(moved, labels[order]) == modularity(graph, labels)
    assert on(moved, "louvain").modularity > -1


@pytest.mark.parametrize("method", METHODS)
def test_repeating_changes_nothing(backend, method):
    if not backend.seeds:
        pytest.skip("each of its runs is compared with the CPU's")
    graph, options = LARGER["rmat"](), Options(method=method, seed=5)
    first = backend.detect(graph, options)
    for _ in range(5):
        assert_equal(backend.detect(graph, options), first)


TRIANGLES = [0, 1, 0, 3, 4, 3], [1, 2, 2, 4, 5, 5]
CLIQUES = np.array(np.triu_indices(6, 1))
SMALL: dict[str, tuple[Callable[[], Graph], list[int]]] = {
    "no vertices": (lambda: Graph.from_edges([], []), []),
    "one vertex": (lambda: Graph.from_edges([], [], n_vertices=1), [0]),
    "no edges": (lambda: Graph.from_edges([], [], n_vertices=3), [0, 1, 2]),
    "only loops": (lambda: Graph.from_edges([0, 1], [0, 1]), [0, 1]),
    "one edge": (lambda: Graph.from_edges([0], [1]), [0, 0]),
    "one edge of weight 0": (lambda: Graph.from_edges([0], [1], [0]), [0, 1]),
    "one light edge": (lambda: Graph.from_edges([0], [1], [1e-12]), [0, 0]),
    "two triangles": (lambda: Graph.from_edges(*TRIANGLES), [0, 0, 0, 1, 1, 1]),
    "loops and an isolated vertex": (
        lambda: Graph.from_edges([0, 1, 0, 3, 2, 5], [1, 2, 2, 4, 3, 5], n_vertices=7),
        [0, 0, 0, 1, 1, 2, 3],
    ),
    "weights from tiny to huge": (
        lambda: Graph.from_edges(
            [*CLIQUES[0], *CLIQUES[0] + 6, 0], [*CLIQUES[1], *CLIQUES[1] + 6, 6],
            [*[1e12] * 15, *[1e11] * 15, 1e-12],
        ),
        [0] * 6 + [1] * 6,
    ),
}  # fmt: skip
"""Graphs whose communities are known."""


@pytest.mark.parametrize("method", METHODS)
def test_small_cases(backend, method):
    wrong = []
    for name, (made, labels) in SMALL.items():
        graph = made()
        result = backend.detect(graph, Options(method=method))
        value = modularity(graph, result.labels)
        if result.labels.tolist() != labels or result.modularity != value:
            wrong.append(name)
    assert not wrong


@pytest.mark.parametrize("method", METHODS)
def test_a_star_of_a_million_leaves_is_one_community(backend, method):
    if not backend.seeds:
        pytest.skip("an emulated device takes minutes")
    leaves = 1_000_000
    graph = Graph.from_edges(np.zeros(leaves, np.uint32), np.arange(1, leaves + 1))
    result = backend.detect(graph, Options(method=method))
    assert result.n_communities == 1
    assert result.modularity == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_a_higher_resolution_gives_more_communities(method):
    graph = LARGER["lfr"]()
    counts = [on(graph, method, resolution=r).n_communities for r in (0.2, 1.0, 5.0)]
    assert counts == sorted(set(counts))
