// Rows of a changing graph as chains of pages, which threads take from a queue and give back to it
// (Winter, Mlakar, Zayer, Seidel, Steinberger: faimGraph, SC 2018), or never give back (aimGraph).
//
// Entries of a row are in no order. A deletion leaves a hole, which an insertion fills; in faimGraph
// the row's last entry does otherwise, so that rows stay dense. In aimGraph rows keep their pages, and
// their spans tell the entries of these. A warp edits a row; hubs take as long as their chains are.
#include "batch.cuh"
#include "chunks.cuh"

// Free pages, how many have ever been in use, and how many have been asked for.
struct PageQueue {
  ouroboros::FreeChunks free;
  u64 cut, asked;
};
static_assert(sizeof(PageQueue) == 256, "mirrored by QUEUE in dynamic/stores/on_device/pages.py");

// Where rows take pages from, during a batch: the queue, and what it held before.
struct Supply {
  PageQueue* queue;
  i64 count, front, cut, asked;

  // Returns a page that was free before the batch; once these are gone, one that was never in use.
  // One addition says which, so that no thread tries in vain while thousands come.
  __device__ __forceinline__ u32 take() const {
    const i64 turn = (i64)atomicAdd(&queue->asked, 1ull) - asked;
    if (turn >= count) {
      atomicAdd(&queue->cut, 1ull);
      return u32(cut + turn - count);
    }
    atomicAdd(&queue->free.front, 1ull);
    atomicAdd(&queue->free.count, ~0ull);  // less 1
    return atomicExch(&queue->free.ring[(front + turn) & queue->free.mask], ouroboros::NONE);
  }
};

// A row and its changes; lengths are of what its span tells.
struct Chain {
  i64 begin;
  u32 length, after, first, last;
};

// Returns the place of a target's change; `last` if it has none.
__device__ __forceinline__ u32 change_of(const Batch& b, const Chain& row, u32 target) {
  const u32 k = lower_bound(b.keys, row.first, row.last, target);
  return k < row.last && u32(b.keys[k]) == target ? k : row.last;
}

// What fills holes: entries of a row behind its new end, then arcs that are new. Whole warps call.
template <class W>
struct Filling {
  const Batch& b;
  const Chain& row;
  const u32* targets;
  const W* weights;
  u32* ready;  // entries that wait, of this warp
  u64* weighing;
  i64 page;    // the next one to read, whose first entry is `at`
  u32 at, change, count = 0, used = 0;

  __device__ Filling(const Batch& b, const Chain& row, const u32* targets, const W* weights,
                     u32* ready, u64* weighing)
      : b(b), row(row), targets(targets), weights(weights), ready(ready), weighing(weighing),
        page(row.begin), at(row.length), change(row.first) {
    if (row.after >= row.length) return;
    for (at = 0; at + CHAINED <= row.after; at += CHAINED) page = next_page(targets, page);
  }

  // Has at least one entry wait, unless none is left.
  __device__ void more() {
    const auto* old = (const Amount<W>*)b.old;
    const auto* fresh = (const Amount<W>*)b.fresh;
    const u32 lane = lane_index();
    while (used == count && (at < row.length || change < row.last)) {
      bool mine = false;
      u32 target = 0;
      u64 weight = 0;
      if (at < row.length) {
        const u32 i = at + lane;
        if (lane < CHAINED && i >= row.after && i < row.length) {
          target = targets[page + lane];
          const u32 k = change_of(b, row, target);
          mine = k == row.last || fresh[k] != 0;
          weight = k == row.last ? u64(weight_at(weights, page + lane)) : u64(fresh[k]);
        }
        at += CHAINED;
        if (at < row.length) page = next_page(targets, page);
      } else {
        const u32 k = change + lane;
        mine = k < row.last && old[k] <= 0 && fresh[k] > 0;
        if (mine) target = u32(b.keys[k]), weight = fresh[k];
        change += WARP;
      }
      const u32 found = __ballot_sync(FULL, mine);
      if (mine) {
        const u32 rank = __popc(found & lanes_below());
        ready[rank] = target;
        weighing[rank] = weight;
      }
      count = __popc(found);
      used = 0;
      __syncwarp();
    }
  }
};

