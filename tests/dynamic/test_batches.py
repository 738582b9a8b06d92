"""What a batch means, and what is refused: in one line, with nothing changed."""

import re
import signal
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import louvain_um as lu
from louvain_um import DynamicGraph, Graph, Tracker
from louvain_um.core import headroom
from louvain_um.dynamic.stores import STORES
from louvain_um.errors import (
    GraphError,
    HostMemoryError,
    LouvainUmError,
    MemoryBudgetError,
    OptionError,
)
from louvain_um.results.comparison import compare


def small(**options):
    g = DynamicGraph(6, **options)
    g.apply(insert=([0, 1, 2, 4], [1, 2, 0, 4]))
    return g


def test_deletions_precede_insertions():
    g = small(weighted=True)
    change = g.apply(insert=([0], [1], [5]), delete=([1], [0]))
    assert (change.before.tolist(), change.after.tolist()) == ([1], [5])
    assert len(small().apply(insert=([0], [1]), delete=([0], [1]))) == 0


def test_insertions_of_one_edge_count_once_or_add_up():
    g = small(weighted=True)
    g.apply(insert=([0, 1], [1, 0], [2, 3]), duplicates="once")
    assert g.weights_of([0], [1]).tolist() == [3]
    g.apply(insert=([0, 1], [1, 0], [2, 3]))
    assert g.weights_of([0], [1]).tolist() == [8]
    assert g.apply(insert=([0], [1], [7]), duplicates="once").changed.tolist() == []


def test_a_decrease_to_zero_deletes_and_an_empty_batch_counts():
    g = small(weighted=True)
    change = g.apply(decrease=([1, 0], [0, 0], [1, 4]))
    assert (change.deleted.tolist(), change.missing) == ([True], 1)
    assert (len(g.apply()), g.epoch) == (0, 3)


def test_everything_can_be_deleted():
    g = small()
    g.apply(delete=([0, 1, 2, 4], [1, 2, 0, 4]))
    assert (g.n_edges, g.total_weight, g.degrees.any()) == (0, 0, False)
    assert g.digest() == DynamicGraph(6).digest()


def test_real_weights_are_scaled_and_a_graphs_scale_is_kept():
    g = DynamicGraph(3, weighted=True, scale=1024)
    g.apply(insert=([0, 1], [1, 2], [0.5, 1.25]))
    g.apply(insert=([0], [2]))
    assert g.weights_of([0, 1, 0], [1, 2, 2]).tolist() == [512, 1280, 1024]
    assert g.snapshot().scale == 1024
    light = Graph.from_edges([0], [1], [0.01])
    assert DynamicGraph(light).snapshot().scale == light.scale > 2**52
    real = Graph.from_edges([0, 1], [1, 2], [0.5, 0.25])
    assert DynamicGraph(real).scale == real.scale
    assert DynamicGraph(real, scale=real.scale * 4).total_weight == 4 * real.total_weight


def test_weights_widen_in_the_middle():
    for store in STORES:
        g = small(weighted=True, store=store)
        g.apply(insert=([0], [5], [2**40]))
        g.check()
        assert g.snapshot().weights.dtype == np.int64
        assert g.weights_of([5, 1], [0, 0]).tolist() == [2**40, 1]


def test_a_removed_vertex_is_isolated_and_its_id_not_reused_unless_asked():
    g = small()
    change = g.remove_vertices([2, 4, 2])
    assert change.removed.tolist() == [2, 4]
    assert (g.n_edges, g.n_vertices) == (1, 6)
    assert list(g.add_vertices(1)) == [6]
    with pytest.raises(GraphError, match="removed"):
        g.apply(insert=([0], [4]))
    assert g.add_vertices(3, reuse=True).tolist() == [2, 4, 7]
    g.apply(insert=([0], [4]))


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_detection_reads_the_rows_where_they_lie(method):
    graph = lu.as_graph("example:les-miserables")
    g = DynamicGraph(graph, names=False)
    u, v = np.triu_indices(30, 20)
    g.apply(insert=(u, v), delete=(u[:40], v[:40] - 1))
    detect = getattr(lu, method)
    expected, found = (detect(x, device="cpu", seed=3) for x in (g.snapshot(), g))
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.modularity == expected.modularity


