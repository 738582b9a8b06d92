// Rows of a changing graph in linked blocks: chains of pages, or complete binary trees.
//
// A row's span begins at its first block and is as long as the row, holes included. `linked` of a store
// says how: CONTIGUOUS, CHAINS, or the words of a block in trees.
#pragma once
#include "search.cuh"
#include "walk_arcs.cuh"

#define CONTIGUOUS 0
#define CHAINS 1

#define HOLE 0xFFFFFFFFu  // target of an entry without an arc

// Words of a page: CHAINED arcs, and the number of the next page.
#define PAGE 16
#define CHAINED (PAGE - 1)
#define NO_NEXT 0xFFFFFFFFu

__device__ __forceinline__ i64 pages_for(i64 arcs) { return (arcs + CHAINED - 1) / CHAINED; }

__device__ __forceinline__ i64 next_page(const u32* targets, i64 page) {
  return (i64)targets[page + CHAINED] * PAGE;
}

// Block k of a row, from 1, hangs from block k / 2: behind its arcs are the numbers of two blocks.
struct Tree {
  const u32* targets;
  i64 root;
  u32 words;

  __device__ __forceinline__ u32 width() const { return words - 2; }

  __device__ __forceinline__ i64 block(u32 k) const {
    i64 at = root;
    for (int bit = 30 - __clz(k); bit >= 0; --bit)
      at = (i64)targets[at + width() + (k >> bit & 1)] * words;
    return at;
  }

  // Returns where entry i is.
  __device__ __forceinline__ i64 place(u32 i) const { return block(i / width() + 1) + i % width(); }
};

// Returns where a target is in a row; -1 where it is not.
__device__ __forceinline__ i64 find_linked(const u32* targets, const Row& row, i64 linked,
                                           u32 target) {
  const bool chain = linked == CHAINS;
  const Tree tree = {targets, row.low, (u32)linked};
  const u32 width = chain ? CHAINED : tree.width();
  i64 block = row.low;
  u32 number = 1;
  for (i64 left = row.arcs(); left > 0; left -= width) {
    for (u32 k = 0; k < width && k < left; ++k)
      if (targets[block + k] == target) return block + k;
    if (left > width) block = chain ? next_page(targets, block) : tree.block(++number);
  }
  return -1;
}

// Calls visit(place) for the entries of a row, one per lane, -1 for lanes that have none. Whole warps
// call.
template <class F>
__device__ __forceinline__ void visit_entries(const u32* targets, const Row& row, i64 linked,
                                              F visit) {
  const u32 lane = lane_index(), step = linked == CHAINS ? CHAINED : WARP;
  const Tree tree = {targets, row.low, (u32)linked};
  i64 page = row.low;
  for (i64 first = 0; first < row.arcs(); first += step) {
    const bool mine = lane < step && first + lane < row.arcs();
    if (linked == CHAINS) {
      visit(mine ? page + lane : -1);
      if (first + step < row.arcs()) page = next_page(targets, page);
    } else {
      visit(mine ? tree.place(first + lane) : -1);
    }
  }
}

// Writes the weight of an arc; unweighted graphs have none.
__device__ __forceinline__ void put_weight(Unweighted*, i64, u64) {}
template <class W>
__device__ __forceinline__ void put_weight(W* weights, i64 at, u64 weight) {
  weights[at] = W(weight);
}

// Lists the arcs of `count` rows, all of them or those of `ids`, as keys; row k's from offsets[k] on.
template <class W>
__global__ void __launch_bounds__(256, 4)
    gather_linked(i64 count, const u32* ids, const i64* offsets, const Row* spans, i64 linked,
                  const u32* targets, const W* weights, u64* keys, W* to_weights) {
  for (i64 k = grid_thread() / WARP; k < count; k += grid_threads() / WARP) {
    const u64 v = ids ? ids[k] : k;
    i64 to = offsets[k];
    visit_entries(targets, spans[v], linked, [&](i64 place) {
      const u32 target = place < 0 ? HOLE : targets[place];
      const u32 there = __ballot_sync(FULL, target != HOLE);
      if (target != HOLE) {
        const i64 at = to + __popc(there & lanes_below());
        keys[at] = v << 32 | target;
        put_weight(to_weights, at, u64(weight_at(weights, place)));
      }
      to += __popc(there);
    });
  }
}

// Writes compressed rows in blocks side by side, row v from block firsts[v] on, which is also where the
// next row's begin. Chains that may have holes have spans as long as their pages; `live` tells the arcs.
template <class W>
__global__ void __launch_bounds__(256, 4)
    fill_linked(i64 n, const i64* offsets, const u32* from_targets, const W* from_weights,
                const i64* firsts, i64 linked, u32* targets, W* weights, Row* spans, u32* live) {
  const bool chain = linked == CHAINS;
  const u32 lane = lane_index(), words = chain ? PAGE : linked, width = chain ? CHAINED : words - 2;
  for (i64 v = grid_thread() / WARP; v < n; v += grid_threads() / WARP) {
    const i64 low = offsets[v], first = firsts[v], begin = first * words;
    const u32 length = offsets[v + 1] - low, blocks = firsts[v + 1] - first, room = blocks * width;
    for (u32 i = lane; i < room; i += WARP) {
      const i64 to = begin + i64(i / width) * words + i % width;
      targets[to] = i < length ? from_targets[low + i] : HOLE;
      if (i < length) put_weight(weights, to, u64(weight_at(from_weights, low + i)));
    }
    for (u32 k = 1 + lane; k <= blocks; k += WARP) {
      if (chain)
        targets[begin + i64(k) * PAGE - 1] = k < blocks ? first + k : NO_NEXT;
      else if (k > 1)
        targets[begin + i64(k / 2 - 1) * words + width + (k & 1)] = first + k - 1;
    }
    if (lane) continue;
    spans[v] = {begin, begin + (chain && live ? room : length)};
    if (live) live[v] = length;
  }
}
