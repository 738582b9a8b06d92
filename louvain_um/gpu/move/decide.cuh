// Deciding where vertices go, and queueing them for it: what moving and refinement share.
//
// A sweep's queue holds vertices by sub-round, and in each by degree class. For every queued
// vertex a group of threads as wide as its class adds up the weights of its arcs by the label
// that the rule `S` gives their ends, lets the rule score each label, and hands the best one
// to the rule to settle. The labels and scores may depend only on state frozen for the step.
//
// A rule S offers: the arrays offsets, targets, weights, queue and seed; a type Accumulator; a
// type Vertex made by vertex(v) with `own` (the label that counts as own_weight) and `idle`;
// label(x, u), EMPTY where u does not count; choice(x, label, weight), EMPTY where not
// eligible; settle(i, x, best, own_weight, best_weight, tally), called once a vertex; wants_best_weight, whether
// settle needs the weight of the arcs towards the best label; sorted, whether rows are (targets24.cuh).
#pragma once
#include "grid.cuh"
#include "warp_read_row.cuh"
#include "rules.cuh"
#include "hash_table.cuh"

#define THREADS 256
#define WARPS (THREADS / WARP)

// A block's shared table; each warp owns an eighth of it when warps work alone. Together with
// the sums it takes 32 KiB (24 KiB for 64-bit sums), which leaves room for five blocks.
template <class A>
struct Table {
  static constexpr u32 slots = sizeof(A) == 4 ? 4096 : 2048;
  static constexpr u32 block_max = slots / 2;
  static constexpr u32 warp_max = slots / 2 / WARPS;
};

// Degree classes, widest first, so that long work starts before short work fills the gaps.
enum Bin { HUB, BLOCK, WARPED, TILE32, TILE16, TILE8, TILE4, BINS };

#define MAX_SUB_ROUNDS 32
#define MAX_KEYS (MAX_SUB_ROUNDS * BINS)
#define MAX_SWEEPS 128

// What blocks share and the host reads back. Zeroed by the host before a launch.
struct Control {
  Barrier barrier;
  u32 counts[MAX_KEYS];
  u32 work[MAX_KEYS];
  i64 gain[2];
  u64 moves[2];
  u64 total_moves;
  i64 total_gain;
  u64 visited;
  u64 iterations;
  u64 batch_end;
  u32 round_begin, tail;  // of a level in pages: where the sub-round's queue begins and ends
  u64 ended[MAX_SWEEPS];  // when each sweep ended, in nanoseconds, and how many vertices moved
  u64 moved[MAX_SWEEPS];
};

__device__ __forceinline__ u64 nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// A thread's share of what a sweep gained.
struct Tally {
  i64 gain;
  u32 moves;
};

// Adds value to array[index] for every lane of a full warp; index EMPTY adds nothing. Lanes
// with the same index join their values first: a great community is no bottleneck.
template <class T>
__device__ __forceinline__ void add_together(T* array, u32 index, T value) {
  const u32 lane = threadIdx.x % WARP, peers = __match_any_sync(FULL, index);
  u32 above = peers & (0xFFFFFFFEu << lane), rank = __popc(peers & ((1u << lane) - 1));
  while (__any_sync(FULL, above)) {
    u32 next = __ffs(above);
    T other = __shfl_sync(FULL, value, next ? next - 1 : lane);
    if (next) value += other;
    above &= __ballot_sync(FULL, !(rank & 1));
    rank >>= 1;
  }
  if (index != EMPTY && lane == __ffs(peers) - 1) atomicAdd(array + index, value);
}

// Returns how many items the threads of the grid visit together, a multiple of a warp.
__device__ __forceinline__ i64 whole_warps(i64 items) { return (items + WARP - 1) & ~31ll; }

template <class A>
__device__ __forceinline__ u32 bin_of(i64 degree) {
  if (degree > Table<A>::block_max) return HUB;
  if (degree > Table<A>::warp_max) return BLOCK;
  if (degree > 32) return WARPED;
  if (degree > 16) return TILE32;
  if (degree > 8) return TILE16;
  return degree > 4 ? TILE8 : TILE4;
}