REFUSED = {
    "beyond": ({"insert": ([0], [6])}, "vertex 6, but there are 6"),
    "negative id": ({"delete": ([0], [-1])}, "negative vertex -1"),
    "id of floats": ({"insert": ([0.0], [1.0])}, "integers"),
    "lengths": ({"insert": ([0, 1], [1])}, "must match"),
    "weight lengths": ({"insert": ([0, 1], [1, 2], [1])}, "must match"),
    "two-dimensional": ({"insert": ([[0, 1]], [[1, 2]])}, "one-dimensional"),
    "no edges": ({"insert": np.zeros((2, 2, 2))}, "insert=(u, v)"),
    "negative": ({"insert": ([0], [1], [-2])}, "index 0 (-2) is negative"),
    "NaN": ({"insert": ([0, 1], [1, 2], [1.0, np.nan])}, "index 1 (nan)"),
    "infinite": ({"insert": ([0], [1], [np.inf])}, "infinite"),
    "words": ({"insert": ([0], [1], ["a"])}, "must be numbers"),
    "too small": ({"insert": ([0], [1], [0.25])}, "larger scale"),
    "too large": ({"insert": ([0], [1], [2.0**60])}, "smaller scale"),
    "too large a sum": ({"insert": ([0, 0], [1, 1], [2**51, 2**51])}, "2^52"),
    "too large a total": ({"insert": ([0, 0, 1], [1, 2, 2], [2**51] * 3)}, "2^53"),
    "below zero": ({"decrease": ([0], [1], [2])}, "(0, 1) has weight 1"),
    "missing": ({"delete": ([3, 0], [3, 1]), "missing": "raise"}, "(3, 3); pass missing='count'"),
    "missing what": ({"missing": "ignore"}, "'count' or 'raise'"),
    "duplicates": ({"duplicates": "max"}, "'once' or 'sum'"),
    "weights to delete": ({"delete": ([0], [1], [1])}, "decrease="),
    "decrease without": ({"decrease": ([0], [1])}, "decrease=(u, v, w)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_batch_changes_nothing(case):
    batch, text = REFUSED[case]
    g = small(weighted=True)
    before = g.digest(), g.epoch, g.memory
    batch = {"insert": ([3], [5], [1]), **batch}
    with pytest.raises(GraphError, match=re.escape(text)) as error:
        g.apply(**batch)
    assert "\n" not in str(error.value)
    assert (g.digest(), g.epoch, g.memory) == before
    g.check()


@pytest.mark.parametrize(
    "batch", [{"insert": ([0], [1], [1])}, {"decrease": ([0], [1], [1])}, {"duplicates": "sum"}]
)
def test_an_unweighted_graph_says_how_to_get_weights(batch):
    with pytest.raises(GraphError, match="weighted=True"):
        small().apply(**batch)


@pytest.mark.parametrize("store", STORES)
def test_a_budget_refuses_before_anything_is_written(store):
    rng = np.random.default_rng(1)
    budget = DynamicGraph(500, store=store).memory.total_bytes + 60_000
    g = DynamicGraph(500, store=store, device_budget=budget)
    with pytest.raises(MemoryBudgetError) as raised:  # noqa: PT012
        for _ in range(80):
            before = g.digest(), g.epoch
            g.apply(insert=(rng.integers(0, 500, 100), rng.integers(0, 500, 100)))
            assert g.memory.total_bytes <= budget
    assert raised.value.needed > raised.value.budget
    assert "\n" not in str(raised.value)
    assert (g.digest(), g.epoch) == before
    assert g.epoch > 0
    g.check()
    with pytest.raises(MemoryBudgetError):
        g.add_vertices(10**6)
    assert g.n_vertices == 500
    with pytest.raises(MemoryBudgetError):
        DynamicGraph(10**5, store=store, device_budget=1000)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: DynamicGraph(3, store="heap"), OptionError),
        (lambda: DynamicGraph(3, weighted="no"), OptionError),
        (lambda: DynamicGraph(3, weighted=np.arange(2)), OptionError),
        (lambda: DynamicGraph(3, names="no"), OptionError),
        (lambda: DynamicGraph(3, weighted=True, scale="2"), OptionError),
        (lambda: DynamicGraph(3, weighted=True, scale=True), OptionError),
        (lambda: DynamicGraph(3, weighted=True, scale=2**70), OptionError),
        (lambda: DynamicGraph(3, weighted=True, scale=float("nan")), OptionError),
        (lambda: DynamicGraph(3).add_vertices(1, reuse="no"), OptionError),
        (lambda: DynamicGraph(3, store=["rows"]), OptionError),
        (lambda: Tracker(Graph.from_edges([0], [1])), OptionError),
        (lambda: DynamicGraph(-1), GraphError),
        (lambda: DynamicGraph(3, weighted=True, scale=3), OptionError),
        (lambda: DynamicGraph(3, scale=4), GraphError),
        (lambda: DynamicGraph(Graph.from_edges([0], [1], [1e-9])), GraphError),
        (lambda: DynamicGraph(Graph.from_edges([0], [1], [3]), weighted=False), GraphError),
        (lambda: DynamicGraph(3, device_budget="70%"), OptionError),
        (lambda: DynamicGraph(3, device="gpu"), OptionError),
        (lambda: DynamicGraph(3).add_vertices(-1), GraphError),
        (lambda: DynamicGraph(3).remove_vertices([3]), GraphError),
        (lambda: DynamicGraph(3).has_edges([0, 1], [1]), GraphError),
    ],
)
def test_other_bad_input_is_one_line_too(make, error):
    with pytest.raises(error) as raised:
        make()
    assert isinstance(raised.value, LouvainUmError)
    assert "\n" not in str(raised.value)


