"""Which arcs are on the device at each level of a run with too little memory; without a device."""

import copy
from dataclasses import dataclass, field, replace

import pytest

from louvain_um.gpu.aggregate.coarse_rows import CoarseRows
from louvain_um.gpu.aggregate.kernel_arguments import Aggregation
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.relabel import relabel
from louvain_um.options import Options
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration.mover import Mover
from louvain_um.placement.migration.span import Span
from tests.gpu_dry.dry_device import Watched, run_dry
from tests.gpu_dry.dry_levels import kind_run, made_up, recorded_kinds, scale

pytestmark = pytest.mark.deep


@dataclass
class Watch:
    """What a mover did: pages of each level's arcs and of the input, once a step had begun."""

    begun: list[tuple[dict[str, tuple[int, int]], int]] = field(default_factory=list)
    of_cycles: list[int] = field(default_factory=list)
    most: int = 0
    made: int = 0


@pytest.fixture
def watch(monkeypatch):
    seen = Watch()
    begin, begin_cycle = Mover.begin, Mover.begin_cycle

    def count(room):
        here = sum(page.side == "device" for page in room.pool.made)
        seen.most = max(seen.most, here * room.pool.size)
        for span in (room.shared, *room.inputs, *room.rows, *room.looked_up):
            assert span.away == sum(page.side == "host" for page in span.mapped)
        assert room.pool.made_there == sum(page.side == "host" for page in room.pool.made)
        return sum(len(span.on("device")) for span in room.inputs)

    def begun(self, step, level, needs):
        begin(self, step, level, needs)
        of_input = count(self.room)
        spans = self.growth.spans(name for name in needs.arrays if name in self.allocations)
        pages = {s.spec.name: (len(s.on("device")), len(s.on("host"))) for s in spans}
        seen.begun.append((pages, of_input))

    def cycle_begun(self, least):
        begin_cycle(self, least)
        seen.of_cycles.append(count(self.room))
        assert self.shared.blocks.free >= least

    monkeypatch.setattr(Mover, "begin", begun)
    monkeypatch.setattr(Mover, "begin_cycle", cycle_begun)
    return seen


@pytest.mark.parametrize("budget", ["90%", "70%", "50%"])
@pytest.mark.parametrize(
    ("name", "method", "shrink"),
    [("rmat24", "louvain", 16), ("lfr24", "louvain", 16), ("rmat22", "leiden", 4)],
)
def test_a_level_is_on_the_device_while_anything_of_the_input_is(
    monkeypatch, watch, name, method, shrink, budget
):
    graph, script = made_up(name, method, shrink)
    plan, memory = run_dry(monkeypatch, graph, script, Options(method=method, device_budget=budget))
    assert plan.in_pages
    assert watch.most <= plan.limit
    assert not memory.overflowed
    assert memory.late == 0
    for pages, of_input in watch.begun:
        there = sum(host for _, host in pages.values())
        assert not there or not of_input
    # The input returns before each cycle, as much of it as before.
    assert len(set(watch.of_cycles)) == 1
    assert watch.of_cycles[0] > 0


def test_a_level_that_keeps_nearly_all_arcs_has_its_place(monkeypatch, watch):
    """A random graph: no table of kinds knows that level 1 keeps 90 % of the arcs."""
    graph, script = made_up("lfr22", "louvain", 4)
    kept = int(0.9 * graph.n_arcs)
    first, second, *rest = script.steps
    wide = {"uneven": 0.1, "isolated": 0}
    first, second = replace(first, kept=kept, **wide), replace(second, arcs=kept, **wide)
    script.steps = [first, second, *rest]
    for budget in ("90%", "70%", "50%", "30%"):
        watch.begun.clear()
        watch.of_cycles.clear()
        _, memory = run_dry(
            monkeypatch, graph, copy.deepcopy(script), Options(device_budget=budget)
        )
        assert not memory.overflowed
        pages, of_input = next(found for found in watch.begun if found[0])
        here = sum(device for device, _ in pages.values())
        there = sum(host for _, host in pages.values())
        # All of it, or else the device is full of it, without what it works with.
        assert there == 0 or (of_input == 0 and here > 0)
        if budget in ("90%", "70%"):
            assert there == 0
        # All but the pages that hold the communities to start from.
        assert watch.of_cycles[0] - watch.of_cycles[-1] <= 2


