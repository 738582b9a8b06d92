// Weights of one byte for the arcs of a coarse level, of which few weigh much: see narrow.py.
//
// A byte of 255 stands for that much or more. How much is in a hash table that lies in front of
// the bytes, found by the arc's index: entries (arc, weight), 16 bytes for their number, bytes.
#pragma once

struct Narrow {
  u8 byte;
};

#define WIDE 255

struct WideWeight {
  u64 arc;
  u64 weight;
};

__device__ __forceinline__ u64 wide_slots(const Narrow* weights) {
  return ((const u64*)weights)[-1];
}

__device__ __forceinline__ WideWeight* wide_table(const Narrow* weights, u64 slots) {
  return (WideWeight*)weights - 1 - slots;
}

// Returns where a search for an arc begins.
__device__ __forceinline__ u64 wide_slot(u64 arc, u64 slots) {
  return __umul64hi((arc + 1) * 0x9E3779B97F4A7C15ull, slots);
}

// Weight of arc j in two steps, so that loads can be under way together: what is read at once,
// and what that stands for. With weights that are not narrow both are the weight.
template <class W>
__device__ __forceinline__ auto first_weight(const W* weights, i64 j) {
  return weight_at(weights, j);
}

template <class W, class T>
__device__ __forceinline__ T whole_weight(const W*, i64, T first) {
  return first;
}

__device__ __forceinline__ u32 first_weight(const Narrow* weights, i64 j) {
  return __ldcs((const u8*)weights + j);
}

// Returns the weight of a heavy arc. For Blackwell in data centres a function of its own: built in,
// it leaves the assembler of CUDA 13.5 without registers for predicates.
#if __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200
__device__ __noinline__
#else
__device__ __forceinline__
#endif
    u64
    heavy_weight(const Narrow* weights, i64 j) {
  const u64 slots = wide_slots(weights);
  const WideWeight* table = wide_table(weights, slots);
  u64 slot = wide_slot(j, slots);
  while (table[slot].arc != (u64)j) slot = slot + 1 == slots ? 0 : slot + 1;
  return table[slot].weight;
}

__device__ __forceinline__ u64 whole_weight(const Narrow* weights, i64 j, u32 first) {
  return first != WIDE ? first : heavy_weight(weights, j);
}

// Weight of arc j.
__device__ __forceinline__ u64 weight_at(const Narrow* weights, i64 j) {
  return whole_weight(weights, j, first_weight(weights, j));
}

// Sets the weight of arc j, once. The table must have room.
__device__ __forceinline__ void put_weight(Narrow* weights, i64 j, u64 weight) {
  ((u8*)weights)[j] = weight < WIDE ? weight : WIDE;
  if (weight < WIDE) return;
  const u64 slots = wide_slots(weights);
  WideWeight* table = wide_table(weights, slots);
  u64 slot = wide_slot(j, slots);
  while (atomicCAS(&table[slot].arc, ~0ull, (u64)j) != ~0ull)
    slot = slot + 1 == slots ? 0 : slot + 1;
  table[slot].weight = weight;
}
