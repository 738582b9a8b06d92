// Who becomes whom: communities numbered, their members listed, room for their rows laid out.
#pragma once
#include "hash_table.cuh"
#include "walk_arcs.cuh"

#define THREADS 256
#define WARPS (THREADS / WARP)
// Most chunks of communities that are added up one after the other, and one more.
#define BOUND_COUNT 65

// What kernels leave for each other and for the host; zero before the first.
struct State {
  Barrier barrier;
  u32 claimed_by_warps, block_count, claimed_by_blocks, hub_count;  // zero before each chunk
  u64 vertices, room, widest_room, chunk_room, arcs, widest, inside, total;
  u64 written, next;            // arcs that stay, and the first chunk that found no room to
  u64 filled;                   // communities with arcs, once members are summed
  u64 squares[3];
  u64 bounds[BOUND_COUNT];      // chunk q: communities bounds[q]..bounds[q + 1] - 1
  u64 room_at[BOUND_COUNT];     // room of all communities before bounds[q]
};

// Arcs of all members before the i-th, in little more than 4 bytes an entry: their low 32 bits,
// and the whole sum for each stretch of 2^shift entries, in which fewer than 2^32 arcs begin.
struct ArcsBefore {
  u32* low;
  i64* whole;
  u32 shift;
  __device__ __forceinline__ i64 operator[](i64 i) const {
    i64 sum = whole[i >> shift];
    return sum + (low[i] - (u32)sum);
  }
  __device__ __forceinline__ void put(i64 i, i64 sum) const {
    low[i] = (u32)sum;
    if ((i & ((1ll << shift) - 1)) == 0) whole[i >> shift] = sum;
  }
};

// The level (n vertices), its grouping, the next level (k vertices) and the memory of the work.
//
// numbers: label of each vertex, below `labels`; then its community. members[starts[c]:starts[c
// + 1]]: those of c. rooms[c]: the low 32 bits of the most arcs all before c can have, of which
// only differences within a chunk count. A row has neighbours of `distinct` numbers at most:
// map[target], or the target itself where map is null. A new row may be `partial`: then arcs
// inside its community stay in it, and loops are left alone. Chunks from `begin` on are at work,
// with `base` arcs before them; there is room for `reserve` arcs.
template <class W, class A>
struct Arguments {
  i64 n, k, labels, distinct, base, chunk, reserve, narrow, partial, shift, begin, resume;
  u64 capacity, wide;
  const i64* offsets;
  const u32* targets;
  const W* weights;
  const A* loops;
  const A* degrees;
  u32* numbers;
  const u32* map;
  u32* ranks;
  u32* names;
  u32* members;
  u32* starts;
  u32* low;
  i64* whole;
  u32* rooms;
  u32* room_targets;
  A* room_weights;
  i64* new_offsets;
  u32* new_targets;
  void* new_weights;
  A* new_loops;
  A* new_degrees;
  u32* block_bin;
  u32* hub_bin;
  u32* keys;
  A* sums;
  State* state;
  u64* partials;

  __device__ __forceinline__ ArcsBefore before() const { return {low, whole, (u32)shift}; }
  // Where the room of community c begins, in a chunk that begins with `first`.
  __device__ __forceinline__ i64 room_of(i64 c, i64 first) const {
    return (u32)(rooms[c] - rooms[first]);
  }
};

// A stretch of communities whose rows are added up together.
struct Chunk {
  i64 first, last;
};

__device__ __forceinline__ i64 grid_thread() { return blockIdx.x * (i64)blockDim.x + threadIdx.x; }
__device__ __forceinline__ i64 grid_threads() { return gridDim.x * (i64)blockDim.x; }

// Ranks the labels in use 0..k - 1 in their order, and names the ranks. Returns k. Ends with a
// barrier.
template <class W, class A>
__device__ i64 rank_labels(const Arguments<W, A>& args) {
  Barrier* barrier = &args.state->barrier;
  const i64 thread = grid_thread(), threads = grid_threads();
  u32* ranks = args.ranks;
  for (i64 c = thread; c <= args.labels; c += threads) ranks[c] = 0;
  grid_sync(barrier);
  for (i64 v = thread; v < args.n; v += threads) ranks[args.numbers[v]] = 1;
  grid_sync(barrier);
  u32* names = args.names;
  grid_scan_to<u32>(
      args.labels, [=](i64 c) { return ranks[c]; },
      [=](i64 c, u32 rank, u32 used) {
        ranks[c] = rank;
        if (names && used) names[rank] = c;
      },
      (u32*)args.partials, barrier);
  grid_sync(barrier);
  const i64 k = ranks[args.labels];
  if (thread == 0) args.state->vertices = k;
  return k;
}

