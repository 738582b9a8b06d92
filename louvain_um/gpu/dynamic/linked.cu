// Batches on rows in linked blocks, which rows take from a queue as they grow.
//
// (aimGraph: Winter, Zayer, Steinberger, HPEC 2017. faimGraph: Winter, Mlakar, Zayer, Seidel,
// Steinberger, SC 2018. GraphVine, 2023.) Entries of a row are in no order. A deletion leaves a gap.
// In dense rows another entry fills it, and blocks that empty go back to the queue; else rows keep
// their blocks. A warp edits a row; hubs take as long as their chains are.
#include "batch.cuh"
#include "chunks.cuh"

// Free blocks, or ids of removed vertices; how many have ever been in use, and how many have been
// asked for.
struct BlockQueue {
  ouroboros::FreeChunks free;
  u64 cut, asked;
};
static_assert(sizeof(BlockQueue) == 256, "mirrored by QUEUE in dynamic/stores/on_device/linked.py");

// Where rows take blocks from, during a batch: the queue, and what it held before.
struct Supply {
  BlockQueue* queue;
  i64 count, front, cut, asked;

  // Returns a block that was free before the batch; once these are gone, one that was never in use.
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

// Queues the ids of removed vertices, in their order, whatever that of the threads: vertices that come
// depend on what has been removed alone. `back` is where the queue ended before.
__global__ void BOUNDS give_ids(BlockQueue* queue, i64 back, i64 count, const u32* ids) {
  for (i64 i = grid_thread(); i < count; i += grid_threads()) {
    atomicExch(&queue->free.ring[(back + i) & queue->free.mask], ids[i]);
    ouroboros::add_together(&queue->free.back, 1);
    ouroboros::add_together(&queue->free.count, 1);
  }
}

// Takes the ids that were queued first, for so many vertices.
__global__ void BOUNDS take_ids(BlockQueue* queue, i64 count, i64 front, i64 cut, i64 asked,
                                i64 wanted, u32* ids) {
  const Supply supply = {queue, count, front, cut, asked};
  for (i64 i = grid_thread(); i < wanted; i += grid_threads()) ids[i] = supply.take();
}

// A row and its changes; lengths are of entries, gaps included.
struct Edited {
  i64 begin;
  u32 length, after, first, last;
};

template <class W>
__device__ __forceinline__ bool is_new(const Batch& b, u32 k) {
  return ((const Amount<W>*)b.old)[k] <= 0 && ((const Amount<W>*)b.fresh)[k] > 0;
}

// Returns row r with its length after the batch, or, if arcs may be `mixed`, after those that are new
// alone. Whole warps call.
template <class W>
__device__ __forceinline__ Edited edited_row(const Batch& b, const Blocks& blocks, i64 r,
                                             bool mixed = false) {
  const Row row = b.spans[b.rows[r]];
  const u32 first = b.starts[r], last = b.starts[r + 1], length = row.arcs();
  u32 gained = b.gained[last] - b.gained[first], fresh = 0;
  if (mixed || blocks.policy == LAZY) {
    for (u32 k = first + lane_index(); k < last; k += WARP) fresh += is_new<W>(b, k);
    gained = warp_sum(fresh);
  }
  u32 after = length + gained;
  if (blocks.policy == REFILLED)
    after = max(length, blocks.width * blocks.needed(b.live[b.rows[r]] + gained));
  return {row.low, length, after, first, last};
}

// Counts the blocks that `rows` touched rows may need beyond theirs in `taken`, and in `given` the rows
// that get longer.
template <class W>
__global__ void BOUNDS count_blocks(const Batch b, i64 linked, i64 rows, i64 mixed) {
  const Blocks blocks(linked);
  u64 taken = 0, growing = 0;
  for (i64 r = grid_thread() / WARP; r < rows; r += grid_threads() / WARP) {
    const Edited row = edited_row<W>(b, blocks, r, mixed);
    if (lane_index()) continue;
    const u32 held = blocks.needed(row.length), wanted = blocks.needed(row.after);
    u32 more = wanted > held ? wanted - held : 0;
    if (mixed && blocks.policy == DENSE) {  // a deletion may give back what is then lacking again
      const u32 fresh = row.after - row.length;
      more = min(fresh, more + fresh - (b.gained[row.last] - b.gained[row.first]));
    }
    taken += more;
    growing += row.after > row.length;
  }
  add_counted(&b.counts->taken, taken);
  add_counted(&b.counts->given, growing);
}

// Returns the place of a target's change; `last` if it has none.
__device__ __forceinline__ u32 change_of(const Batch& b, const Edited& row, u32 target) {
  const u32 k = lower_bound(b.keys, row.first, row.last, target);
  return k < row.last && u32(b.keys[k]) == target ? k : row.last;
}

// What fills gaps: entries of a row behind its new end, then arcs that are new. Whole warps call.
template <class W>
struct Filling {
  const Batch& b;
  const Edited& row;
  const W* weights;
  u32* ready;  // entries that wait, of this warp
  u64* weighing;
  Walk walk;  // to entry `at`, and further by lane
  u32 at, change, count = 0, used = 0;

