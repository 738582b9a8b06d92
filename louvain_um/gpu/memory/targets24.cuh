// Inputs in fewer bytes, where no vertex has a loop: offsets of 32 bits, or targets of 24 bits
// instead of 32, in rows sorted by length, the twin of targets24.py. Where every arc weighs 1, there
// is no array of degrees: a vertex' degree is the length of its row.
//
// With targets of 24 bits, arc j's target is in bytes 3j..3j + 2 of the array, which has one spare
// word at its end. Entry v of an input's offsets then holds where v's row begins and, from bit
// START_BITS on, how many arcs it has. A coarse level, with weights of a byte, has plain offsets and
// degrees.
#pragma once
#include "grid.cuh"

// Weight type of graphs whose arcs all weigh 1 and have targets of 24 bits.
struct Targets24 {};

// The same with weights of 16 bits.
struct Weights16 {};

// Weight type of graphs whose arcs all weigh 1 and have offsets of 32 bits, and targets as they are.
struct Offsets32 {};

__device__ __forceinline__ u32 weight_at(const Targets24*, i64) { return 1; }
__device__ __forceinline__ u32 weight_at(const Offsets32*, i64) { return 1; }
__device__ __forceinline__ u32 weight_at(const Weights16* weights, i64 j) {
  return __ldcs((const unsigned short*)weights + j);
}

// Whether offsets hold the lengths of rows, which are sorted by these.
template <class W>
constexpr bool lengths_in_offsets = same<W, Targets24> || same<W, Weights16>;

// Whether targets take 24 bits.
template <class W>
constexpr bool short_targets = lengths_in_offsets<W> || same<W, Weights8Targets24>;

// Whether every arc weighs 1.
template <class W>
constexpr bool unweighted = same<W, Unweighted> || same<W, Targets24> || same<W, Offsets32>;

#define TARGET_MASK 0xFFFFFFu
#define START_BITS 40

// The arcs low..high - 1 of a vertex.
struct Row {
  i64 low, high;
  __device__ __forceinline__ i64 arcs() const { return high - low; }
};

template <class W>
__device__ __forceinline__ Row row_of(const W*, const i64* offsets, i64 v) {
  if constexpr (lengths_in_offsets<W>) {
    const u64 entry = offsets[v];
    const i64 low = entry & ((1ull << START_BITS) - 1);
    return {low, low + (i64)(entry >> START_BITS)};
  } else {
    return {offsets[v], offsets[v + 1]};
  }
}
__device__ __forceinline__ Row row_of(const Offsets32*, const i64* offsets, i64 v) {
  const u32* begins = (const u32*)offsets;
  return {begins[v], begins[v + 1]};
}

// Degree of vertex v.
template <class W, class A>
__device__ __forceinline__ A degree_of(const W*, const A* degrees, const i64*, i64 v) {
  return degrees[v];
}
template <class A>
__device__ __forceinline__ A degree_of(const Targets24* weights, const A*, const i64* offsets,
                                       i64 v) {
  return row_of(weights, offsets, v).arcs();
}
template <class A>
__device__ __forceinline__ A degree_of(const Offsets32* weights, const A*, const i64* offsets,
                                       i64 v) {
  return row_of(weights, offsets, v).arcs();
}

// Returns the target that begins in byte `byte` of a word and may end in the next word.
__device__ __forceinline__ u32 extract_target(u32 word, u32 next, u32 byte) {
  return __funnelshift_r(word, next, 8 * byte) & TARGET_MASK;
}

// Target of arc j: a streaming load (evict-first), as weight_at.
template <class W>
__device__ __forceinline__ u32 target_at(const u32* targets, const W*, i64 j) {
  if constexpr (short_targets<W>) {
    const u64 at = 3 * (u64)j;
    const u32* word = targets + (at >> 2);
    return extract_target(__ldcs(word), __ldcs(word + 1), at & 3);
  } else {
    return __ldcs(targets + j);
  }
}

// Writes targets of 24 bits: those of arcs first..first + count - 1, by the lanes 0..count - 1. Whole
// warps call. Others may write the arcs before and behind: of words that are shared with these,
// single bytes are written.
__device__ __forceinline__ void put_targets24(u32* targets, i64 first, u32 count, u32 target) {
  // Each lane assembles one word, of 25 at most that the bytes of 32 targets are in.
  const i64 begin = 3 * first;
  const int at = 4 * (int)(threadIdx.x % WARP) - (int)(begin & 3), end = 3 * (int)count;
  const int before = (at + 3) / 3 - 1, byte = (at + 3) % 3;  // at >= -3
  const u32 one = __shfl_sync(FULL, target, before & (WARP - 1));
  const u32 next = __shfl_sync(FULL, target, (before + 1) & (WARP - 1));
  const u32 word = (one & TARGET_MASK) >> 8 * byte | next << (24 - 8 * byte);
  if (at >= 0 && at + 4 <= end) {
    *(u32*)((u8*)targets + begin + at) = word;
    return;
  }
#pragma unroll
  for (int b = 0; b < 4; ++b)
    if (at + b >= 0 && at + b < end) ((u8*)targets)[begin + at + b] = word >> 8 * b;
}
