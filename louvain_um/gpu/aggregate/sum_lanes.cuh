// Sums the arcs of communities that have at most 32: one arc per lane, as many communities at a time
// as a warp has lanes for. No table is needed: lanes with the same community at both ends find each
// other by match_any.
#pragma once
#include "sum_tables.cuh"

// Does so for communities begin..begin + 31 of a chunk, one per lane. Whole warps call.
template <class W, class A>
__device__ __forceinline__ void sum_lanes(const Arguments<W, A>& args, const Chunk& chunk,
                                          i64 begin) {
  const u32 lane = lane_index();
  const ChunkRows<W, A> rows{args, chunk.first};
  u32 first = 0, last = 0, arcs = 0;
  if (begin + lane < chunk.last) {
    first = args.starts[begin + lane];
    last = args.starts[begin + lane + 1];
    const i64 all = args.arcs_before()[last] - args.arcs_before()[first];
    if (all <= WARP) arcs = all;
    if (all == 0) rows.set_arcs(begin + lane, 0);
  }
  u32 upto = arcs;
  for (int d = 1; d < WARP; d <<= 1) {
    u32 other = __shfl_up_sync(FULL, upto, d);
    if (lane >= d) upto += other;
  }
  const u32 total = __shfl_sync(FULL, upto, WARP - 1), before = upto - arcs;
  for (u32 base = 0, end; base < total; base = end) {
    const u32 fit = __ballot_sync(FULL, upto <= base + WARP);  // always a first few
    end = __shfl_sync(FULL, upto, __popc(fit) - 1);
    const u32 p = base + lane;
    const bool valid = p < end;
    u32 owner = 0;
#pragma unroll
    for (u32 step = WARP / 2; step; step >>= 1)
      if (__shfl_sync(FULL, upto, owner + step - 1) <= p) owner += step;
    const u32 start = __shfl_sync(FULL, before, owner), length = __shfl_sync(FULL, arcs, owner);
    u32 m = __shfl_sync(FULL, first, owner), stop = __shfl_sync(FULL, last, owner);
    i64 j = -1;
    if (valid) {
      // Of sums over a few arcs the low halves suffice.
      const u32 position = args.low[m] + (p - start);
      while (stop - m > 1) {
        const u32 middle = (m + stop) / 2;
        ((int)(position - args.low[middle]) >= 0 ? m : stop) = middle;
      }
      j = args.first_arc(m) + (position - args.low[m]);
    }
    u32 community = args.target(j, valid, is_followed<W>(j));
    const A weight = valid ? args.weight(j) : 0;
    if (valid && args.map) community = args.map[community];
    const u64 pair = valid ? (u64)owner << 32 | community : ~0ull;
    const u32 peers = __match_any_sync(FULL, pair);
    const A sum = unweighted<W> ? (A)__popc(peers) : sum_of_peers(peers, weight);
    const i64 c = begin + owner;
    const bool leads = valid && lane == __ffs(peers) - 1;
    const bool inner = !args.partial && community == (u32)c;
    const u32 kept = __ballot_sync(FULL, leads && !inner);
    if (!valid) continue;
    const u32 lanes = (length == WARP ? FULL : (1u << length) - 1) << (start - base);
    if (leads && inner) *rows.inner(c) += sum;
    if (leads && !inner) {
      const i64 at = args.room_of(c, chunk.first) + __popc(kept & lanes & lanes_below());
      args.chunk_targets[at] = community;
      args.chunk_weights[at] = sum;
    }
    if (p == start) rows.set_arcs(c, __popc(kept & lanes));
  }
}

// Sums the communities of a chunk that have at most 32 arcs, and writes their rows; rows of no arcs
// get their offsets, too. Warps take 32 communities in turns, which are close to equal work.
template <class W, class A>
__device__ void sum_with_lanes(const Arguments<W, A>& args, const Chunk& chunk) {
  for (i64 begin = chunk.first + grid_thread() / WARP * WARP; begin < chunk.last;
       begin += grid_threads())
    sum_lanes(args, chunk, begin);
}
