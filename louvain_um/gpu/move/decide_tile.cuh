// Deciding for vertices of at most 32 arcs: few lanes per vertex, four arcs per lane.
//
// What takes time is to wait for memory, so that as many vertices as possible are under way at once.
// Four times the lanes of a vertex read its row together, one arc each, four rows in turn; then they
// exchange what they read. No table is needed: lanes compare what they hold.
#pragma once
#include "bins.cuh"
#include "packed.cuh"

#define ARCS_A_LANE 4

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

// Exchanges what lanes hold: of four groups of G lanes each, group g gets the g-th values of all.
template <u32 G, class T>
__device__ __forceinline__ void exchange(T (&values)[ARCS_A_LANE]) {
#pragma unroll
  for (u32 step = 1; step < ARCS_A_LANE; step *= 2) {
    const bool upper = threadIdx.x & (step * G);
#pragma unroll
    for (u32 q = 0; q < ARCS_A_LANE; ++q) {
      if (q & step) continue;
      const T other = __shfl_xor_sync(FULL, upper ? values[q] : values[q + step], step * G);
      if (upper)
        values[q] = other;
      else
        values[q + step] = other;
    }
  }
}

// Reads rows of at most T arcs, one for each T / 4 lanes, which give it alike: what read(j, valid,
// follows) returns for each arc j. `valid`: it is one; `follows`: so is j + 1, the next lane's.
// `exchange` then gives a lane those of its own row. Whole warps call.
template <u32 T, class V, class F>
__device__ __forceinline__ void read_rows(const Row& row, V (&values)[ARCS_A_LANE], F read) {
  const u32 lane = threadIdx.x % WARP, arcs = row.arcs();
#pragma unroll
  for (u32 q = 0; q < ARCS_A_LANE; ++q) {
    const u32 from = lane / T * T + q * (T / ARCS_A_LANE);
    const i64 j = __shfl_sync(FULL, row.low, from) + lane % T;
    const u32 count = __shfl_sync(FULL, arcs, from);
    values[q] = read(j, lane % T < count, lane % T + 1 < count);
  }
}

// Reads such rows' targets: EMPTY for no arc.
template <u32 T, class S>
__device__ __forceinline__ void read_target_rows(const S& s, const Row& row,
                                                 u32 (&target)[ARCS_A_LANE]) {
  read_rows<T>(row, target, [&](i64 j, bool valid, bool follows) {
    return target_of_lane(s.targets, s.weights, j, valid, follows);
  });
}

// Reads such rows' targets and weights: EMPTY and 0 for no arc.
template <u32 T, class S, class A>
__device__ __forceinline__ void read_arcs(const S& s, const Row& row, u32 (&target)[ARCS_A_LANE],
                                          A (&weight)[ARCS_A_LANE]) {
  read_target_rows<T>(s, row, target);
  if constexpr (!S::unweighted)
    read_rows<T>(row, weight, [&](i64 j, bool valid, bool) {
      return valid ? (A)weight_at(s.weights, j) : (A)0;
    });
  exchange<T / ARCS_A_LANE>(target);
  if constexpr (!S::unweighted) exchange<T / ARCS_A_LANE>(weight);
#pragma unroll
  for (u32 q = 0; q < ARCS_A_LANE; ++q)
    if (S::unweighted) weight[q] = target[q] != EMPTY;
}

// Sums the weights of the G lanes of a vertex by label. Each label stays in one place; elsewhere it
// becomes EMPTY.
template <u32 G, class A>
__device__ __forceinline__ void join_labels(u32 (&label)[ARCS_A_LANE], A (&weight)[ARCS_A_LANE]) {
#pragma unroll
  for (u32 q = 0; q < ARCS_A_LANE; ++q) {
#pragma unroll
    for (u32 r = q + 1; r < ARCS_A_LANE; ++r) {
      if (label[r] != label[q]) continue;
      weight[q] += weight[r];
      label[r] = EMPTY;
    }
  }
  // Halves that differ in a bit of the lane: each label is in one place of either.
#pragma unroll 1
  for (u32 d = 1; d < G; ++d) {
    const bool upper = threadIdx.x & (d >= 4 ? 4 : d >= 2 ? 2 : 1);
    u32 other[ARCS_A_LANE];
    A more[ARCS_A_LANE];
#pragma unroll
    for (u32 r = 0; r < ARCS_A_LANE; ++r) {
      other[r] = __shfl_xor_sync(FULL, label[r], d);
      more[r] = __shfl_xor_sync(FULL, weight[r], d);
    }
#pragma unroll
    for (u32 q = 0; q < ARCS_A_LANE; ++q) {
      bool found = false;
#pragma unroll
      for (u32 r = 0; r < ARCS_A_LANE; ++r) {
        if (other[r] != label[q]) continue;
        weight[q] += more[r];
        found = true;
      }
      if (found && upper) label[q] = EMPTY;
    }
  }
}

