// Sums the arcs of hubs: communities with more arcs than one block sums, or with more neighbours
// than its table holds. See sum_arcs.cuh.
#pragma once
#include "search.cuh"
#include "sum_tables.cuh"

// Groups of slots, as many as a warp has lanes, for whose arcs a warp reserves room at once.
#define GROUPS 4

// Parts of the tables that warps go through side by side: so they do not all wait for the counter
// of the arcs of one hub.
#define PARTS 64

// Returns the slots of a hub's table: a power of two, of which about four fifths are in use at most.
// More of them would mean fewer hubs at a time, each time with barriers, and more to read and write.
__device__ __forceinline__ u32 hub_slots(i64 arcs, i64 neighbour_bound) {
  const u32 communities = u32(min(arcs, neighbour_bound)), wanted = communities + communities / 4;
  return wanted <= WARP ? WARP : 1u << (32 - __clz(wanted - 1));
}

// Empties the tables of hubs, before the first of them; `write_hubs` leaves them empty. The caller
// syncs before they are filled.
template <class W, class A>
__device__ void clear_tables(const Arguments<W, A>& args) {
  const GlobalSlots<A> table(args.keys, args.sums, args.table_slots);
  const u64 end = args.table_slots / WARP * WARP;  // where tables may end
  for (u64 s = grid_thread(); s < end; s += grid_threads()) table.clear(s);
}

// Writes the rows of hubs hub_bin[done], hub_bin[done + 1], … from their tables, which begin at
// table_at[0], table_at[1], …, table_at[taken] being the end of the last, and empties the tables.
// Tables are multiples of a group: its slots belong to one hub.
template <class W, class A>
__device__ void write_hubs(const Arguments<W, A>& args, const Chunk& chunk,
                           const GlobalSlots<A>& table, const u64* table_at, u32 done, u32 taken) {
  const i64 groups = table_at[taken] / WARP;
  const i64 part = (groups + PARTS * GROUPS - 1) / (PARTS * GROUPS);  // steps of a warp
  for (i64 step = grid_thread() / WARP; step < part * PARTS; step += grid_threads() / WARP) {
    const i64 group = (step % PARTS * part + step / PARTS) * GROUPS;
    if (group >= groups) continue;
    u32 key[GROUPS], used[GROUPS], hub[GROUPS], all = 0;
    A sum[GROUPS];
#pragma unroll
    for (u32 q = 0; q < GROUPS; ++q) {
      const u64 t = min(group + q, groups - 1) * WARP;
      hub[q] = last_at_most(table_at, taken, t);
      const u64 begin = table_at[hub[q]], own = (table_at[hub[q] + 1] - begin) / WARP;
      key[q] = EMPTY;
      if (group + q < groups) {
        const u64 slot = begin + scatter((t - begin) / WARP, own) * WARP + lane_index();
        key[q] = table.get(slot, sum[q]);
        if (key[q] != EMPTY) table.clear(slot);
      }
      used[q] = __ballot_sync(FULL, key[q] != EMPTY);
      all += __popc(used[q]);
    }
    const bool together = hub[0] == hub[GROUPS - 1];
    u64 at = 0;
#pragma unroll
    for (u32 q = 0; q < GROUPS; ++q) {
      if (!used[q]) continue;
      const i64 c = args.hub_bin[done + hub[q]];
      if (all) {
        const u32 wanted = together ? all : __popc(used[q]);
        if (lane_index() == 0) at = atomicAdd((u64*)args.new_offsets + c, (u64)wanted);
        at = __shfl_sync(FULL, at, 0);
        if (together) all = 0;
      }
      if (key[q] != EMPTY) {
        const i64 mine = args.room_of(c, chunk.first) + at + __popc(used[q] & lanes_below());
        args.chunk_targets[mine] = key[q];
        args.chunk_weights[mine] = sum[q];
      }
      at += __popc(used[q]);
    }
  }
}

// Sums the communities of the hub bin with the whole grid, as many at a time as have room for
// tables. Blocks sum units of arcs in shared memory, then add those sums to the hub's table:
// atomics on the few addresses of other hubs would queue otherwise. Ends with a barrier.
template <class W, class A>
__device__ void sum_with_grid(const Arguments<W, A>& args, const Chunk& chunk, Shared<A>& shared) {
  constexpr u32 unit_arcs = Table<A>::unit_arcs;
  const ArcsBefore arcs_before = args.arcs_before();
  Barrier* barrier = &args.state->barrier;
  const u32 hubs = *(volatile u32*)&args.state->hub_count;
  const GlobalSlots<A> table(args.keys, args.sums, args.table_slots);
  for (u32 done = 0, taken; done < hubs; done += taken) {
    // Every block computes the same layout of tables and units.
    const u32 t = threadIdx.x;
    u64 slots = 0, all;
    u32 units = 0, all_units;
    if (done + t < hubs) {
      u32 c = args.hub_bin[done + t];
      i64 arcs = arcs_before[args.starts[c + 1]] - arcs_before[args.starts[c]];
      slots = hub_slots(arcs, args.neighbour_bound);
      units = (arcs + unit_arcs - 1) / unit_arcs;
    }
    u64 slots_before = block_scan(slots, all);
    bool fits = slots && slots_before + slots <= args.table_slots;
    u32 units_before = block_scan(fits ? units : 0u, all_units);
    taken = block_sum(fits ? 1u : 0u);
    if (t == 0) shared.table_at[0] = 0;
    if (fits) shared.table_at[t + 1] = slots_before + slots;
    shared.unit_at[t] = units_before;
    __syncthreads();
    for (u32 unit = blockIdx.x; unit < all_units; unit += gridDim.x) {
      const u32 g = last_at_most(shared.unit_at, taken, unit);
      const i64 c = args.hub_bin[done + g];
      const u64 begin = shared.table_at[g];
      const u32 slots = shared.table_at[g + 1] - begin;
      const u32 first = args.starts[c], last = args.starts[c + 1];
      const i64 low = arcs_before[first] + (i64)(unit - shared.unit_at[g]) * unit_arcs;
      const i64 high = min(low + unit_arcs, arcs_before[last]);
      for (u32 s = threadIdx.x; s < Table<A>::slots; s += THREADS) {
        shared.keys[s] = EMPTY;
        shared.sums[s] = 0;
      }
      __syncthreads();
      const u32 own = args.partial ? EMPTY : (u32)c;
      A inner = 0;
      visit_with_block(args, first, last, low, high, [&](u32 community, A weight) {
        if (community == own)
          inner += weight;
        else
          add_weight(shared.keys, shared.sums, Table<A>::slots, community, weight);
        return true;
      });
      __syncthreads();
      for (u32 s = threadIdx.x; s < Table<A>::slots; s += THREADS)
        if (shared.keys[s] != EMPTY) table.add(begin, slots, shared.keys[s], shared.sums[s]);
      inner = block_sum(inner);
      if (threadIdx.x == 0 && inner) atomicAdd(args.new_loops + c, inner);
    }
    grid_sync(barrier);
    write_hubs(args, chunk, table, shared.table_at, done, taken);
    grid_sync(barrier);
  }
}
