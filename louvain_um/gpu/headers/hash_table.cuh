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

// Adds weight unless the first `probes` slots are others' communities; returns whether it did.
template <class A>
__device__ __forceinline__ bool add_nearby(u32* keys, A* sums, u32 slots, u32 probes, u32 community,
                                           A weight) {
  u32 slot = first_slot(community, slots);
  for (u32 probe = 0; probe < probes; ++probe) {
    u32 key = keys[slot];
    if (key == EMPTY) key = atomicCAS(keys + slot, EMPTY, community);
    if (key == EMPTY || key == community) {
      atomicAdd(sums + slot, weight);
      return true;
    }
    slot = (slot + 1) & (slots - 1);
  }
  return false;
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

// The slots of a table: keys and their sums side by side.
template <class A>
struct Slots {
  u32* keys;
  A* sums;

  // Returns the community in a slot, EMPTY for none, and sets its sum.
  __device__ __forceinline__ u32 get(u64 k, A& sum) const {
    const u32 key = keys[k];
    if (key != EMPTY) sum = sums[k];
    return key;
  }
  __device__ __forceinline__ void clear(u64 k) const {
    keys[k] = EMPTY;
    sums[k] = 0;
  }
};

// Slots of tables in global memory. Where a sum takes 32 bits, a slot is one word of 64, since each
// access costs a transaction: the first half of the slots are in the memory of `keys`, the others
// in that of `sums`. `count` is even.
template <class A>
struct GlobalSlots : Slots<A> {
  __device__ __forceinline__ GlobalSlots(u32* keys, A* sums, u64) : Slots<A>{keys, sums} {}

  __device__ __forceinline__ void put(u64 k, u32 key, A sum) const {
    this->keys[k] = key;
    this->sums[k] = sum;
  }

  // Adds weight to a community's sum in the table of `slots` slots from `first` on, which has room.
  __device__ __forceinline__ void add(u64 first, u32 slots, u32 community, A weight) const {
    add_weight(this->keys + first, this->sums + first, slots, community, weight);
  }
};

template <>
struct GlobalSlots<u32> {
  u64 *lower, *upper;
  u64 half;
  static constexpr u64 UNUSED = ~0ull;  // a community is never EMPTY

  __device__ __forceinline__ GlobalSlots(u32* keys, u32* sums, u64 count)
      : lower((u64*)keys), upper((u64*)sums), half(count / 2) {}

  __device__ __forceinline__ u64* at(u64 k) const { return k < half ? lower + k : upper + (k - half); }

  __device__ __forceinline__ u32 get(u64 k, u32& sum) const {
    const u64 pair = *at(k);
    sum = (u32)pair;
    return pair >> 32;
  }
  __device__ __forceinline__ void put(u64 k, u32 key, u32 sum) const {
    *at(k) = (u64)key << 32 | sum;
  }
  __device__ __forceinline__ void clear(u64 k) const { *at(k) = UNUSED; }

  __device__ __forceinline__ void add(u64 first, u32 slots, u32 community, u32 weight) const {
    u32 slot = first_slot(community, slots);
    while (true) {
      u64* const there = at(first + slot);
      u64 pair = *(volatile u64*)there;
      if (pair == UNUSED) {
        pair = atomicCAS(there, UNUSED, (u64)community << 32 | weight);
        if (pair == UNUSED) return;
      }
      if (u32(pair >> 32) == community) {
        reduce_add((u32*)there, weight);  // the low half
        return;
      }
      slot = (slot + 1) & (slots - 1);
    }
  }
};
