// Deciding for hubs: all blocks share the arcs of each hub.
//
// Each hub of a sub-round gets a hash table in global memory. First, blocks fill the tables in
// units of arcs; each unit is summed in shared memory before, because atomics in global memory
// dominate the time of hubs. Then blocks reduce and empty the tables in units of slots. Last, the
// choices are written. A barrier of the grid separates the three steps. Hubs whose tables do not
// fit together are processed in batches.
#pragma once
#include "decide_table.cuh"
#include "search.cuh"

#define DRAIN_SLOTS (16 * THREADS)  // slots of a unit

// A hub's best choice in a unit of slots, and its weight.
struct HubChoice {
  Choice choice;
  u64 weight;
};

// Memory for hubs. Tables are empty between uses. Entry k of `slots`, `fills` and `drains` says where
// the table, the units of arcs and the units of slots of the k-th hub begin; fills and drains have
// one entry more, their end. own_weights: weight to the hub's own community. partials: one per unit
// of slots. capacity: slots of all tables, even, and enough for the largest hub's.
template <class A>
struct HubTables {
  u32* keys;
  A* sums;
  u64 capacity;
  u64* slots;
  u32* fills;
  u32* drains;
  A* own_weights;
  HubChoice* partials;

  __device__ __forceinline__ GlobalSlots<A> table() const { return {keys, sums, capacity}; }
};
static_assert(sizeof(HubTables<u32>) == 64, "mirrored by HUB_TABLES in gpu/runtime/launch.py");

// Lays out tables for as many hubs of queue[begin:end) as fit; the end of the batch becomes
// control->batch_end. Run by one block.
template <class S, class A>
__device__ void lay_out_tables(const S& s, const HubTables<A>& hubs, u32 begin, u32 end,
                               Control* control, Shared<A>& shared) {
  u64 slots_before = 0, fills_before = 0, drains_before = 0;
  u32 stop = end;
  for (u32 first = begin; first < stop; first += THREADS) {
    u32 i = first + threadIdx.x;
    u64 slots = 0, fills = 0, drains = 0, total;
    if (i < end) {
      u32 v = s.queue[i];
      u64 arcs = row_of(s.weights, s.offsets, v).arcs();
      slots = slots_for(arcs);
      fills = (arcs + Table<A>::block_max - 1) / Table<A>::block_max;
      drains = (slots + DRAIN_SLOTS - 1) / DRAIN_SLOTS;
    }
    __syncthreads();
    if (threadIdx.x == 0) shared.claimed = end;
    u64 offset = slots_before + block_scan(slots, total);
    if (i < end && offset + slots > hubs.capacity) atomicMin(&shared.claimed, i);
    slots_before += total;
    u64 fill = fills_before + block_scan(fills, total);
    fills_before += total;
    u64 drain = drains_before + block_scan(drains, total);
    drains_before += total;
    stop = shared.claimed;
    if (i < stop) {
      hubs.slots[i - begin] = offset;
      hubs.own_weights[i - begin] = 0;
    }
    // The entry behind the last hub of the batch says where its units end.
    if (i < end && i <= stop) {
      hubs.fills[i - begin] = fill;
      hubs.drains[i - begin] = drain;
    }
    if (i + 1 == end && stop == end) {
      hubs.fills[end - begin] = fill + fills;
      hubs.drains[end - begin] = drain + drains;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) control->batch_end = stop;
}

// Adds a unit of arcs, as many as a shared table takes, to the table of its hub.
template <class S, class A>
__device__ void fill_unit(const S& s, const HubTables<A>& hubs, u32 begin, u32 count,
                          Shared<A>& shared, u32 unit) {
  constexpr u32 unit_arcs = Table<A>::block_max;
  u32 k = last_at_most(hubs.fills, count, unit), v = s.queue[begin + k];
  typename S::Vertex x = s.vertex(v);
  if (x.idle) return;
  const auto [row, high] = row_of(s.weights, s.offsets, v);
  i64 low = row + (i64)(unit - hubs.fills[k]) * unit_arcs, stop = min(low + unit_arcs, high);
  A own_weight =
      fill<THREADS>(s, x, low, stop, threadIdx.x, shared.keys, shared.sums, Table<A>::slots);
  own_weight = block_sum(own_weight);
  const u32 slots = slots_for(high - row);
  for (u32 j = threadIdx.x; j < Table<A>::slots; j += THREADS) {
    u32 key = shared.keys[j];
    if (key == EMPTY) continue;
    hubs.table().add(hubs.slots[k], slots, key, shared.sums[j]);
    shared.keys[j] = EMPTY;
    shared.sums[j] = 0;
  }
  __syncthreads();
  if (threadIdx.x == 0 && own_weight) atomicAdd(hubs.own_weights + k, own_weight);
}

// Fills the tables of the hubs laid out from queue[begin] on, blocks taking turns.
template <class S, class A>
__device__ void fill_hubs(const S& s, const HubTables<A>& hubs, u32 begin, u32 count,
                          Shared<A>& shared) {
  const u32 fills = hubs.fills[count];
  for (u32 unit = blockIdx.x; unit < fills; unit += gridDim.x)
    fill_unit(s, hubs, begin, count, shared, unit);
}

// The same, by whichever blocks have time.
template <class S, class A>
__device__ void claim_fills(const S& s, const HubTables<A>& hubs, u32 begin, u32 count,
                            Shared<A>& shared, u32* counter) {
  const u32 fills = hubs.fills[count];
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) shared.claimed = atomicAdd(counter, 1);
    __syncthreads();
    const u32 unit = shared.claimed;
    if (unit >= fills) break;
    fill_unit(s, hubs, begin, count, shared, unit);
  }
  __syncthreads();
}

