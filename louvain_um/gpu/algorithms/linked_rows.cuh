// Rows in linked blocks, walked where they lie: short ones by a thread, others by a warp. To share
// hubs, blocks are listed before (`ListedRows`), as faimGraph balances pages.
#pragma once
#include "linked.cuh"
#include "row_view.cuh"

// ends[v] − begins[v] is the length of row v, whose arcs ascend; its first block is at begins[v]. The
// counterpart of RowView, with the same answers.
template <class W>
struct LinkedRows : RowView<W> {
  i64 linked;

  __device__ __forceinline__ Walk walk(i64 v) const {
    return Walk(this->targets, Blocks(linked), this->begins[v]);
  }
};

// Calls visit(arc) for arcs lane, lane + 32, … of a row.
template <class W, class F>
__device__ __forceinline__ void walk_lane(const LinkedRows<W>& rows, i64 v, F visit) {
  visit_entries(rows.targets, {rows.begins[v], rows.ends[v]}, rows.linked, [&](i64 place) {
    if (place >= 0) visit(place);
  });
}

// A warp takes the whole row of each item.
template <class W, class F>
__device__ __forceinline__ void advance(const LinkedRows<W>& rows, const u32* frontier, i64 items,
                                        const i64* before, F visit) {
  for (i64 i = grid_thread() / WARP; i < items; i += grid_threads() / WARP) {
    const u32 u = frontier[i];
    i64 k = before[i] + lane_index();
    walk_lane(rows, u, [&](i64 arc) {
      visit(u, arc, k);
      k += WARP;
    });
  }
}

// A frontier's rows with their blocks listed: those of item i from firsts[i] on, where each begins, and
// i. A thread takes an entry, whatever its row.
template <class W>
struct ListedRows : LinkedRows<W> {
  const i64* firsts;
  const i64* places;
  const u32* owners;
};

template <class W, class F>
__device__ __forceinline__ void advance(const ListedRows<W>& rows, const u32* frontier, i64 items,
                                        const i64* before, F visit) {
  const Blocks blocks(rows.linked);
  const i64 width = blocks.width, entries = rows.firsts[items] * width;
  for (i64 e = grid_thread(); e < entries; e += grid_threads()) {
    const i64 block = e / width, slot = e % width, i = rows.owners[block];
    const i64 k = (block - rows.firsts[i]) * width + slot;
    const u32 u = frontier[i];
    if (k < rows.length(u)) visit(u, rows.places[block] + slot * blocks.step, before[i] + k);
  }
}

template <class W, class T, class P, class L, class J, class D>
__device__ __forceinline__ void fold_rows(const LinkedRows<W>& rows, T none, P wants, L load,
                                          J join, D done) {
  for (DealtRows dealt = deal(rows); dealt.more(); dealt.next()) {
    const i64 v = dealt.v;
    const bool mine = v < rows.n && wants(v);
    const i64 length = mine ? rows.length(v) : 0;
    Walk walk = rows.walk(mine ? v : 0);
    T fold = fold_short(v, 0, length, none, [&](i64, i64 i) {
      if (i) walk.forward(1);
      return load(v, walk.entry());
    }, join);
    u32 left = __ballot_sync(FULL, length > SHORT_ROW);
    while (left) {
      const int owner = __ffs(left) - 1;
      left &= left - 1;
      const i64 row = v - lane_index() + owner;
      T part = none;
      walk_lane(rows, row, [&](i64 arc) { part = join(part, load(row, arc)); });
      part = join_lanes(part, WARP, join);
      if (lane_index() == owner) fold = part;
    }
    if (mine) done(v, fold);
  }
}
