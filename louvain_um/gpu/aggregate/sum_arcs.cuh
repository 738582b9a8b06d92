// Sums the arcs of each community by the community at their other end, in hash tables. Which kind
// is tried first depends on the number of arcs (as in Naim, Manne, Halappanavar, Tumeo: Community
// Detection on the GPU, 2017):
//
//   up to 32                 as many lanes, without a table (sum_lanes.cuh)
//   up to Table::warp_arcs   a warp, its eighth of the block's table in shared memory
//   up to BLOCK_ARCS         a block, its whole table
//   more (hubs)              all blocks, a table in global memory (sum_hubs.cuh)
//
// A table that turns out too small passes its community on to the next kind. Communities are
// claimed by warps and blocks; one warp or block owns a community, but for hubs, whose rows all
// blocks write by atomics. A community without arcs gets an empty row. Sums are integers and
// rows unordered, so that no result depends on the order of threads.
#pragma once
#include "sum_hubs.cuh"
#include "sum_lanes.cuh"

// Arcs that a warp moves at a time.
#define MOVE_ARCS 1024

// Lists a community in the block bin. Blocks may take it at once: what was written before is there.
template <class W, class A>
__device__ __forceinline__ void list_for_blocks(const Arguments<W, A>& args, u32 c) {
  args.block_bin[atomicAdd(&args.state->block_count, 1u)] = c;
  __threadfence();
  atomicAdd(&args.state->blocks_listed, 1u);
}

// Sums communities with more arcs than lanes and few of them, one warp each; lists those with more
// in the block bin or hub bin.
template <class W, class A>
__device__ void sum_with_warps(const Arguments<W, A>& args, const Chunk& chunk, Shared<A>& shared) {
  const ArcsBefore arcs_before = args.arcs_before();
  const ChunkRows<W, A> rows{args, chunk.first};
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
    const i64 begin = chunk.first + claim, mine = begin + lane;
    i64 arcs_here = 0;
    if (lane < min((i64)share, count - claim)) {
      arcs_here = arcs_before[args.starts[mine + 1]] - arcs_before[args.starts[mine]];
      if (arcs_here > Table<A>::warp_arcs) rows.set_arcs(mine, 0);
      if (arcs_here > BLOCK_ARCS)
        args.hub_bin[atomicAdd(&state->hub_count, 1u)] = mine;
      else if (arcs_here > Table<A>::warp_arcs)
        list_for_blocks(args, mine);
    }
    u32 left = __ballot_sync(FULL, arcs_here > WARP && arcs_here <= Table<A>::warp_arcs);
    for (; left; left &= left - 1) {
      const i64 c = begin + __ffs(left) - 1;
      const u32 member = args.starts[c];
      const i64 low = arcs_before[member], high = arcs_before[args.starts[c + 1]],
                arcs = high - low;
      const u32 slots = min(table_for(arcs, args.neighbour_bound), Table<A>::warp_slots),
                limit = slots / 4 * 3;
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
          rows.set_arcs(c, 0);
          list_for_blocks(args, c);
        }
        continue;
      }
      const i64 room = args.room_of(c, chunk.first);
      i64 at = room;
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
        rows.set_arcs(c, at - room);
        if (inner) *rows.inner(c) += inner;
      }
    }
  }
}

// Sums the communities of the block bin, one block each; lists those with too many neighbours in
// the hub bin. Ends where the bin does: with warps at work, it may grow. The block's turn,
// `shared.claimed`, then remains for the next call; EMPTY is none.
template <class W, class A>
__device__ void sum_with_blocks(const Arguments<W, A>& args, const Chunk& chunk,
                                Shared<A>& shared) {
  const ArcsBefore arcs_before = args.arcs_before();
  const ChunkRows<W, A> rows{args, chunk.first};
  State* state = args.state;
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) {
      if (shared.claimed == EMPTY) shared.claimed = atomicAdd(&state->claimed_by_blocks, 1u);
      u32 listed, count;
      do {  // one may be being listed
        listed = *(volatile u32*)&state->blocks_listed;
        __threadfence();
        count = *(volatile u32*)&state->block_count;
      } while (listed != count);
      const bool taken = shared.claimed < count;
      shared.community = taken ? ((volatile u32*)args.block_bin)[shared.claimed] : EMPTY;
      if (taken) shared.claimed = EMPTY;
      shared.used[0] = shared.full = shared.written = 0;
    }
    __syncthreads();
    if (shared.community == EMPTY) break;
    const i64 c = shared.community;
    const u32 first = args.starts[c], last = args.starts[c + 1];
    const i64 low = arcs_before[first], high = arcs_before[last];
    const u32 slots = min(table_for(high - low, args.neighbour_bound), Table<A>::slots),
              limit = slots / 4 * 3;
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
      rows.set_arcs(c, shared.written);
      if (inner) *rows.inner(c) += inner;
    }
  }
}

