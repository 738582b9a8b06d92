// Union-find with path halving (Jaiganesh, Burtscher: A High-Performance Connected Components
// Implementation for GPUs, 2018). Parents are never greater than their children, so that the root
// of a part is its smallest member.
#pragma once
#include "rules.cuh"

// Returns the root of v, halving the path to it; other threads may do the same or join roots.
__device__ __forceinline__ u32 root_of(u32* parents, u32 v) {
  volatile u32* up = parents;
  u32 parent = up[v];
  while (parent != v) {
    u32 above = up[parent];
    if (above != parent) up[v] = above;
    v = parent;
    parent = above;
  }
  return v;
}

// Joins the parts of u and v.
__device__ __forceinline__ void join_parts(u32* parents, u32 u, u32 v) {
  u32 a = root_of(parents, u), b = root_of(parents, v);
  while (a != b) {
    if (a > b) {
      u32 other = a;
      a = b;
      b = other;
    }
    u32 seen = atomicCAS(parents + b, b, a);
    if (seen == b) break;
    b = root_of(parents, seen);
    a = root_of(parents, a);
  }
}