def test_no_kernel_writes_rows_to_the_host(monkeypatch):
    """New rows get device pages: what is final leaves them by copies, at ten times the rate."""
    graph, script = made_up("rmat22", "leiden", 4)
    written = list[tuple[str, int]]()
    left = list[str]()
    extend, put = Span.extend, Span.put

    def extended(self, sides):
        extend(self, sides)
        if self.spec.name.startswith(("targets.", "weights.")) and self.spec.name[-2:] != ".0":
            written.append((self.spec.name, sum(side == "host" for side in sides)))

    def moved(self, side, numbers, **more):
        put(self, side, numbers, **more)
        left.extend([self.spec.name] if side == "host" and not more.get("keep") else [])

    monkeypatch.setattr(Span, "extend", extended)
    monkeypatch.setattr(Span, "put", moved)
    for budget in ("70%", "50%", "30%"):
        written.clear()
        _, memory = run_dry(
            monkeypatch,
            graph,
            copy.deepcopy(script),
            Options(method="leiden", device_budget=budget),
        )
        assert not memory.overflowed
        assert written
        assert not [name for name, there in written if there]
    # There was too little memory for two levels: rows did go to the host.
    assert [name for name in left if name[-2:] != ".0"]


ROAD_BYTES = 2_140_000_000
"""What the arrays of a road-like grid of 37 M vertices took in core at once, measured."""

LEIDEN_BYTES = 2_530_000_000
"""The same of Leiden."""


@pytest.mark.parametrize("percent", [70, 50, 30])
def test_few_arcs_per_vertex_leave_what_is_looked_up_on_the_device(monkeypatch, watch, percent):
    shrink = 8
    graph, script = made_up("road", "louvain", shrink)
    budget = ROAD_BYTES // shrink * percent // 100
    plan, memory = run_dry(monkeypatch, graph, script, Options(device_budget=budget))
    assert plan.in_pages
    assert plan.compact
    assert watch.most <= plan.limit
    spans = {spec.name: spec for spec in plan.layout if spec.in_pages}
    assert spans["offsets.0"].kept
    assert not spans["targets.0"].kept
    # Flags are gone over once for each sub-round, labels and totals are looked up for each arc.
    hot = {"labels", "totals", "active", "next_active", "queue", "proposed"}
    on_host = {a.name for a in plan.arrays if plan.placement_of(a.name).on_device < 1}
    assert not hot & (on_host | set(memory.overflowed))
    # What level 1 looks up per vertex is there when its vertices begin to move.
    pages = next(pages for pages, _ in watch.begun if "targets.1" in pages)
    assert not any(pages[name][1] for name in ("offsets.1", "degrees.1") if name in pages)
    if percent > 30:
        assert pages["targets.1"][1] == 0
    if percent == 70:
        assert not memory.overflowed