// Lists the members of each community; numbers become ranks, where there are ranks. `ranks` may
// lie where members are to be listed. Ends with a barrier.
template <class W, class A>
__device__ void list_members(const Arguments<W, A>& args, i64 k) {
  Barrier* barrier = &args.state->barrier;
  const i64 n = args.n, thread = grid_thread(), threads = grid_threads();
  const ArcsBefore before = args.before();
  u32* places = args.low;  // place of each vertex in its community, until arcs are counted
  for (i64 c = thread; c <= k; c += threads) args.starts[c] = 0;
  grid_sync(barrier);
  // One addition for all members of a community within a warp, since hubs are in every warp.
  for (i64 v = thread; v - lane_index() < n; v += threads) {
    u32 c = v < n ? args.numbers[v] : EMPTY, base = 0;
    if (c != EMPTY && args.ranks) c = args.ranks[c];
    u32 peers = __match_any_sync(FULL, c), leader = __ffs(peers) - 1;
    if (lane_index() == leader && c != EMPTY) base = atomicAdd(args.starts + c, __popc(peers));
    base = __shfl_sync(FULL, base, leader);
    if (c == EMPTY) continue;
    args.numbers[v] = c;
    places[v] = base + __popc(peers & lanes_below());
  }
  grid_sync(barrier);
  u32* starts = args.starts;
  grid_scan<u32>(k, [=](i64 c) { return starts[c]; }, starts, (u32*)args.partials, barrier);
  grid_sync(barrier);
  for (i64 v = thread; v < n; v += threads) args.members[starts[args.numbers[v]] + places[v]] = v;
  grid_sync(barrier);
  const u32* members = args.members;
  const i64* offsets = args.offsets;
  const W* weights = args.weights;
  grid_scan_to<i64>(
      n, [=](i64 i) { return row_of(weights, offsets, members[i]).arcs(); },
      [=](i64 i, i64 sum, i64) { before.put(i, sum); }, (i64*)args.partials, barrier);
  grid_sync(barrier);
}

// Adds up degrees and twice the loops of each community's members.
template <class W, class A>
__device__ void sum_degrees(const Arguments<W, A>& args, i64 k) {
  Barrier* barrier = &args.state->barrier;
  const i64 n = args.n, thread = grid_thread(), threads = grid_threads();
  for (i64 c = thread; c < k; c += threads) args.new_degrees[c] = args.new_loops[c] = 0;
  grid_sync(barrier);
  const u32 lane = lane_index();
  for (i64 i = thread; i - lane < n; i += threads) {
    u32 c = EMPTY;
    A degree = 0, loop = 0;
    if (i < n) {
      u32 v = args.members[i];
      c = args.numbers[v];
      degree = degree_of(args.weights, args.degrees, args.offsets, v);
      if (args.loops) loop = 2 * args.loops[v];
    }
    for (int d = 1; d < WARP; d <<= 1) {
      u32 other = __shfl_up_sync(FULL, c, d);
      A more_degree = __shfl_up_sync(FULL, degree, d), more_loop = __shfl_up_sync(FULL, loop, d);
      if (lane >= d && other == c) {
        degree += more_degree;
        loop += more_loop;
      }
    }
    u32 next = __shfl_down_sync(FULL, c, 1);
    if (c != EMPTY && (lane == WARP - 1 || next != c)) {
      if (degree) atomicAdd(args.new_degrees + c, degree);
      if (loop) atomicAdd(args.new_loops + c, loop);
    }
  }
  grid_sync(barrier);
  const ArcsBefore before = args.before();
  Squares squares;
  u64 total = 0, filled = 0;
  for (i64 c = thread; c < k; c += threads) {
    const A degree = args.new_degrees[c];
    squares.add(degree);
    total += degree;
    filled += before[args.starts[c + 1]] != before[args.starts[c]];
  }
  squares.publish(args.state->squares);
  total = block_sum(total);
  filled = block_sum(filled);
  if (threadIdx.x == 0) {
    if (total) atomicAdd(&args.state->total, total);
    if (filled) atomicAdd(&args.state->filled, filled);
  }
}

// Lays out room for the rows, and cuts the communities into chunks whose rooms begin within one
// multiple of `chunk` arcs. Ends with a barrier.
template <class W, class A>
__device__ void lay_out_rooms(const Arguments<W, A>& args, i64 k) {
  Barrier* barrier = &args.state->barrier;
  const u32* starts = args.starts;
  const ArcsBefore before = args.before();
  State* state = args.state;
  u32* rooms = args.rooms;
  const i64 distinct = args.distinct, chunk = args.chunk;
  u64 widest = 0;
  grid_scan_to<i64>(
      k,
      [=](i64 c) { return min(before[starts[c + 1]] - before[starts[c]], distinct); },
      [=](i64 c, i64 room, i64 own) {
        rooms[c] = (u32)room;
        if (c == k) {
          for (i64 q = room / chunk + 1; q < BOUND_COUNT - 1; ++q) {
            state->bounds[q] = k;
            state->room_at[q] = room;
          }
          state->bounds[BOUND_COUNT - 1] = k;
          state->room_at[BOUND_COUNT - 1] = state->room = room;
        }
        if (own == 0) return;
        const i64 end = room + own;
        for (i64 q = room / chunk + 1; q <= end / chunk && q < BOUND_COUNT - 1; ++q) {
          state->bounds[q] = c + 1;
          state->room_at[q] = end;
        }
      },
      (i64*)args.partials, barrier);
  for (i64 c = grid_thread(); c < k; c += grid_threads())
    widest = max(widest, (u64)(before[starts[c + 1]] - before[starts[c]]));
  widest = warp_max(widest);
  if (lane_index() == 0 && widest) atomicMax(&state->widest_room, widest);
  grid_sync(barrier);
  if (grid_thread() != 0) return;
  u64 most = 0;
  for (int q = 1; q < BOUND_COUNT; ++q)
    most = max(most, state->room_at[q] - state->room_at[q - 1]);
  state->chunk_room = most;
}
