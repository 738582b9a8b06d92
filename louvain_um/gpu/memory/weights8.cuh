// Weights of 8 bits for the arcs of a coarse level, few of which are heavy: the twin of
// weights8.py.
//
// A byte of HEAVY means: look the arc up. Heavy arcs are in a hash table in front of the bytes, in
// the same array: entries of (arc, weight), 16 bytes for their number, then the bytes.
#pragma once

struct Weights8 {
  u8 byte;
};

// The same beside targets of 24 bits (targets24.cuh).
struct Weights8Targets24 : Weights8 {};

// Whether weights take a byte.
template <class W>
constexpr bool byte_weights = same<W, Weights8> || same<W, Weights8Targets24>;

#define HEAVY 255

struct HeavyWeight {
  u64 arc;
  u64 weight;
};

__device__ __forceinline__ u64 heavy_slots(const Weights8* weights) {
  return ((const u64*)weights)[-1];
}

__device__ __forceinline__ HeavyWeight* heavy_table(const Weights8* weights, u64 slots) {
  return (HeavyWeight*)weights - 1 - slots;
}

// Returns the slot where a search for an arc begins.
__device__ __forceinline__ u64 heavy_slot(u64 arc, u64 slots) {
  return __umul64hi((arc + 1) * 0x9E3779B97F4A7C15ull, slots);
}

// Weight of arc j in two steps, so that loads overlap: first_weight loads, whole_weight looks up
// what a byte of HEAVY stands for. With other weight types both are the weight.
template <class W>
__device__ __forceinline__ auto first_weight(const W* weights, i64 j) {
  return weight_at(weights, j);
}

template <class W, class T>
__device__ __forceinline__ T whole_weight(const W*, i64, T first) {
  return first;
}

__device__ __forceinline__ u32 first_weight(const Weights8* weights, i64 j) {
  return __ldcs((const u8*)weights + j);
}

// Returns the weight of a heavy arc. Not inlined for compute capability 10.x: there, inlining makes
// the assembler of CUDA 13.5 run out of predicate registers.
#if FEW_PREDICATES
__device__ __noinline__
#else
__device__ __forceinline__
#endif
    u64 heavy_weight(const Weights8* weights, i64 j) {
  const u64 slots = heavy_slots(weights);
  const HeavyWeight* table = heavy_table(weights, slots);
  u64 slot = heavy_slot(j, slots);
  while (table[slot].arc != (u64)j) slot = slot + 1 == slots ? 0 : slot + 1;
  return table[slot].weight;
}

__device__ __forceinline__ u64 whole_weight(const Weights8* weights, i64 j, u32 first) {
  return first != HEAVY ? first : heavy_weight(weights, j);
}

// Weight of arc j.
__device__ __forceinline__ u64 weight_at(const Weights8* weights, i64 j) {
  return whole_weight(weights, j, first_weight(weights, j));
}

// Sets the weight of arc j; called once per arc. The table must have room.
__device__ __forceinline__ void put_weight(Weights8* weights, i64 j, u64 weight) {
  ((u8*)weights)[j] = weight < HEAVY ? weight : HEAVY;
  if (weight < HEAVY) return;
  const u64 slots = heavy_slots(weights);
  HeavyWeight* table = heavy_table(weights, slots);
  u64 slot = heavy_slot(j, slots);
  while (atomicCAS(&table[slot].arc, ~0ull, (u64)j) != ~0ull)
    slot = slot + 1 == slots ? 0 : slot + 1;
  table[slot].weight = weight;
}
