// Degree bins, and the memory that the kernels of moving and refinement share.
//
// A vertex's bin says how many threads sum its arcs by community, and where: the more arcs, the
// more threads. Bins are queued hubs first, so that long work starts before short work fills the
// gaps that it leaves.
#pragma once
#include "partitions.cuh"

// A block's hash table in shared memory; each warp owns an eighth of it when warps work alone.
// With the sums it takes 32 KiB (24 KiB for sums of 64 bits), so that five blocks fit a
// multiprocessor.
template <class A>
struct Table {
  static constexpr u32 slots = sizeof(A) == 4 ? 4096 : 2048;
  static constexpr u32 block_max = slots / 2;         // most arcs of a vertex of bin BLOCK
  static constexpr u32 warp_max = slots / 2 / WARPS;  // most arcs of a vertex of bin PER_WARP
};

// Which group of threads decides for a vertex: all blocks, a block, a warp, or a tile of lanes.
enum Bin { HUB, BLOCK, PER_WARP, TILE32, TILE16, TILE8, TILE4, BINS };

template <class A>
__device__ __forceinline__ u32 bin_of(i64 degree) {
  if (degree > Table<A>::block_max) return HUB;
  if (degree > Table<A>::warp_max) return BLOCK;
  if (degree > 32) return PER_WARP;
  if (degree > 16) return TILE32;
  if (degree > 8) return TILE16;
  return degree > 4 ? TILE8 : TILE4;
}

#define MAX_SUB_ROUNDS 32
#define MAX_KEYS (MAX_SUB_ROUNDS * BINS)  // a key: sub-round * BINS + bin
#define MAX_SWEEPS 128

// Counters that blocks share and the host reads back. The host zeroes them before a launch.
struct Control {
  Barrier barrier;
  u32 counts[MAX_KEYS];  // vertices queued per key; 0 between calls of enqueue
  u32 work[MAX_KEYS];    // items claimed from a counter per key
  i64 gain[2];           // of this sweep and the one before, by the sweep's parity
  u64 moves[2];
  u64 total_moves;
  i64 total_gain;
  u64 visited;  // arcs of all vertices that were queued
  u64 iterations;
  u64 batch_end;          // end, in the queue, of the hubs that have tables
  u32 round_begin, tail;  // in vertex blocks: begin and end of the sub-round's queue
  u64 ended[MAX_SWEEPS];  // end of each sweep, in nanoseconds
  u64 moved[MAX_SWEEPS];  // vertices that moved in each sweep
  u64 read_again;         // arcs of vertices that moved, where their neighbours were activated
};
static_assert(sizeof(Control) == 3936, "mirrored by CONTROL in gpu/move/arguments.py");

__device__ __forceinline__ u64 nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// A thread's share of what a sweep gained, in units of 2^-GAIN_BITS.
struct Tally {
  i64 gain;
  u32 moves;
};

// A block's shared memory.
template <class A>
struct Shared {
  u32 keys[Table<A>::slots];
  A sums[Table<A>::slots];
  u32 starts[MAX_KEYS + 1];  // where each key begins in the queue
  union {
    struct {
      u32 local[MAX_KEYS];
      u32 base[MAX_KEYS];
      u32 unit_at[THREADS];  // units of arcs before each of some vertices
    };
    PartitionWork partitions;  // of hubs, while these are decided
  };
  u32 claimed;
  Choice best[WARPS];
};

template <class A>
__device__ void clear_table(Shared<A>& shared) {
  for (u32 k = threadIdx.x; k < Table<A>::slots; k += THREADS) {
    shared.keys[k] = EMPTY;
    shared.sums[k] = 0;
  }
}

// Returns how many items the threads of the grid visit together, a multiple of a warp.
__device__ __forceinline__ i64 whole_warps(i64 items) { return (items + WARP - 1) & ~31ll; }

// Calls put(index, sum, lanes) for the indices other than EMPTY of the lanes of a full warp, with the
// sum of the values of lanes that have one, and how many these are: where many lanes add to one place,
// that costs one atomic per warp. An index that few lanes have may come more than once.
template <class T, class P>
__device__ __forceinline__ void put_together(u32 index, T value, P put) {
  const u32 lane = threadIdx.x % WARP, next_to = __shfl_down_sync(FULL, index, 1);
  // Finding lanes with the same index takes long. Where there are many of them, some are neighbours.
  if (!__any_sync(FULL, next_to == index && index != EMPTY && lane < WARP - 1)) {
    if (index != EMPTY) put(index, value, 1);
    return;
  }
  const u32 peers = __match_any_sync(FULL, index);
  u32 above = peers & (0xFFFFFFFEu << lane), rank = __popc(peers & ((1u << lane) - 1));
  while (__any_sync(FULL, above)) {
    u32 next = __ffs(above);
    T other = __shfl_sync(FULL, value, next ? next - 1 : lane);
    if (next) value += other;
    above &= __ballot_sync(FULL, !(rank & 1));
    rank >>= 1;
  }
  if (index != EMPTY && lane == __ffs(peers) - 1) put(index, value, __popc(peers));
}

// Adds value to array[index] for every lane of a full warp; index EMPTY adds nothing.
template <class T>
__device__ __forceinline__ void add_together(T* array, u32 index, T value) {
  put_together(index, value, [=](u32 i, T sum, u32) { reduce_add(array + i, sum); });
}