def test_other_functions_take_a_changing_graph():
    g = DynamicGraph(lu.as_graph("example:les-miserables"))
    g.apply(delete=(["Valjean"], ["Javert"]))
    graph = g.snapshot()
    labels = lu.louvain(g, device="cpu").labels
    assert lu.modularity(g, labels) == lu.modularity(graph, labels)
    options = {"device": "cpu", "objective": "cpm", "resolution": 0.1}
    one, two = lu.louvain(g, **options), lu.louvain(graph, **options)
    assert one.labels.tolist() == two.labels.tolist()
    assert one.modularity == two.modularity
    assert lu.connected_components(g).tolist() == lu.connected_components(graph).tolist()
    again = g.view().as_graph()
    assert np.array_equal(again.targets, graph.targets)
    assert np.array_equal(again.weights, graph.weights)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM, signal.SIGTERM])
@pytest.mark.parametrize("named", [False, True])
def test_an_interrupted_batch_is_applied_whole(monkeypatch, request, named, number):
    def end(*_):
        raise KeyboardInterrupt

    request.addfinalizer(partial(signal.signal, number, signal.signal(number, end)))
    ids = ["ann", "bob", "cid"] if named else [0, 1, 2]
    graphs = [DynamicGraph(0 if named else 3) for _ in range(2)]
    g, expected = graphs
    commit = g._store.commit

    def interrupted(*arguments):
        signal.raise_signal(number)
        commit(*arguments)
        signal.raise_signal(number)

    expected.apply(insert=(ids, ids[1:] + ids[:1]))
    monkeypatch.setattr(g._store, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        g.apply(insert=(ids, ids[1:] + ids[:1]))
    g.check()
    assert (g.digest(), g.epoch, g.n_edges) == (expected.digest(), 1, 3)
    expected.remove_vertices(ids[:1])
    with pytest.raises(KeyboardInterrupt):
        g.remove_vertices(ids[:1])
    assert signal.getsignal(number) is end
    assert (g.digest(), g.alive.tolist()) == (expected.digest(), [False, True, True])
    assert not named or g.names.tolist() == [None, "bob", "cid"]


@pytest.mark.parametrize("store", STORES)
def test_vertices_beyond_the_hosts_memory_are_refused(store, monkeypatch):
    monkeypatch.setattr(headroom, "host_memory", lambda: 1 << 30)
    message = "needs 34,000,000,000 bytes of host memory, 1,073,741,824 are free; check the number"
    with pytest.raises(HostMemoryError, match=message):
        DynamicGraph(10**9, store=store)
    graph = DynamicGraph(3, store=store)
    graph.apply(insert=([0], [1]))
    digest = graph.digest()
    with pytest.raises(HostMemoryError, match=message):
        graph.add_vertices(10**9)
    assert (graph.n_vertices, graph.digest()) == (3, digest)


def test_a_budget_is_reported_whole():
    with pytest.raises(MemoryBudgetError, match="the 1000 bytes it may use") as error:
        DynamicGraph(Graph.from_edges([0], [1], n_vertices=100), device_budget=1000)
    assert ("vertices", 1700) in error.value.largest


@pytest.mark.parametrize("count", [-1, 1.5, None, True, [3]])
def test_vertices_to_add_are_counted(count):
    g = DynamicGraph(3)
    with pytest.raises(GraphError, match="add_vertices takes a whole number"):
        g.add_vertices(count)
    assert g.n_vertices == 3


def test_a_policy_that_is_none_is_refused_on_the_cpu():
    with pytest.raises(OptionError, match="nope"):
        DynamicGraph(3, memory="nope")


@pytest.mark.parametrize(
    "column",
    [
        pd.Series,
        lambda values: pd.Series(values, index=[7] * len(values)),
        lambda values: pd.array(values, dtype="Int64"),
        pa.array,
        lambda values: pa.chunked_array([values]),
    ],
    ids=["series", "indexed", "nullable", "arrow", "chunked"],
)
def test_columns_of_tables_are_arrays(column):
    graph = DynamicGraph(4, weighted=True)
    graph.apply(insert=(column([0, 1, 2]), column([1, 2, 3]), column([5, 6, 7])))
    graph.apply(delete=(column([1]), column([2])), decrease=(*map(column, ([0], [1], [2])),))
    assert graph.weights_of(column([0, 2]), column([1, 3])).tolist() == [3, 7]
    assert graph.has_edges(column([0, 1]), column([1, 2])).tolist() == [True, False]
    graph.remove_vertices(column([3]))
    assert graph.n_edges == 1
    with pytest.raises(GraphError, match="is negative; use insert to add"):
        graph.apply(decrease=(column([0]), column([1]), column([-2])))


def test_masked_entries_are_refused():
    masked = np.ma.masked_array([0, 1, 2], [False, True, False])
    graph = lu.DynamicGraph(lu.Graph.from_edges([0, 1], [1, 2]))
    before = graph.digest()
    for refused in (
        lambda: graph.apply(insert=(masked, [1, 2, 0])),
        lambda: graph.apply(delete=([1, 2, 0], masked)),
        lambda: graph.remove_vertices(masked),
        lambda: lu.Graph.from_edges([0, 1], [1, 2], names=masked),
        lambda: lu.as_graph(np.ma.masked_array(np.ones((2, 2)), np.eye(2))),
        lambda: lu.Louvain().fit(np.ma.masked_array(np.ones((2, 2)), np.eye(2))),
        lambda: lu.modularity(graph, masked),
        lambda: lu.louvain(graph, initial=masked),
        lambda: compare(masked, [0, 0, 1]),
        lambda: lu.spmv(graph, masked),
    ):
        with pytest.raises(GraphError, match="masked"):
            refused()
    assert graph.digest() == before


def test_large_integers_of_lists_are_not_rounded():
    g = DynamicGraph(6, weighted=True)
    for weights in ([2**53 + 1, 0.5], [2**63, 1], np.array([2**63, 1], object), [2**70, 1]):
        with pytest.raises(GraphError, match=r"above 2\^52"):
            g.apply(insert=([0, 1], [1, 2], weights))
    g.apply(insert=([0, 1], [1, 2], np.array([3, 4], object)))
    assert g.weights_of([0, 1], [1, 2]).tolist() == [3, 4]
    with pytest.raises(GraphError, match=str(2**63 + 1)):
        g.apply(insert=([2**63 + 1, 2**53], [1, 2]))
