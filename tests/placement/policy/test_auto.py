"""What `auto` chooses, and when it chooses anew."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from declared_cases import arrays, plan

import louvain_um as lu
from louvain_um.core.array_spec import STAGES, ArraySpec, identity
from louvain_um.core.ledger import GROUPS
from louvain_um.errors import MemoryBudgetError
from louvain_um.gpu.memory.shape import Shape
from louvain_um.options import Budget
from louvain_um.placement.detection_plan import make_plan
from louvain_um.placement.layout import JOINT_SLACK, device_bytes_in_core
from louvain_um.placement.machine.profiles import H200, P4000
from louvain_um.placement.model.forecast import OUTSIDE
from louvain_um.placement.model.workload import SearchCourse
from louvain_um.placement.policy.auto import DeclaredRun
from louvain_um.placement.policy.policy import POLICY_NAMES, Placement
from louvain_um.planning import plan_shape

OVERSUBSCRIBED = (0, 10, 30, 50, 70, 90)
SKEWS = (40, 340, 4000)


def test_with_room_for_everything_auto_is_plain_device_memory():
    found = plan()
    assert found.in_core
    assert found.fits
    assert not found.low_scratch
    assert {str(p) for p in found.placements.values()} == {"device"}
    assert {spec.name for spec in found.layout} == set(GROUPS)
    assert found.seconds == found.seconds_in_core
    assert found.budget is None
    assert "in core" in found.verdict


def test_scratch_shrinks_before_anything_leaves_the_device():
    found = plan(budget=device_bytes_in_core(arrays(True), joint=True))
    assert found.low_scratch
    assert found.in_core
    assert "as small as" in found.verdict


def packed(low_scratch=False):
    return tuple(
        replace(array, itemsize=3, by_length=True) if array.name == "targets.0" else array
        for array in arrays(low_scratch)
    )


def test_arcs_are_packed_before_scratch_shrinks_and_both_before_anything_leaves():
    tried = [(arrays(), {}), (packed(), {}), (arrays(True), {"joint": True})]
    for declared, how in (*tried, (packed(True), {"joint": True})):
        found = plan(budget=device_bytes_in_core(declared, **how), compact=packed)
        less = next(a for a in found.arrays if a.name == "targets.0").itemsize == 3
        assert found.compact == less == (declared in (packed(), packed(True)))
        assert found.low_scratch == bool(how)
        assert found.in_core
        assert any("targets 3.0 instead of 4" in note for note in found.notes) == less
        assert json.loads(json.dumps(found.to_dict()))["packed"] == less


def test_packed_arcs_cost_no_more_than_whole_ones_where_some_lie_on_the_host():
    least = device_bytes_in_core(packed(True), joint=True)
    for share in (0.9, 0.7, 0.5):
        found, whole = (plan(budget=int(share * least), **m) for m in ({"compact": packed}, {}))
        assert found.compact
        assert not whole.compact
        assert not found.in_core
        assert found.seconds <= whole.seconds


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_arcs_are_packed_where_much_is_expected_to_leave(method):
    shape = Shape(vertices=3_000_000, arcs=100_000_000, method=method, skew=2.0, max_degree=100)
    budgets = ("90%", "80%", "70%", "50%", "30%")
    found = [plan_shape(shape, "auto", Budget.parse(budget), "h200").compact for budget in budgets]
    assert found == [False, False, False, True, True]


def test_what_somebody_placed_is_not_packed():
    for name in POLICY_NAMES:
        if name != "auto":
            assert not plan(name, "100%", compact=packed).compact


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("machine", [H200, P4000], ids=lambda m: m.name)
@pytest.mark.parametrize("over", OVERSUBSCRIBED)
def test_auto_is_never_predicted_slower_than_a_policy_made_by_hand(over, machine, skew):
    budget = f"{100 - over}%"
    auto = plan("auto", budget, machine, skew=skew)
    assert auto.device_bytes <= auto.budget
    for name in POLICY_NAMES:
        try:
            by_hand = plan(name, budget, machine, skew=skew)
        except MemoryBudgetError:
            continue
        assert by_hand.device_bytes <= by_hand.budget
        assert auto.seconds <= by_hand.seconds


def kept(found):
    return found.chosen.placement_of("targets.0", "graph").on_device


def test_a_larger_budget_never_leaves_less_of_the_targets_on_the_device():
    budgets = [f"{percent}%" for percent in range(5, 101)]
    shares = [kept(plan("auto", budget)) for budget in budgets]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1
    assert len(set(shares)) > 20
    took = [plan("auto", budget).seconds for budget in budgets]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(took))


def test_what_is_read_at_random_leaves_last():
    found = plan("auto", "40%")
    assert found.placements["community"] == Placement("device")
    assert found.placements["hash"] == Placement("device")
    assert found.placements["graph"].kind == "split"
    assert 0.9 < found.device_bytes / found.budget <= 1


def test_every_array_can_be_asked_for():
    found = plan("auto", "40%")
    assert found.is_host_resident("targets.0")
    assert not found.is_host_resident("labels")
    assert plan("adv4").placement_of("labels") == Placement("host_mapped")
    assert plan("adv1").placement_of("control") == Placement("device")


def test_auto_can_always_run_on_what_kernels_wait_for():
    assert plan("auto", 4096).device_bytes == 4096
    with pytest.raises(MemoryBudgetError) as caught:
        plan("auto", 4095)
    least = caught.value.needed
    assert 4095 < least <= 4096 + 4096 // JOINT_SLACK
    assert plan("auto", least).device_bytes <= least
    assert "group scratch" in str(caught.value)


def test_measured_sweeps_may_change_the_choice():
    found = plan("auto", "60%", visited=4.0)
    again = found.corrected([100_000_000], 10 * found.stage_seconds["move"])
    assert again.seconds > 2 * found.seconds
    assert again.request is found.request
    assert again.work.core_scale > 2


def test_another_choice_in_the_middle_of_a_run_has_to_pay(monkeypatch):
    """Choosing takes time in which the device waits, and so does moving what is there."""
    chosen = []
    better, found = plan("auto", "90%"), plan("auto", "30%", visited=4.0)
    by_hand = plan("adv2", "50%")
    monkeypatch.setattr(
        "louvain_um.placement.detection_plan.plan_for", lambda *_: chosen.append(1) or better
    )
    slowly = [100_000_000], 10 * found.stage_seconds["move"]
    assert replace(found, planning_seconds=1e9).corrected(*slowly).layout == found.layout
    assert by_hand.corrected(*slowly).chosen == by_hand.chosen
    assert not chosen
    found = replace(found, planning_seconds=0.0)
    assert found.corrected(*slowly).layout == better.layout != found.layout
    reported = found.corrected(*slowly, choosing=False)
    assert reported.layout == found.layout
    assert reported.seconds > found.seconds
    crawling = replace(found.work, machine=replace(H200, prefetch_to_device=1.0))
    assert replace(found, work=crawling).corrected(*slowly).layout == found.layout
    assert len(chosen) == 2


def test_what_is_spent_can_be_won_no_more(monkeypatch):
    found = replace(plan("auto", "30%", visited=4.0), planning_seconds=0.0)
    core, remote = dict(found.expected.core), dict(found.expected.remote)
    core["move"] = remote["move"] = 0.0
    expected = replace(found.expected, core=core, remote=remote)
    better = replace(found, choice=replace(found.choice, expected=expected, like="x"))
    monkeypatch.setattr("louvain_um.placement.detection_plan.plan_for", lambda *_: better)
    arcs, seconds = found.work.visited * found.work.arcs, found.stage_seconds["move"]
    assert found.corrected([int(0.005 * arcs)] * 2, 0.01 * seconds).like == "x"
    assert found.corrected([int(arcs)], seconds).like == ""


@pytest.mark.parametrize(("times", "followed"), [(0.5, "other"), (1.5, "")])
def test_another_choice_for_a_search_is_compared_by_as_many_runs(monkeypatch, times, followed):
    found = replace(plan("auto", "30%", visited=4.0), planning_seconds=0.0)
    expected = found.expected.scaled(dict.fromkeys((*STAGES, *OUTSIDE), times))
    other = replace(found, choice=replace(found.choice, expected=expected, like="other"))
    monkeypatch.setattr("louvain_um.placement.detection_plan.plan_for", lambda *_: other)
    search = replace(found, course=SearchCourse(runs=8.0))
    visited = int(0.01 * found.work.visited * found.work.arcs)
    again = search.corrected([visited], 0.01 * found.stage_seconds["move"])
    assert again.like == followed
    assert again.runs == pytest.approx(8.0)


def test_what_is_not_there_all_the_time_leaves_whole_or_last():
    """Bytes of it that stay on the device cannot serve other arrays meanwhile."""
    size = {
        "n_vertices": 1 << 24,
        "n_arcs": 650_000_000,
        "kind": "community_structured",
        "machine": "h200",
    }
    for percent in range(15, 60, 5):
        found = lu.plan(**size, device_budget=f"{percent}%")
        on_host = found.chosen.arrays
        throughout = {a.name for a in found.arrays if set(a.stages) == set(STAGES)}
        split = [n for n, where in on_host.items() if where.kind == "split" and n not in throughout]
        assert len(split) <= 1, (percent, on_host)


def test_estimates_do_not_decide_where_bytes_go():
    """Whatever coarse levels are thought to keep, what is known is placed alike."""
    found = []
    for kind in ("mesh", "community_structured", "power_law", "unknown"):
        size = {"n_vertices": 1 << 24, "n_arcs": 650_000_000, "kind": kind, "machine": "h200"}
        plan = lu.plan(**size, device_budget="3GiB")
        assert plan.in_pages
        assert plan.pages.device <= plan.limit
        known = {array.name for array in plan.arrays if not array.estimated}
        assert set(plan.chosen.arrays) <= known
        found.append(plan.chosen.arrays.keys())
    assert all(each == found[0] for each in found)


def test_auto_says_whose_layout_it_took():
    """Of a tiny graph nothing is won by choosing array by array."""
    found = lu.plan(n_vertices=34, n_arcs=156, machine="h200", device_budget="40%")
    assert (found.policy, found.like) == ("auto", "adv9")
    assert "host_mapped, as in policy adv9" in found.reasons["graph"].sentence
    assert not lu.plan(n_vertices=34, n_arcs=156, machine="h200").like


def test_small_arrays_leave_before_large_ones_that_are_hot():
    found = lu.plan(n_vertices=200_000, n_arcs=200_000, machine="h200", device_budget="40%")
    assert found.seconds < 3 * found.seconds_in_core


def test_auto_takes_no_policys_layout_that_the_guard_refuses():
    """Blocks of managed memory: not where they exceed what is free, nor where there is none."""
    arrays = (ArraySpec(**identity("targets.0"), group="graph", itemsize=4, size=1 << 26,
                       stages=("load", "move"), accesses={("move", "stream"): 9e9}),)  # fmt: skip
    slow = replace(H200, remote_bandwidth=1.0, remote_random_rate=1.0, pinned_random_rate=1.0)
    for more in ({"free": 1 << 30}, {"free": 128 << 20}, {"free": 1 << 30, "managed": False}):
        found = make_plan(DeclaredRun(arrays=lambda _: arrays), "auto", slow, 100 << 20, **more)
        assert bool(found.out_of_core) == (more == {"free": 1 << 30}), more


def test_what_is_hot_in_several_stages_stays_where_others_can_leave_one_each():
    """Only `hot` lowers both peaks alone."""
    hot = ArraySpec(
        name="hot", group="community", itemsize=4, size=2 << 20, stages=("move", "aggregate"),
        accesses={("move", "gather"): 1 << 30, ("aggregate", "gather"): 1 << 30},
    )  # fmt: skip
    read = [
        ArraySpec(
            name=f"read by {stage}", group="community", itemsize=4, size=8 << 20, stages=(stage,),
            accesses={(stage, "stream"): 8 << 20},
        )
        for stage in ("move", "aggregate")
    ]  # fmt: skip
    found = make_plan(DeclaredRun(arrays=lambda _: (hot, *read)), "auto", H200, 36 << 20)
    assert {name: found.placement_of(name).on_device for name in ("hot", read[0].name)} == {
        "hot": 1, read[0].name: 0,
    }  # fmt: skip


@pytest.mark.parametrize(("method", "target_bytes"), [("louvain", 2.0), ("leiden", 3.0)])
def test_scratch_does_not_shrink_with_more_memory(method, target_bytes):
    """What pages waste is no reason to: only the input and the first stages need room at once."""
    size = {"vertices": 41_473_600, "arcs": 112_793_762, "max_degree": 4, "sum_bytes": 4}
    shape = Shape(**size, hub_arcs=0, clustering=0.0, method=method, target_bytes=target_bytes)
    limits = range(1 << 30, 4 << 30, 1 << 24)
    small = [plan_shape(shape, "auto", Budget(nbytes), "h200").low_scratch for nbytes in limits]
    assert small == sorted(small, reverse=True)
    assert not small[-1]
