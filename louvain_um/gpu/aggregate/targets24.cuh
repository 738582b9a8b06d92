// Targets of 24 bits, of coarse levels whose weights take a byte: arc j's is in bytes 3j..3j + 2 of
// the array, which has two spare words at its end. The counterpart of coarse_rows.py.
#pragma once
#include "grid.cuh"

#define TARGET_MASK 0xFFFFFFu

// Returns the target that begins in byte `byte` of a word and may end in the next word.
__device__ __forceinline__ u32 extract_target(u32 word, u32 next, u32 byte) {
  return __funnelshift_r(word, next, 8 * byte) & TARGET_MASK;
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
