"""Ouroboros on a device: kernels of one's own allocate and free side by side."""

from __future__ import annotations

import numpy as np
import pytest

from louvain_um.dynamic.ouroboros import VARIANTS, Ouroboros
from louvain_um.errors import MemoryBudgetError

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

CODE = """
extern "C" __global__ void trade(HEAP heap, unsigned n, const unsigned* bytes, unsigned* wrong) {
  const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
  if (own >= n) return;
  for (unsigned round = 0; round < 8; ++round) {
    unsigned* page = (unsigned*)heap.malloc(bytes[(own + round) % n]);
    if (!page) {
      atomicAdd(&wrong[1], 1u);
      continue;
    }
    *page = own;
    if (*(volatile unsigned*)page != own) atomicAdd(&wrong[0], 1u);
    heap.free(page);
  }
}
"""


@pytest.mark.parametrize("variant", VARIANTS)
def test_kernels_of_ones_own_allocate_and_free(variant):
    import cupy

    heap = Ouroboros(64 << 20, variant)
    code = heap.include + CODE.replace("HEAP", heap.struct)
    trade = cupy.RawKernel(code, "trade", options=heap.options)
    rng = np.random.default_rng(4)
    bytes_ = cupy.asarray(1 + (rng.integers(0, 8192, 8192) >> rng.integers(0, 10, 8192)), np.uint32)
    wrong = cupy.zeros(2, np.uint32)
    trade((32,), (256,), (heap.argument, np.uint32(bytes_.size), bytes_, wrong))
    assert wrong.tolist() == [0, 0]
    assert heap.statistics().used_bytes == 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_pieces_are_apart_and_memory_runs_out(variant):
    import cupy

    heap = Ouroboros(1 << 20, variant)
    for _ in range(2):
        found = heap.malloc(cupy.full(12_000, 128, np.uint64))
        got = cupy.sort(found[found != 0])
        assert int((got[1:] - got[:-1]).min()) >= 128
        assert len(got) == heap.statistics().used_pages[3]
        assert 128 * len(got) > 0.7 * heap.nbytes
        heap.free(found)
        assert heap.statistics().used_bytes == 0


def test_a_heap_for_which_there_is_no_room_is_refused():
    import cupy

    heap = Ouroboros(1 << 20)
    pool = cupy.get_default_memory_pool()
    before = pool.get_limit()
    pool.set_limit(size=pool.total_bytes() + (1 << 20))
    try:
        with pytest.raises(MemoryBudgetError, match="ask for fewer bytes"):
            heap.reinitialise(1 << 30)
    finally:
        pool.set_limit(size=before)
    assert heap.statistics().used_bytes == 0
