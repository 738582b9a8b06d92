"""What algorithms on a device return depends neither on policies nor on budgets."""

from __future__ import annotations

import gc
from functools import cache
from typing import Any

import numpy as np
import pytest

from louvain_um import Graph
from louvain_um.errors import MemoryBudgetError
from louvain_um.gpu.runtime.device import Choice
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.policy.policy import Policy
from tests.gpu.algorithms.test_device_algorithms import LARGE, answers, calls

pytestmark = pytest.mark.gpu

POLICIES = ("auto", "device", "zero_copy", "base", "adv1", "adv2", "mixed")
BUDGETS = (None, "100%", "70%", "40%", "20%")


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("memory", POLICIES)
def test_results_do_not_depend_on_policy_and_budget(
    gpu: Choice, memory: str, budget: str | None
) -> None:
    policy = MIXED if memory == "mixed" else memory
    turn = POLICIES.index(memory) + BUDGETS.index(budget)
    for kind in ("weighted",) if turn % 2 else ("rmat", "path"):
        graph, source, expected = on_cpu(kind)
        for name, call in calls(source).items():
            how = {"device": "cuda", "memory": policy, "device_budget": budget}
            try:
                found = call(graph, **how)
            except MemoryBudgetError:
                # The control block alone exceeds a fifth of a short path's arrays.
                assert memory != "auto" or kind == "path"
                assert budget not in (None, "100%")
                continue
            for ours, theirs in zip(found, expected[name], strict=True):
                assert ours.dtype == theirs.dtype, name
                assert ours.tobytes() == theirs.tobytes(), name
    gc.collect()
    assert not guard.ranges


@cache
def on_cpu(kind: str) -> tuple[Graph, int, dict[str, Any]]:
    """Return a graph, a source, and the CPU's answers."""
    graph = LARGE[kind]()
    source = int(np.argmax(np.diff(graph.offsets)))
    return graph, source, answers(graph, source, device="cpu")


MIXED = Policy(
    name="mixed",
    roles={"targets": "split(0.5)", "offsets": "read_mostly", "shares": "pinned"},
    groups={"graph": "prefetched", "result": "host_mapped"},
    others="managed",
)
