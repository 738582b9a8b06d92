// The algorithms by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "bfs.cu"
#include "components.cu"
#include "pagerank.cu"
#include "spanning_forest.cu"
#include "spmv.cu"
#include "sssp.cu"
#include "triangles.cu"

namespace {

// Calls run(view) with the type of the weights: bytes of one, 0 for none.
template <class F>
void with_view(int bytes, i64 n, const i64* begins, const i64* ends, const u32* targets,
               const void* weights, F run) {
  if (bytes == 0) run(RowView<Unweighted>{n, begins, ends, targets, nullptr});
  if (bytes == 4) run(RowView<u32>{n, begins, ends, targets, (const u32*)weights});
  if (bytes == 8) run(RowView<u64>{n, begins, ends, targets, (const u64*)weights});
}

// Calls run(rows) with rows in host memory where `pages` is not 0.
template <class W, class F>
void with_rows(u32 pages, RowView<W> rows, F run) {
  if (pages) {
    const i64 arcs = rows.n ? rows.ends[rows.n - 1] : 0, mean = 4 * WARP * arcs / max(1ll, rows.n);
    run(HostRows<W>{rows, pages, u32(min(max(1ll, mean), 4096ll))});
  } else {
    run(rows);
  }
}

}  // namespace

#define ROWS \
  int blocks, u32 pages, int bytes, i64 n, i64 arcs, const i64 *begins, const i64 *ends, const u32 *targets, \
      const void *weights
#define VIEW bytes, n, begins, ends, targets, weights

extern "C" void run_bfs(ROWS, u32 source, int* distances, i64* parents) {
  std::vector<u32> least(n), queue(n + 1), front(n / 32 + 1), next(n / 32 + 1, 0xAAAAAAAA);
  std::vector<i64> before(n + 1), partials(blocks);
  SearchState state = {};
  with_rows(pages, RowView<Unweighted>{n, begins, ends, targets, nullptr}, [&](auto rows) {
    fibres::launch(blocks, [&] {
      bfs(rows, arcs, source, distances, least.data(), parents, queue.data(), before.data(),
          partials.data(), front.data(), next.data(), &state);
    });
  });
}

extern "C" void run_sssp(ROWS, u32 source, u64 width, u64* distances, i64* parents) {
  std::vector<u32> near(2 * n), far(2 * n), stamps(n), is_far(n);
  std::vector<i64> before(n + 1), partials(blocks);
  PathState state = {};
  with_view(VIEW, [&](auto rows) {
    fibres::launch(blocks, [&] {
      sssp(rows, source, width, distances, parents, near.data(), far.data(), stamps.data(),
           is_far.data(), before.data(), partials.data(), &state);
    });
  });
}

extern "C" void run_components(ROWS, u32* parents) {
  Barrier barrier = {};
  const RowView<Unweighted> rows = {n, begins, ends, targets, nullptr};
  fibres::launch(blocks, [&] { components(rows, parents, &barrier); });
}

extern "C" i64 run_spanning_forest(ROWS, u64* edges, u64* edge_weights) {
  std::vector<u32> component(n), hook(n), choice(n);
  std::vector<u64> choice_weight(n), weight(n), pair(n);
  ForestState state = {};
  with_view(VIEW, [&](auto rows) {
    fibres::launch(blocks, [&] {
      spanning_forest(rows, component.data(), hook.data(), choice.data(), choice_weight.data(),
                      weight.data(), pair.data(), edges, edge_weights, &state);
    });
  });
  return state.edges;
}

