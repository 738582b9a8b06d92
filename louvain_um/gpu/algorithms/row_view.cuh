// What the algorithms read of a graph, and how they go over it: `advance` from a frontier along
// arcs, `fold_rows` along rows. Neither orders its calls: what they are given must commute, but for
// the sums of `fold_rows`, whose order is fixed.
#pragma once
#include "walk_arcs.cuh"

#define STATE_BYTES 64       // of a control block, for barriers and counters
#define BOUNDS __launch_bounds__(THREADS, 4)
#define RANGE_ARCS 1024  // arcs that a warp takes at a time
#define SHORT_ROW 8        // arcs of a row that one lane folds
#define MIDDLE_ROW 32      // arcs of a row that eight lanes fold, with three other rows
#define HUB_ROW 8192       // arcs of a row above which a block folds it together
#define HUBS 64            // hubs that wait for their block; warps fold further ones
#define STEPS 8            // arcs of a long row that a lane loads at once

// Row v is targets[begins[v]..ends[v] - 1], ascending, wherever it lies. `host_rows.cuh` has the counterpart
// for rows in host memory.
template <class W>
struct RowView {
  static constexpr int ALIGN = 1;  // reading of a row by a warp begins at a multiple of so many arcs
  i64 n;
  const i64* begins;
  const i64* ends;
  const u32* targets;
  const W* weights;

  __device__ __forceinline__ i64 length(i64 v) const { return ends[v] - begins[v]; }
  __device__ __forceinline__ u64 weight(i64 arc) const { return weight_at(weights, arc); }
  // Arcs of a frontier that a warp takes at a time.
  __device__ __forceinline__ i64 range_arcs() const { return RANGE_ARCS; }

  // The row protocol: begin at a row's first arc, go forward, and ask where the arc is.
  struct Row {
    i64 arc;
    __device__ __forceinline__ void forward(u32 by) { arc += by; }
    __device__ __forceinline__ i64 entry() const { return arc; }
  };
  __device__ __forceinline__ Row walk(i64 v) const { return {begins[v]}; }
};

