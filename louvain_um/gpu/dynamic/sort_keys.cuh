// Sorting a batch's keys within one launch: blocks sort tiles in shared memory, then each key finds
// its place among other runs by binary searches.
//
// For batches whose radix sort takes longer to launch than to run.
#pragma once
#include "grid.cuh"

// Keys that a block sorts.
#define TILE 1024
// Runs that become one in a round; their searches go side by side, so that loads overlap. With 8 of
// them an H200 takes 0.096 ms instead of 0.078 for 200,000 keys.
#define MERGED 4

#define LAST_KEY 0xFFFFFFFFFFFFFFFFull

// Sorts keys[low..low + size - 1] to `to`, size <= TILE; to_order, if not null, gets where each was.
// That of LAST_KEY may be wrong. Whole blocks call.
__device__ __forceinline__ void sort_tile(i64 low, u32 size, const u64* keys, u64* to,
                                          i64* to_order) {
  __shared__ u64 key[TILE];
  __shared__ u32 place[TILE];
  u32 padded = 2;
  while (padded < size) padded <<= 1;
  __syncthreads();
  for (u32 i = threadIdx.x; i < padded; i += blockDim.x) {
    key[i] = i < size ? keys[low + i] : LAST_KEY;
    place[i] = i;
  }
  __syncthreads();
  for (u32 merged = 2; merged <= padded; merged <<= 1) {
    for (u32 distance = merged >> 1; distance; distance >>= 1) {
      for (u32 t = threadIdx.x; t < padded / 2; t += blockDim.x) {
        const u32 a = 2 * t - (t & (distance - 1)), b = a + distance;
        const u64 first = key[a], second = key[b];
        if (a & merged ? first >= second : first <= second) continue;
        key[a] = second;
        key[b] = first;
        if (to_order == nullptr) continue;
        const u32 moved = place[a];
        place[a] = place[b];
        place[b] = moved;
      }
      __syncthreads();
    }
  }
  for (u32 i = threadIdx.x; i < size; i += blockDim.x) {
    to[low + i] = key[i];
    if (to_order) to_order[low + i] = low + place[i];
  }
}

// Merges MERGED runs of `run` keys each into one, all groups of them; orders move along.
__device__ __forceinline__ void merge_runs(u32 count, u32 run, const u64* from, u64* to,
                                           const i64* from_order, i64* to_order) {
  for (i64 turn = grid_thread(); turn < count; turn += grid_threads()) {
    const u32 i = turn, own = i / run % MERGED, base = i / run / MERGED * MERGED * run;
    const u64 key = from[i];
    u32 smaller[MERGED], length[MERGED];
#pragma unroll
    for (u32 s = 0; s < MERGED; ++s) {
      const u32 begin = base + s * run;
      length[s] = begin < count && s != own ? min(count - begin, run) : 0;
      smaller[s] = 0;
    }
    for (u32 step = run; step; step >>= 1) {
#pragma unroll
      for (u32 s = 0; s < MERGED; ++s) {
        const u32 upto = smaller[s] + step;
        if (upto > length[s]) continue;
        const u64 other = from[base + s * run + upto - 1];
        if (s < own ? other <= key : other < key) smaller[s] = upto;
      }
    }
    u32 at = base + i % run;
#pragma unroll
    for (u32 s = 0; s < MERGED; ++s) at += smaller[s];
    to[at] = key;
    if (to_order) to_order[at] = from_order[i];
  }
}

// Sorts `count` keys, by way of `spare`; order, if not null, gets where each was, but for LAST_KEY.
// Cooperative.
__device__ __forceinline__ void sort_keys_of(i64 count, u64* keys, u64* spare, i64* order,
                                             i64* spare_order, Barrier* barrier) {
  bool odd = false;  // rounds, so that the last one writes `keys`
  for (i64 run = TILE; run < count; run *= MERGED) odd = !odd;
  u64 *from = odd ? spare : keys, *to = odd ? keys : spare;
  i64 *from_order = odd ? spare_order : order, *to_order = odd ? order : spare_order;
  for (i64 low = blockIdx.x * (i64)TILE; low < count; low += gridDim.x * (i64)TILE)
    sort_tile(low, min(count - low, (i64)TILE), keys, from, from_order);
  for (i64 run = TILE; run < count; run *= MERGED) {
    grid_sync(barrier);
    merge_runs(count, run, from, to, from_order, to_order);
    u64* const keys_written = to;
    i64* const order_written = to_order;
    to = from, to_order = from_order;
    from = keys_written, from_order = order_written;
  }
}