// A block's shared memory.
template <class A>
struct Shared {
  u32 keys[Table<A>::slots];
  A sums[Table<A>::slots];
  u32 starts[MAX_KEYS + 1];
  u32 local[MAX_KEYS];
  u32 base[MAX_KEYS];
  u32 claimed;
  Choice champions[WARPS];
};

template <class A>
__device__ void clear_table(Shared<A>& shared) {
  for (u32 k = threadIdx.x; k < Table<A>::slots; k += THREADS) {
    shared.keys[k] = EMPTY;
    shared.sums[k] = 0;
  }
}

// Queues vertices of low..high - 1 that have arcs, from queue[at] on, by sub-round and degree;
// fills shared.starts and counts the arcs they have. round_of(v, first) says in which of
// `rounds` sub-rounds v takes sub, EMPTY for none; it is asked twice, `first` the first time.
// Holds two barriers of the grid; control->counts is 0 before and after the next one.
template <class W, class A, class R>
__device__ void enqueue(i64 low, i64 high, const i64* offsets, const W* weights, u32 rounds, u32 at,
                        R round_of, u32* queue, Control* control, Shared<A>& shared) {
  const i64 begin = low + stretch_begin(high - low), end = low + stretch_end(high - low);
  const u32 n_keys = rounds * BINS;
  u64 arcs = 0;
  if (blockIdx.x == 0)
    for (u32 k = threadIdx.x; k < n_keys; k += THREADS) control->work[k] = 0;
  for (u32 k = threadIdx.x; k < n_keys; k += THREADS) shared.local[k] = 0;
  __syncthreads();
  for (i64 v = begin + threadIdx.x; v < end; v += THREADS) {
    u32 round = round_of(v, true);
    if (round == EMPTY) continue;
    i64 degree = row_of(weights, offsets, v).arcs();
    if (!degree) continue;
    arcs += degree;
    atomicAdd(shared.local + round * BINS + bin_of<A>(degree), 1u);
  }
  arcs = block_sum(arcs);
  for (u32 k = threadIdx.x; k < n_keys; k += THREADS)
    shared.base[k] = shared.local[k] ? atomicAdd(control->counts + k, shared.local[k]) : 0;
  if (threadIdx.x == 0 && arcs) atomicAdd(&control->visited, arcs);
  grid_sync(&control->barrier);
  for (u32 k = threadIdx.x; k < n_keys; k += THREADS) {
    shared.starts[k + 1] = ((volatile u32*)control->counts)[k];
    shared.local[k] = 0;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.starts[0] = at;
    for (u32 k = 0; k < n_keys; ++k) shared.starts[k + 1] += shared.starts[k];
  }
  __syncthreads();
  for (i64 v = begin + threadIdx.x; v < end; v += THREADS) {
    u32 round = round_of(v, false);
    if (round == EMPTY) continue;
    i64 degree = row_of(weights, offsets, v).arcs();
    if (!degree) continue;
    u32 k = round * BINS + bin_of<A>(degree);
    queue[shared.starts[k] + shared.base[k] + atomicAdd(shared.local + k, 1u)] = v;
  }
  grid_sync(&control->barrier);
  if (blockIdx.x == 0)
    for (u32 k = threadIdx.x; k < n_keys; k += THREADS) control->counts[k] = 0;
}

__device__ __forceinline__ u32 claim_warp(u32* counter, u32 step) {
  u32 at = 0;
  if (threadIdx.x % WARP == 0) at = atomicAdd(counter, step);
  return __shfl_sync(FULL, at, 0);
}

// Adds up the values of the lanes in `peers`, a set of lanes of one tile of T lanes.
template <int T, class A>
__device__ __forceinline__ A sum_of_peers(A value, u32 peers, u32 tile) {
  A sum = 0;
#pragma unroll
  for (int k = 0; k < T; ++k) {
    A other = __shfl_sync(FULL, value, tile * T + k);
    if (peers >> (tile * T + k) & 1) sum += other;
  }
  return sum;
}