// Calls visit(u, arc, k) for all arcs of a frontier, the k-th of all, cut into ranges of equal arcs,
// so that rows of any length are shared by warps. before[i] is the number of arcs of items before the
// i-th.
template <class R, class F>
__device__ __forceinline__ void advance(const R& rows, const u32* frontier, i64 items,
                                        const i64* before, F visit) {
  const i64 arcs = before[items], range = warp_range(arcs, rows.range_arcs());
  for (i64 low = grid_thread() / WARP * range; low < arcs;
       low += grid_threads() / WARP * range) {
    u32 mine = 0;
    auto source = [&](i64 i) {
      mine = frontier[i];
      return rows.begins[mine];
    };
    walk_rows(before, find_row(before, 0, items, low), items, low, min(low + range, arcs), source,
              [&](const i64* at, const u32* owner, i64 first) {
#pragma unroll
                for (int d = 0; d < DEPTH; ++d) {
                  const u32 u = __shfl_sync(FULL, mine, owner[d]);
                  if (at[d] >= 0) visit(u, at[d], first + d * WARP);
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

// Joins the parts of `lanes` neighbouring lanes, the largest distance first.
template <class T, class J>
__device__ __forceinline__ T join_lanes(T part, int lanes, J join) {
  for (int d = lanes / 2; d; d >>= 1) part = join(part, lane_from(part, lane_index() ^ d));
  return part;
}

// Deals rows to warps, 32 at a time: lane l gets the l-th as v, which may lie beyond the last row.
// The first of the 32 is a multiple of 32.
struct DealtRows {
  i64 n, v = grid_thread();
  __device__ __forceinline__ bool more() const { return v - lane_index() < n; }
  __device__ __forceinline__ void next() { v += grid_threads(); }
};
template <class W>
__device__ __forceinline__ DealtRows deal(const RowView<W>& rows) {
  return {rows.n};
}

// The first of a row's `most` first targets that is wanted, by one lane; EMPTY if there is none.
template <class R, class P>
__device__ __forceinline__ u32 first_target(const R& rows, i64 v, u32 most, P wanted) {
  const i64 length = rows.length(v);
  auto row = rows.walk(v);
  for (u32 k = 0; k < most && k < length; ++k) {
    if (k) row.forward(1);
    const u32 u = rows.targets[row.entry()];
    if (wanted(u)) return u;
  }
  return EMPTY;
}

// The same of all but the `skipped` first, by a warp.
template <class R, class P>
__device__ __forceinline__ u32 first_by_warp(const R& rows, i64 v, u32 skipped, P wanted) {
  const i64 length = rows.length(v), first = skipped + lane_index();
  auto row = rows.walk(v);
  if (first < length) row.forward(first);
  for (i64 k = first; k - lane_index() < length; k += WARP) {
    const u32 u = k < length ? rows.targets[row.entry()] : 0;
    const u32 hits = __ballot_sync(FULL, k < length && wanted(u));
    if (hits) return __shfl_sync(FULL, u, __ffs(hits) - 1);
    if (k + WARP < length) row.forward(WARP);
  }
  return EMPTY;
}

// The number of the set bit that this lane's group of eight lanes takes, -1 if there are fewer.
__device__ __forceinline__ int nth_bit(u32 bits, u32 n) {
  for (u32 k = 0; k < n; ++k) bits &= bits - 1;
  return __ffs(bits) - 1;
}

// Folds a row of at most SHORT_ROW arcs by one lane; longer ones to `none`.
template <class T, class L, class J>
__device__ __forceinline__ T fold_short(i64 v, i64 begin, i64 end, T none, L load, J join) {
  if (end - begin > SHORT_ROW) return none;
  T parts[SHORT_ROW];
#pragma unroll
  for (int k = 0; k < SHORT_ROW; ++k)
    parts[k] = begin + k < end ? join(none, load(v, begin + k)) : none;
#pragma unroll
  for (int half = SHORT_ROW / 2; half; half >>= 1) {
#pragma unroll
    for (int k = 0; k < half; ++k) parts[k] = join(parts[k], parts[k + half]);
  }
  return parts[0];
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

// Joins a row's parts by a warp, which read from a multiple of ALIGN arcs on: part k is in lane
// k + begin % ALIGN.
template <int ALIGN, class T, class J>
__device__ __forceinline__ T join_parts(T part, i64 begin, J join) {
  if (ALIGN > 1) part = lane_from(part, (lane_index() + int(begin % ALIGN)) % WARP);
  return join_lanes(part, WARP, join);
}

// Folds rows of more arcs, one per lane, one at a time.
template <int ALIGN, class T, class L, class J>
__device__ __forceinline__ void fold_long(i64 v, i64 begin, i64 end, bool waits, T none, L load,
                                          J join, T& fold) {
  const u32 lane = lane_index();
  u32 left = __ballot_sync(FULL, end - begin > MIDDLE_ROW && !waits);
  while (left) {
    const int owner = __ffs(left) - 1;
    left &= left - 1;
    const i64 low = __shfl_sync(FULL, begin, owner), high = __shfl_sync(FULL, end, owner);
    T part = none;
    for (i64 first = low - low % ALIGN + lane; first - lane < high; first += STEPS * WARP) {
      T values[STEPS];
#pragma unroll
      for (int s = 0; s < STEPS; ++s) {
        const i64 arc = first + s * WARP;
        values[s] = arc < high && (ALIGN == 1 || arc >= low) ? load(v - lane + owner, arc) : none;
      }
#pragma unroll
      for (int s = 0; s < STEPS; ++s) part = join(part, values[s]);
    }
    part = join_parts<ALIGN>(part, low, join);
    if (lane == owner) fold = part;
  }
}

// Folds a hub by the whole block: all warps load, and the first one joins. Its lanes get the fold.
// loaded: shared, STEPS * THREADS values.
template <class R, class T, class L, class J>
__device__ T fold_hub(const R& rows, i64 row, T none, L load, J join, T* loaded) {
  const u32 lane = lane_index(), warp = warp_index();
  const i64 low = rows.begins[row], high = rows.ends[row];
  T part = none;
  for (i64 first = low - low % R::ALIGN; first < high; first += STEPS * THREADS) {
    const i64 mine = first + warp * STEPS * WARP + lane;
    T values[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const i64 arc = mine + s * WARP;
      values[s] = arc < high && (R::ALIGN == 1 || arc >= low) ? load(row, arc) : none;
    }
    __syncthreads();  // what was loaded before is joined
#pragma unroll
    for (int s = 0; s < STEPS; ++s) loaded[(warp * STEPS + s) * WARP + lane] = values[s];
    __syncthreads();
    if (warp == 0) {
      for (int k = 0; k < STEPS * WARPS; ++k) part = join(part, loaded[k * WARP + lane]);
    }
  }
  return warp == 0 ? join_parts<R::ALIGN>(part, low, join) : none;
}

// Folds the rows that wait for the whole block.
template <class R, class T, class L, class J, class D>
__device__ __forceinline__ void fold_hubs(const R& rows, const u32* hubs, const u32& hub_count,
                                          T none, L load, J join, D done, T* loaded) {
  __syncthreads();
  const u32 waiting = min(hub_count, (u32)HUBS);
  for (u32 h = 0; h < waiting; ++h) {
    const T fold = fold_hub(rows, hubs[h], none, load, join, loaded);
    if (threadIdx.x == 0) done(hubs[h], fold);
  }
  __syncthreads();
}

// Whether a row waits for the whole block: it is long, and there is room in the list.
__device__ __forceinline__ bool waits_for_block(i64 v, i64 arcs, u32* hubs, u32* hub_count) {
  if (arcs <= HUB_ROW) return false;
  const u32 at = atomicAdd(hub_count, 1u);
  if (at < HUBS) hubs[at] = v;
  return at < HUBS;
}

// Calls done(v, fold) once for every row with wants(v): arc k of the row is joined to part k mod 32,
// in order, and parts are joined in a tree, at distance 16 first. A row of no arcs folds to `none`, which
// joins as nothing. Rows are folded by as many threads as they have work for. Every thread of the
// block calls.
template <class W, class T, class P, class L, class J, class D>
__device__ __forceinline__ void fold_rows(const RowView<W>& rows, T none, P wants, L load, J join,
                                          D done) {
  __shared__ u32 hubs[HUBS], hub_count;
  __shared__ T loaded[STEPS * THREADS];
  if (threadIdx.x == 0) hub_count = 0;
  __syncthreads();
  for (DealtRows dealt = deal(rows); dealt.more(); dealt.next()) {
    const i64 v = dealt.v;
    i64 begin = 0, end = 0;
    const bool mine = v < rows.n && wants(v);
    if (mine) {
      begin = rows.begins[v];
      end = rows.ends[v];
    }
    const bool waits = waits_for_block(v, end - begin, hubs, &hub_count);
    T fold = fold_short(v, begin, end, none, load, join);
    fold_middle(v, begin, end, none, load, join, fold);
    fold_long<1>(v, begin, end, waits, none, load, join, fold);
    if (mine && !waits) done(v, fold);
  }
  fold_hubs(rows, hubs, hub_count, none, load, join, done, loaded);
}
