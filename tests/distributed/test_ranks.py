"""Labels, levels and modularity do not depend on the number of ranks."""

from __future__ import annotations

import numpy as np
import pytest

from louvain_um import Graph, api
from louvain_um.distributed.carriers.threads import run_threads
from louvain_um.distributed.communicator import Communicator
from louvain_um.distributed.partition import blocks_of, join_blocks
from louvain_um.distributed.run import detect_in_threads
from louvain_um.errors import GraphError
from louvain_um.options import Options
from tests.distributed.runs import assert_equal, graph_named, one_process


@pytest.mark.parametrize("ranks", [2, 3])
def test_odd_weights_inside_a_community_are_halved_once(ranks: int) -> None:
    # Each rank holds an odd weight of a community's inner arcs: halves of the parts would
    # lose a unit each.
    graph = Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3], [3, 5, 7, 9, 3, 5, 1])
    found = detect_in_threads(graph, Options(device="cpu"), ranks=ranks, collapse_arcs=0)
    assert_equal(found, api.louvain(graph, device="cpu"))


def test_threads_within_ranks_change_nothing() -> None:
    options = Options(method="leiden", device="cpu", threads=3)
    found = detect_in_threads(graph_named("rmat"), options, ranks=2, collapse_arcs=0)
    assert_equal(found, one_process("rmat", "leiden"))


def test_a_rank_holds_its_own_rows_only() -> None:
    graph = graph_named("lfr")
    options = Options(device="cpu")
    whole = detect_in_threads(graph, options, ranks=1, collapse_arcs=0).memory["graph"]
    part = detect_in_threads(graph, options, ranks=4, collapse_arcs=0).memory["graph"]
    assert part < 0.4 * whole


def test_blocks_have_equal_shares_of_arcs() -> None:
    graph = graph_named("rmat")
    heaviest = int(np.diff(graph.offsets).max())
    for block in blocks_of(graph, 5):
        assert abs(len(block.targets) - graph.n_arcs / 5) <= heaviest


def test_blocks_that_do_not_belong_together_are_refused() -> None:
    graph = graph_named("lfr")

    def task(ranks: Communicator) -> None:
        join_blocks(ranks, blocks_of(graph, 2)[0])

    with pytest.raises(GraphError, match="divide it anew"):
        run_threads(task, 2)
