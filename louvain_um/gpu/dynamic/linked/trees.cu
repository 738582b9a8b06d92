// Rows of a changing graph as complete binary trees of blocks (GraphVine, 2023).
//
// Blocks come from a queue that is allocated ahead. None is ever given back, so that the queue is the
// numbers from `front` on: a prefix sum over the touched rows says whose they are. New arcs come behind
// all entries of their row, and deletions leave holes for good. A warp edits a row.
#include "batch.cuh"

__device__ __forceinline__ u32 blocks_for(u32 entries, u32 width) {
  return entries / width + (entries % width != 0);
}

template <class W>
__device__ __forceinline__ bool is_new(const Batch& b, u32 k) {
  return ((const Amount<W>*)b.old)[k] <= 0 && ((const Amount<W>*)b.fresh)[k] > 0;
}

// Counts the blocks that each of `rows` touched rows needs, and in `places` those of the rows before;
// in `given` the rows that get new arcs. Cooperative.
template <class W>
__global__ void BOUNDS count_blocks(const Batch b, i64 rows, i64 words) {
  const u32 width = words - 2;
  Barrier* barrier = &b.counts->barrier;
  u64 growing = 0;
  for (i64 r = grid_thread() / WARP; r < rows; r += grid_threads() / WARP) {
    u32 fresh = 0;
    for (u32 k = b.starts[r] + lane_index(); k < b.starts[r + 1]; k += WARP)
      fresh += is_new<W>(b, k);
    fresh = warp_sum(fresh);
    if (lane_index()) continue;
    const u32 entries = b.spans[b.rows[r]].arcs();
    b.places[r] = blocks_for(entries + fresh, width) - blocks_for(entries, width);
    growing += fresh > 0;
  }
  add_counted(&b.counts->given, growing);
  grid_sync(barrier);
  scan_many<i64>(
      rows, [=](i64 r) { return (i64)b.places[r]; },
      [=](i64 r, i64 sum, i64) {
        if (r == rows)
          b.counts->taken = sum;
        else
          b.places[r] = sum;
      },
      b.partials, barrier);
}

// Deletes and weighs anew the entries of a row that change. Whole warps call.
template <class W>
__device__ __forceinline__ void change_entries(const Batch& b, const Row& row, i64 words, u32 first,
                                               u32 last, u32* targets, W* weights) {
  const auto* fresh = (const Amount<W>*)b.fresh;
  visit_entries(targets, row, words, [&](i64 place) {
    if (place < 0) return;
    const u32 target = targets[place];
    const i64 k = lower_bound(b.keys, first, last, target);
    if (k == last || u32(b.keys[k]) != target) return;
    if (fresh[k] == 0)
      targets[place] = HOLE;
    else
      put_weight(weights, place, u64(fresh[k]));
  });
}

// Carries a batch out: `rows` touched rows, a warp each.
template <class W>
__global__ void BOUNDS edit_trees(const Batch b, i64 front, i64 words, i64 rows, u32* targets,
                                  W* weights, Row* spans) {
  const u32 lane = lane_index(), width = words - 2;
  for (i64 r = grid_thread() / WARP; r < rows; r += grid_threads() / WARP) {
    const u32 v = b.rows[r], first = b.starts[r], last = b.starts[r + 1];
    const u32 changes = b.changed[last] - b.changed[first];
    const i64 gained = b.gained[last] - b.gained[first];
    if (changes == 0) continue;
    const Row row = spans[v];
    if (changes != gained) change_entries(b, row, words, first, last, targets, weights);

    const u32 before = b.places[r], after = r + 1 < rows ? b.places[r + 1] : b.counts->taken;
    const u32 held = blocks_for(row.arcs(), width);
    const i64 fresh_block = front + before;
    const Tree tree = {targets, held || before == after ? row.low : fresh_block * words, u32(words)};
    const auto block = [&](u32 k) {
      return k > held ? (fresh_block + k - held - 1) * words : tree.block(k);
    };
    for (u32 k = held + 1 + lane; k <= held + after - before; k += WARP)
      if (k > 1) targets[block(k / 2) + width + (k & 1)] = block(k) / words;
    __syncwarp();
    u32 filled = row.arcs();
    for (u32 low = first; low < last; low += WARP) {
      const u32 k = low + lane;
      const bool mine = k < last && is_new<W>(b, k);
      const u32 found = __ballot_sync(FULL, mine);
      if (mine) {
        const u32 i = filled + __popc(found & lanes_below());
        const i64 place = block(i / width + 1) + i % width;
        targets[place] = u32(b.keys[k]);
        put_weight(weights, place, u64(((const Amount<W>*)b.fresh)[k]));
      }
      filled += __popc(found);
    }
    if (lane) continue;
    spans[v] = {tree.root, tree.root + filled};
    b.live[v] += gained;
  }
}
