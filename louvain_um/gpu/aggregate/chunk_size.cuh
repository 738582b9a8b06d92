// How many arcs are summed at a time: more where memory would lie idle otherwise, as every chunk takes
// barriers, before which most threads wait. What the new rows take is not known yet: it is bounded
// by the communities, and estimated from some of them.
#pragma once
#include "sum_tables.cuh"

// Sums some rows, in tables of warps: adds up the shares of their arcs that are left in
// state->kept, each of which stands for as many arcs. Of a long row, a stretch is summed: of all of it,
// no larger share would be left.
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
    const u32 c = args.numbers[args.members[find_row(arcs_before, 0, args.n, position)]];
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
      if (community != c || args.partial)
        try_add_weight(keys, sums, slots, used, most, community, weight);
      return true;
    });
    __syncwarp();
    kept += (u64)min(*used, most) * WHOLE / (high - low);
    __syncwarp();  // before the table is emptied for the next row
  }
  if (lane_index() == 0 && kept) atomicAdd(&args.state->kept, kept);
}

// Adds to `room` the arcs that rows have if no arcs of different communities are left, and max_arcs.
template <class W, class A>
__device__ void sum_rooms(const Arguments<W, A>& args) {
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

// Returns the arcs of a chunk: as many as have room beside the rows that are expected by sampled ones
// (`rows_expected` of limits.py).
template <class W, class A>
__device__ i64 chunk_beside_rows(const Arguments<W, A>& args) {
  if (args.spare == 0) return args.chunk_arcs;
  const State* state = args.state;
  const i64 arcs = args.arcs_before()[args.n], samples = max(min(arcs, (i64)SAMPLED), 1ll);
  const i64 share = (i64)state->kept / samples;
  const i64 rows = min((i64)state->room, arcs * share / WHOLE + arcs / 32);
  const i64 width = args.weight_bytes ? args.weight_bytes : sizeof(A), each = 4 + sizeof(A);
  i64 rest = args.spare - (4 + width) * rows;
  if (state->max_arcs >= Table<A>::slots / 4 * 3) rest -= each * args.table_slots;
  if (rest < each * args.chunk_arcs && args.targets24) rest += rows;
  // A chunk may have more arcs by those of a community, and arrays take whole pages.
  return max(args.chunk_arcs, min(args.most_chunk, rest / each * 7 / 8));
}
