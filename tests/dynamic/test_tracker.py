"""Communities that follow a changing graph: against the rule in plain Python, and its promises."""

import copy
import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.core import rules
from louvain_um.core.numbering import number_by_size
from louvain_um.dynamic.tracking.following import Pending
from louvain_um.dynamic.tracking.host_steps import HostSteps, members_of
from louvain_um.dynamic.tracking.identity import NO_ID
from louvain_um.errors import GraphError, OptionError
from tests import oracle
from tests.dynamic.random_batches import batches_with_removals, grown, random_batch
from tests.dynamic.tracker_oracle import Following, smallest


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_a_tracker_follows_the_rule(method, weighted, always):
    renewals = audits = 0
    for seed in range(2):
        graph = grown(60, 240, weighted, seed)
        connected = "always" if always else "renewal"
        tracker = lu.Tracker(
            graph, seed, renew=0.05, audit=0.001, method=method, connected=connected
        )
        start = graph.snapshot()
        slow = Following(
            oracle.net_of(start), method, 0.05, 0.001, always, seed=seed,
            names=smallest(tracker.communities.labels.tolist()),
        )  # fmt: skip
        assert slow.names == slow.static(start)
        rng = np.random.default_rng(100 + seed)
        for _ in range(34):
            found = tracker.update(graph.apply(**random_batch(rng, 60, 8, weighted)))
            names = slow.update(graph.snapshot())
            assert found.labels.tolist() == oracle.number_by_size(names)
            assert found.modularity == pytest.approx(slow.quality(names), abs=1e-12)
        history = tracker.to_frame()
        renewals += int(history["renewed"].sum())
        audits += int(history["audit_lead"].notna().sum())
    assert renewals > 5
    assert audits >= 2


def test_removed_vertices_are_alone():
    graph = grown(60, 100, True, 86)
    tracker = lu.Tracker(graph, renew=1, audit=None)
    for method, arguments in batches_with_removals(graph, 86):
        found = tracker.update(getattr(graph, method)(**arguments))
        assert np.array_equal(found.ids == NO_ID, ~graph.alive)
        assert (found.sizes[found.labels[~graph.alive]] == 1).all()
        assert found.n_communities == len(set(found.ids[graph.alive].tolist()))


def test_the_change_of_a_copy_is_refused():
    graph = lu.DynamicGraph(lu.Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]))
    tracker, copied = lu.Tracker(graph), copy.deepcopy(graph)
    change = copied.apply(insert=([0], [5]))
    own = graph.apply(delete=([0, 1], [1, 2]))
    with pytest.raises(GraphError, match="another graph's"):
        tracker.update(change)
    assert tracker.update(own).modularity == pytest.approx(
        lu.modularity(graph.snapshot(), tracker.communities.labels)
    )


@pytest.mark.parametrize("mode", ["frontier", "screening", "naive"])
def test_ways_to_compare_with_end_as_louvain_does(monkeypatch, mode):
    found = []
    for factor in (rules.RENEWAL_FACTOR, 1 << 40):
        monkeypatch.setattr(rules, "RENEWAL_FACTOR", factor)
        graph, rng = grown(300, 1500, False, 8), np.random.default_rng(9)
        tracker = lu.Tracker(graph, mode=mode)
        for _ in range(5):
            tracker.update(graph.apply(**random_batch(rng, 300, 100, False)))
        found.append(tracker.communities.labels.tolist())
    assert found[0] == found[1]


def test_modularity_is_that_of_the_labels():
    graph = grown(200, 800, True, 1)
    tracker = lu.Tracker(graph, resolution=1.3)
    rng = np.random.default_rng(2)
    for _ in range(30):
        found = tracker.update(graph.apply(**random_batch(rng, 200, 20, True)))
        expected = lu.modularity(graph.snapshot(), found.labels, resolution=1.3)
        assert found.modularity == pytest.approx(expected, abs=1e-12)


