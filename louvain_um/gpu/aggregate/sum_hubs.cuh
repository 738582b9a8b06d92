// Sums the arcs of hubs: communities with more arcs than one block sums, or with more neighbours
// than its table holds. See sum_arcs.cuh.
#pragma once
#include "search.cuh"
#include "sum_tables.cuh"

// Slots of the smallest table for a unit of a hub's arcs.
#define LEAST_SLOTS 512

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
// Tables are multiples of a group: its slots belong to one hub. `counts`, if there are any, count
// the arcs of hubs in place of new_offsets, which may be on the host: warps wait for the last count.
template <class W, class A>
__device__ void write_hubs(const Arguments<W, A>& args, const Chunk& chunk,
                           const GlobalSlots<A>& table, const u64* table_at, u32 done, u32 taken,
                           u64* counts) {
  const ChunkRows<W, A> rows{args, chunk.first};
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
        if (lane_index() == 0)
          at = counts ? atomicAdd(counts + hub[q], (u64)wanted) : rows.add_arcs(c, wanted);
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

// Returns the arcs of a unit: a table of so many slots has room for as many communities.
__device__ __forceinline__ u32 unit_arcs_of(u32 slots) { return slots / 4 * 3; }

// Returns the slots of a block's table for units of hubs that have so many arcs together: as many
// as fit, but fewer where some blocks would have no unit.
template <class A>
__device__ __forceinline__ u32 unit_slots_for(u64 arcs) {
  u32 slots = Table<A>::slots;
  while (slots > LEAST_SLOTS && arcs < (u64)gridDim.x * unit_arcs_of(slots)) slots /= 2;
  return slots;
}

// Adds weight to a community's sum unless slot k is another's; returns whether it did.
template <class A>
__device__ __forceinline__ bool add_at(const GlobalSlots<A>& table, u64 k, u32 community,
                                       A weight) {
  if constexpr (sizeof(A) == sizeof(u32)) {
    u64* const there = table.at(k);
    u64 pair = *(volatile u64*)there;
    if (pair == table.UNUSED) {
      pair = atomicCAS(there, table.UNUSED, (u64)community << 32 | weight);
      if (pair == table.UNUSED) return true;
    }
    if (u32(pair >> 32) != community) return false;
    reduce_add((u32*)there, weight);  // the low half
  } else {
    u32 key = ((volatile u32*)table.keys)[k];
    if (key == EMPTY) key = atomicCAS(table.keys + k, EMPTY, community);
    if (key != EMPTY && key != community) return false;
    atomicAdd(table.sums + k, weight);
  }
  return true;
}

// Adds the sums of a block's table to a hub's, of `slots` slots from `begin` on. A look at a slot of
// global memory takes long, and one sum of many needs many: each lane goes on to its next sum by
// itself, and searches are quadratic, as occupied slots in a row would make them longer still.
template <class A>
__device__ void add_unit(const Shared<A>& shared, u32 unit_slots, const GlobalSlots<A>& table,
                         u64 begin, u32 slots) {
  u32 probe = 0;
  for (u32 s = threadIdx.x; s < unit_slots;) {
    const u32 key = shared.keys[s];
    const u32 slot = (first_slot(key, slots) + probe * (probe + 1) / 2) & (slots - 1);
    const bool done = key == EMPTY || add_at(table, begin + slot, key, shared.sums[s]);
    s += done ? THREADS : 0;
    probe = done ? 0 : probe + 1;
  }
}

// Sums the communities of the hub bin with the whole grid, as many at a time as have room for
// tables. Blocks sum units of arcs in shared memory, then add those sums to the hub's table:
// atomics on the few addresses of other hubs would queue otherwise. Ends with a barrier.
template <class W, class A>
__device__ void sum_with_grid(const Arguments<W, A>& args, const Chunk& chunk, Shared<A>& shared) {
  const ArcsBefore arcs_before = args.arcs_before();
  const ChunkRows<W, A> rows{args, chunk.first};
  Barrier* barrier = &args.state->barrier;
  const u32 hubs = *(volatile u32*)&args.state->hub_count;
  const GlobalSlots<A> table(args.keys, args.sums, args.table_slots);
  for (u32 done = 0, taken; done < hubs; done += taken) {
    // Every block computes the same layout of tables and units.
    const u32 t = threadIdx.x;
    u64 slots = 0, arcs = 0, all;
    u32 all_units;
    if (done + t < hubs) {
      u32 c = args.hub_bin[done + t];
      arcs = arcs_before[args.starts[c + 1]] - arcs_before[args.starts[c]];
      slots = hub_slots(arcs, args.neighbour_bound);
    }
    u64 slots_before = block_scan(slots, all);
    bool fits = slots && slots_before + slots <= args.table_slots;
    const u32 unit_slots = unit_slots_for<A>(block_sum(fits ? arcs : 0ull));
    const u32 unit_arcs = unit_arcs_of(unit_slots);
    const u32 units = fits ? (arcs + unit_arcs - 1) / unit_arcs : 0;
    u32 units_before = block_scan(units, all_units);
    taken = block_sum(fits ? 1u : 0u);
    u64* const counts = taken <= gridDim.x ? args.partials : nullptr;
    if (counts && blockIdx.x == 0 && t < taken) counts[t] = 0;
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
      for (u32 s = threadIdx.x; s < unit_slots; s += THREADS) {
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
          add_weight(shared.keys, shared.sums, unit_slots, community, weight);
        return true;
      });
      __syncthreads();
      add_unit(shared, unit_slots, table, begin, slots);
      inner = block_sum(inner);
      if (threadIdx.x == 0 && inner) atomicAdd(rows.inner(c), inner);
    }
    grid_sync(barrier);
    write_hubs(args, chunk, table, shared.table_at, done, taken, counts);
    grid_sync(barrier);
    if (!counts) continue;
    if (blockIdx.x == 0 && t < taken) rows.set_arcs(args.hub_bin[done + t], counts[t]);
    grid_sync(barrier);
  }
}
