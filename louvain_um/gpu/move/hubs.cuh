// Deciding for the widest vertices, by all blocks together: no block is left with one alone.
//
// Each hub of a sub-round gets a table of its own in global memory; blocks fill the tables
// in units of arcs, each added up in shared memory first, and empty them in
// units of slots. Where the tables of all hubs do not fit
// at once, they are served in batches.
#pragma once
#include "decide.cuh"

#define DRAIN_SLOTS (16 * THREADS)

// Memory for hubs. keys are EMPTY and sums 0 between uses. The arrays `slots`, `fills` and
// `drains` (where a hub's sub begins), and `own_weights`, have one entry a hub and one more;
// partials one for each unit of slots. `slots` has the largest table's size at least.
template <class A>
struct HubTables {
  u32* keys;
  A* sums;
  u64 capacity;
  u64* slots;
  u32* fills;
  u32* drains;
  A* own_weights;
  Choice* partials;
};

// Lays out tables for as many hubs of queue[begin:end) as fit; returns the end of the batch
// through control->batch_end. Run by one block.
template <class S, class A>
__device__ void lay_out(const S& s, const HubTables<A>& g, u32 begin, u32 end, Control* control,
                        Shared<A>& shared) {
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
    if (i < end && offset + slots > g.capacity) atomicMin(&shared.claimed, i);
    slots_before += total;
    u64 fill = fills_before + block_scan(fills, total);
    fills_before += total;
    u64 drain = drains_before + block_scan(drains, total);
    drains_before += total;
    stop = shared.claimed;
    if (i < stop) {
      g.slots[i - begin] = offset;
      g.own_weights[i - begin] = 0;
    }
    // The entry behind the last hub says where its sub ends.
    if (i < end && i <= stop) {
      g.fills[i - begin] = fill;
      g.drains[i - begin] = drain;
    }
    if (i + 1 == end && stop == end) {
      g.fills[end - begin] = fill + fills;
      g.drains[end - begin] = drain + drains;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) control->batch_end = stop;
}

// Returns the hub to which a unit belongs: the last of `count` that begins at or before it.
__device__ __forceinline__ u32 hub_of(const u32* units, u32 count, u32 unit) {
  u32 low = 0, high = count;
  while (high - low > 1) {
    u32 middle = (low + high) / 2;
    if (units[middle] <= unit)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Returns the best of all threads' choices to every thread.
template <class A>
__device__ Choice best_of_block(Choice best, u32 seed, Shared<A>& shared) {
  best = best_of_warp(best, seed);
  __syncthreads();
  if (threadIdx.x % WARP == 0) shared.champions[threadIdx.x / WARP] = best;
  __syncthreads();
  best = shared.champions[0];
  for (u32 w = 1; w < WARPS; ++w) best = better(best, shared.champions[w], seed);
  return best;
}

// Adds a unit of arcs, as many as a shared table takes, to the table of its hub: there first,
// since atomics on global memory are what this costs.
template <class S, class A>
__device__ void fill_unit(const S& s, const HubTables<A>& g, u32 begin, u32 count,
                          Shared<A>& shared, u32 unit) {
  constexpr u32 unit_arcs = Table<A>::block_max;
  u32 k = hub_of(g.fills, count, unit), v = s.queue[begin + k];
  typename S::Vertex x = s.vertex(v);
  if (x.idle) return;
  const auto [row, high] = row_of(s.weights, s.offsets, v);
  i64 low = row + (i64)(unit - g.fills[k]) * unit_arcs, stop = min(low + unit_arcs, high);
  A own_weight = fill<THREADS>(s, x, low, stop, threadIdx.x, shared.keys, shared.sums,
                         Table<A>::slots);
  own_weight = block_sum(own_weight);
  const u32 slots = slots_for(high - row);
  for (u32 j = threadIdx.x; j < Table<A>::slots; j += THREADS) {
    u32 key = shared.keys[j];
    if (key == EMPTY) continue;
    add_weight(g.keys + g.slots[k], g.sums + g.slots[k], slots, key, shared.sums[j]);
    shared.keys[j] = EMPTY;
    shared.sums[j] = 0;
  }
  __syncthreads();
  if (threadIdx.x == 0 && own_weight) atomicAdd(g.own_weights + k, own_weight);
}

// Fills the tables of the hubs laid out from queue[begin] on, blocks taking turns.
template <class S, class A>
__device__ void fill_hubs(const S& s, const HubTables<A>& g, u32 begin, u32 count,
                            Shared<A>& shared) {
  const u32 fills = g.fills[count];
  for (u32 unit = blockIdx.x; unit < fills; unit += gridDim.x)
    fill_unit(s, g, begin, count, shared, unit);
}

// The same by whichever blocks have time.
template <class S, class A>
__device__ void fill_hubs(const S& s, const HubTables<A>& g, u32 begin, u32 count,
                            Shared<A>& shared, u32* counter) {
  const u32 fills = g.fills[count];
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) shared.claimed = atomicAdd(counter, 1);
    __syncthreads();
    const u32 unit = shared.claimed;
    if (unit >= fills) break;
    fill_unit(s, g, begin, count, shared, unit);
  }
  __syncthreads();
}

