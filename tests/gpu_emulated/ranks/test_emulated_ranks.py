"""Ranks with a device each, which exchange moves, find the labels of the CPU."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from louvain_um.core import rules
from louvain_um.core.hierarchy import detect
from louvain_um.cpu.engine import CpuEngine
from louvain_um.distributed import run as ranks_run
from louvain_um.distributed.carriers.nccl import NcclCommunicator
from louvain_um.distributed.device_steps import RankDeviceSteps
from louvain_um.distributed.engine import RankEngine
from louvain_um.distributed.partition import blocks_of
from louvain_um.distributed.run import Visible, detect_on_rank
from louvain_um.errors import WorkerLostError
from louvain_um.events import ignore
from louvain_um.generators import rmat
from louvain_um.gpu.runtime.compile import using
from louvain_um.options import Options
from louvain_um.placement.memory.cuda_calls import CudaError
from tests.distributed.conformance import conforms
from tests.distributed.runs import assert_equal
from tests.distributed.threads import run_threads
from tests.gpu_emulated.emulated_engine import emulated_devices
from tests.gpu_emulated.ranks.emulated_nccl import EmulatedNccl, NcclError
from tests.graphs import KINDS

pytestmark = pytest.mark.deep


LEIDEN = Options(method="leiden", seed=3, device="cuda", threads=1)


@pytest.fixture
def on_ranks(monkeypatch, emulated):
    """Return a function that runs ranks of one host, each of which finds what one CPU does."""

    def run(graph, options, devices, ranks, *, nccl=None, **values):
        one = detect(CpuEngine(options, ignore), graph, options, ignore)
        monkeypatch.setattr(ranks_run, "visible_here", lambda: Visible(host="h", devices=devices))
        blocks = blocks_of(graph, ranks)
        with emulated_devices(monkeypatch, emulated, len(devices)) as kernels:
            if nccl:
                nccl.install(monkeypatch)

            def task(local):
                with using(kernels):
                    return detect_on_rank(
                        local, blocks[local.rank], options, ignore, collapse_arcs=0, **values
                    )

            found = run_threads(task, ranks, patience=60)
        for each in found:
            assert_equal(each, one)
        return found, kernels

    return run


@pytest.mark.parametrize(
    ("method", "kind", "ranks", "devices"),
    [
        ("leiden", "heavy", 2, ("a", "b")), ("leiden", "lfr", 3, ("a",)),
        ("leiden", "weighted", 3, ("a",)), ("louvain", "weighted", 3, ("a",)),
    ],
)  # fmt: skip
def test_ranks_by_way_of_the_host(monkeypatch, on_ranks, method, kind, ranks, devices):
    monkeypatch.setattr(ranks_run, "nccl_problem", lambda: pytest.fail("NCCL is not used"))
    options = replace(LEIDEN, method=method)
    found, kernels = on_ranks(KINDS[kind](), options, devices, ranks)
    used = [each.provenance["device"] for each in found]
    assert used == [f"cuda:{rank % len(devices)}" for rank in range(ranks)]
    assert {each.provenance["exchange"] for each in found} == {"host"}
    launched = {device for device, kernel in kernels.launched if kernel == "move_round"}
    assert launched == set(range(len(devices)))


@pytest.mark.parametrize("fits", [True, False])
def test_rows_of_the_input_are_copied_once_if_later_levels_fit_in_addition(
    monkeypatch, on_ranks, fits
):
    graph = rmat(8).graph
    copied = list[tuple[int, int]]()
    plain = RankDeviceSteps.new_share

    def noted(self, level, which):
        copied.append((level.rank, level.number))
        assert ("input" in self.shares) == (fits and level.number > 0)
        return plain(self, level, which)

    monkeypatch.setattr(RankDeviceSteps, "new_share", noted)
    if not fits:
        monkeypatch.setattr(RankDeviceSteps, "fits_with_input", lambda *_: False)
    found, _ = on_ranks(graph, LEIDEN, ("a",), 2)
    assert sum(level.vertices == graph.n_vertices for level in found[0].levels) == 3
    assert (copied.count((0, 0)) == 1) == fits


def test_ranks_with_and_without_devices_resume_each_other(on_ranks, tmp_path):
    graph, on_cpus = KINDS["lfr"](), replace(LEIDEN, device="cpu")
    for first, second in ((LEIDEN, on_cpus), (on_cpus, LEIDEN)):
        folder = tmp_path / first.device
        on_ranks(graph, first, ("a",), 2, checkpoint=folder)
        again, _ = on_ranks(graph, second, ("a",), 3, checkpoint=folder)
        assert again[0].provenance["replayed"] > 0


@pytest.mark.parametrize(
    ("method", "kind", "ranks"),
    [
        ("leiden", "lfr", 2), ("leiden", "rmat", 2), ("louvain", "rmat", 2),
        ("leiden", "no edges", 2), ("leiden", "weighted", 3),
    ],
)  # fmt: skip
def test_ranks_through_nccl(on_ranks, method, kind, ranks):
    nccl = EmulatedNccl(as_bytes=kind == "lfr")
    options, devices = replace(LEIDEN, method=method), ("a", "b", "c")[:ranks]
    on_ranks(KINDS[kind](), options, devices, ranks, nccl=nccl, exchange="nccl")
    assert len(nccl.made) == ranks
    assert not any(each.live for each in nccl.made)


@pytest.mark.parametrize("exchange", ["host", "nccl"])
@pytest.mark.parametrize("kind", ["rmat", "weighted"])
def test_a_level_dealt_over_ranks_is_split_into_whole_communities(
    monkeypatch, on_ranks, kind, exchange
):
    graph, refined = KINDS[kind](), list[tuple[int, bool]]()
    plain = detect(CpuEngine(LEIDEN, ignore), graph, LEIDEN, ignore)
    monkeypatch.setattr(rules, "MOST_KEPT", 0.5)
    refine = RankEngine.refine

    def noted(self, level):
        refined.append((level.number, level.whole))
        refine(self, level)

    monkeypatch.setattr(RankEngine, "refine", noted)
    found, _ = on_ranks(graph, LEIDEN, ("a", "b"), 2, nccl=EmulatedNccl(), exchange=exchange)
    assert [level.arcs for level in plain.levels] != [level.arcs for level in found[0].levels]
    assert (1, True) in refined


@pytest.mark.parametrize("size", [1, 2, 3])
def test_nccl_does_what_a_communicator_promises(monkeypatch, emulated, size):
    def task(local):
        with NcclCommunicator(local) as ranks:
            return conforms(ranks)

    with emulated_devices(monkeypatch, emulated, size):
        EmulatedNccl().install(monkeypatch)
        assert len(set(run_threads(task, size, patience=60))) == 1


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("silent", "did not answer for 0.5 s"),
        ("aborts", "on purpose"),
        ("network", r"NCCL failed \(NCCL_ERROR_SYSTEM_ERROR: x\)"),
        ("unnamed", r"NCCL failed \(error 6\)"),
        ("device", r"failed \(cudaErrorIllegalAddress\)"),
    ],
)
def test_a_rank_that_fails_ends_those_that_wait_for_it(monkeypatch, emulated, broken, message):
    nccl, exchanged, ended = EmulatedNccl(), threading.Event(), threading.Event()

    def task(local):
        if broken == "silent":
            local.patience = 0.5
        with NcclCommunicator(local) as ranks:
            ranks.allgatherv(np.arange(3))
            if local.rank:
                assert exchanged.wait(30)
                if broken == "aborts":
                    local.abort("on purpose")
                if broken == "network":
                    nccl.failing.append(NcclError("NCCL_ERROR_SYSTEM_ERROR: x"))
                if broken == "unnamed":
                    nccl.failing.append(KeyError(6))
                if broken == "device":
                    nccl.faults.append(700)
                assert ended.wait(30)
                return
            exchanged.set()
            try:
                with pytest.raises((WorkerLostError, CudaError), match=message):
                    ranks.allgatherv(np.arange(3))
                assert not nccl.made[0].live or not nccl.made[1].live
            finally:
                ended.set()

    with emulated_devices(monkeypatch, emulated, 2):
        nccl.install(monkeypatch)
        run_threads(task, 2, patience=60)


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (
            NcclError("NCCL_ERROR_INVALID_USAGE: x"),
            WorkerLostError,
            r"NCCL failed \(NCCL_ERROR_INV",
        ),
        (RuntimeError("cudaErrorIllegalAddress: y"), RuntimeError, "^cudaErrorIllegalAddress: y$"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
)
def test_a_send_that_fails_closes_its_group_and_aborts(
    monkeypatch, emulated, error,
    raised, message,
):  # fmt: skip
    nccl = EmulatedNccl()

    def task(local):
        ranks = NcclCommunicator(local)
        with pytest.raises(raised, match=message):
            ranks.allgatherv(np.arange(3))
        assert not nccl.mine.grouped
        assert not ranks.connection.live

    with emulated_devices(monkeypatch, emulated, 2):
        nccl.install(monkeypatch)
        nccl.unsendable.append(error)
        run_threads(task, 2, patience=60)


def test_an_interrupt_while_the_gpu_waits_aborts_its_connection(monkeypatch, emulated):
    def interrupted():
        raise KeyboardInterrupt

    def task(local):
        ranks = NcclCommunicator(local)
        if local.rank == 0:
            monkeypatch.setattr(local, "check", interrupted)
            for exchange in (ranks.allgatherv, ranks.sum_exact):
                ranks.connection.live = True
                with pytest.raises(KeyboardInterrupt):
                    exchange(np.arange(3))
                assert not ranks.connection.live

    with emulated_devices(monkeypatch, emulated, 2):
        EmulatedNccl().install(monkeypatch)
        run_threads(task, 2, patience=60)


@pytest.mark.parametrize("broken", ["silent", "aborts"])
def test_connecting_ends_with_the_patience_or_the_run(monkeypatch, emulated, broken):
    nccl, opened = EmulatedNccl(), threading.Event()

    def task(local):
        local.patience = 0.2 if broken == "silent" else 60
        if broken == "aborts":
            threading.Timer(0.2, local.abort, ("on purpose",)).start()
        message = "did not answer for 0.2 s" if broken == "silent" else "on purpose"
        with pytest.raises(WorkerLostError, match=message):
            NcclCommunicator(local)

    with emulated_devices(monkeypatch, emulated, 2):
        nccl.install(monkeypatch)
        nccl.gate.append(opened)
        run_threads(task, 2, patience=60)
        late = [each for each in threading.enumerate() if each.name == "louvain-um-nccl"]
        assert len(late) == 2
        opened.set()
        for thread in late:
            thread.join(30)
    assert len(nccl.made) == 2  # connected after all, and given up
    assert not any(each.live for each in nccl.made)
