// Deciding with hash tables: a warp or a block sums a vertex's arcs by community in shared memory.
//
// A table is empty (keys EMPTY, sums 0) before and after each vertex, and at most half full.
#pragma once
#include "decide_tile.cuh"
#include "hash_table.cuh"
#include "warp_read_row.cuh"

// Adds the weights of arcs low..high - 1 to a table, by all threads of a group of G. Returns this
// thread's share of the weight to the vertex's own community, which stays out of the table.
template <u32 G, class S, class A>
__device__ __forceinline__ A fill(const S& s, const typename S::Vertex& x, i64 low, i64 high,
                                  u32 rank, u32* keys, A* sums, u32 slots) {
  const u32 lane = rank % WARP;
  A own_weight = 0;
  // Each warp reads LINE consecutive arcs by whole lines, since the bus counts requests.
  const i64 begin = begin_read(s.weights, low, high);
  for (i64 j = begin + rank / WARP * LINE; j < high; j += G * (LINE / WARP)) {
    u32 target[LANE_ARCS], label[LANE_ARCS];
    A weight[LANE_ARCS];
    read_targets(s.targets, s.weights, j, low, high, target);
    read_weights(s.weights, j, low, high, weight);
#pragma unroll
    for (int q = 0; q < LANE_ARCS; ++q) {
      const i64 k = j + q * WARP + lane;
      label[q] = k >= low && k < high ? s.label(x, target[q]) : EMPTY;
    }
#pragma unroll
    for (int q = 0; q < LANE_ARCS; ++q) {
      if (label[q] == x.own)
        own_weight += weight[q];
      else if (label[q] != EMPTY)
        add_weight(keys, sums, slots, label[q], weight[q]);
    }
  }
  return own_weight;
}

// Returns the best community in this thread's share of slots first..end - 1, and empties them.
// `weight` becomes the sum of that community, if the rule wants it.
template <u32 G, class S, class T, class A>
__device__ __forceinline__ Choice drain(const S& s, const typename S::Vertex& x, A own_weight,
                                        u32 rank, const T& table, u64 first, u64 end, A& weight) {
  Choice best = {0.0, EMPTY};
  double least = 0;
  if constexpr (S::bounded) least = s.floor(x, own_weight);
  for (u64 k = first + rank; k < end; k += G) {
    A sum;
    const u32 key = table.get(k, sum);
    if (key == EMPTY) continue;
    table.clear(k);
    if constexpr (S::bounded) {
      const double most = __ull2double_rn(sum);
      if (most <= least || most < best.score) continue;
    }
    best = better(best, s.choice(x, key, sum), s.seed);
    if constexpr (S::wants_best_weight)
      if (best.community == key) weight = sum;
  }
  return best;
}

// Returns the best of all lanes' choices to every lane.
__device__ __forceinline__ Choice best_of_warp(Choice best, u32 seed) {
  for (int d = WARP / 2; d; d >>= 1) {
    Choice other = {__shfl_xor_sync(FULL, best.score, d), __shfl_xor_sync(FULL, best.community, d)};
    best = better(best, other, seed);
  }
  return best;
}

// Returns the best of all threads' choices to every thread. The block has to meet at a barrier
// between two calls.
template <class A>
__device__ Choice best_of_block(Choice best, u32 seed, Shared<A>& shared) {
  best = best_of_warp(best, seed);
  if (threadIdx.x % WARP == 0) shared.best[threadIdx.x / WARP] = best;
  __syncthreads();
  best = shared.best[0];
  for (u32 w = 1; w < WARPS; ++w) best = better(best, shared.best[w], seed);
  return best;
}

// Decides for the vertices in queue[begin:end) of bin PER_WARP, in the warp's eighth of the table.
template <class S, class A>
__device__ void decide_warp(const S& s, u32 begin, u32 end, u32* counter, u32* keys, A* sums,
                            Tally& tally) {
  const u32 lane = threadIdx.x % WARP;
  if (begin == end) return;
  u32 at = first_item(PER_WARP, 1);
  while (at < end - begin) {
    u32 next = next_item(counter, 1, end - begin);
    u32 i = begin + at, v = s.queue[i];
    at = next;
    const typename S::Vertex x = s.vertex(v);
    if (x.idle) continue;
    const auto [low, high] = row_of(s.weights, s.offsets, v);
    u32 slots = slots_for(high - low);
    A own_weight = fill<WARP>(s, x, low, high, lane, keys, sums, slots);
    __syncwarp();
    own_weight = warp_sum(own_weight);
    A best_weight = 0;
    const Choice mine =
        drain<WARP>(s, x, own_weight, lane, Slots<A>{keys, sums}, 0, slots, best_weight);
    const Choice best = best_of_warp(mine, s.seed);
    // A community is in one slot, hence with one lane.
    if constexpr (S::wants_best_weight)
      best_weight = warp_sum(mine.community == best.community ? best_weight : (A)0);
    if (lane == 0) s.propose(i, x, best, own_weight, best_weight, tally);
    __syncwarp();
  }
}

// Decides for the vertices in queue[begin:end) of bin BLOCK, in the block's table.
template <class S, class A>
__device__ void decide_block(const S& s, u32 begin, u32 end, u32* counter, u32* keys, A* sums,
                             Shared<A>& shared, Tally& tally) {
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) shared.claimed = atomicAdd(counter, 1);
    __syncthreads();
    u32 i = begin + shared.claimed;
    if (i >= end) break;
    u32 v = s.queue[i];
    const auto [low, high] = row_of(s.weights, s.offsets, v);
    typename S::Vertex x = s.vertex(v);
    if (x.idle) continue;
    u32 slots = slots_for((u32)(high - low));
    A own_weight = fill<THREADS>(s, x, low, high, threadIdx.x, keys, sums, slots);
    own_weight = block_sum(own_weight);
    A best_weight = 0;
    const Choice mine =
        drain<THREADS>(s, x, own_weight, threadIdx.x, Slots<A>{keys, sums}, 0, slots, best_weight);
    const Choice best = best_of_block(mine, s.seed, shared);
    if constexpr (S::wants_best_weight)
      best_weight = block_sum(mine.community == best.community ? best_weight : (A)0);
    if (threadIdx.x == 0) s.propose(i, x, best, own_weight, best_weight, tally);
  }
  __syncthreads();
}
