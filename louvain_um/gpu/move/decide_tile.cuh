// Deciding for vertices of at most 32 arcs: a tile of lanes per vertex, one arc per lane.
//
// No table is needed: lanes with the same community find each other by match_any, and the first of
// them scores it. Unweighted sums are a population count.
#pragma once
#include "bins.cuh"
#include "targets24.cuh"

// The warps of the grid take the items of a bin, `step` at a time: each begins with a place of its
// own, which needs no counter, and takes more from a counter while there are any. So a bin of few
// items costs few atomics. Bins begin at different warps, and neighbours in a bin at different
// blocks, so that many warps work on few items. Every warp of the grid has to take part.

// Returns a warp's first item of a bin.
__device__ __forceinline__ u32 first_item(u32 bin, u32 step) {
  const u32 warps = gridDim.x * WARPS, warp = threadIdx.x / WARP * gridDim.x + blockIdx.x;
  return (warp + warps / BINS * bin) % warps * step;
}

// Returns its next item of `count`; one that is not below that ends the bin. Whole warps call.
__device__ __forceinline__ u32 next_item(u32* counter, u32 step, u32 count) {
  const u32 firsts = gridDim.x * WARPS * step;
  if (firsts >= count) return count;
  u32 at = 0;
  if (threadIdx.x % WARP == 0) at = atomicAdd(counter, step);
  return firsts + __shfl_sync(FULL, at, 0);
}

// Returns the sum of the values of the lanes in `peers`, a set of lanes of one tile of T lanes.
template <int T, class A>
__device__ __forceinline__ A sum_of_peers(A value, u32 peers, u32 tile) {
  A sum = 0;
#pragma unroll
  for (int k = 0; k < T; ++k) {
    A other = __shfl_sync(FULL, value, tile * T + k);
#if FEW_PREDICATES
    sum += other & ((A)0 - (A)(peers >> (tile * T + k) & 1));
#else
    if (peers >> (tile * T + k) & 1) sum += other;
#endif
  }
  return sum;
}

// Decides for the vertices in queue[begin:end), of at most T arcs, by tiles of T lanes.
template <int T, class S>
__device__ void decide_tile(const S& s, u32 begin, u32 end, u32* counter, Tally& tally) {
  using A = typename S::Accumulator;
  constexpr u32 per_warp = WARP / T;
  constexpr u32 bin = T == 32 ? TILE32 : T == 16 ? TILE16 : T == 8 ? TILE8 : TILE4;
  const u32 lane = threadIdx.x % WARP, tile = lane / T, rank = lane % T;
  const u32 in_tile = (T == WARP ? FULL : (1u << T) - 1) << (tile * T);
  if (begin == end) return;
  // Rounds of a warp between two claims: few where there is little to share.
  const u32 rounds = min(max((end - begin) / (gridDim.x * WARPS * per_warp * 8), 1u), 16u);
  u32 at = first_item(bin, rounds * per_warp);
  while (at < end - begin) {
    u32 next = next_item(counter, rounds * per_warp, end - begin);
    for (u32 k = 0; k < rounds && begin + at + k * per_warp < end; ++k) {
      u32 i = begin + at + k * per_warp + tile;
      bool valid = i < end;
      u32 v = valid ? s.queue[i] : 0, label = EMPTY;
      A weight = 0;
      typename S::Vertex x = s.vertex(v);
      valid = valid && !x.idle;
      const Row row = valid ? row_of(s.weights, s.offsets, v) : Row{0, 0};
      i64 j = row.low + rank;
      if (valid && j < row.high) {
        label = s.label(x, target_at(s.targets, s.weights, j));
        weight = weight_at(s.weights, j);
      }
      u32 peers = __match_any_sync(FULL, label) & in_tile;
      if constexpr (S::unweighted)
        weight = __popc(peers);
      else
        weight = sum_of_peers<T>(weight, peers, tile);
      bool mine = label == x.own && label != EMPTY;
      u32 at_own = __ballot_sync(FULL, mine) & in_tile;
      A own_weight = __shfl_sync(FULL, weight, at_own ? __ffs(at_own) - 1 : lane);
      if (!at_own) own_weight = 0;
      Choice best = {0.0, EMPTY};
      bool may_win = label != EMPTY && !mine && lane == __ffs(peers) - 1;
      if constexpr (S::bounded)
        may_win = may_win && __ull2double_rn(weight) > s.floor(x, own_weight);
      if (may_win) best = s.choice(x, label, weight);
#pragma unroll
      for (int d = T / 2; d; d >>= 1) {
        Choice other = {__shfl_xor_sync(FULL, best.score, d),
                        __shfl_xor_sync(FULL, best.community, d)};
        best = better(best, other, s.seed);
      }
      A best_weight = 0;
      if constexpr (S::wants_best_weight) {
        u32 there = __ballot_sync(FULL, label == best.community && label != EMPTY) & in_tile;
        best_weight = __shfl_sync(FULL, weight, there ? __ffs(there) - 1 : lane);
      }
      if (valid && rank == 0) s.settle(i, x, best, own_weight, best_weight, tally);
    }
    at = next;
  }
}
