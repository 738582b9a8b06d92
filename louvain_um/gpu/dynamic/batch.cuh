// A batch on its way through the kernels: operations, net changes of arcs, rows touched.
//
// An edge is listed as two arcs, so that sorting the arcs cuts them by row; the arc with the smaller
// row speaks for the edge. In directed graphs there is one arc, and NO_ARC behind an odd number of
// them. Nothing depends on the order of operations in the batch.
#pragma once
#include "linked.cuh"

#define BOUNDS __launch_bounds__(THREADS, 4)

#define NO_ARC 0xFFFFFFFFFFFFFFFFull  // sorted behind every arc: a loop's second arc
#define NO_PAGE 255                   // class of a row without arcs

// Bits of BatchCounts::faults.
#define BAD_VERTEX 1
#define BAD_WEIGHT 2

// What an operation asks for, by bits.
#define DELETED 1
#define DECREASED 2
#define INSERTED 4

// What the host reads back. All zero before a batch; `first_fault` and `first_absent` count down
// from the number of arcs listed, so that 0 is none.
struct BatchCounts {
  Barrier barrier;
  u64 faults;
  u64 weight;        // sum of the weights given, in units of 2^20, rounded down
  u64 first_fault;   // arcs listed − place of the first edge below zero or too heavy
  u64 first_absent;  // the same for edges to delete or decrease that are not there
  u64 missing;       // how many of these there are
  i64 edges, arcs, rows;
  i64 gained;        // arcs that the graph gains
  u64 loops;         // changed loops
  u64 heaviest;      // largest weight after the batch, of changed edges
  i64 gain_high, gain_low;  // weight that edges gain: gain_high 2^20 + gain_low
  i64 fresh, room;   // arcs of pages taken, and of the room where rows that stay are merged
  u64 freed, moved;  // arcs of pages left, and arcs that leave them
  i64 frontier;      // end of the pool after a rebuild
  u64 longest;       // most arcs of a row after the batch, of those touched
  u64 long_rows;     // rows that all blocks share, as long_rows.cuh counts them
  u64 taken, given;  // arcs of pages taken from queues and given back; taken: of links, blocks
  i64 held;          // arcs of all pages from queues after a rebuild
  u64 lacking;       // pages that queues did not have
};
static_assert(sizeof(BatchCounts) == 200, "mirrored by COUNTS in gpu/dynamic/batch_arrays.py");

// Arrays of a batch; those with `rows` entries belong to the rows of the arcs listed, whether or not
// these change anything, others to the arcs listed.
struct Batch {
  const u64* keys;   // row in the upper, target in the lower half; ascending, repeated
  const i64* order;  // place in the list of each; null where all are of one kind and weigh 1
  const i64* given;  // weights of the operations listed, or null for 1
  i64 listed;        // half as many as arcs listed: operations, if both arcs of each are
  i64 deletions;     // operations before this delete, …
  i64 decreases;     // … before this decrease, and others insert
  i64 summing;       // whether insertions add up, or the largest counts
  i64 unchecked;     // whether arcs to insert are not there, which is not looked up
  const u64* loops;  // of each vertex
  u64* degrees;
  const Row* spans;          // the rows before the batch
  u32* live;                 // arcs of each row, if rows may have gaps; else null
  const u8* classes;         // null in a store without pages
  const u32* targets;
  const void* weights;
  i64 frontier;
  i64 queued;   // pages of classes below this come from queues; there, only powers of two are used,
  i64 least;    // from this class on
  i64 linked;   // how rows are linked (linked.cuh)
  i64 in_place;  // changed arcs at most for which pages are laid out; with more all rows move
  u32* asked;   // bits of operations, by place of the first arc of each edge
  i64* less;    // sum of decreases
  u64* more;    // sum or maximum of insertions
  void* old;    // weights before and after; equal where nothing changes. Those of loops, which are
  void* fresh;  // no arcs, have all bits flipped: an arc is there if its weight is above 0
  u32* places;  // how many arcs of the row lie before it, or before where it goes
  int* gained;  // one entry more: arcs gained by those before
  u32* changed;  // one entry more: how many of those before change
  u32* edges;   // edges: place of its first arc
  u32* rows;    // rows
  u32* starts;  // rows + 1: where each row's changes begin
  i64* from;    // where the row lies
  i64* lengths;
  u8* wanted;   // its class after the batch
  i64* pages;   // where it goes
  i64* rooms;   // where a row that stays is merged, behind all pages
  u64* long_rows;
  i64* partials;  // two per block
  BatchCounts* counts;
};
static_assert(sizeof(Batch) == 39 * 8, "mirrored by BATCH in gpu/dynamic/batch_arrays.py");

