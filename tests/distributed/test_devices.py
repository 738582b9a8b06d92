"""What several devices share, as far as it runs without one; `tests/gpu` has the rest."""

from __future__ import annotations

import ast
import inspect
import textwrap

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.distributed.carriers.threads import ThreadCommunicator, run_threads
from louvain_um.distributed.devices import DeviceEngine, DevicePeers, OwnRows, is_several
from louvain_um.errors import DeviceUnavailableError, OptionError
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.runtime.device import pick
from tests.distributed.runs import graph_named


def test_own_rows_keep_numbers_and_degrees() -> None:
    graph = graph_named("weighted lfr")
    own = OwnRows.of(graph, 300, 900)
    assert own.n_vertices == graph.n_vertices
    assert own.total_weight == graph.total_weight
    assert np.array_equal(own.degrees, graph.degrees)
    counts = np.diff(own.offsets)
    assert np.array_equal(counts[300:900], np.diff(graph.offsets)[300:900])
    assert not counts[:300].any()
    assert not counts[900:].any()
    assert np.array_equal(own.targets, graph.targets[graph.offsets[300] : graph.offsets[900]])


def test_values_are_shared_by_rank_turn_after_turn() -> None:
    def task(own: ThreadCommunicator) -> list[list[int]]:
        peers = DevicePeers(own.meeting, own.rank, [0, 1, 2, 3])
        return [peers.share(10 * turn + peers.rank) for turn in range(50)]

    want = [[10 * turn, 10 * turn + 1, 10 * turn + 2] for turn in range(50)]
    assert run_threads(task, 3) == [want] * 3


def assigned(function: object) -> set[str]:
    """Return the attributes of `self` that a method assigns."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }


def test_a_device_of_several_begins_with_all_that_one_has() -> None:
    # No device is here to miss an attribute that `GpuEngine.load` alone would set.
    begun = assigned(GpuEngine.load) | assigned(GpuEngine.begin)
    planned = {"plan", "planned", "ranged", "blocks", "low_scratch", "reaggregates", "limits"}
    planned |= {"hub_arcs"}
    shared = assigned(DeviceEngine.load) | assigned(GpuEngine.begin)
    assert begun - planned <= shared


@pytest.mark.parametrize(
    ("device", "several"),
    [("cuda:0,1", True), ("cuda:all", True), ("cuda:1", False), ("cpu", False)],
)
def test_options_name_one_device_or_several(device: str, several: bool) -> None:
    assert is_several(device) is several


def test_several_devices_are_for_detection() -> None:
    with pytest.raises(DeviceUnavailableError, match="name one"):
        pick("cuda:0,1")
    with pytest.raises(OptionError, match="cuda:0,1"):
        lu.louvain(graph_named("lfr"), device="cuda:0,,1")


def test_policies_and_budgets_are_refused() -> None:
    with pytest.raises(OptionError, match="use one device"):
        lu.louvain(graph_named("lfr"), device="cuda:0,1", memory="base")
    with pytest.raises(OptionError, match="use one device"):
        lu.louvain(graph_named("lfr"), device="cuda:all", device_budget="50%")
