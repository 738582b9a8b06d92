// Columns of numbers that users give, of any type.
#pragma once
#include "rules.cuh"

// Types of a column, numbered as in COLUMNS of gpu/runtime/launch.py.
enum Column { U32, I32, U64, I64, F32, F64 };

// Returns an integer; those beyond 2^63 are negative.
__device__ __forceinline__ i64 integer_at(const void* column, i64 type, i64 i) {
  if (type == U32) return ((const u32*)column)[i];
  if (type == I32) return ((const int*)column)[i];
  return ((const i64*)column)[i];
}

__device__ __forceinline__ double real_at(const void* column, i64 type, i64 i) {
  return type == F32 ? (double)((const float*)column)[i] : ((const double*)column)[i];
}
