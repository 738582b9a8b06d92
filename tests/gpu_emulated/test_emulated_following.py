"""Following on a device, its kernels emulated on the CPU, gives what following on the host does."""

import copy
import gc
import os
import pickle
import signal
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.dynamic.declared import DynamicSize, declare
from louvain_um.dynamic.tracking import device_identity, device_steps, following, identity
from louvain_um.dynamic.tracking import host_steps as steps
from louvain_um.dynamic.tracking.following import BatchReport
from louvain_um.dynamic.tracking.tracker import Tracker
from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.gpu.dynamic import follow_arrays
from louvain_um.gpu.dynamic.follow_arrays import follow_bytes
from louvain_um.gpu.move import hub_tables
from tests import oracle
from tests.dynamic.random_batches import batches_with_removals, grown, random_batch
from tests.dynamic.tracker_oracle import Following
from tests.gpu_emulated.emulated_device import Counting, DeviceArray, Emulated, on_device

pytestmark = pytest.mark.deep


class HostRuns:
    """Runs of the engine on the CPU, in place of those on a device."""

    def detect(self, graph, options, work):
        return steps.detect(graph.view(), options, work).names

    def cycle(self, graph, start, awake, options, work):
        marks = None if awake is None else np.array(awake, np.bool_)
        start = None if start is None else np.array(start)
        run = options, work, steps.RELEASED
        found = steps.run_cycle(graph.view(), start, marks, *run, renews=True)
        return None if found is None else (found.names, found.inside)


class Libraried:
    """NumPy under another name, so that what is asked of a device's library is recognised."""

    def __getattr__(self, name):
        return getattr(np, name)


class ApartRuns(HostRuns):
    """Runs whose own memory, which is declared separately, is not counted."""

    def detect(self, *args):
        peak, found = DeviceArray.peak, super().detect(*args)
        DeviceArray.peak = peak
        return found

    def cycle(self, *args):
        peak, found = DeviceArray.peak, super().cycle(*args)
        DeviceArray.peak = peak
        return found


class Recorded(Emulated):
    """A device that records what the host asks of it."""

    def __init__(self, libraries, blocks):
        super().__init__(libraries, blocks)
        self.launched: list[str] = []
        self.others: list[str] = []
        self.xp: Any = self

    def __getattr__(self, name):
        if name in {"empty", "zeros"}:
            self.others.append("allocate")
        return getattr(np, name)

    def launch(self, source, kernel, *args, **options):
        self.launched.append(kernel)
        super().launch(source, kernel, *args, **options)

    def clear(self, array):
        self.others.append("clear")
        super().clear(array)

    def get(self, array):
        self.others.append("copy")
        return super().get(array)

    def read(self, array):
        self.others.append("read")
        return super().read(array)


def there(graph, libraries, blocks, **options):
    """Return a tracker of a copy of a graph on an emulated device."""
    copy = lu.DynamicGraph(graph.snapshot())
    on_device(copy, Emulated(libraries, blocks), "rows")
    tracker = Tracker(lu.DynamicGraph(0), **options)
    tracker._follow_on_device(copy, HostRuns())
    return tracker


def same(here, other, *, seen):
    """Assert that two trackers agree; without `seen`, on what the host knows without asking."""
    assert other.state.partition.inside == here.state.partition.inside
    assert other.state.partition.squares == here.state.partition.squares
    assert np.array_equal(other.state.partition.names, here.state.partition.names)
    touched = (tracker._follower.steps.touched for tracker in (other, here))
    assert np.array_equal(*touched)
    for name in ("turnover", "changed", "regained", "period"):
        assert getattr(other.state, name) == getattr(here.state, name)
    a, b = here.communities, other.communities
    assert a.modularity == b.modularity
    assert a.n_communities == b.n_communities
    if seen:
        assert np.array_equal(a.labels, b.labels)
        assert np.array_equal(a.ids, b.ids)
        assert np.array_equal(a.changed, b.changed)
        assert a.events.tolist() == b.events.tolist()


def updated(here, other, *, seen=True, **batch):
    """Apply a batch to both trackers' graphs; they agree afterwards."""
    for tracker in (here, other):
        tracker.update(tracker.graph.apply(**batch))
    same(here, other, seen=seen)


