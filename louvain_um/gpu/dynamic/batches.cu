// From a batch as it is given to its net changes: of edges, arcs and rows; then what it leaves.
//
// Places come from prefix sums and every array entry is written by one thread, or by atomic sums and
// maxima of integers, so that nothing depends on the order of threads.
#include "batch.cuh"
#include "columns.cuh"
#include "sort_keys.cuh"

#define MOST_WEIGHT 4503599627370496.0  // 2^52: an edge's weight counts twice in 2m

// Lists one kind of operation: arcs of edge i at first + i and listed + first + i, weights as
// integers; of a `directed` graph, one arc of each. What does not fit is counted as a fault, for the
// host to tell. `weights` and `alive` may be null; each weighs `one` without weights.
__global__ void BOUNDS key_edges(i64 count, const void* u, i64 u_type, const void* v, i64 v_type,
                                 const void* weights, i64 weights_type, i64 one, i64 n,
                                 const u8* alive, double scale, i64 directed, i64 first,
                                 i64 listed, u64* keys, i64* given, BatchCounts* counts) {
  u64 faults = 0, weight = 0;
  for (i64 i = grid_thread(); i < count; i += grid_threads()) {
    i64 a = integer_at(u, u_type, i), b = integer_at(v, v_type, i);
    if (a < 0 || b < 0 || a >= n || b >= n || (alive && !(alive[a] && alive[b]))) {
      faults |= BAD_VERTEX;
      a = b = 0;
    }
    const u64 low = directed ? a : min(a, b), high = directed ? b : max(a, b);
    keys[first + i] = low << 32 | high;
    if (!directed) keys[listed + first + i] = low == high ? NO_ARC : high << 32 | low;
    if (!given) continue;
    i64 whole = one;
    if (weights && weights_type >= F32) {
      const double real = real_at(weights, weights_type, i);
      const double scaled = rint(__dmul_rn(real, scale));
      const bool fits = real >= 0 && scaled < MOST_WEIGHT && (scaled > 0 || real == 0);
      faults |= fits ? 0 : BAD_WEIGHT;
      whole = fits ? (i64)scaled : 0;
    } else if (weights) {
      whole = integer_at(weights, weights_type, i);
      const bool fits = whole >= 0 && (double)whole < MOST_WEIGHT;
      faults |= fits ? 0 : BAD_WEIGHT;
      whole = fits ? whole : 0;
    }
    given[first + i] = whole;
    weight += whole >> 20;
  }
  if (faults) atomicOr(&counts->faults, faults);
  add_counted(&counts->weight, weight);
}

// Sorts the arcs of a small batch; see sort_keys.cuh. Cooperative.
__global__ void BOUNDS sort_keys(i64 count, u64* keys, u64* spare, i64* order, i64* spare_order,
                                 BatchCounts* counts) {
  sort_keys_of(count, keys, spare, order, spare_order, &counts->barrier);
}

// Adds each operation to what is asked of its edge, at the place of the edge's first arc.
__device__ __forceinline__ void gather_operations(const Batch& b, Barrier* barrier) {
  const i64 arcs = 2 * b.listed;
  for (i64 i = grid_thread(); i < arcs; i += grid_threads())
    b.asked[i] = 0, b.less[i] = 0, b.more[i] = 0;
  grid_sync(barrier);
  for (i64 i = grid_thread(); i < arcs; i += grid_threads()) {
    const u64 key = b.keys[i];
    if (key == NO_ARC) continue;
    const i64 first = i && b.keys[i - 1] == key ? lower_bound(b.keys, 0, i, key) : i;
    const i64 place = b.order[i], second = place >= b.listed && !DIRECTED(b.linked);
    const i64 operation = second ? place - b.listed : place;
    const u64 weight = b.given ? b.given[operation] : 1;
    if (operation < b.deletions) {
      atomicOr(b.asked + first, DELETED);
    } else if (operation < b.decreases) {
      atomicOr(b.asked + first, DECREASED);
      atomicAdd((u64*)b.less + first, weight);
    } else {
      atomicOr(b.asked + first, INSERTED);
      if (b.summing)
        atomicAdd(b.more + first, weight);
      else
        atomicMax(b.more + first, weight);
    }
  }
  grid_sync(barrier);
}

// Arcs of large batches that a thread searches at a time: a step of a search waits for the memory.
// Neighbouring ones are of the same rows there; else several at a time would read too much at once.
#define SEARCHED 4

