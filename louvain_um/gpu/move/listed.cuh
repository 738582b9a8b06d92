// Rows in linked blocks as kernels of levels read them. All blocks are listed (`list_blocks`), so that an
// arc is found by its number: arc j is entry j % width of block j / width.
//
// Where kernels take offsets, they get pairs, the numbers of a row's first arc and of the one behind
// its last; what they get as weights says where arcs lie.
#pragma once
#include "warp_read_row.cuh"

struct Listed {
  const i64* places;    // where each block begins
  const void* weights;  // at the places of targets
  u32 width, step, weight_bytes;  // of no bytes where every arc weighs 1

  __device__ __forceinline__ i64 place(i64 j) const {
    const u64 block = j >> 32 ? (u64)j / width : (u32)j / width;
    return places[block] + (u32)(j - block * width) * step;
  }
};
static_assert(sizeof(Listed) == 32, "mirrored by LISTED_ARCS in gpu/preparation.py");

__device__ __forceinline__ Row row_of(const Listed*, const i64* pairs, i64 v) {
  return {pairs[2 * v], pairs[2 * v + 1]};
}
__device__ __forceinline__ u64 weight_at(const Listed* arcs, i64 j) {
  if (arcs->weight_bytes == 4) return ((const u32*)arcs->weights)[arcs->place(j)];
  return arcs->weight_bytes ? ((const u64*)arcs->weights)[arcs->place(j)] : 1;
}
__device__ __forceinline__ u32 target_at(const u32* targets, const Listed* arcs, i64 j) {
  return targets[arcs->place(j)];
}
__device__ __forceinline__ u32 target_of_lane(const u32* targets, const Listed* arcs, i64 j,
                                              bool valid, bool) {
  return valid ? target_at(targets, arcs, j) : EMPTY;
}
__device__ __forceinline__ void read_targets(const u32* targets, const Listed* arcs, i64 j, i64 low,
                                             i64 high, u32 (&target)[LANE_ARCS]) {
#pragma unroll
  for (u32 q = 0; q < LANE_ARCS; ++q) {
    const i64 k = j + q * WARP + threadIdx.x % WARP;
    target[q] = k >= low && k < high ? target_at(targets, arcs, k) : 0;
  }
}
