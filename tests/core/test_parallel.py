from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

from louvain_um import Graph, api
from louvain_um.core import parallel

STAGES, ITEMS = 50, 1000


@njit(nogil=True)
def relay(t, threads, values, progress):
    """Each stage writes what it reads of the stage before, in another order."""
    for stage in range(STAGES):
        begin = parallel.claim(progress, stage, 7)
        while begin < ITEMS:
            end = min(begin + 7, ITEMS)
            for i in range(begin, end):
                before = values[stage, (i * 389 + 1) % ITEMS]
                values[stage + 1, i] = before + 1
            parallel.finish(progress, stage, end - begin)
            begin = parallel.claim(progress, stage, 7)
        parallel.wait(progress, stage, ITEMS)


def relayed(threads: int) -> np.ndarray:
    values, progress = np.zeros((STAGES + 1, ITEMS), np.int64), np.zeros(2 * STAGES, np.int64)
    parallel.run(relay, threads, values, progress)
    return values[-1]


def test_a_stage_begins_when_the_one_before_is_done() -> None:
    for threads in (1, 2, 5):
        assert (relayed(threads) == STAGES).all()


def test_any_thread_can_do_the_work_alone() -> None:
    # Callers share a pool: some of their threads come late, others when all is done.
    with ThreadPoolExecutor(8) as callers:
        for found in callers.map(relayed, [4] * 40, timeout=60):
            assert (found == STAGES).all()


def test_several_callers_get_the_labels_of_one() -> None:
    rng = np.random.default_rng(1)
    graph = Graph.from_edges(rng.integers(0, 5000, 60_000), rng.integers(0, 5000, 60_000))
    alone = api.louvain(graph, device="cpu", threads=1).labels
    with ThreadPoolExecutor(4) as callers:
        found = callers.map(
            lambda threads: api.louvain(graph, device="cpu", threads=threads).labels,
            [3, 3, 2, 4] * 3,
            timeout=60,
        )
        for labels in found:
            assert np.array_equal(labels, alone)
