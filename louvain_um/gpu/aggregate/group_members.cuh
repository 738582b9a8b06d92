// Groups vertices by community: numbers the communities, lists the members of each, and lays out
// room for the rows of the next level: a counting sort by community.
//
// All functions are called by every thread of a cooperative launch. Vertices, members and
// communities are dealt to threads in turns; an array entry is written by one thread, or by
// atomic additions. A vertex without arcs is a member like any other and adds no arcs.
#pragma once
#include "arguments.cuh"

// Ranks the labels in use 0..k - 1 in ascending order, and lists the label of each rank. Returns
// k. Ends with a barrier.
template <class W, class A>
__device__ i64 rank_labels(const Arguments<W, A>& args) {
  Barrier* barrier = &args.state->barrier;
  const i64 thread = grid_thread(), threads = grid_threads();
  u32* ranks = args.ranks;
  for (i64 c = thread; c <= args.label_bound; c += threads) ranks[c] = 0;
  grid_sync(barrier);
  for (i64 v = thread; v < args.n; v += threads) ranks[args.numbers[v]] = 1;
  grid_sync(barrier);
  u32* names = args.names;
  grid_scan_to<u32>(
      args.label_bound, [=](i64 c) { return ranks[c]; },
      [=](i64 c, u32 rank, u32 used) {
        ranks[c] = rank;
        if (names && used) names[rank] = c;
      },
      (u32*)args.partials, barrier);
  grid_sync(barrier);
  const i64 k = ranks[args.label_bound];
  if (thread == 0) args.state->vertices = k;
  return k;
}

// Lists the members of each community, in no particular order, and the arcs before each; numbers
// become ranks, where there are ranks. `ranks` may share memory with `members`: it is read before
// members are written. Offsets of an input in fewer bytes are read in order, once: they may be on
// the host. If they take 32 bits, nothing reads them again (first_arc). Others are looked up, which
// saves a pass. Ends with a barrier.
template <class W, class A>
__device__ void list_members(const Arguments<W, A>& args, i64 k) {
  constexpr bool in_order = lengths_in_offsets<W> || same<W, PackedOffsets32>;
  Barrier* barrier = &args.state->barrier;
  const i64 n = args.n, thread = grid_thread(), threads = grid_threads();
  const ArcsBefore arcs_before = args.arcs_before();
  u32* lengths = args.low;  // of members' rows; at first, places of vertices in communities
  u32* begins = args.starts + in_order;  // counted up to where communities end, if in order
  for (i64 c = thread; c <= k; c += threads) args.starts[c] = 0;
  grid_sync(barrier);
  // One addition for all members of a community within a warp: large communities are in every warp.
  for (i64 v = thread; v - lane_index() < n; v += threads) {
    u32 c = v < n ? args.numbers[v] : EMPTY, place = 0;
    if (c != EMPTY && args.ranks) args.numbers[v] = c = args.ranks[c];
    const u32 peers = __match_any_sync(FULL, c), leader = __ffs(peers) - 1, count = __popc(peers);
    if (c != EMPTY && lane_index() == leader) {
      if constexpr (in_order)
        reduce_add(begins + c, count);
      else
        place = atomicAdd(begins + c, count);
    }
    if constexpr (!in_order) {
      place = __shfl_sync(FULL, place, leader) + __popc(peers & lanes_below());
      if (c != EMPTY) lengths[v] = place;
    }
  }
  grid_sync(barrier);
  grid_scan_to<u32>(
      k, [=](i64 c) { return begins[c]; },
      [=](i64 c, u32 sum, u32) {
        if (!in_order || c < k) begins[c] = sum;
      },
      (u32*)args.partials, barrier);
  grid_sync(barrier);
  for (i64 v = thread; v - lane_index() < n; v += threads) {
    const u32 c = v < n ? args.numbers[v] : EMPTY;
    if constexpr (in_order) {
      const u32 peers = __match_any_sync(FULL, c), leader = __ffs(peers) - 1;
      u32 place = 0;
      if (c != EMPTY && lane_index() == leader) place = atomicAdd(begins + c, __popc(peers));
      place = __shfl_sync(FULL, place, leader) + __popc(peers & lanes_below());
      if (c == EMPTY) continue;
      const Row row = row_of(args.weights, args.offsets, v);
      args.members[place] = args.lists_rows ? (u32)row.low : (u32)v;
      lengths[place] = row.arcs();
    } else if (c != EMPTY) {
      args.members[begins[c] + lengths[v]] = v;
    }
  }
  grid_sync(barrier);
  if constexpr (!in_order) {
    for (i64 i = thread; i < n; i += threads)
      lengths[i] = row_of(args.weights, args.offsets, args.members[i]).arcs();
    grid_sync(barrier);
  }
  grid_scan_to<i64>(
      n, [=](i64 i) { return (i64)lengths[i]; },
      [=](i64 i, i64 sum, i64) { arcs_before.put(i, sum); }, (i64*)args.partials, barrier);
  grid_sync(barrier);
}

// Most members that a warp sums at a time.
#define SUMMED_MEMBERS 16384

