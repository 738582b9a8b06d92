// Long rows, which all blocks share: a pass over rows sets them aside, and after a barrier of the grid
// warps take them in parts. The counter is 0 before.
#pragma once
#include "grid.cuh"
#include "search.cuh"

// Arcs and changes above which a row is set aside, and how many of them a warp takes at a time.
#define LONG_ROW 1024
#define CHUNK 256

// Sets a row aside if it is long; returns whether it is. An entry of the list has the row in its lower
// half and the parts of rows before it in its upper half: one addition counts both.
__device__ __forceinline__ bool set_aside(u64* list, u64* counter, u32 row, u32 items) {
  if (items <= LONG_ROW) return false;
  const u64 parts = ((u64)items + CHUNK - 1) / CHUNK;
  const u64 before = atomicAdd(counter, parts << 32 | 1);
  list[u32(before)] = before >> 32 << 32 | row;
  return true;
}

// Calls visit(row, first) for the parts of rows set aside: CHUNK items from `first` on. Whole warps
// call, and visit for the same part.
template <class F>
__device__ __forceinline__ void visit_long_rows(const u64* list, const u64* counter, F visit) {
  const u64 all = *(volatile const u64*)counter;
  for (u64 turn = grid_thread() / WARP; turn < all >> 32; turn += grid_threads() / WARP) {
    const u64 entry = list[last_at_most(list, u32(all), turn << 32 | EMPTY)];
    visit(u32(entry), (turn - (entry >> 32)) * CHUNK);
  }
}