// Runs `count` iterations; sums: dangling ranks and the change of the last.
extern "C" void run_pagerank(ROWS, const u64* loops, double damping, i64 start, i64 teleport,
                             int count, i64* ranks, i64* sums) {
  std::vector<double> outs(n), shares(n), next(n);
  auto run = [&](auto rows) {
    sums[0] = sums[1] = 0;
    fibres::launch(blocks, [&] {
      weigh_rows(rows, loops, start, ranks, outs.data(), shares.data(), sums);
    });
    for (int k = 0; k < count; ++k) {
      const i64 base = teleport + i64(damping * double(sums[0]) / double(n));
      sums[0] = sums[1] = 0;
      fibres::launch(blocks, [&] {
        iterate(rows, loops, damping, base, outs.data(), shares.data(), next.data(), ranks, sums);
      });
      std::swap(shares, next);
    }
  };
  with_view(VIEW, [&](auto rows) { with_rows(pages, rows, run); });
}

extern "C" void run_spmv(ROWS, const u64* loops, const double* x, double unit, double* y) {
  auto run = [&](auto rows) {
    fibres::launch(blocks, [&] { multiply(rows, loops, x, x, unit, y); });
  };
  with_view(VIEW, [&](auto rows) { with_rows(pages, rows, run); });
}

extern "C" void run_triangles(ROWS, u64* counts) {
  std::vector<i64> above(n + 1), partials(blocks);
  std::vector<u32> upward(arcs / 2 + 1);
  u64 state[2] = {0, 0};
  const RowView<Unweighted> rows = {n, begins, ends, targets, nullptr};
  fibres::launch(blocks, [&] {
    triangles(rows, above.data(), upward.data(), partials.data(), counts, state);
  });
}

// The kernels as launchers call them: the view is bytes of the size of its weights, of rows in host
// memory or of any, and all arrays are the caller's.
#define CALL(name, ...)    \
  extern "C" void call_##name(int blocks, int bytes, bool hosted, const void* view, __VA_ARGS__)
#define RUN_BY_KIND(kernel, ...)     \
  typed(bytes, view, [&](auto rows) { \
    by_kind(rows, hosted, view, [&](auto those) { \
      fibres::launch(blocks, [&] { kernel(those, __VA_ARGS__); }); \
    }); \
  })
#define RUN(kernel, ...) \
  typed(bytes, view, [&](auto rows) { fibres::launch(blocks, [&] { kernel(rows, __VA_ARGS__); }); })
#define RUN_PLAIN(kernel, ...) \
  fibres::launch(blocks, [&] { kernel(*(const RowView<Unweighted>*)view, __VA_ARGS__); })

template <class F>
static void typed(int bytes, const void* view, F run) {
  if (bytes == 0) run(*(const RowView<Unweighted>*)view);
  if (bytes == 4) run(*(const RowView<u32>*)view);
  if (bytes == 8) run(*(const RowView<u64>*)view);
}

template <class W, class F>
static void by_kind(RowView<W> rows, bool hosted, const void* view, F run) {
  if (hosted) {
    run(*(const HostRows<W>*)view);
  } else {
    run(rows);
  }
}

CALL(bfs, i64 arcs, u32 source, int* distances, u32* least, i64* parents, u32* queue, i64* before,
     i64* partials, u32* front, u32* next, SearchState* state) {
  by_kind(*(const RowView<Unweighted>*)view, hosted, view, [&](auto rows) {
    fibres::launch(blocks, [&] {
      bfs(rows, arcs, source, distances, least, parents, queue, before, partials, front, next,
          state);
    });
  });
}
CALL(sssp, u32 source, u64 width, u64* distances, i64* parents, u32* near, u32* far, u32* stamps,
     u32* is_far, i64* before, i64* partials, PathState* state) {
  RUN(sssp, source, width, distances, parents, near, far, stamps, is_far, before, partials, state);
}
CALL(components, u32* parents, Barrier* barrier) { RUN_PLAIN(components, parents, barrier); }
CALL(spanning_forest, u32* component, u32* hook, u32* choice, u64* choice_weight, u64* weight,
     u64* pair, u64* edges, u64* edge_weights, ForestState* state) {
  RUN(spanning_forest, component, hook, choice, choice_weight, weight, pair, edges, edge_weights,
      state);
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
  RUN_PLAIN(triangles, begins, upward, partials, counts, state);
}
