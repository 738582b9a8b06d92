"""The history of a tracker reads as a list of dicts and takes little memory."""

import gc
import tracemalloc

import pytest

import louvain_um as lu
from louvain_um.dynamic.tracking.tracked import BLOCK, ROW, History

NAMES = ROW.names or ()


def test_it_reads_as_the_list_of_dicts_that_it_stands_for():
    rows = [
        {name: (ROW[i].type(n + i)).item() for i, name in enumerate(NAMES)}
        for n in range(2 * BLOCK + 3)
    ]
    history = History(rows)
    assert history == rows == list(history)
    assert len(history) == len(rows)
    assert history[-1] == rows[-1]
    assert history[BLOCK - 1 : BLOCK + 2] == rows[BLOCK - 1 : BLOCK + 2]
    assert history[::-700] == rows[::-700]
    assert History(history.array()) == history
    assert repr(History(rows[:1])) == repr(rows[:1])


@pytest.mark.deep
def test_a_batch_of_a_long_stream_leaves_little_behind():
    graph = lu.DynamicGraph(lu.Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]))
    tracker = lu.Tracker(graph, threads=1)

    def follow(pairs):
        for _ in range(pairs):
            tracker.update(graph.apply(insert=([2], [3])))
            tracker.update(graph.apply(delete=([2], [3])))

    follow(BLOCK)  # with renewals and audits, whose kernels are loaded
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        follow(BLOCK)
        gc.collect()
        left = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert left / (2 * BLOCK) < 200
    assert tracker.to_frame()["epoch"].tolist() == [row["epoch"] for row in tracker.rows]
