// Moving vertices between communities: all sweeps of one level in one cooperative launch.
//
// A sweep: the active vertices are queued by sub-round and by degree; then, sub-round by
// sub-round, `decide` reads the frozen labels and totals and notes where each queued vertex
// goes, `apply` carries the moves out with integer atomics, `activate` wakes the neighbours
// left behind. Between steps the grid waits for itself; the host is not asked. No result
// depends on the order of a queue, of atomics, or of blocks.
//
// Who owns what: labels, totals and sizes change in `apply` only; goals[i] belongs to whoever
// decides for queue[i]; a byte of `next` is only ever set to 1 during a sweep.

#include "grid.cuh"
#include "rule.cuh"
#include "table.cuh"

#define THREADS 256
#define WARPS (THREADS / WARP)

// A block's shared table; each warp owns an eighth of it when warps work alone. Together with
// the sums it takes 32 KiB (24 KiB for 64-bit sums), which leaves room for four blocks.
template <class A>
struct Table {
  static constexpr u32 slots = sizeof(A) == 4 ? 4096 : 2048;
  static constexpr u32 block_max = slots / 2;
  static constexpr u32 warp_max = slots / 2 / WARPS;
};

// Degree classes, widest first, so that long work starts before short work fills the gaps.
enum Bin { GIANT, BLOCK, WARPED, TILE32, TILE16, TILE8, TILE4, BINS };

#define MAX_SUB_ROUNDS 32
#define MAX_KEYS (MAX_SUB_ROUNDS * BINS)

// What blocks share and the host reads back. Zeroed by the host before a launch.
struct Control {
  Barrier barrier;
  u32 counts[MAX_KEYS];
  u32 work[MAX_KEYS];
  i64 gain[2];
  u64 moves[2];
  u64 total_moves;
  u64 visited;
  u32 iterations;
};

template <class A>
__device__ __forceinline__ u32 bin_of(i64 degree) {
  if (degree > Table<A>::block_max) return GIANT;
  if (degree > Table<A>::warp_max) return BLOCK;
  if (degree > 32) return WARPED;
  if (degree > 16) return TILE32;
  if (degree > 8) return TILE16;
  return degree > 4 ? TILE8 : TILE4;
}

// Everything a step needs to know; one copy a thread, in registers or constant memory.
template <class W, class A>
struct Sweep {
  i64 n;
  const i64* offsets;
  const u32* targets;
  const W* weights;
  const A* degrees;
  u32* labels;
  A* totals;
  u32* sizes;
  u32* queue;
  u32* goals;
  double rate;
  double total;
  u32 seed;
};

// A thread's share of what the sweep gained.
struct Tally {
  i64 gain;
  u32 moves;
};

// Notes at queue position i where a vertex goes: the best choice if it beats staying and is
// not one half of two lone vertices swapping places. One thread calls it for each vertex.
template <class W, class A>
__device__ __forceinline__ void settle(const Sweep<W, A>& s, u32 i, u32 own, Choice best,
                                       double stay, Tally& tally) {
  u32 goal = EMPTY;
  if (best.community != EMPTY && best.score > stay &&
      !(best.community > own && s.sizes[own] == 1 && s.sizes[best.community] == 1)) {
    goal = best.community;
    double gain = __ddiv_rn(__dsub_rn(best.score, stay), s.total);
    tally.gain += __double2ll_rn(__dmul_rn(gain, 1125899906842624.0));
    ++tally.moves;
  }
  s.goals[i] = goal;
}