@pytest.mark.parametrize("percent", [50, 30])
def test_refinement_leaves_what_it_looks_up_for_each_arc_on_the_device(monkeypatch, percent):
    """What is looked up once per vertex, or not at all, makes room for it."""
    shrink = 8
    graph, script = made_up("road", "leiden", shrink)
    on_host, away = set[str](), set[str]()
    free = RunMemory.free
    looked_up = {
        "refined_totals": ("labels", "refined", "refined_sizes", "queue"),
        "aggregate_members": ("refined", "aggregate_starts"),
    }

    def freed(self, *names):
        first_level = sum(x.startswith("refined.") for x in self.live) == 1
        for last in set(names) & set(looked_up) if first_level else ():
            stems = (*looked_up[last], last)
            on_host.update(x for x in self.live if x.split(".")[0] in stems and self.host_share(x))
            away.update(x for x in self.live if x == "totals" and self.host_share(x))
        free(self, *names)

    monkeypatch.setattr(RunMemory, "free", freed)
    budget = LEIDEN_BYTES // shrink * percent // 100
    plan, memory = run_dry(
        monkeypatch, graph, script, Options(method="leiden", device_budget=budget)
    )
    assert plan.in_pages
    assert not on_host
    assert not {"refined", "refined_totals", "aggregate_chunk_weights"} & set(memory.overflowed)
    assert bool(away) == (percent == 30)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_labels_of_finished_levels_leave_for_rows_and_are_back_before_they_are_read(
    monkeypatch, method
):
    shrink = 8
    graph, script = made_up("road" if method == "louvain" else "rmat24", method, shrink)
    left, read = set[str](), list[float]()
    begin, compose = Mover.begin, relabel.compose

    def begun(self, *given):
        begin(self, *given)
        memory = engines[-1].memory
        kept = [name for name in memory.live if name.startswith(("labels.0.", "refined.0."))]
        left.update(name for name in kept if memory.host_share(name))

    def composed(path, labels):
        memory = engines[-1].memory
        names = [memory.name_of(level.numbers) for level in path[:-1]]
        read.extend(memory.host_share(name) for name in names if name)
        compose(path, labels)

    engines = list[GpuEngine]()
    make = GpuEngine.__init__
    monkeypatch.setattr(GpuEngine, "__init__", lambda *a: engines.append(a[0]) or make(*a))
    monkeypatch.setattr(Mover, "begin", begun)
    monkeypatch.setattr(relabel, "compose", composed)
    budget = (ROAD_BYTES if method == "louvain" else 10 * ROAD_BYTES // 4) // shrink * 3 // 10
    _, memory = run_dry(monkeypatch, graph, script, Options(method=method, device_budget=budget))
    assert f"{'labels' if method == 'louvain' else 'refined'}.0.0" in left
    assert read
    assert not any(read)
    assert memory.late == 0


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("kind", ["chains", "road"])
def test_what_is_read_in_order_leaves_before_anything_overflows(monkeypatch, kind, method):
    """With two arcs per vertex, what is listed for each vertex is most of what a step takes."""
    shrink = 16
    scale(monkeypatch, shrink)
    graph, script = kind_run(kind, method, shrink)
    _, whole = run_dry(monkeypatch, graph, copy.deepcopy(script), Options(method=method))
    for percent in (50, 30):
        budget = whole.ledger.peak_total * percent // 100
        _, memory = run_dry(
            monkeypatch, graph, copy.deepcopy(script), Options(method=method, device_budget=budget)
        )
        assert not memory.overflowed
        assert memory.late == 0


def test_where_rows_begin_leaves_first_if_it_is_read_in_order_once(monkeypatch):
    """It is not brought back for that, and what is written in order takes none of its place."""
    shrink = 16
    scale(monkeypatch, shrink)
    graph, script = kind_run("chains", "leiden", shrink)
    _, whole = run_dry(monkeypatch, graph, copy.deepcopy(script), Options(method="leiden"))
    begin, hold = Mover.begin, Mover.hold
    grown, left = list[int](), list[tuple[int, int]]()

    def begun(self, step, level, needs):
        (begins,) = (span for span in self.room.inputs if span.spec.kept)
        before = begins.here
        begin(self, step, level, needs)
        grown.extend([begins.here - before] if needs.in_order else [])

    def held(self, name, *given, **how):
        (begins,) = (span for span in self.room.inputs if span.spec.kept)
        before = begins.here
        span = hold(self, name, *given, **how)
        if self.room.in_order:
            left.append((how["cold"], before - begins.here))
        return span

    monkeypatch.setattr(Mover, "begin", begun)
    monkeypatch.setattr(Mover, "hold", held)
    budget = whole.ledger.peak_total * 3 // 10
    run_dry(monkeypatch, graph, script, Options(method="leiden", device_budget=budget))
    assert grown
    assert max(grown) <= 0
    assert {pages for cold, pages in left if cold} == {0}


KINDS = sorted(dict.fromkeys(run["kind"] for run in recorded_kinds() if run["budget"] is None))


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_in_core_takes_16_bytes_an_arc_and_80_a_vertex(monkeypatch, kind, method):
    """All that is reserved, at any one time. Weights come on top: four bytes of the input's, and
    three more than one of level 1's."""
    shrink = 16
    scale(monkeypatch, shrink)
    graph, script = kind_run(kind, method, shrink)
    held, most = Watched.empty, []

    def watched(self, *args, **more):
        array = held(self, *args, **more)
        most.append(self.arenas.resident_bytes)
        return array

    monkeypatch.setattr(Watched, "empty", watched)
    plan, _ = run_dry(monkeypatch, graph, script, Options(method=method))
    assert plan.in_core
    more = 0 if graph.weights is None else 7
    assert max(most) <= (16 + more) * graph.n_arcs + 80 * graph.n_vertices


@pytest.mark.parametrize(("percent", "fewer"), [(90, True), (30, False)])
def test_chunks_are_larger_where_memory_would_lie_idle(monkeypatch, percent, fewer):
    """What new rows will take is estimated: there is room for these and for larger chunks."""
    scale(monkeypatch, 16)
    graph, script = kind_run("lfr_mixing_2", "leiden", 16)
    _, whole = run_dry(monkeypatch, graph, copy.deepcopy(script), Options(method="leiden"))
    laid_out, cut = list[tuple[int, float]](), list[tuple[int, bool]]()
    lay_out, cut_rows = Aggregation.lay_out, CoarseRows.cut

    def count(self, limits):
        state = lay_out(self, limits)
        few = self.level.arcs / self.chunk_within(limits)
        laid_out.append((len(set(state["bounds"].tolist())) - 1, few))
        return state

    def watch(self, arcs):
        cut.append((arcs, self.targets24))
        return cut_rows(self, arcs)

    monkeypatch.setattr(Aggregation, "lay_out", count)
    monkeypatch.setattr(CoarseRows, "cut", watch)
    budget = whole.ledger.peak_total * percent // 100
    _, memory = run_dry(monkeypatch, graph, script, Options(method="leiden", device_budget=budget))
    chunks, least = laid_out[0]
    assert (chunks < 0.7 * least) == fewer
    # As all rows have room, their targets are whole.
    assert cut[0][1] != fewer
    assert not any(name.startswith("aggregate_chunk") for name in memory.overflowed)