// Empties the tables; partials become the best community of each unit of slots.
template <class S, class A>
__device__ void drain_hubs(const S& s, const HubTables<A>& hubs, u32 begin, u32 count,
                           Shared<A>& shared) {
  const u32 drains = hubs.drains[count];
  for (u32 unit = blockIdx.x; unit < drains; unit += gridDim.x) {
    u32 k = last_at_most(hubs.drains, count, unit), v = s.queue[begin + k];
    typename S::Vertex x = s.vertex(v);
    if (x.idle) continue;
    u32 slots = slots_for(row_of(s.weights, s.offsets, v).arcs());
    const u64 table = hubs.slots[k], first = table + (unit - hubs.drains[k]) * DRAIN_SLOTS;
    A weight = 0;
    const Choice mine =
        drain<THREADS>(s, x, hubs.own_weights[k], threadIdx.x, hubs.table(), first,
                       min(first + DRAIN_SLOTS, table + slots), weight);
    __syncthreads();
    const Choice best = best_of_block(mine, s.seed, shared);
    if (best.community == EMPTY) {
      if (threadIdx.x == 0) hubs.partials[unit].choice = best;
    } else if (mine.community == best.community) {
      hubs.partials[unit] = {best, weight};
    }
  }
}

// Settles the hubs of the batch.
template <class S, class A>
__device__ void settle_hubs(const S& s, const HubTables<A>& hubs, u32 begin, u32 count,
                            Shared<A>& shared, Tally& tally) {
  for (u32 k = blockIdx.x; k < count; k += gridDim.x) {
    u32 v = s.queue[begin + k];
    typename S::Vertex x = s.vertex(v);
    if (x.idle) continue;
    Choice mine = {0.0, EMPTY};
    A weight = 0;
    for (u32 unit = hubs.drains[k] + threadIdx.x; unit < hubs.drains[k + 1]; unit += THREADS) {
      const HubChoice other = hubs.partials[unit];
      mine = better(mine, other.choice, s.seed);
      if constexpr (S::wants_best_weight)
        if (mine.community == other.choice.community) weight = other.weight;
    }
    __syncthreads();
    const Choice best = best_of_block(mine, s.seed, shared);
    if constexpr (S::wants_best_weight)
      weight = block_sum(mine.community == best.community ? weight : (A)0);
    if (threadIdx.x == 0) s.settle(begin + k, x, best, hubs.own_weights[k], weight, tally);
  }
}

// Decides for the hubs in queue[begin:end), batch by batch.
template <class S, class A>
__device__ void decide_other_hubs(const S& s, const HubTables<A>& hubs, u32 begin, u32 end,
                                  Control* control, Shared<A>& shared, Tally& tally) {
  Barrier* barrier = &control->barrier;
  for (u32 count; begin < end; begin += count) {
    grid_sync(barrier);
    if (blockIdx.x == 0) lay_out_tables(s, hubs, begin, end, control, shared);
    grid_sync(barrier);
    count = *(volatile u32*)&control->batch_end - begin;
    fill_hubs(s, hubs, begin, count, shared);
    grid_sync(barrier);
    drain_hubs(s, hubs, begin, count, shared);
    grid_sync(barrier);
    settle_hubs(s, hubs, begin, count, shared, tally);
  }
}
