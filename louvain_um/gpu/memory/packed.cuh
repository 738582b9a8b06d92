// Inputs in fewer bytes, where no vertex has a loop: the counterpart of packed.py. Where every arc weighs 1,
// there is no array of degrees: a vertex' degree is the length of its row.
//
// Targets are packed in blocks of PACKED_ARCS arcs. A block takes as many bytes a target as the
// distance between its smallest and its largest one needs, 1 to 4: so many lines of 128 bytes. What
// kernels get as weights are the heads of blocks, one word each: the block's smallest target in bits
// 0..31, its bytes a target less one in bits 32 and 33, and above these the line that it begins in.
// In front of the heads are two words: bytes a target where all blocks take as many, and have no
// heads, else 0; and the address of the weights, if there are any.
//
// Where rows are sorted by length, entry v of the offsets holds where v's row begins and, from bit
// START_BITS on, how many arcs it has. Else offsets take 32 bits.
#pragma once
#include "targets24.cuh"

// Weight type of graphs whose arcs all weigh 1, with packed targets in rows sorted by length.
struct Packed {};

// The same with weights of 16 bits.
struct PackedWeights16 {};

// Weight type of graphs whose arcs all weigh 1, with packed targets and offsets of 32 bits.
struct PackedOffsets32 {};

#define PACKED_ARCS 128
#define START_BITS 40

// Whether offsets hold the lengths of rows, which are sorted by these.
template <class W>
constexpr bool lengths_in_offsets = same<W, Packed> || same<W, PackedWeights16>;

// Whether targets are packed in blocks.
template <class W>
constexpr bool packed = lengths_in_offsets<W> || same<W, PackedOffsets32>;

// Whether targets take fewer than four bytes.
template <class W>
constexpr bool short_targets = packed<W> || same<W, Weights8Targets24>;

// Whether every arc weighs 1.
template <class W>
constexpr bool unweighted = same<W, Unweighted> || same<W, Packed> || same<W, PackedOffsets32>;

// Whether there are no degrees and no loops: a vertex' arcs are counted.
template <class W>
constexpr bool counts_arcs = same<W, Packed> || same<W, PackedOffsets32>;

__device__ __forceinline__ u32 weight_at(const Packed*, i64) { return 1; }
__device__ __forceinline__ u32 weight_at(const PackedOffsets32*, i64) { return 1; }

// Returns the address of weights of 16 bits.
__device__ __forceinline__ const unsigned short* weights_of(const PackedWeights16* heads) {
  return ((const unsigned short* const*)heads)[-1];
}
__device__ __forceinline__ u32 weight_at(const PackedWeights16* heads, i64 j) {
  return __ldcs(weights_of(heads) + j);
}

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
__device__ __forceinline__ Row row_of(const PackedOffsets32*, const i64* offsets, i64 v) {
  const u32* begins = (const u32*)offsets;
  return {begins[v], begins[v + 1]};
}

// Degree of vertex v.
template <class W, class A>
__device__ __forceinline__ A degree_of(const W*, const A* degrees, const i64*, i64 v) {
  return degrees[v];
}
template <class A>
__device__ __forceinline__ A degree_of(const Packed* heads, const A*, const i64* offsets, i64 v) {
  return row_of(heads, offsets, v).arcs();
}
template <class A>
__device__ __forceinline__ A degree_of(const PackedOffsets32* heads, const A*, const i64* offsets,
                                       i64 v) {
  return row_of(heads, offsets, v).arcs();
}

// A block of packed targets, as its head has it.
struct PackedBlock {
  u64 head;
  __device__ __forceinline__ u32 base() const { return (u32)head; }
  __device__ __forceinline__ u32 width() const { return (u32)(head >> 32 & 3) + 1; }
  __device__ __forceinline__ const u32* words(const u32* targets) const {
    return targets + (head >> 34) * WARP;
  }

  // Returns a target, given the word that it begins in, the next one, and its byte in the first.
  __device__ __forceinline__ u32 target(u32 word, u32 next, u32 byte) const {
    return base() + (__funnelshift_r(word, next, 8 * byte) & ~0u >> (32 - 8 * width()));
  }
};

// Bytes a target, where all blocks take as many; else 0.
template <class W>
__device__ __forceinline__ u64 bytes_of_all(const W* heads) {
  return __ldg((const u64*)heads - 2);
}

// Returns the block of arc j.
template <class W>
__device__ __forceinline__ PackedBlock block_of(const W* heads, i64 j) {
  const u64 block = (u64)j / PACKED_ARCS, width = bytes_of_all(heads);
  return {width ? block * width << 34 | (width - 1) << 32 : __ldg((const u64*)heads + block)};
}

// Where a target of few bytes is: the word that it begins in, and its byte there.
struct TargetPlace {
  PackedBlock block;
  const u32* word;
  u32 byte;
  __device__ __forceinline__ bool needs_next() const { return byte + block.width() > 4; }
  __device__ __forceinline__ u32 target(u32 first, u32 next) const {
    return block.target(first, next, byte);
  }
};

template <class W>
__device__ __forceinline__ TargetPlace place_of(const u32* targets, const W* weights, i64 j) {
  if constexpr (packed<W>) {
    const PackedBlock block = block_of(weights, j);
    const u32 place = (u32)j % PACKED_ARCS * block.width();
    return {block, block.words(targets) + place / 4, place % 4};
  } else {
    const u64 place = 3 * (u64)j;
    return {PackedBlock{2ull << 32}, targets + place / 4, (u32)place % 4};
  }
}

// Target of arc j: a streaming load (evict-first), as weight_at. Both words are loaded at once, whether
// or not the second is needed: a branch would make one arc wait for another.
template <class W>
__device__ __forceinline__ u32 target_at(const u32* targets, const W* weights, i64 j) {
  if constexpr (!short_targets<W>) return __ldcs(targets + j);
  const TargetPlace place = place_of(targets, weights, j);
  return place.target(__ldcs(place.word), __ldcs(place.word + place.needs_next()));
}

// Target of arc j, EMPTY where `valid` is false. `follows`: the next lane's arc is j + 1. If a target
// goes on in another word, the next lane's begins in that one, and has loaded it. Whole warps call.
template <class W>
__device__ __forceinline__ u32 target_of_lane(const u32* targets, const W* weights, i64 j,
                                              bool valid, bool follows) {
  if constexpr (!short_targets<W>) return valid ? __ldcs(targets + j) : EMPTY;
  TargetPlace place = {};
  u32 first = 0, next = 0;
  if (valid) {
    place = place_of(targets, weights, j);
    first = __ldcs(place.word);
    if (!follows && place.needs_next()) next = __ldcs(place.word + 1);
  }
  const u32 after = __shfl_down_sync(FULL, first, 1);
  return valid ? place.target(first, follows ? after : next) : EMPTY;
}
