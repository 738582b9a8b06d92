"""Blocks come and go within their room, oldest first."""

import numpy as np
import pytest

from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.memory.cuda_calls import HOST
from louvain_um.placement.migration.block_cache import ArcArray, BlockCache


class Driver:
    """Stands for memory: which units are on the device, and what was asked of it."""

    def __init__(self, room):
        self.room = room
        self.here = set[int]()
        self.most = 0
        self.log = list[tuple[str, int]]()
        self.waiting = False

    def units(self, address, nbytes):
        assert address % BLOCK == nbytes % BLOCK == 0
        assert nbytes
        return range(address // BLOCK, (address + nbytes) // BLOCK)

    def send(self, address, nbytes, to):
        for unit in self.units(address, nbytes):
            assert (unit in self.here) == (to == HOST)
            (self.here.remove if to == HOST else self.here.add)(unit)
            self.log.append(("back" if to == HOST else "sent", unit))
        self.waiting = True
        self.most = max(self.most, len(self.here))

    def touch(self, address, nbytes):
        assert not self.waiting, "touched before what leaves had left"
        for unit in self.units(address, nbytes):
            assert unit not in self.here
            self.here.add(unit)
            self.log.append(("touched", unit))
        self.most = max(self.most, len(self.here))

    def arrive(self):
        self.waiting = False


def arena(mode, room, cuts, items=(4,)):
    """Return a cache over arrays at multiples of 100 units, `cuts` in units of 4-byte arcs."""
    driver = Driver(room)
    arcs = np.array(cuts, np.int64) * (BLOCK // 4)
    spans = [ArcArray(100 * BLOCK * k, item) for k, item in enumerate(items)]
    found = BlockCache(spans, arcs, room * BLOCK, mode, 0, touch=driver.touch, transfers=driver)
    return found, driver


@pytest.mark.parametrize("mode", ["fault", "prefetch"])
def test_never_more_than_the_room(mode):
    where, driver = arena(mode, 5, list(range(0, 17, 2)), (4, 8))
    draw = np.random.default_rng(0)
    # A block takes two units of targets and four of weights: six do not fit into five.
    with pytest.raises(ValueError, match="does not fit"):
        where.need(0)
    where, driver = arena(mode, 13, list(range(0, 17, 2)), (4, 8))
    for block in draw.integers(0, 8, 200).tolist():
        where.need(block, int(draw.integers(0, 8)))
        assert set(_units(where, block)) <= driver.here
        assert len(driver.here) <= 13
        assert where.resident_bytes == len(driver.here) * BLOCK
    brought = sum(kind != "back" for kind, _ in driver.log)
    assert where.traffic.to_device == brought * BLOCK
    assert where.traffic.to_host == (len(driver.log) - brought) * BLOCK


def test_the_block_used_longest_ago_leaves():
    where, driver = arena("fault", 3, [0, 1, 2, 3, 4])
    for block in (0, 1, 2, 0, 3):
        where.need(block)
    assert driver.log[-2:] == [("back", 1), ("touched", 3)]


def test_a_scan_in_one_direction_hits_nothing_and_there_and_back_hits():
    cuts = list(range(9))
    where, _ = arena("fault", 4, cuts)
    for _ in range(3):
        for block in range(8):
            where.need(block)
    assert where.traffic.to_device == 24 * BLOCK
    where, _ = arena("fault", 4, cuts)
    for turn in range(3):
        for block in range(8)[:: -1 if turn % 2 else 1]:
            where.need(block)
    assert where.traffic.to_device == (8 + 4 + 4) * BLOCK


def test_the_next_block_is_sent_for_only_where_there_is_room():
    where, driver = arena("prefetch", 4, [0, 2, 4, 6])
    where.need(0, 1)
    assert driver.here == {0, 1, 2, 3}
    where, driver = arena("prefetch", 3, [0, 2, 4, 6])
    where.need(0, 1)
    assert driver.here == {0, 1}


def test_blocks_that_share_a_unit_do_not_bring_it_twice():
    driver = Driver(4)
    arcs = np.array([0, BLOCK // 4 + 5, 2 * BLOCK // 4], np.int64)
    where = BlockCache(
        [ArcArray(0, 4)], arcs, 4 * BLOCK, "fault", 0, touch=driver.touch, transfers=driver
    )
    where.need(0)
    where.need(1)
    assert driver.log == [("touched", 0), ("touched", 1)]


def _units(where, block):
    """Return the addresses, in units, of a block's arrays."""
    found = list[int]()
    for base, units in zip(where.bases, where.units, strict=True):
        found += [int(unit) + base for unit in range(*units[block])]
    return found