// Type of weights before and after: without weights, 0 and 1, and for loops −1 and −2.
template <class W>
struct AmountOf {
  using Type = i64;
};
template <>
struct AmountOf<Unweighted> {
  using Type = signed char;
};
template <class W>
using Amount = typename AmountOf<W>::Type;

// Returns the first place in low..high - 1 whose entry is not below `x`; high for none. For an x of 32
// bits, entries are targets, the lower halves of what is searched.
template <class T, class X>
__device__ __forceinline__ i64 lower_bound(const T* sorted, i64 low, i64 high, X x) {
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (X(sorted[middle]) < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// What a search found: how many arcs of the row lie before the arc or where it would be, and its
// weight, 0 if it is not there. Linked rows have no places, and the shorter one of both ends is searched.
struct Found {
  u32 place;
  i64 weight;
};

// Searches arc u -> v, or u's loop.
template <class W>
__device__ __forceinline__ Found find_arc(const Row* spans, const u32* targets, const W* weights,
                                          const u64* loops, i64 linked, u32 u, u32 v) {
  const Row row = spans[u];
  if (linked) {
    if (u == v) return {0, (i64)loops[u]};
    const Row other = spans[v];
    const bool shorter = !DIRECTED(linked) && other.arcs() < row.arcs();
    const i64 place = find_linked(targets, shorter ? other : row, linked, shorter ? u : v);
    return {0, place < 0 ? 0 : i64(weight_at(weights, place))};
  }
  const i64 at = lower_bound(targets, row.low, row.high, v);
  if (u == v) return {u32(at - row.low), (i64)loops[u]};
  const bool there = at < row.high && targets[at] == v;
  return {u32(at - row.low), there ? i64(weight_at(weights, at)) : 0};
}

// Arcs that a page of a class holds: 4 2^k or 6 2^k; as in cpu/dynamic/contiguous.py.
__device__ __forceinline__ i64 capacity_of(u32 size_class) {
  return size_class == NO_PAGE ? 0 : (size_class & 1 ? 6ll : 4ll) << (size_class >> 1);
}

// Returns the smallest class that holds so many arcs.
__device__ __forceinline__ u8 class_for(i64 length) {
  if (length == 0) return NO_PAGE;
  if (length <= 4) return 0;
  const u32 top = 63 - __clzll(length - 1);  // 2^top < length <= 2^(top + 1)
  return length <= 3ll << (top - 1) ? 2 * (top - 2) + 1 : 2 * (top - 1);
}

// The same, of powers of two alone below class `queued`, and none below `least`.
__device__ __forceinline__ u8 class_for(i64 length, i64 queued, i64 least) {
  const u8 fits = class_for(length);
  return fits < queued ? max((fits + 1) & ~1, int(least)) : fits;
}

// Arcs that a page takes up behind those of queues.
__device__ __forceinline__ i64 laid_out(u32 size_class, i64 queued) {
  return size_class < queued ? 0 : capacity_of(size_class);
}

// Returns what a block counted, to one thread of it; others get 0.
template <class T>
__device__ __forceinline__ void add_counted(T* counter, T mine) {
  const T sum = block_sum(mine);
  if (threadIdx.x == 0 && sum != 0) atomicAdd((u64*)counter, (u64)sum);
}

// Raises a counter to the largest that threads saw. Whole warps call: with an atomic operation for
// each thread, an H200 took 0.57 ms instead of 0.50 for 100,000 insertions.
__device__ __forceinline__ void raise_to(u64* counter, u64 mine) {
  const u64 most = warp_max(mine);
  if (lane_index() == 0 && most > *(volatile u64*)counter) atomicMax(counter, most);
}

// Two sums at once.
struct Pair {
  u64 a, b;
  __device__ __forceinline__ void operator+=(const Pair& other) { a += other.a, b += other.b; }
};
__device__ __forceinline__ Pair operator+(Pair x, const Pair& y) {
  x += y;
  return x;
}
__device__ __forceinline__ Pair operator-(const Pair& x, const Pair& y) {
  return {x.a - y.a, x.b - y.b};
}
__device__ __forceinline__ Pair block_sum(const Pair& mine) {
  return {block_sum(mine.a), block_sum(mine.b)};
}

// What another lane has.
template <class T>
__device__ __forceinline__ T of_lane(T value, u32 lane) {
  return __shfl_sync(FULL, value, lane);
}
template <class T>
__device__ __forceinline__ T of_lane_below(T value, u32 by) {
  return __shfl_up_sync(FULL, value, by);
}
__device__ __forceinline__ Pair of_lane(const Pair& value, u32 lane) {
  return {of_lane(value.a, lane), of_lane(value.b, lane)};
}
__device__ __forceinline__ Pair of_lane_below(const Pair& value, u32 by) {
  return {of_lane_below(value.a, by), of_lane_below(value.b, by)};
}

// Items that a thread scans at a time.
#define SCANNED 4

// As grid_scan_to, for many items of little work: a warp takes SCANNED * 32 at a time. `mine` is what
// the thread has of the sum over its block's range. Ends with a barrier of the block.
template <class T, class F, class P>
__device__ __forceinline__ void scan_summed(i64 n, T mine, F value, P put, T* partials,
                                            Barrier* barrier) {
  __shared__ T of_warp[WARPS];
  const i64 begin = range_begin(n), end = range_end(n);
  const T sum = block_sum(mine);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
  grid_sync(barrier);
  T before = {}, all = {};
  for (u32 b = threadIdx.x; b < gridDim.x; b += THREADS) {
    const T part = partials[b];
    all += part;
    if (b < blockIdx.x) before += part;
  }
  T base = block_sum(before);
  all = block_sum(all);
  const u32 lane = lane_index(), warp = warp_index();
  for (i64 low = begin; low < end; low += SCANNED * THREADS) {
    const i64 first = low + warp * (SCANNED * WARP) + lane;
    T own[SCANNED], offset[SCANNED], run = {};
#pragma unroll
    for (int k = 0; k < SCANNED; ++k)
      own[k] = first + k * WARP < end ? value(first + k * WARP) : T{};
#pragma unroll
    for (int k = 0; k < SCANNED; ++k) {
      T upto = own[k];
      for (int d = 1; d < WARP; d <<= 1) {
        const T other = of_lane_below(upto, d);
        if (lane >= d) upto += other;
      }
      offset[k] = run + upto - own[k];
      run += of_lane(upto, WARP - 1);
    }
    if (lane == 0) of_warp[warp] = run;
    __syncthreads();
    T total = {}, earlier = {};
    for (u32 w = 0; w < WARPS; ++w) {
      if (w < warp) earlier += of_warp[w];
      total += of_warp[w];
    }
#pragma unroll
    for (int k = 0; k < SCANNED; ++k)
      if (first + k * WARP < end) put(first + k * WARP, base + earlier + offset[k], own[k]);
    base += total;
    __syncthreads();
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) put(n, all, T{});
  __syncthreads();
}

// The same where nothing has been summed yet.
template <class T, class F, class P>
__device__ __forceinline__ void scan_many(i64 n, F value, P put, T* partials, Barrier* barrier) {
  T mine = {};
#pragma unroll 4
  for (i64 i = range_begin(n) + threadIdx.x; i < range_end(n); i += THREADS) mine += value(i);
  scan_summed<T>(n, mine, value, put, partials, barrier);
}
