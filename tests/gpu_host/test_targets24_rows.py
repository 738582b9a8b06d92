"""Packed graphs hold what they held, short rows first."""

from __future__ import annotations

import numpy as np
import pytest

from louvain_um.generators import rmat
from louvain_um.gpu.memory.targets24 import MOST_VERTICES, pack, words_for
from louvain_um.gpu.memory.targets24_rows import START_BITS

ARCS = (0, 1, 2, 3, 4, 5, 15, 16, 127, 128, 129)


def row(offsets: np.ndarray, targets: np.ndarray, v: int) -> np.ndarray:
    entry = int(offsets[v].view(np.uint64))
    start, arcs = entry & (1 << START_BITS) - 1, entry >> START_BITS
    parts = targets.view(np.uint8)[3 * start : 3 * (start + arcs)].reshape(-1, 3)
    return parts.astype(np.uint32) @ np.array([1, 1 << 8, 1 << 16], np.uint32)


@pytest.mark.parametrize("threads", [1, 3])
def test_every_row_is_where_its_entry_says(monkeypatch, threads):
    monkeypatch.setenv("LOUVAIN_UM_THREADS", str(threads))
    random = np.random.default_rng(3)
    lengths = random.choice(ARCS, 9000)
    offsets = np.append(0, np.cumsum(lengths))
    targets = random.integers(0, MOST_VERTICES, offsets[-1], dtype=np.uint32)
    targets[::7] = MOST_VERTICES - 1
    weights = random.integers(0, 1 << 16, offsets[-1])
    placed, packed, short = pack(offsets, targets, weights)
    assert short is not None
    assert len(packed) == words_for(len(targets))
    begins = placed[:-1] & ((1 << START_BITS) - 1)
    assert (placed[:-1] >> START_BITS == lengths).all()
    for v in range(9000):
        whole = targets[offsets[v] : offsets[v + 1]]
        np.testing.assert_array_equal(row(placed, packed, v), whole)
        at = begins[v]
        weighed = weights[offsets[v] : offsets[v + 1]]
        np.testing.assert_array_equal(short[at : at + lengths[v]], weighed)
    # Rows follow each other without a gap, those whose lengths have fewer bits first.
    order = np.lexsort((np.arange(9000), begins))
    order = order[lengths[order] > 0]
    ends = np.cumsum(lengths[order])
    np.testing.assert_array_equal(begins[order], ends - lengths[order])
    bits = np.ceil(np.log2(lengths[order] + 1))
    assert (np.diff(bits) >= 0).all()


def test_a_generated_graph_and_one_without_arcs():
    graph = rmat(10, seed=2).graph
    placed, packed, short = pack(graph.offsets, graph.targets)
    assert short is None
    for v in np.flatnonzero(np.diff(graph.offsets))[:200]:
        whole = graph.targets[graph.offsets[v] : graph.offsets[v + 1]]
        np.testing.assert_array_equal(row(placed, packed, v), whole)
    placed, packed, _ = pack(np.zeros(4, np.int64), np.zeros(0, np.uint32))
    assert not placed.any()
    assert len(packed) == 1
