// Rows of a changing graph: searching them, merging changes into them, copying them.
//
// Rows are contiguous and ascending. A warp takes the arcs of up to 32 rows at once; rows longer than
// LONG_ROW wait for all blocks, which take parts of them. Every place is written by one thread.
#include "batch.cuh"
#include "long_rows.cuh"

// Of kernels over all rows, which wait for the memory more than they compute.
#define MANY_BLOCKS __launch_bounds__(THREADS, 5)

// found[i] becomes the weight of edge u[i], v[i], 0 where there is none.
template <class W>
__global__ void BOUNDS find_arcs(i64 count, const Row* spans, const u32* targets, const W* weights,
                                 const u64* loops, i64 linked, const u32* u, const u32* v,
                                 i64* found) {
  for (i64 i = grid_thread(); i < count; i += grid_threads())
    found[i] = find_arc(spans, targets, weights, loops, linked, u[i], v[i]).weight;
}

// A row and its changes.
struct Merged {
  i64 begin, out;      // where it lies, and where it is written
  u32 length, first, changes;
  __device__ __forceinline__ u32 items() const { return length + changes; }
};

// Where rows are read and written.
template <class W>
struct Pools {
  const u32* targets;
  const W* weights;
  u32* out_targets;
  W* out_weights;
};

// How far arcs of a row move that lie before its first change, less what `gained` has there.
__device__ __forceinline__ i64 shift_of(const Batch& b, const Merged& row) {
  return row.out - row.begin - (row.changes ? b.gained[row.first] : 0);
}

// Writes an old arc of a row whose changes are first..last - 1; it may be gone or have another weight.
template <class W>
__device__ __forceinline__ void merge_arc(const Batch& b, const Pools<W>& pools, i64 at, u32 target,
                                          i64 shift, u32 first, u32 last) {
  const auto* fresh = (const Amount<W>*)b.fresh;
  i64 to = at + shift, k = last;
  if (first < last) {
    k = lower_bound(b.keys, first, last, target);
    to += b.gained[k];
  }
  const bool changed = k < last && u32(b.keys[k]) == target;
  if (changed && fresh[k] == 0) return;
  pools.out_targets[to] = target;
  put_weight(pools.out_weights, to, changed ? u64(fresh[k]) : u64(weight_at(pools.weights, at)));
}

// Writes change k of a row, if it is a new arc.
template <class W>
__device__ __forceinline__ void merge_change(const Batch& b, const Pools<W>& pools, i64 k,
                                             i64 shifted) {
  const i64 fresh = ((const Amount<W>*)b.fresh)[k];
  if (((const Amount<W>*)b.old)[k] > 0 || fresh <= 0) return;
  const i64 to = shifted + b.places[k] + b.gained[k];
  pools.out_targets[to] = u32(b.keys[k]);
  put_weight(pools.out_weights, to, u64(fresh));
}

// Writes an item of a merged row: its arcs, then its changes.
template <class W>
__device__ __forceinline__ void merge_item(const Batch& b, const Pools<W>& pools, const Merged& row,
                                           u32 place) {
  const i64 shift = shift_of(b, row), at = row.begin + place;
  if (place < row.length)
    merge_arc(b, pools, at, pools.targets[at], shift, row.first, row.first + row.changes);
  else
    merge_change(b, pools, i64(row.first) + place - row.length, row.begin + shift);
}

// Arcs that move together, and how many zeros follow them.
struct Moved {
  i64 begin, shift;
  u32 length, zeros;
};

