"""Labels depend neither on placements nor on budgets."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.api import run
from louvain_um.errors import MemoryBudgetError
from louvain_um.generators import lfr, rmat
from louvain_um.options import Options
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.guard import MARGIN, guard
from louvain_um.placement.migration.pages import KEPT, kept_bytes, release_kept
from louvain_um.placement.policy.policy import POLICY_NAMES, Placement, Policy

pytestmark = pytest.mark.gpu

BUDGETS = (None, "90%", "70%", "50%", "30%")
RUNS = (("lfr", "louvain"), ("rmat", "louvain"), ("weighted", "louvain"), ("rmat", "leiden"))

CASES = [
    (*RUNS[(i + j) % len(RUNS)], policy, budget)
    for i, policy in enumerate(POLICY_NAMES)
    for j, budget in enumerate(BUDGETS)
]
"""Every policy under every budget; each policy, and each budget, with every graph and method."""


@cache
def graph(name, smaller=0):
    """Return a graph whose arcs take several of the driver's blocks, or a smaller one."""
    made = {
        "lfr": lambda: lfr(1 << 17 - smaller, seed=3),
        "rmat": lambda: rmat(16 - smaller, seed=3),
        "weighted": lambda: rmat(16 - smaller, weights="uniform", seed=3),
    }
    return made[name]().graph


@cache
def expected(name, method, smaller=0):
    return getattr(lu, method)(graph(name, smaller), device="cpu")


def attempt(graph, method, policy, budget):
    try:
        found = getattr(lu, method)(graph, device="cuda", memory=policy, device_budget=budget)
    except MemoryBudgetError as error:
        return None, error
    return found, None


@pytest.mark.parametrize(("name", "method", "policy", "budget"), CASES)
def test_labels_under_every_policy_and_budget(gpu, name, method, policy, budget):
    # Tables read and written over the bus take many times as long.
    smaller = 3 if policy == "adv1" else 0
    want = expected(name, method, smaller)
    found, refused = attempt(graph(name, smaller), method, policy, budget)
    if refused:
        assert budget is not None, refused
        assert refused.needed > refused.budget
        assert policy not in ("auto", "adv1") or budget == "30%"
        return
    np.testing.assert_array_equal(found.labels, want.labels)
    assert found.modularity == want.modularity
    assert found.provenance["policy"] == policy
    if budget is not None:
        assert found.provenance["budget_bytes"] > 0


def test_a_run_takes_the_pages_of_the_one_before(gpu):
    release_kept()
    for name in ("lfr", "weighted", "lfr"):
        found, refused = attempt(graph(name), "leiden", "auto", "50%")
        assert refused is None
        np.testing.assert_array_equal(found.labels, expected(name, "leiden").labels)
        assert KEPT[0].pages
    before = kept_bytes()
    found, _ = attempt(graph("lfr"), "leiden", "auto", "50%")
    np.testing.assert_array_equal(found.labels, expected("lfr", "leiden").labels)
    assert kept_bytes() == before
    release_kept()
    assert not KEPT


@pytest.mark.parametrize("kind", ["prefetched", "pinned", "managed"])
def test_labels_when_blocks_come_and_go(gpu, kind):
    blocks = Policy(
        name=f"blocks-{kind}",
        placements=dict.fromkeys(("hash", "community", "scratch"), Placement("device"))
        | {"graph": Placement(kind)},
    )
    # Leiden's arcs merged twice take more room than blocks would save: it fits, or is refused.
    for method, budget in (("louvain", "55%"), ("leiden", "75%")):
        found = getattr(lu, method)(
            graph("lfr"), device="cuda", memory=blocks, device_budget=budget
        )
        np.testing.assert_array_equal(found.labels, expected("lfr", method).labels)
        if (kind, method) == ("prefetched", "louvain"):
            assert found.provenance["traffic_bytes"]["to_device"] > 4 * graph("lfr").n_arcs
        if kind != "pinned" and method == "louvain":
            launches = found.provenance["launches"]
            assert launches["after"] > launches["before"] == 2


@pytest.mark.parametrize("percent", [60, 45])
@pytest.mark.parametrize(
    ("name", "method"), [("lfr", "louvain"), ("weighted", "louvain"), ("rmat", "leiden")]
)
def test_auto_on_a_device_that_is_really_too_small(gpu, monkeypatch, name, method, percent):
    """Without a budget: what is free is all there is, and managed memory would exceed it."""
    made = graph(name)
    whole = lu.plan(made, method=method, machine="h200").device_in_core
    total = cuda_calls.free_memory()[1]
    monkeypatch.setattr(cuda_calls, "free_memory", lambda: (MARGIN + whole * percent // 100, total))

    def never(name, nbytes, device):
        raise MemoryBudgetError(nbytes, 0, [(name, nbytes)])

    monkeypatch.setattr(guard, "managed", never)
    found = getattr(lu, method)(made, device="cuda")
    np.testing.assert_array_equal(found.labels, expected(name, method).labels)
    budget = found.provenance["plan"]["device_bytes"]
    assert budget <= whole * percent // 100
    assert sum(found.memory.values()) > 0


@pytest.mark.alone
@pytest.mark.parametrize("policy", ["base", "adv7"])
def test_ballast_that_would_make_the_driver_evict_is_refused(gpu, policy, monkeypatch):
    with cuda_calls.current(gpu.index):
        found = cuda_calls.reclaimed_memory()
        # Other processes of the tests may give memory back meanwhile.
        monkeypatch.setattr(cuda_calls, "free_memory", lambda: found)
        room = guard.room(gpu.index)
    options = Options(device="cuda", memory=policy, ballast=room)
    with pytest.raises(MemoryBudgetError, match="hang the GPU") as caught:
        run(graph("rmat"), options)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    small = replace(options, ballast=64 << 20)
    np.testing.assert_array_equal(
        run(graph("rmat"), small).labels, expected("rmat", "louvain").labels
    )
