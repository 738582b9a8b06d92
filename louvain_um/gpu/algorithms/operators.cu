// The operators of users: `Functor`, what is done with an arc, a vertex or a common neighbour, is
// written in front of this text. All are launched on whole devices.
#include "functor.cuh"
#include "linked_rows.cuh"

#ifndef FUNCTOR
struct Functor {
  template <class... I>
  __device__ bool operator()(int&, I...) const { return true; }
};
#endif

// Zero before. What went wrong, if anything did, and how many vertices were found.
struct OperatorState {
  u64 fault, found;
  Barrier barrier;
};
static_assert(sizeof(OperatorState) <= STATE_BYTES, "the control block holds it");

// Visits the arcs of a frontier: by ranges of equal arcs, or each row by one thread, in order. marks:
// null, or false for each vertex; then `out` gets the targets for which the functor answers yes, once
// each, ascending. Else out is null, or EMPTY for each arc, and such targets are written at their
// arcs. before: items + 1 numbers, what comes before each item; `scanned`: whether they are there.
// They are needed for `balanced`, and for places in `out`. partials: one per block.
template <class W, template <class> class Rows, class F>
__global__ void BOUNDS visit_arcs(Rows<W> rows, const u32* frontier, i64 items, i64 balanced,
                                  i64 scanned, F functor, u32* out, bool* marks, i64* before,
                                  OperatorState* state, i64* partials) {
  int mine = 0;
  auto there = [&](u32 u) { return !fails(u >= rows.n, ABSENT, mine); };
  if (balanced && !scanned) {
    auto length = [&](i64 i) { return there(frontier[i]) ? rows.length(frontier[i]) : 0; };
    grid_scan<i64>(items, length, before, partials, &state->barrier);
    grid_sync(&state->barrier);
  }
  auto visit = [&](u32 u, i64 arc, i64 k) {
    const u32 v = rows.targets[arc];
    if (!functor(mine, u, v, i64(rows.weight(arc)), arc)) return;
    if (marks)
      marks[v] = true;
    else if (out)
      out[k] = v;
  };
  if (balanced) {
    advance(rows, frontier, items, before, visit);
  } else {
    for (i64 i = grid_thread(); i < items; i += grid_threads()) {
      const u32 u = frontier[i];
      if (!there(u)) continue;
      const i64 length = rows.length(u);
      auto row = rows.walk(u);
      for (i64 k = 0; k < length; ++k) {
        if (k) row.forward(1);
        visit(u, row.entry(), scanned ? before[i] + k : 0);
      }
    }
  }
  if (mine) state->fault = mine;
  if (!marks) return;
  grid_sync(&state->barrier);
  grid_scan_to<i64>(
      rows.n, [=](i64 v) { return i64(((volatile bool*)marks)[v]); },
      [=](i64 v, i64 sum, i64 marked) {
        if (marked) out[sum] = v;
        if (v == rows.n) state->found = sum;
      },
      partials, &state->barrier);
}

// sums[i]: what the functor returns for the arcs of row i, of vertex frontier[i], in the order of
// `fold_rows`.
template <class W, template <class> class Rows, class F>
__global__ void BOUNDS sum_arcs(Rows<W> rows, const u32* frontier, F functor, double* sums,
                                OperatorState* state) {
  int mine = 0;
  fold_rows(
      rows, 0.0, [&](i64) { return true; },
      [&](i64 i, i64 arc) -> double {
        return functor(mine, frontier[i], rows.targets[arc], i64(rows.weight(arc)), arc);
      },
      [](double a, double b) { return __dadd_rn(a, b); },
      [&](i64 i, double total) { sums[i] = __dadd_rn(total, 0.0); });
  if (mine) state->fault = mine;
}

// Lists the blocks of a frontier's rows, a thread per row, for `ListedRows`.
__global__ void BOUNDS list_blocks(LinkedRows<Unweighted> rows, const u32* frontier, i64 items,
                                   const i64* firsts, i64* places, u32* owners) {
  for (i64 i = grid_thread(); i < items; i += grid_threads())
    list_row(rows.walk(frontier[i]), firsts[i], firsts[i + 1], i, places, owners);
}

// kept[i]: whether the functor keeps item i.
template <class F>
__global__ void BOUNDS keep_items(const u32* frontier, i64 items, F functor, bool* kept,
                                  OperatorState* state) {
  int mine = 0;
  for (i64 i = grid_thread(); i < items; i += grid_threads()) kept[i] = functor(mine, frontier[i]);
  if (mine) state->fault = mine;
}

// Calls visit(c) for the common neighbours c of two vertices, one per lane. Whole warps call.
template <class W, class F>
__device__ __forceinline__ void visit_shared(const RowView<W>& rows, u32 a, u32 b, F visit) {
  const bool swap = rows.length(a) > rows.length(b);
  const u32 shorter = swap ? b : a, longer = swap ? a : b;
  const i64 low = rows.begins[longer], high = rows.ends[longer];
  for (i64 arc = rows.begins[shorter] + lane_index(); arc < rows.ends[shorter]; arc += WARP) {
    const u32 c = rows.targets[arc];
    i64 first = low, last = high;
    while (first < last) {
      const i64 middle = (first + last) / 2;
      if (rows.targets[middle] < c)
        first = middle + 1;
      else
        last = middle;
    }
    if (first < high && rows.targets[first] == c) visit(c);
  }
}

// A lane's entry of a row, of which a warp sees 32 at a time; EMPTY behind the last.
struct LaneEntry {
  Walk walk;
  i64 left;  // entries from this one on
  u32 target = EMPTY;

  __device__ __forceinline__ LaneEntry(const Walk& begin, i64 length)
      : walk(begin), left(length - lane_index()) {
    go(lane_index());
  }
  __device__ __forceinline__ void go(u32 by) {
    if (left > 0) walk.forward(by);
    target = left > 0 ? walk.targets[walk.entry()] : EMPTY;
  }
  __device__ __forceinline__ void next() {
    left -= WARP;
    go(WARP);
  }
  __device__ __forceinline__ bool more() const { return __any_sync(FULL, left > 0); }
  __device__ __forceinline__ u32 last() const { return lane_from(target, WARP - 1); }
};

// The same of rows that can only be walked: of both, 32 entries at a time; those that end first make
// room for the next.
template <class W, class F>
__device__ __forceinline__ void visit_shared(const LinkedRows<W>& rows, u32 a, u32 b, F visit) {
  LaneEntry one(rows.walk(a), rows.length(a)), other(rows.walk(b), rows.length(b));
  while (one.more() && other.more()) {
    bool shared = false;
    for (int lane = 0; lane < WARP; ++lane)
      shared |= one.target == lane_from(other.target, lane);
    if (shared && one.target != EMPTY) visit(one.target);
    const u32 last = one.last(), end = other.last();
    if (last <= end) one.next();
    if (end <= last) other.next();
  }
}

// Visits the common neighbours of pairs, a warp per pair, and counts them. pairs: 2 * count vertices.
template <template <class> class Rows, class F>
__global__ void BOUNDS visit_common(Rows<Unweighted> rows, const u32* pairs, i64 count, F functor,
                                    i64* counts, OperatorState* state) {
  int mine = 0;
  for (i64 p = grid_thread() / WARP; p < count; p += grid_threads() / WARP) {
    const u32 a = pairs[2 * p], b = pairs[2 * p + 1];
    u64 found = 0;
    visit_shared(rows, a, b, [&](u32 c) {
      found += 1;
      functor(mine, a, b, c);
    });
    found = warp_sum(found);
    if (lane_index() == 0) counts[p] = found;
  }
  if (mine) state->fault = mine;
}
