// Deciding for hubs: all blocks share the arcs of each hub.
//
// First, blocks sum units of a hub's arcs by community, and write the sums to memory, by partition
// (partitions.cuh). Then a block sums a partition and finds its best community. Last, the choices
// are written. A barrier of the grid separates the three steps. Hubs whose sums do not fit together
// are processed in batches.
#pragma once
#include "decide_table.cuh"
#include "search.cuh"

// A hub's best choice in a partition, and its weight.
struct HubChoice {
  Choice choice;
  u64 weight;
};

// Memory for hubs. Entry k of `slots`, `fills` and `drains` says where the sums, the units of arcs
// and the partitions of the k-th hub begin; fills and drains have one entry more, their end.
// own_weights: weight to the hub's own community. partials: one per partition. capacity: slots of
// all hubs, even, and enough for the largest hub.
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
static_assert(sizeof(HubTables<u32>) == 64, "mirrored by HUB_TABLES in gpu/move/hub_tables.py");

// Lays out memory for as many hubs of queue[begin:end) as fit; the end of the batch becomes
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
      fills = (arcs + Table<A>::block_max - 1) / Table<A>::block_max;
      drains = partitions_for(arcs);
      slots = partitioned_slots<Table<A>::slots>(drains, fills);
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

// Sums the arcs of the hubs laid out from queue[begin] on, in units of as many as a shared table
// takes, blocks taking turns.
template <class S, class A>
__device__ void fill_hubs(const S& s, const HubTables<A>& hubs, u32 begin, u32 count,
                          Shared<A>& shared) {
  constexpr u32 unit_arcs = Table<A>::block_max;
  const u32 fills = hubs.fills[count];
  for (u32 unit = blockIdx.x; unit < fills; unit += gridDim.x) {
    const u32 k = last_at_most(hubs.fills, count, unit), v = s.queue[begin + k];
    typename S::Vertex x = s.vertex(v);
    if (x.idle) continue;
    const auto [row, high] = row_of(s.weights, s.offsets, v);
    const i64 low = row + (i64)(unit - hubs.fills[k]) * unit_arcs;
    const i64 stop = min(low + unit_arcs, high);
    A own_weight =
        fill<THREADS>(s, x, low, stop, threadIdx.x, shared.keys, shared.sums, Table<A>::slots);
    own_weight = block_sum(own_weight);
    if (threadIdx.x == 0 && own_weight) atomicAdd(hubs.own_weights + k, own_weight);
    const u32 partitions = hubs.drains[k + 1] - hubs.drains[k];
    write_sums<Table<A>::slots, A>(hubs.table(), hubs.slots[k], partitions, unit - hubs.fills[k],
                                   hubs.fills[k + 1] - hubs.fills[k], shared.keys, shared.sums,
                                   shared.partitions);
  }
}

// Finds the best community of each partition: partials.
template <class S, class A>
__device__ void drain_hubs(const S& s, const HubTables<A>& hubs, u32 begin, u32 count,
                           Shared<A>& shared) {
  constexpr u32 slots = Table<A>::slots;
  const u32 drains = hubs.drains[count];
  Partition& round = shared.partitions.at_work;
  for (u32 at = blockIdx.x; at < drains; at += gridDim.x) {
    const u32 k = last_at_most(hubs.drains, count, at), v = s.queue[begin + k];
    if (s.vertex(v).idle) continue;
    const u32 first = hubs.drains[k];
    begin_partition<slots>(hubs.slots[k], at - first, hubs.drains[k + 1] - first,
                           hubs.fills[k + 1] - hubs.fills[k], round);
    Choice mine = {0.0, EMPTY};
    A weight = 0;
    while (true) {
      if (!gather_round<slots, A>(hubs.table(), shared.keys, shared.sums, round)) continue;
      A sum = 0;
      const Choice found = drain<THREADS>(s, s.vertex(v), hubs.own_weights[k], threadIdx.x,
                                          Slots<A>{shared.keys, shared.sums}, 0, slots, sum);
      mine = better(mine, found, s.seed);
      if constexpr (S::wants_best_weight)
        if (mine.community == found.community) weight = sum;
      if (!next_round(round)) break;
    }
    const Choice best = best_of_block(mine, s.seed, shared);
    if (best.community == EMPTY) {
      if (threadIdx.x == 0) hubs.partials[at].choice = best;
    } else if (mine.community == best.community) {
      hubs.partials[at] = {best, weight};
    }
  }
}

// Proposes for the hubs of the batch.
template <class S, class A>
__device__ void propose_hubs(const S& s, const HubTables<A>& hubs, u32 begin, u32 count,
                            Shared<A>& shared, Tally& tally) {
  for (u32 k = blockIdx.x; k < count; k += gridDim.x) {
    u32 v = s.queue[begin + k];
    typename S::Vertex x = s.vertex(v);
    if (x.idle) continue;
    Choice mine = {0.0, EMPTY};
    A weight = 0;
    for (u32 p = hubs.drains[k] + threadIdx.x; p < hubs.drains[k + 1]; p += THREADS) {
      const HubChoice other = hubs.partials[p];
      mine = better(mine, other.choice, s.seed);
      if constexpr (S::wants_best_weight)
        if (mine.community == other.choice.community) weight = other.weight;
    }
    __syncthreads();
    const Choice best = best_of_block(mine, s.seed, shared);
    if constexpr (S::wants_best_weight)
      weight = block_sum(mine.community == best.community ? weight : (A)0);
    if (threadIdx.x == 0) s.propose(begin + k, x, best, hubs.own_weights[k], weight, tally);
  }
}
