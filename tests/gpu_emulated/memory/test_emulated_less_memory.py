"""The engine with too little memory for its graph: what leaves the device, and when."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from louvain_um.core import hierarchy, rules
from louvain_um.core.hierarchy import detect
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.generators import rmat, stencil
from louvain_um.gpu import preparation
from louvain_um.gpu.aggregate import kernel_arguments, limits, reaggregate
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory import level_room
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.placement import layout
from louvain_um.placement.detection_plan import Plan
from louvain_um.placement.layout import device_bytes
from louvain_um.placement.memory import arena as free_list
from louvain_um.placement.memory import arenas, cuda_calls
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration import pages
from louvain_um.placement.migration.mover import Mover, RowGrowth
from louvain_um.placement.migration.span import Span
from louvain_um.placement.policy import auto
from tests.gpu_emulated.emulated_engine import emulated_devices
from tests.gpu_emulated.memory.less_memory import GRAPHS, as_if_larger, squeezed

pytestmark = pytest.mark.deep


@pytest.mark.parametrize(
    ("name", "method", "budget"),
    [("lfr", "leiden", "25%"), ("mesh", "louvain", "30%"), ("mesh", "leiden", "45%")],
)
def test_labels_do_not_depend_on_when_copies_end(
    monkeypatch, detected, name, method,
    budget,
):  # fmt: skip
    graph = GRAPHS[name]()
    options = squeezed(monkeypatch, method, budget)
    copied = Counter[str]()
    run = detected(graph, options, devices=2, late=True).run
    assert run.memory.mover
    copied.update(run.memory.mover.copied)
    assert copied["device"]
    assert copied["host"]


@pytest.mark.parametrize("always", [False, True])
def test_a_level_is_made_from_the_input_where_two_do_not_fit(monkeypatch, detected, always):
    graph = rmat(11 if always else 9, seed=3).graph
    plain = Options(method="leiden", seed=3)
    as_if_larger(monkeypatch)
    if always:
        # Smaller levels, too, and one that has to be made again, as level 3 is lost.
        monkeypatch.setattr(reaggregate, "REAGGREGATE_ABOVE", 0)
        monkeypatch.setattr(reaggregate.FromInput, "wanted", reaggregate.FromInput.gives_way)
        quality, calls, runs = (
            hierarchy.LevelLoop.quality,
            Counter[int](),
            list[hierarchy.LevelLoop](),
        )

        def lost(run, level):
            runs.append(run)  # so that none has the number of one that is gone
            calls[id(run)] += 1
            value, communities = quality(run, level)
            return (-1.0 if calls[id(run)] == 4 else value), communities

        monkeypatch.setattr(hierarchy.LevelLoop, "quality", lost)
    made = {"from_input": [], "restore": []}

    def watched(name, real):
        def watching(*given):
            made[name].append(given[2].number)
            return real(*given)

        return watching

    for name in made:
        monkeypatch.setattr(reaggregate, name, watched(name, getattr(reaggregate, name)))
    options = replace(plain, device="cuda:0", peer_memory="cuda:1", device_budget="45%")
    run = detected(graph, options, devices=2).run
    assert run.plan.in_pages
    assert set(made["from_input"]) == ({1, 2, 3} if always else {1})
    assert made["restore"] == ([2] if always else [])


@pytest.mark.parametrize("budget", [None, "60%"])
def test_a_plan_is_corrected_while_level_1_moves_where_no_layout_follows(
    monkeypatch, emulated, budget
):
    graph = GRAPHS["mesh"]()
    as_if_larger(monkeypatch)
    options = Options(device="cuda:0", peer_memory="cuda:1", device_budget=budget, seed=3)
    corrected, real = list[list[str]](), Plan.corrected

    def correcting(plan, *given, choosing):
        assert not choosing
        corrected.append([kernel for _, kernel in kernels.launched])
        return real(plan, *given, choosing=choosing)

    monkeypatch.setattr(Plan, "corrected", correcting)
    with emulated_devices(monkeypatch, emulated, 2) as kernels, GpuEngine(options, ignore) as run:
        plans, path = list[Plan](), list[GpuLevel]()
        level = run.load(graph)
        for _ in range(2):
            plans.append(run.plan)
            run.move(level)
            path.append(level)
            level = run.aggregate(level)
        assert run.plan is plans[0] is plans[1]
        assert bool(run.memory.mover) == (budget is not None)
        assert run.followed.corrected
    (launched,) = corrected
    assert launched[-1] == "move"
    assert launched.count("move") == 2


@pytest.mark.parametrize("room", [True, False])
@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_levels_are_launched_early_where_no_page_changes_sides_for_it(
    monkeypatch, emulated, method, room
):
    graph = GRAPHS["mesh"]()
    options = squeezed(monkeypatch, method, "60%")
    one = detect(CpuEngine(options, ignore), graph, options, ignore)
    waits, taken, begun = list[str](), list[int](), list[list[str]]()
    synchronize, empty, use_move_time = (
        cuda_calls.synchronize,
        RunMemory.empty,
        GpuEngine.use_move_time,
    )

    def waiting():
        waits.append("synchronize")
        synchronize()

    def taking(memory, *given, **how):
        array = empty(memory, *given, **how)
        taken.append(free_list.rounded(array.nbytes))
        return array

    def going(run, level):
        before = len(kernels.launched), len(waits), len(taken)
        use_move_time(run, level)
        begun.append([kernel for _, kernel in kernels.launched[before[0] :]])
        assert len(waits) == before[1]
        assert sum(taken[before[2] :]) <= level_room.early_bytes(level, leiden=method == "leiden")
        small = level.arcs <= run.run.limits.small
        # Of a larger level, the aggregation only begins.
        steps = ["refine"] if method == "leiden" else []
        steps += ["aggregate_small"] if small else ["number_labels"]
        steps += ["relabel_communities"] if small and method == "leiden" else []
        assert begun[-1] in ([], steps)
        assert bool(begun[-1]) >= (room and level.number > 0 and small)
        assert bool(begun[-1]) <= room

    monkeypatch.setattr(cuda_calls, "synchronize", waiting)
    monkeypatch.setattr(RunMemory, "empty", taking)
    monkeypatch.setattr(GpuEngine, "use_move_time", going)
    if not room:
        monkeypatch.setattr(Mover, "largest_gap", 0)
    with (
        emulated_devices(monkeypatch, emulated, 2, late=True) as kernels,
        GpuEngine(options, ignore) as run,
    ):
        found = detect(run, graph, options, ignore)
        assert run.plan.in_pages
        assert "labels" in run.memory.live
        assert all(name == "labels" or name.endswith(".0") for name in run.memory.live)
    assert np.array_equal(found.labels, one.labels)
    if method == "louvain":  # Leiden's level 1 has no room in one gap
        assert any("number_labels" in each for each in begun) == room
    small = [level for level in found.levels if level.arcs <= 1 << 10]
    launched = [kernel for _, kernel in kernels.launched]
    # The last level of each cycle, too, of which nothing comes.
    most = launched.count("aggregate_small")
    assert (most > len(small)) if room else (most == len(small) > 0)


def test_levels_that_keep_nearly_all_arcs_take_each_others_place(monkeypatch, detected):
    """A random graph in core: besides the input there is never more than one such level."""
    monkeypatch.setattr(rules, "MOST_KEPT", 1.0)  # each level is refined
    ends = np.random.default_rng(1).integers(0, 1 << 12, (2, 1 << 15))
    graph = Graph.from_edges(*ends, n_vertices=1 << 12)
    plain = Options(method="leiden", seed=3)
    as_if_larger(monkeypatch)
    made, real = list[int](), reaggregate.from_input

    def watching(*given):
        made.append(given[2].number)
        return real(*given)

    monkeypatch.setattr(reaggregate, "from_input", watching)
    options = replace(plain, device="cuda:0")
    run = detected(graph, options).run
    assert run.plan.in_core
    assert not run.memory.overflowed
    assert {1, 2} <= set(made)


def test_an_array_that_does_not_fit_whole_takes_pages_of_both_sides(monkeypatch, detected):
    graph = stencil((90, 90)).graph
    options = squeezed(monkeypatch, "leiden", "13%")
    for module in (layout, auto):
        monkeypatch.setattr(module, "BLOCK", pages.LEAST_PAGE)
    taken = list[tuple[int, int, bool]]()
    real = RunMemory.empty

    def empty(memory, name, *given, **how):
        array = real(memory, name, *given, **how)
        span = memory.allocations[name].arena
        if name == "refined_totals" and isinstance(span, Span):
            sides = len(span.on("device")), len(span.on("host"))
            taken.append((*sides, name in memory.overflowed))
        return array

    monkeypatch.setattr(RunMemory, "empty", empty)
    plan = detected(graph, options, devices=2).run.plan
    planned = plan.placement_of("refined_totals")
    assert 0 < planned.on_device < 1
    (spec,) = (s for s in plan.layout if s.name == "refined_totals")
    assert spec.on_demand
    reported = {arena["name"]: arena["on_demand"] for arena in plan.to_dict()["layout"]}
    assert reported["refined_totals"]
    assert not reported["targets.0"]
    here, there, unplanned = taken[0]
    assert here == device_bytes(planned, spec.capacity) // plan_page(plan)
    assert there == -(-spec.capacity // plan_page(plan)) - here
    assert not unplanned
    # What libraries sort or copy when labels are fetched never is, nor is anything in name only.
    split = [s for s in plan.layout if s.on_demand]
    fetched = {array.name for array in plan.arrays if "fetch" in array.stages}
    assert not any(s.name in fetched or s.placement.fraction >= 1 for s in split)
    # Nor does it take anything of other stages: labels and totals are on the device.
    assert plan.placement_of("labels").on_device == plan.placement_of("totals").on_device == 1


def test_what_would_be_split_lies_beyond_a_device_without_pages(monkeypatch, detected):
    graph = stencil((90, 90)).graph
    options = squeezed(monkeypatch, "leiden", "13%")
    for module in (layout, auto):
        monkeypatch.setattr(module, "BLOCK", pages.LEAST_PAGE)
    monkeypatch.setattr(layout, "SLACK", 512)
    monkeypatch.setattr(arenas, "supported", lambda device: False)
    run = detected(graph, options, devices=2).run
    assert any(spec.on_demand for spec in run.plan.layout)
    assert run.memory.mover is None
    assert run.memory.arenas.resident_bytes <= run.plan.limit


def plan_page(plan):
    assert plan.pages
    return pages.page_bytes(plan.pages.device)


def test_rows_grow_while_a_kernel_fills_them(monkeypatch, detected):
    ends = np.random.default_rng(1).integers(0, 1 << 10, (2, 1 << 14))
    graph = Graph.from_edges(*ends, n_vertices=1 << 10)
    options = squeezed(monkeypatch, "leiden", "25%")
    monkeypatch.setattr(preparation, "LIMITS", replace(preparation.LIMITS, chunk=1 << 10))
    monkeypatch.setattr(limits, "LOW_SCRATCH", replace(limits.LOW_SCRATCH, chunk=1 << 10))
    monkeypatch.setattr(kernel_arguments, "LEAST_ROWS", 1 << 8)
    grown, real = list[float](), RowGrowth.leave

    def leave(growth, names, nbytes):
        found = real(growth, names, nbytes)
        if found:
            span = growth.spans(names)[0]
            grown.append(span.away / len(span.mapped))
        return found

    monkeypatch.setattr(RowGrowth, "leave", leave)
    detected(graph, options, devices=2, late=True)
    # Where the input leaves for them, and where they leave themselves.
    assert min(grown) == 0 < max(grown)


@pytest.mark.parametrize("room", [True, False])
def test_few_arcs_of_many_vertices_take_one_launch_where_a_gap_holds_it(
    monkeypatch, detected, room
):
    cliques, inside = np.arange(0, 2400, 12), np.array(np.triu_indices(12, 1))
    ends = (cliques[:, None, None] + inside).transpose(1, 0, 2).reshape(2, -1)
    ring = np.stack([cliques, np.roll(cliques, 1) + 1])
    # Most vertices have no arcs.
    graph = Graph.from_edges(*np.concatenate([ends, ring], axis=1), n_vertices=1 << 12)
    options = squeezed(monkeypatch, "louvain", "90%")
    if not room:
        monkeypatch.setattr(Mover, "largest_gap", 0)
    there = detected(graph, options, devices=2)
    assert there.run.plan.in_pages
    few = [level for level in there.found.levels if level.arcs <= 1 << 10 < level.vertices]
    assert few
    assert (there.launched.count("aggregate_small") > 0) == room
