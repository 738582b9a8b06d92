"""Labels, levels and modularity do not depend on the number of ranks."""

import threading

import numpy as np
import pytest

from louvain_um import Graph, api
from louvain_um.distributed.partition import blocks_of, join_blocks
from louvain_um.errors import GraphError, WorkerLostError
from louvain_um.options import Options
from tests.distributed.conformance import conforms
from tests.distributed.processes import found_on, run_processes
from tests.distributed.runs import assert_equal, graph_named, one_process
from tests.distributed.threads import detect_in_threads, run_threads
from tests.paths import ROOT


@pytest.mark.parametrize("ranks", [2, 3])
def test_odd_weights_inside_a_community_are_halved_once(ranks):
    # Each rank holds an odd weight of a community's inner arcs: halves of the parts would
    # lose a unit each.
    graph = Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3], [3, 5, 7, 9, 3, 5, 1])
    found = detect_in_threads(graph, Options(device="cpu"), ranks=ranks, collapse_arcs=0)
    assert_equal(found, api.louvain(graph, device="cpu"))


def test_threads_within_ranks_change_nothing():
    options = Options(method="leiden", device="cpu", threads=3)
    found = detect_in_threads(graph_named("rmat"), options, ranks=2, collapse_arcs=0)
    assert_equal(found, one_process("rmat", "leiden"))


def test_a_rank_holds_its_own_rows_only():
    graph = graph_named("lfr")
    options = Options(device="cpu")
    whole = detect_in_threads(graph, options, ranks=1, collapse_arcs=0).memory["graph"]
    part = detect_in_threads(graph, options, ranks=4, collapse_arcs=0).memory["graph"]
    assert part < 0.4 * whole


def test_blocks_have_equal_shares_of_arcs():
    graph = graph_named("rmat")
    heaviest = int(np.diff(graph.offsets).max())
    for block in blocks_of(graph, 5):
        assert abs(len(block.targets) - graph.n_arcs / 5) <= heaviest


def test_blocks_that_do_not_belong_together_are_refused():
    graph = graph_named("lfr")

    def task(ranks):
        join_blocks(ranks, blocks_of(graph, 2)[0])

    with pytest.raises(GraphError, match="divide it anew"):
        run_threads(task, 2)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_threads(size):
    assert len(set(run_threads(conforms, size, patience=60))) == 1


def test_a_rank_that_waits_for_nothing_knows_of_an_abort():
    aborted = threading.Event()

    def task(ranks):
        if ranks.rank:
            ranks.abort("broken on purpose")
            aborted.set()
            return
        assert aborted.wait(30)
        with pytest.raises(WorkerLostError, match="broken on purpose"):
            ranks.check()

    run_threads(task, 2, patience=60)


def conforming(ranks, *given):
    return conforms(ranks), found_on(ranks, *given)


@pytest.mark.system
def test_processes_find_the_labels_of_one():
    cases = [("weighted rmat", "leiden"), ("lfr", "louvain")]
    exchanged, labels = zip(*run_processes(conforming, 2, cases, "cpu", "host"), strict=True)
    assert len(set(exchanged)) == 1
    for found in labels:
        for case, each in zip(cases, found, strict=True):
            assert_equal(each, one_process(*case))
    with pytest.raises(AssertionError, match=r"rank \d: Traceback(.|\n)*on purpose"):
        run_processes(broken, 2)


def broken(ranks):
    if ranks.rank:
        raise ValueError("broken on purpose")
    ranks.allgatherv(ranks.sum_exact([1]))


@pytest.mark.system
@pytest.mark.parametrize("ranks", [1, 2])
def test_mpi(tmp_path, ranks):
    pytest.importorskip("mpi4py.MPI", exc_type=ImportError)
    from tests.distributed.test_mpi import mpiexec

    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from louvain_um.distributed.carriers.mpi import MpiCommunicator\n"
        "from tests.distributed.conformance import conforms\n"
        "assert conforms(MpiCommunicator(60.0)) > 0\n"
    )
    done = mpiexec(str(script), ranks=ranks)
    assert done.returncode == 0, done.stderr