template <class W, class A>
__device__ __forceinline__ double score_of_staying(const Sweep<W, A>& s, u32 own, A weight,
                                                   A degree, double pull) {
  return score_of(weight, pull, s.totals[own] - degree);
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
template <int T, class W, class A>
__device__ void decide_tile(const Sweep<W, A>& s, u32 begin, u32 end, u32* counter, Tally& tally) {
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
      u32 v = valid ? s.queue[i] : 0, own = EMPTY, label = EMPTY;
      A weight = 0, degree = 0;
      if (valid) {
        i64 low = s.offsets[v], j = low + rank;
        bool has_arc = j < s.offsets[v + 1];
        own = s.labels[v];
        degree = s.degrees[v];
        if (has_arc) {
          label = s.labels[__ldcs(s.targets + j)];
          weight = weight_at(s.weights, j);
        }
      }
      u32 peers = __match_any_sync(FULL, label) & in_tile;
      if constexpr (__is_same(W, Unweighted))
        weight = __popc(peers);
      else
        weight = sum_of_peers<T>(weight, peers, tile);
      bool mine = label == own && label != EMPTY;
      u32 at_home = __ballot_sync(FULL, mine) & in_tile;
      A home = __shfl_sync(FULL, weight, at_home ? __ffs(at_home) - 1 : lane);
      if (!at_home) home = 0;
      double pull = __dmul_rn(s.rate, __ull2double_rn(degree));
      Choice best = {0.0, EMPTY};
      if (label != EMPTY && !mine && lane == __ffs(peers) - 1)
        best = {score_of(weight, pull, s.totals[label]), label};
#pragma unroll
      for (int d = T / 2; d; d >>= 1) {
        Choice other = {__shfl_xor_sync(FULL, best.score, d),
                        __shfl_xor_sync(FULL, best.community, d)};
        best = better(best, other, s.seed);
      }
      if (valid && rank == 0)
        settle(s, i, own, best, score_of_staying(s, own, home, degree, pull), tally);
    }
    at = next;
  }
}

// Adds the weights of a vertex's arcs to a table, by all threads of a group of G; returns this
// thread's share of the weight into the vertex's own community, which stays out of the table.
template <u32 G, class W, class A>
__device__ __forceinline__ A fill(const Sweep<W, A>& s, i64 low, i64 high, u32 own, u32 rank,
                                  u32* keys, A* sums, u32 slots) {
  constexpr int ahead = 4;
  A home = 0;
  for (i64 j = low + rank; j < high; j += ahead * G) {
    u32 label[ahead];
    A weight[ahead];
#pragma unroll
    for (int q = 0; q < ahead; ++q) {
      i64 k = j + q * (i64)G;
      label[q] = k < high ? s.labels[__ldcs(s.targets + k)] : EMPTY;
      weight[q] = k < high ? weight_at(s.weights, k) : 0;
    }
#pragma unroll
    for (int q = 0; q < ahead; ++q) {
      if (label[q] == own)
        home += weight[q];
      else if (label[q] != EMPTY)
        add_weight(keys, sums, slots, label[q], weight[q]);
    }
  }
  return home;
}

