"""Trackers that are saved and loaded go on as they would have."""

import datetime

import networkx as nx
import numpy as np
import pytest

import louvain_um as lu
from louvain_um.dynamic.tracking.following import audit_due, audited
from louvain_um.errors import LouvainUmError
from tests.dynamic.random_batches import grown, random_batch


def test_audits_without_end_that_find_nothing_can_be_saved_and_go_on(tmp_path):
    clique = np.array([(u + k, v + k) for k in (0, 5) for u in range(5) for v in range(u)]).T
    graph = lu.DynamicGraph(lu.Graph.from_edges(*np.c_[clique, [0, 5]], np.ones(21)))
    tracker = lu.Tracker(graph)
    for heavier in (True, False) * 64:
        ends = (*clique, np.full(20, 9))
        tracker.update(graph.apply(**({"insert": ends} if heavier else {"decrease": ends})))
    assert tracker.to_frame()["audit_lead"].notna().sum() >= 63, "2⁶³ is no whole number in a file"
    tracker.save(tmp_path / "tracker.npz")
    other = lu.Tracker.load(tmp_path / "tracker.npz")
    assert other.state.period == tracker.state.period
    state = tracker.state
    for _ in range(1100):  # 2¹⁰²⁴ is beyond real numbers
        state, _ = audited(state, state.partition, tracker.options, graph.total_weight)
    assert not audit_due(state, tracker.options, graph.total_weight)


def test_a_saved_tracker_goes_on_as_if_it_had_never_been_saved(tmp_path):
    rng = np.random.default_rng(14)
    graph = grown(200, 900, True, 15)
    tracker, path = lu.Tracker(graph, seed=3), tmp_path / "state.npz"
    for _ in range(12):
        tracker.update(graph.apply(**random_batch(rng, 200, 25, True)))
    gone = tracker.update(graph.remove_vertices([5, 6]))
    tracker.save(path)
    again = lu.Tracker.load(path)
    assert again.graph.digest() == graph.digest()
    assert again.communities.ids.tolist() == gone.ids.tolist()
    graph.add_vertices(3)
    again.graph.add_vertices(3)
    for _ in range(40):
        batch = random_batch(rng, 203, 25, True)
        alive = {k: tuple(x[~np.isin(c[0], [5, 6]) & ~np.isin(c[1], [5, 6])] for x in c)
                 for k, c in batch.items()}  # fmt: skip
        a = tracker.update(graph.apply(**alive))
        b = again.update(again.graph.apply(**alive))
        assert (a.ids.tolist(), a.modularity) == (b.ids.tolist(), b.modularity)
        assert a.events.tolist() == b.events.tolist()
    columns = ["epoch", "modularity", "renewed", "arcs_visited"]
    assert tracker.to_frame()[columns].equals(again.to_frame()[columns])
    with pytest.raises(LouvainUmError, match="exists"):
        tracker.save(path)


@pytest.mark.parametrize("named", [False, True])
def test_vertices_added_since_the_last_batch_are_saved(tmp_path, named):
    ends = ([0, 1, 2, 3, 4], [1, 2, 0, 4, 0])
    if named:
        graph = lu.DynamicGraph(0)
        graph.apply(insert=tuple(["abcdef"[x] for x in column] for column in ends))
    else:
        graph = lu.DynamicGraph(lu.Graph.from_edges(*ends))
    tracker = lu.Tracker(graph)
    tracker.update(graph.remove_vertices(["d" if named else 3]))
    graph.add_vertices(["x", "y"] if named else 3, reuse=not named)
    tracker.save(tmp_path / "state.npz")
    again = lu.Tracker.load(tmp_path / "state.npz")
    assert again.communities.ids.tolist() == tracker.communities.ids.tolist() == [0, 0, 0, -1, 0]
    assert again.communities.to_frame().equals(tracker.communities.to_frame())
    batch = (["x", "y", "x"], ["y", "a", "e"]) if named else ([3, 5, 3], [5, 0, 4])
    a, b = (each.update(each.graph.apply(insert=batch)) for each in (tracker, again))
    assert (a.ids.tolist(), a.modularity) == (b.ids.tolist(), b.modularity)
    assert a.events.tolist() == b.events.tolist()