def test_results_depend_on_neither_threads_nor_store_nor_the_order_within_a_batch():
    rng = np.random.default_rng(7)
    batches = [random_batch(rng, 300, 40, True) for _ in range(25)]
    found = []
    for threads, store, turn in ((1, "rows", 1), (2, "rows", -1), (2, "csr", 1)):
        graph = grown(300, 1500, True, 8)
        graph = lu.DynamicGraph(graph.snapshot(), store=store)
        tracker = lu.Tracker(graph, threads=threads)
        for batch in batches:
            changes = {
                name: tuple(column[::turn] for column in columns) for name, columns in batch.items()
            }
            r = tracker.update(graph.apply(**changes))
        found.append((r.labels.tolist(), r.ids.tolist(), r.modularity))
    assert found[0] == found[1] == found[2]


def test_everything_goes_and_comes_back():
    graph = lu.DynamicGraph(lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3]))
    tracker = lu.Tracker(graph)
    edges = ([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    empty = tracker.update(graph.apply(delete=edges))
    assert empty.modularity == 0.0
    assert empty.n_communities == 6
    assert len(set(empty.ids.tolist())) == 6
    full = tracker.update(graph.apply(insert=edges))
    assert full.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert full.modularity == pytest.approx(0.35714285714285715)


def test_vertices_come_and_go():
    graph = lu.DynamicGraph(lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3]))
    tracker = lu.Tracker(graph)
    graph.add_vertices(2)
    r = tracker.update(graph.apply(insert=([6, 6, 7, 7, 6], [0, 1, 0, 1, 7])))
    assert r.ids.tolist() == [0, 0, 0, 1, 1, 1, 0, 0]
    assert r.changed.tolist() == [6, 7]
    r = tracker.update(graph.remove_vertices([3, 4, 5]))
    assert r.ids[3:6].tolist() == [-1, -1, -1]
    assert r.n_communities == 1
    assert ("died", 1) in [(str(e["kind"]), int(e["id"])) for e in r.events]


def test_a_vertex_alone_is_no_community_yet():
    graph = lu.DynamicGraph(9)
    tracker = lu.Tracker(graph)
    triangle = [0, 1, 2], [1, 2, 0]
    reported = tracker.update(graph.apply(insert=triangle)).events
    born = [(str(e["kind"]), int(e["other"]), int(e["size"])) for e in reported]
    assert born == [("born", -1, 3)]
    reported = tracker.update(graph.apply(delete=triangle)).events
    assert [(str(e["kind"]), int(e["other"])) for e in reported] == [("died", -1)]


