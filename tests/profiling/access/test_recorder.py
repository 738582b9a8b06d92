import numpy as np
import pytest

import louvain_um as lu
from louvain_um.core.rules import prunes
from louvain_um.errors import LouvainUmError
from louvain_um.generators import lfr, stencil
from louvain_um.profiling.access import counting
from louvain_um.profiling.access.recorder import Recorder, record
from louvain_um.profiling.access.trace_writer import Slots, TraceWriter, cut_ranges
from louvain_um.profiling.record.profiler import profile
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.simulator import Access, Allocate, Free, Launch, load_trace, simulate


@pytest.fixture(scope="module")
def graph():
    return lfr(3000, seed=3).graph


def accesses(trace, name, way, kernel):
    number = [array.name for array in trace.arrays].index(name)
    total = 0
    for step in trace.steps:
        if isinstance(step, Launch) and step.kernel == kernel:
            t = step.touches
            mine = (t.array == number) & (t.way == way)
            total += int((t.length * t.amount)[mine].sum())
    return total


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_a_recorder_follows_the_engine_and_changes_nothing(graph, method):
    recorder = Recorder(graph)
    seen = []

    def watch(event):
        recorder(event)
        if event.kind == "step" and event.phase == "aggregate" and method == "louvain":
            numbers = np.unique(recorder.labels, return_inverse=True)[1]
            seen.append(np.array_equal(numbers, event.step["numbers"]))

    run = lu.louvain if method == "louvain" else lu.leiden
    watched = run(graph, device="cpu", observer=watch)
    assert np.array_equal(watched.labels, run(graph, device="cpu").labels)
    assert all(seen)
    assert bool(seen) == (method == "louvain")


def test_every_visited_arc_is_counted():
    # Rows of eight arcs that begin at sectors: bytes are neither rounded nor shared.
    n = 2000
    v = np.arange(n)
    edges = [((v + step) % n) for step in (1, 2, 3, 4)]
    graph = lu.Graph.from_edges(np.tile(v, 4), np.concatenate(edges))
    trace = record(graph)
    result = lu.louvain(graph, device="cpu")
    visited = sum(level.arcs_visited for level in result.levels if level.vertices == n)
    cycles = decided = asked = woken_by = 0
    for step in trace.steps:
        if isinstance(step, Launch) and step.kernel == "move" and step.level == 0:
            names = np.array([array.name for array in trace.arrays])[step.touches.array]
            way, count = step.touches.way, step.touches.length * step.touches.amount
            proposed = int(count[(names == "proposed") & (way == Access.WRITE)].sum()) // 4
            degrees = int(count[(names == "degrees.0") & (way == Access.GATHER)].sum())
            cycles += step.iteration == 0
            asked, decided = asked + proposed, decided + degrees
            # Deciding reads a degree, moving one more; it activates neighbours, but not in the
            # first sweeps.
            if prunes(cycles == 1, step.iteration):
                woken_by += degrees - proposed
    assert asked == visited // 8
    arcs = accesses(trace, "targets.0", Access.READ, "move") // 4
    assert 0 < woken_by < decided - visited // 8
    assert arcs == visited + 8 * woken_by


