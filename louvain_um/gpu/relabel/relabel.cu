// Communities between levels: carrying them over, adding them up, splitting and numbering them.
#include "walk_arcs.cuh"

#define THREADS 256
#define BOUNDS __launch_bounds__(THREADS, 4)
// Arcs that a warp takes at a time.
#define STRETCH_ARCS 1024

__device__ __forceinline__ i64 grid_thread() { return blockIdx.x * (i64)blockDim.x + threadIdx.x; }
__device__ __forceinline__ i64 grid_threads() { return gridDim.x * (i64)blockDim.x; }

// What kernels leave for the host; zero before.
struct Found {
  Barrier barrier;
  u64 inside, squares[3], communities;
};

// Visits all arcs, a warp 32 rows: visit(arc, v) with v the arc's source, or arc -1.
template <class F>
__device__ __forceinline__ void visit_all_arcs(i64 n, const i64* offsets, const Targets24* packed,
                                               F visit) {
  for (i64 v = grid_thread(); v - lane_index() < n; v += grid_threads()) {
    const Row row = v < n ? row_of(packed, offsets, v) : Row{0, 0};
    u32 total;
    walk_lanes(u32(row.arcs()), row.low, total, [&](const i64* at, const u32* owner, u32) {
#pragma unroll
      for (int d = 0; d < DEPTH; ++d) visit(at[d], __shfl_sync(FULL, (u32)v, owner[d]));
      return true;
    });
  }
}

// The same where rows follow each other: a warp takes a stretch of arcs.
template <class W, class F>
__device__ __forceinline__ void visit_all_arcs(i64 n, const i64* offsets, const W*, F visit) {
  const i64 arcs = offsets[n], stretch = stretch_of(arcs, STRETCH_ARCS);
  for (i64 low = grid_thread() / WARP * stretch; low < arcs;
       low += grid_threads() / WARP * stretch) {
    u32 mine = 0;
    auto source = [&](i64 v) {
      mine = v;
      return offsets[v];
    };
    walk_rows(offsets, find_row(offsets, 0, n, low), n, low, min(low + stretch, arcs), source,
              [&](const i64* at, const u32* owner, i64) {
#pragma unroll
                for (int d = 0; d < DEPTH; ++d) visit(at[d], __shfl_sync(FULL, mine, owner[d]));
                return true;
              });
  }
}

// carried[s] becomes the smallest number of a part in s's community; numbers[v]: the part of
// v; first: room for one entry a vertex. Cooperative.
__global__ void BOUNDS relabel_communities(i64 n, const u32* labels, const u32* numbers, u32* first,
                                    u32* carried, Found* found) {
  for (i64 v = grid_thread(); v < n; v += grid_threads()) first[v] = EMPTY;
  grid_sync(&found->barrier);
  for (i64 v = grid_thread(); v < n; v += grid_threads()) {
    u32* smallest = first + labels[v];
    u32 number = numbers[v];
    // Most vertices of a large community see that there is nothing to improve.
    if (*(volatile u32*)smallest > number) atomicMin(smallest, number);
  }
  grid_sync(&found->barrier);
  for (i64 v = grid_thread(); v < n; v += grid_threads()) carried[numbers[v]] = first[labels[v]];
}

// Returns the sum of `value` over the lanes of `peers`, which contains this lane.
template <class A>
__device__ __forceinline__ A sum_of_peers(u32 peers, A value) {
  A sum = 0;
  u32 left = peers;
  while (__any_sync(FULL, left != 0)) {
    A other = __shfl_sync(FULL, value, left ? __ffs(left) - 1 : 0);
    if (left) sum += other;
    left &= left - 1;
  }
  return sum;
}

// Adds up the communities a level starts in; totals and used: one entry a vertex. Cooperative.
template <class W, class A>
__global__ void BOUNDS sum_communities(i64 n, const i64* offsets, const u32* targets,
                                       const W* weights, const A* loops, const A* degrees,
                                       const u32* start, A* totals, u32* used, Found* found) {
  const i64 thread = grid_thread(), threads = grid_threads();
  for (i64 v = thread; v < n; v += threads) totals[v] = used[v] = 0;
  grid_sync(&found->barrier);
  u64 inside = 0;
  for (i64 v = thread; v - lane_index() < n; v += threads) {
    u32 c = v < n ? start[v] : EMPTY;
    u32 peers = __match_any_sync(FULL, c);
    A sum = sum_of_peers(peers, v < n ? degree_of(weights, degrees, offsets, v) : A(0));
    if (c == EMPTY) continue;
    if (loops) inside += 2 * (u64)loops[v];
    if (lane_index() != __ffs(peers) - 1) continue;
    if (sum) atomicAdd(totals + c, sum);
    used[c] = 1;
  }
  visit_all_arcs(n, offsets, weights, [&](i64 arc, u32 v) {
    if (arc >= 0 && start[target_at(targets, weights, arc)] == start[v])
      inside += weight_at(weights, arc);
  });
  inside = block_sum(inside);
  if (threadIdx.x == 0 && inside) atomicAdd(&found->inside, inside);
  grid_sync(&found->barrier);
  Squares squares;
  u64 communities = 0;
  for (i64 c = thread; c < n; c += threads) {
    squares.add(totals[c]);
    communities += used[c];
  }
  squares.publish(found->squares);
  communities = block_sum(communities);
  if (threadIdx.x == 0 && communities) atomicAdd(&found->communities, communities);
}

