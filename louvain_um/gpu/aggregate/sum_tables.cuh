// What sums of arcs share, whatever sums them: tables in shared memory, and visits of arcs.
#pragma once
#include "group_members.cuh"

// Most arcs that a block sums alone; a community with more is a hub.
#define BLOCK_ARCS 16384

// Slots of a block's table: 32 KiB, or 24 KiB with sums of 64 bits. A table counts as full when
// three quarters of it are in use: the last quarter takes what is inserted at that moment.
template <class A>
struct Table {
  static constexpr u32 slots = sizeof(A) == 4 ? 4096 : 2048;
  static constexpr u32 warp_slots = slots / WARPS;
  // Most arcs with which a warp is tried; with half of them it is sure to suffice.
  static constexpr u32 warp_arcs = warp_slots / 4 * 3 * 2;
};

// A block's tables, and what its threads share.
template <class A>
struct Shared {
  u32 keys[Table<A>::slots];
  A sums[Table<A>::slots];
  u32 used[WARPS];
  u32 claimed, community, full, written;
  u64 table_at[THREADS + 1];
  u32 unit_at[THREADS + 1];
};

// Whether the next lane's arc follows j; -1 is none. Whole warps call.
template <class W>
__device__ __forceinline__ bool is_followed(i64 j) {
  if constexpr (!short_targets<W>) return false;
  const u32 lane = lane_index(), valid = __ballot_sync(FULL, j >= 0) >> lane;
  return __shfl_down_sync(FULL, (u32)j, 1) == (u32)j + 1 && (valid & 3) == 3;
}

// Visits a warp's range of the arcs of members i..: add(community, weight) for each, which
// returns false to stop the warp.
template <class W, class A, class F>
__device__ __forceinline__ void visit_arcs(const Arguments<W, A>& args, i64 i, i64 low, i64 high,
                                           F add) {
  auto source = [&](i64 m) { return args.first_arc(m); };
  walk_rows(args.arcs_before(), i, args.n, low, high, source, [&](const i64* at, const u32*, i64) {
    u32 community[DEPTH];
    A weight[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      community[d] = args.target(at[d], at[d] >= 0, is_followed<W>(at[d]));
      weight[d] = at[d] >= 0 ? args.weight(at[d]) : 0;
    }
    if (args.map) {
#pragma unroll
      for (int d = 0; d < DEPTH; ++d)
        if (at[d] >= 0) community[d] = args.map[community[d]];
    }
    bool going = true;
#pragma unroll
    for (int d = 0; d < DEPTH; ++d)
      if (at[d] >= 0) going &= add(community[d], weight[d]);
    return going;
  });
}

// Returns the t-th slot of a table to read: a permutation of 0..slots - 1 (a power of two). Rows
// in the order of slots would fill the tables of the next level from one end.
__device__ __forceinline__ u32 scatter(u32 t, u32 slots) { return (t * 0x9E3779B1u) & (slots - 1); }

__device__ __forceinline__ u32 table_for(i64 arcs, i64 neighbour_bound) {
  return slots_for(u32(min(arcs, neighbour_bound)));
}

// Visits the arcs low..high of members first..last - 1 with all warps of the block.
template <class W, class A, class F>
__device__ __forceinline__ void visit_with_block(const Arguments<W, A>& args, u32 first, u32 last,
                                                 i64 low, i64 high, F add) {
  const i64 arcs = high - low, begin = low + arcs * warp_index() / WARPS;
  const i64 end = low + arcs * (warp_index() + 1) / WARPS;
  if (begin < end)
    visit_arcs(args, find_row(args.arcs_before(), first, last, begin), begin, end, add);
}
