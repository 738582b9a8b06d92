// Rows of a changing graph in linked blocks: chains, or complete binary trees.
//
// A row's span begins at its first block and is as long as the row, gaps included. `linked` of a store
// says how: 0 for contiguous rows, or what `Blocks` unpacks. The row protocol is `Walk`: begin at the
// first entry, go forward, and ask where the entry is.
#pragma once
#include "search.cuh"
#include "walk_arcs.cuh"

#define GAP 0xFFFFFFFFu      // target of an entry without an arc
#define NO_NEXT 0xFFFFFFFFu  // behind a chain's last block

// What a deletion leaves, as in cpu/dynamic/linked.py: nothing, as other entries fill the gap; one
// that a later insertion fills; one for good.
#define DENSE 0
#define REFILLED 1
#define LAZY 2

// Whether rows have arcs of one direction: an edge is not in the row of its other end.
#define DIRECTED(linked) (linked >> 29 & 1)

// A block has `width` entries, whose targets are `step` words apart, and from word `link` on the
// numbers of blocks that follow: of the next one, or, in trees, of two children. Block k of a row, from
// 1, hangs from block k / 2.
struct Blocks {
  u32 words, policy, step, width, link;
  bool tree;

  __device__ __forceinline__ explicit Blocks(i64 linked)
      : words(linked & 0xFFFF), policy(linked >> 20 & 0xF), step(linked >> 25 & 0xF),
        width(linked >> 32 & 0xFFFF), link(linked >> 48), tree(linked >> 24 & 1) {}
  // Returns where the link is of the block whose last entry is at a place.
  __device__ __forceinline__ i64 link_behind(i64 last) const {
    return last + link - (i64)(width - 1) * step;
  }
  __device__ __forceinline__ u32 needed(u32 entries) const {
    return entries / width + (entries % width != 0);
  }
};

// An entry of a row: begins at the first; nothing is read of blocks that it does not go to.
struct Walk {
  const u32* targets;
  Blocks blocks;
  i64 root, block;
  u32 number = 1, slot = 0;

  __device__ __forceinline__ Walk(const u32* targets, const Blocks& blocks, i64 root)
      : targets(targets), blocks(blocks), root(root), block(root) {}
  // Returns where block k of a tree is.
  __device__ __forceinline__ i64 tree_block(u32 k) const {
    i64 at = root;
    for (int bit = 30 - __clz(k); bit >= 0; --bit)
      at = (i64)targets[at + blocks.link + (k >> bit & 1)] * blocks.words;
    return at;
  }
  __device__ __forceinline__ void next() {
    ++number;
    block = blocks.tree ? tree_block(number) : (i64)targets[block + blocks.link] * blocks.words;
  }
  __device__ __forceinline__ void forward(u32 by) {
    slot += by;
    if (blocks.tree && slot >= blocks.width) {
      number += slot / blocks.width;
      slot %= blocks.width;
      block = tree_block(number);
    }
    for (; slot >= blocks.width; slot -= blocks.width) next();
  }
  __device__ __forceinline__ i64 entry() const { return block + slot * blocks.step; }
};

// Returns where a target is in a row; -1 where it is not.
__device__ __forceinline__ i64 find_linked(const u32* targets, const Row& row, i64 linked,
                                           u32 target) {
  Walk walk(targets, Blocks(linked), row.low);
  const i64 width = walk.blocks.width;
  for (i64 left = row.arcs(); left > 0; left -= width) {
    for (walk.slot = 0; walk.slot < width && walk.slot < left; ++walk.slot)
      if (targets[walk.entry()] == target) return walk.entry();
    if (left > width) walk.next();
  }
  return -1;
}

// Lists the blocks of a row, in places at .. end - 1, with a number that tells whose they are.
__device__ __forceinline__ void list_row(Walk walk, i64 at, i64 end, u32 owner, i64* places,
                                         u32* owners) {
  for (; at < end; ++at) {
    places[at] = walk.block;
    owners[at] = owner;
    if (at + 1 < end) walk.next();
  }
}

// Calls visit(place) for the entries of a row, one per lane, -1 for lanes that have none. Whole warps
// call.
template <class F>
__device__ __forceinline__ void visit_entries(const u32* targets, const Row& row, i64 linked,
                                              F visit) {
  const i64 length = row.arcs(), lane = lane_index();
  Walk walk(targets, Blocks(linked), row.low);
  if (lane < length) walk.forward(lane);
  for (i64 i = lane; i - lane < length; i += WARP) {
    visit(i < length ? walk.entry() : -1);
    if (i + WARP < length) walk.forward(WARP);
  }
}

// Writes the weight of an arc; unweighted graphs have none.
__device__ __forceinline__ void put_weight(Unweighted*, i64, u64) {}
template <class W>
__device__ __forceinline__ void put_weight(W* weights, i64 at, u64 weight) {
  weights[at] = W(weight);
}
