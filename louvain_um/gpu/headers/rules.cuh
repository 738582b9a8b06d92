// The arithmetic that decides labels, on the device: the counterpart of louvain_um/core/rules.py and
// cpu/rule.py. Tests hold the three equal.
#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define EMPTY 0xFFFFFFFFu  // no vertex, no community

// Atomics on global memory whose old value nobody asks for. Of atomicAdd the compiler lets it come
// back all the same if a fence follows, as one does in kernels with barriers of the grid.
#ifdef __CUDACC_RTC__
#define REDUCE(name, type, instruction, constraint)                                      \
  __device__ __forceinline__ void name(type* at, type value) {                           \
    asm volatile("red.relaxed.gpu.global." instruction " [%0], %1;" ::"l"(               \
                     __cvta_generic_to_global(at)),                                      \
                 constraint(value)                                                       \
                 : "memory");                                                            \
  }
REDUCE(reduce_add, u32, "add.u32", "r")
REDUCE(reduce_add, u64, "add.u64", "l")
REDUCE(reduce_or, u32, "or.b32", "r")
#undef REDUCE
#else  // as tests run kernels on a CPU
template <class T>
void reduce_add(T* at, T value) {
  atomicAdd(at, value);
}
inline void reduce_or(u32* at, u32 value) { atomicOr(at, value); }
#endif

// Gains are summed as integers in units of 2^-GAIN_BITS of 2m, as core/rules.py says.
#define GAIN_BITS 50
#define GAIN_UNIT ((double)(1ull << GAIN_BITS))

// Weight type of graphs whose arcs all weigh 1.
struct Unweighted {};

// Compute capability 10.x, where the assembler of CUDA 13.5 runs out of predicate registers.
#define FEW_PREDICATES (__CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200)

// Whether two types are the same.
template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;

// Returns a well-mixed 32-bit image of x.
__device__ __forceinline__ u32 mix32(u32 x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  return x ^ x >> 16;
}

// Returns the sub-round of a vertex; sub_rounds is a power of two.
__device__ __forceinline__ u32 bucket(u32 vertex, u32 salt, u32 sub_rounds) {
  return mix32(vertex ^ salt) & (sub_rounds - 1);
}

// Returns whether a comes before b among communities of equal score.
__device__ __forceinline__ bool wins_tie(u32 a, u32 b, u32 seed) {
  u32 x = mix32(a ^ seed), y = mix32(b ^ seed);
  return x < y || (x == y && a < b);
}

// Returns weight - pull * total with each operation rounded on its own, as on the CPU.
__device__ __forceinline__ double score_of(u64 weight, double pull, u64 total) {
  return __dsub_rn(__ull2double_rn(weight), __dmul_rn(pull, __ull2double_rn(total)));
}

// A community and its score; `community` is EMPTY for none.
struct Choice {
  double score;
  u32 community;
};

// Returns the better of two choices; the order of arguments is free.
__device__ __forceinline__ Choice better(Choice a, Choice b, u32 seed) {
  if (a.community == EMPTY) return b;
  if (b.community == EMPTY) return a;
  if (a.score != b.score) return a.score > b.score ? a : b;
  return a.community == b.community || wins_tie(a.community, b.community, seed) ? a : b;
}

// Weight of arc j. A streaming load (evict-first): arcs are read once per pass, and must not
// displace what is read at random.
__device__ __forceinline__ u32 weight_at(const Unweighted*, i64) { return 1; }
__device__ __forceinline__ u32 weight_at(const u32* weights, i64 j) { return __ldcs(weights + j); }
__device__ __forceinline__ u64 weight_at(const u64* weights, i64 j) { return __ldcs(weights + j); }

#include "short_weights.cuh"
