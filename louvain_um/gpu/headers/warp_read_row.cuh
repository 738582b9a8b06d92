// Reading part of a row by a warp: each line of 128 bytes once, whatever the bytes per arc.
//
// The bus counts requests, and a request brings a line or less: 128 arcs are four lines of targets,
// three lines of targets of 24 bits, one to four of packed ones, and one or two lines of weights of
// 8 or 16 bits.
#pragma once
#include "packed.cuh"

// Arcs that a warp reads at a time, and how many of them a lane reads: j + lane, j + 32 + lane, ….
#define LINE 128
#define LANE_ARCS (LINE / WARP)

// Where reading of arcs low..high - 1 begins: at a multiple of 32 arcs. Lines of targets in fewer bytes
// begin at multiples of 128, which are taken unless a row takes two reads then, and one else. Blocks
// of packed targets that take different bytes are read whole.
template <class W>
__device__ __forceinline__ i64 begin_read(const W* weights, i64 low, i64 high) {
  const i64 any = low & -WARP, whole = low & -LINE;
  if constexpr (!short_targets<W>) return any;
  if constexpr (packed<W>)
    if (!bytes_of_all(weights)) return whole;
  return high > whole + LINE && high <= any + LINE ? any : whole;
}

// The functions below read arcs j..j + 127: entry q is that of arc j + 32q + lane, if that is in
// low..high - 1. j is begin_read's, or 128 arcs later, and so on. Whole warps call.

// Returns the word of a line; `line` is the same for all lanes.
template <u32 N>
__device__ __forceinline__ u32 pick(const u32 (&words)[N], u32 line) {
  u32 word = words[0];
#pragma unroll
  for (u32 k = 1; k < N; ++k)
    if (line == k) word = words[k];
  return word;
}

// Returns word `index` of N lines, of which each lane holds one word per line. For all lanes it is in
// line `line` or `last`, which are the same or neighbours.
template <u32 N>
__device__ __forceinline__ u32 word_of(const u32 (&words)[N], u32 line, u32 last, u32 index) {
  u32 word = __shfl_sync(FULL, pick(words, line), index % WARP);
  if (last == line) return word;
  u32 next = __shfl_sync(FULL, pick(words, last), index % WARP);
  return index / WARP == line ? word : next;
}

// Reads packed targets: a block, or parts of two of the same bytes a target.
template <class W>
__device__ __forceinline__ void read_block(const u32* targets, const W* heads, i64 j, i64 low,
                                           i64 high, u32 (&target)[LANE_ARCS]) {
  static_assert(LINE == PACKED_ARCS, "lines of a block hold as many arcs");
  const u32 lane = threadIdx.x % WARP;
  const PackedBlock block = block_of(heads, j);
  const u32 width = block.width();
  const u32* begin = block.words(targets) + (u32)j % PACKED_ARCS * width / 4;
  const u32 first = (u32)max(low - j, 0ll) * width / 4;
  const u32 last = ((u32)min(high - j, (i64)LINE) * width - 1) / 4;
  u32 words[4];
#pragma unroll
  for (u32 line = 0; line < 4; ++line) {
    const u32 word = line * WARP + lane;
    words[line] = word >= first && word <= last ? __ldcs(begin + word) : 0;
  }
  const u32 in_group = width * lane / 4, byte = width * lane % 4;
#pragma unroll
  for (u32 q = 0; q < LANE_ARCS; ++q) {
    // 8 * width words hold 32 arcs, of which the last one does not reach into the next word.
    const u32 before = 8 * width * q, index = before + in_group;
    const u32 line = before / WARP, end = (before + 8 * width - 1) / WARP;
    const u32 next = width == 3 ? word_of(words, line, end, index + 1) : 0;
    target[q] = block.target(word_of(words, line, end, index), next, byte);
  }
}

__device__ __forceinline__ void read_targets24(const u32* targets, i64 j, i64 low, i64 high,
                                               u32 (&target)[LANE_ARCS]) {
  const u32 lane = threadIdx.x % WARP;
  const i64 at = j / 4 * 3, first = 3 * low / 4, last = (3 * high - 1) / 4;
  u32 words[3];
#pragma unroll
  for (u32 line = 0; line < 3; ++line) {
    const i64 word = at + line * WARP + lane;
    words[line] = word >= first && word <= last ? __ldcs(targets + word) : 0;
  }
  const u32 in_group = 3 * lane / 4, byte = 3 * lane % 4;
#pragma unroll
  for (u32 q = 0; q < LANE_ARCS; ++q) {
    // 24 words hold 32 arcs, of which the last one does not reach into the next word.
    const u32 index = 24 * q + in_group, line = 24 * q / WARP, last = (24 * q + 23) / WARP;
    target[q] = extract_target(word_of(words, line, last, index),
                               word_of(words, line, last, index + 1), byte);
  }
}

template <class W>
__device__ __forceinline__ void read_targets(const u32* targets, const W* weights, i64 j, i64 low,
                                             i64 high, u32 (&target)[LANE_ARCS]) {
  if constexpr (packed<W>) return read_block(targets, weights, j, low, high, target);
  if constexpr (same<W, Weights8Targets24>) return read_targets24(targets, j, low, high, target);
#pragma unroll
  for (u32 q = 0; q < LANE_ARCS; ++q) {
    const i64 k = j + q * WARP + threadIdx.x % WARP;
    target[q] = k >= low && k < high ? __ldcs(targets + k) : 0;
  }
}

template <class W, class A>
__device__ __forceinline__ void read_short_weights(const W* weights, i64 j, i64 low, i64 high,
                                                   A (&weight)[LANE_ARCS]) {
  constexpr u32 bytes = sizeof(W), each = 4 / bytes;  // arcs a word
  const u32 lane = threadIdx.x % WARP;
  u32 words[LANE_ARCS / each];
#pragma unroll
  for (u32 line = 0; line < LANE_ARCS / each; ++line) {
    const i64 mine = j + each * (line * WARP + lane);
    words[line] = mine + each > low && mine < high ? __ldcs((const u32*)(weights + mine)) : 0;
  }
#pragma unroll
  for (u32 q = 0; q < LANE_ARCS; ++q) {
    const i64 k = j + q * WARP + lane;
    const u32 word = __shfl_sync(FULL, words[q / each], q % each * (WARP / each) + lane / each);
    const u32 bits = word >> 8 * bytes * (lane % each) & heavy_bits(bytes);
    weight[q] = k >= low && k < high ? whole_weight(weights, k, bits) : 0;
  }
}

template <class W, class A>
__device__ __forceinline__ void read_weights(const W* weights, i64 j, i64 low, i64 high,
                                             A (&weight)[LANE_ARCS]) {
  if constexpr (short_weights<W>) return read_short_weights(weights, j, low, high, weight);
#pragma unroll
  for (u32 q = 0; q < LANE_ARCS; ++q) {
    const i64 k = j + q * WARP + threadIdx.x % WARP;
    weight[q] = k >= low && k < high ? weight_at(weights, k) : 0;
  }
}
