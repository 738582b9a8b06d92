// Counted randomness and keyed permutations, the device's side of generators/hashing.py.
#pragma once
#include "rules.cuh"

#define ROUNDS 4
#define PERMUTATION_WORDS (3 + 3 * ROUNDS)

__device__ __forceinline__ u64 mix64(u64 x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

// Returns 64 random bits, the i-th of stream `key`.
__device__ __forceinline__ u64 draw(u64 key, u64 i) {
  return mix64(key + (i + 1) * 0x9E3779B97F4A7C15ull);
}

// Fills p with the permutation of 0 ... n - 1 that `key` names; its inverse is left out.
__device__ inline void set_permutation(u64* p, u64 key, u64 n) {
  u64 bits = 0;
  while (bits < 63 && n > 0 && (n - 1) >> bits) ++bits;
  p[0] = n;
  p[1] = (1ull << bits) - 1;
  p[2] = bits < 2 ? 1 : (bits + 1) >> 1;
  for (u32 r = 0; r < ROUNDS; ++r) {
    p[3 + 3 * r] = draw(key, 2 * r) | 1;
    p[4 + 3 * r] = draw(key, 2 * r + 1);
  }
}

// Returns the image of x < p[0].
__device__ __forceinline__ u64 permute(const u64* p, u64 x) {
  u64 n = p[0], mask = p[1], shift = p[2];
  do {
    for (u32 r = 0; r < ROUNDS; ++r) {
      x = (x * p[3 + 3 * r] + p[4 + 3 * r]) & mask;
      x ^= x >> shift;
    }
  } while (x >= n);
  return x;
}

// Returns the number whose image is x.
__device__ __forceinline__ u64 unpermute(const u64* p, u64 x) {
  u64 n = p[0], mask = p[1], shift = p[2];
  do {
    for (int r = ROUNDS - 1; r >= 0; --r) {
      x ^= x >> shift;
      x = ((x - p[4 + 3 * r]) * p[5 + 3 * r]) & mask;
    }
  } while (x >= n);
  return x;
}
