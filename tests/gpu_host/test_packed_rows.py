"""Packed graphs hold what they held, short rows first."""

from types import SimpleNamespace

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.core import parallel
from louvain_um.generators import rmat
from louvain_um.gpu.memory.packed import (
    HEADER,
    PACKED_ARCS,
    START_BITS,
    Packer,
    most_bytes,
    whole_arcs,
)

ARCS = (0, 1, 2, 3, 4, 5, 15, 16, 127, 128, 129)


def graph_of(lengths, targets, weights=None, n=1 << 32):
    """Return rows of a graph of n vertices, most of which have none."""
    offsets = np.append(0, np.cumsum(lengths))
    arrays = {"offsets": offsets, "targets": targets.astype(np.uint32), "weights": weights}
    return SimpleNamespace(**arrays, n_arcs=len(targets), n_vertices=n)


def heads_of(packed):
    """Return each block's smallest target, bytes a target, and first byte."""
    if packed.heads[0]:
        lines = np.asarray(packed.lines, np.uint64)
        widths = np.full(len(lines), packed.heads[0])
        np.testing.assert_array_equal(np.diff(lines), widths[1:])
        return np.zeros(len(lines) - 1, int), widths, lines
    host = packed.heads[HEADER:].view(np.uint64)
    last = np.uint64(34)
    return (
        (host & np.uint64(0xFFFFFFFF))[:-1],
        (host >> np.uint64(32) & np.uint64(3)) + 1,
        host >> last,
    )


def unpacked(packed, arcs):
    bases, widths, lines = heads_of(packed)
    found = np.empty(arcs, np.int64)
    data = packed.targets.view(np.uint8)
    for b, base in enumerate(bases):
        width, first = int(widths[b]), PACKED_ARCS * b
        count = min(PACKED_ARCS, arcs - first)
        at = 128 * int(lines[b])
        parts = data[at : at + width * count].reshape(count, width).astype(np.int64)
        found[first : first + count] = int(base) + parts @ (1 << 8 * np.arange(width))
    return found


def row(packed, values, v):
    entry = int(packed.offsets[v].view(np.uint64))
    start, arcs = entry & (1 << START_BITS) - 1, entry >> START_BITS
    return values[start : start + arcs]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("most", [1, 1 << 8, 1 << 16, 1 << 24, 1 << 32])
def test_every_row_is_where_its_entry_says(monkeypatch, threads, most):
    monkeypatch.setenv("LOUVAIN_UM_THREADS", str(threads))
    monkeypatch.setattr(parallel, "PIECE", 1000)
    random = np.random.default_rng(3)
    lengths = random.choice(ARCS, 9000)
    n, ends = len(lengths), np.cumsum(lengths)
    targets = random.integers((1 << 32) - most, 1 << 32, ends[-1])
    weights = random.integers(0, 1 << 16, ends[-1])
    packer = Packer(graph_of(lengths, targets, weights))
    packed = packer.pack(sort=True)
    assert packed.weights is not None
    assert packed.targets.nbytes == round(packer.target_bytes(sort=True) * len(targets))
    values = unpacked(packed, len(targets))
    for v in range(n):
        host = slice(ends[v] - lengths[v], ends[v])
        np.testing.assert_array_equal(row(packed, values, v), targets[host])
        np.testing.assert_array_equal(row(packed, packed.weights, v), weights[host])
    # Rows follow each other without a gap, those whose lengths have fewer bits first.
    begins = packed.offsets[:-1] & ((1 << START_BITS) - 1)
    order = np.lexsort((np.arange(n), begins))
    order = order[lengths[order] > 0]
    np.testing.assert_array_equal(begins[order], np.cumsum(lengths[order]) - lengths[order])
    bits = np.ceil(np.log2(lengths[order] + 1))
    assert (np.diff(bits) >= 0).all()
    # No block takes more than it needs; where these are all bytes of a number, there are no heads.
    widths = heads_of(packed)[1][:-1]
    assert widths.max() == most_bytes(most)
    assert most == 1 or np.median(widths) == most_bytes(most)
    assert bool(packed.heads[0]) == (len(packed.heads) == HEADER + 1) == (most == 1 << 32)


def test_rows_may_keep_their_order():
    graph = rmat(10, seed=2).graph
    packed = Packer(graph).pack(sort=False)
    assert packed.weights is None
    assert packed.offsets.dtype == np.uint32
    np.testing.assert_array_equal(packed.offsets, graph.offsets)
    np.testing.assert_array_equal(unpacked(packed, graph.n_arcs), graph.targets)


@pytest.mark.parametrize("sort", [True, False])
def test_a_graph_without_arcs(sort):
    packer = Packer(graph_of(np.zeros(3, int), np.zeros(0, np.uint32)))
    packed = packer.pack(sort=sort)
    assert not packed.offsets.any()
    assert packed.targets.nbytes == packer.target_bytes(sort=sort) == 0
    assert whole_arcs(packed.lines, 1 << 21) == 0


def test_neighbours_along_a_ring_take_a_byte_each():
    n = 10_000
    ring = np.arange(n)
    targets = np.sort(np.stack([(ring - 1) % n, (ring + 1) % n], axis=1)).ravel()
    packer = Packer(graph_of(np.full(n, 2), targets))
    # But for the blocks in which the ring closes.
    assert packer.target_bytes(sort=False) < 1.03
    packed = packer.pack(sort=False)
    lines = packed.lines
    np.testing.assert_array_equal(lines, heads_of(packed)[2])
    for nbytes in (0, 127, 128, 1280, 128 * int(lines[-1]), 1 << 30):
        arcs = whole_arcs(packed.lines, nbytes)
        assert lines[arcs // PACKED_ARCS] * 128 <= nbytes
        assert arcs >= 2 * n or lines[arcs // PACKED_ARCS + 1] * 128 > nbytes


@pytest.mark.parametrize(
    ("vertices", "arcs", "reported"),
    [
        (3_000_000, 90_000_000, "targets 3.0 instead of 4, no degrees"),
        (30_000_000, 900_000_000, "bytes: no degrees"),
        (30_000_000, 90_000_000, "bytes: offsets 4 instead of 8, no degrees"),
    ],
)
def test_a_plan_reports_what_takes_fewer_bytes(vertices, arcs, reported):
    plan = lu.plan(n_vertices=vertices, n_arcs=arcs, machine="h200", device_budget="30%")
    assert [reported in note for note in plan.notes if "fewer bytes" in note] == [True]


def test_a_plan_of_a_graph_at_hand_measures_how_its_targets_pack():
    n = 400_000
    ring = np.arange(n)
    ends = [np.roll(ring, step) for step in range(1, 9)]
    graph = lu.Graph.from_edges(np.tile(ring, 8), np.concatenate(ends), n_vertices=n)
    plan = lu.plan(graph, machine="h200", device_budget="30%")
    assert any("targets 1.0 instead of 4" in note for note in plan.notes)
