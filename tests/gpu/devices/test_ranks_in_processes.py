"""Ranks that are processes: two on one GPU by way of the host, and two GPUs through NCCL."""

import os

import pytest

from louvain_um.distributed.carriers.nccl import NcclCommunicator
from louvain_um.distributed.run import nccl_problem, on_device
from louvain_um.errors import WorkerLostError
from louvain_um.gpu.runtime.device import capabilities
from tests.distributed.conformance import conforms
from tests.distributed.processes import found_on, run_processes
from tests.distributed.runs import GRAPHS, METHODS, assert_equal, one_process

pytestmark = pytest.mark.gpu

CASES = [(kind, method) for kind in GRAPHS for method in METHODS]


@pytest.fixture
def one_gpu(gpu, monkeypatch):
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", first)


@pytest.fixture
def two_gpus(gpu, monkeypatch):
    """Skip unless there are two GPUs, and NCCL."""
    if len(capabilities()) < 2:
        pytest.skip("there is one device only")
    if problem := nccl_problem():
        pytest.skip(problem)
    # Multicast over NVLink changes how GPUs that other programs use are connected.
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "0")


def assert_found(exchange, devices):
    """Two processes find what one does, of every graph and by both methods."""
    every = run_processes(found_on, 2, CASES, "cuda", exchange, patience=200)
    for found, device in zip(every, devices, strict=True):
        for case, each in zip(CASES, found, strict=True):
            assert_equal(each, one_process(*case))
            assert each.provenance["device"] == device
            assert each.provenance["exchange"] == exchange


def test_two_processes_on_one_gpu(one_gpu):
    assert_found("host", ["cuda:0", "cuda:0"])


def test_two_gpus_by_way_of_the_host(two_gpus):
    assert_found("host", ["cuda:0", "cuda:1"])


def test_two_gpus_through_nccl(two_gpus):
    assert_found("nccl", ["cuda:0", "cuda:1"])


def test_nccl_does_what_a_communicator_promises(two_gpus):
    assert len(set(run_processes(through_nccl, 2, patience=120))) == 1


def through_nccl(ranks):
    with on_device(ranks, "nccl"), NcclCommunicator(ranks) as local:
        return conforms(local)


def test_nccl_on_one_gpu_is_refused(one_gpu):
    if problem := nccl_problem():
        pytest.skip(problem)
    with pytest.raises(AssertionError, match="would share the GPU"):
        run_processes(found_on, 2, CASES[:1], "cuda", "nccl", patience=120)


def test_a_rank_that_goes_away_ends_the_others(two_gpus):
    messages = run_processes(until_alone, 2, patience=120)
    assert "did not answer for 5 s" in messages[0] or "NCCL failed" in messages[0]


def until_alone(ranks):
    with on_device(ranks, "nccl"):
        local = NcclCommunicator(ranks)
        local.patience = 5
        local.sum_exact([1])
        if ranks.rank:
            local.connection.abort()  # to end in order, it would wait for the other one
            return ""
        try:
            local.sum_exact([1])
        except WorkerLostError as error:
            return str(error)
        return "no error"
