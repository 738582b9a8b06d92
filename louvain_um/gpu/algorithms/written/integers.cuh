// Arithmetic of expressions, as NumPy's of int64: what exceeds 64 bits wraps around, quotients are
// rounded down. A divisor of 0 sets `fault`, whether or not its quotient is used in the end.
#pragma once
#include "grid.cuh"

__device__ __forceinline__ i64 add(i64 a, i64 b) { return i64(u64(a) + u64(b)); }
__device__ __forceinline__ i64 subtract(i64 a, i64 b) { return i64(u64(a) - u64(b)); }
__device__ __forceinline__ i64 times(i64 a, i64 b) { return i64(u64(a) * u64(b)); }
__device__ __forceinline__ i64 negative(i64 a) { return subtract(0, a); }
__device__ __forceinline__ i64 minimum(i64 a, i64 b) { return a < b ? a : b; }
__device__ __forceinline__ i64 maximum(i64 a, i64 b) { return a > b ? a : b; }
__device__ __forceinline__ i64 choose(bool which, i64 a, i64 b) { return which ? a : b; }

__device__ __forceinline__ i64 floor_divide(i64 a, i64 b, bool& fault) {
  if (b == 0) fault = true;
  if (b == 0) return 0;
  if (b == -1) return negative(a);  // the least integer has no opposite
  return a / b - (a % b != 0 && (a ^ b) < 0);
}

__device__ __forceinline__ i64 modulo(i64 a, i64 b, bool& fault) {
  if (b == 0) fault = true;
  if (b == 0 || b == -1) return 0;
  const i64 rest = a % b;
  return rest != 0 && (a ^ b) < 0 ? rest + b : rest;
}