def test_ids_follow_the_weight_of_members():
    clique = [(a, b) for a in range(6) for b in range(a)]
    edges = [(u + 6 * k, v + 6 * k) for k in range(3) for u, v in clique] + [(0, 6), (6, 12)]
    graph = lu.DynamicGraph(lu.Graph.from_edges(*zip(*edges, strict=True)))
    tracker = lu.Tracker(graph, renew=0.0)
    before = tracker.communities
    a, b, c = before.ids[0], before.ids[6], before.ids[12]
    joined = [(u, v + 6) for u in range(6) for v in range(6)]
    r = tracker.update(graph.apply(insert=tuple(zip(*joined, strict=True))))
    assert set(r.ids[:12].tolist()) == {b}, "its members weigh more: one bridge more"
    assert r.ids[12] == c
    merged = r.events[r.events["kind"] == "merged"]
    assert merged[["id", "other"]].tolist() == [(a, b)]
    r = tracker.update(graph.apply(delete=tuple(zip(*joined, strict=True))))
    parts = r.events[r.events["kind"] == "split"]
    assert parts["other"].tolist() == [b]
    assert parts["id"].tolist() == [3]
    assert len(set(r.ids[:6].tolist())) == len(set(r.ids[6:12].tolist())) == 1


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.integers(1, 60))
def test_ids_and_labels_are_one_partition(seed, size):
    rng = np.random.default_rng(seed)
    graph = grown(80, 200, False, seed)
    tracker = lu.Tracker(graph)
    seen = set(tracker.communities.ids.tolist())
    for _ in range(8):
        before = tracker.communities
        r = tracker.update(graph.apply(**random_batch(rng, 80, size, False)))
        pairs = set(zip(r.labels.tolist(), r.ids.tolist(), strict=True))
        assert len(pairs) == len(set(r.labels.tolist())) == len(set(r.ids.tolist()))
        assert np.flatnonzero(before.ids != r.ids).tolist() == r.changed.tolist()
        fresh = set(r.ids.tolist()) - seen
        assert not fresh or min(fresh) > max(seen)
        seen |= fresh


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mode", ["follow", "static"])
def test_members_and_ids_are_those_of_the_communities(mode, weighted):
    rng, graph = np.random.default_rng(5), grown(120, 400, weighted, 5)
    tracker, results = lu.Tracker(graph, mode=mode), []

    def update(change):
        before = tracker.communities
        results.append(tracker.update(change))
        names, alive = tracker.state.partition.names, graph.alive
        sizes, weights = members_of(names, alive, graph.degrees)
        for name in np.unique(names):
            assert sizes[name] == np.count_nonzero((names == name) & alive)
            assert weights[name] == graph.degrees[names == name].sum()
        assert tracker.communities.n_communities == len(np.unique(names[alive]))
        older = np.append(before.ids, np.full(graph.n_vertices - before.n_vertices, NO_ID))
        assert np.flatnonzero(older != results[-1].ids).tolist() == results[-1].changed.tolist()

    for _ in range(6):
        n = graph.n_vertices
        update(graph.apply(**random_batch(rng, n, 40, weighted)))
        living = np.flatnonzero(graph.alive)
        update(graph.apply(insert=(living[:2], living[:2])))  # loops
        update(graph.remove_vertices(rng.choice(living, 5, replace=False)))
        fresh = graph.add_vertices(4, reuse=bool(n % 8))
        update(graph.apply(insert=(list(fresh), np.flatnonzero(graph.alive)[:4])))
        graph.add_vertices(graph.dead_count, reuse=True)
    copies = [pickle.loads(pickle.dumps(found)) for found in results]
    for found, copied in zip(results, copies, strict=True):
        assert np.array_equal(found.ids, copied.ids)
        assert np.array_equal(found.labels, copied.labels)
        assert found.n_communities == copied.n_communities


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("mode", ["frontier", "screening", "naive", "static"])
def test_published_ways_are_there_to_compare(mode, method):
    graph = grown(120, 600, False, 11)
    tracker = lu.Tracker(graph, mode=mode, method=method)
    rng = np.random.default_rng(12)
    for _ in range(10):
        r = tracker.update(graph.apply(**random_batch(rng, 120, 10, False)))
        assert r.modularity == pytest.approx(lu.modularity(graph.snapshot(), r.labels), abs=1e-12)
    if mode == "static":
        labels = getattr(lu, method)(graph.snapshot(), device="cpu").labels
        assert r.labels.tolist() == number_by_size(labels).tolist()


def test_changes_out_of_order_are_refused():
    graph = grown(30, 60, False, 13)
    tracker = lu.Tracker(graph)
    labels = tracker.communities.labels.tolist()
    first = graph.apply(insert=([0], [1]))
    second = graph.apply(insert=([0], [2]))
    with pytest.raises(GraphError, match="changed since batch"):
        tracker.update(first)
    with pytest.raises(GraphError, match="in order"):
        tracker.update(second)
    with pytest.raises(GraphError, match="apply"):
        tracker.update("change")
    assert tracker.communities.labels.tolist() == labels


@pytest.mark.parametrize(
    "options",
    [{"renew": -1}, {"renew": "x"}, {"renew": True}, {"audit": 2}, {"connected": "never"},
     {"mode": "slow"}, {"resolution": 0}, {"seed": -1}, {"method": "infomap"}],
)  # fmt: skip
def test_options_are_checked(options):
    with pytest.raises(OptionError):
        lu.Tracker(lu.DynamicGraph(3), **options)


