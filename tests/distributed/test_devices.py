"""What several devices share, as far as it runs without one; `tests/gpu` has the rest."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.distributed import run as ranks_run
from louvain_um.distributed.devices import cut_evenly
from louvain_um.distributed.run import (
    Visible,
    device_of,
    gather_visible,
    nccl_problem,
    refuse_policies,
    visible_here,
)
from louvain_um.errors import DeviceUnavailableError, LouvainUmError, OptionError
from louvain_um.generators import stencil
from louvain_um.gpu.ranks.share import SharedRows
from louvain_um.gpu.runtime.device import is_several, pick
from louvain_um.options import Options
from louvain_um.placement.hardware import BLOCK
from tests.distributed.runs import graph_named
from tests.distributed.threads import detect_in_threads, run_threads
from tests.placement.fake_cuda import FakeCuda, install


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_vertices_are_cut_by_arcs(ranks):
    graph = graph_named("weighted lfr")
    bounds, before = cut_evenly(graph.offsets, ranks)
    assert bounds[0] == before[0] == 0
    assert (bounds[-1], before[-1]) == (graph.n_vertices, graph.n_arcs)
    assert [int(graph.offsets[bound]) for bound in bounds] == before
    most = int(np.diff(graph.offsets).max())
    assert max(np.diff(before)) <= graph.n_arcs / ranks + 2 * most


def test_rows_follow_each_other_in_whole_blocks(monkeypatch):
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


def created(fake):
    return [entry for entry in fake.log if entry[0] == "cuMemCreate"]


@pytest.mark.parametrize(
    ("device", "several"),
    [("cuda:0,1", True), ("cuda:all", True), ("cuda:1", False), ("cpu", False)],
)
def test_options_name_one_device_or_several(device, several):
    assert is_several(device) is several


def test_several_devices_are_for_detection():
    with pytest.raises(DeviceUnavailableError, match="name one"):
        pick("cuda:0,1")
    with pytest.raises(OptionError, match="cuda:0,1"):
        lu.louvain(graph_named("lfr"), device="cuda:0,,1")


def test_policies_and_budgets_are_refused():
    with pytest.raises(OptionError, match="use one device"):
        lu.louvain(graph_named("lfr"), device="cuda:0,1", memory="base")
    with pytest.raises(OptionError, match="use one device"):
        lu.louvain(graph_named("lfr"), device="cuda:all", device_budget="50%")


BOTH = Visible(host="node7", devices=("17:00", "65:00"))
ONE = Visible(host="node7", devices=("17:00",))


@pytest.mark.parametrize(
    ("seen", "numbers"),
    [
        ([BOTH, BOTH], [0, 1]),  # mpiexec on one machine
        ([BOTH, BOTH, BOTH], [0, 1, 0]),
        ([BOTH, Visible(host="node7", devices=("65:00", "17:00"))], [0, 0]),  # dask-cuda
        ([ONE, Visible(host="node7", devices=("65:00",))], [0, 0]),  # srun --gpus-per-task=1
        ([BOTH, Visible(host="node8", devices=BOTH.devices), BOTH], [0, 0, 1]),
    ],
)
def test_ranks_take_the_gpus_of_their_machine_in_turn(seen, numbers):
    assert [device_of(rank, seen, "host") for rank in range(len(seen))] == numbers


def test_nccl_takes_a_gpu_for_each_rank():
    assert [device_of(rank, [BOTH, BOTH], "nccl") for rank in (0, 1)] == [0, 1]
    for seen in ([ONE, ONE], [BOTH, BOTH, BOTH]):  # fewer GPUs than ranks
        with pytest.raises(
            DeviceUnavailableError, match=r"would share the GPU 17:00 of node7.*use"
        ):
            device_of(0, seen, "nccl")


@pytest.mark.parametrize("exchange", ["host", "nccl"])
def test_all_ranks_tell_of_the_one_without_a_gpu(exchange):
    reason = "CuPy is not installed; pip install 'louvain-um[cuda13]'"
    seen = [BOTH, Visible(host="node8", devices=(), problem=reason)]
    reported = set()
    for rank in (0, 1):
        with pytest.raises(DeviceUnavailableError) as error:
            device_of(rank, seen, exchange)
        reported.add(str(error.value))
    assert reported == {f"rank 1 of 2 (on node8) has no GPU: {reason}"}


def test_nccl_that_is_missing_is_reported():
    seen = [BOTH, Visible(host="node8", devices=("17:00",), no_nccl="CuPy finds no NCCL (x)")]
    assert device_of(1, seen, "host") == 0
    with pytest.raises(DeviceUnavailableError, match=r"rank 1 of 2 \(on node8\).*nvidia-nccl-cu13"):
        device_of(0, seen, "nccl")


def test_a_machine_without_cupy_has_no_nccl():
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("CuPy is installed")
    assert nccl_problem() == "CuPy finds no NCCL (No module named 'cupy')"


def test_what_ranks_see_is_reported_to_all():
    here = [BOTH, Visible(host="node8", devices=(), problem="none — really")]
    found = run_threads(lambda ranks: gather_visible(ranks, here[ranks.rank]), 2)
    assert found == [here, here]


def test_a_machine_without_a_gpu_says_why():
    try:
        from cupy.cuda import runtime

        if runtime.getDeviceCount():
            pytest.skip("there is a GPU here")
    except Exception:  # no CuPy, or no driver
        pass
    found = visible_here()
    assert found.devices == ()
    assert "use device='cpu'" in found.problem
    options = Options(device="cuda")
    with pytest.raises(DeviceUnavailableError, match=r"rank 0 of 2 .* has no GPU"):
        detect_in_threads(graph_named("lfr"), options, ranks=2)


def test_a_rank_that_is_broken_is_no_hang(monkeypatch):
    def broken():
        raise LouvainUmError("broken on purpose")

    monkeypatch.setattr(ranks_run, "visible_here", broken)
    with pytest.raises(LouvainUmError, match="broken on purpose"):
        detect_in_threads(graph_named("lfr"), Options(device="cuda"), ranks=2, patience=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda:1"}, "use device='cuda'"),
        ({"device": "cuda:0,1"}, "use device='cuda'"),
        ({"device": "cuda", "memory": "base"}, "drop memory, or use one device"),
        ({"device": "cuda", "device_budget": "50%"}, "drop device_budget, or use one device"),
        ({"device": "cuda", "peer_memory": "cuda:1"}, "drop peer_memory, or use one device"),
        ({"device": "cpu", "exchange": "nccl"}, "use device='cuda'"),
        ({"device": "cuda", "exchange": "tcp"}, "'host' or 'nccl'"),
        ({"device": "cuda", "exchange": "nccl", "cluster": None}, "cluster='mpi'"),
    ],
)
def test_options_that_ranks_do_not_take(options, message):
    with pytest.raises(OptionError, match=message):
        lu.louvain(graph_named("lfr"), **{"cluster": "local:2", **options})


@pytest.mark.parametrize(
    ("option", "value"),
    [("memory", "base"), ("device_budget", "50%"), ("peer_memory", "cuda:1"), ("ballast", "1GB")],
)
def test_what_several_devices_refuse_is_named(option, value):
    options = {option: value}
    with pytest.raises(OptionError) as refused:
        refuse_policies(Options(device="cuda", **options))
    assert (refused.value.option, refused.value.value) == (option, value)
    flag = f"--{option.replace('_', '-')}"
    assert refused.value.message(flag).endswith(f"; drop {flag}, or use one device")
