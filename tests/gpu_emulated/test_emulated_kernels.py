"""Parts of kernels: targets of few bytes, bytes that many threads add to, blocked loops."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from louvain_um.gpu.aggregate.coarse_rows import MOST_VERTICES
from louvain_um.gpu.memory.packed import HEADER, Packer

pytestmark = pytest.mark.deep

SEED = 3


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


def ends_of(n):
    """Return ends of rows of n arcs: all, and short ones in one block of 128 arcs or in two."""
    pairs = ((0, n), (n // 3, n), (3, 40), (100, 150), (97, 224), (96, 224), (127, 256))
    return [(low, high) for low, high in pairs if high <= n]


@pytest.mark.parametrize("run_length", [1, 2, 3, 31, 32, 33, 61, 64, 1024])
def test_warps_write_targets_of_24_bits_next_to_each_other(emulated, run_length):
    random = np.random.default_rng(SEED)
    given = random.integers(0, MOST_VERTICES, 3001, dtype=np.uint32)
    bytes_of = given.view(np.uint8).reshape(-1, 4)[:, :3].ravel()
    for n in (1, 2, 3, 4, 5, 31, 33, 127, 129, 3001):
        packed = np.full(-(-3 * n // 4) + 1, 0xA5A5A5A5, np.uint32)
        sizes = ctypes.c_int64(n), ctypes.c_int64(run_length)
        emulated["targets24"].pack_targets(2, *sizes, address(given), address(packed))
        found = packed.view(np.uint8)
        np.testing.assert_array_equal(found[: 3 * n], bytes_of[: 3 * n])
        assert set(found[3 * n :]) == {0xA5}
        for low, high in ends_of(n):
            ends = ctypes.c_int64(low), ctypes.c_int64(high)
            read = np.zeros((3, n), np.uint32)
            emulated["targets24"].read_short(address(packed), *ends, *map(address, read))
            for way in read:
                np.testing.assert_array_equal(way[low:high], given[low:high])


@pytest.mark.parametrize("most", [1, 1 << 8, 1 << 16, 1 << 24, 1 << 32])
@pytest.mark.parametrize("alike", [False, True])
def test_packed_targets_are_read_as_they_were(emulated, most, alike):
    random = np.random.default_rng(SEED)
    for n in (1, 5, 31, 127, 128, 129, 3001):
        # Blocks begin anywhere, and some are narrower than others.
        vertices = most if alike else 1 << 32
        base = np.repeat(random.integers(0, vertices - most + 1, n // 128 + 1), 128)[:n]
        separate = random.integers(0, np.repeat(random.integers(1, most + 1, len(base)), 1))
        given = (base + separate).astype(np.uint32)
        rows = SimpleNamespace(
            offsets=np.array([0, n]), targets=given, weights=None, n_arcs=n, n_vertices=vertices
        )
        packed = Packer(rows).pack(sort=True)
        assert packed.heads[0] or not alike
        for low, high in ends_of(n):
            ends = ctypes.c_int64(low), ctypes.c_int64(high)
            arrays = address(packed.targets), address(packed.heads[HEADER:])
            read = np.zeros((3, n), np.uint32)
            emulated["targets24"].read_packed(*arrays, *ends, *map(address, read))
            for way in read:
                np.testing.assert_array_equal(way[low:high], given[low:high])


@pytest.mark.parametrize("low", [1, -3, -200, 100])
def test_bytes_that_many_add_to_take_few_accesses(emulated, low):
    """However many threads add to the same bytes: each is done after four at most."""
    random, n = np.random.default_rng(SEED), 20_000
    at = random.integers(0, 8, n, dtype=np.uint32)
    changes = random.integers(low, low + 5, n).astype(np.uint32)
    words = random.integers(0, 2**32, 2, dtype=np.uint32)
    expected = words.view(np.uint8).copy()
    np.add.at(expected, at, changes.astype(np.uint8))
    found = words.copy()
    accesses = emulated["byte_sizes"].add_to_bytes(
        ctypes.c_int64(n), *map(address, (at, changes, found))
    )
    np.testing.assert_array_equal(found.view(np.uint8), expected)
    assert accesses <= 4 * n
    if abs(low) < 10:
        assert accesses <= 1.1 * n


@pytest.mark.parametrize("item_bytes", [4, 12])
def test_blocked_loops_visit_each_element_once_and_each_page_by_one_warp(emulated, item_bytes):
    blocks, threads = 2, 256
    for count in (0, 1, 31, 1024, 1025, 100_003):
        for pages in (1, 3, 10):
            visits, warps, steps = (np.zeros(max(count, 1), np.uint32) for _ in range(3))
            emulated["blocked"].visit(
                blocks, ctypes.c_longlong(count), item_bytes, pages,
                *map(address, (visits, warps, steps)),
            )  # fmt: skip
            case = count, pages
            assert (visits[:count] == 1).all(), case
            assert not visits[count:].any(), case
            sets = np.arange(count) // (4096 * pages // item_bytes)
            assert (warps[:count] == sets % (blocks * threads // 32)).all(), case
            # A warp takes 32 elements of its pages per step.
            inside = np.flatnonzero(sets == 0)
            assert (steps[inside] == inside // 32).all(), case
