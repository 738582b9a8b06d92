// Visiting ranges of arcs by warps, at the same rate for short rows and long ones: a warp takes
// consecutive arcs and finds the row of each, so that no lane waits for a longer row.
#pragma once
#include "sums.cuh"
#include "packed.cuh"

// Arcs that a lane loads at a time.
#define DEPTH 4

__device__ __forceinline__ u32 lane_index() { return threadIdx.x % WARP; }
__device__ __forceinline__ u32 warp_index() { return threadIdx.x / WARP; }
__device__ __forceinline__ u32 lanes_below() { return (1u << lane_index()) - 1; }

__device__ __forceinline__ u64 warp_max(u64 value) {
  for (int d = WARP / 2; d; d >>= 1) {
    u64 other = __shfl_xor_sync(FULL, value, d);
    value = other > value ? other : value;
  }
  return value;
}

// Returns the sum of `value` over the lanes of `peers`, which contains this lane.
template <class A>
__device__ __forceinline__ A sum_of_peers(u32 peers, A value) {
  A sum = 0;
  u32 left = peers;
  while (__any_sync(FULL, left != 0)) {
    A other = __shfl_sync(FULL, value, left ? __ffs(left) - 1 : 0);
    if (left) sum += other;
    left &= left - 1;
  }
  return sum;
}

// Returns the largest i in a..b - 1 with before[i] <= position; before[a] is. Whole warps call: 32
// probes per step.
template <class B>
__device__ __forceinline__ i64 find_row(B before, i64 a, i64 b, i64 position) {
  while (b - a > 1) {
    i64 step = (b - a + WARP - 1) / WARP, probe = a + lane_index() * step;
    bool reached = probe < b && before[probe] <= position;
    a += (__popc(__ballot_sync(FULL, reached)) - 1) * step;
    b = min(b, a + step);
  }
  return a;
}

// Visits the arcs of 32 rows, one row per lane: `length` arcs from `source` on; `total` becomes the
// sum of lengths. `visit` gets DEPTH sources (-1: none), the lanes whose rows they are in, and the
// number of arcs before the first; it returns false to end the walk of the whole warp, which then
// returns false.
template <class F>
__device__ __forceinline__ bool walk_lanes(u32 length, i64 source, u32& total, F visit) {
  const u32 lane = lane_index();
  u32 upto = length;
  for (int d = 1; d < WARP; d <<= 1) {
    u32 other = __shfl_up_sync(FULL, upto, d);
    if (lane >= d) upto += other;
  }
  total = __shfl_sync(FULL, upto, WARP - 1);
  source -= upto - length;
  for (u32 first = lane; first - lane < total; first += WARP * DEPTH) {
    i64 at[DEPTH];
    u32 owner[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      u32 p = first + d * WARP;
      owner[d] = 0;
#pragma unroll
      for (u32 step = WARP / 2; step; step >>= 1) {
        if (__shfl_sync(FULL, upto, owner[d] + step - 1) <= p) owner[d] += step;
      }
      i64 j = __shfl_sync(FULL, source, owner[d]) + p;
      at[d] = p < total ? j : -1;
    }
    if (__any_sync(FULL, !visit(at, owner, first))) return false;
  }
  return true;
}

// Visits positions low..high - 1 of consecutive rows by one warp. Row r has positions
// begins[r]..begins[r + 1] - 1, and source_of(r) is where its first arc lies; row `i` holds `low`.
// visit(at, owner, position) gets DEPTH sources (-1: none), the lanes whose rows they are in, and
// the position of the first; lane l called source_of for row i + l. Whole warps call; `visit`
// returns false to end the walk of the whole warp. `begins` is indexed like a pointer.
template <class B, class R, class F>
__device__ __forceinline__ void walk_rows(B begins, i64 i, i64 rows, i64 low, i64 high, R source_of,
                                          F visit) {
  u32 lane = lane_index();
  while (low < high) {
    u32 length = 0;
    i64 source = 0;
    if (i + lane < rows) {
      i64 begin = begins[i + lane], from = max(begin, low), to = min(begins[i + lane + 1], high);
      if (to > from) {
        length = u32(to - from);
        source = source_of(i + lane) + (from - begin);
      }
    }
    u32 total;
    if (!walk_lanes(length, source, total, [&](const i64* at, const u32* owner, u32 first) {
          return visit(at, owner, low + first);
        }))
      return;
    low += total;
    i += WARP;
    // Skip what may be a long run of empty rows.
    if (total == 0) i = find_row(begins, i, rows, low);
  }
}

// Returns how many positions a warp takes at a time, so that all warps get some: at most `most`.
__device__ __forceinline__ i64 warp_range(i64 positions, i64 most) {
  i64 even = positions / (gridDim.x * (i64)blockDim.x);
  return min(max(even, 1ll) * WARP, most);
}
