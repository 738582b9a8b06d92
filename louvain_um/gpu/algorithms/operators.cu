// The operators of users: `Functor`, what is done with an arc, a vertex or a common neighbour, is
// written in front of this text. All are launched on whole devices. *fault: 0 before, and after if
// nothing went wrong.
#include "functor.cuh"
#include "row_view.cuh"

#ifndef FUNCTOR
struct Functor {
  template <class... I>
  __device__ bool operator()(int&, I...) const { return true; }
};
#endif

// Visits the arcs of a frontier: by ranges of equal arcs, or each row by one thread, in order. out:
// null, or EMPTY for each arc, in which the k-th arc's target is written if the functor answers yes;
// with `marks`, n zeros, by one of the arcs of each target. before[i]: arcs of items before the i-th.
template <class W, class F>
__global__ void BOUNDS visit_arcs(RowView<W> rows, const u32* frontier, i64 items, i64 balanced,
                                  F functor, u32* out, u32* marks, const i64* before,
                                  int* fault) {
  int mine = 0;
  auto visit = [&](u32 u, i64 arc, i64 k) {
    const u32 v = rows.targets[arc];
    if (!functor(mine, u, v, i64(rows.weight(arc)), arc) || !out) return;
    if (!marks || (!marks[v] && !atomicExch(marks + v, 1u))) out[k] = v;
  };
  if (balanced) {
    advance(rows, frontier, items, before, visit);
  } else {
    for (i64 i = grid_thread(); i < items; i += grid_threads()) {
      const u32 u = frontier[i];
      const i64 first = rows.begins[u];
      for (i64 arc = first; arc < rows.ends[u]; ++arc) visit(u, arc, before[i] + arc - first);
    }
  }
  if (mine) *fault = mine;
}

// kept[i]: whether the functor keeps item i.
template <class F>
__global__ void BOUNDS keep_items(const u32* frontier, i64 items, F functor, bool* kept,
                                  int* fault) {
  int mine = 0;
  for (i64 i = grid_thread(); i < items; i += grid_threads()) kept[i] = functor(mine, frontier[i]);
  if (mine) *fault = mine;
}

// Visits the common neighbours of pairs, a warp per pair, and counts them. pairs: 2 * count vertices.
template <class F>
__global__ void BOUNDS visit_common(RowView<Unweighted> rows, const u32* pairs, i64 count,
                                    F functor, i64* counts, int* fault) {
  const u32 lane = lane_index();
  int mine = 0;
  for (i64 p = grid_thread() / WARP; p < count; p += grid_threads() / WARP) {
    const u32 a = pairs[2 * p], b = pairs[2 * p + 1];
    const bool swap = rows.length(a) > rows.length(b);
    const u32 shorter = swap ? b : a, longer = swap ? a : b;
    const i64 low = rows.begins[longer], high = rows.ends[longer];
    u64 found = 0;
    for (i64 arc = rows.begins[shorter] + lane; arc < rows.ends[shorter]; arc += WARP) {
      const u32 c = rows.targets[arc];
      i64 first = low, last = high;
      while (first < last) {
        const i64 middle = (first + last) / 2;
        if (rows.targets[middle] < c)
          first = middle + 1;
        else
          last = middle;
      }
      if (first == high || rows.targets[first] != c) continue;
      found += 1;
      functor(mine, a, b, c);
    }
    found = warp_sum(found);
    if (lane == 0) counts[p] = found;
  }
  if (mine) *fault = mine;
}