// Copies arcs of 32 rows or parts of rows, one given by each lane. Whole warps call.
template <class W>
__device__ __forceinline__ void copy_lanes(const Pools<W>& pools, const Moved& mine) {
  const u32 end = u32(mine.begin + mine.length);  // its lower half tells arcs from zeros
  u32 total;
  walk_lanes(mine.length + mine.zeros, mine.begin, total,
             [&](const i64* at, const u32* owner, u32) {
               u32 target[DEPTH];
               u64 weight[DEPTH];
#pragma unroll
               for (int d = 0; d < DEPTH; ++d) {
                 const bool arc = int(u32(at[d]) - __shfl_sync(FULL, end, owner[d])) < 0;
                 target[d] = weight[d] = 0;
                 if (at[d] < 0 || !arc) continue;
                 target[d] = __ldcs(pools.targets + at[d]);
                 weight[d] = weight_at(pools.weights, at[d]);
               }
#pragma unroll
               for (int d = 0; d < DEPTH; ++d) {
                 const i64 to = at[d] + __shfl_sync(FULL, mine.shift, owner[d]);
                 if (at[d] < 0) continue;
                 pools.out_targets[to] = target[d];
                 put_weight(pools.out_weights, to, weight[d]);
               }
               return true;
             });
}

// The same two arcs at a time: all begins are even. Zeros follow a row up to `places`, which is even;
// memory is written faster where no part of its units of 32 bytes is left out.
template <class W>
__device__ __forceinline__ void copy_pairs(const Pools<W>& pools, const Merged& mine, u32 places) {
  const i64 shift = mine.out - mine.begin, end = mine.begin + mine.length;
  u32 total;
  walk_lanes(places / 2, mine.begin / 2, total, [&](const i64* pair, const u32* owner, u32) {
    u64 targets[DEPTH];
    i64 left[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      const i64 at = 2 * pair[d];
      left[d] = __shfl_sync(FULL, end, owner[d]) - at;
      targets[d] = 0;
      if (at < 0) continue;
      if (left[d] > 1) targets[d] = __ldcs((const u64*)(pools.targets + at));
      if (left[d] == 1) targets[d] = __ldcs(pools.targets + at);
    }
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      const i64 at = 2 * pair[d], to = at + __shfl_sync(FULL, shift, owner[d]);
      if (at < 0) continue;
      *(u64*)(pools.out_targets + to) = targets[d];
      for (i64 k = 0; k < 2; ++k)
        put_weight(pools.out_weights, to + k,
                   left[d] > k ? u64(weight_at(pools.weights, at + k)) : 0);
    }
    return true;
  });
}

// Merges 32 rows, one given by each lane, whose changes cut it into parts that move together: a lane
// then takes a part and the change before it. `zeros` follow each row. Whole warps call.
template <class W>
__device__ __forceinline__ void merge_lanes(const Batch& b, const Pools<W>& pools,
                                            const Merged& mine, u32 zeros) {
  const auto* old = (const Amount<W>*)b.old;
  const auto* fresh = (const Amount<W>*)b.fresh;
  const u32 lane = lane_index(), parts = mine.items() ? mine.changes + 1 : 0;
  const i64 mine_shift = shift_of(b, mine);
  u32 upto = parts;
  for (int d = 1; d < WARP; d <<= 1) {
    const u32 other = __shfl_up_sync(FULL, upto, d);
    if (lane >= d) upto += other;
  }
  const u32 total = __shfl_sync(FULL, upto, WARP - 1), before = upto - parts;
  for (u32 low = 0; low < total; low += WARP) {
    u32 owner = 0;
#pragma unroll
    for (u32 step = WARP / 2; step; step >>= 1)
      if (__shfl_sync(FULL, upto, owner + step - 1) <= low + lane) owner += step;
    const u32 part = low + lane - __shfl_sync(FULL, before, owner);
    const u32 changes = __shfl_sync(FULL, mine.changes, owner);
    const u32 k = __shfl_sync(FULL, mine.first, owner) + part;  // the change behind the part
    const u32 length = __shfl_sync(FULL, mine.length, owner);
    const u32 behind = __shfl_sync(FULL, zeros, owner);
    Moved moved = {__shfl_sync(FULL, mine.begin, owner), __shfl_sync(FULL, mine_shift, owner), 0, 0};
    if (low + lane < total) {
      // Everything is read at once, before anything is written.
      const bool behind_one = part, before_one = part < changes;
      const u64 key = behind_one ? b.keys[k - 1] : 0;
      const u32 place = behind_one ? b.places[k - 1] : 0;
      const i64 gained = behind_one ? b.gained[k - 1] : 0;
      const i64 before = behind_one ? i64(old[k - 1]) : 0, after = behind_one ? i64(fresh[k - 1]) : 0;
      const u32 end = before_one ? b.places[k] : length;
      const i64 shift = changes ? b.gained[k] : 0;
      if (after > 0) {
        const i64 to = moved.begin + place + moved.shift + gained;
        pools.out_targets[to] = u32(key);
        put_weight(pools.out_weights, to, u64(after));
      }
      const u32 from = place + (before > 0);
      moved.begin += from;
      moved.shift += shift;
      moved.length = end - from;
      moved.zeros = before_one ? 0 : behind;
    }
    copy_lanes(pools, moved);
  }
}

