// A hash table from community to sum of weights, in shared or global memory, filled by one group of
// threads: open addressing and linear probing. The order of insertion decides where a community
// lies in the table, never its sum.
#pragma once
#include "rules.cuh"

// Returns the slots of a table that stays at most half full: a power of two.
__device__ __forceinline__ u32 slots_for(u32 communities) {
  return communities <= 16 ? 32u : 2u << (32 - __clz(communities - 1));
}

// Returns the slot where a search begins. `slots` is a power of two.
__device__ __forceinline__ u32 first_slot(u32 community, u32 slots) {
  return (community * 0x9E3779B1u) >> (__clz(slots) + 1);
}

// Adds weight to a community's sum. The table must have room.
template <class A>
__device__ __forceinline__ void add_weight(u32* keys, A* sums, u32 slots, u32 community, A weight) {
  u32 slot = first_slot(community, slots);
  while (true) {
    u32 key = keys[slot];
    if (key == EMPTY) key = atomicCAS(keys + slot, EMPTY, community);
    if (key == EMPTY || key == community) break;
    slot = (slot + 1) & (slots - 1);
  }
  atomicAdd(sums + slot, weight);
}

// Adds weight unless the community is new and `limit` slots are in use; returns whether it did.
// `used` counts slots in use. `limit` must leave one slot for each thread that inserts at the same
// time.
template <class A>
__device__ __forceinline__ bool try_add_weight(u32* keys, A* sums, u32 slots, u32* used, u32 limit,
                                               u32 community, A weight) {
  u32 slot = first_slot(community, slots);
  while (true) {
    u32 key = ((volatile u32*)keys)[slot];
    if (key == EMPTY) {
      if (*(volatile u32*)used >= limit) return false;
      key = atomicCAS(keys + slot, EMPTY, community);
      if (key == EMPTY) {
        atomicAdd(used, 1u);
        break;
      }
    }
    if (key == community) break;
    slot = (slot + 1) & (slots - 1);
  }
  atomicAdd(sums + slot, weight);
  return true;
}
