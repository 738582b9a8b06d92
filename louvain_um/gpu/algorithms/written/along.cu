// `advance` of users: a value along every arc of a frontier is combined into the arc's target.
// Cooperative. EXPRESSION, the value, is written in front of this text.
#include "integers.cuh"
#include "row_view.cuh"

#ifndef EXPRESSION
#define EXPRESSION add(x, w)
#endif

struct Least {
  static __device__ __forceinline__ void into(i64* at, i64 value) {
    atomicMin((long long*)at, (long long)value);
  }
};
struct Most {
  static __device__ __forceinline__ void into(i64* at, i64 value) {
    atomicMax((long long*)at, (long long)value);
  }
};
struct Bits {
  static __device__ __forceinline__ void into(i64* at, i64 value) {
    atomicOr((u64*)at, (u64)value);
  }
};
struct Sum {
  static __device__ __forceinline__ void into(i64* at, i64 value) {
    atomicAdd((u64*)at, (u64)value);
  }
};

// frontier: `items` vertices. before: items + 1 entries, partials: one per block. xs, ys: values of
// the ends before the call. state: 0 before; state[1] becomes 1 if something is divided by 0.
template <class W, class C>
__global__ void BOUNDS combine_along(RowView<W> rows, const u32* frontier, i64 items,
                                     const i64* xs, const i64* ys, i64* into, i64* before,
                                     i64* partials, u64* state) {
  scan_frontier(rows, frontier, items, before, partials, (Barrier*)state);
  bool fault = false;
  advance(rows, frontier, items, before, [&](u32 source, i64 arc) {
    const u32 target = rows.targets[arc];
    const i64 u = source, v = target, w = rows.weight(arc), x = xs[source], y = ys[target];
    (void)u, (void)v, (void)w, (void)x, (void)y;
    C::into(into + target, EXPRESSION);
  });
  if (fault) state[1] = 1;
}