// Searches the arcs listed at first, first + THREADS, …, before `end`: found[k] is the k-th. Entries
// without an arc are not there.
template <class W>
__device__ __forceinline__ void search_arcs(const Batch& b, i64 first, i64 end,
                                            Found (&found)[SEARCHED]) {
  i64 begin[SEARCHED];
  u32 low[SEARCHED], high[SEARCHED], target[SEARCHED], hits = 0;
#pragma unroll
  for (int k = 0; k < SEARCHED; ++k) {
    const i64 i = first + k * THREADS;
    const u64 key = i < end ? b.keys[i] : NO_ARC;
    const Row row = key == NO_ARC ? Row{0, 0} : b.spans[key >> 32];
    begin[k] = row.low, low[k] = 0, high[k] = row.arcs(), target[k] = key;
  }
  for (bool open = true; open;) {
    open = false;
    u32 probed[SEARCHED];
#pragma unroll
    for (int k = 0; k < SEARCHED; ++k)
      probed[k] = low[k] < high[k] ? b.targets[begin[k] + (low[k] + high[k]) / 2] : 0;
#pragma unroll
    for (int k = 0; k < SEARCHED; ++k) {
      if (low[k] >= high[k]) continue;
      const u32 middle = (low[k] + high[k]) / 2;
      if (probed[k] < target[k])
        low[k] = middle + 1;
      else
        high[k] = middle;
      // What is at the place that is found was probed.
      if (probed[k] == target[k]) hits |= 1u << k;
      open |= low[k] < high[k];
    }
  }
#pragma unroll
  for (int k = 0; k < SEARCHED; ++k)
    found[k] = {low[k], hits >> k & 1 ? i64(weight_at((const W*)b.weights, begin[k] + low[k])) : 0};
}

// The same for arc i of those listed, in any store, unless nobody asks whether it is there.
template <class W>
__device__ __forceinline__ Found found_for(const Batch& b, i64 i) {
  const u64 key = b.keys[i];
  if (key == NO_ARC) return {0, 0};
  if (b.unchecked && !(b.order ? b.asked[i] & (DELETED | DECREASED) : b.deletions)) return {0, 0};
  const W* weights = (const W*)b.weights;
  return find_arc(b.spans, b.targets, weights, b.loops, b.linked, key >> 32, u32(key));
}

// What a thread has seen of its edges.
struct Seen {
  u64 missing = 0, loops = 0, heaviest = 0;
  i64 gain_high = 0, gain_low = 0;
};

// Whether an arc stands for its edge.
__device__ __forceinline__ bool speaks(const Batch& b, u32 u, u32 v) {
  return u <= v || DIRECTED(b.linked);
}

// What arc i of those listed counts for. Upper halves: the first of a row; an arc that changes. Lower
// halves: an edge that changes; 1 + arcs gained, so that none is negative.
__device__ __forceinline__ Pair counted(const Batch& b, i64 i, i64 old, i64 fresh) {
  const u64 key = b.keys[i], previous = i ? b.keys[i - 1] : NO_ARC;
  if (key == NO_ARC) return {0, 1};
  const u32 u = key >> 32, v = u32(key);
  const u64 first = previous >> 32 != u, changes = old != fresh;
  return {first << 32 | (changes & speaks(b, u, v)),
          (changes & (u != v)) << 32 | u64(1 + (fresh > 0) - (old > 0))};
}

// Writes the weight of arc i's edge before and after the batch: deletions, decreases, insertions.
// Only the first of equal arcs changes anything. Returns what the arc counts for.
template <class W>
__device__ __forceinline__ Pair net_arc(const Batch& b, i64 i, const Found& found, Seen& seen) {
  auto* old = (Amount<W>*)b.old;
  auto* fresh = (Amount<W>*)b.fresh;
  const u64 key = b.keys[i], previous = i ? b.keys[i - 1] : NO_ARC;
  const u32 u = key >> 32, v = u32(key);
  if (key == NO_ARC || key == previous) {
    b.places[i] = found.place + (found.weight > 0 && u != v);
    old[i] = fresh[i] = 0;
    return counted(b, i, 0, 0);
  }
  const i64 before = u == v ? (i64)b.loops[u] : found.weight;
  const u32 asked = b.order ? b.asked[i] : b.deletions ? DELETED : INSERTED;
  const i64 less = b.order && asked & DECREASED ? b.less[i] : 0;
  const i64 more = b.order ? b.more[i] : 1;
  const bool spoken = speaks(b, u, v), below = before > 0 && !(asked & DELETED) && less > before;
  i64 after = asked & DELETED ? 0 : before;
  if (before > 0 && after > 0 && !below) after -= less;
  if (asked & INSERTED) after = b.summing ? after + more : max(after, more);
  if (spoken && before == 0 && asked & (DELETED | DECREASED)) {
    ++seen.missing;
    atomicMax(&b.counts->first_absent, u64(2 * b.listed - i));
  }
  if (spoken && (below || (double)after >= MOST_WEIGHT))
    atomicMax(&b.counts->first_fault, u64(2 * b.listed - i));
  if (spoken && before != after) {
    const i64 gain = (after - before) * (DIRECTED(b.linked) && u == v ? 2 : 1);
    seen.loops += u == v;
    seen.heaviest = max(seen.heaviest, (u64)after);
    seen.gain_high += gain >> 20;
    seen.gain_low += gain & ((1 << 20) - 1);
  }
  const i64 flipped = u == v ? -1 : 0;
  b.places[i] = found.place;
  old[i] = before ^ flipped;
  fresh[i] = after ^ flipped;
  return counted(b, i, before ^ flipped, after ^ flipped);
}