@pytest.mark.parametrize(
    "search", [{"effort": "fast"}, {"effort": "best"}, {"n_iterations": -1, "best_of": 3}]
)
def test_a_tracker_begins_with_as_long_a_search_as_a_run(tmp_path, search):
    graph = lu.Graph.from_edges(*np.random.default_rng(0).integers(0, 300, (2, 900)))
    tracker = lu.Tracker(lu.DynamicGraph(graph), seed=3, **search)
    run = lu.leiden(graph, seed=3, device="cpu", **search)
    assert tracker.communities.labels.tolist() == run.labels.tolist()
    assert run.labels.tolist() != lu.leiden(graph, seed=3, device="cpu").labels.tolist()
    tracker.save(tmp_path / "tracker.npz")
    assert lu.Tracker.load(tmp_path / "tracker.npz").options == tracker.options
    with pytest.raises(OptionError, match="effort must be"):
        lu.Tracker(lu.DynamicGraph(graph), effort="most")


def test_a_tracker_takes_a_dynamic_graph():
    with pytest.raises(OptionError, match="DynamicGraph"):
        lu.Tracker(lu.Graph.from_edges([0], [1]))


def test_of_two_threads_one_follows_a_change(monkeypatch):
    graph = grown(60, 240, weighted=False, seed=1)
    tracker = lu.Tracker(graph)
    change, follow, outcomes = graph.apply(insert=([0, 1], [58, 59])), tracker._follower.follow, []

    def slow(change):
        time.sleep(0.1)
        return follow(change)

    def update():
        try:
            outcomes.append(tracker.update(change).epoch)
        except GraphError as error:
            outcomes.append(str(error)[:19])

    monkeypatch.setattr(tracker._follower, "follow", slow)
    threads = [threading.Thread(target=update) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [change.epoch, "the change is batch"]
    assert tracker.communities.ids.shape == (60,)


def test_the_graph_cannot_change_while_a_tracker_begins(monkeypatch):
    graph = grown(60, 240, weighted=False, seed=1)
    monkeypatch.setattr(HostSteps, "begin", lambda self, *_: self.graph.apply(insert=([0], [59])))
    with pytest.raises(GraphError, match="in use by the run"):
        lu.Tracker(graph)


def test_an_interrupt_leaves_a_tracker_before_or_after_a_batch(monkeypatch):
    graph = grown(40, 120, False, 3)
    tracker, result = lu.Tracker(graph), lu.Tracker._result

    def interrupted(*args):
        os.kill(os.getpid(), signal.SIGINT)
        return result(*args)

    monkeypatch.setattr(lu.Tracker, "_result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tracker.update(graph.apply(insert=([0, 1], [2, 3])))
    assert tracker.communities.epoch == tracker.rows[-1]["epoch"] == tracker.epoch == 2


def test_sessions_distinguish_the_phases():
    from louvain_um.profiling import recording

    graph = grown(60, 240, False, 3)
    tracker = lu.Tracker(graph, renew=0.001, audit=0.0, connected="always")
    rng = np.random.default_rng(1)
    with recording(device="cpu") as run:
        for _ in range(34):
            tracker.update(graph.apply(**random_batch(rng, 60, 8, False)))
        graph.has_edges([0], [1])
        graph.compact()
        graph.remove_vertices([5])
    seen = {phase.phase for phase in run.session.phases}
    expected = {"update", "carry", "split", "frontier", "renew", "audit", "query", "compact"}
    assert expected <= seen
    assert sum(phase.phase == "update" for phase in run.session.phases) == 35


@pytest.mark.parametrize("line", range(1, 5))
def test_ids_that_two_threads_ask_for(line):
    class Memory:  # a device's
        xp, get = np, np.asarray

    batch = Pending(
        memory=Memory, names=np.arange(3), communities=3, changed=np.zeros(0, np.uint32),
        of_name=np.array([7, 8, 9]), in_use=lambda: batch,
    )  # fmt: skip
    lines, before = 0, sys.gettrace()

    def other_thread(frame, event, arg):
        nonlocal lines
        if frame.f_code.co_name != "resolved_ids":
            return None
        lines += event == "line"
        if lines == line:
            sys.settrace(before)
            frame.f_trace = None
            batch.retire()
        return other_thread

    sys.settrace(other_thread)
    try:
        assert batch.resolved_ids().tolist() == [7, 8, 9]
    finally:
        sys.settrace(before)
    assert lines == line