def test_arrays_come_and_go(graph, tmp_path):
    trace = record(graph)
    assert trace.peak_bytes % (2 << 20) == 0
    whole = sum(-(-array.nbytes // 65536) * 65536 for array in trace.arrays)
    assert trace.peak_bytes <= -(-whole // (2 << 20)) * (2 << 20)
    alive = set()
    for step in trace.steps:
        if isinstance(step, Allocate):
            assert step.array not in alive
            alive.add(step.array)
        elif isinstance(step, Free):
            alive.discard(step.array)
    freed = {trace.arrays[step.array].name for step in trace.steps if isinstance(step, Free)}
    kept = {array.name for array in trace.arrays} - freed
    assert kept == {"offsets.0", "targets.0", "degrees.0"}
    trace.save(tmp_path / "t.npz")
    again = load_trace(tmp_path / "t.npz")
    assert again.peak_bytes == trace.peak_bytes
    assert simulate(again, record=False).costs == simulate(trace, record=False).costs


def test_a_profile_without_a_gpu_attributes_every_access(graph):
    session = profile(graph, device="cpu")
    figures = session.summary()
    assert set(figures["by_group"]) == {"graph", "hash", "community", "scratch"} - (
        set() if figures["by_group"].get("hash") else {"hash"}
    )
    access = session.events.where(Kind.ACCESS)
    assert access.any()
    assert (session.event_arrays()[access] >= 0).all()
    totals = sum(page.total for page in session.maps)
    assert totals == pytest.approx(figures["accesses"], rel=1e-3)
    names = {array.name for array in session.lifetimes}
    assert {page.array for page in session.maps} <= names
    assert all((np.diff(page.edges) > 0).all() for page in session.maps)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_hubs_use_tables_in_global_memory(method):
    hub, n = 3000, 6000
    ring = np.arange(n)
    u = np.concatenate([np.zeros(hub, np.int64), ring])
    v = np.concatenate([np.arange(1, hub + 1), (ring + 1) % n])
    trace = record(lu.Graph.from_edges(u, v), method=method)
    assert accesses(trace, "hub_keys", Access.ATOMIC, "move") >= hub
    assert ("refined" in {array.name for array in trace.arrays}) == (method == "leiden")
    assert simulate(trace, "p4000", record=False).seconds > 0


def test_weights_are_touched_where_there_are_any():
    plain = stencil([12, 12, 12]).graph
    weighted = lu.Graph(
        plain.offsets, plain.targets, np.full(plain.n_arcs, 3, np.uint32), plain.loops
    )
    trace = record(weighted)
    assert accesses(trace, "weights.0", Access.READ, "move") > 0
    assert "weights.0" not in {array.name for array in record(plain).arrays}


def test_counts_are_kept_and_evened_out_only_between_likes():
    from louvain_um.profiling.access.counting import note

    program = TraceWriter()
    program.given("labels", "community", 4, 8 * 1024)
    slots = Slots(program, [("labels", Access.GATHER), ("missing", Access.READ)])
    for page, amount in ((0, 10), (1, 7), (2, 100), (5, 1)):
        note(slots.counters, 0, 4096 * page, amount)
    note(slots.counters, 1, 0, 99)
    rows = slots.take()
    assert rows.first.tolist() == [0, 1, 2, 5]
    assert rows.amount.tolist() == [9, 8, 100, 1]
    assert len(slots.take()) == 0


def test_ranges_hold_one_item_at_least():
    assert cut_ranges(np.array([0, 5, 6, 7, 20, 21]), 0, 5, 8) == [(0, 3), (3, 4), (4, 5)]
    assert cut_ranges(np.array([0]), 0, 0, 8) == []


def test_hubs_queue_for_the_lengths_of_their_rows():
    from louvain_um.profiling.access.recorder import hub_rows

    kept = np.array([10, 4000, 3000, 20_000] + [0] * 40_000)
    arcs = 4 * kept
    at, queued = hub_rows(kept, arcs, 4, 0, len(kept))
    # Both at a time have no room: a table each, one after the other.
    assert at.tolist() == [0, 0]
    assert queued[0] == pytest.approx(1024 * (1 - (1 - 4000 / 32768) ** 32), rel=1e-3)
    assert len(hub_rows(kept, arcs, 4, 0, 1)[0]) == 0


def test_an_array_that_a_step_expects_and_there_is_not_stops_the_recording(graph):
    """Counting beyond the counters of an array once damaged the heap."""
    offsets, targets = np.asarray(graph.offsets), np.asarray(graph.targets)
    labels = np.zeros(graph.n_vertices, np.uint32)
    queue = np.arange(graph.n_vertices, dtype=np.uint32)
    for lacking in ("targets.0", "next_active"):
        program = TraceWriter()
        names = ("queue", "offsets.0", "degrees.0", "labels", "targets.0", "weights.0", "labels",
                 "totals", "hub_keys", "hub_sums", "proposed", "proposed", "labels", "totals",
                 "sizes", "next_active")  # fmt: skip
        for name in names:
            if name != lacking:
                program.begin(name, "graph", 8, len(targets))
        slots = Slots(program, [(name, Access.GATHER) for name in names])
        if lacking == "targets.0":
            rows, widths = counting.LevelArcs(offsets, targets), counting.Widths(0, 4)
            counting.count_decisions(
                slots.counters, widths, (1 << 30, 1), rows, labels, queue, 0, len(queue)
            )
        else:
            counting.note(slots.counters, counting.NEXT_ACTIVE, 1 << 40, 1)
        with pytest.raises(LouvainUmError, match=lacking):
            slots.take()