// Returns how many arcs row r has after the batch.
__device__ __forceinline__ i64 length_after(const Batch& b, i64 r) {
  const i64 before = b.live ? b.live[b.rows[r]] : b.spans[b.rows[r]].arcs();
  return before + b.gained[b.starts[r + 1]] - b.gained[b.starts[r]];
}

// Arcs of pages that threads left and take, in the queues and behind them, and that move.
struct Pages {
  u64 freed = 0, moved = 0, taken = 0, given = 0;
};

// Whether an arc of row r changes.
__device__ __forceinline__ bool changes(const Batch& b, i64 r) {
  return b.changed[b.starts[r + 1]] != b.changed[b.starts[r]];
}

// Chooses a page for row r: its own while it fits and fills half of it.
__device__ __forceinline__ bool choose_page(const Batch& b, i64 r, Pages& pages) {
  const u32 row = b.rows[r];
  const i64 length = b.spans[row].arcs();
  const i64 after = length_after(b, r);
  const u8 own = b.classes[row];
  const i64 held = capacity_of(own);
  const bool stays = !changes(b, r) || (after > 0 && held / 2 <= after && after <= held);
  b.from[r] = b.spans[row].low;
  b.lengths[r] = length;
  const u8 wanted = stays ? own : class_for(after, b.queued, b.least);
  b.wanted[r] = wanted;
  if (wanted == own) return true;
  (own < b.queued ? pages.given : pages.freed) += held;
  if (wanted < b.queued) pages.taken += capacity_of(wanted);
  pages.moved += length;
  return false;
}

