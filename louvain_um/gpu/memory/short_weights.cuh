// Weights of 8 or 16 bits for the arcs of a coarse level, few of which are heavy: the counterpart of
// packed.py.
//
// All bits set mean: look the arc up. Heavy arcs are in a hash table in front of the weights, in
// the same array: entries of (arc, weight), 16 bytes for their number, then the weights.
#pragma once

struct Weights8 {
  u8 bits;
};

struct Weights16 {
  unsigned short bits;
};

// Weights of 8 bits with targets of 24 bits (targets24.cuh).
struct Weights8Targets24 : Weights8 {};

template <class W>
constexpr bool short_weights =
    same<W, Weights8> || same<W, Weights16> || same<W, Weights8Targets24>;

// The bits that stand for a heavy arc, of weights of so many bytes.
__device__ constexpr u32 heavy_bits(u32 bytes) { return (1u << 8 * bytes) - 1; }

struct HeavyWeight {
  u64 arc;
  u64 weight;
};

__device__ __forceinline__ u64 heavy_slots(const void* weights) {
  return ((const u64*)weights)[-1];
}

__device__ __forceinline__ HeavyWeight* heavy_table(const void* weights, u64 slots) {
  return (HeavyWeight*)weights - 1 - slots;
}

// Returns the slot where a search for an arc begins.
__device__ __forceinline__ u64 heavy_slot(u64 arc, u64 slots) {
  return __umul64hi((arc + 1) * 0x9E3779B97F4A7C15ull, slots);
}

// Returns the weight of a heavy arc. Not inlined for compute capability 10.x: there, inlining makes
// the assembler of CUDA 13.5 run out of predicate registers.
#if FEW_PREDICATES
__device__ __noinline__
#else
__device__ __forceinline__
#endif
    u64 heavy_weight(const void* weights, i64 j) {
  const u64 slots = heavy_slots(weights);
  const HeavyWeight* table = heavy_table(weights, slots);
  u64 slot = heavy_slot(j, slots);
  while (table[slot].arc != (u64)j) slot = slot + 1 == slots ? 0 : slot + 1;
  return table[slot].weight;
}

// Returns the weight of arc j, given its bits.
template <class W>
__device__ __forceinline__ u64 whole_weight(const W* weights, i64 j, u32 bits) {
  return bits != heavy_bits(sizeof(W)) ? bits : heavy_weight(weights, j);
}

// Weight of arc j.
__device__ __forceinline__ u64 weight_at(const Weights8* weights, i64 j) {
  return whole_weight(weights, j, __ldcs(&weights[j].bits));
}
__device__ __forceinline__ u64 weight_at(const Weights16* weights, i64 j) {
  return whole_weight(weights, j, __ldcs(&weights[j].bits));
}

// Sets the weight of arc j, in so many bytes; called once per arc. The table must have room.
__device__ __forceinline__ void put_short_weight(void* weights, u32 bytes, i64 j, u64 weight) {
  const u64 heavy = heavy_bits(bytes);
  const u32 bits = min(weight, heavy);
  if (bytes == 1)
    ((u8*)weights)[j] = bits;
  else
    ((unsigned short*)weights)[j] = bits;
  if (weight < heavy) return;
  const u64 slots = heavy_slots(weights);
  HeavyWeight* table = heavy_table(weights, slots);
  u64 slot = heavy_slot(j, slots);
  while (atomicCAS(&table[slot].arc, ~0ull, (u64)j) != ~0ull)
    slot = slot + 1 == slots ? 0 : slot + 1;
  table[slot].weight = weight;
}
