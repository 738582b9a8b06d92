// What kernels of follow.cu take and leave, and how they read rows of some vertices.
#pragma once
#include "long_rows.cuh"
#include "union_find.cuh"
#include "walk_arcs.cuh"

#define BOUNDS __launch_bounds__(THREADS, 5)
// Vertices that a thread reads before it handles them.
#define AT_ONCE 4

// Marks of vertices: to move, and in a small part that fell off its community.
#define MARKED 1
#define FELL 2
// Added to the turnover of vertices of parts that fell off: all of their arcs count.
#define WHOLLY (1ull << 63)
// Flags of communities: all of their arcs are to be read, or what ends of removed edges reach.
#define FALLEN 1
#define LOOSE 2

// What the host reads back; zero before a batch.
struct FollowCounts {
  Barrier barrier;
  i64 inside;       // weight that communities gain inside, both directions
  u64 turnover;     // weight of changes that contradict them
  u64 changed;      // weight that changed in all, both directions
  u64 loosened;     // whether some community lost an edge that may have held it together
  u64 unnamed;      // whether the smallest member of one is in a part that fell off
  u64 flagged;      // whether some community is to be read whole to find its parts
  u64 checked;      // arcs read to find out
  u64 marked;       // vertices that the batch marked
  u64 split;        // vertices of parts that fell off
  u64 squares[3];   // Σ degree_c², by 32 bits
  u64 communities;
  u64 differing;    // vertices whose community has another name than before the batch
  u64 listed;
  u64 long_rows;
};
static_assert(sizeof(FollowCounts) == 136, "mirrored by COUNTS in gpu/dynamic/follow_arrays.py");

struct Follow {
  i64 n, n_before;   // vertices now, and before the batch
  const Row* spans;  // the graph after the batch
  const u32* targets;
  const void* weights;
  const u64* degrees;
  const u8* alive;
  const u8* alive_before;  // n_before
  i64 edges;               // changed ones
  const u32 *u, *v;
  const i64 *before, *after;
  const u32* names;  // n_before: communities before
  u32* whole;        // connected communities before moving
  u32* labels;       // after moving
  u32* next_names;   // the same, named
  u32* sizes;        // living members by name
  u64* masses;       // their degrees
  const u32* sizes_before;   // the same, before the batch
  const u64* masses_before;
  u32* members;      // all members by label, as moving takes and leaves them
  u64* totals;       // their degrees
  u8* marks;    // MARKED, FELL
  u8* flags;    // by name: LOOSE or FALLEN communities
  u64* touched;  // turnover of their arcs since they were last freed; see WHOLLY
  u32* first;   // scratch, one per vertex
  u64* long_rows;
  FollowCounts* counts;
};
static_assert(sizeof(Follow) == 29 * 8, "mirrored by FOLLOW in gpu/dynamic/follow_arrays.py");

__device__ __forceinline__ u32 name_before(const Follow& f, u32 v) {
  return v < f.n_before ? f.names[v] : v;
}

template <class T>
__device__ __forceinline__ void add_counted(T* counter, T mine) {
  const T sum = block_sum(mine);
  if (threadIdx.x == 0 && sum != 0) atomicAdd((u64*)counter, (u64)sum);
}

// Adds value to array[index] for every lane of a full warp; index EMPTY adds nothing.
template <class T>
__device__ __forceinline__ void add_by_peers(T* array, u32 index, T value) {
  const u32 peers = __match_any_sync(FULL, index);
  const T sum = sum_of_peers(peers, value);
  if (index != EMPTY && lane_index() == __ffs(peers) - 1 && sum) atomicAdd(array + index, sum);
}

// Lowers smallest[label_of(v)] to v for every vertex; label EMPTY is of none. Each waits for the memory
// twice: several at a time.
template <class L>
__device__ __forceinline__ void find_smallest(const Follow& f, L label_of, u32* smallest) {
  for (i64 low = grid_thread(); low - lane_index() < f.n; low += AT_ONCE * grid_threads()) {
    u32 label[AT_ONCE], known[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const i64 v = low + k * grid_threads();
      label[k] = v < f.n ? label_of(v) : EMPTY;
    }
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) known[k] = label[k] == EMPTY ? 0 : smallest[label[k]];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const u32 v = low + k * grid_threads();
      const bool lower = known[k] > v;
      if (!__any_sync(FULL, lower)) continue;
      // One lane for each community, and none where others have been: accesses to one address wait
      // for each other. What was read above may have lain in a cache.
      const u32 peers = __match_any_sync(FULL, lower ? label[k] : EMPTY);
      if (!lower || lane_index() != __ffs(peers) - 1) continue;
      if (*(volatile u32*)(smallest + label[k]) > v) atomicMin(smallest + label[k], v);
    }
  }
}

// Calls visit(at, owner's vertex) for every arc of the vertices that `wanted` names; `at` is −1 for
// none. Holds a barrier of the grid; counts->long_rows is 0 before, and again after the next one.
template <class P, class F>
__device__ __forceinline__ void visit_rows(const Follow& f, P wanted, F visit) {
  for (i64 v = grid_thread(); v - lane_index() < f.n; v += grid_threads()) {
    u32 length = 0;
    i64 low = 0;
    if (v < f.n && wanted(v)) {
      const Row row = f.spans[v];
      low = row.low;
      length = row.arcs();
      if (set_aside(f.long_rows, &f.counts->long_rows, v, length)) length = 0;
    }
    if (!__any_sync(FULL, length)) continue;
    u32 total;
    walk_lanes(length, low, total, [&](const i64* at, const u32* owner, u32) {
#pragma unroll
      for (int d = 0; d < DEPTH; ++d) visit(at[d], __shfl_sync(FULL, (u32)v, owner[d]));
      return true;
    });
  }
  grid_sync(&f.counts->barrier);
  visit_long_rows(f.long_rows, &f.counts->long_rows, [&](u32 v, i64 first) {
    const Row row = f.spans[v];
    const i64 end = min(row.low + first + CHUNK, row.high);
    for (i64 j = row.low + first + lane_index(); j < end; j += WARP) visit(j, v);
  });
  grid_sync(&f.counts->barrier);
  if (grid_thread() == 0) f.counts->long_rows = 0;
}
