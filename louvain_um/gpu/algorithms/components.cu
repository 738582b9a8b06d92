// Connected components by subgraph sampling (Sutton and others, 2018). Writes the smallest member
// of each vertex's component. Cooperative.
#include "linked_rows.cuh"
#include "union_find.cuh"

#define FIRST_ARCS 2  // arcs of each vertex that are joined before the largest component is guessed
#define SAMPLES 1024  // vertices that the guess looks at

// Returns the component of most of the sampled vertices, of equals the smallest, to every thread.
__device__ u32 guess_largest(i64 n, const u32* parents) {
  __shared__ u32 roots[SAMPLES];
  __shared__ u64 best[WARPS];
  for (u32 s = threadIdx.x; s < SAMPLES; s += blockDim.x) roots[s] = parents[s * n / SAMPLES];
  __syncthreads();
  u64 most = 0;
  for (u32 s = threadIdx.x; s < SAMPLES; s += blockDim.x) {
    u32 count = 0;
    for (u32 other = 0; other < SAMPLES; ++other) count += roots[other] == roots[s];
    most = max(most, (u64)count << 32 | (u32)~roots[s]);
  }
  most = warp_max(most);
  if (lane_index() == 0) best[warp_index()] = most;
  __syncthreads();
  for (u32 w = 0; w < WARPS; ++w) most = max(most, best[w]);
  return ~(u32)most;
}

// Joins the further arcs of all rows that are not in the largest component.
__device__ void join_others(const RowView<Unweighted>& rows, u32 largest, u32* parents) {
  for (i64 v = grid_thread(); v - lane_index() < rows.n; v += grid_threads()) {
    i64 begin = 0, end = 0;
    if (v < rows.n && *(volatile u32*)(parents + v) != largest) {
      end = rows.ends[v];
      begin = min(rows.begins[v] + FIRST_ARCS, end);
    }
    u32 total;
    walk_lanes(u32(end - begin), begin, total, [&](const i64* at, const u32* owner, u32) {
#pragma unroll
      for (int d = 0; d < DEPTH; ++d) {
        const u32 u = __shfl_sync(FULL, (u32)v, owner[d]);
        if (at[d] >= 0) join_parts(parents, u, rows.targets[at[d]]);
      }
      return true;
    });
  }
}
__device__ void join_others(const LinkedRows<Unweighted>& rows, u32 largest, u32* parents) {
  fold_rows(
      rows, 0u, [&](i64 v) { return *(volatile u32*)(parents + v) != largest; },
      [&](i64 v, i64 arc) {
        join_parts(parents, v, rows.targets[arc]);
        return 0u;
      },
      [](u32, u32) { return 0u; }, [](i64, u32) {});
}

template <template <class> class Rows>
__global__ void BOUNDS components(Rows<Unweighted> rows, u32* parents, Barrier* barrier) {
  const i64 n = rows.n, thread = grid_thread(), threads = grid_threads();
  for (i64 v = thread; v < n; v += threads) parents[v] = v;
  grid_sync(barrier);
  for (i64 v = thread; v < n; v += threads) {
    const i64 length = min((i64)FIRST_ARCS, rows.length(v));
    auto row = rows.walk(v);
    for (i64 k = 0; k < length; ++k) {
      if (k) row.forward(1);
      join_parts(parents, v, rows.targets[row.entry()]);
    }
  }
  grid_sync(barrier);
  for (i64 v = thread; v < n; v += threads) parents[v] = root_of(parents, v);
  grid_sync(barrier);
  // The arcs of the largest component stand in the rows of their other ends, too.
  const u32 largest = guess_largest(n, parents);
  grid_sync(barrier);
  join_others(rows, largest, parents);
  grid_sync(barrier);
  for (i64 v = thread; v < n; v += threads) parents[v] = root_of(parents, v);
}