def test_removed_vertices_come_again_in_the_order_of_their_queue(tmp_path):
    """Also from older files, which have no order, and not from those that list other vertices."""
    path = tmp_path / "state.npz"
    graph = lu.DynamicGraph(9, store="pages:ids=queue")
    tracker = lu.Tracker(graph)
    for v in (7, 4, 2):
        tracker.update(graph.remove_vertices([v]))
    graph.add_vertices(1, reuse=True)
    tracker.save(path)
    arrays = dict(np.load(path))
    again = [lu.Tracker.load(path).graph]
    np.savez(path, **{name: array for name, array in arrays.items() if name != "removed"})
    again.append(lu.Tracker.load(path).graph)
    graph.remove_vertices([1])
    for one in again:
        one.remove_vertices([1])
    taken = [[one.add_vertices(1, reuse=True)[0] for _ in range(3)] for one in (graph, *again)]
    assert taken == [[4, 2, 1], [4, 2, 1], [2, 4, 1]]
    for wrong in ([4, 3], [4], [4, 4], [[4, 2]]):
        np.savez(path, **arrays | {"removed": np.array(wrong, np.uint32)})
        with pytest.raises(LouvainUmError, match="is damaged"):
            lu.Tracker.load(path)


def test_a_tracker_whose_options_are_numbers_of_numpy_is_saved(tmp_path):
    options = {"seed": np.int64(3), "renew": np.float32(0.25), "audit": np.float32(0.5)}
    tracker = lu.Tracker(lu.DynamicGraph(4), **options, resolution=np.float32(1.5))
    tracker.save(tmp_path / "state.npz")
    assert lu.Tracker.load(tmp_path / "state.npz").options == tracker.options


def test_names_of_vertices_are_saved(tmp_path):
    graph = lu.DynamicGraph(0)
    graph.apply(insert=(["ann", "bob", "cid", "dan"], ["bob", "cid", "ann", "eve"]))
    tracker = lu.Tracker(graph)
    tracker.update(graph.remove_vertices(["dan"]))
    tracker.save(tmp_path / "state.npz")
    again = lu.Tracker.load(tmp_path / "state.npz")
    for one in (tracker, again):
        r = one.update(one.graph.apply(insert=(["fay", "dan"], ["eve", "eve"])))
        assert r.names.tolist() == ["ann", "bob", "cid", None, "eve", "dan", "fay"]
    assert again.communities.ids.tolist() == tracker.communities.ids.tolist()
    assert again.graph.digest() == graph.digest()


def test_names_of_kinds_that_files_lack_are_text_and_a_warning_says_so(tmp_path):
    days = nx.path_graph([datetime.date(2026, 1, day) for day in (1, 2, 3)])
    for to_save in (lu.Tracker(lu.DynamicGraph(days)), lu.louvain(days)):
        with pytest.warns(lu.GraphWarning, match=r"'2026-01-01' stands for datetime"):
            to_save.save(tmp_path / "state.npz", force=True)
    tuples = nx.path_graph([((0,), "a"), ((), "b"), ((1, (2,)), "c")])
    lu.Tracker(lu.DynamicGraph(tuples)).save(tmp_path / "state.npz", force=True)
    graph = lu.Tracker.load(tmp_path / "state.npz").graph
    assert graph.to_networkx().edges == lu.DynamicGraph(tuples).to_networkx().edges


@pytest.mark.parametrize("name", ["names", "touched", "ids", "alive", "head", "targets", "history"])
def test_damaged_files_are_refused(tmp_path, name):
    tracker = lu.Tracker(grown(20, 40, False, 16))
    tracker.save(tmp_path / "state.npz")
    arrays = dict(np.load(tmp_path / "state.npz"))
    damaged = arrays | {name: arrays[name][:-1] if name != "history" else np.zeros(3)}
    np.savez(tmp_path / "short.npz", **damaged)
    wrong = {
        "head": arrays["head"][::-1].copy(),
        "touched": arrays["touched"].astype(np.int64),
        "history": np.frombuffer(b'[{"epoch": "x"}]', np.uint8),
    }
    arrays[name] = wrong[name] if name in wrong else arrays[name] + 1
    np.savez(tmp_path / "other.npz", **arrays)
    for file in ("short.npz", "other.npz", "none.npz"):
        with pytest.raises(LouvainUmError, match=file):
            lu.Tracker.load(tmp_path / file)
