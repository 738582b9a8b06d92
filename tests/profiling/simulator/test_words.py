"""Whole blocks are worked on eight pages at a time: the same as page by page."""

import numpy as np
import pytest
from numba import njit
from simulator_cases import called

from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver import prefetcher, state
from louvain_um.profiling.simulator.driver.constants import BROUGHT, FAULTED

add_dense = called(prefetcher.add_dense)
bring_words, evict_words = called(state.bring_words), called(state.evict_words)

STATES = np.array(
    [
        0,
        c.ON_HOST,
        c.ON_HOST | c.MAP_REMOTE,
        c.ON_GPU | c.MAP_READ | c.MAP_WRITE,
        c.BOTH | c.MAP_READ,
    ],
    np.uint8,
)


@pytest.fixture(params=range(8))
def random(request):
    return np.random.default_rng(request.param)


@pytest.fixture
def pages(random):
    likely = random.dirichlet(np.ones(len(STATES)))
    return random.choice(STATES, c.BLOCK_PAGES, p=likely)


def words(values):
    return values.view(np.uint64)


@pytest.mark.parametrize("duplicate", [False, True])
def test_pages_that_come(random, pages, duplicate):
    want = random.choice(np.array([0, FAULTED, BROUGHT], np.uint8), c.BLOCK_PAGES)
    expected = pages.copy()
    brought = want == BROUGHT
    on_host = (pages & c.ON_HOST) != 0
    coming = brought & ((pages & c.BOTH) == c.ON_HOST)
    expected[brought] = c.ON_GPU | c.MAP_READ | c.MAP_WRITE
    if duplicate:
        expected[brought & on_host] = c.BOTH | c.MAP_READ
    came = int((brought & ((pages & c.ON_GPU) == 0)).sum())
    runs = int(coming[0]) + int((coming[1:] & ~coming[:-1]).sum())
    found = bring_words(words(pages), words(want), duplicate)
    assert found == (runs, int(coming.sum()), came)
    np.testing.assert_array_equal(pages, expected)
    assert not want.any()


@pytest.mark.parametrize("after", [c.ON_HOST, c.ON_HOST | c.MAP_REMOTE])
def test_pages_that_go(pages, after):
    on_gpu = (pages & c.ON_GPU) != 0
    expected = np.where(on_gpu, after, pages)
    copies = int(((pages & c.BOTH) == c.BOTH).sum())
    assert evict_words(words(pages), after) == (int(on_gpu.sum()), copies)
    np.testing.assert_array_equal(pages, expected)


def scratch():
    return np.zeros((c.TREE_ROWS, c.TREE_COLUMNS), np.int64), np.zeros(c.BLOCK_PAGES, np.uint8)


@pytest.mark.parametrize("here", [c.ON_GPU, c.ON_HOST])
@pytest.mark.parametrize("threshold", [0, 51, 100])
@pytest.mark.parametrize("count", [c.BLOCK_PAGES, c.BLOCK_PAGES - 9])
def test_density_is_that_of_every_page(random, pages, here, threshold, count):
    want = np.zeros(c.BLOCK_PAGES, np.uint8)
    want[random.integers(0, count, random.integers(1, 40))] = FAULTED
    there = ((pages & here) != 0) | (want == FAULTED)
    asked = want.reshape(-1, c.BIG_PAGES).any(axis=1).repeat(c.BIG_PAGES)
    inside = np.arange(c.BLOCK_PAGES) < count
    filled = (there | asked) & inside
    wanted = np.zeros_like(asked)
    for width in (16, 32, 64, 128, 256, 512):
        for first in range(0, c.BLOCK_PAGES, width):
            part = slice(first, first + width)
            dense = filled[part].sum() * 100 > inside[part].sum() * threshold
            wanted[part] |= asked[part].any() and dense
    expected = np.where(wanted & ~there & inside, BROUGHT, want)
    add_dense(
        (pages, words(pages)), (want, words(want)), scratch(), 0, count, here, threshold, False
    )
    np.testing.assert_array_equal(want, expected)


def test_no_references_are_counted_whatever_was_compiled_before():
    njit(lambda values: values.view(np.uint64))(np.zeros(8, np.uint8))
    afresh = njit(_nrt=False)(prefetcher.add_dense.py_func)
    pages, want = np.zeros(c.BLOCK_PAGES, np.uint8), np.zeros(c.BLOCK_PAGES, np.uint8)
    both = (pages, words(pages)), (want, words(want))
    afresh(*both, scratch(), 0, c.BLOCK_PAGES, c.ON_GPU, 51, False)
    assert not any("NRT_" in code for code in afresh.inspect_asm().values())