// Decides for the vertices in queue[begin:end), of at most T arcs, by T / 4 lanes each.
template <u32 T, class S>
__device__ void decide_tile(const S& s, u32 begin, u32 end, u32* counter, Tally& tally) {
  using A = typename S::Accumulator;
  constexpr u32 G = T / ARCS_A_LANE, per_warp = WARP / G;
  constexpr u32 bin = T == 32 ? TILE32 : T == 16 ? TILE16 : T == 8 ? TILE8 : TILE4;
  const u32 lane = threadIdx.x % WARP, rank = lane % G;
  if (begin == end) return;
  // Rounds of a warp between two claims: few where there is little to share.
  const u32 rounds = min(max((end - begin) / (gridDim.x * WARPS * per_warp * 8), 1u), 16u);
  u32 at = first_item(bin, rounds * per_warp);
  while (at < end - begin) {
    u32 next = next_item(counter, rounds * per_warp, end - begin);
    for (u32 k = 0; k < rounds && begin + at + k * per_warp < end; ++k) {
      const u32 i = begin + at + k * per_warp + lane / G, v = i < end ? s.queue[i] : 0;
      const typename S::Vertex x = s.vertex(v);
      const bool valid = i < end && !x.idle;
      const Row row = valid ? row_of(s.weights, s.offsets, v) : Row{0, 0};
      u32 label[ARCS_A_LANE];
      A weight[ARCS_A_LANE];
      read_arcs<T>(s, row, label, weight);
#pragma unroll
      for (u32 q = 0; q < ARCS_A_LANE; ++q)
        if (label[q] != EMPTY) label[q] = s.label(x, label[q]);
      join_labels<G>(label, weight);
      A own_weight = 0;
#pragma unroll
      for (u32 q = 0; q < ARCS_A_LANE; ++q)
        if (label[q] == x.own && label[q] != EMPTY) own_weight += weight[q];
#pragma unroll
      for (u32 d = G / 2; d; d >>= 1) own_weight += __shfl_xor_sync(FULL, own_weight, d);
      double least = 0;
      if constexpr (S::bounded) least = s.floor(x, own_weight);
      Choice best = {0.0, EMPTY};
#pragma unroll
      for (u32 q = 0; q < ARCS_A_LANE; ++q) {
        bool may_win = label[q] != EMPTY && label[q] != x.own;
        if constexpr (S::bounded) may_win = may_win && __ull2double_rn(weight[q]) > least;
        if (may_win) best = better(best, s.choice(x, label[q], weight[q]), s.seed);
      }
#pragma unroll
      for (u32 d = G / 2; d; d >>= 1) {
        const Choice other = {__shfl_xor_sync(FULL, best.score, d),
                              __shfl_xor_sync(FULL, best.community, d)};
        best = better(best, other, s.seed);
      }
      A best_weight = 0;
      if constexpr (S::wants_best_weight) {
#pragma unroll
        for (u32 q = 0; q < ARCS_A_LANE; ++q)
          if (label[q] == best.community && label[q] != EMPTY) best_weight += weight[q];
#pragma unroll
        for (u32 d = G / 2; d; d >>= 1) best_weight += __shfl_xor_sync(FULL, best_weight, d);
      }
      if (valid && rank == 0) s.propose(i, x, best, own_weight, best_weight, tally);
    }
    at = next;
  }
}
