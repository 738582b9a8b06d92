// Changes of sums per community, added up in a block's table first: where many vertices join few
// sub-communities, atomics on the same addresses would queue.
#pragma once
#include "bins.cuh"
#include "hash_table.cuh"

// Entries of a queue per block from which on the table is worth emptying.
#ifndef CHANGES_A_BLOCK  // less in tests
#define CHANGES_A_BLOCK 1024
#endif
// Slots that a change tries before it is left to the caller: the table has room for the
// communities that occur often, since these also occur early.
#define CHANGE_PROBES 4

// Up to four sums per community, in a block's table, which is empty before and after.
template <class A>
struct Changes {
  static constexpr u32 slots = Table<A>::slots / 4;
  Shared<A>* block;

  // Adds to a community's sums; returns false where there is no room.
  template <u32 K>
  __device__ __forceinline__ bool add(u32 community, const A (&values)[K]) const {
    static_assert(K <= 4, "a quarter of the sums each");
    u32 slot = first_slot(community, slots);
    for (u32 probe = 0; probe < CHANGE_PROBES; ++probe) {
      u32 key = ((volatile u32*)block->keys)[slot];
      if (key == EMPTY) key = atomicCAS(block->keys + slot, EMPTY, community);
      if (key == EMPTY || key == community) {
        for (u32 k = 0; k < K; ++k) atomicAdd(block->sums + k * slots + slot, values[k]);
        return true;
      }
      slot = (slot + 1) & (slots - 1);
    }
    return false;
  }

  // Calls put(community, values) for each community, and empties the table. Whole blocks call.
  template <u32 K, class P>
  __device__ __forceinline__ void flush(P put) const {
    __syncthreads();
    for (u32 slot = threadIdx.x; slot < slots; slot += THREADS) {
      const u32 community = block->keys[slot];
      if (community == EMPTY) continue;
      A values[K];
      for (u32 k = 0; k < K; ++k) {
        values[k] = block->sums[k * slots + slot];
        block->sums[k * slots + slot] = 0;
      }
      block->keys[slot] = EMPTY;
      put(community, values);
    }
    __syncthreads();
  }
};
