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

}  // namespace

#define ROWS \
  int blocks, int bytes, i64 n, i64 arcs, const i64 *begins, const i64 *ends, const u32 *targets, \
      const void *weights
#define VIEW bytes, n, begins, ends, targets, weights

extern "C" void run_bfs(ROWS, u32 source, int* distances, i64* parents) {
  std::vector<u32> least(n), queue(n + 1), front(n / 32 + 1), next(n / 32 + 1, 0xAAAAAAAA);
  std::vector<i64> before(n + 1), partials(blocks);
  SearchState state = {};
  const RowView<Unweighted> rows = {n, begins, ends, targets, nullptr};
  fibres::launch(blocks, [&] {
    bfs(rows, arcs, source, distances, least.data(), parents, queue.data(), before.data(),
        partials.data(), front.data(), next.data(), &state);
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
  with_view(VIEW, [&](auto rows) {
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
  });
}

extern "C" void run_spmv(ROWS, const u64* loops, const double* x, double unit, double* y) {
  with_view(VIEW, [&](auto rows) {
    fibres::launch(blocks, [&] { multiply(rows, loops, x, unit, y); });
  });
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