// Returns the best community in this thread's slots, and leaves the slots empty.
template <u32 G, class W, class A>
__device__ __forceinline__ Choice drain(const Sweep<W, A>& s, double pull, u32 rank, u32* keys,
                                        A* sums, u32 slots) {
  Choice best = {0.0, EMPTY};
  for (u32 k = rank; k < slots; k += G) {
    u32 key = keys[k];
    if (key == EMPTY) continue;
    best = better(best, {score_of(sums[k], pull, s.totals[key]), key}, s.seed);
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

// Decides for vertices of middling degree, a warp each, in the warp's eighth of the table.
template <class W, class A>
__device__ void decide_warp(const Sweep<W, A>& s, u32 begin, u32 end, u32* counter, u32* keys,
                            A* sums, Tally& tally) {
  const u32 lane = threadIdx.x % WARP;
  if (begin == end) return;
  u32 at = claim_warp(counter, 1);
  while (begin + at < end) {
    u32 next = claim_warp(counter, 1);
    u32 i = begin + at, v = s.queue[i], own = s.labels[v];
    i64 low = s.offsets[v], high = s.offsets[v + 1];
    A degree = s.degrees[v];
    u32 slots = slots_for(high - low);
    double pull = __dmul_rn(s.rate, __ull2double_rn(degree));
    A home = fill<WARP>(s, low, high, own, lane, keys, sums, slots);
    __syncwarp();
    Choice best = best_of_warp(drain<WARP>(s, pull, lane, keys, sums, slots), s.seed);
    home = warp_sum(home);
    if (lane == 0) settle(s, i, own, best, score_of_staying(s, own, home, degree, pull), tally);
    __syncwarp();
    at = next;
  }
}

// Decides for vertices of high degree, a block each, in the table that is handed in.
template <class W, class A>
__device__ void decide_block(const Sweep<W, A>& s, u32 begin, u32 end, u32* counter, u32* keys,
                             A* sums, Tally& tally) {
  __shared__ u32 claimed;
  __shared__ Choice champions[WARPS];
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) claimed = atomicAdd(counter, 1);
    __syncthreads();
    u32 i = begin + claimed;
    if (i >= end) break;
    u32 v = s.queue[i], own = s.labels[v];
    i64 low = s.offsets[v], high = s.offsets[v + 1];
    A degree = s.degrees[v];
    u32 slots = slots_for((u32)(high - low < s.n ? high - low : s.n));
    double pull = __dmul_rn(s.rate, __ull2double_rn(degree));
    A home = fill<THREADS>(s, low, high, own, threadIdx.x, keys, sums, slots);
    home = block_sum(home);
    Choice best = best_of_warp(drain<THREADS>(s, pull, threadIdx.x, keys, sums, slots), s.seed);
    if (threadIdx.x % WARP == 0) champions[threadIdx.x / WARP] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (u32 w = 1; w < WARPS; ++w) best = better(best, champions[w], s.seed);
      settle(s, i, own, best, score_of_staying(s, own, home, degree, pull), tally);
    }
  }
  __syncthreads();
}

// Wakes u, unless it is queued in this sweep for a sub-round still to come.
__device__ __forceinline__ void wake(u32 u, u32 sub_round, u32 sub_rounds, u32 salt,
                                     const u8* awake, u8* next) {
  if (next[u] || (awake[u] && bucket(u, salt, sub_rounds) > sub_round)) return;
  next[u] = 1;
}

// Wakes the neighbours of the moved vertices in queue[begin:end) that are outside the mover's
// new community: a group of G threads a vertex, `groups` of them in the grid.
template <u32 G, class W, class A>
__device__ void activate(const Sweep<W, A>& s, u32 begin, u32 end, u32 sub_round, u32 sub_rounds,
                         u32 salt, const u8* awake, u8* next) {
  const u32 groups = gridDim.x * (THREADS / G), rank = threadIdx.x % G;
  for (u32 i = begin + blockIdx.x * (THREADS / G) + threadIdx.x / G; i < end; i += groups) {
    u32 goal = s.goals[i];
    if (goal == EMPTY) continue;
    u32 v = s.queue[i];
    i64 high = s.offsets[v + 1];
    for (i64 j = s.offsets[v] + rank; j < high; j += G) {
      u32 u = __ldcs(s.targets + j);
      if (s.labels[u] != goal) wake(u, sub_round, sub_rounds, salt, awake, next);
    }
  }
}

