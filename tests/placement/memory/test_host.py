import numpy as np
import pytest

from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.memory import host


@pytest.mark.parametrize("size", [0, 1, 1000, 5 * BLOCK + 17])
def test_copies_are_whole(size):
    source = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    target = np.full(size + 1, 7, np.uint8)
    host.copy(target.ctypes.data, source.ctypes.data, size)
    assert np.array_equal(target[:-1], source)
    assert target[-1] == 7


@pytest.mark.parametrize("size", [1, 1000, 3 * BLOCK])
def test_every_element_is_set(size):
    values = np.zeros(size + 64, np.int64)
    begin = -values.ctypes.data % 256 // 8
    host.fill(values[begin:].ctypes.data, 8 * size, np.int64, -5)
    assert (values[begin : begin + size] == -5).all()
    assert values[begin + size :].any() == values[:begin].any() == False  # noqa: E712


def test_page_locked_memory_is_registered_and_given_back(cuda):
    pages = host.PageLocked(3 * BLOCK)
    assert pages.address % BLOCK == 0
    assert cuda.alive == {pages.address: ("registered", 3 * BLOCK)}
    host.fill(pages.address, 3 * BLOCK, np.uint8, 1)
    pages.close()
    assert not cuda.alive


def test_more_than_the_host_has_is_refused_before_it_is_touched(monkeypatch, cuda):
    monkeypatch.setattr(host, "available", lambda: BLOCK)
    with pytest.raises(MemoryError):
        host.PageLocked(2 * BLOCK)
    assert not cuda.alive
