// Sums the arcs of each community by the community at their other end, in hash tables whose kind
// depends on how many arcs there are (Naim, Manne, Halappanavar, Tumeo:
// Community Detection on the GPU, 2017):
//
//   up to Table::warp_arcs   a warp, its eighth of the block's table in shared memory
//   up to BLOCK_ARCS         a block, its whole table
//   more (hubs)              all blocks, a table in global memory
//
// A table that turns out too small passes its community on to the next kind. Communities are
// claimed by warps and blocks; one warp or block owns a community, but for hubs, whose rows all
// blocks write by atomics. A community without arcs gets an empty row. Sums are integers and
// rows unordered, so that no result depends on the order of threads.
#pragma once
#include "group_members.cuh"
#include "search.cuh"

// Most arcs that a block sums alone; a community with more is a hub.
#define BLOCK_ARCS 32768
// Arcs of a hub that a block takes at a time, and arcs that a warp moves at a time.
#define UNIT_ARCS 4096
#define MOVE_ARCS 1024

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
  u32 claimed, full, written;
  u64 table_at[THREADS + 1];
  u32 unit_at[THREADS + 1];
};

// Visits a warp's stretch of the arcs of members i..: add(community, weight) for each, which
// returns false to stop the warp.
template <class W, class A, class F>
__device__ __forceinline__ void visit_arcs(const Arguments<W, A>& args, i64 i, i64 low, i64 high, F add) {
  auto source = [&](i64 m) { return row_of(args.weights, args.offsets, args.members[m]).low; };
  walk_rows(args.arcs_before(), i, args.n, low, high, source, [&](const i64* at, const u32*, i64) {
    u32 community[DEPTH];
    A weight[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      community[d] = EMPTY;
      weight[d] = 0;
      if (at[d] >= 0) {
        community[d] = target_at(args.targets, args.weights, at[d]);
        weight[d] = weight_at(args.weights, at[d]);
      }
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
__device__ __forceinline__ u32 scatter(u32 t, u32 slots) {
  return (t * 0x9E3779B1u) & (slots - 1);
}

__device__ __forceinline__ u32 table_for(i64 arcs, i64 neighbour_bound) {
  return slots_for(u32(min(arcs, neighbour_bound)));
}

// Sums communities with few arcs, one warp each; lists the others in the block bin or hub bin.
template <class W, class A>
__device__ void sum_with_warps(const Arguments<W, A>& args, const Chunk& chunk, Shared<A>& shared) {
  const ArcsBefore arcs_before = args.arcs_before();
  const u32 lane = lane_index();
  u32* keys = shared.keys + warp_index() * Table<A>::warp_slots;
  A* sums = shared.sums + warp_index() * Table<A>::warp_slots;
  u32* used = shared.used + warp_index();
  const i64 count = chunk.last - chunk.first;
  const u32 share = max(1ll, min(32ll, count / (grid_threads() / WARP * 8)));
  State* state = args.state;
  while (true) {
    u32 claim = 0;
    if (lane == 0) claim = atomicAdd(&state->claimed_by_warps, share);
    claim = __shfl_sync(FULL, claim, 0);
    if (claim >= count) break;
    const i64 stop = min((i64)claim + share, count) + chunk.first;
    for (i64 c = chunk.first + claim; c < stop; ++c) {
      const u32 member = args.starts[c];
      const i64 low = arcs_before[member], high = arcs_before[args.starts[c + 1]], arcs = high - low;
      if (arcs == 0 || arcs > Table<A>::warp_arcs) {
        if (lane == 0) {
          args.new_offsets[c] = 0;
          if (arcs > BLOCK_ARCS)
            args.hub_bin[atomicAdd(&state->hub_count, 1u)] = c;
          else if (arcs)
            args.block_bin[atomicAdd(&state->block_count, 1u)] = c;
        }
        continue;
      }
      const u32 slots = min(table_for(arcs, args.neighbour_bound), Table<A>::warp_slots), limit = slots / 4 * 3;
      for (u32 s = lane; s < slots; s += WARP) {
        keys[s] = EMPTY;
        sums[s] = 0;
      }
      if (lane == 0) *used = 0;
      __syncwarp();
      const u32 own = args.partial ? EMPTY : (u32)c;
      A inner = 0;
      bool fits = true;
      visit_arcs(args, member, low, high, [&](u32 community, A weight) {
        if (community == own)
          inner += weight;
        else
          fits &= try_add_weight(keys, sums, slots, used, limit, community, weight);
        return fits;
      });
      __syncwarp();
      if (__any_sync(FULL, !fits)) {
        if (lane == 0) {
          args.new_offsets[c] = 0;
          args.block_bin[atomicAdd(&state->block_count, 1u)] = c;
        }
        continue;
      }
      i64 at = args.room_of(c, chunk.first);
      const i64 begin = at;
      for (u32 t = lane; t < slots; t += WARP) {
        const u32 s = scatter(t, slots);
        u32 key = keys[s], found = __ballot_sync(FULL, key != EMPTY);
        if (key != EMPTY) {
          i64 mine = at + __popc(found & lanes_below());
          args.chunk_targets[mine] = key;
          args.chunk_weights[mine] = sums[s];
        }
        at += __popc(found);
      }
      __syncwarp();  // before the table is emptied for the next community
      inner = warp_sum(inner);
      if (lane == 0) {
        args.new_offsets[c] = at - begin;
        if (inner) args.new_loops[c] += inner;
      }
    }
  }
}

// Visits the arcs low..high of members first..last - 1 with all warps of the block.
template <class W, class A, class F>
__device__ __forceinline__ void visit_with_block(const Arguments<W, A>& args, u32 first, u32 last,
                                                 i64 low, i64 high, F add) {
  const i64 arcs = high - low, begin = low + arcs * warp_index() / WARPS;
  const i64 end = low + arcs * (warp_index() + 1) / WARPS;
  if (begin < end) visit_arcs(args, find_row(args.arcs_before(), first, last, begin), begin, end, add);
}

// Sums the communities of the block bin, one block each; lists those with too many neighbours in
// the hub bin.
template <class W, class A>
__device__ void sum_with_blocks(const Arguments<W, A>& args, const Chunk& chunk, Shared<A>& shared) {
  const ArcsBefore arcs_before = args.arcs_before();
  State* state = args.state;
  const u32 count = *(volatile u32*)&state->block_count;
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) {
      shared.claimed = atomicAdd(&state->claimed_by_blocks, 1u);
      shared.used[0] = shared.full = shared.written = 0;
    }
    __syncthreads();
    if (shared.claimed >= count) break;
    const i64 c = args.block_bin[shared.claimed];
    const u32 first = args.starts[c], last = args.starts[c + 1];
    const i64 low = arcs_before[first], high = arcs_before[last];
    const u32 slots = min(table_for(high - low, args.neighbour_bound), Table<A>::slots), limit = slots / 4 * 3;
    for (u32 s = threadIdx.x; s < slots; s += THREADS) {
      shared.keys[s] = EMPTY;
      shared.sums[s] = 0;
    }
    __syncthreads();
    const u32 own = args.partial ? EMPTY : (u32)c;
    A inner = 0;
    visit_with_block(args, first, last, low, high, [&](u32 community, A weight) {
      if (community == own)
        inner += weight;
      else if (!try_add_weight(shared.keys, shared.sums, slots, shared.used, limit, community,
                               weight))
        atomicOr(&shared.full, 1u);  // other warps read it meanwhile
      return *(volatile u32*)&shared.full == 0;
    });
    inner = block_sum(inner);
    if (shared.full) {
      if (threadIdx.x == 0) args.hub_bin[atomicAdd(&state->hub_count, 1u)] = c;
      continue;
    }
    const i64 at = args.room_of(c, chunk.first);
    for (u32 t = threadIdx.x; t - lane_index() < slots; t += THREADS) {
      const u32 s = scatter(t, slots);
      u32 key = shared.keys[s], found = __ballot_sync(FULL, key != EMPTY), base = 0;
      if (lane_index() == 0 && found) base = atomicAdd(&shared.written, __popc(found));
      base = __shfl_sync(FULL, base, 0);
      if (key != EMPTY) {
        i64 mine = at + base + __popc(found & lanes_below());
        args.chunk_targets[mine] = key;
        args.chunk_weights[mine] = shared.sums[s];
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      args.new_offsets[c] = shared.written;
      if (inner) args.new_loops[c] += inner;
    }
  }
}

// Sums the communities of the hub bin with the whole grid, as many at a time as have room for
// tables. Blocks sum units of arcs in shared memory, then add those sums to the hub's table:
// atomics on the few addresses of other hubs would queue otherwise. Ends with a barrier.
template <class W, class A>
__device__ void sum_with_grid(const Arguments<W, A>& args, const Chunk& chunk, Shared<A>& shared) {
  const ArcsBefore arcs_before = args.arcs_before();
  Barrier* barrier = &args.state->barrier;
  const u32 hubs = *(volatile u32*)&args.state->hub_count;
  for (u32 done = 0, taken; done < hubs; done += taken) {
    // Every block computes the same layout of tables and units.
    const u32 t = threadIdx.x;
    u64 slots = 0, all_slots;
    u32 units = 0, all_units;
    if (done + t < hubs) {
      u32 c = args.hub_bin[done + t];
      i64 arcs = arcs_before[args.starts[c + 1]] - arcs_before[args.starts[c]];
      slots = table_for(arcs, args.neighbour_bound);
      units = (arcs + UNIT_ARCS - 1) / UNIT_ARCS;
    }
    u64 slots_before = block_scan(slots, all_slots);
    bool fits = slots && slots_before + slots <= args.table_slots;
    u32 units_before = block_scan(fits ? units : 0u, all_units);
    taken = block_sum(fits ? 1u : 0u);
    if (t == 0) shared.table_at[0] = 0;
    if (fits) shared.table_at[t + 1] = slots_before + slots;
    shared.unit_at[t] = units_before;
    __syncthreads();
    all_slots = shared.table_at[taken];
    for (u64 s = grid_thread(); s < all_slots; s += grid_threads()) {
      args.keys[s] = EMPTY;
      args.sums[s] = 0;
    }
    grid_sync(barrier);
    for (u32 unit = blockIdx.x; unit < all_units; unit += gridDim.x) {
      const u32 g = last_at_most(shared.unit_at, taken, unit);
      const i64 c = args.hub_bin[done + g];
      u32* keys = args.keys + shared.table_at[g];
      A* sums = args.sums + shared.table_at[g];
      const u32 slots = shared.table_at[g + 1] - shared.table_at[g];
      const u32 first = args.starts[c], last = args.starts[c + 1];
      const i64 low = arcs_before[first] + (i64)(unit - shared.unit_at[g]) * UNIT_ARCS;
      const i64 high = min(low + UNIT_ARCS, arcs_before[last]);
      for (u32 s = threadIdx.x; s < Table<A>::slots; s += THREADS) {
        shared.keys[s] = EMPTY;
        shared.sums[s] = 0;
      }
      if (threadIdx.x == 0) shared.used[0] = 0;
      __syncthreads();
      const u32 own = args.partial ? EMPTY : (u32)c;
      A inner = 0;
      visit_with_block(args, first, last, low, high, [&](u32 community, A weight) {
        if (community == own)
          inner += weight;
        else if (!try_add_weight(shared.keys, shared.sums, Table<A>::slots, shared.used,
                                 Table<A>::slots / 4 * 3, community, weight))
          add_weight(keys, sums, slots, community, weight);
        return true;
      });
      __syncthreads();
      for (u32 s = threadIdx.x; s < Table<A>::slots; s += THREADS)
        if (shared.keys[s] != EMPTY) add_weight(keys, sums, slots, shared.keys[s], shared.sums[s]);
      inner = block_sum(inner);
      if (threadIdx.x == 0 && inner) atomicAdd(args.new_loops + c, inner);
    }
    grid_sync(barrier);
    // Tables are multiples of a warp's width: a warp's slots belong to one hub.
    for (u64 t = grid_thread(); t < all_slots; t += grid_threads()) {
      const u32 g = last_at_most(shared.table_at, taken, t);
      const u64 table = shared.table_at[g], groups = (shared.table_at[g + 1] - table) / WARP;
      const u64 s = table + scatter((t - table) / WARP, groups) * WARP + lane_index();
      u32 key = args.keys[s], found = __ballot_sync(FULL, key != EMPTY);
      if (!found) continue;
      const i64 c = args.hub_bin[done + g];
      u64 base = 0;
      if (lane_index() == 0) base = atomicAdd((u64*)args.new_offsets + c, (u64)__popc(found));
      base = __shfl_sync(FULL, base, 0);
      if (key != EMPTY) {
        i64 mine = args.room_of(c, chunk.first) + base + __popc(found & lanes_below());
        args.chunk_targets[mine] = key;
        args.chunk_weights[mine] = args.sums[s];
      }
    }
    grid_sync(barrier);
  }
}

// Writes the rows of a chunk's communities to their rooms, and sets loops and offsets. The caller
// syncs before it reads them.
template <class W, class A>
__device__ void sum_chunk(const Arguments<W, A>& args, const Chunk& chunk) {
  __shared__ Shared<A> shared;
  Barrier* barrier = &args.state->barrier;
  sum_with_warps(args, chunk, shared);
  grid_sync(barrier);
  sum_with_blocks(args, chunk, shared);
  grid_sync(barrier);
  sum_with_grid(args, chunk, shared);
  const i64 count = chunk.last - chunk.first;
  u64 inside = 0, max_degree = 0;
  i64* offsets = args.new_offsets + chunk.first;
  for (i64 c = grid_thread(); c < count; c += grid_threads()) {
    if (!args.partial) {
      A twice = args.new_loops[chunk.first + c];
      inside += twice;
      args.new_loops[chunk.first + c] = twice / 2;
    }
    max_degree = max(max_degree, (u64)offsets[c]);
  }
  inside = block_sum(inside);
  if (threadIdx.x == 0 && inside) atomicAdd(&args.state->inside, inside);
  max_degree = warp_max(max_degree);
  if (lane_index() == 0 && max_degree) atomicMax(&args.state->max_degree, max_degree);
  const i64 written = *(volatile u64*)&args.state->written;
  grid_scan<i64>(count, [=](i64 c) { return offsets[c]; }, offsets, (i64*)args.partials, barrier,
                 written);
}

// Moves the rows of a chunk's communities together, to where they stay.
template <class W, class A>
__device__ void close_gaps(const Arguments<W, A>& args, const Chunk& chunk) {
  const i64 begin = args.new_offsets[chunk.first], end = args.new_offsets[chunk.last];
  const i64 stretch = stretch_of(end - begin, MOVE_ARCS);
  for (i64 low = begin + grid_thread() / WARP * stretch; low < end;
       low += grid_threads() / WARP * stretch) {
    auto source = [&](i64 c) { return args.room_of(c, chunk.first); };
    i64 first = find_row(args.new_offsets, chunk.first, chunk.last, low);
    walk_rows(args.new_offsets, first, chunk.last, low, min(low + stretch, end), source,
              [&](const i64* at, const u32*, i64 position) {
                u32 target[DEPTH];
                A weight[DEPTH];
#pragma unroll
                for (int d = 0; d < DEPTH; ++d) {
                  if (at[d] < 0) continue;
                  target[d] = args.chunk_targets[at[d]];
                  weight[d] = args.chunk_weights[at[d]];
                }
#pragma unroll
                for (int d = 0; d < DEPTH; ++d) {
                  if (at[d] < 0) continue;
                  const i64 out = position + d * WARP;
                  args.new_targets[out] = target[d];
                  if (args.weights8)
                    put_weight((Weights8*)args.new_weights, out, weight[d]);
                  else
                    ((A*)args.new_weights)[out] = weight[d];
                }
                return true;
              });
  }
}