// Calls visit(row, place) for the items of rows set aside; row_of(number) is such a row, or has fewer
// items than that.
template <class R, class F>
__device__ __forceinline__ void visit_long_items(const Batch& b, R row_of, F visit) {
  visit_long_rows(b.long_rows, &b.counts->long_rows, [&](u32 number, u64 first) {
    const Merged row = row_of(number);
    const u64 end = min(first + CHUNK, (u64)row.items());
    for (u64 place = first + lane_index(); place < end; place += WARP) visit(row, place);
  });
}

__device__ __forceinline__ bool set_aside(const Batch& b, const Merged& row, i64 number) {
  return set_aside(b.long_rows, &b.counts->long_rows, number, row.items());
}

// Merges changes into the touched rows, `rows` of them, `each` per warp (at most 32): into new pages,
// or into the room from `room` on, from where they go back to their own. Cooperative.
template <class W>
__global__ void BOUNDS merge_rows(const Batch b, i64 rows, i64 each, i64 room, u32* targets,
                                  W* weights, Row* spans, u8* classes) {
  const Pools<W> pools = {targets, weights, targets, weights};
  const auto row_of = [&](i64 r) {
    const u32 first = b.starts[r], changes = b.starts[r + 1] - first;
    const i64 stays = b.rooms[r], page = b.pages[r];
    const Merged row = {b.from[r], stays < 0 ? page : room + stays, u32(b.lengths[r]), first, changes};
    return b.changed[first] != b.changed[first + changes] ? row : Merged{};
  };
  const u32 lane = lane_index();
  for (i64 low = grid_thread() / WARP * each; low < rows; low += grid_threads() / WARP * each) {
    const i64 r = low + lane;
    const bool own = lane < each && r < rows;
    Merged row = {0, 0, 0, 0, 0};
    u32 back = 0;
    i64 page = 0;
    if (own) row = row_of(r);
    if (row.changes) {
      page = b.pages[r];
      const u32 after = row.length + b.gained[row.first + row.changes] - b.gained[row.first];
      spans[b.rows[r]] = {page, page + after};
      classes[b.rows[r]] = b.wanted[r];
      if (b.rooms[r] >= 0) back = after;
      if (set_aside(b, row, r)) row.length = row.changes = back = 0;
    }
    merge_lanes(b, pools, row, 0);
    __syncwarp();
    copy_lanes(pools, {row.out, page - row.out, back, 0});
  }
  Barrier* barrier = &b.counts->barrier;
  grid_sync(barrier);
  if (*(volatile i64*)&b.counts->long_rows == 0) return;
  visit_long_items(b, row_of,
                   [&](const Merged& row, u32 place) { merge_item(b, pools, row, place); });
  grid_sync(barrier);
  const auto written = [&](i64 r) {
    Merged row = row_of(r);
    row.begin = b.pages[r];
    row.length += b.gained[row.first + row.changes] - b.gained[row.first];
    row.changes = 0;
    if (b.rooms[r] < 0) row.length = 0;
    return row;
  };
  visit_long_items(b, written, [&](const Merged& row, u32 place) {
    const i64 from = row.out + place, to = row.begin + place;
    targets[to] = targets[from];
    put_weight(weights, to, u64(weight_at((const W*)weights, from)));
  });
}