// Empties the tables and notes the best community of each unit of slots.
template <class S, class A>
__device__ void drain_hubs(const S& s, const HubTables<A>& g, u32 begin, u32 count,
                             Shared<A>& shared) {
  const u32 drains = g.drains[count];
  for (u32 unit = blockIdx.x; unit < drains; unit += gridDim.x) {
    u32 k = hub_of(g.drains, count, unit), v = s.queue[begin + k];
    typename S::Vertex x = s.vertex(v);
    if (x.idle) continue;
    u32 slots = slots_for(row_of(s.weights, s.offsets, v).arcs());
    u32 first = (unit - g.drains[k]) * DRAIN_SLOTS;
    Choice best = drain<THREADS>(s, x, threadIdx.x, g.keys + g.slots[k] + first,
                                 g.sums + g.slots[k] + first,
                                 slots - first < DRAIN_SLOTS ? slots - first : DRAIN_SLOTS);
    best = best_of_block(best, s.seed, shared);
    if (threadIdx.x == 0) g.partials[unit] = best;
  }
}

// Settles the hubs laid out.
template <class S, class A>
__device__ void settle_hubs(const S& s, const HubTables<A>& g, u32 begin, u32 count,
                              Shared<A>& shared, Tally& tally) {
  for (u32 k = blockIdx.x; k < count; k += gridDim.x) {
    u32 v = s.queue[begin + k];
    typename S::Vertex x = s.vertex(v);
    if (x.idle) continue;
    const Row row = row_of(s.weights, s.offsets, v);
    Choice best = {0.0, EMPTY};
    for (u32 unit = g.drains[k] + threadIdx.x; unit < g.drains[k + 1]; unit += THREADS)
      best = better(best, g.partials[unit], s.seed);
    best = best_of_block(best, s.seed, shared);
    A best_weight = 0;
    if constexpr (S::wants_best_weight)
      if (best.community != EMPTY)
        best_weight = block_sum(weight_towards<THREADS, S, A>(s, x, row.low, row.high, threadIdx.x,
                                                      best.community));
    if (threadIdx.x == 0) s.settle(begin + k, x, best, g.own_weights[k], best_weight, tally);
  }
}

// Serves the hubs from queue[begin] on that there were no tables for yet, batch by batch.
template <class S, class A>
__device__ void decide_other_hubs(const S& s, const HubTables<A>& hubs, u32 begin, u32 end,
                                    Control* control, Shared<A>& shared, Tally& tally) {
  Barrier* barrier = &control->barrier;
  for (u32 count; begin < end; begin += count) {
    grid_sync(barrier);
    if (blockIdx.x == 0) lay_out(s, hubs, begin, end, control, shared);
    grid_sync(barrier);
    count = *(volatile u32*)&control->batch_end - begin;
    fill_hubs(s, hubs, begin, count, shared);
    grid_sync(barrier);
    drain_hubs(s, hubs, begin, count, shared);
    grid_sync(barrier);
    settle_hubs(s, hubs, begin, count, shared, tally);
  }
}

