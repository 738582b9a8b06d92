// Rows in host memory, gone over by kernel blocking (Hope, Nag and Qasem, section 4.4): a warp takes
// the rows of a set of consecutive pages, so that few pages are needed by two warps, and reads whole
// lines of 128 bytes, whose requests are in flight together: the bus counts requests.
#pragma once
#include "blocked.cuh"
#include "row_view.cuh"

#define PAGE_ARCS (PAGE / 4)      // of four bytes
#define SECTOR_ARCS (SECTOR / 4)  // arcs that one request brings at least
#define STAGED_ARCS 512  // arcs that a warp loads before it folds their rows

// Rows one after another: ends[v] is begins[v + 1]. The counterpart of RowView.
template <class W>
struct HostRows : RowView<W> {
  static constexpr int ALIGN = WARP;
  u32 pages;        // of targets that a warp takes at a time
  u32 group_bytes;  // of the targets of 32 rows, on average: a page at most

  __device__ __forceinline__ i64 range_arcs() const { return pages * (i64)PAGE_ARCS; }
};
static_assert(STAGED_ARCS % (STEPS * WARP) == 0, "rows are staged in whole steps, and hubs there");

// The counterpart of DealtRows: a warp gets as many groups of 32 rows, one after the other, as its pages
// hold on average. Looking for the rows that begin in a page took longer where offsets are in host
// memory, too, than reading the page.
struct DealtGroups {
  BlockedSets sets;
  u64 group;
  i64 v;

  template <class W>
  __device__ __forceinline__ explicit DealtGroups(const HostRows<W>& rows)
      : sets((rows.n + WARP - 1) / WARP, rows.group_bytes, rows.pages) {
    begin(sets.begin);
  }
  __device__ __forceinline__ bool more() const { return group < sets.count; }
  __device__ __forceinline__ void next() {
    if (group + 1 < sets.end) return begin(group + 1);
    sets.next();
    begin(sets.begin);
  }
  __device__ __forceinline__ void begin(u64 number) {
    group = number;
    v = number * WARP + lane_index();
  }
};
template <class W>
__device__ __forceinline__ DealtGroups deal(const HostRows<W>& rows) {
  return DealtGroups(rows);
}

// Reads what a request brings at once, and no request more than reading one by one.
template <class W, class P>
__device__ __forceinline__ u32 first_target(const HostRows<W>& rows, i64 v, u32 most, P wanted) {
  const i64 begin = rows.begins[v], end = min(begin + most, rows.ends[v]);
  for (i64 arc = begin; arc < end;) {
    const i64 next = min(end, (arc | (SECTOR_ARCS - 1)) + 1);
    u32 targets[SECTOR_ARCS], found = EMPTY;
#pragma unroll
    for (int k = 0; k < SECTOR_ARCS; ++k)
      targets[k] = arc + k < next ? rows.targets[arc + k] : EMPTY;
#pragma unroll
    for (int k = 0; k < SECTOR_ARCS; ++k)
      if (found == EMPTY && targets[k] != EMPTY && wanted(targets[k])) found = targets[k];
    if (found != EMPTY) return found;
    arc = next;
  }
  return EMPTY;
}

// Reads whole lines.
template <class W, class P>
__device__ __forceinline__ u32 first_by_warp(const HostRows<W>& rows, i64 v, u32 skipped, P wanted) {
  const i64 low = rows.begins[v] + skipped, high = rows.ends[v];
  for (i64 first = low - low % WARP; first < high; first += WARP) {
    const i64 arc = first + lane_index();
    const bool there = arc >= low && arc < high;
    const u32 u = there ? rows.targets[arc] : 0, hits = __ballot_sync(FULL, there && wanted(u));
    if (hits) return __shfl_sync(FULL, u, __ffs(hits) - 1);
  }
  return EMPTY;
}

// As of RowView, and with the same answer. A warp loads the arcs of as many rows as fit its share of
// shared memory, lane by lane in steps of 32, and folds them there; longer rows as they come. So
// load(v, arc) does not learn whose arcs they are: v is −1, but for long rows.
template <class W, class T, class P, class L, class J, class D>
__device__ __forceinline__ void fold_rows(const HostRows<W>& rows, T none, P wants, L load, J join,
                                          D done) {
  __shared__ u32 hubs[HUBS], hub_count;
  __shared__ T loaded[WARPS * STAGED_ARCS];
  if (threadIdx.x == 0) hub_count = 0;
  __syncthreads();
  const u32 lane = lane_index();
  T* const staged = loaded + warp_index() * STAGED_ARCS;
  for (DealtGroups dealt = deal(rows); dealt.more(); dealt.next()) {
    const i64 v = dealt.v, last = min(v, rows.n - 1);
    const i64 row_begin = v < rows.n ? rows.begins[v] : rows.ends[last], row_end = rows.ends[last];
    for (u32 from = 0; from < WARP;) {
      const i64 low = lane_from(row_begin, from), base = low - low % WARP;
      const u32 fit = __ballot_sync(FULL, lane >= from && row_end - base <= STAGED_ARCS);
      const u32 to = from + max(1, __popc(fit));  // ends ascend
      const i64 high = lane_from(row_end, to - 1);
      const bool mine = lane >= from && lane < to && v < rows.n && wants(v);
      const i64 begin = row_begin, end = mine ? row_end : row_begin;
      T fold = none;
      bool waits = false;
      if (fit) {
        __syncwarp();  // what was staged before is folded
        for (i64 arc = base + lane; arc - lane < high; arc += STEPS * WARP) {
          T values[STEPS];
#pragma unroll
          for (int s = 0; s < STEPS; ++s) {
            const i64 a = arc + s * WARP;
            values[s] = a >= low && a < high ? load(-1, a) : none;
          }
#pragma unroll
          for (int s = 0; s < STEPS; ++s) staged[arc - base + s * WARP] = values[s];
        }
        __syncwarp();
        auto at = [&](i64, i64 arc) { return staged[arc - base]; };
        fold = fold_short(v, begin, end, none, at, join);
        fold_middle(v, begin, end, none, at, join, fold);
        fold_long<1>(v, begin, end, false, none, at, join, fold);
      } else {
        waits = waits_for_block(v, end - begin, hubs, &hub_count);
        fold_long<WARP>(v, begin, end, waits, none, load, join, fold);
      }
      if (mine && !waits) done(v, fold);
      from = to;
    }
  }
  fold_hubs(rows, hubs, hub_count, none, load, join, done, loaded);
}