// Edits `rows` touched rows as ouroGraph does, a warp each: entries move up where others go, and those
// that are new follow, whether or not they are there. Rows are then in no order.
template <class W>
__global__ void BOUNDS edit_pages(const Batch b, i64 rows, u32* targets, W* weights, Row* spans,
                                  u8* classes) {
  const auto* old = (const Amount<W>*)b.old;
  const auto* fresh = (const Amount<W>*)b.fresh;
  for (i64 r = grid_thread() / WARP; r < rows; r += grid_threads() / WARP) {
    const i64 first = b.starts[r], last = b.starts[r + 1], from = b.from[r], length = b.lengths[r];
    const i64 page = b.pages[r];
    if (b.changed[first] == b.changed[last]) continue;
    i64 to = page;
    for (i64 low = 0; low < length + last - first; low += WARP) {
      const i64 i = low + lane_index();
      const bool entry = i < length;  // else a change
      u32 target = entry ? targets[from + i] : 0;
      u64 weight = entry ? u64(weight_at((const W*)weights, from + i)) : 0;
      const i64 k = entry ? lower_bound(b.keys, first, last, target) : first + i - length;
      const bool named = k < last && (!entry || u32(b.keys[k]) == target);
      const bool changes = named && entry == (old[k] > 0);
      if (changes) target = u32(b.keys[k]), weight = u64(fresh[k]);
      const bool stays = changes ? fresh[k] > 0 : entry;
      const u32 staying = __ballot_sync(FULL, stays);
      __syncwarp();  // all have read
      if (stays) {
        const i64 at = to + __popc(staying & lanes_below());
        targets[at] = target;
        put_weight(weights, at, weight);
      }
      to += __popc(staying);
      __syncwarp();
    }
    if (lane_index() == 0) spans[b.rows[r]] = {page, to}, classes[b.rows[r]] = b.wanted[r];
  }
}

// Where all rows lie after a batch of `rows` touched ones, in the order of vertices: in pages if
// `classes` is not null, else without gaps. Written to `spans`, or if that is null to `offsets`,
// which has n + 1 entries. Rows whose pages come from queues take up nothing: their spans only tell
// their lengths. Cooperative.
__global__ void MANY_BLOCKS lay_out_rows(const Batch b, i64 n, i64 rows, Row* spans, i64* offsets,
                                         u8* classes) {
  Barrier* barrier = &b.counts->barrier;
  if (rows) {
    // The end of each row holds its length until its place is known.
    for (i64 v = grid_thread(); v < n; v += grid_threads()) spans[v] = {0, b.spans[v].arcs()};
    grid_sync(barrier);
    for (i64 r = grid_thread(); r < rows; r += grid_threads())
      spans[b.rows[r]].high += b.gained[b.starts[r + 1]] - b.gained[b.starts[r]];
    grid_sync(barrier);
  }
  const auto length_of = [=](i64 v) { return rows ? spans[v].high : b.spans[v].arcs(); };
  scan_many<i64>(
      n,
      [=](i64 v) {
        const i64 length = length_of(v);
        return classes ? laid_out(class_for(length, b.queued, b.least), b.queued) : length;
      },
      [=](i64 v, i64 sum, i64) {
        if (v == n) b.counts->frontier = sum;
        if (offsets) offsets[v] = sum;
        if (offsets || v == n) return;
        const i64 length = length_of(v);
        if (classes) classes[v] = class_for(length, b.queued, b.least);
        spans[v] = {sum, sum + length};
      },
      b.partials, barrier);
  if (classes == nullptr || b.queued == 0) return;
  // Each thread of a block counts what any of the block wrote.
  u64 held = 0;
  for (i64 v = range_begin(n) + threadIdx.x; v < range_end(n); v += THREADS)
    if (classes[v] < b.queued) held += capacity_of(classes[v]);
  add_counted((u64*)&b.counts->held, held);
}

