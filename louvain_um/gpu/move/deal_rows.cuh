// Dealing the rows of queued hubs to all blocks, so that no block is left alone with a long row.
#pragma once
#include "bins.cuh"
#include "search.cuh"
#include "packed.cuh"

// Arcs of a unit.
#define DEALT_ARCS 4096

// Calls visit(i, low, high) for units of arcs low..high - 1 of the vertices queue[i], i in
// begin..end - 1, for which wanted(i): whole blocks take units in turns. All threads of the grid
// call it with the same begin and end. `visit` must not use shared.unit_at.
template <class S, class A, class P, class F>
__device__ void deal_rows(const S& s, u32 begin, u32 end, Shared<A>& shared, P wanted, F visit) {
  u32 dealt = 0;
  for (u32 first = begin; first < end; first += THREADS) {
    const u32 i = first + threadIdx.x;
    u32 units = 0, all;
    if (i < end && wanted(i))
      units = (row_of(s.weights, s.offsets, s.queue[i]).arcs() + DEALT_ARCS - 1) / DEALT_ARCS;
    const u32 before = block_scan(units, all);
    shared.unit_at[threadIdx.x] = before;
    __syncthreads();
    // Blocks go on where the units before ended.
    for (u32 unit = (blockIdx.x + gridDim.x - dealt % gridDim.x) % gridDim.x; unit < all;
         unit += gridDim.x) {
      const u32 k = last_at_most(shared.unit_at, THREADS, unit);
      const Row row = row_of(s.weights, s.offsets, s.queue[first + k]);
      const i64 low = row.low + (i64)(unit - shared.unit_at[k]) * DEALT_ARCS;
      visit(first + k, low, min(low + DEALT_ARCS, row.high));
    }
    dealt += all;
    __syncthreads();
  }
}