// Turns sorted operations into net changes of edges, arcs and rows, and lays out the pages that
// these want. Reads the store and writes nothing of it. Cooperative.
template <class W>
__global__ void BOUNDS net_batch(const Batch b) {
  BatchCounts* counts = b.counts;
  Barrier* barrier = &counts->barrier;
  const i64 listed = 2 * b.listed;
  const auto* old = (const Amount<W>*)b.old;
  const auto* fresh = (const Amount<W>*)b.fresh;
  if (b.order) gather_operations(b, barrier);

  Seen seen;
  Pair net = {0, 0};
  // The threads that compute net changes of arcs are those that sum them.
  i64 low = range_begin(listed) + threadIdx.x;
  const i64 end = range_end(listed), step = SEARCHED * THREADS;
  if (b.linked || listed <= b.in_place) {
    for (; low < end; low += THREADS)
      net += net_arc<W>(b, low, found_for<W>(b, low), seen);
  } else {
    for (; low < end; low += step) {
      Found found[SEARCHED];
      search_arcs<W>(b, low, end, found);
#pragma unroll
      for (int k = 0; k < SEARCHED; ++k)
        if (low + k * THREADS < end) net += net_arc<W>(b, low + k * THREADS, found[k], seen);
    }
  }
  add_counted(&counts->missing, seen.missing);
  add_counted(&counts->loops, seen.loops);
  add_counted(&counts->gain_high, seen.gain_high);
  add_counted(&counts->gain_low, seen.gain_low);
  raise_to(&counts->heaviest, seen.heaviest);

  scan_summed<Pair>(
      listed, net,
      [=](i64 i) { return counted(b, i, old[i], fresh[i]); },
      [=](i64 i, Pair sum, Pair own) {
        const u32 row = sum.a >> 32;
        b.gained[i] = int(u32(sum.b)) - int(i);
        b.changed[i] = sum.b >> 32;
        if (i == listed) {
          counts->rows = row, counts->edges = u32(sum.a);
          counts->arcs = b.changed[i], counts->gained = b.gained[i];
        }
        // Behind the last row: entries without an arc, if there are any.
        if (i && b.keys[i - 1] != NO_ARC && (i == listed || b.keys[i] == NO_ARC)) b.starts[row] = i;
        if (u32(own.a)) b.edges[u32(sum.a)] = i;
        if (own.a >> 32 == 0) return;
        b.rows[row] = b.keys[i] >> 32;
        b.starts[row] = i;
      },
      (Pair*)b.partials, barrier);
  grid_sync(barrier);

  const i64 rows = *(volatile i64*)&counts->rows;
  u64 longest = 0;
  for (i64 r = grid_thread(); r < rows; r += grid_threads())
    longest = max(longest, (u64)length_after(b, r));
  raise_to(&counts->longest, longest);
  if (b.classes == nullptr || *(volatile i64*)&counts->arcs > b.in_place) return;
  Pages pages;
  // As above: these threads also sum.
  for (i64 r = range_begin(rows) + threadIdx.x; r < range_end(rows); r += THREADS) {
    const bool stays = choose_page(b, r, pages);
    b.pages[r] = stays ? b.from[r] : -1;
  }
  add_counted(&counts->freed, pages.freed);
  add_counted(&counts->moved, pages.moved);
  if (b.queued) add_counted(&counts->taken, pages.taken), add_counted(&counts->given, pages.given);
  scan_many<i64>(
      rows,
      [=](i64 r) {
        const bool merged = b.pages[r] >= 0 && changes(b, r);
        return merged ? b.lengths[r] + (b.starts[r + 1] - b.starts[r]) : 0;
      },
      [=](i64 r, i64 sum, i64) {
        if (r == rows)
          counts->room = sum;
        else
          b.rooms[r] = b.pages[r] >= 0 ? sum : -1;
      },
      b.partials, barrier);
  scan_many<i64>(
      rows, [=](i64 r) { return b.rooms[r] < 0 ? laid_out(b.wanted[r], b.queued) : 0; },
      [=](i64 r, i64 sum, i64) {
        if (r == rows)
          counts->fresh = sum;
        else if (b.rooms[r] < 0)
          b.pages[r] = b.frontier + sum;
      },
      b.partials + gridDim.x, barrier);
}

// Adds what arcs gain to the degrees of their rows. Without weights that is how many arcs a row
// gains: one addition for each row, where arcs of one row would wait for each other.
__device__ __forceinline__ void add_to_degrees(const Batch& b, const Unweighted*) {
  const i64 rows = b.counts->rows;
  for (i64 r = grid_thread(); r < rows; r += grid_threads())
    atomicAdd(b.degrees + b.rows[r], u64(b.gained[b.starts[r + 1]] - b.gained[b.starts[r]]));
}
template <class W>
__device__ __forceinline__ void add_to_degrees(const Batch& b, const W*) {
  const auto* old = (const Amount<W>*)b.old;
  const auto* fresh = (const Amount<W>*)b.fresh;
  for (i64 i = grid_thread(); i < 2 * b.listed; i += grid_threads()) {
    const i64 gain = (i64)fresh[i] - (i64)old[i];
    const u64 key = b.keys[i];
    if (gain && key >> 32 != u32(key)) atomicAdd(b.degrees + (key >> 32), u64(gain));
  }
}

// Writes what a batch did to edges, and the degrees and loops that it leaves. `before` has room for
// the weights of edges before and behind them after, then for their smaller and larger ends.
template <class W>
__global__ void BOUNDS end_batch(const Batch b, u64* loops, i64* before) {
  const auto* old = (const Amount<W>*)b.old;
  const auto* fresh = (const Amount<W>*)b.fresh;
  const i64 edges = b.counts->edges;
  i64* const after = before + edges;
  u32 *const u = (u32*)(after + edges), *const v = u + edges;
  for (i64 e = grid_thread(); e < edges; e += grid_threads()) {
    const i64 i = b.edges[e];
    const u32 low = b.keys[i] >> 32, high = u32(b.keys[i]);
    u[e] = low;
    v[e] = high;
    const i64 flipped = low == high ? -1 : 0;
    before[e] = old[i] ^ flipped;
    after[e] = fresh[i] ^ flipped;
    if (low != high) continue;
    loops[low] = after[e];
    atomicAdd(b.degrees + low, u64(2 * (after[e] - before[e])));
  }
  add_to_degrees(b, (const W*)nullptr);
}