@pytest.mark.parametrize("connected", ["renewal", "always"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("blocks", [1, 3])
def test_a_device_follows_as_the_host_does(emulated, monkeypatch, connected, weighted, blocks):
    if blocks == 3:
        monkeypatch.setattr(follow_arrays, "MOST_SINGLE", 4)  # vertices are listed by communities
        monkeypatch.setattr(device_identity, "MOST_HERE", 8)  # and looked at on the device
    graph = grown(90, 320, weighted, seed=blocks)
    options = {"renew": 0.06, "audit": 0.001, "connected": connected, "seed": 3}
    here = Tracker(graph, **options)
    other = there(graph, emulated, blocks, **options)
    assert np.array_equal(here.communities.ids, other.communities.ids)
    rng = np.random.default_rng(11)
    kept = []
    for k in range(26):
        batch = random_batch(rng, 90, 10, weighted)
        trackers = here, other
        if k == 12:
            gone = np.unique(rng.integers(0, 90, 6))
            changes = [tracker.graph.remove_vertices(gone) for tracker in trackers]
        elif k == 13:
            for tracker in trackers:
                tracker.graph.add_vertices(8, reuse=True)
                changes = []
            n = here.graph.n_vertices
            batch = {"insert": (np.arange(n - 8, n), rng.integers(0, n - 8, 8))}
            batch["insert"] = tuple(end[here.graph.alive[end]] for end in batch["insert"])[:2]
            size = min(map(len, batch["insert"]))
            batch["insert"] = tuple(end[:size] for end in batch["insert"])
            changes = [tracker.graph.apply(**batch) for tracker in trackers]
        else:
            alive = here.graph.alive
            batch = {
                what: tuple(c[alive[columns[0]] & alive[columns[1]]] for c in columns)
                for what, columns in batch.items()
            }
            changes = [tracker.graph.apply(**batch) for tracker in trackers]
        found = [t.update(c) for t, c in zip(trackers, changes, strict=True)]
        same(here, other, seen=k % 3 == 0)
        if k % 5 == 0:
            kept.append(found)
    same(here, other, seen=True)
    for a, b in kept:
        assert np.array_equal(a.ids, b.ids)
        assert np.array_equal(a.changed, b.changed)
    left, right = here.to_frame(), other.to_frame()
    assert left["renewed"].sum() > 3
    for column in ("changed", "communities", "marked", "split", "moves", "arcs_visited"):
        assert left[column].tolist() == right[column].tolist(), column
    checked = (each["arcs_checked"].sum() for each in (left, right))
    assert abs(int(np.diff([*checked])[0])) <= 10, "searches end at other arcs of a row"


@pytest.mark.parametrize("room", [0, 1 << 30])
def test_a_budget_leaves_many_names_to_the_host(emulated, monkeypatch, room):
    """Grouping and looking up many names fits the budget, or is the host's."""
    for module, name, value in (
        (follow_arrays, "MOST_SINGLE", 4), (device_identity, "MOST_HERE", 8),
        (identity, "AT_ONCE", 32),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    looked, grouped, ran = [], [], []

    real = device_identity.DeviceListed.steps

    def noted(listed, *args):
        steps = real(listed, *args)
        on_host = isinstance(steps, identity.Differences)
        looked.append((listed.entries.nbytes // follow_arrays.DIFFERING.itemsize, on_host))
        return steps

    monkeypatch.setattr(device_identity.DeviceListed, "steps", noted)

    class Device(Emulated):
        xp: Any = Libraried()

        def launch(self, source, kernel, *args, **options):
            grouped.append(kernel)
            super().launch(source, kernel, *args, **options)

    class Budgeted(HostRuns):
        def detect(self, graph, options, work):
            ran.append(options.device_budget)
            return super().detect(graph, replace(options, device_budget=None), work)

        def cycle(self, graph, start, awake, options, work):
            ran.append(options.device_budget)
            return super().cycle(graph, start, awake, replace(options, device_budget=None), work)

    graph = grown(90, 320, True, seed=3)
    options = {"renew": 0.06, "audit": 0.001, "connected": "always", "seed": 3}
    here = Tracker(graph, **options)
    rows = graph.snapshot()
    held = sum(follow_bytes(90, len(rows.targets) * 2, 90).values()) + 40_000
    copy = lu.DynamicGraph(rows, device_budget=held + room)
    on_device(copy, Device(emulated, 2), "rows")
    other = Tracker(lu.DynamicGraph(0), **options)
    other._follow_on_device(copy, Budgeted())
    of_graph = [budget - room for budget in ran]
    assert all(0 < budget < held - copy.memory.device_bytes for budget in of_graph)
    monkeypatch.setattr(device_identity, "LOOKUP_BYTES", 1 << 20)
    monkeypatch.setattr(device_steps, "LISTING_BYTES", 1 << 20)
    rng = np.random.default_rng(11)
    for _ in range(12):
        updated(here, other, **random_batch(rng, 90, 10, True))
    many = [on_host for count, on_host in looked if count > 8]
    assert many
    assert set(many) == {room == 0}
    assert "key_differing" in grouped


def test_a_renewal_that_is_not_taken_splits_what_moves_parted(emulated):
    graph, rng = grown(40, 150, True, 32), np.random.default_rng(32)
    here = Tracker(graph, renew=0.2, audit=None)
    other = there(graph, emulated, 2, renew=0.2, audit=None)
    for _ in range(6):
        updated(here, other, **random_batch(rng, 40, 40, True))


@pytest.mark.parametrize("seed", [79, 58])
def test_always_splits_runs_of_louvain(emulated, seed):
    graph, rng = grown(200, 260, False, seed), np.random.default_rng(seed)
    options = {"renew": 0.05, "audit": 0.001, "method": "louvain", "connected": "always"}
    here, other = Tracker(graph, **options), there(graph, emulated, 2, **options)
    for _ in range(4):
        same(here, other, seen=True)
        updated(here, other, **random_batch(rng, 200, 20, False))


def test_removed_vertices_are_alone(emulated):
    graph = grown(60, 100, True, 86)
    here = Tracker(graph, renew=1, audit=None)
    other = there(graph, emulated, 2, renew=1, audit=None)
    for method, arguments in batches_with_removals(graph, 86):
        for tracker in (here, other):
            tracker.update(getattr(tracker.graph, method)(**arguments))
        same(here, other, seen=True)
        assert np.array_equal(other.communities.ids < 0, ~graph.alive)


def test_vertices_added_since_the_last_batch_are_saved(emulated, tmp_path):
    graph = grown(30, 60, False, seed=6)
    other = there(graph, emulated, 2)
    other.update(other.graph.remove_vertices([3]))
    other.graph.add_vertices(2, reuse=True)
    other.save(tmp_path / "there.npz")
    again = Tracker.load(tmp_path / "there.npz")
    assert again.communities.ids.tolist() == other.communities.ids.tolist()


def test_everything_deleted_and_refilled(emulated):
    graph = grown(40, 150, True, seed=5)
    here, other = Tracker(graph), there(graph, emulated, 2)
    rows = graph.snapshot()
    u = np.repeat(np.arange(40), np.diff(rows.offsets))
    for batch in ({"delete": (u, rows.targets)}, {}, {"insert": (u, rows.targets, rows.weights)}):
        updated(here, other, **batch)


def test_interrupts_wait_until_a_batch_is_followed(emulated, monkeypatch):
    graph = grown(60, 200, True, seed=6)
    here, other = Tracker(graph, seed=2), there(graph, emulated, 2, seed=2)
    real = following.Follower.follow

    def follow(follower, change):
        os.kill(os.getpid(), signal.SIGINT)
        found = real(follower, change)
        os.kill(os.getpid(), signal.SIGINT)
        return found

    rng = np.random.default_rng(8)
    for interrupted in (True, False):
        batch = random_batch(rng, 60, 9, True)
        here.update(here.graph.apply(**batch))
        change = other.graph.apply(**batch)
        with monkeypatch.context() as patch:
            if interrupted:
                patch.setattr(following.Follower, "follow", follow)
                with pytest.raises(KeyboardInterrupt):
                    other.update(change)
            else:
                other.update(change)
        assert other.epoch == other.graph.epoch
        same(here, other, seen=True)


def test_a_saved_tracker_goes_on_as_it_would_have(emulated, tmp_path):
    graph = grown(60, 200, False, seed=6)
    here, other = Tracker(graph, seed=2), there(graph, emulated, 2, seed=2)
    rng = np.random.default_rng(8)
    for _ in range(3):
        updated(here, other, seen=False, **random_batch(rng, 60, 9, False))
    here.save(tmp_path / "here.npz")
    other.save(tmp_path / "there.npz")
    batch = random_batch(rng, 60, 9, False)
    again = [Tracker.load(tmp_path / name) for name in ("here.npz", "there.npz")]
    ids = [tracker.update(tracker.graph.apply(**batch)).ids.tolist() for tracker in again]
    assert ids[0] == ids[1]


def test_a_budget_that_following_exceeds_is_refused(emulated):
    graph = grown(60, 200, False, seed=7)
    copy = lu.DynamicGraph(graph.snapshot(), device_budget=60 * 40 + 3000)
    on_device(copy, Emulated(emulated, 1), "rows")
    tracker = Tracker(lu.DynamicGraph(0))
    with pytest.raises(MemoryBudgetError, match="follow the graph on the CPU"):
        tracker._follow_on_device(copy, HostRuns())


def test_hubs_decide_and_fall_into_parts(emulated):
    n = 9000
    hub, leaves = np.zeros(n - 1, np.int64), np.arange(1, n)
    ring = np.arange(1, n), np.roll(np.arange(1, n), 1)
    u, v = np.concatenate([hub, ring[0]]), np.concatenate([leaves, ring[1]])
    graph = lu.DynamicGraph(lu.Graph.from_edges(u, v))
    options = {"renew": 1.0, "audit": None}
    here, other = Tracker(graph, **options), there(graph, emulated, 2, **options)
    rng = np.random.default_rng(4)
    for batch in (
        {"insert": (hub[:900], rng.integers(1, n, 900))},
        {"delete": (hub[:2000], leaves[:2000])},
        {"delete": (hub, leaves)},
    ):
        updated(here, other, **batch)


def parts_in_one(n):
    """Return edges of a community around hub n, and those that hold pieces to it."""
    u, v, holding = [], [], []
    paths = [[0], [2, 1, 3], [*range(4, 36)], [*range(36, 69)], [*range(69, 75)]]
    for path in paths:
        u += path[:-1]
        v += path[1:]
        holding.append((path[-1], n - 1 if path[0] == 69 else n))
    u += range(75, n)
    v += [n] * (n - 75)
    return [a for a, _ in holding] + u, [b for _, b in holding] + v, holding


def parts_found(emulated, u, v, names, gone):
    """Return the steps on a device after edges are gone, checked against host and reference."""
    graph = lu.DynamicGraph(lu.Graph.from_edges(u, v))
    follower = there(graph, emulated, 2)._follower
    current = follower.steps
    current.begin(None, None, BatchReport())
    current.members = current.name_labels(names.copy())
    delete = tuple(np.array(end) for end in zip(*gone, strict=True))
    change = graph.apply(delete=delete)
    current.begin(follower.graph.apply(delete=delete), current.members, BatchReport())
    current.split_loosened()
    current.read()

    part = steps.partition_of(graph.view(), names)
    whole, fell = steps.split_loosened(graph.view(), part, change, BatchReport())
    slow = Following(oracle.net_of(graph.snapshot()), "leiden", 0.05, None)
    removed = {(min(edge), max(edge)) for edge in gone}
    loose = {int(names[a]) for a, _ in gone}
    expected, off = slow.split_loosened(names.tolist(), loose, removed)
    assert whole.names.tolist() == expected
    assert np.flatnonzero(fell).tolist() == sorted(off)
    assert current.arrays["whole"].tolist() == expected
    assert current.counts["split"] == len(off)
    sizes = np.bincount(expected, minlength=len(names))
    assert current.arrays["move_sizes"].tolist() == sizes.tolist()
    return current


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("gone", [[0], [1], [2], [3], [4], [0, 1, 2], [0, 3], [0, 1, 2, 3, 4]])
def test_parts_that_fall_off_are_found_as_on_the_host(emulated, gone, shift):
    n = 120
    u, v, holding = parts_in_one(n - shift)
    names = np.full(n + 1, shift, np.uint32)
    names[:shift] = np.arange(shift)
    lost = [(holding[k][0] + shift, holding[k][1] + shift) for k in gone]
    current = parts_found(emulated, np.array(u) + shift, np.array(v) + shift, names, lost)
    assert current.counts["flagged"] == (3 in gone)  # 33 members: too many to search for


@pytest.mark.parametrize("arcs", [31, 32])
def test_a_part_is_searched_from_each_of_its_ends(emulated, arcs):
    # 0 and 1 fall off 2. From 1, with 32 arcs, those of 0 reach the limit before their last ones.
    first, second, hub = range(3, 1022), range(3, 2 + arcs), range(3, 1043)
    u = np.repeat([0, 0, 1, 0, 1, 2], [1, 1, 1, len(first), len(second), len(hub)])
    v = np.concatenate([[1, 2, 2], first, second, hub])
    names = np.arange(1043, dtype=np.uint32)
    names[:3] = 0
    current = parts_found(emulated, u, v, names, [(0, 2), (1, 2)])
    assert current.counts["flagged"] == (arcs == 32)


def test_every_unit_of_a_hub_has_room_for_its_choice(emulated):
    n = 9000
    graph = lu.DynamicGraph(lu.Graph.from_edges(np.zeros(n - 1, np.int64), np.arange(1, n)))
    sizes, _, arrays = there(graph, emulated, 1)._follower.steps.hubs
    names, (count, slots) = hub_tables.hub_arrays(sizes, np.uint64), sizes
    partials = dict(zip(names, arrays, strict=True))["partials"]
    assert slots // hub_tables.PARTITION_ARCS > 1
    assert (
        partials.nbytes
        == (slots // hub_tables.PARTITION_ARCS + count) * hub_tables.HUB_CHOICE.itemsize
    )


def test_a_plan_declares_what_a_graph_and_its_tracker_hold(emulated):
    graph = grown(3000, 20_000, True, seed=9)
    size = DynamicSize(
        n_vertices=3000, n_arcs=graph.n_arcs, growth=1.5, batch=1000, weighted=True, follow=True
    )
    declared = {array.name: array.nbytes for array in declare(size).arrays}
    other = there(graph, emulated, 2, audit=None)
    store = other.graph.device_store
    rng = np.random.default_rng(2)
    limit = graph.n_arcs * 3 // 2 - 2000
    while other.graph.n_arcs < limit:
        batch = random_batch(rng, 3000, 1000, True)
        other.update(other.graph.apply(insert=batch["insert"]))
        for name in ("targets", "spans", "classes", "loops", "degrees", "alive"):
            assert getattr(store, name).nbytes <= declared[name], name
    assert store.targets.nbytes > declared["targets"] / 2
    following = sum(held for name, held in declared.items() if name.startswith("following"))
    assert following / 4 < other.following_bytes <= following


@pytest.mark.parametrize("asks", [False, True])
def test_declared_bytes_are_those_that_are_allocated(emulated, asks):
    graph = grown(1200, 6000, True, seed=9)
    copy = lu.DynamicGraph(graph.snapshot())
    on_device(copy, Counting(emulated, 2), "rows")
    store, rng = copy.device_store, np.random.default_rng(2)

    def batch():
        change = copy.apply(insert=random_batch(rng, 1200, 90, True)["insert"])
        return change.to_host()  # the change belongs to the graph

    batch()
    before = DeviceArray.live
    tracker = Tracker(lu.DynamicGraph(0), renew=0.03, audit=0.0, connected="always")
    tracker._follow_on_device(copy, ApartRuns())
    asked = []
    gc.collect()
    gc.freeze()  # what is alive costs the collections below most of their time
    for _ in range(40):
        change = batch()
        gc.collect()
        of_graph = DeviceArray.live - tracker.following_bytes
        DeviceArray.peak = DeviceArray.live
        asked.append(tracker.update(change))
        listed = tracker._follower.pending[-1].listed.entries.nbytes  # may be more for a moment
        if asks:
            _ = asked[-1].ids
        declared = sum(follow_bytes(1200, store.n_arcs, store.longest).values())
        assert DeviceArray.peak - of_graph <= declared + listed + 1024  # counters of the graph
        assert DeviceArray.live - of_graph == tracker.following_bytes
        assert of_graph - before < 0.3 * declared  # the graph's own growth
    assert asks or len(tracker._follower.pending) > 1
    frame = tracker.to_frame()
    assert frame["renewed"].sum() > 2
    assert frame["audit_lead"].notna().any()


def test_plans_of_changing_graphs_are_refused_with_the_bytes():
    size = DynamicSize(n_vertices=1000, n_arcs=100_000)
    assert lu.plan(dynamic=size, machine="h200").fits
    with pytest.raises(MemoryBudgetError, match="phase 'rebuild'"):
        lu.plan(dynamic=size, device_budget="1MiB", machine="h200", memory="device")
    split = lu.plan(dynamic=size, device_budget="1.1MiB", machine="h200").placements["targets"]
    assert 0 <= split.on_device < 1
    with pytest.raises(OptionError, match="dynamic alone"):
        lu.plan(n_vertices=3, n_arcs=4, dynamic=size)
    for wrong in ({"n_vertices": -1}, {"growth": 0.5}, {"batch": 2**31}, {"n_arcs": 1.5}):
        with pytest.raises(OptionError):
            DynamicSize(**{"n_vertices": 10, "n_arcs": 20, **wrong})


def test_a_copy_keeps_its_ids_when_the_original_is_gone(emulated):
    graph = grown(60, 200, False, seed=10)
    here, other = Tracker(graph), there(graph, emulated, 2)
    rng = np.random.default_rng(3)
    pairs = []
    for _ in range(12):
        batch = random_batch(rng, 60, 12, False)
        expected = here.update(here.graph.apply(**batch))
        found = other.update(other.graph.apply(**batch))
        kept = copy.copy(found) if len(pairs) % 2 else pickle.loads(pickle.dumps(found))
        pairs.append((expected, kept))
        del found
    for expected, kept in pairs:
        assert np.array_equal(kept.ids, expected.ids)
        assert np.array_equal(kept.labels, expected.labels)
        assert kept.events.tolist() == expected.events.tolist()


def test_a_graph_without_vertices_grows(emulated):
    here, other = Tracker(lu.DynamicGraph(0)), there(lu.DynamicGraph(0), emulated, 1)
    for tracker in (here, other):
        tracker.graph.add_vertices(4)
        tracker.update(tracker.graph.apply(insert=([0, 1, 2], [1, 2, 0])))
    same(here, other, seen=True)


@pytest.mark.parametrize("fails", ["taking", "identity"])
def test_after_an_error_a_batch_can_be_followed_again(emulated, monkeypatch, fails):
    graph = grown(60, 200, False, seed=12)
    here, other = Tracker(graph), there(graph, emulated, 2)
    batches = [random_batch(np.random.default_rng(k), 60, 12, False) for k in range(3)]
    for batch in batches[:2]:
        updated(here, other, seen=False, **batch)
    expected = here.update(here.graph.apply(**batches[2]))
    change = other.graph.apply(**batches[2])

    def refused(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patched:
        if fails == "taking":
            patched.setattr(following, "Pending", refused)
            with pytest.raises(MemoryError):
                other.update(change)
        else:
            patched.setattr(identity, "succession", refused)
            found = other.update(change)
            with pytest.raises(MemoryError):
                _ = found.ids
    found = other.update(change) if fails == "taking" else other.communities
    assert np.array_equal(found.ids, expected.ids)
    assert found.events.tolist() == expected.events.tolist()


def test_a_batch_waits_for_the_device_once(emulated, monkeypatch):
    monkeypatch.setattr(following, "MOST_LISTED", 1 << 20)  # lists stay on the device
    graph = lu.DynamicGraph(grown(60, 200, False, seed=14).snapshot())
    device = Recorded(emulated, 2)
    on_device(graph, device, "rows")
    tracker = Tracker(lu.DynamicGraph(0), renew=1.0, audit=None)
    tracker._follow_on_device(graph, HostRuns())
    rng = np.random.default_rng(5)
    for _ in range(6):
        change = graph.apply(**random_batch(rng, 60, 8, False))
        device.launched, device.others = [], []
        tracker.update(change)
        steps = ["mark_changes", "split_flagged", "move", "assign_names"]
        assert device.launched == steps
        assert device.others == ["clear", *["allocate"] * 3, "read"]
    assert tracker.to_frame()["moves"].sum() > 0
