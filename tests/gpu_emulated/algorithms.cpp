// The algorithms by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "bfs.cu"
#include "components.cu"
#include "pagerank.cu"
#include "spanning_forest.cu"
#include "spmv.cu"
#include "sssp.cu"
#include "triangles.cu"

// The kernels as launchers call them: the view is bytes of the size of its weights, of rows in host
// memory or of any, and all arrays are the caller's.
#define CALL(name, ...)    \
  extern "C" void call_##name(int blocks, int bytes, int kind, const void* view, __VA_ARGS__)
#define RUN_BY_KIND(kernel, ...)     \
  typed(bytes, view, [&](auto rows) { \
    by_kind(rows, kind, view, [&](auto those) { \
      fibres::launch(blocks, [&] { kernel(those, __VA_ARGS__); }); \
    }); \
  })
#define RUN_ANYWHERE(kernel, ...)    \
  typed(bytes, view, [&](auto rows) { \
    anywhere(rows, kind, view, [&](auto those) { \
      fibres::launch(blocks, [&] { kernel(those, __VA_ARGS__); }); \
    }); \
  })
#define RUN_PLAIN(kernel, ...) \
  fibres::launch(blocks, [&] { kernel(*(const RowView<Unweighted>*)view, __VA_ARGS__); })

template <class F>
static void typed(int bytes, const void* view, F run) {
  if (bytes == 0) run(*(const RowView<Unweighted>*)view);
  if (bytes == 4) run(*(const RowView<u32>*)view);
  if (bytes == 8) run(*(const RowView<u64>*)view);
}

template <class W, class F>
static void by_kind(RowView<W> rows, int kind, const void* view, F run) {
  if (kind == 0) run(rows);
  if (kind == 1) run(*(const HostRows<W>*)view);
  if (kind == 2) run(*(const LinkedRows<W>*)view);
}

template <class W, class F>
static void anywhere(RowView<W> rows, int kind, const void* view, F run) {
  if (kind == 0) run(rows);
  if (kind == 2) run(*(const LinkedRows<W>*)view);
}

CALL(bfs, i64 arcs, u32 source, int* distances, u32* least, i64* parents, u32* queue, i64* before,
     i64* partials, u32* front, u32* next, SearchState* state) {
  by_kind(*(const RowView<Unweighted>*)view, kind, view, [&](auto rows) {
    fibres::launch(blocks, [&] {
      bfs(rows, arcs, source, distances, least, parents, queue, before, partials, front, next,
          state);
    });
  });
}
CALL(sssp, u32 source, u64 width, u64* distances, i64* parents, u32* near, u32* far, u32* stamps,
     u32* is_far, i64* before, i64* partials, PathState* state) {
  RUN_ANYWHERE(sssp, source, width, distances, parents, near, far, stamps, is_far, before, partials,
               state);
}
CALL(components, u32* parents, Barrier* barrier) {
  anywhere(*(const RowView<Unweighted>*)view, kind, view, [&](auto rows) {
    fibres::launch(blocks, [&] { components(rows, parents, barrier); });
  });
}
CALL(spanning_forest, u32* component, u32* hook, u32* choice, u64* choice_weight, u64* weight,
     u64* pair, u64* edges, u64* edge_weights, ForestState* state) {
  RUN_ANYWHERE(spanning_forest, component, hook, choice, choice_weight, weight, pair, edges,
               edge_weights, state);
}
CALL(weigh_rows, const u64* loops, i64 start, i64* ranks, double* outs, double* shares, i64* sums) {
  RUN_BY_KIND(weigh_rows, loops, start, ranks, outs, shares, sums);
}
CALL(iterate, const u64* loops, double damping, i64 base, const double* outs, const double* shares,
     double* next, i64* ranks, i64* sums) {
  RUN_BY_KIND(iterate, loops, damping, base, outs, shares, next, ranks, sums);
}
CALL(multiply, const u64* loops, const double* x, const double* own, double unit, double* y) {
  RUN_BY_KIND(multiply, loops, x, own, unit, y);
}
CALL(pull_level, const u32* front, u32* next, u32 level, int* distances, u32* parents, i64* out,
     SearchState* state) {
  RUN_PLAIN(pull_level, front, next, level, distances, parents, out, state);
}
CALL(triangles, i64* begins, u32* upward, i64* partials, u64* counts, u64* state) {
  anywhere(*(const RowView<Unweighted>*)view, kind, view, [&](auto rows) {
    fibres::launch(blocks, [&] { triangles(rows, begins, upward, partials, counts, state); });
  });
}
