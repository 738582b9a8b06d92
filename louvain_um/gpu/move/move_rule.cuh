// The rule of moving, and what its kernels share: how a level begins, how moves are carried
// out, how neighbours are woken.
#pragma once
#include "decide.cuh"
#include "hubs.cuh"

// The rule of moving: every neighbouring community counts, the best one must beat staying.
template <class W, class A>
struct Mover {
  using Accumulator = A;
  static constexpr bool unweighted = ::unweighted<W>, sorted = same<W, Targets24>, wants_best_weight = false;
  const i64* offsets;
  const u32* targets;
  const W* weights;
  const A* degrees;
  u32* labels;
  A* totals;
  u32* sizes;
  u32* queue;
  u32* proposed;
  double rate;
  double total;
  u32 seed;

  struct Vertex {
    u32 own;
    A degree;
    double pull;
    static constexpr bool idle = false;
  };

  __device__ __forceinline__ A degree(i64 v) const {
    return degree_of(weights, degrees, offsets, v);
  }

  __device__ __forceinline__ Vertex vertex(u32 v) const {
    const A total = degree(v);
    return {labels[v], total, __dmul_rn(rate, __ull2double_rn(total))};
  }

  __device__ __forceinline__ u32 label(const Vertex&, u32 u) const { return labels[u]; }

  __device__ __forceinline__ Choice choice(const Vertex& x, u32 label, A weight) const {
    return {score_of(weight, x.pull, totals[label]), label};
  }

  // Notes where the vertex goes, unless that is one half of two lone vertices swapping places.
  __device__ __forceinline__ void settle(u32 i, const Vertex& x, Choice best, A own_weight, A,
                                         Tally& tally) const {
    u32 target = EMPTY;
    double stay = score_of(own_weight, x.pull, totals[x.own] - x.degree);
    if (best.community != EMPTY && best.score > stay &&
        !(best.community > x.own && sizes[x.own] == 1 && sizes[best.community] == 1)) {
      target = best.community;
      double gain = __ddiv_rn(__dsub_rn(best.score, stay), total);
      tally.gain += __double2ll_rn(__dmul_rn(gain, 1125899906842624.0));
      ++tally.moves;
    }
    proposed[i] = target;
  }
};

// Wakes u, unless it is queued in this sweep for a sub-round still to come.
__device__ __forceinline__ void wake(u32 u, u32 sub_round, u32 sub_rounds, u32 salt,
                                     const u8* active, u8* next_active) {
  if (next_active[u] || (active[u] && bucket(u, salt, sub_rounds) > sub_round)) return;
  next_active[u] = 1;
}

// Wakes the neighbours of the moved vertices in queue[begin:end) that are outside the mover's
// new community: a group of G threads a vertex, `groups` of them in the grid.
template <u32 G, class S>
__device__ void activate(const S& s, u32 begin, u32 end, u32 sub_round, u32 sub_rounds,
                         u32 salt, const u8* active, u8* next_active) {
  const u32 groups = gridDim.x * (THREADS / G), rank = threadIdx.x % G;
  for (u32 i = begin + blockIdx.x * (THREADS / G) + threadIdx.x / G; i < end; i += groups) {
    u32 target = s.proposed[i];
    if (target == EMPTY) continue;
    u32 v = s.queue[i];
    const auto [low, high] = row_of(s.weights, s.offsets, v);
    for (i64 j = low + rank; j < high; j += G) {
      u32 u = target_at(s.targets, s.weights, j);
      if (s.labels[u] != target) wake(u, sub_round, sub_rounds, salt, active, next_active);
    }
  }
}

// Carries out the moves of queue[begin:end), for the threads of the grid, in whole warps.
template <class S>
__device__ void apply_moves(const S& s, u32 begin, u32 end, i64 thread, i64 threads) {
  using A = typename S::Accumulator;
  for (i64 k = thread; k < whole_warps(end - begin); k += threads) {
    i64 i = begin + k;
    u32 target = i < end ? s.proposed[i] : EMPTY, own = EMPTY;
    if (!__any_sync(FULL, target != EMPTY)) continue;
    A degree = 0;
    if (target != EMPTY) {
      u32 v = s.queue[i];
      own = s.labels[v];
      degree = s.degree(v);
      s.labels[v] = target;
    }
    add_together(s.totals, own, (A)0 - degree);
    add_together(s.totals, target, degree);
    add_together(s.sizes, own, ~0u);
    add_together(s.sizes, target, 1u);
  }
}

// Puts every vertex where it starts, alone where `start` is null, and wakes it. Ends with a
// barrier.
template <class S>
__device__ void begin_level(const S& s, i64 n, const u32* start, u8* active, u8* next_active, i64 thread,
                            i64 threads, Barrier* barrier) {
  using A = typename S::Accumulator;
  for (i64 v = thread; v < n; v += threads) {
    s.labels[v] = start ? start[v] : v;
    s.totals[v] = start ? 0 : s.degree(v);
    s.sizes[v] = start ? 0 : 1;
    active[v] = 1;
    next_active[v] = 0;
  }
  grid_sync(barrier);
  if (!start) return;
  for (i64 v = thread; v < whole_warps(n); v += threads) {
    u32 label = v < n ? start[v] : EMPTY;
    add_together(s.totals, label, v < n ? s.degree(v) : (A)0);
    add_together(s.sizes, label, 1u);
  }
  grid_sync(barrier);
}
