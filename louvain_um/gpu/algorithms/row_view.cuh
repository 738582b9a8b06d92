// What the algorithms read of a graph, and how they go over it: `advance` from a frontier along
// arcs, `fold_rows` along rows. Neither orders its calls: what they are given must commute, but for
// the sums of `fold_rows`, whose order is fixed.
#pragma once
#include "walk_arcs.cuh"

#define THREADS 256
#define STATE_BYTES 64       // of a control block, for barriers and counters
#define BOUNDS __launch_bounds__(THREADS, 4)
#define STRETCH_ARCS 1024  // arcs that a warp takes at a time
#define SHORT_ROW 8        // arcs of a row that one lane folds
#define MIDDLE_ROW 32      // arcs of a row that eight lanes fold, beside three other rows
#define HUB_ROW 8192       // arcs of a row above which a block folds it together
#define HUBS 64            // hubs that wait for their block; warps fold further ones
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
__device__ __forceinline__ T lane_from(T value, int lane) {
  return __shfl_sync(FULL, value, lane);
}

// Joins the parts of `lanes` neighbouring lanes, the farthest apart first.
template <class T, class J>
__device__ __forceinline__ T join_lanes(T part, int lanes, J join) {
  for (int d = lanes / 2; d; d >>= 1) part = join(part, lane_from(part, lane_index() ^ d));
  return part;
}

// The number of the set bit that this lane's group of eight lanes takes, -1 if there are fewer.
__device__ __forceinline__ int nth_bit(u32 bits, u32 n) {
  for (u32 k = 0; k < n; ++k) bits &= bits - 1;
  return __ffs(bits) - 1;
}

// Folds rows of SHORT_ROW + 1 .. MIDDLE_ROW arcs, one per lane, four at a time.
template <class T, class L, class J>
__device__ __forceinline__ void fold_middle(i64 v, i64 begin, i64 end, T none, L load, J join,
                                            T& fold) {
  const u32 lane = lane_index();
  u32 left = __ballot_sync(FULL, end - begin > SHORT_ROW && end - begin <= MIDDLE_ROW);
  const bool mine = left >> lane & 1;
  u32 turn = __popc(left & lanes_below());
  while (left) {
    const int owner = nth_bit(left, lane / 8), from = max(owner, 0);
    const i64 low = __shfl_sync(FULL, begin, from), high = __shfl_sync(FULL, end, from);
    T parts[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const i64 arc = low + 8 * q + lane % 8;
      parts[q] = owner >= 0 && arc < high ? join(none, load(v - lane + from, arc)) : none;
    }
    const T part = join_lanes(join(join(parts[0], parts[2]), join(parts[1], parts[3])), 8, join);
    const T found = lane_from(part, 8 * (turn % 4));
    if (mine && turn < 4) fold = found;
    turn -= 4;  // what was folded wraps around, and is never below 4 again
    for (int q = 0; q < 4; ++q) left &= left - 1;
  }
}

// Folds rows of more arcs, one per lane, one at a time.
template <class T, class L, class J>
__device__ __forceinline__ void fold_long(i64 v, i64 begin, i64 end, bool waits, T none, L load,
                                          J join, T& fold) {
  const u32 lane = lane_index();
  u32 left = __ballot_sync(FULL, end - begin > MIDDLE_ROW && !waits);
  while (left) {
    const int owner = __ffs(left) - 1;
    left &= left - 1;
    const i64 low = __shfl_sync(FULL, begin, owner), high = __shfl_sync(FULL, end, owner);
    T part = none;
    for (i64 first = low + lane; first - lane < high; first += STEPS * WARP) {
      T values[STEPS];
#pragma unroll
      for (int s = 0; s < STEPS; ++s)
        values[s] = first + s * WARP < high ? load(v - lane + owner, first + s * WARP) : none;
#pragma unroll
      for (int s = 0; s < STEPS; ++s) part = join(part, values[s]);
    }
    part = join_lanes(part, WARP, join);
    if (lane == owner) fold = part;
  }
}

// Folds a hub by the whole block: all warps load, and the first one joins. Its lanes get the fold.
template <class W, class T, class L, class J>
__device__ T fold_hub(const RowView<W>& rows, i64 row, T none, L load, J join) {
  __shared__ T loaded[STEPS * THREADS];
  const u32 lane = lane_index(), warp = warp_index();
  const i64 high = rows.ends[row];
  T part = none;
  for (i64 first = rows.begins[row]; first < high; first += STEPS * THREADS) {
    const i64 mine = first + warp * STEPS * WARP + lane;
    T values[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; ++s)
      values[s] = mine + s * WARP < high ? load(row, mine + s * WARP) : none;
    __syncthreads();  // what was loaded before is joined
#pragma unroll
    for (int s = 0; s < STEPS; ++s) loaded[(warp * STEPS + s) * WARP + lane] = values[s];
    __syncthreads();
    if (warp == 0) {
      for (int k = 0; k < STEPS * THREADS / WARP; ++k) part = join(part, loaded[k * WARP + lane]);
    }
  }
  return warp == 0 ? join_lanes(part, WARP, join) : none;
}

// Calls done(v, fold) once for every row with wants(v): arc k of the row is joined to part k mod 32,
// in order, and parts are joined in a tree, 16 apart first. A row of no arcs folds to `none`, which
// joins as nothing. Rows are folded by as many threads as they have work for. Every thread of the
// block calls.
template <class W, class T, class P, class L, class J, class D>
__device__ __forceinline__ void fold_rows(const RowView<W>& rows, T none, P wants, L load, J join,
                                          D done) {
  __shared__ u32 hubs[HUBS], hub_count;
  if (threadIdx.x == 0) hub_count = 0;
  __syncthreads();
  for (i64 v = grid_thread(); v - lane_index() < rows.n; v += grid_threads()) {
    i64 begin = 0, end = 0;
    const bool mine = v < rows.n && wants(v);
    if (mine) {
      begin = rows.begins[v];
      end = rows.ends[v];
    }
    bool waits = false;
    if (end - begin > HUB_ROW) {
      const u32 at = atomicAdd(&hub_count, 1u);
      waits = at < HUBS;
      if (waits) hubs[at] = v;
    }
    T fold = none;
    if (end - begin <= SHORT_ROW) {
      T parts[SHORT_ROW];
#pragma unroll
      for (int k = 0; k < SHORT_ROW; ++k)
        parts[k] = begin + k < end ? join(none, load(v, begin + k)) : none;
#pragma unroll
      for (int half = SHORT_ROW / 2; half; half >>= 1) {
#pragma unroll
        for (int k = 0; k < half; ++k) parts[k] = join(parts[k], parts[k + half]);
      }
      fold = parts[0];
    }
    fold_middle(v, begin, end, none, load, join, fold);
    fold_long(v, begin, end, waits, none, load, join, fold);
    if (mine && !waits) done(v, fold);
  }
  __syncthreads();
  const u32 waiting = min(hub_count, (u32)HUBS);
  for (u32 h = 0; h < waiting; ++h) {
    const T fold = fold_hub(rows, hubs[h], none, load, join);
    if (threadIdx.x == 0) done(hubs[h], fold);
  }
  __syncthreads();
}
