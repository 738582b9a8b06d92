// What the host sizes chunks and new rows by, before they are laid out: how many arcs the rows have at
// most, and what share of them is left in some rows that are summed for it.
#pragma once
#include "sum_tables.cuh"

// Sums some rows, which are sampled evenly by arcs, in tables of warps; adds up in state->kept the
// shares of their arcs that are left. Of a row that is too long for a table, a range is summed: a
// longer one would leave no larger share.
template <class W, class A>
__device__ void add_shares(const Arguments<W, A>& args) {
  __shared__ Shared<A> shared;
  const ArcsBefore arcs_before = args.arcs_before();
  const i64 arcs = arcs_before[args.n], samples = min(arcs, (i64)SAMPLED);
  constexpr u32 slots = Table<A>::warp_slots, most = slots / 4 * 3;
  u32* keys = shared.keys + warp_index() * slots;
  A* sums = shared.sums + warp_index() * slots;
  u32* used = shared.used + warp_index();
  u64 kept = 0;
  for (i64 s = grid_thread() / WARP; s < samples; s += grid_threads() / WARP) {
    const i64 position = arcs * s / samples;
    const u32 c = find_row(args.starts, 0, args.k, find_row(arcs_before, 0, args.n, position));
    const i64 begin = arcs_before[args.starts[c]], end = arcs_before[args.starts[c + 1]];
    const i64 low = max(begin, min(position, end - most)), high = min(end, low + most);
    for (u32 t = lane_index(); t < slots; t += WARP) {
      keys[t] = EMPTY;
      sums[t] = 0;
    }
    if (lane_index() == 0) *used = 0;
    __syncwarp();
    const i64 member = find_row(arcs_before, args.starts[c], args.starts[c + 1], low);
    visit_arcs(args, member, low, high, [&](u32 community, A weight) {
      if (community != c) try_add_weight(keys, sums, slots, used, most, community, weight);
      return true;
    });
    __syncwarp();
    kept += (u64)min(*used, most) * SHARE_UNITS / (high - low);
    __syncwarp();  // before the table is emptied for the next row
  }
  if (lane_index() == 0 && kept) atomicAdd(&args.state->kept, kept);
}

// Sets state->room, the arcs that rows have at most, and state->max_arcs.
template <class W, class A>
__device__ void bound_rows(const Arguments<W, A>& args) {
  const ArcsBefore arcs_before = args.arcs_before();
  u64 room = 0, max_arcs = 0;
  for (i64 c = grid_thread(); c < args.k; c += grid_threads()) {
    const u64 own = arcs_before[args.starts[c + 1]] - arcs_before[args.starts[c]];
    room += min(own, (u64)args.neighbour_bound);
    max_arcs = max(max_arcs, own);
  }
  room = block_sum(room);
  if (threadIdx.x == 0 && room) atomicAdd(&args.state->room, room);
  max_arcs = warp_max(max_arcs);
  if (lane_index() == 0 && max_arcs) atomicMax(&args.state->max_arcs, max_arcs);
}
