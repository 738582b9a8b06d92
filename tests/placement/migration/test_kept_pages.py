"""Pages of the host stay for the next run, and for nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from louvain_um.errors import LouvainUmError
from louvain_um.placement.memory.cuda_calls import CudaError
from louvain_um.placement.memory.run_memory import RunMemory
from louvain_um.placement.migration import pages
from louvain_um.placement.migration.pages import KEPT, PhysicalPages, kept_bytes, release_kept
from louvain_um.placement.policy.policy import Placement
from tests.placement.migration.mapped_memory import MIB, PAGE, filled, layout, started

HOST_PAGES = 18
"""Those of `memory_of`: 12 MiB of arcs, and 24 MiB for later levels."""


@pytest.fixture(autouse=True)
def keeping(cuda, monkeypatch):
    monkeypatch.setattr(pages, "KEPT_SHARE", 0.5)
    yield
    release_kept()
    assert not pages_alive(cuda)
    assert not cuda.mapped


def pages_alive(cuda):
    """Return what is there of pages; buffers for copies stay, too."""
    return [kind for kind, _ in cuda.alive.values() if kind != "registered"]


def made(cuda):
    """Return how many pages of the host were made so far."""
    return sum(entry[:2] == ("cuMemCreate", "host") for entry in cuda.log)


def run(cuda):
    """Use pages of both sides, and check the values in them."""
    with started(cuda) as (memory, *_):
        memory.mover.room.pool.finish()
        _, values = filled(memory, "targets.1", 18 * MIB, cold=True)
        assert np.array_equal(memory.fetch("targets.1"), values)


def test_the_next_run_makes_no_pages_of_the_host(cuda):
    run(cuda)
    before = made(cuda)
    assert kept_bytes() == HOST_PAGES * PAGE
    for _ in range(3):
        run(cuda)
    # To know whether the driver maps pages, each run makes one, and gives it back.
    assert made(cuda) == before + 3
    assert kept_bytes() == HOST_PAGES * PAGE


def test_pages_that_do_not_suit_are_given_back(cuda):
    for device, size, count in ((1, PAGE, 1), (0, 2 * PAGE, 1), (0, PAGE, 1 << 30)):
        PhysicalPages(0, 4 * MIB, 2 * PAGE, 0, PAGE).close()
        assert len(KEPT) == 1
        assert pages.take_kept(device, size, count) is None
        assert not KEPT
        assert not pages_alive(cuda)


def test_no_more_stays_than_a_share_of_the_host(cuda, monkeypatch):
    monkeypatch.setattr(pages, "available", lambda: (100 - HOST_PAGES) * PAGE)
    monkeypatch.setattr(pages, "KEPT_SHARE", 0.085)
    run(cuda)
    assert kept_bytes() == 8 * PAGE
    before = made(cuda)
    run(cuda)
    assert made(cuda) == before + 1 + HOST_PAGES - 8


def test_pages_that_stayed_count_as_free(cuda, monkeypatch):
    run(cuda)
    name = "louvain_um.placement.migration.pages.available"
    monkeypatch.setattr(name, lambda: 0)
    pool = PhysicalPages(0, 4 * MIB, 2 * PAGE, 4 * PAGE, PAGE)
    try:
        pool.finish()
        assert pool.ready("host") == HOST_PAGES
        assert len(pool.take("host", HOST_PAGES)) == HOST_PAGES
        assert pool.late == 0
    finally:
        pool.close()


@pytest.mark.parametrize("call", ["cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_a_run_that_fails_keeps_nothing(cuda, monkeypatch, call):
    run(cuda)
    cuda.reject = call
    with pytest.raises(LouvainUmError):
        PhysicalPages(0, 4 * MIB, 2 * PAGE, 0, PAGE)
    cuda.reject = None
    assert not KEPT
    assert not pages_alive(cuda)


def test_nothing_stays_where_closing_fails(cuda, monkeypatch):
    pool = PhysicalPages(0, 4 * MIB, 2 * PAGE, 0, PAGE)

    def fails():
        raise CudaError("cuMemUnmap", "CUDA_ERROR_ILLEGAL_ADDRESS", 700)

    monkeypatch.setattr(pool.mappings, "close", fails)
    with pytest.raises(CudaError):
        pool.close()
    assert not KEPT


def test_other_memory_of_the_host_takes_the_place_of_what_stayed(cuda):
    run(cuda)
    here, there = layout(12 * MIB)[1], Placement("host_mapped")
    with RunMemory((here,), 0):
        assert KEPT  # of a run that wants nothing of the host
    arcs = replace(layout(12 * MIB)[0], placement=there, in_pages=False)
    with RunMemory((arcs, here), 0):
        assert not KEPT