// Returns, for 32 of n vertices from `low` on, one per lane, the place of each in ascending `rows`; -1
// where it is not in it. Whole warps call.
__device__ __forceinline__ i64 touched_place(const u32* rows, i64 count, i64 n, i64 low) {
  // At most n - count of the vertices before are not in it.
  i64 from = max(low - (n - count), 0ll);
  for (i64 to = min(low, count); from < to;) {
    const i64 step = (to - from + WARP - 1) / WARP, probe = from + lane_index() * step;
    const u32 before = __popc(__ballot_sync(FULL, probe < to && rows[probe] < low));
    if (before == 0) break;
    to = min(to, from + before * step);
    from += (before - 1) * step + 1;
  }
  const i64 at = from + lane_index();
  const u32 distance = at < count ? rows[at] - u32(low) : WARP;
  u32 touched = distance < WARP ? 1u << distance : 0;
  for (int d = WARP / 2; d; d >>= 1) touched |= __shfl_xor_sync(FULL, touched, d);
  return touched >> lane_index() & 1 ? from + __popc(touched & lanes_below()) : -1;
}

// Copies all n rows to where begins[v * stride] says, with the changes of `rows` touched ones merged in.
// `classes` are those of the pages there, or null where there are none. Cooperative.
template <class W>
__global__ void MANY_BLOCKS rebuild_rows(const Batch b, i64 n, i64 rows, const i64* begins,
                                         i64 stride, const u8* classes, u32* targets, W* weights) {
  const Pools<W> pools = {b.targets, (const W*)b.weights, targets, weights};
  const auto row_of = [&](const Row& old, i64 begin, i64 r) {
    Merged row = {old.low, begin, u32(old.arcs()), 0, 0};
    if (r >= 0) row.first = b.starts[r], row.changes = b.starts[r + 1] - row.first;
    return row;
  };
  for (i64 low = grid_thread() / WARP * WARP; low < n; low += grid_threads()) {
    const i64 v = low + lane_index();
    Row old = {0, 0};
    i64 begin = 0;
    u8 size_class = NO_PAGE;
    if (v < n) {  // read before the search below: both wait for the memory
      old = b.spans[v], begin = begins[v * stride];
      if (classes) size_class = classes[v];
    }
    const i64 r = rows ? touched_place(b.rows, rows, n, low) : -1;
    Merged row = {0, 0, 0, 0, 0};
    i64 after = 0, places = 0;
    if (v < n) {
      row = row_of(old, begin, r);
      if (set_aside(b, row, v)) row.length = row.changes = 0;
      after = row.length;
      if (row.changes) after += b.gained[row.first + row.changes] - b.gained[row.first];
      places = after;
      if (classes && after) places = min(capacity_of(size_class), after + 7 & ~7ll);
    }
    const bool alone = row.changes || (row.length && (classes == nullptr || row.begin % 2));
    if (__any_sync(FULL, alone))
      merge_lanes(b, pools, row, u32(places - after));
    else
      copy_pairs(pools, row, places);
  }
  grid_sync(&b.counts->barrier);
  const auto long_row = [&](i64 v) {
    i64 r = -1;
    if (rows) {
      const u32 at = last_at_most(b.rows, (u32)rows, (u32)v);
      if (b.rows[at] == v) r = at;
    }
    return row_of(b.spans[v], begins[v * stride], r);
  };
  visit_long_items(b, long_row,
                   [&](const Merged& row, u32 place) { merge_item(b, pools, row, place); });
}
