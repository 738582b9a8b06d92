// What the algorithms read of a graph, and how they go over it: `advance` from a frontier along
// arcs, `fold_rows` along rows. Neither orders its calls: what they are given must commute, but for
// the sums of `fold_rows`, whose order is fixed.
#pragma once
#include "walk_arcs.cuh"

#define THREADS 256
#define BOUNDS __launch_bounds__(THREADS, 4)
#define STRETCH_ARCS 1024  // arcs that a warp takes at a time
#define SHORT_ROW 8        // arcs of a row that one lane folds
#define STEPS 8            // arcs of a long row that a lane loads at once

// Row v is targets[begins[v]..ends[v] - 1], ascending, wherever it lies.
template <class W>
struct RowView {
  i64 n;
  const i64* begins;
  const i64* ends;
  const u32* targets;
  const W* weights;

  __device__ __forceinline__ i64 length(i64 v) const { return ends[v] - begins[v]; }
  __device__ __forceinline__ u64 weight(i64 arc) const { return weight_at(weights, arc); }
};

// Calls visit(u, arc) for all arcs of a frontier, cut into stretches of equal arcs, so that rows of
// any length are shared by warps. before[i] is the number of arcs of items before the i-th.
template <class W, class F>
__device__ __forceinline__ void advance(const RowView<W>& rows, const u32* frontier, i64 items,
                                        const i64* before, F visit) {
  const i64 arcs = before[items], stretch = stretch_of(arcs, STRETCH_ARCS);
  for (i64 low = grid_thread() / WARP * stretch; low < arcs;
       low += grid_threads() / WARP * stretch) {
    u32 mine = 0;
    auto source = [&](i64 i) {
      mine = frontier[i];
      return rows.begins[mine];
    };
    walk_rows(before, find_row(before, 0, items, low), items, low, min(low + stretch, arcs), source,
              [&](const i64* at, const u32* owner, i64) {
#pragma unroll
                for (int d = 0; d < DEPTH; ++d) {
                  const u32 u = __shfl_sync(FULL, mine, owner[d]);
                  if (at[d] >= 0) visit(u, at[d]);
                }
                return true;
              });
  }
}

// A frontier's arcs before each item, for `advance`. Holds two barriers.
template <class W>
__device__ __forceinline__ void scan_frontier(const RowView<W>& rows, const u32* frontier,
                                              i64 items, i64* before, i64* partials,
                                              Barrier* barrier) {
  grid_scan<i64>(
      items, [=](i64 i) { return rows.length(frontier[i]); }, before, partials, barrier);
  grid_sync(barrier);
}

template <class T>
__device__ __forceinline__ T lane_xor(T value, int d) {
  return __shfl_xor_sync(FULL, value, d);
}

// Calls done(v, fold) once for every row with wants(v): arc k of the row is joined to part k mod 32,
// in order, and parts are joined in a tree, 16 apart first. A row of no arcs folds to `none`, which
// joins as nothing.
template <class W, class T, class P, class L, class J, class D>
__device__ __forceinline__ void fold_rows(const RowView<W>& rows, T none, P wants, L load, J join,
                                          D done) {
  const u32 lane = lane_index();
  for (i64 v = grid_thread(); v - lane < rows.n; v += grid_threads()) {
    i64 begin = 0, end = 0;
    const bool mine = v < rows.n && wants(v);
    if (mine) {
      begin = rows.begins[v];
      end = rows.ends[v];
    }
    if (mine && end - begin <= SHORT_ROW) {
      T parts[SHORT_ROW];
#pragma unroll
      for (int k = 0; k < SHORT_ROW; ++k)
        parts[k] = begin + k < end ? join(none, load(v, begin + k)) : none;
#pragma unroll
      for (int half = SHORT_ROW / 2; half; half >>= 1) {
#pragma unroll
        for (int k = 0; k < half; ++k) parts[k] = join(parts[k], parts[k + half]);
      }
      done(v, parts[0]);
    }
    u32 left = __ballot_sync(FULL, end - begin > SHORT_ROW);
    while (left) {
      const int owner = __ffs(left) - 1;
      left &= left - 1;
      const i64 low = __shfl_sync(FULL, begin, owner), high = __shfl_sync(FULL, end, owner);
      const i64 row = v - lane + owner;
      T part = none;
      for (i64 first = low + lane; first < high; first += STEPS * WARP) {
        T values[STEPS];
#pragma unroll
        for (int s = 0; s < STEPS; ++s)
          values[s] = first + s * WARP < high ? load(row, first + s * WARP) : none;
#pragma unroll
        for (int s = 0; s < STEPS; ++s)
          if (first + s * WARP < high) part = join(part, values[s]);
      }
      for (int d = WARP / 2; d; d >>= 1) part = join(part, lane_xor(part, d));
      if (lane == 0) done(row, part);
    }
  }
}
