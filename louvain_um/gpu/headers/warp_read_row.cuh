// Reading part of a row by a warp: each line of 128 bytes once, whatever the bytes per arc.
//
// The bus counts requests, and a request brings a line or less: 128 arcs are four lines of targets,
// three lines of targets of 24 bits, and one line of weights of 8 bits.
#pragma once
#include "targets24.cuh"

// Arcs that a warp reads at a time, and how many of them a lane reads: j + lane, j + 32 + lane, ….
#define LINE 128
#define AHEAD (LINE / WARP)

// Reading begins at a multiple of so many arcs, so that lines of targets are aligned.
template <class W>
__device__ __forceinline__ i64 line_of(const W*) {
  return short_targets<W> ? LINE : WARP;
}

// The functions below read arcs j..j + 127: entry q is that of arc j + 32q + lane, if that is in
// low..high - 1. j is a multiple of line_of. Whole warps call.

// Returns word `index` of three lines, of which each lane holds one word per line. For all lanes it
// is in line `line` or `last`, which are the same or neighbours.
__device__ __forceinline__ u32 word_of(const u32 (&words)[3], u32 line, u32 last, u32 index) {
  u32 word = __shfl_sync(FULL, words[line], index % WARP);
  if (last == line) return word;
  u32 next = __shfl_sync(FULL, words[last], index % WARP);
  return index / WARP == line ? word : next;
}

__device__ __forceinline__ void read_targets24(const u32* targets, i64 j, i64 low, i64 high,
                                               u32 (&target)[AHEAD]) {
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
  for (u32 q = 0; q < AHEAD; ++q) {
    // 24 words hold 32 arcs, of which the last one does not reach into the next word.
    const u32 index = 24 * q + in_group, line = 24 * q / WARP, last = (24 * q + 23) / WARP;
    target[q] = extract_target(word_of(words, line, last, index),
                               word_of(words, line, last, index + 1), byte);
  }
}

template <class W>
__device__ __forceinline__ void read_targets(const u32* targets, const W*, i64 j, i64 low, i64 high,
                                             u32 (&target)[AHEAD]) {
  if constexpr (short_targets<W>) return read_targets24(targets, j, low, high, target);
#pragma unroll
  for (u32 q = 0; q < AHEAD; ++q) {
    const i64 k = j + q * WARP + threadIdx.x % WARP;
    target[q] = k >= low && k < high ? __ldcs(targets + k) : 0;
  }
}

template <class A>
__device__ __forceinline__ void read_weights8(const Weights8* weights, i64 j, i64 low, i64 high,
                                              A (&weight)[AHEAD]) {
  const u32 lane = threadIdx.x % WARP;
  const i64 mine = j + 4 * lane;  // four arcs a word
  const u32 word = mine + 3 >= low && mine < high ? __ldcs((const u32*)(weights + mine)) : 0;
#pragma unroll
  for (u32 q = 0; q < AHEAD; ++q) {
    const i64 k = j + q * WARP + lane;
    const u32 four = __shfl_sync(FULL, word, q * (WARP / 4) + lane / 4);
    const u32 byte = four >> 8 * (lane % 4) & 0xFF;
    weight[q] = k >= low && k < high ? whole_weight(weights, k, byte) : 0;
  }
}

template <class W, class A>
__device__ __forceinline__ void read_weights(const W* weights, i64 j, i64 low, i64 high,
                                             A (&weight)[AHEAD]) {
  if constexpr (byte_weights<W>) return read_weights8(weights, j, low, high, weight);
#pragma unroll
  for (u32 q = 0; q < AHEAD; ++q) {
    const i64 k = j + q * WARP + threadIdx.x % WARP;
    weight[q] = k >= low && k < high ? weight_at(weights, k) : 0;
  }
}