// Decides for vertices of at most T arcs, a tile of T lanes each, one arc a lane: lanes with
// the same community find each other by match_any, the first of them speaks for all.
template <int T, class S>
__device__ void decide_tile(const S& s, u32 begin, u32 end, u32* counter, Tally& tally) {
  using A = typename S::Accumulator;
  constexpr u32 per_warp = WARP / T, rounds = 4;
  const u32 lane = threadIdx.x % WARP, tile = lane / T, rank = lane % T;
  const u32 in_tile = (T == WARP ? FULL : (1u << T) - 1) << (tile * T);
  if (begin == end) return;
  u32 at = claim_warp(counter, rounds * per_warp);
  while (begin + at < end) {
    u32 next = claim_warp(counter, rounds * per_warp);
    for (u32 k = 0; k < rounds && begin + at + k * per_warp < end; ++k) {
      u32 i = begin + at + k * per_warp + tile;
      bool valid = i < end;
      u32 v = valid ? s.queue[i] : 0, label = EMPTY;
      A weight = 0;
      typename S::Vertex x = s.vertex(v);
      valid = valid && !x.idle;
      const Row row = row_of(s.weights, s.offsets, v);
      i64 j = row.low + rank;
      if (valid && j < row.high) {
        label = s.label(x, target_at(s.targets, s.weights, j));
        weight = weight_at(s.weights, j);
      }
      u32 peers = __match_any_sync(FULL, label) & in_tile;
      if constexpr (S::unweighted)
        weight = __popc(peers);
      else
        weight = sum_of_peers<T>(weight, peers, tile);
      bool mine = label == x.own && label != EMPTY;
      u32 at_own = __ballot_sync(FULL, mine) & in_tile;
      A own_weight = __shfl_sync(FULL, weight, at_own ? __ffs(at_own) - 1 : lane);
      if (!at_own) own_weight = 0;
      Choice best = {0.0, EMPTY};
      if (label != EMPTY && !mine && lane == __ffs(peers) - 1) best = s.choice(x, label, weight);
#pragma unroll
      for (int d = T / 2; d; d >>= 1) {
        Choice other = {__shfl_xor_sync(FULL, best.score, d),
                        __shfl_xor_sync(FULL, best.community, d)};
        best = better(best, other, s.seed);
      }
      A best_weight = 0;
      if constexpr (S::wants_best_weight) {
        u32 there = __ballot_sync(FULL, label == best.community && label != EMPTY) & in_tile;
        best_weight = __shfl_sync(FULL, weight, there ? __ffs(there) - 1 : lane);
      }
      if (valid && rank == 0) s.settle(i, x, best, own_weight, best_weight, tally);
    }
    at = next;
  }
}

// Adds the weights of a vertex's arcs to a table, by all threads of a group of G; returns this
// thread's share of the weight into the vertex's own community, which stays out of the table.
template <u32 G, class S, class A>
__device__ __forceinline__ A fill(const S& s, const typename S::Vertex& x, i64 low, i64 high,
                                  u32 rank, u32* keys, A* sums, u32 slots) {
  const u32 lane = rank % WARP;
  A own_weight = 0;
  // Each warp takes LINE arcs in a row, and reads whole lines: these count on the bus.
  for (i64 j = (low & -line_of(s.weights)) + rank / WARP * LINE; j < high; j += G * (LINE / WARP)) {
    u32 target[AHEAD], label[AHEAD];
    A weight[AHEAD];
    read_targets(s.targets, s.weights, j, low, high, target);
    read_weights(s.weights, j, low, high, weight);
#pragma unroll
    for (int q = 0; q < AHEAD; ++q) {
      const i64 k = j + q * WARP + lane;
      label[q] = k >= low && k < high ? s.label(x, target[q]) : EMPTY;
    }
#pragma unroll
    for (int q = 0; q < AHEAD; ++q) {
      if (label[q] == x.own)
        own_weight += weight[q];
      else if (label[q] != EMPTY)
        add_weight(keys, sums, slots, label[q], weight[q]);
    }
  }
  return own_weight;
}

