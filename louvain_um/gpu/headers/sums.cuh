// Sums of the communities of a level, which make its quality.
#pragma once
#include "grid.cuh"

// A sum of squares in 128 bits, as three words: low 32 bits, next 32 bits, rest. add(d) adds d * d.
struct Squares {
  u64 low = 0, middle = 0, high = 0;
  __device__ __forceinline__ void add(u64 d) {
    u64 product = d * d;
    low += product & 0xFFFFFFFFu;
    middle += product >> 32;
    high += __umul64hi(d, d);
  }
  // Adds the sums of all threads to out[0..2]; every thread of the block calls.
  __device__ __forceinline__ void publish(u64* out) {
    u64 a = block_sum(low), b = block_sum(middle), c = block_sum(high);
    if (threadIdx.x == 0 && (a | b | c)) {
      atomicAdd(out, a);
      atomicAdd(out + 1, b);
      atomicAdd(out + 2, c);
    }
  }
};

// What kernels leave for the host about the communities of a level; zero before.
struct RelabelResult {
  Barrier barrier;
  u64 inside;      // doubled weight inside communities
  u64 squares[3];  // sum of squared degree sums, by 32 bits
  u64 communities;
};
static_assert(sizeof(RelabelResult) == 48, "RELABEL_RESULT of relabel.py mirrors it");
