// Summing more by community than a table in shared memory holds, without a table in global memory,
// where atomics at random addresses would dominate: blocks sum units of what there is in their
// tables and write the sums to memory by partition, a hash of the community; then a block sums a
// partition from all units. A partition that a table does not hold is summed in rounds, each of
// the communities whose hash goes on with certain bits.
//
// The slots in memory that belong together, for P partitions and U units: P * U entries of begin and
// end of each partition among the sums of each unit, partition by partition; then the sums, as many
// slots a unit as it may have communities, half of a block's table. An arc takes at most one and
// a half slots, or two where sums take 64 bits, but for units that are not full.
#pragma once
#include "grid.cuh"
#include "hash_table.cuh"

#define MAX_PARTITIONS 1024u
#define PARTITION_ARCS 1024  // arcs per partition, at least, where there are several
#ifndef PARTITION_PROBES      // fewer in tests
#define PARTITION_PROBES 128  // slots of a table that a sum tries before its partition is divided
#endif

// A partition that a block sums. `heads`, `sums`: first slots of the units' begins and ends, and of
// their sums. The hash of its communities ends in `bits` bits that all share, then come `width` bits
// that are `value` in this round, and `least` of them in every round.
struct Partition {
  u64 heads, sums;
  u32 units, bits, least, width, value, fits;
};

// What a block needs in shared memory, besides a table: counts of 16 bits, or a partition.
union PartitionWork {
  u32 counts[MAX_PARTITIONS / 2];
  Partition at_work;
};

// Returns the partitions for so many arcs: a power of two.
__device__ __forceinline__ u32 partitions_for(u64 arcs) {
  const u64 most = min(max(arcs / PARTITION_ARCS, (u64)1), (u64)MAX_PARTITIONS);
  return 1u << (31 - __clz((u32)most));
}

// Returns the slots in memory of so many partitions and units.
template <u32 SLOTS>
__device__ __forceinline__ u64 partitioned_slots(u32 partitions, u32 units) {
  return (u64)units * (SLOTS / 2 + partitions);
}

// Returns a community's partition. Independent of `first_slot`, so that a partition spreads over a
// table.
__device__ __forceinline__ u32 partition_of(u32 community, u32 partitions) {
  return mix32(community) & (partitions - 1);
}

// Writes the sums in the table of a block to memory, and empties the table: sums of unit `unit` of
// `units`, in the slots from `first` on. Whole blocks call. Inlined, it would take registers from
// all of the kernel.
template <u32 SLOTS, class A>
__device__ __noinline__ void write_sums(const GlobalSlots<A> memory, u64 first, u32 partitions,
                                        u32 unit, u32 units, u32* keys, A* sums,
                                        PartitionWork& work) {
  const u32 words = (partitions + 1) / 2;
  for (u32 word = threadIdx.x; word < words; word += blockDim.x) work.counts[word] = 0;
  __syncthreads();
  for (u32 j = threadIdx.x; j < SLOTS; j += blockDim.x) {
    if (keys[j] == EMPTY) continue;
    const u32 p = partition_of(keys[j], partitions);
    atomicAdd(work.counts + p / 2, 1u << p % 2 * 16);
  }
  __syncthreads();
  // Counts become the places where partitions begin.
  u32 before = 0;
  for (u32 from = 0; from < words; from += blockDim.x) {
    const u32 word = from + threadIdx.x, pair = word < words ? work.counts[word] : 0;
    u32 all;
    const u32 begin = before + block_scan((pair & 0xFFFF) + (pair >> 16), all);
    const u32 middle = begin + (pair & 0xFFFF), end = middle + (pair >> 16);
    before += all;
    if (word >= words) continue;
    work.counts[word] = begin | middle << 16;
    memory.put(first + (u64)(2 * word) * units + unit, begin, middle);
    if (2 * word + 1 < partitions)
      memory.put(first + (u64)(2 * word + 1) * units + unit, middle, end);
  }
  __syncthreads();
  const u64 out = first + (u64)partitions * units + (u64)unit * (SLOTS / 2);
  for (u32 j = threadIdx.x; j < SLOTS; j += blockDim.x) {
    const u32 key = keys[j];
    if (key == EMPTY) continue;
    const u32 p = partition_of(key, partitions), shift = p % 2 * 16;
    const u32 at = atomicAdd(work.counts + p / 2, 1u << shift) >> shift & 0xFFFF;
    memory.put(out + at, key, sums[j]);
    keys[j] = EMPTY;
    sums[j] = 0;
  }
  __syncthreads();
}

// Begins with partition p of what has slots from `first` on. Whole blocks call, and again after a
// barrier.
template <u32 SLOTS>
__device__ __forceinline__ void begin_partition(u64 first, u32 p, u32 partitions, u32 units,
                                                Partition& at) {
  if (threadIdx.x == 0) {
    at.heads = first + (u64)p * units;
    at.sums = first + (u64)partitions * units;
    at.units = units;
    at.bits = __popc(partitions - 1);
    // So many rounds that a table is half full if all communities are distinct.
    at.least = units <= partitions ? 0 : 32 - __clz((units - 1) / partitions);
    at.width = at.least;
    at.value = 0;
  }
  __syncthreads();
}

// Adds the sums of a round to the block's table, which is empty. A few lanes read a unit's share.
// Not inlined, for the same reason. Returns whether the table had room; if not, it is empty, and the next round is half of this one.
template <u32 SLOTS, class A>
__device__ __noinline__ bool gather_round(const GlobalSlots<A> memory, u32* keys, A* sums, Partition& at) {
  u32 groups = blockDim.x / 4;
  while (groups / 2 >= at.units) groups /= 2;
  const u32 lanes = blockDim.x / groups;
  u32 fails = 0;
  for (u32 unit = threadIdx.x / lanes; unit < at.units; unit += groups) {
    A end = 0;
    const u32 begin = memory.get(at.heads + unit, end);
    const u64 from = at.sums + (u64)unit * (SLOTS / 2);
    for (u32 j = begin + threadIdx.x % lanes; j < (u32)end && !fails; j += lanes) {
      A sum = 0;
      const u32 key = memory.get(from + j, sum);
      if ((mix32(key) >> at.bits & ((1u << at.width) - 1)) == at.value)
        fails = !add_nearby(keys, sums, SLOTS, PARTITION_PROBES, key, sum);
    }
  }
  if (block_sum(fails) == 0) return true;
  for (u32 j = threadIdx.x; j < SLOTS; j += blockDim.x) {
    keys[j] = EMPTY;
    sums[j] = 0;
  }
  if (threadIdx.x == 0) ++at.width;
  __syncthreads();
  return false;
}

// Goes on to the next round after one that had room; returns whether there is one. Whole blocks
// call: rounds are the leaves of a binary tree, from left to right.
__device__ __forceinline__ bool next_round(Partition& at) {
  __syncthreads();
  if (threadIdx.x == 0) {
    while (at.width > at.least && at.value >> (at.width - 1) & 1) at.value -= 1u << --at.width;
    if (at.width > at.least)
      at.value += 1u << (at.width - 1);
    else
      ++at.value;
  }
  __syncthreads();
  return at.value >> at.least == 0 || at.width > at.least;
}
