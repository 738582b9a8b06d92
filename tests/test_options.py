import pickle
from dataclasses import fields, replace
from inspect import signature
from typing import get_type_hints

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.options import Budget, Options, OptionValues, parse_bytes, parse_count


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("method", "lovain", "'louvain' or 'leiden'"),
        ("resolution", 0, "above 0"),
        ("resolution", float("nan"), "above 0"),
        ("resolution", "1", "must be a number"),
        ("resolution", True, "must be a number, not True"),
        ("threshold", -1e-9, "at least 0"),
        ("threshold", None, "must be a number"),
        ("max_level", 0, "at least 1"),
        ("max_level", 1.5, "whole number"),
        ("seed", -1, "seed must lie"),
        ("seed", 2**32, "seed must lie"),
        ("seed", None, "whole number"),
        ("seed", 1.5, "whole number"),
        ("seed", True, "whole number"),
        ("threads", 0, "threads must lie"),
        ("threads", 2.0, "whole number"),
        ("threads", True, "whole number"),
        ("device", "gpu", "'auto', 'cpu', 'cuda'"),
        ("device", None, "string"),
        ("device_budget", "much", "size"),
        ("device_budget", "0%", "above 0 %, like '70%'"),
        ("device_budget", "9" * 400, "size"),
        ("device_budget", 0.7, "like '70%'"),
        ("device_budget", 1.5, "like '70%'"),
        ("device_budget", "9" * 400 + "GiB", "share"),
        ("device_budget", "9" * 400 + "%", "at most 10¹¹ %"),
        ("ballast", "9" * 400, "size"),
    ],
)
def test_values_out_of_range_or_of_another_kind(name, value, said):
    with pytest.raises(OptionError, match=said) as caught:
        Options(**{name: value})
    assert (caught.value.option, caught.value.message("--x")[:3]) == (name, "--x")


def test_a_budget_without_a_unit_is_not_taken_for_a_few_bytes():
    with pytest.raises(OptionError, match=r"70% or 70MiB for device_budget .* or 70B"):
        Options(device_budget="70")
    assert Budget.parse("70B") == Budget.parse(70) == Budget(nbytes=70)
    assert Budget.parse("4096") == Budget(nbytes=4096)


@pytest.mark.parametrize("device", ["cpu", "cuda:0", "cuda:0,1"])
def test_a_device_that_is_proposed_is_not_the_peer(device):
    with pytest.raises(OptionError, match="use device='cuda:1'"):
        Options(device=device, peer_memory="cuda:0")


def test_an_error_of_an_option_can_be_sent_to_another_process():
    error = OptionError("radius", 3, "give degree or radius", problem="both are given")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.option) == ("both are given; give degree or radius", "radius")
    assert str(OptionError(remedy="give a graph")) == "give a graph"


def test_an_error_names_only_arrays_that_have_bytes():
    error = MemoryBudgetError(3000, 1000, [("loops", 0), ("rows", 1000), ("targets", 2000)])
    assert "(largest: targets 2.0 KiB, rows 1000 bytes);" in str(error)
    assert "largest" not in str(MemoryBudgetError(2, 1, [("loops", 0)]))


def test_a_maximum_size_beyond_all_graphs_is_no_limit():
    edges = ([0, 1, 2], [1, 2, 0])
    assert lu.louvain(edges, max_size=10**30, device="cpu").n_communities == 1


def test_a_plan_can_be_sent_to_another_process():
    plan = lu.plan(n_vertices=10**6, n_arcs=10**8, device_budget="50%", machine="h200")
    again = pickle.loads(pickle.dumps(plan))
    assert (again.placements, again.seconds) == (plan.placements, plan.seconds)
    assert again.verdict == plan.verdict


def test_numbers_of_numpy_are_numbers():
    options = Options(
        resolution=np.float32(0.5), seed=np.uint8(3), threads=np.int32(2), max_level=np.uint8(1)
    )
    found = (options.resolution, options.seed, options.threads, options.max_level)
    assert found == (0.5, 3, 2, 1)
    assert [type(value) for value in found] == [float, int, int, int]


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_labels_do_not_depend_on_the_type_of_a_number(method):
    ring = np.arange(60)
    graph = lu.Graph.from_edges(ring, (ring + 1) % 60)
    found = lu.api.run(graph, Options(method=method, seed=7, max_level=2, device="cpu"))
    narrow = Options(method=method, seed=np.uint8(7), max_level=np.uint8(2), device="cpu")
    np.testing.assert_array_equal(lu.api.run(graph, narrow).labels, found.labels)


def test_a_budget_is_parsed_once_and_resolved_to_bytes():
    assert Options().budget.resolve(1000) is None
    assert Options(device_budget="70%").budget == Budget(fraction=0.7)
    assert Options(device_budget="70%").budget.resolve(1000) == 700
    assert Options(device_budget="1kB").budget.resolve(10) == 1000
    half = replace(Options(device_budget=5), device_budget=Budget(fraction=0.5))
    assert half.budget.resolve(1) == 1  # never nothing


@pytest.mark.parametrize("function", [lu.louvain, lu.leiden, lu.profile, lu.Louvain.__init__])
def test_signatures_show_every_option_with_its_default(function):
    parameters = signature(function).parameters
    known = {item.name: item for item in fields(Options)}
    hints = get_type_hints(Options)
    assert get_type_hints(OptionValues) == {
        name: hints[name] for name in OptionValues.__annotations__
    }
    for name in OptionValues.__annotations__:
        default = "base" if function is lu.profile and name == "memory" else known[name].default
        assert (parameters[name].default, parameters[name].kind.name) == (default, "KEYWORD_ONLY")
    assert all(kind.kind.name != "VAR_KEYWORD" for kind in parameters.values())
    documented = lu.Louvain if function is lu.Louvain.__init__ else function
    assert all(f"{name} : " in (documented.__doc__ or "") for name in OptionValues.__annotations__)


def test_sizes_and_counts_have_units():
    assert [parse_bytes(text) for text in ("1.5GiB", "2kB", 7)] == [3 << 29, 2000, 7]
    assert [parse_count(text) for text in ("1.5M", "2e3", "1_000", 7)] == [1_500_000, 2000, 1000, 7]


def test_unknown_options_are_refused_as_by_any_function():
    graph = lu.Graph.from_edges([0], [1])
    for wrong in ({"sed": 1}, {"method": "leiden"}, {"ballast": "1GiB"}):
        with pytest.raises(TypeError, match=rf"louvain\(\) .*'{next(iter(wrong))}'"):
            lu.louvain(graph, **wrong)


SMALL = lu.Graph.from_edges([0, 1], [1, 2])


def test_lists_of_different_lengths_and_long_names_are_errors_of_ours():
    for call in (
        lambda: lu.Graph.from_edges([1, [2]], [1, 2]),
        lambda: lu.Graph.from_edges([1, 2], [2, 3], [1, [2]]),
        lambda: lu.louvain(SMALL, device="cpu", fixed=[1, [2]]),
        lambda: lu.read_graph("x" * 5000 + ".csv"),
    ):
        with pytest.raises(lu.LouvainUmError):
            call()
