import re
from dataclasses import replace

import pytest
from declared_cases import arrays, plan

import louvain_um as lu
from louvain_um.core.array_spec import peak_bytes
from louvain_um.core.ledger import GROUPS
from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.options import Budget
from louvain_um.placement.detection_plan import make_plan
from louvain_um.placement.layout import device_bytes_in_core
from louvain_um.placement.machine.profiles import H200, P4000
from louvain_um.placement.model.workload import Facts
from louvain_um.placement.policy.auto import DeclaredRun
from louvain_um.placement.policy.policy import POLICY_NAMES, Placement, Policy


def test_all_of_the_peak_is_enough_for_every_policy_as_it_is():
    for name in POLICY_NAMES:
        found = plan(name, "100%")
        assert not found.low_scratch
        assert not found.out_of_core


def test_peaks_add_up():
    found = plan()
    assert found.peak_bytes == peak_bytes(arrays())
    assert sum(found.peak_bytes.values()) == pytest.approx(found.device_bytes, rel=1e-4)


@pytest.mark.parametrize("name", ["base", "device", "adv3", "adv5", "zero_copy"])
def test_too_small_a_budget_is_refused_with_the_least_that_would_do(name):
    with pytest.raises(MemoryBudgetError) as caught:
        plan(name, "1%")
    error = caught.value
    assert error.budget == plan("adv1", "1%").budget
    assert any(f"for group {group}" in str(error) for group in GROUPS)
    assert "memory='auto'" in str(error)
    assert plan(name, error.needed).device_bytes <= error.needed
    with pytest.raises(MemoryBudgetError):
        plan(name, error.needed - 1)


def test_the_group_that_sets_the_least_is_named():
    with pytest.raises(MemoryBudgetError, match="group community"):
        plan("adv7", "1%")


@pytest.mark.parametrize("name", ["base", "adv4"])
def test_a_graph_that_pages_and_does_not_fit_comes_in_blocks(name):
    found = plan(name, "70%")
    assert set(found.out_of_core) == {"targets.0"}
    assert found.transfer_mode == "fault"
    assert found.blocks > 1
    assert found.seconds > plan(name, "100%").seconds
    assert "blocks" in found.reasons["graph"].sentence
    assert plan("base", "50%").blocks > plan("base", "80%").blocks


def test_prefetched_blocks_are_sent_for():
    policy = Policy(name="mine", placements={"graph": "prefetched"})
    found = plan(policy, "70%")
    assert found.transfer_mode == "prefetch"
    assert found.seconds < plan("base", "70%").seconds


