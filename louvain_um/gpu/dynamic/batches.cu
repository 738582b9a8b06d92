// Batches on a changing graph: searching its rows, merging changes into them, moving rows.
//
// Rows are contiguous and ascending, at `begins`, of `lengths`. Work is split by arcs, not by rows,
// so that a hub takes as many warps as its arcs need. Every place is written by one thread; results
// do not depend on the order of threads.
#include "grid.cuh"
#include "search.cuh"

#define THREADS 256
#define BOUNDS __launch_bounds__(THREADS, 4)
// Arcs that a warp takes at a time.
#define STRETCH_ARCS 1024

// Writes the weight of an arc; unweighted graphs have none.
__device__ __forceinline__ void put_weight(Unweighted*, i64, u64) {}
template <class W>
__device__ __forceinline__ void put_weight(W* weights, i64 at, u64 weight) {
  weights[at] = W(weight);
}

// Returns the first place in low..high - 1 whose target is not below `target`; high for none.
// Targets are the lower halves of what is searched.
template <class T>
__device__ __forceinline__ i64 lower_bound(const T* sorted, i64 low, i64 high, u32 target) {
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (u32(sorted[middle]) < target)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Calls visit(row, place) for every item of all rows; work[r] is the number of items before row r.
template <class F>
__device__ __forceinline__ void visit_items(i64 rows, const i64* work, F visit) {
  const i64 items = work[rows];
  for (i64 low = grid_thread() / WARP * STRETCH_ARCS; low < items;
       low += grid_threads() / WARP * STRETCH_ARCS) {
    const i64 high = min(low + STRETCH_ARCS, items);
    i64 row = last_at_most(work, u32(rows), low);
    for (i64 item = low + grid_thread() % WARP; item < high; item += WARP) {
      while (work[row + 1] <= item) ++row;
      visit(row, item - work[row]);
    }
  }
}

// found[i] becomes the weight of arc u[i] -> v[i], 0 where there is none.
template <class W>
__global__ void BOUNDS find_arcs(i64 count, const i64* begins, const i64* ends, const u32* targets,
                                 const W* weights, const u32* u, const u32* v, i64* found) {
  for (i64 i = grid_thread(); i < count; i += grid_threads()) {
    const i64 high = ends[u[i]], at = lower_bound(targets, begins[u[i]], high, v[i]);
    found[i] = at < high && targets[at] == v[i] ? i64(weight_at(weights, at)) : 0;
  }
}

// Writes rows with changes merged in, row r from out[r] on. Changes of row r are
// changes[r]..changes[r + 1] - 1: keys ascend, with weights before and after, 0 for no arc;
// gained[k] is the number of arcs that changes before k add. Rows written overlap no row read.
template <class W>
__global__ void BOUNDS merge_rows(i64 rows, const i64* work, const i64* begins, const i64* lengths,
                                  const i64* changes, const i64* out, const u64* keys,
                                  const i64* before, const i64* after, const i64* gained,
                                  const u32* targets, const W* weights, u32* out_targets,
                                  W* out_weights) {
  visit_items(rows, work, [&](i64 row, i64 place) {
    const i64 begin = begins[row], length = lengths[row];
    const i64 first = changes[row], last = changes[row + 1];
    if (place < length) {
      const u32 target = targets[begin + place];
      const i64 k = lower_bound(keys, first, last, target);
      const bool changed = k < last && u32(keys[k]) == target;
      if (changed && after[k] == 0) return;
      const i64 at = out[row] + place + gained[k] - gained[first];
      out_targets[at] = target;
      put_weight(out_weights, at,
                 changed ? u64(after[k]) : u64(weight_at(weights, begin + place)));
    } else {
      const i64 k = first + place - length;
      if (before[k] != 0) return;
      const u32 target = u32(keys[k]);
      const i64 at = out[row] + lower_bound(targets, begin, begin + length, target) - begin +
                     gained[k] - gained[first];
      out_targets[at] = target;
      put_weight(out_weights, at, u64(after[k]));
    }
  });
}

// Copies rows of work[r + 1] - work[r] arcs within the pool, from from[r] to to[r].
template <class W>
__global__ void BOUNDS copy_rows(i64 rows, const i64* work, const i64* from, const i64* to,
                                 u32* targets, W* weights) {
  visit_items(rows, work, [&](i64 row, i64 place) {
    targets[to[row] + place] = targets[from[row] + place];
    put_weight(weights, to[row] + place, u64(weight_at((const W*)weights, from[row] + place)));
  });
}
