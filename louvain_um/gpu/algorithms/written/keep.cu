// `filter` of users: marks the items of a frontier that meet a condition. EXPRESSION, the
// condition, is written in front of this text; in it, arrays[k][v] is an entry of array k.
#include "integers.cuh"

#ifndef EXPRESSION
#define EXPRESSION arrays[0][v]
#endif

// state: 0 before; state[1] becomes 1 if something is divided by 0.
__global__ void keep(const u32* frontier, i64 items, const i64* const* arrays, u32* kept,
                     u64* state) {
  bool fault = false;
  for (i64 i = grid_thread(); i < items; i += grid_threads()) {
    const i64 v = frontier[i];
    (void)v;
    kept[i] = (EXPRESSION) != 0;
  }
  if (fault) state[1] = 1;
}