// The same as `decide` for rows sorted by length, of which the longest come over the bus: every
// other block begins with short ones, so that bus and memory are busy at the same time.
template <class S, class A>
__device__ void decide_sorted(const S& s, const u32* from, const HubTables<A>& hubs, u32* work,
                              Control* control, Shared<A>& shared, Tally& tally) {
  const u32 eighth = threadIdx.x / WARP * (Table<A>::slots / WARPS);
  Barrier* barrier = &control->barrier;
  const bool any = from[HUB] < from[BLOCK];
  u32 begin = from[HUB], count = 0;
  if (any) {
    if (blockIdx.x == 0) lay_out(s, hubs, begin, from[BLOCK], control, shared);
    grid_sync(barrier);
    count = *(volatile u32*)&control->batch_end - begin;
  }
  for (u32 turn = 0; turn < 2; ++turn) {
    if (turn == blockIdx.x % 2) {
      if (any) fill_hubs(s, hubs, begin, count, shared, work + HUB);
      if (from[BLOCK] < from[WARPED])
        decide_block(s, from[BLOCK], from[WARPED], work + BLOCK, shared.keys, shared.sums, shared,
                     tally);
      decide_warp(s, from[WARPED], from[TILE32], work + WARPED, shared.keys + eighth,
                  shared.sums + eighth, tally);
    } else {
      decide_tile<32>(s, from[TILE32], from[TILE16], work + TILE32, tally);
      decide_tile<16>(s, from[TILE16], from[TILE8], work + TILE16, tally);
    }
  }
  if (any) {
    grid_sync(barrier);
    drain_hubs(s, hubs, begin, count, shared);
  }
  decide_tile<8>(s, from[TILE8], from[TILE4], work + TILE8, tally);
  if (any) {
    grid_sync(barrier);
    settle_hubs(s, hubs, begin, count, shared, tally);
  }
  decide_tile<4>(s, from[TILE4], from[BINS], work + TILE4, tally);
  decide_other_hubs(s, hubs, begin + count, from[BLOCK], control, shared, tally);
}

// Decides for all vertices queued for one sub-round, which begin at from[0] in the queue. The
// hubs' steps are a barrier apart; blocks with no sub in one go on with smaller vertices.
template <class S, class A>
__device__ void decide(const S& s, const u32* from, const HubTables<A>& hubs, u32* work,
                       Control* control, Shared<A>& shared, Tally& tally) {
  if constexpr (S::sorted) return decide_sorted(s, from, hubs, work, control, shared, tally);
  const u32 eighth = threadIdx.x / WARP * (Table<A>::slots / WARPS);
  Barrier* barrier = &control->barrier;
  const bool any = from[HUB] < from[BLOCK];
  u32 begin = from[HUB], count = 0;
  if (any && blockIdx.x == 0) lay_out(s, hubs, begin, from[BLOCK], control, shared);
  if (from[BLOCK] < from[WARPED])
    decide_block(s, from[BLOCK], from[WARPED], work + BLOCK, shared.keys, shared.sums, shared,
                 tally);
  if (any) {
    grid_sync(barrier);
    count = *(volatile u32*)&control->batch_end - begin;
    fill_hubs(s, hubs, begin, count, shared);
  }
  decide_warp(s, from[WARPED], from[TILE32], work + WARPED, shared.keys + eighth,
              shared.sums + eighth, tally);
  if (any) {
    grid_sync(barrier);
    drain_hubs(s, hubs, begin, count, shared);
  }
  decide_tile<32>(s, from[TILE32], from[TILE16], work + TILE32, tally);
  decide_tile<16>(s, from[TILE16], from[TILE8], work + TILE16, tally);
  if (any) {
    grid_sync(barrier);
    settle_hubs(s, hubs, begin, count, shared, tally);
  }
  decide_tile<8>(s, from[TILE8], from[TILE4], work + TILE8, tally);
  decide_tile<4>(s, from[TILE4], from[BINS], work + TILE4, tally);
  decide_other_hubs(s, hubs, begin + count, from[BLOCK], control, shared, tally);
}
