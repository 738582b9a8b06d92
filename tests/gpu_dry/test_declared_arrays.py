"""The engine allocates what it declared; tested without a device.

The real engine runs on arrays that are addresses and kernels that do nothing; what it reads back
is recorded from the CPU engine, or made up from the levels of measured runs.
"""

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from louvain_um.core.objective import Sums
from louvain_um.errors import OptionError
from louvain_um.generators import GENERATORS
from louvain_um.gpu.aggregate import reaggregate
from louvain_um.gpu.aggregate.limits import LIMITS
from louvain_um.gpu.memory.shape import SMALL
from louvain_um.options import Options
from tests.gpu_dry.dry_device import Watched, run_dry
from tests.gpu_dry.dry_levels import made_up
from tests.gpu_dry.dry_script import recorded

pytestmark = pytest.mark.deep

TURNS = {
    *("first", "start_totals", "start_used", "parents"),
    *("aggregate", "aggregate_numbers", "aggregate_ranks", "through"),
    *("moving", "refining"),
}
"""Undeclared arrays: they fit where other arrays of their stage were freed."""

SIZES = [
    ("rmat24", "louvain", 16),
    ("rmat24", "louvain", 8),
    ("lfr24", "louvain", 16),
    ("lfr24", "louvain", 4),
    ("stencil150", "louvain", 1),
    ("rmat22", "leiden", 4),
    ("lfr22", "leiden", 4),
    ("lfr22", "leiden", 1),
    ("stencil150", "leiden", 1),
]
"""Runs measured on a device, and the factor by which they are scaled down."""

GRAPHS = {
    "rmat": lambda: GENERATORS["rmat"](scale=15).graph,
    "lfr": lambda: GENERATORS["lfr"](n=30_000).graph,
    "stencil": lambda: GENERATORS["stencil"](dims=(32, 32, 32)).graph,
    "weighted": lambda: GENERATORS["stencil"](dims=(32, 32, 32), weights="uniform").graph,
    "loops": lambda: with_loops(GENERATORS["stencil"](dims=(32, 32, 32)).graph),
}


def with_loops(graph):
    return replace(graph, loops=np.arange(graph.n_vertices, dtype=np.int64) % 3)


QUEUES = ("queue", "proposed", "weight_to_target", "sizes")


@cache
def scripted(name, method):
    graph = GRAPHS[name]()
    return graph, recorded(graph, Options(method=method, threads=2))


def room_of(array, plan):
    """The bytes of an array and its likes on coarse levels.

    Those of both regions for coarse levels, where they are adjacent; all tables for hubs.
    """
    if array.name.startswith("hub_"):
        return max(a.nbytes for a in plan.arrays if a.name in (array.name, "coarse_hubs"))
    stem, _, region = array.name.rpartition(".")
    both = [f"{stem}.{number}" for number in (1, 2)]
    if region not in ("1", "2") or not plan.in_core:
        return array.nbytes
    return sum(other.nbytes for other in plan.arrays if other.name in both)


def check_declared(plan, memory):
    """Every array is declared, in its group, and as large as it gets.

    In pages, that holds for what is known before the run. Queues are as long as there is room, and
    sizes take more bytes on coarse levels.
    """
    for (name, group), nbytes in memory.asked.items():
        declared = [a for a in plan.arrays if name == a.name or name.startswith(f"{a.name}.")]
        if declared:
            assert declared[0].group == group
            if not plan.in_pages or (declared[0].level == 0 and name == declared[0].name):
                most = room_of(declared[0], plan)
                if plan.in_pages and declared[0].name in QUEUES:
                    most = max(declared[0].itemsize, 4) * plan.work.vertices
                assert nbytes <= max(most, SMALL), name
        else:
            small = plan.in_pages or (".small." in name and nbytes <= 8 * (LIMITS.small + 1))
            assert small or name in TURNS or nbytes <= SMALL, name
    for group, most in plan.peak_bytes.items() if not plan.in_pages else ():
        assert memory.peak_bytes[group] <= most, group


@pytest.mark.parametrize(
    ("name", "method", "shrink", "budget"),
    [
        (*size, budget)
        for k, size in enumerate(SIZES)
        for budget in (None, *(("70%", "30%"), ("90%", "50%"))[k % 2])
    ],
)
def test_nothing_overflows_at_the_sizes_of_measured_runs(monkeypatch, name, method, shrink, budget):
    graph, script = made_up(name, method, shrink)
    options = Options(method=method, device_budget=budget)
    plan, memory = run_dry(monkeypatch, graph, script, options)
    assert plan.in_pages == (budget is not None)
    assert not memory.overflowed
    assert memory.late == 0
    assert plan.in_pages or not memory.spilled
    check_declared(plan, memory)
    if not plan.in_pages and (name, method, shrink) in SIZES[::4]:
        assert sum(plan.peak_bytes.values()) <= 1.05 * sum(memory.peak_bytes.values())


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_a_run_asks_for_what_was_declared(monkeypatch, name, method):
    graph, script = scripted(name, method)
    for budget in (None, "60%"):
        options = Options(method=method, device_budget=budget)
        plan, memory = run_dry(monkeypatch, graph, copy.deepcopy(script), options)
        assert not memory.overflowed
        assert plan.in_pages or not memory.spilled
        check_declared(plan, memory)


