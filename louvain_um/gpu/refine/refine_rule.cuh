// The rule of refinement, and what its kernels share.
#pragma once
#include "decide.cuh"
#include "hubs.cuh"

// Whether a part is tied to its community at least as chance would have it.
template <class A>
__device__ __forceinline__ bool well_connected(A cut, A total, A community_total, double rate) {
  return __ull2double_rn(cut) >= __dmul_rn(__dmul_rn(rate, __ull2double_rn(total)),
                                           __ull2double_rn(community_total - total));
}

// The rule of refinement: parts of the vertex's own community count, as their own labels.
template <class W, class A>
struct Refiner {
  using Accumulator = A;
  static constexpr bool unweighted = ::unweighted<W>, sorted = same<W, Packed>, wants_tie = true;
  const i64* offsets;
  const u32* targets;
  const W* weights;
  const A* degrees;
  const u32* labels;
  const A* totals;
  u32* parts;
  A* part_totals;
  u32* part_sizes;
  A* cuts;
  u32* queue;
  u32* goals;
  A* ties;
  double rate;
  u32 seed;
  u32 salt;
  u32 sub_rounds;
  u32 sub_round;

  struct Vertex {
    u32 own;
    u32 community;
    A community_total;
    double pull;
    bool idle;
  };

  __device__ __forceinline__ A degree(i64 v) const {
    return degree_of(weights, degrees, offsets, v);
  }

  // A vertex is idle if it has company already or is loosely tied to its community.
  __device__ __forceinline__ Vertex vertex(u32 v) const {
    u32 community = labels[v];
    A weight = degree(v), community_total = totals[community];
    bool idle = parts[v] != v || part_sizes[v] != 1 ||
                !well_connected(cuts[v], weight, community_total, rate);
    return {v, community, community_total, __dmul_rn(rate, __ull2double_rn(weight)), idle};
  }

  __device__ __forceinline__ u32 label(const Vertex& x, u32 u) const {
    return labels[u] == x.community ? parts[u] : EMPTY;
  }

  __device__ __forceinline__ Choice choice(const Vertex& x, u32 part, A weight) const {
    A total = part_totals[part];
    Choice it = {score_of(weight, x.pull, total), part};
    if (it.score <= 0.0 ||
        (part_sizes[part] == 1 && bucket(part, salt, sub_rounds) == sub_round) ||
        !well_connected(cuts[part], total, x.community_total, rate))
      it.community = EMPTY;
    return it;
  }

  __device__ __forceinline__ void settle(u32 i, const Vertex&, Choice best, A, A tie,
                                         Tally&) const {
    goals[i] = best.community;
    ties[i] = tie;
  }
};

// Sums, for the vertices in queue[begin:end), the weight of arcs inside their communities.
template <u32 G, class S>
__device__ void cut_rows(const S& s, u32 begin, u32 end) {
  const u32 groups = gridDim.x * (THREADS / G), rank = threadIdx.x % G;
  using A = typename S::Accumulator;
  for (u32 first = begin + blockIdx.x * (THREADS / G); first < end; first += groups) {
    u32 i = first + threadIdx.x / G;
    A cut = 0;
    u32 v = i < end ? s.queue[i] : 0;
    if (i < end) {
      u32 own = s.labels[v];
      const auto [low, high] = row_of(s.weights, s.offsets, v);
      for (i64 j = low + rank; j < high; j += G)
        if (s.labels[target_at(s.targets, s.weights, j)] == own) cut += weight_at(s.weights, j);
    }
    if constexpr (G == THREADS)
      cut = block_sum(cut);
    else
      for (int d = G / 2; d; d >>= 1) cut += __shfl_xor_sync(FULL, cut, d);
    if (i < end && rank == 0) s.cuts[v] = cut;
  }
}

// The same for all vertices of a queue, whose classes begin at from[0], from[1], ….
template <class S>
__device__ void cut_all(const S& s, const u32* from) {
  cut_rows<THREADS>(s, from[GIANT], from[WARPED]);
  cut_rows<WARP>(s, from[WARPED], from[TILE16]);
  cut_rows<8>(s, from[TILE16], from[BINS]);
}

// Makes every vertex a part of its own.
template <class S>
__device__ void begin_parts(const S& s, i64 n, i64 thread, i64 threads) {
  for (i64 v = thread; v < n; v += threads) {
    s.parts[v] = v;
    s.part_totals[v] = s.degree(v);
    s.part_sizes[v] = 1;
    s.cuts[v] = 0;
  }
}

// Carries out what was decided for queue[begin:end).
template <class S>
__device__ void join_parts(const S& s, u32 begin, u32 end, i64 thread, i64 threads) {
  using A = typename S::Accumulator;
  for (i64 i = begin + thread; i < end; i += threads) {
    u32 goal = s.goals[i];
    if (goal == EMPTY) continue;
    u32 v = s.queue[i];
    s.parts[v] = goal;
    s.part_sizes[v] = 0;
    atomicAdd(s.part_totals + goal, s.degree(v));
    atomicAdd(s.part_sizes + goal, 1u);
    atomicAdd(s.cuts + goal, s.cuts[v] - (A)2 * s.ties[i]);
  }
}
