from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from louvain_um.placement.hardware import ALIGNED
from louvain_um.placement.memory.arena import FreeList, rounded


def test_the_smallest_gap_that_fits_is_taken():
    blocks = FreeList(100 * ALIGNED)
    a, b, c, d = (blocks.take(n * ALIGNED) for n in (10, 1, 4, 1))
    blocks.give(a)
    blocks.give(c)
    assert blocks.take(4 * ALIGNED) == c
    assert blocks.take(3 * ALIGNED) == a
    assert (b, d) == (10 * ALIGNED, 15 * ALIGNED)
    # Short-lived blocks are cut from its end.
    assert blocks.take(2 * ALIGNED, high=True) == 8 * ALIGNED
    assert blocks.take(6 * ALIGNED, high=True) == 94 * ALIGNED


def test_an_empty_array_has_an_address_of_its_own():
    blocks = FreeList(2 * ALIGNED)
    assert blocks.take(0) != blocks.take(0)
    assert blocks.take(0) is None


def test_shrinking_gives_the_end_back():
    blocks = FreeList(8 * ALIGNED)
    a = blocks.take(8 * ALIGNED)
    blocks.shrink(a, ALIGNED + 1)
    assert (blocks.in_use, blocks.peak) == (2 * ALIGNED, 8 * ALIGNED)
    assert blocks.take(6 * ALIGNED) == 2 * ALIGNED
    with pytest.raises(ValueError, match="cannot shrink"):
        blocks.shrink(a, 3 * ALIGNED)


def test_giving_twice_is_an_error():
    blocks = FreeList(ALIGNED)
    a = blocks.take(1)
    blocks.give(a)
    with pytest.raises(KeyError):
        blocks.give(a)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20 * ALIGNED)), max_size=60))
def test_blocks_never_overlap_and_everything_comes_back(steps):
    blocks = FreeList(64 * ALIGNED)
    live = {}
    for what, amount in steps:
        if what < 2 or not live:
            offset = blocks.take(amount)
            if offset is not None:
                live[offset] = rounded(amount)
            else:
                assert all(size < rounded(amount) for _, size in blocks.gaps)
        else:
            offset = sorted(live)[amount % len(live)]
            if what == 2:
                blocks.give(offset)
                del live[offset]
            else:
                live[offset] = rounded(live[offset] // 2)
                blocks.shrink(offset, live[offset])
        spans = sorted([*live.items(), *blocks.gaps])
        assert all(a + n == b for (a, n), (b, _) in pairwise(spans))
        assert sum(size for _, size in spans) == blocks.capacity
        # Neighbouring gaps are joined.
        ends = {offset + size for offset, size in blocks.gaps}
        assert not ends & {offset for offset, _ in blocks.gaps}
        assert blocks.in_use == sum(live.values()) <= blocks.peak
    for offset in live:
        blocks.give(offset)
    assert blocks.gaps == [(0, blocks.capacity)]