  __device__ Filling(const Batch& b, const Edited& row, const Walk& begin, const W* weights,
                     u32* ready, u64* weighing)
      : b(b), row(row), weights(weights), ready(ready), weighing(weighing), walk(begin),
        at(min(row.after, row.length)), change(row.first) {
    if (at + lane_index() < row.length) walk.forward(at + lane_index());
  }

  // Has at least one entry wait, unless none is left.
  __device__ void more() {
    const auto* fresh = (const Amount<W>*)b.fresh;
    const u32 lane = lane_index();
    while (used == count && (at < row.length || change < row.last)) {
      bool mine = false;
      u32 target = 0;
      u64 weight = 0;
      if (at < row.length) {
        if (at + lane < row.length) {
          target = walk.targets[walk.entry()];
          const u32 k = change_of(b, row, target);
          mine = k == row.last || fresh[k] != 0;
          weight = k == row.last ? u64(weight_at(weights, walk.entry())) : u64(fresh[k]);
        }
        at += WARP;
        if (at + lane < row.length) walk.forward(WARP);
      } else {
        const u32 k = change + lane;
        mine = k < row.last && is_new<W>(b, k);
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

// The blocks of a row, of which some are new: the `reached`-th is at `block`. Whole warps call.
struct Chain {
  const Supply& supply;
  u32* targets;
  Walk walk;
  u32 held, reached;

  __device__ Chain(const Supply& supply, u32* targets, const Blocks& blocks, const Edited& row)
      : supply(supply), targets(targets), walk(targets, blocks, row.begin),
        held(blocks.needed(row.length)), reached(blocks.tree ? held : min(held, 1u)) {}

  // Goes to block `number`; blocks that the row lacks are taken and linked.
  __device__ void reach(u32 number) {
    while (reached < number) {
      if (++reached <= held) {
        walk.next();
        continue;
      }
      const Blocks& blocks = walk.blocks;
      u32 taken = 0;
      if (lane_index() == 0) {
        taken = supply.take();
        const i64 above = blocks.tree && reached > 1 ? walk.tree_block(reached / 2) : walk.block;
        if (reached > 1) targets[above + blocks.link + (blocks.tree ? reached & 1 : 0)] = taken;
      }
      walk.block = (i64)__shfl_sync(FULL, taken, 0) * blocks.words;
      if (reached == 1) walk.root = walk.block;
      __syncwarp();
    }
  }

  // Ends the row at the block reached; gives those behind it back. One lane calls.
  __device__ void cut() const {
    const Blocks& blocks = walk.blocks;
    if (blocks.tree) return;
    i64 block = walk.block;
    if (reached) {
      const u32 next = targets[block + blocks.link];
      targets[block + blocks.link] = NO_NEXT;
      block = (i64)next * blocks.words;
    }
    for (u32 left = reached; left < held; ++left) {
      const u32 next = targets[block + blocks.link];
      supply.queue->free.give(block / blocks.words);
      block = (i64)next * blocks.words;
    }
  }
};

// Marks an entry as a gap or weighs it anew, where it lies, if it changes.
template <class W>
__device__ __forceinline__ void change_entry(const Batch& b, const Edited& row, i64 place,
                                             u32* targets, W* weights) {
  const u32 k = change_of(b, row, targets[place]);
  if (k == row.last) return;
  const u64 after = ((const Amount<W>*)b.fresh)[k];
  if (after)
    put_weight(weights, place, after);
  else
    targets[place] = GAP;
}

// Edits a row; returns where it begins. Whole warps call.
template <class W>
__device__ __forceinline__ i64 edit_row(const Batch& b, const Edited& row, i64 linked,
                                        const Supply& supply, u32* targets, W* weights, u32* ready,
                                        u64* weighing) {
  const auto* fresh = (const Amount<W>*)b.fresh;
  const u32 lane = lane_index();
  const Blocks blocks(linked);
  const bool lazy = blocks.policy == LAZY;
  if (lazy) {
    visit_entries(targets, {row.begin, row.begin + row.length}, linked, [&](i64 place) {
      if (place >= 0) change_entry(b, row, place, targets, weights);
    });
    __syncwarp();
  }
  Chain chain(supply, targets, blocks, row);
  Filling<W> filling(b, row, chain.walk, weights, ready, weighing);
  Walk walk = chain.walk;
  const u32 begin = lazy ? row.length : 0;
  for (u32 low = begin; low < row.after; low += WARP) {
    chain.reach(blocks.needed(min(low + WARP, row.after)));
    const u32 i = low + lane;
    bool gap = i < row.after;
    if (low == begin) walk.root = walk.block = chain.walk.root;
    if (gap) walk.forward(low == begin ? i : WARP);
    const i64 place = walk.entry();
    if (gap && i < row.length) {
      const u32 target = targets[place], k = change_of(b, row, target);
      gap = target == GAP || (k < row.last && fresh[k] == 0);
      if (k < row.last && !gap) put_weight(weights, place, u64(fresh[k]));
    }
    const u32 gaps = __ballot_sync(FULL, gap), rank = __popc(gaps & lanes_below());
    for (u32 done = 0; done < __popc(gaps);) {
      filling.more();
      const u32 now = min(filling.count - filling.used, __popc(gaps) - done);
      const bool waits = gap && rank >= done;
      if (waits && rank < done + now) {
        targets[place] = ready[filling.used + rank - done];
        put_weight(weights, place, weighing[filling.used + rank - done]);
      } else if (waits && now == 0) {
        targets[place] = GAP;
      }
      if (now == 0) break;
      filling.used += now;
      done += now;
      __syncwarp();
    }
  }
  __syncwarp();
  if (row.after == 0) chain.reached = 0;
  if (lane == 0) chain.cut();
  return chain.walk.root;
}

// Where a worker found what its change needs in a row; −1 for nothing.
struct Spot {
  i64 begin;         // of the row, which the worker has locked; below 0: another has
  i64 wanted, gap;   // the entry of the target, and one without an arc
  i64 last, before;  // the row's last entry, and the one before it
};

// Lets the threads of a worker meet.
__device__ __forceinline__ void meet(i64 lanes) {
  if (lanes == WARP) __syncwarp();
  if (lanes == THREADS) __syncthreads();
}

// The lock of a row is the sign of where it begins. Returns where; below 0 if another worker has it.
__device__ __forceinline__ i64 try_lock(Row& row) {
  i64 begin = ((volatile Row*)&row)->low;
  if (begin >= 0) begin = atomicOr((u64*)&row.low, 1ull << 63);
  __threadfence();
  return begin;
}

// Leaves a row to others as it is now.
__device__ __forceinline__ void unlock(Row& row, i64 begin, i64 length) {
  row.high = begin + length;
  __threadfence();
  atomicExch((u64*)&row.low, (u64)begin);
}

// Looks at every entry of a locked row. All threads of a worker call.
__device__ __forceinline__ void look_through(const u32* targets, const Blocks& blocks, i64 length,
                                             u32 target, i64 rank, i64 lanes, Spot& spot) {
  Walk walk(targets, blocks, spot.begin);
  if (rank < length) walk.forward(rank);
  for (i64 i = rank; i < length; i += lanes) {
    const i64 place = walk.entry();
    const u32 there = targets[place];
    if (there == target) spot.wanted = place;
    if (there == GAP) atomicMax(&spot.gap, place);
    if (i + 1 == length) spot.last = place;
    if (i + 2 == length) spot.before = place;
    if (i + lanes < length) walk.forward(lanes);
  }
}

// Changes an arc of a locked row of so many entries to a weight, 0 to delete it, and unlocks the row.
template <class W>
__device__ __forceinline__ void change_arc(Row& row, const Spot& spot, const Blocks& blocks,
                                           const Supply& supply, i64 length, u32 target, u64 weight,
                                           u32* targets, W* weights) {
  i64 begin = spot.begin, place = spot.wanted;
  if (place >= 0 && weight == 0) {
    targets[place] = GAP;
    if (blocks.policy == DENSE) {
      targets[place] = targets[spot.last];
      put_weight(weights, place, u64(weight_at(weights, spot.last)));
      if (--length % blocks.width == 0) {
        if (length) targets[blocks.link_behind(spot.before)] = NO_NEXT;
        supply.queue->free.give(spot.last / blocks.words);
      }
    }
  } else if (place < 0) {
    place = spot.gap >= 0 ? spot.gap : spot.last + blocks.step;
    if (spot.gap < 0 && length % blocks.width == 0) {
      const u32 block = supply.take();
      place = (i64)block * blocks.words;
      if (length)
        targets[blocks.link_behind(spot.last)] = block;
      else
        begin = place;
      targets[place + blocks.link] = NO_NEXT;
      for (u32 k = 1; blocks.policy == REFILLED && k < blocks.width; ++k, ++length)
        targets[place + k * blocks.step] = GAP;
    }
    length += spot.gap < 0;
    targets[place] = target;
  }
  if (weight) put_weight(weights, place, weight);
  unlock(row, begin, length);
}

// Carries a batch out update by update: a worker of `lanes` threads for each arc that changes, insertions
// and deletions side by side. Workers take arcs in an order that spreads those of a row, which its lock
// lets in one by one; chains alone are edited so. `count` to `asked` as below.
template <class W>
__global__ void BOUNDS edit_arcs(const Batch b, i64 linked, BlockQueue* queue, i64 count, i64 front,
                                 i64 cut, i64 asked, i64 lanes, u32* targets, W* weights,
                                 Row* spans, u8* ascending) {
  const Supply supply = {queue, count, front, cut, asked};
  const Blocks blocks(linked);
  const auto* old = (const Amount<W>*)b.old;
  const auto* fresh = (const Amount<W>*)b.fresh;
  __shared__ Spot spots[THREADS];
  const i64 rank = threadIdx.x % lanes;
  Spot& spot = spots[threadIdx.x / lanes];
  const u64 listed = 2 * b.listed, places = 1ull << (64 - __clzll(listed - 1));
  for (u64 i = grid_thread() / lanes; i < places; i += grid_threads() / lanes) {
    const u64 k = i * 0x9E3779B1ull & (places - 1);  // each once, far from the one before
    if (k >= listed || old[k] == fresh[k] || fresh[k] < 0) continue;  // below 0: a loop
    const u32 v = b.keys[k] >> 32, target = u32(b.keys[k]);
    ouroboros::Wait wait;
    for (bool open = true; open;) {
      if (rank == 0) spot = {try_lock(spans[v]), -1, -1, -1, -1};
      meet(lanes);
      open = spot.begin < 0;
      if (!open) {
        const i64 length = ((volatile Row*)spans)[v].high - spot.begin;
        look_through(targets, blocks, length, target, rank, lanes, spot);
        meet(lanes);
        if (rank == 0) {
          const bool added = spot.wanted < 0;
          if (added || fresh[k] == 0) {
            ascending[v] = 0;
            if (b.live) b.live[v] += added ? 1 : -1;
          }
          change_arc(spans[v], spot, blocks, supply, length, target, u64(fresh[k]), targets,
                     weights);
        }
      } else {
        meet(lanes);
        wait();
      }
    }
  }
}

// Edits a row of a tree whose gaps stay; returns it. One thread calls.
template <class W>
__device__ __forceinline__ Row edit_alone(const Batch& b, const Edited& row, i64 linked,
                                          const Supply& supply, u32* targets, W* weights) {
  const Blocks blocks(linked);
  Walk walk(targets, blocks, row.begin);
  for (u32 i = 0; i < row.length; ++i) {
    if (i) walk.forward(1);
    change_entry(b, row, walk.entry(), targets, weights);
  }
  u32 length = row.length;
  for (u32 k = row.first; k < row.last; ++k) {
    if (!is_new<W>(b, k)) continue;
    const u32 slot = length % blocks.width, number = length / blocks.width + 1;
    if (slot == 0) {
      const u32 taken = supply.take();
      walk.block = (i64)taken * blocks.words;
      if (length)
        targets[walk.tree_block(number / 2) + blocks.link + (number & 1)] = taken;
      else
        walk.root = walk.block;
    }
    targets[walk.block + slot] = u32(b.keys[k]);
    put_weight(weights, walk.block + slot, u64(((const Amount<W>*)b.fresh)[k]));
    ++length;
  }
  return {walk.root, walk.root + length};
}

// Carries a batch out: `rows` touched rows, a warp each, or, of trees whose gaps stay, one of `lanes`
// threads. `count` to `asked` are the queue's before it. Rows that change are marked as not ascending.
template <class W>
__global__ void BOUNDS edit_linked(const Batch b, i64 linked, BlockQueue* queue, i64 count,
                                   i64 front, i64 cut, i64 asked, i64 lanes, i64 rows, u32* targets,
                                   W* weights, Row* spans, u8* ascending) {
  const Supply supply = {queue, count, front, cut, asked};
  const Blocks blocks(linked);
  __shared__ u32 ready[WARPS][WARP];
  __shared__ u64 weighing[WARPS][WARP];
  const u32 warp = warp_index();
  for (i64 r = grid_thread() / lanes; r < rows; r += grid_threads() / lanes) {
    const u32 v = b.rows[r], first = b.starts[r], last = b.starts[r + 1];
    if (b.changed[first] == b.changed[last]) continue;
    if (lanes == 1) {
      const u32 length = spans[v].arcs();
      const Edited row = {spans[v].low, length, length, first, last};
      spans[v] = edit_alone(b, row, linked, supply, targets, weights);
    } else {
      const Edited row = edited_row<W>(b, blocks, r);
      const i64 begin =
          edit_row(b, row, linked, supply, targets, weights, ready[warp], weighing[warp]);
      __syncwarp();
      if (lane_index()) continue;
      spans[v] = {begin, begin + row.after};
    }
    ascending[v] = 0;
    if (b.live) b.live[v] += b.gained[last] - b.gained[first];
  }
}

// A query in two kernels, as GraphVine has it: the first lists the blocks of rows u, a thread each,
// those of row u[i] from firsts[i] on.
__global__ void BOUNDS list_rows(i64 count, const u32* u, const i64* firsts, const Row* spans,
                                 i64 linked, const u32* targets, i64* places, u32* owners) {
  for (i64 i = grid_thread(); i < count; i += grid_threads())
    list_row({targets, Blocks(linked), spans[u[i]].low}, firsts[i], firsts[i + 1], i, places, owners);
}

// The second has a thread for each entry of these: found[i] becomes the weight of arc u[i] -> v[i].
template <class W>
__global__ void BOUNDS find_listed(i64 blocks, const u32* u, const u32* v, const i64* firsts,
                                   const Row* spans, i64 linked, const i64* places,
                                   const u32* owners, const u32* targets, const W* weights,
                                   i64* found) {
  const i64 width = Blocks(linked).width, step = Blocks(linked).step;
  for (i64 e = grid_thread(); e < blocks * width; e += grid_threads()) {
    const i64 block = e / width, slot = e % width, i = owners[block];
    const i64 at = places[block] + slot * step;
    if (targets[at] == v[i] && (block - firsts[i]) * width + slot < spans[u[i]].arcs())
      found[i] = weight_at(weights, at);
  }
}

// Lists the arcs of `count` rows, all of them or those of `ids`, as keys, and their weights, or `places`
// if these are asked for; row k's from offsets[k] on.
template <class W>
__global__ void BOUNDS gather_linked(i64 count, const u32* ids, const i64* offsets,
                                     const Row* spans, i64 linked, const u32* targets,
                                     const W* weights, u64* keys, W* to_weights, i64* places) {
  for (i64 k = grid_thread() / WARP; k < count; k += grid_threads() / WARP) {
    const u64 v = ids ? ids[k] : k;
    i64 to = offsets[k];
    visit_entries(targets, spans[v], linked, [&](i64 place) {
      const u32 target = place < 0 ? GAP : targets[place];
      const u32 there = __ballot_sync(FULL, target != GAP);
      if (target != GAP) {
        const i64 at = to + __popc(there & lanes_below());
        keys[at] = v << 32 | target;
        if (places)
          places[at] = place;
        else
          put_weight(to_weights, at, u64(weight_at(weights, place)));
      }
      to += __popc(there);
    });
  }
}

// Finds the arcs to `many` vertices, which ascend, from wherever: a warp looks at each of n rows.
// Counts them, and lists those that there is `room` for as keys, in any order.
__global__ void BOUNDS find_mentions(i64 n, const Row* spans, i64 linked, const u32* targets,
                                     i64 many, const u32* vertices, i64 room, u64* keys,
                                     u64* found) {
  for (i64 v = grid_thread() / WARP; v < n; v += grid_threads() / WARP)
    visit_entries(targets, spans[v], linked, [&](i64 place) {
      const u32 target = place < 0 ? GAP : targets[place];
      const i64 k = lower_bound(vertices, 0, many, target);
      const bool mentions = k < many && vertices[k] == target;
      const u32 those = __ballot_sync(FULL, mentions);
      if (those == 0) return;
      u64 at = lane_index() ? 0 : atomicAdd(found, (u64)__popc(those));
      at = __shfl_sync(FULL, at, 0) + __popc(those & lanes_below());
      if (mentions && at < room) keys[at] = (u64)v << 32 | target;
    });
}

// Writes the arcs of `count` rows back into their entries in another order, gaps last.
template <class W>
__global__ void BOUNDS order_linked(i64 count, const u32* ids, const i64* offsets, const Row* spans,
                                    i64 linked, const u64* keys, const W* from_weights,
                                    u32* targets, W* weights) {
  for (i64 k = grid_thread() / WARP; k < count; k += grid_threads() / WARP) {
    i64 from = offsets[k] + lane_index();
    visit_entries(targets, spans[ids[k]], linked, [&](i64 place) {
      const bool arc = from < offsets[k + 1];
      if (place >= 0) targets[place] = arc ? u32(keys[from]) : GAP;
      if (place >= 0 && arc) put_weight(weights, place, u64(weight_at(from_weights, from)));
      from += WARP;
    });
  }
}

// Writes compressed rows in blocks side by side, row v from block firsts[v] on, which is also where the
// next row's begin. Rows whose gaps are refilled have spans as long as their blocks; `live` has the
// arcs.
template <class W>
__global__ void BOUNDS fill_linked(i64 n, const i64* offsets, const u32* from_targets,
                                   const W* from_weights, const i64* firsts, i64 linked,
                                   u32* targets, W* weights, Row* spans, u32* live) {
  const Blocks blocks(linked);
  const u32 lane = lane_index(), words = blocks.words, width = blocks.width, link = blocks.link;
  for (i64 v = grid_thread() / WARP; v < n; v += grid_threads() / WARP) {
    const i64 low = offsets[v], first = firsts[v], begin = first * words;
    const u32 length = offsets[v + 1] - low, held = firsts[v + 1] - first, room = held * width;
    for (u32 i = lane; i < room; i += WARP) {
      const i64 to = begin + i64(i / width) * words + i % width * blocks.step;
      targets[to] = i < length ? from_targets[low + i] : GAP;
      if (i < length) put_weight(weights, to, u64(weight_at(from_weights, low + i)));
    }
    for (u32 k = 1 + lane; k <= held; k += WARP) {
      if (!blocks.tree)
        targets[begin + i64(k - 1) * words + link] = k < held ? first + k : NO_NEXT;
      else if (k > 1)
        targets[begin + i64(k / 2 - 1) * words + link + (k & 1)] = first + k - 1;
    }
    if (lane) continue;
    spans[v] = {begin, begin + (blocks.policy == REFILLED ? room : length)};
    if (live) live[v] = length;
  }
}