// The kernel. `start` is null when every vertex begins alone. `giant_keys` and `giant_sums`
// hold one table of `giant_slots` for each of the first `giant_blocks` blocks, keys EMPTY and
// sums 0. A vertex of degree 0 is never queued; it stays where it starts.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 4)
    move(i64 n, const i64* offsets, const u32* targets, const W* weights, const A* degrees,
         const u32* start, u32* labels, A* totals, u32* sizes, u32* queue, u32* goals, u8* awake,
         u8* next, u32* giant_keys, A* giant_sums, u32 giant_slots, u32 giant_blocks,
         Control* control, double rate, double total, u32 seed, u32 seed_salt, u32 cycle,
         u32 sub_rounds, u32 max_iterations, i64 tolerance) {
  __shared__ u32 keys[Table<A>::slots];
  __shared__ A sums[Table<A>::slots];
  __shared__ u32 starts[MAX_KEYS + 1];
  __shared__ u32 local[MAX_KEYS];
  __shared__ u32 base[MAX_KEYS];

  Barrier* barrier = &control->barrier;
  const Sweep<W, A> s = {n,      offsets, targets, weights, degrees, labels, totals,
                         sizes,  queue,   goals,   rate,    total,   seed};
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  const u32 n_keys = sub_rounds * BINS;
  const u32 warp = threadIdx.x / WARP;
  u32* warp_keys = keys + warp * (Table<A>::slots / WARPS);
  A* warp_sums = sums + warp * (Table<A>::slots / WARPS);

  for (u32 k = threadIdx.x; k < Table<A>::slots; k += THREADS) {
    keys[k] = EMPTY;
    sums[k] = 0;
  }
  for (i64 v = thread; v < n; v += threads) {
    labels[v] = start ? start[v] : v;
    totals[v] = start ? 0 : degrees[v];
    sizes[v] = start ? 0 : 1;
    awake[v] = 1;
    next[v] = 0;
  }
  grid_sync(barrier);
  if (start) {
    for (i64 v = thread; v < n; v += threads) {
      atomicAdd(totals + start[v], degrees[v]);
      atomicAdd(sizes + start[v], 1u);
    }
    grid_sync(barrier);
  }

  for (u32 iteration = 0; iteration < max_iterations; ++iteration) {
    const u32 salt = mix32((cycle << 16) + iteration + seed_salt);
    const u32 slot = iteration & 1;
    if (blockIdx.x == 0) {
      for (u32 k = threadIdx.x; k < n_keys; k += THREADS) control->work[k] = 0;
      if (threadIdx.x == 0) control->gain[slot] = 0, control->moves[slot] = 0;
    }

    // Queue the awake by sub-round and degree; each block fills stretches it reserves.
    const i64 begin = stretch_begin(n), end = stretch_end(n);
    u64 arcs = 0;
    for (u32 k = threadIdx.x; k < n_keys; k += THREADS) local[k] = 0;
    __syncthreads();
    for (i64 v = begin + threadIdx.x; v < end; v += THREADS) {
      if (iteration) next[v] = 0;
      if (!awake[v]) continue;
      i64 degree = offsets[v + 1] - offsets[v];
      if (!degree) continue;
      arcs += degree;
      atomicAdd(local + bucket(v, salt, sub_rounds) * BINS + bin_of<A>(degree), 1u);
    }
    arcs = block_sum(arcs);
    for (u32 k = threadIdx.x; k < n_keys; k += THREADS)
      base[k] = local[k] ? atomicAdd(control->counts + k, local[k]) : 0;
    if (threadIdx.x == 0 && arcs) atomicAdd(&control->visited, arcs);
    grid_sync(barrier);
    for (u32 k = threadIdx.x; k < n_keys; k += THREADS) {
      starts[k + 1] = ((volatile u32*)control->counts)[k];
      local[k] = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      starts[0] = 0;
      for (u32 k = 0; k < n_keys; ++k) starts[k + 1] += starts[k];
    }
    __syncthreads();
    for (i64 v = begin + threadIdx.x; v < end; v += THREADS) {
      if (!awake[v]) continue;
      i64 degree = offsets[v + 1] - offsets[v];
      if (!degree) continue;
      u32 k = bucket(v, salt, sub_rounds) * BINS + bin_of<A>(degree);
      queue[starts[k] + base[k] + atomicAdd(local + k, 1u)] = v;
    }
    grid_sync(barrier);
    if (blockIdx.x == 0)
      for (u32 k = threadIdx.x; k < n_keys; k += THREADS) control->counts[k] = 0;

    Tally tally = {0, 0};
    u32 moved = sub_rounds;
    for (u32 r = 0; r <= sub_rounds; ++r) {
      const u32* from = starts + r * BINS;
      if (r < sub_rounds && from[0] == from[BINS]) continue;
      // Waking after the last sub-round may overlap with deciding in this one: it writes
      // nothing that deciding reads.
      if (moved < sub_rounds) {
        const u32* was = starts + moved * BINS;
        activate<THREADS>(s, was[GIANT], was[WARPED], moved, sub_rounds, salt, awake, next);
        activate<WARP>(s, was[WARPED], was[TILE16], moved, sub_rounds, salt, awake, next);
        activate<8>(s, was[TILE16], was[BINS], moved, sub_rounds, salt, awake, next);
      }
      if (r == sub_rounds) break;
      u32* work = control->work + r * BINS;
      if (from[GIANT] < from[BLOCK] && blockIdx.x < giant_blocks)
        decide_block(s, from[GIANT], from[BLOCK], work + GIANT,
                     giant_keys + (i64)blockIdx.x * giant_slots,
                     giant_sums + (i64)blockIdx.x * giant_slots, tally);
      if (from[BLOCK] < from[WARPED])
        decide_block(s, from[BLOCK], from[WARPED], work + BLOCK, keys, sums, tally);
      decide_warp(s, from[WARPED], from[TILE32], work + WARPED, warp_keys, warp_sums, tally);
      decide_tile<32>(s, from[TILE32], from[TILE16], work + TILE32, tally);
      decide_tile<16>(s, from[TILE16], from[TILE8], work + TILE16, tally);
      decide_tile<8>(s, from[TILE8], from[TILE4], work + TILE8, tally);
      decide_tile<4>(s, from[TILE4], from[BINS], work + TILE4, tally);
      grid_sync(barrier);
      for (i64 i = from[0] + thread; i < from[BINS]; i += threads) {
        u32 goal = goals[i];
        if (goal == EMPTY) continue;
        u32 v = queue[i], own = labels[v];
        A degree = degrees[v];
        labels[v] = goal;
        atomicAdd(totals + own, (A)0 - degree);
        atomicAdd(totals + goal, degree);
        atomicAdd(sizes + own, ~0u);
        atomicAdd(sizes + goal, 1u);
      }
      grid_sync(barrier);
      moved = r;
    }

    i64 gain = block_sum(tally.gain);
    u32 moves = block_sum(tally.moves);
    if (threadIdx.x == 0 && moves) {
      atomicAdd((u64*)&control->gain[slot], (u64)gain);
      atomicAdd(&control->moves[slot], (u64)moves);
    }
    grid_sync(barrier);
    gain = *(volatile i64*)&control->gain[slot];
    u64 all_moves = *(volatile u64*)&control->moves[slot];
    if (thread == 0) {
      control->iterations = iteration + 1;
      control->total_moves += all_moves;
    }
    u8* swap = awake;
    awake = next;
    next = swap;
    if (all_moves == 0 || gain < tolerance) break;
  }
}

// Writes the largest number of arcs of a vertex to *widest, which is 0 before.
template <class W, class A>
__global__ void widest_row(i64 n, const i64* offsets, u64* widest) {
  u64 most = 0;
  for (i64 v = blockIdx.x * (i64)blockDim.x + threadIdx.x; v < n;
       v += gridDim.x * (i64)blockDim.x) {
    u64 degree = offsets[v + 1] - offsets[v];
    most = degree > most ? degree : most;
  }
  for (int d = WARP / 2; d; d >>= 1) {
    u64 other = __shfl_xor_sync(FULL, most, d);
    most = other > most ? other : most;
  }
  if (threadIdx.x % WARP == 0 && most) atomicMax(widest, most);
}
