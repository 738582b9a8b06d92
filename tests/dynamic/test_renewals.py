"""Renewals and audits: what they find, when they are due, and what they leave connected."""

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.core import rules
from louvain_um.cpu.engine import CpuEngine
from tests import oracle
from tests.dynamic.random_batches import grown, merging, random_batch
from tests.dynamic.tracker_oracle import Following, smallest


def test_levels_that_keep_most_arcs_are_split_into_components_only(monkeypatch):
    whole = []
    components = CpuEngine.components

    def counted(engine, level):
        components(engine, level)
        whole.append(level.number)

    monkeypatch.setattr(CpuEngine, "components", counted)
    monkeypatch.setattr(rules, "MOST_KEPT", 0.5)
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 300, (2, 1500))
    graph = lu.DynamicGraph(lu.Graph.from_edges(u, v, n_vertices=300))
    tracker = lu.Tracker(graph, renew=0.05, audit=None)
    slow = Following(
        oracle.net_of(graph.snapshot()), "leiden", 0.05, None,
        names=smallest(tracker.communities.labels.tolist()),
    )  # fmt: skip
    for _ in range(8):
        ends = rng.integers(0, 300, (2, 40))
        found = tracker.update(graph.apply(insert=(ends[0], ends[1])))
        names = slow.update(graph.snapshot())
        assert found.labels.tolist() == oracle.number_by_size(names)
        if tracker.rows[-1]["renewed"]:
            assert oracle.split(slow.net, names) == names
    assert whole
    assert min(whole) >= 1


@pytest.mark.parametrize("seed", range(4))
def test_communities_that_grow_together_are_joined_by_a_renewal(seed):
    """Each is several vertices of a level by then, none of which gains by leaving the others."""
    first, *batches = merging(seed)
    graph = lu.DynamicGraph(120)
    graph.apply(**first)
    tracker = lu.Tracker(graph, audit=None)
    slow = Following(
        oracle.net_of(graph.snapshot()), "leiden", 0.02, None,
        names=smallest(tracker.communities.labels.tolist()),
    )  # fmt: skip
    before = tracker.communities.n_communities
    for batch in batches:
        found = tracker.update(graph.apply(**batch))
        names = slow.update(graph.snapshot())
        assert found.labels.tolist() == oracle.number_by_size(names)
        if tracker.rows[-1]["renewed"]:
            assert found.modularity > 0.985 * lu.leiden(graph, device="cpu").modularity
    assert tracker.to_frame()["renewed"].sum() > 2
    assert found.n_communities < before


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_a_renewal_goes_on_although_no_vertex_is_freed(method):
    """Loops kept the ends of edges separate. Their turnover counts at no vertex."""
    graph = lu.DynamicGraph(4, weighted=True)
    graph.apply(insert=([0, 2, 0, 1, 2, 3], [1, 3, 0, 1, 2, 3], [1, 1, 5, 5, 5, 5]))
    tracker = lu.Tracker(graph, audit=None, method=method)
    assert tracker.communities.n_communities == 4
    names = smallest(tracker.communities.labels.tolist())
    slow = Following(oracle.net_of(graph.snapshot()), method, 0.02, None, names=names)
    found = tracker.update(graph.apply(delete=([0, 1, 2, 3], [0, 1, 2, 3])))
    assert found.labels.tolist() == [0, 0, 1, 1]
    assert slow.update(graph.snapshot()) == [0, 0, 2, 2]


def test_no_community_is_disconnected_after_a_renewal_that_is_not_taken():
    graph, rng = grown(40, 150, True, 32), np.random.default_rng(32)
    tracker = lu.Tracker(graph, renew=0.2, audit=None)
    for _ in range(4):
        tracker.update(graph.apply(**random_batch(rng, 40, 40, True)))
    assert tracker.rows[-1]["renewed"]
    names = tracker.state.partition.names.tolist()
    assert oracle.split(oracle.net_of(graph.snapshot()), names) == names


