// Binary search in sorted entries: which unit, row or block a position belongs to.
#pragma once
#include "rules.cuh"

// Returns the last index in 0..count - 1 whose entry is at most x; entries[0] is.
template <class T>
__device__ __forceinline__ u32 last_at_most(const T* entries, u32 count, T x) {
  u32 low = 0, high = count;
  while (high - low > 1) {
    u32 middle = (low + high) / 2;
    if (entries[middle] <= x)
      low = middle;
    else
      high = middle;
  }
  return low;
}