// Returns the root of v, halving the path to it; others may do the same or join roots.
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

// Joins the ends of every arc inside a community.
template <class W>
__device__ void join_ends(i64 n, const i64* offsets, const u32* targets, const W* weights,
                          const u32* labels, u32* parents) {
  visit_all_arcs(n, offsets, weights, [&](i64 arc, u32 v) {
    if (arc < 0) return;
    u32 u = target_at(targets, weights, arc);
    if (u >= v || labels[u] != labels[v]) return;
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
  });
}

// Gives each connected part of a community its smallest member as label, in place. Parents are
// never greater than their children, so the root of a part is its smallest member. Cooperative.
__global__ void BOUNDS split_communities(i64 n, const i64* offsets, const u32* targets,
                                         u32 packed, u32* labels, u32* parents, Found* found) {
  for (i64 v = grid_thread(); v < n; v += grid_threads()) parents[v] = v;
  grid_sync(&found->barrier);
  if (packed)
    join_ends(n, offsets, targets, (const Targets24*)0, labels, parents);
  else
    join_ends(n, offsets, targets, (const Unweighted*)0, labels, parents);
  grid_sync(&found->barrier);
  for (i64 v = grid_thread(); v < n; v += grid_threads()) labels[v] = root_of(parents, v);
}

// Sets each community's size and smallest member (`first`), and ranks[v]: communities whose
// smallest member is below v; found->communities. Cooperative.
__global__ void BOUNDS rank_communities(i64 n, const u32* labels, u32* sizes, u32* first,
                                        u32* ranks, u32* partials, Found* found) {
  const i64 thread = grid_thread(), threads = grid_threads();
  for (i64 c = thread; c < n; c += threads) {
    sizes[c] = 0;
    first[c] = EMPTY;
  }
  grid_sync(&found->barrier);
  for (i64 v = thread; v - lane_index() < n; v += threads) {
    u32 c = v < n ? labels[v] : EMPTY;
    u32 peers = __match_any_sync(FULL, c);
    if (c == EMPTY || lane_index() != __ffs(peers) - 1) continue;
    atomicAdd(sizes + c, __popc(peers));
    if (*(volatile u32*)(first + c) > v) atomicMin(first + c, (u32)v);
  }
  grid_sync(&found->barrier);
  grid_scan<u32>(
      n, [=](i64 v) { return u32(first[labels[v]] == v); }, ranks, partials, &found->barrier);
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) found->communities = ranks[n];
}

// Sets keys, whose order is that of descending size, ties by smallest member.
__global__ void BOUNDS key_communities(i64 n, const u32* labels, const u32* sizes,
                                       const u32* first, const u32* ranks, u64* keys) {
  for (i64 v = grid_thread(); v < n; v += grid_threads()) {
    u32 c = labels[v];
    if (first[c] == v) keys[ranks[v]] = (u64)~sizes[c] << 32 | ranks[v];
  }
}

// Renumbers labels by the order of sorted keys; `places`: one entry a community. Cooperative.
__global__ void BOUNDS number_communities(i64 n, i64 communities, const u64* keys,
                                          const u32* first, const u32* ranks, u32* places,
                                          u32* labels, Found* found) {
  for (i64 i = grid_thread(); i < communities; i += grid_threads()) places[(u32)keys[i]] = i;
  grid_sync(&found->barrier);
  for (i64 v = grid_thread(); v < n; v += grid_threads()) labels[v] = places[ranks[first[labels[v]]]];
}

// labels[v] becomes map[from[v]]; no map or no `from` stands for x -> x.
__global__ void BOUNDS follow(i64 n, const u32* map, const u32* from, u32* labels) {
  for (i64 v = grid_thread(); v < n; v += grid_threads()) {
    u32 x = from ? from[v] : v;
    labels[v] = map ? map[x] : x;
  }
}

// Adds up how rows are spread: skew[0] becomes the most arcs of a row, skew[1] the sum of the
// squares of all rows' arcs, skew[2] the rows without arcs, skew[3] the arcs of rows that have
// more than `wide`. All are 0 before.
__global__ void BOUNDS survey(i64 n, const i64* offsets, u64 wide, u64* skew) {
  u64 widest = 0, squares = 0, isolated = 0, in_wide = 0;
  for (i64 v = grid_thread(); v < n; v += grid_threads()) {
    u64 arcs = offsets[v + 1] - offsets[v];
    widest = max(widest, arcs);
    squares += arcs * arcs;
    isolated += arcs == 0;
    in_wide += arcs > wide ? arcs : 0;
  }
  widest = warp_max(widest);
  squares = block_sum(squares);
  isolated = block_sum(isolated);
  in_wide = block_sum(in_wide);
  if (lane_index() == 0 && widest) atomicMax(skew, widest);
  if (threadIdx.x == 0) {
    atomicAdd(skew + 1, squares);
    atomicAdd(skew + 2, isolated);
    atomicAdd(skew + 3, in_wide);
  }
}