@pytest.mark.parametrize("seed", [79, 58])
def test_always_splits_what_a_run_of_louvain_leaves_disconnected(seed):
    """With seed 79 the first run does, with seed 58 an audit."""
    graph, rng = grown(200, 260, False, seed), np.random.default_rng(seed)
    tracker = lu.Tracker(graph, renew=0.05, audit=0.001, method="louvain", connected="always")
    for _ in range(3):
        names = tracker.state.partition.names.tolist()
        assert oracle.split(oracle.net_of(graph.snapshot()), names) == names
        assert tracker.modularity == pytest.approx(
            lu.modularity(graph.snapshot(), tracker.communities.labels), abs=1e-12
        )
        tracker.update(graph.apply(**random_batch(rng, 200, 20, False)))


def test_modularity_is_never_below_the_frontiers():
    graph = grown(200, 900, False, 9)
    rng = np.random.default_rng(10)
    for _ in range(20):
        alone = lu.Tracker(graph, renew=1.0, audit=None)
        renewing = lu.Tracker(graph, renew=0.0, audit=None)
        change = graph.apply(**random_batch(rng, 200, 30, False))
        assert renewing.update(change).modularity >= alone.update(change).modularity


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_no_audit_leaves_communities_behind_a_run_from_nothing(method):
    rng = np.random.default_rng(6)
    group = rng.integers(0, 12, 240)
    graph = lu.DynamicGraph(lu.Graph.from_edges(*rng.integers(0, 240, (2, 900)), n_vertices=240))
    tracker = lu.Tracker(graph, 5, method=method)
    run = lu.louvain if method == "louvain" else lu.leiden
    led = []
    for _ in range(60):  # groups emerge
        u, v = rng.integers(0, 240, (2, 200))
        near = group[u] == group[v]
        old = graph.snapshot()
        ends = np.repeat(np.arange(240), np.diff(old.offsets)), old.targets
        separate = group[ends[0]] != group[ends[1]]
        gone = rng.choice(np.flatnonzero(separate), 10)
        change = graph.apply(insert=(u[near], v[near]), delete=tuple(e[gone] for e in ends))
        found = tracker.update(change)
        lead = tracker.to_frame()["audit_lead"].iloc[-1]
        if not np.isnan(lead):
            led.append(lead > 0.003)
            fresh = run(graph.snapshot(), seed=5, device="cpu")
            assert found.modularity >= (1 - 0.003) * fresh.modularity
    assert any(led)
    assert not all(led)


def test_an_audit_is_due_once_renewals_have_regained_much():
    rng = np.random.default_rng(8)
    group = rng.integers(0, 12, 240)
    found = []
    for emerging in (False, True):
        u, v = rng.integers(0, 240, (2, 10_000))
        kept = (group[u] == group[v]) ^ emerging  # random edges between groups, or edges within
        ends = np.stack([u, v])[:, kept][:, :700]
        graph = lu.DynamicGraph(lu.Graph.from_edges(*ends, n_vertices=240))
        tracker, changed = lu.Tracker(graph), 0.0
        for _ in range(15):
            u, v = rng.integers(0, 240, (2, 200))
            near = group[u] == group[v]
            change = graph.apply(insert=(u[near], v[near]))
            tracker.update(change)
            changed += change.changed_weight / graph.total_weight
        assert 0 < changed < 1, "little enough has changed"
        found.append(tracker.to_frame()["audit_lead"].notna())
    staying, emerging = found
    assert not staying.any()
    assert emerging.idxmax() < 5


def test_an_audit_is_due_once_as_much_weight_has_changed_as_there_is():
    clique = np.array([(u + k, v + k) for k in (0, 5) for u in range(5) for v in range(u)]).T
    ends, heavier = (*np.c_[clique, [0, 5]],), np.full(20, 4)
    graph = lu.DynamicGraph(lu.Graph.from_edges(*ends, np.ones(21)))
    tracker = lu.Tracker(graph)
    for _ in range(3):  # heavier within communities: nothing turns against them
        tracker.update(graph.apply(insert=(*clique, heavier)))
    assert tracker.to_frame()["renewed"].tolist() == [False] * 3
    assert tracker.to_frame()["audit_lead"].notna().tolist() == [False, True, False]