def test_level_two_takes_the_place_of_level_one(monkeypatch):
    graph, script = made_up("rmat24", "leiden", 8)
    plan, memory = run_dry(monkeypatch, graph, script, Options(method="leiden"))
    assert ("targets.1", "graph") in memory.asked
    assert ("targets.1.2", "graph") in memory.asked
    assert not memory.spilled
    check_declared(plan, memory)
    whole = sum(plan.peak_bytes.values())
    assert whole <= 1.05 * sum(memory.peak_bytes.values())
    assert whole <= 14 * graph.n_arcs + 80 * graph.n_vertices


def test_a_level_whose_place_was_taken_in_vain_is_made_once_more(monkeypatch):
    graph, script = scripted("rmat", "leiden")
    script = copy.deepcopy(script)
    assert script.steps[0].kept > reaggregate.REAGGREGATE_ABOVE * graph.n_arcs > LIMITS.small
    # The second level gains nothing: the cycle ends with the first, and is the last.
    del script.steps[2:], script.moves[2:]
    nothing = Sums(script.inside, script.squares, graph.n_vertices)
    script.sums = [script.sums[0], nothing, nothing]
    options = Options(method="leiden")
    made = list[str]()
    empty = Watched.empty

    def note(self, name, *args, **more):
        made.append(name)
        return empty(self, name, *args, **more)

    monkeypatch.setattr(Watched, "empty", note)
    plan, memory = run_dry(monkeypatch, graph, script, options)
    assert [name for name in made if name.startswith("targets.")] == [
        *("targets.0", "targets.1", "targets.1.2", "targets.1")
    ]
    assert not memory.spilled
    check_declared(plan, memory)


def test_blocks_that_come_and_go_take_what_was_declared(monkeypatch):
    graph, script = made_up("stencil150", "louvain")
    options = Options(memory="base", device_budget="80%")
    plan, memory = run_dry(monkeypatch, graph, script, options)
    assert plan.out_of_core
    assert memory.asked["block_starts", "scratch"] == 4 * (plan.launches + 1) > 8
    assert plan.to_dict()["launches"] == {"before": 2, "after": plan.launches}
    assert "targets.partial.1" in {name for name, _ in memory.asked}
    assert not memory.spilled
    check_declared(plan, memory)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_runs_by_the_extended_rule_ask_for_what_was_declared(monkeypatch, method):
    graph = GRAPHS["lfr"]()
    options = Options(
        method=method,
        objective="modularity",
        initial=np.arange(graph.n_vertices),
        fixed=np.arange(0, graph.n_vertices, 1000),
        max_size=5000,
        threads=2,
    )
    plan, memory = run_dry(monkeypatch, graph, recorded(graph, options), options)
    assert not plan.compact
    assert {("members", "community"), ("fixed", "community")} <= {
        (name.partition(".")[0], group) for name, group in memory.asked
    }
    assert not memory.spilled
    check_declared(plan, memory)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("name", ["lfr", "rmat", "weighted"])
@pytest.mark.parametrize(
    "held",
    [
        {"max_size": 1},
        {"max_size": 2},
        {"max_size": 3},
        {"max_size": 100},
        {"objective": "cpm", "resolution": 10.0},
        {"objective": "cpm", "resolution": 0.5},
        {"fixed": np.arange(0, 30_000, 2)},
    ],
    ids=lambda held: "-".join(map(str, held)) + str(held.get("max_size", held.get("resolution"))),
)
def test_communities_that_stay_small_have_room(monkeypatch, name, held, method):
    graph = GRAPHS[name]()
    options = Options(method=method, threads=2, **held)
    plan, memory = run_dry(monkeypatch, graph, recorded(graph, options), options)
    assert not memory.spilled
    assert not memory.overflowed
    check_declared(plan, memory)


@pytest.mark.parametrize(("memory", "budget"), [("auto", "70%"), ("auto", "55%"),
                                                ("zero_copy", "90%"), ("adv2", "90%")])  # fmt: skip
def test_runs_by_the_extended_rule_read_their_graph_in_place(monkeypatch, memory, budget):
    graph = GRAPHS["lfr"]()
    options = Options(threads=2, max_size=2, memory=memory, device_budget=budget)
    plan, watched = run_dry(monkeypatch, graph, recorded(graph, options), options)
    on_host = any(a.placement.kind in ("pinned", "host_mapped") for a in plan.layout)
    assert on_host or plan.in_pages
    assert not plan.out_of_core
    assert not watched.overflowed


def test_a_small_device_is_planned_for_what_modularity_keeps(monkeypatch):
    graph = GRAPHS["lfr"]()
    free = Options(threads=2, max_size=2)
    whole, _ = run_dry(monkeypatch, graph, recorded(graph, free), free)
    budget = int(0.7 * sum(whole.peak_bytes.values()))
    options = Options(threads=2, max_size=5000, memory="device", device_budget=budget)
    plan, _ = run_dry(monkeypatch, graph, recorded(graph, options), options)
    assert sum(plan.peak_bytes.values()) <= budget


def test_runs_by_the_extended_rule_need_their_graph_on_the_device(monkeypatch):
    graph, script = made_up("stencil150", "louvain")
    options = Options(memory="base", device_budget="80%", max_size=10)
    with pytest.raises(OptionError, match=r"vertex blocks.*memory='auto'"):
        run_dry(monkeypatch, graph, script, options)
