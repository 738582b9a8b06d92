"""Generated streams: replayable, and what they say they are."""

import numpy as np
import pytest

import louvain_um as lu
from louvain_um import DynamicGraph
from louvain_um.dynamic import scenarios
from louvain_um.dynamic.stores import STORES
from louvain_um.errors import OptionError
from louvain_um.generators import planted

BASE = planted(600, blocks=6, degree_in=10, degree_out=2, seed=3).graph

MADE = {
    "churn": lambda seed: scenarios.churn(BASE, batch=50, steps=8, seed=seed),
    "growth": lambda seed: scenarios.growth(BASE, steps=7, start=0.2, seed=seed),
    "rmat": lambda seed: scenarios.rmat(9, batch=300, steps=6, seed=seed),
    "vertices": lambda seed: scenarios.vertices(BASE, count=20, steps=6, seed=seed),
    "migrate": lambda seed: scenarios.planted(500, batch=10, steps=9, seed=seed),
    "merge": lambda seed: scenarios.planted(500, change="merge", batch=60, steps=9, seed=seed),
    "split": lambda seed: scenarios.planted(500, change="split", batch=60, steps=9, seed=seed),
    "grow": lambda seed: scenarios.planted(500, change="grow", batch=60, steps=9, seed=seed),
}


@pytest.mark.parametrize("name", MADE)
def test_a_scenario_replays_alike_on_every_store(name):
    scenario = MADE[name](1)
    digests = set()
    for store in STORES:
        g = DynamicGraph(scenario.initial, store=store)
        for step in scenario.steps():
            step.apply(g)
        g.check()
        digests.add(g.digest())
    assert len(digests) == 1
    first, other = next(scenario.steps()), next(MADE[name](2).steps())
    assert not all(
        np.array_equal(one, two) for one, two in zip(first.insert, other.insert, strict=True)
    )


def test_growth_ends_with_the_whole_graph():
    scenario = MADE["growth"](0)
    g = DynamicGraph(scenario.initial)
    sizes = [len(step.apply(g)) for step in scenario.steps()]
    assert sum(sizes) + scenario.initial.n_edges == BASE.n_edges
    assert g.digest() == DynamicGraph(BASE).digest()


@pytest.mark.parametrize(
    ("name", "before", "after"), [("merge", 16, 8), ("split", 16, 32), ("grow", 16, 16)]
)
def test_planted_communities_are_found_before_and_after(name, before, after):
    scenario = MADE[name](0)
    g = DynamicGraph(scenario.initial)
    steps = list(scenario.steps())
    for step in steps:
        step.apply(g)
    for graph, labels, count in (
        (scenario.initial, scenario.labels, before),
        (g.snapshot(), steps[-1].labels, after),
    ):
        assert len(np.unique(labels)) == count
        found = lu.leiden(graph, device="cpu").modularity
        assert lu.modularity(graph, labels) > 0.9 * found


@pytest.mark.parametrize(
    "make",
    [
        lambda: scenarios.churn(BASE, batch=0, steps=1),
        lambda: scenarios.growth(BASE, steps=1, start=2),
        lambda: scenarios.planted(5, communities=9),
        lambda: scenarios.planted(50, change="vanish"),
    ],
)
def test_bad_arguments_are_one_line(make):
    with pytest.raises(OptionError, match="must"):
        make()
