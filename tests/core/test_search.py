"""Several runs for one result."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import louvain_um as lu
from louvain_um.core.hierarchy import search
from louvain_um.core.numbering import agreement
from louvain_um.options import Options
from louvain_um.results.communities import Communities

LABELS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30)


@given(LABELS)
def test_agreement_keeps_together_what_both_partitions_do(pairs):
    one, other = np.array(pairs, np.uint32).reshape(-1, 2).T
    assert agreement(one, other).tolist() == [pairs.index(pair) for pair in pairs]


def found(value, seed=0):
    """Return a result of a value."""
    return Communities(
        graph=None, labels=np.zeros(1, np.uint32), modularity=value,
        timings={"total": 1.0}, memory={"graph": seed}, provenance={"seed": seed},
    )  # fmt: skip


def test_the_first_of_equal_seeds_is_kept_with_the_time_of_all():
    values = {7: 0.3, 8: 0.4, 9: 0.4}
    best = search(lambda o: found(values[o.seed], o.seed), Options(seed=7, best_of=3))
    assert (best.modularity, best.provenance["seed"]) == (0.4, 8)
    assert best.timings == {"total": 3.0}
    assert best.memory == {"graph": 9}


def test_best_effort_combines_runs_that_have_no_effort_of_their_own():
    asked = []

    def run(options):
        asked.append(options)
        return found(len(asked) / 100)

    options = Options(effort="best", method="leiden", resolution=0.7, max_level=3)
    assert search(run, options).modularity == len(asked) / 100
    assert {each.effort for each in asked} <= {"default", "fast"}
    assert {(each.resolution, each.max_level) for each in asked} == {(0.7, 3)}
    assert len({each.seed for each in asked if each.initial is None}) > 3
    assert asked[-1].n_iterations == -1
    asked.clear()
    search(run, replace(options, n_iterations=5))
    assert asked[-1].n_iterations == 5


def test_more_iterations_find_no_worse_communities():
    graph = lu.read_graph("example:les-miserables")
    values = [lu.leiden(graph, device="cpu", n_iterations=n).value for n in (1, 2, 3, -1)]
    assert values == sorted(values)
    cycles = lu.leiden(graph, device="cpu", n_iterations=1).levels
    assert {level.cycle for level in cycles} == {0}


@pytest.mark.parametrize(
    "name", ["karate.mtx", "dolphins.mtx", "football.gml", "email-Eu-core.txt", "astro-ph.graph"]
)
def test_best_effort_is_no_worse_than_igraph_to_convergence(shared_data, name):
    igraph = pytest.importorskip("igraph")
    graph = lu.read_graph(shared_data / name, symmetrize=True)
    igraph.set_random_number_generator(random.Random(0))
    try:
        theirs = graph.to_igraph().community_leiden("modularity", n_iterations=-1)
    finally:
        igraph.set_random_number_generator(random)
    best = lu.leiden(graph, device="cpu", effort="best")
    assert best.modularity >= lu.modularity(graph, np.array(theirs.membership)) - 1e-9