def test_policies_of_users_are_planned_like_any_other(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[arrays]\n"targets.0" = "split(0.5)"\n')
    found = plan(str(path))
    assert found.policy == "mine"
    assert found.placements["graph"].kind == "split"
    assert not found.in_core


def test_terms_say_when_the_host_pays():
    """In core nothing belongs on the host; where the targets do not fit, they do."""
    assert all(reason.net > 0 for reason in plan().reasons.values())
    short = plan("auto", "30%").reasons
    assert short["graph"].net < 0
    assert short["community"].net > 0
    assert short["graph"].sigma > 0


def test_no_more_of_a_group_is_said_to_fit_than_it_ever_has():
    for percent in range(10, 100, 10):
        size = {"n_vertices": 1 << 24, "n_arcs": 650_000_000, "machine": "h200"}
        found = lu.plan(**size, device_budget=f"{percent}%")
        for group, reason in found.reasons.items():
            reported = re.search(r"([\d.,]+) (KiB|MiB|GiB) of the group fit", reason.sentence)
            if reported:
                unit = 1 << {"KiB": 10, "MiB": 20, "GiB": 30}[reported[2]]
                most = min(found.peak_bytes[group], found.limit)
                assert float(reported[1].replace(",", "")) * unit <= 1.05 * most


def test_the_cliff_is_where_a_graph_stops_to_fit():
    found = plan(at=lambda arcs: arrays(True, arcs=arcs))
    below, above = (
        arrays(True, arcs=found.cliff_arcs),
        arrays(True, arcs=found.cliff_arcs * 101 // 100),
    )
    need = [device_bytes_in_core(each, joint=True) for each in (below, above)]
    assert need[0] <= found.limit < need[1]
    assert plan().cliff_arcs == pytest.approx(found.cliff_arcs, rel=0.01)
    assert plan(budget="50%").cliff_arcs < 100_000_000 < plan(budget="100%").cliff_arcs * 1.01
    assert plan(machine=P4000).cliff_arcs < found.cliff_arcs


def test_a_device_with_less_than_the_budget_sets_the_limit():
    assert plan(free=1 << 29, budget="2GiB").limit == 1 << 29
    assert plan(free=1 << 40, budget="300MiB").limit == 300 << 20
    assert not plan(free=1 << 29).fits


def test_budgets_are_resolved_to_bytes_of_the_peak():
    peak = device_bytes_in_core(arrays(), separate=True)
    assert plan(budget=Budget(fraction=0.5)).budget == peak // 2
    assert plan(budget="50%").budget == peak // 2
    assert plan(budget=Budget(nbytes=peak // 3)).budget == peak // 3
    assert plan(budget=Budget()).budget is None
    for bad in ("0%", "lots", "-1", 0):
        with pytest.raises(OptionError):
            plan(budget=bad)


@pytest.mark.parametrize("arcs", [0, 1, 100])
@pytest.mark.parametrize("name", POLICY_NAMES)
def test_tiny_graphs_are_planned_too(name, arcs):
    tiny = DeclaredRun(arrays=lambda low_scratch: arrays(low_scratch, arcs=arcs, degree=1))
    found = make_plan(tiny, name, H200)
    assert found.seconds > 0
    assert found.to_dict()["fits"]


def test_leiden_is_recognised_by_its_refined_communities():
    from louvain_um.core.array_spec import ArraySpec, identity

    known = {"group": "community", "itemsize": 4, "size": 9, "stages": ("refine",)}
    refined = ArraySpec(**identity("refined"), **known)
    declared = DeclaredRun(arrays=lambda low_scratch: (*arrays(low_scratch), refined))
    found = make_plan(declared, "auto", H200, facts=Facts(skew=340))
    assert found.work.method == "leiden"
    assert found.seconds > plan().seconds
    assert replace(found.work, method="louvain").core["refine"] == 0


def test_names_of_the_packages_policies_are_taken():
    for name in ("auto", "base"):
        mine = Policy(name=name, placements={"graph": Placement("host_mapped")})
        with pytest.raises(OptionError, match=f"{name} comes with the package; choose another"):
            plan(mine)
    assert plan(Policy(name="mine", placements={"graph": Placement("host_mapped")})).fits


def test_what_is_too_small_is_named_budget_or_device():
    small = replace(H200, memory_bytes=1 << 30)
    for budget, remedy in (
        ("200MiB", "raise the budget to"), (None, "use a device with"), ("9GiB", "use a device"),
    ):  # fmt: skip
        with pytest.raises(MemoryBudgetError, match=remedy):
            plan("device", budget, machine=small)
    tiny = replace(H200, memory_bytes=300 << 20)
    for budget in ("200MiB", None):
        with pytest.raises(OptionError, match=r"300.0 MiB of .* of which a CUDA context"):
            plan("auto", budget, machine=tiny)


def test_a_pinned_group_is_reported_at_what_page_locked_memory_costs():
    def phi(kind):
        mine = Policy(name="mine", placements={"community": Placement(kind)})
        return plan(mine, machine=machine).reasons["community"].phi

    machine = replace(H200, pinned_reach_bytes=1 << 20)
    assert phi("pinned") > 2 * phi("host_mapped")
