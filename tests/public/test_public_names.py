"""Public names: documented, with examples that run, and types that are checked."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import louvain_um
import louvain_um as lu
from louvain_um.algorithms.programs import program_of
from louvain_um.dynamic.stores import STORES
from louvain_um.errors import GraphError, OptionError

PUBLIC = """
import louvain_um as lu
lu.Graph, lu.louvain, lu.plan, lu.profile
import louvain_um.placement, louvain_um.formats
print(*(name for name in dir(lu) if not name.startswith("__")))
"""


def test_completion_offers_public_names_only():
    done = subprocess.run([sys.executable, "-c", PUBLIC], capture_output=True, text=True)
    assert done.stdout.split() == sorted(lu.__all__), done.stderr


def test_every_public_name_is_there_and_documented():
    assert "__version__" in dir(lu)
    for name in lu.__all__:
        assert getattr(lu, name).__doc__, name


def test_packages_that_the_guide_names_need_no_import_of_their_own():
    code = "import louvain_um as lu; print(*lu.dynamic.stores.STORES, lu.generators.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == [*STORES, "louvain_um.generators"], done.stderr


ROOT = Path(louvain_um.__file__).parent
FOLDERS = [each for each in ROOT.iterdir() if each.is_dir()]  # ** follows no links
MODULES = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted({*ROOT.glob("*.py"), *(p for each in FOLDERS for p in each.rglob("*.py"))})
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
]


def test_every_package_has_examples():
    assert {"placement", "profiling", "formats"} <= {name.split(".")[1] for name in MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(
        module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert tried
    assert not failed


EDGE = [0], [1]
GRAPH = lu.Graph.from_edges(*EDGE)


@pytest.mark.parametrize("kind", ["no", None, 1, ["signed"], np.arange(2)])
def test_a_kind_that_no_graph_has(kind):
    with pytest.raises(GraphError, match="kind must be one of 'undirected'"):
        lu.Graph.from_edges(*EDGE, kind=kind)
    rows = GRAPH.offsets, GRAPH.targets, GRAPH.weights, GRAPH.loops
    with pytest.raises(GraphError, match="kind must be one of 'undirected'"):
        lu.Graph(*rows, kind=kind)


@pytest.mark.parametrize("fixed", [3, 1.5, "0", b"0", True, object(), {0: False}])
def test_fixed_vertices_are_a_list(fixed):
    with pytest.raises(OptionError, match="fixed must be a list of vertices"):
        lu.louvain(GRAPH, fixed=fixed, device="cpu")


@pytest.mark.parametrize("value", ["no", "", 2, [], np.arange(2)])
def test_switches_are_true_or_false(value):
    found = lu.louvain(GRAPH, device="cpu")
    for call in (
        lambda: lu.Graph.from_edges(*EDGE, allow_rounding=value),
        lambda: found.to_frame(levels=value),
        lambda: found.to_frame(hierarchy=value),
        lambda: lu.resolution_profile(GRAPH, warm_starts=value, device="cpu"),
        lambda: lu.Placer(feedback=value),
    ):
        with pytest.raises(OptionError, match="must be True or False"):
            call()
    for switch in (True, np.True_, 1):
        assert len(found.to_frame(levels=switch)) == 2


@pytest.mark.parametrize("value", [True, False])
def test_switches_of_numpy_are_those_of_python(value):
    def outcome(switch):
        size = {"n_vertices": 1000, "n_arcs": 10_000, "weighted": switch}
        seen = lu.resolution_profile(GRAPH, progress=switch, device="cpu")
        return (
            lu.plan(**size, machine="h200").peak_bytes,
            program_of("spmv", **size).arrays,
            lu.as_graph(np.array([[0, 2], [2, 0]]), weighted=switch).weighted,
            lu.DynamicGraph(GRAPH, weighted=switch).weighted,
            seen.point_rows(),
        )

    assert outcome(np.bool_(value)) == outcome(value)


@pytest.mark.parametrize("value", ["no", "", None, 0.5, [1], np.arange(2), 2**70])
def test_numbers_that_a_result_takes(value):
    found = lu.louvain(GRAPH, device="cpu")
    with pytest.raises(OptionError, match="this result has levels 0"):
        found.at_level(value)
    with pytest.raises(OptionError, match="hubs must be a whole number"):
        found.table(hubs=value)
    if not isinstance(value, int | float | None):
        with pytest.raises(OptionError, match="resolution must be a number"):
            found.quality(value)


def test_a_change_of_another_graph_is_refused():
    one, other = (lu.DynamicGraph(GRAPH) for _ in range(2))
    tracker = lu.Tracker(one)
    one.add_vertices(2)
    other.add_vertices(2)
    own, foreign = one.apply(insert=([0], [2])), other.apply(insert=([1], [3]))
    assert own.total_weight == foreign.total_weight
    before = tracker.modularity
    with pytest.raises(GraphError, match="the change is another graph's"):
        tracker.update(foreign)
    assert tracker.modularity == before
    assert tracker.update(own).n_communities