// Returns the best community in this thread's slots, and leaves the slots empty.
template <u32 G, class S, class A>
__device__ __forceinline__ Choice drain(const S& s, const typename S::Vertex& x, u32 rank,
                                        u32* keys, A* sums, u32 slots) {
  Choice best = {0.0, EMPTY};
  for (u32 k = rank; k < slots; k += G) {
    u32 key = keys[k];
    if (key == EMPTY) continue;
    best = better(best, s.choice(x, key, sums[k]), s.seed);
    keys[k] = EMPTY;
    sums[k] = 0;
  }
  return best;
}

__device__ __forceinline__ Choice best_of_warp(Choice best, u32 seed) {
  for (int d = WARP / 2; d; d >>= 1) {
    Choice other = {__shfl_xor_sync(FULL, best.score, d),
                    __shfl_xor_sync(FULL, best.community, d)};
    best = better(best, other, seed);
  }
  return best;
}

// Returns this thread's share of a vertex's weight towards a label.
template <u32 G, class S, class A>
__device__ A weight_towards(const S& s, const typename S::Vertex& x, i64 low, i64 high, u32 rank,
                            u32 label) {
  A weight = 0;
  for (i64 j = low + rank; j < high; j += G)
    if (s.label(x, target_at(s.targets, s.weights, j)) == label) weight += weight_at(s.weights, j);
  return weight;
}

// Decides for vertices of middling degree, a warp each, in the warp's eighth of the table.
template <class S, class A>
__device__ void decide_warp(const S& s, u32 begin, u32 end, u32* counter, u32* keys,
                            A* sums, Tally& tally) {
  const u32 lane = threadIdx.x % WARP;
  if (begin == end) return;
  u32 at = claim_warp(counter, 1);
  while (begin + at < end) {
    u32 next = claim_warp(counter, 1);
    u32 i = begin + at, v = s.queue[i];
    const auto [low, high] = row_of(s.weights, s.offsets, v);
    typename S::Vertex x = s.vertex(v);
    u32 slots = slots_for(high - low);
    A own_weight = x.idle ? 0 : fill<WARP>(s, x, low, high, lane, keys, sums, slots);
    __syncwarp();
    Choice best = {0.0, EMPTY};
    if (!x.idle) best = best_of_warp(drain<WARP>(s, x, lane, keys, sums, slots), s.seed);
    own_weight = warp_sum(own_weight);
    A best_weight = 0;
    if constexpr (S::wants_best_weight)
      if (best.community != EMPTY)
        best_weight = warp_sum(weight_towards<WARP, S, A>(s, x, low, high, lane, best.community));
    if (lane == 0 && !x.idle) s.settle(i, x, best, own_weight, best_weight, tally);
    __syncwarp();
    at = next;
  }
}

// Decides for vertices of high degree, a block each, in the table that is handed in.
template <class S, class A>
__device__ void decide_block(const S& s, u32 begin, u32 end, u32* counter, u32* keys, A* sums,
                             Shared<A>& shared, Tally& tally) {
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) shared.claimed = atomicAdd(counter, 1);
    __syncthreads();
    u32 i = begin + shared.claimed;
    if (i >= end) break;
    u32 v = s.queue[i];
    const auto [low, high] = row_of(s.weights, s.offsets, v);
    typename S::Vertex x = s.vertex(v);
    if (x.idle) continue;
    u32 slots = slots_for((u32)(high - low));
    A own_weight = fill<THREADS>(s, x, low, high, threadIdx.x, keys, sums, slots);
    own_weight = block_sum(own_weight);
    Choice best = best_of_warp(drain<THREADS>(s, x, threadIdx.x, keys, sums, slots), s.seed);
    if (threadIdx.x % WARP == 0) shared.champions[threadIdx.x / WARP] = best;
    __syncthreads();
    best = shared.champions[0];
    for (u32 w = 1; w < WARPS; ++w) best = better(best, shared.champions[w], s.seed);
    A best_weight = 0;
    if constexpr (S::wants_best_weight)
      if (best.community != EMPTY)
        best_weight = block_sum(
            weight_towards<THREADS, S, A>(s, x, low, high, threadIdx.x, best.community));
    if (threadIdx.x == 0) s.settle(i, x, best, own_weight, best_weight, tally);
  }
  __syncthreads();
}