// Edits a row; returns where it begins. Whole warps call.
template <class W>
__device__ __forceinline__ i64 edit_chain(const Batch& b, const Chain& row, const Supply& pages,
                                          u32* targets, W* weights, u32* ready, u64* weighing) {
  const auto* fresh = (const Amount<W>*)b.fresh;
  const u32 lane = lane_index();
  const u32 held = pages_for(row.length), wanted = pages_for(row.after);
  Filling<W> filling(b, row, targets, weights, ready, weighing);
  i64 begin = row.begin, page = row.begin, before = 0;
  for (u32 j = 0; j < wanted; ++j) {
    if (j >= held) {
      u32 taken = 0;
      if (lane == 0) {
        taken = pages.take();
        if (j) targets[before + CHAINED] = taken;
      }
      page = (i64)__shfl_sync(FULL, taken, 0) * PAGE;
      if (j == 0) begin = page;
    }
    const u32 i = j * CHAINED + lane;
    bool hole = lane < CHAINED && i < row.after;
    if (hole && i < row.length) {
      const u32 target = targets[page + lane], k = change_of(b, row, target);
      hole = target == HOLE || (k < row.last && fresh[k] == 0);
      if (k < row.last && !hole) put_weight(weights, page + lane, u64(fresh[k]));
    }
    const u32 holes = __ballot_sync(FULL, hole), rank = __popc(holes & lanes_below());
    for (u32 done = 0; done < __popc(holes);) {
      filling.more();
      const u32 now = min(filling.count - filling.used, __popc(holes) - done);
      const bool waits = hole && rank >= done;
      if (waits && rank < done + now) {
        targets[page + lane] = ready[filling.used + rank - done];
        put_weight(weights, page + lane, weighing[filling.used + rank - done]);
      } else if (waits && now == 0) {
        targets[page + lane] = HOLE;
      }
      if (now == 0) break;
      filling.used += now;
      done += now;
      __syncwarp();
    }
    before = page;
    if (j + 1 < held) page = next_page(targets, page);
  }
  __syncwarp();
  if (lane) return begin;
  i64 left = page;  // the first page that the row leaves, if it leaves any
  if (wanted) targets[before + CHAINED] = NO_NEXT;
  for (u32 j = wanted; j < held; ++j) {
    const i64 next = j + 1 < held ? next_page(targets, left) : 0;
    pages.queue->free.give(left / PAGE);
    left = next;
  }
  return begin;
}

// Carries a batch out: `rows` touched rows, a warp each. `count` to `asked` are the queue's before it.
template <class W>
__global__ void BOUNDS edit_chains(const Batch b, PageQueue* queue, i64 count, i64 front, i64 cut,
                                   i64 asked, i64 rows, u32* targets, W* weights, Row* spans) {
  const Supply pages = {queue, count, front, cut, asked};
  __shared__ u32 ready[THREADS / WARP][WARP];
  __shared__ u64 weighing[THREADS / WARP][WARP];
  const u32 warp = warp_index();
  for (i64 r = grid_thread() / WARP; r < rows; r += grid_threads() / WARP) {
    const u32 v = b.rows[r], first = b.starts[r], last = b.starts[r + 1];
    if (b.changed[first] == b.changed[last]) continue;
    const u32 length = spans[v].arcs(), gained = b.gained[last] - b.gained[first];
    u32 after = length + gained;
    if (b.live) after = max(length, u32(CHAINED * pages_for(b.live[v] + gained)));
    const Chain row = {spans[v].low, length, after, first, last};
    const i64 begin = edit_chain(b, row, pages, targets, weights, ready[warp], weighing[warp]);
    __syncwarp();
    if (lane_index()) continue;
    spans[v] = {begin, begin + after};
    if (b.live) b.live[v] += gained;
  }
}
