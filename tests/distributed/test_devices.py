"""What several devices share, as far as it runs without one; `tests/gpu` has the rest."""

from __future__ import annotations

import ast
import inspect
import textwrap

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.distributed.devices import DevicesEngine, cut_evenly
from louvain_um.errors import DeviceUnavailableError, OptionError
from louvain_um.generators import stencil
from louvain_um.gpu.engine import GpuEngine
from louvain_um.gpu.ranks.loading import SharedRows
from louvain_um.gpu.runtime.device import pick
from louvain_um.gpu.runtime.preflight import is_several
from louvain_um.placement.hardware import BLOCK
from tests.distributed.runs import graph_named
from tests.placement.fake_cuda import FakeCuda, install


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_vertices_are_cut_by_arcs(ranks: int) -> None:
    graph = graph_named("weighted lfr")
    bounds, before = cut_evenly(graph.offsets, ranks)
    assert bounds[0] == before[0] == 0
    assert (bounds[-1], before[-1]) == (graph.n_vertices, graph.n_arcs)
    assert [int(graph.offsets[bound]) for bound in bounds] == before
    most = int(np.diff(graph.offsets).max())
    assert max(np.diff(before)) <= graph.n_arcs / ranks + 2 * most


def test_rows_follow_each_other_in_whole_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = stencil((40, 40, 40)).graph  # 6 MB of targets
    fake = install(monkeypatch, FakeCuda())
    bounds, before = cut_evenly(graph.offsets, 3)
    rows = SharedRows(graph, [0, 1, 2], bounds, before)
    sizes = [nbytes for call, _, nbytes in created(fake)]
    assert len(sizes) == 3
    assert all(size % BLOCK == 0 for size in sizes)
    assert graph.targets.nbytes <= sum(sizes) < graph.targets.nbytes + BLOCK
    rows.close()
    assert not fake.alive


def created(fake: FakeCuda) -> list[tuple[str, str, int]]:
    return [entry for entry in fake.log if entry[0] == "cuMemCreate"]  # type: ignore[misc]


def assigned(function: object) -> set[str]:
    """Return the attributes of `self` that a method assigns."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }


def test_devices_begin_with_all_that_one_has() -> None:
    # No device is here to miss an attribute that `GpuEngine.load` alone would set.
    begun = assigned(GpuEngine.load) | assigned(GpuEngine.begin)
    planned = {"plan", "blocks", "low_scratch", "reaggregates", "limits"}
    planned |= {"hub_arcs", "byte_sizes"}
    shared = assigned(DevicesEngine.load) | assigned(GpuEngine.begin) | assigned(GpuEngine.__init__)
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