// Half of an even weight; sums of 64 bits may be negative.
__device__ __forceinline__ u32 halved(u32 twice) { return twice / 2; }
__device__ __forceinline__ u64 halved(u64 twice) { return (u64)((i64)twice >> 1); }

// Writes the rows of a chunk's communities to their rooms, and sets loops and offsets. The caller
// syncs before it reads them.
template <class W, class A>
__device__ void sum_chunk(const Arguments<W, A>& args, const Chunk& chunk) {
  __shared__ Shared<A> shared;
  Barrier* barrier = &args.state->barrier;
  const ChunkRows<W, A> rows{args, chunk.first};
  const i64 count = chunk.last - chunk.first;
  if (threadIdx.x == 0) shared.claimed = EMPTY;
  if (args.row_inner) {
    for (i64 c = grid_thread(); c < count; c += grid_threads()) args.row_inner[c] = 0;
    grid_sync(barrier);
  }
  sum_with_lanes(args, chunk);
  sum_with_warps(args, chunk, shared);
  // Blocks begin with theirs while the last warps are at work.
#pragma unroll 1
  for (int call = 0; call < 2; ++call) {
    sum_with_blocks(args, chunk, shared);
    grid_sync(barrier);
  }
  sum_with_grid(args, chunk, shared);
  u64 inside = 0, max_degree = 0;
  for (i64 c = chunk.first + grid_thread(); c < chunk.last; c += grid_threads()) {
    if (!args.partial) {
      A twice = *rows.inner(c);
      if (args.row_inner && !counts_arcs<W>) twice += args.new_loops[c];  // of members
      inside += twice;
      args.new_loops[c] = halved(twice);
    }
    max_degree = max(max_degree, (u64)rows.arcs(c));
  }
  inside = block_sum(inside);
  if (threadIdx.x == 0 && inside) atomicAdd(&args.state->inside, inside);
  max_degree = warp_max(max_degree);
  if (lane_index() == 0 && max_degree) atomicMax(&args.state->max_degree, max_degree);
  const i64 written = *(volatile u64*)&args.state->written;
  grid_scan_to<i64>(
      count, [=](i64 i) { return rows.arcs(chunk.first + i); },
      [=](i64 i, i64 begin, i64) {
        args.new_offsets[chunk.first + i] = begin;
        if (args.row_arcs) args.row_arcs[i] = begin - written;
      },
      (i64*)args.partials, barrier, written);
}

// Moves the rows of a chunk's communities together, to where they stay. `targets24` is that of the
// arguments; one loop for both ways would take more registers than there are.
template <bool targets24, class W, class A>
__device__ void close_gaps(const Arguments<W, A>& args, const Chunk& chunk) {
  const i64 begin = args.new_offsets[chunk.first], end = args.new_offsets[chunk.last];
  const RowBegins<W, A> begins{args, chunk.first, begin};
  const i64 range = warp_range(end - begin, MOVE_ARCS);
  for (i64 low = begin + grid_thread() / WARP * range; low < end;
       low += grid_threads() / WARP * range) {
    auto source = [&](i64 c) { return args.room_of(c, chunk.first); };
    i64 first = find_row(begins, chunk.first, chunk.last, low);
    walk_rows(begins, first, chunk.last, low, min(low + range, end), source,
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
                  const i64 out = position + d * WARP;
                  if constexpr (targets24) {
                    // The first lanes have arcs, which follow each other.
                    const u32 count = __popc(__ballot_sync(FULL, at[d] >= 0));
                    put_targets24(args.new_targets, out - lane_index(), count, target[d]);
                  }
                  if (at[d] < 0) continue;
                  if constexpr (!targets24) args.new_targets[out] = target[d];
                  if (args.weight_bytes)
                    put_short_weight(args.new_weights, args.weight_bytes, out, weight[d]);
                  else
                    ((A*)args.new_weights)[out] = weight[d];
                }
                return true;
              });
  }
}