// Sums degrees and doubled loops of each community's members.
// Members of a community follow each other: a warp joins those of a range before it adds to memory,
// which may be the host's, where additions to one address take a microsecond each.
template <class W, class A>
__device__ void add_members(const Arguments<W, A>& args) {
  const i64 n = args.n, thread = grid_thread(), threads = grid_threads();
  const u32 lane = lane_index();
  const i64 range = warp_range(n, SUMMED_MEMBERS);
  auto put = [&](u32 c, A degree, A loop, bool whole) {
    if (whole)
      args.new_degrees[c] = degree;
    else if (degree)
      reduce_add(args.new_degrees + c, degree);
    if (loop) reduce_add(args.new_loops + c, loop);
  };
  for (i64 low = thread / WARP * range; low < n; low += threads / WARP * range) {
    // The community of the first member may begin before the range; the open one may go on.
    u32 begun = EMPTY, open = EMPTY;
    A open_degree = 0, open_loop = 0;
    for (i64 i = low + lane; i - lane < min(low + range, n); i += WARP) {
      u32 c = EMPTY;
      A degree = 0, loop = 0;
      if (i < n) {
        u32 v = args.members[i];
        c = args.numbers[v];
        degree = args.degrees[v];
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
      const u32 next = __shfl_down_sync(FULL, c, 1), first = __shfl_sync(FULL, c, 0);
      if (begun == EMPTY) begun = first;
      if (open == first) {
        if (c == first) degree += open_degree, loop += open_loop;
      } else if (open != EMPTY && lane == 0) {
        put(open, open_degree, open_loop, open != begun);
      }
      // What begins and ends within the range is whole.
      if (c != EMPTY && lane < WARP - 1 && next != c) put(c, degree, loop, c != begun);
      open = __shfl_sync(FULL, c, WARP - 1);
      open_degree = __shfl_sync(FULL, degree, WARP - 1);
      open_loop = __shfl_sync(FULL, loop, WARP - 1);
    }
    if (open != EMPTY && lane == 0) put(open, open_degree, open_loop, false);
  }
}

// Sums degrees and doubled loops of each community's members, squares of degrees and totals.
template <class W, class A>
__device__ void sum_degrees(const Arguments<W, A>& args, i64 k) {
  Barrier* barrier = &args.state->barrier;
  const i64 thread = grid_thread(), threads = grid_threads();
  const ArcsBefore arcs_before = args.arcs_before();
  if constexpr (!counts_arcs<W>) {
    for (i64 c = thread; c < k; c += threads) args.new_degrees[c] = args.new_loops[c] = 0;
    grid_sync(barrier);
    add_members(args);
    grid_sync(barrier);
  }
  Squares squares;
  u64 total = 0, nonempty = 0;
  for (i64 c = thread; c < k; c += threads) {
    const i64 arcs = arcs_before[args.starts[c + 1]] - arcs_before[args.starts[c]];
    A degree;
    if constexpr (counts_arcs<W>) {
      args.new_degrees[c] = degree = arcs;
      args.new_loops[c] = 0;
    } else {
      degree = args.new_degrees[c];
    }
    squares.add(degree);
    total += degree;
    nonempty += arcs != 0;
  }
  squares.publish(args.state->squares);
  total = block_sum(total);
  nonempty = block_sum(nonempty);
  if (threadIdx.x == 0) {
    if (total) atomicAdd(&args.state->total, total);
    if (nonempty) atomicAdd(&args.state->nonempty, nonempty);
  }
}

// Returns where one of so many parts of all arcs begins; the last one ends behind every arc.
__device__ __forceinline__ i64 part_begin(i64 arcs, i64 part, i64 parts) {
  return part == parts ? arcs + 1 : arcs / parts * part + arcs % parts * part / parts;
}

// Lays out room for the rows: each as long as if no arcs merged, but no longer than
// neighbour_bound. Cuts the communities into chunks whose rooms begin within one multiple of
// chunk_arcs. Communities whose arcs begin in another part of all arcs get no room. Ends with a
// barrier.
template <class W, class A>
__device__ void lay_out_rooms(const Arguments<W, A>& args, i64 k) {
  Barrier* barrier = &args.state->barrier;
  const u32* starts = args.starts;
  const ArcsBefore arcs_before = args.arcs_before();
  State* state = args.state;
  u32* rooms = args.rooms;
  const i64 bound = args.neighbour_bound, chunk = args.chunk_arcs;
  const i64 arcs = arcs_before[args.n];
  const i64 low = part_begin(arcs, args.part, args.parts);
  const i64 high = part_begin(arcs, args.part + 1, args.parts);
  u64 max_arcs = 0;
  grid_scan_to<i64>(
      k,
      [=](i64 c) {
        const i64 begin = arcs_before[starts[c]];
        return begin < low || begin >= high ? 0 : min(arcs_before[starts[c + 1]] - begin, bound);
      },
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
  for (i64 c = grid_thread(); c < k; c += grid_threads()) {
    const i64 begin = arcs_before[starts[c]], end = arcs_before[starts[c + 1]];
    max_arcs = max(max_arcs, (u64)(end - begin));
    const bool ends = c == k - 1;
    if (begin >= low && (c == 0 || arcs_before[starts[c - 1]] < low)) state->first = c;
    if (begin < low && ends) state->first = k;
    if (begin < high && (ends || end >= high)) state->last = c + 1;
  }
  max_arcs = warp_max(max_arcs);
  if (lane_index() == 0 && max_arcs) atomicMax(&state->max_arcs, max_arcs);
  grid_sync(barrier);
  if (grid_thread() != 0) return;
  u64 most = 0;
  for (int q = 1; q < BOUND_COUNT; ++q) most = max(most, state->room_at[q] - state->room_at[q - 1]);
  state->chunk_room = most;
}
