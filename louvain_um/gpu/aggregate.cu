// From communities to the next level's graph, exactly: communities become vertices.
//
// Members are listed community by community, so that a community's arcs are a stretch of one
// long list of arcs, which is cut without regard to rows. A community's arcs to others are
// added up in a hash table: a warp's in shared memory, a block's, or, for giants, one in global
// memory that all blocks fill. Which one is first tried goes by its arcs; a table that turns
// out too small passes its community on. Rows are written where they would begin if no arcs
// merged (in `room`, for a stretch of communities at a time), then moved together. The order
// of a row's neighbours is free: no label depends on it.
#include "table.cuh"
#include "walk.cuh"

#define THREADS 256
#define WARPS (THREADS / WARP)
// Five blocks on each multiprocessor measured faster than three, four or six.
#define BOUNDS __launch_bounds__(THREADS, 5)

// Most arcs that a block adds up alone; a community with more is a giant.
#define MIDDLE_ARCS 32768
// Arcs of a giant that a block takes at a time, and arcs that a warp moves at a time.
#define UNIT_ARCS 4096
#define MOVE_ARCS 1024
#define BOUND_COUNT 17

// Slots of a block's table: 32 KiB, or 24 KiB with sums of 64 bits. A table counts as full when
// three quarters of it are in use: the last quarter takes what is inserted at that moment.
template <class A>
struct Table {
  static constexpr u32 slots = sizeof(A) == 4 ? 4096 : 2048;
  static constexpr u32 warp_slots = slots / WARPS;
  // Most arcs with which a warp is tried; with half of them it is sure to suffice.
  static constexpr u32 warp_arcs = warp_slots / 4 * 3 * 2;
};

// What kernels leave for each other and for the host; zero before the first.
struct State {
  Barrier barrier;
  u32 claimed_small, middles, claimed_middle, giants;  // zero before each call of add_up
  u64 vertices, room, widest_room, chunk_room, arcs, widest, inside, squares[3];
  u64 bounds[BOUND_COUNT];
};

// The level (n vertices), its grouping, the next level (k vertices) and the memory of the work.
// numbers: community of each vertex. members[starts[c]:starts[c + 1]]: those of c; before[i]:
// arcs of all members before the i-th. rooms[c]: most arcs all before c can have. Communities
// first..last - 1 are at work, with base arcs before them; new_targets and new_weights begin
// with theirs.
template <class W, class A>
struct Job {
  i64 n, k, first, last, base, chunk;
  u64 capacity;
  const i64* offsets;
  const u32* targets;
  const W* weights;
  const A* loops;
  const A* degrees;
  u32* numbers;
  u32* members;
  u32* starts;
  i64* before;
  i64* rooms;
  u32* room_targets;
  A* room_weights;
  i64* new_offsets;
  u32* new_targets;
  A* new_weights;
  A* new_loops;
  A* new_degrees;
  u32* middles;
  u32* giants;
  u32* keys;
  A* sums;
  State* state;
  u64* partials;
};

__device__ __forceinline__ i64 grid_thread() { return blockIdx.x * (i64)blockDim.x + threadIdx.x; }
__device__ __forceinline__ i64 grid_threads() { return gridDim.x * (i64)blockDim.x; }

// Numbers the labels in use 0..k - 1 in their order, in place, and groups the members. Returns
// k. Ends with a barrier.
template <class W, class A>
__device__ i64 group(const Job<W, A>& job) {
  Barrier* barrier = &job.state->barrier;
  const i64 n = job.n, thread = grid_thread(), threads = grid_threads();
  u32* ranks = job.members;           // until members are listed
  u32* places = (u32*)job.before;     // place of each vertex in its community, likewise
  for (i64 v = thread; v <= n; v += threads) ranks[v] = job.starts[v] = 0;
  grid_sync(barrier);
  for (i64 v = thread; v < n; v += threads) ranks[job.numbers[v]] = 1;
  grid_sync(barrier);
  grid_scan<u32>(n, [=](i64 c) { return ranks[c]; }, ranks, (u32*)job.partials, barrier);
  grid_sync(barrier);
  const i64 k = ranks[n];
  // One addition for all members of a community within a warp, since giants are in every warp.
  for (i64 v = thread; v - lane_index() < n; v += threads) {
    u32 c = v < n ? ranks[job.numbers[v]] : EMPTY, base = 0;
    u32 peers = __match_any_sync(FULL, c), leader = __ffs(peers) - 1;
    if (lane_index() == leader && c != EMPTY) base = atomicAdd(job.starts + c, __popc(peers));
    base = __shfl_sync(FULL, base, leader);
    if (c == EMPTY) continue;
    job.numbers[v] = c;
    places[v] = base + __popc(peers & lanes_below());
  }
  grid_sync(barrier);
  u32* starts = job.starts;
  grid_scan<u32>(k, [=](i64 c) { return starts[c]; }, starts, (u32*)job.partials, barrier);
  grid_sync(barrier);
  for (i64 v = thread; v < n; v += threads) job.members[starts[job.numbers[v]] + places[v]] = v;
  grid_sync(barrier);
  const u32* members = job.members;
  const i64* offsets = job.offsets;
  grid_scan<i64>(
      n, [=](i64 i) { return offsets[members[i] + 1ll] - offsets[members[i]]; }, job.before,
      (i64*)job.partials, barrier);
  if (thread == 0) job.state->vertices = k;
  grid_sync(barrier);
  return k;
}

// Adds up degrees and twice the loops of each community's members, and lays out room for the
// rows. Ends with a barrier.
template <class W, class A>
__device__ void add_up_members(const Job<W, A>& job) {
  Barrier* barrier = &job.state->barrier;
  const i64 n = job.n, k = job.k, thread = grid_thread(), threads = grid_threads();
  for (i64 c = thread; c < k; c += threads) job.new_degrees[c] = job.new_loops[c] = 0;
  grid_sync(barrier);
  const u32 lane = lane_index();
  for (i64 i = thread; i - lane < n; i += threads) {
    u32 c = EMPTY;
    A degree = 0, loop = 0;
    if (i < n) {
      u32 v = job.members[i];
      c = job.numbers[v];
      degree = job.degrees[v];
      if (job.loops) loop = 2 * job.loops[v];
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
      if (degree) atomicAdd(job.new_degrees + c, degree);
      if (loop) atomicAdd(job.new_loops + c, loop);
    }
  }
  grid_sync(barrier);
  const u32* starts = job.starts;
  const i64* before = job.before;
  Squares squares;
  u64 widest = 0;
  for (i64 c = thread; c < k; c += threads) {
    squares.add(job.new_degrees[c]);
    widest = max(widest, (u64)(before[starts[c + 1]] - before[starts[c]]));
  }
  squares.publish(job.state->squares);
  widest = warp_max(widest);
  if (lane == 0 && widest) atomicMax(&job.state->widest_room, widest);
  grid_scan<i64>(
      k, [=](i64 c) { return min(before[starts[c + 1]] - before[starts[c]], k); }, job.rooms,
      (i64*)job.partials, barrier);
  grid_sync(barrier);
}

// Cuts the communities into chunks whose rooms begin within one multiple of `chunk` arcs.
template <class W, class A>
__device__ void cut_chunks(const Job<W, A>& job) {
  __shared__ i64 bounds[BOUND_COUNT];
  if (blockIdx.x != 0) return;
  if (threadIdx.x < BOUND_COUNT) {
    i64 low = 0, high = job.k, goal = threadIdx.x * job.chunk;
    while (low < high) {
      i64 middle = (low + high) / 2;
      if (job.rooms[middle] < goal)
        low = middle + 1;
      else
        high = middle;
    }
    bounds[threadIdx.x] = threadIdx.x == BOUND_COUNT - 1 ? job.k : low;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  i64 widest = 0;
  for (int q = 0; q < BOUND_COUNT; ++q) {
    job.state->bounds[q] = bounds[q];
    if (q) widest = max(widest, job.rooms[bounds[q]] - job.rooms[bounds[q - 1]]);
  }
  job.state->chunk_room = widest;
  job.state->room = job.rooms[job.k];
}

// The tables that a block works with.
template <class A>
struct Shared {
  u32 keys[Table<A>::slots];
  A sums[Table<A>::slots];
  u32 used[WARPS];
  u32 claimed, full, written;
  u64 table_at[THREADS + 1];
  u32 unit_at[THREADS + 1];
};

// Visits a warp's stretch of the arcs of members i..: add(community, weight) for each, which
// returns false to stop the warp.
template <class W, class A, class F>
__device__ __forceinline__ void visit_arcs(const Job<W, A>& job, i64 i, i64 low, i64 high, F add) {
  auto source = [&](i64 m) { return job.offsets[job.members[m]]; };
  walk_rows(job.before, i, job.n, low, high, source, [&](const i64* at, const u32*, i64) {
    u32 community[DEPTH];
    A weight[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      community[d] = EMPTY;
      weight[d] = 0;
      if (at[d] >= 0) {
        community[d] = __ldcs(job.targets + at[d]);
        weight[d] = weight_at(job.weights, at[d]);
      }
    }
#pragma unroll
    for (int d = 0; d < DEPTH; ++d)
      if (at[d] >= 0) community[d] = job.numbers[community[d]];
    bool going = true;
#pragma unroll
    for (int d = 0; d < DEPTH; ++d)
      if (at[d] >= 0) going &= add(community[d], weight[d]);
    return going;
  });
}

// Returns the t-th slot to be read of a table: a permutation of 0..slots - 1 (a power of two).
// Rows in the order of slots would, in tables of the next level, fill one place after another.
__device__ __forceinline__ u32 scatter(u32 t, u32 slots) {
  return (t * 0x9E3779B1u) & (slots - 1);
}

__device__ __forceinline__ u32 table_for(i64 arcs, i64 k) { return slots_for(u32(min(arcs, k))); }

// Adds up communities with few arcs, a warp each; lists the others for blocks or the grid.
template <class W, class A>
__device__ void add_up_small(const Job<W, A>& job, Shared<A>& shared) {
  const u32 lane = lane_index();
  u32* keys = shared.keys + warp_index() * Table<A>::warp_slots;
  A* sums = shared.sums + warp_index() * Table<A>::warp_slots;
  u32* used = shared.used + warp_index();
  const i64 count = job.last - job.first;
  const u32 share = max(1ll, min(32ll, count / (grid_threads() / WARP * 8)));
  State* state = job.state;
  while (true) {
    u32 claim = 0;
    if (lane == 0) claim = atomicAdd(&state->claimed_small, share);
    claim = __shfl_sync(FULL, claim, 0);
    if (claim >= count) break;
    const i64 stop = min((i64)claim + share, count) + job.first;
    for (i64 c = job.first + claim; c < stop; ++c) {
      const u32 member = job.starts[c];
      const i64 low = job.before[member], high = job.before[job.starts[c + 1]], arcs = high - low;
      if (arcs == 0 || arcs > Table<A>::warp_arcs) {
        if (lane == 0) {
          job.new_offsets[c] = 0;
          if (arcs > MIDDLE_ARCS)
            job.giants[atomicAdd(&state->giants, 1u)] = c;
          else if (arcs)
            job.middles[atomicAdd(&state->middles, 1u)] = c;
        }
        continue;
      }
      const u32 slots = min(table_for(arcs, job.k), Table<A>::warp_slots), limit = slots / 4 * 3;
      for (u32 s = lane; s < slots; s += WARP) {
        keys[s] = EMPTY;
        sums[s] = 0;
      }
      if (lane == 0) *used = 0;
      __syncwarp();
      A inner = 0;
      bool fits = true;
      visit_arcs(job, member, low, high, [&](u32 community, A weight) {
        if (community == c)
          inner += weight;
        else
          fits &= try_add_weight(keys, sums, slots, used, limit, community, weight);
        return fits;
      });
      __syncwarp();
      if (__any_sync(FULL, !fits)) {
        if (lane == 0) {
          job.new_offsets[c] = 0;
          job.middles[atomicAdd(&state->middles, 1u)] = c;
        }
        continue;
      }
      i64 at = job.rooms[c] - job.rooms[job.first];
      const i64 begin = at;
      for (u32 t = lane; t < slots; t += WARP) {
        const u32 s = scatter(t, slots);
        u32 key = keys[s], found = __ballot_sync(FULL, key != EMPTY);
        if (key != EMPTY) {
          i64 mine = at + __popc(found & lanes_below());
          job.room_targets[mine] = key;
          job.room_weights[mine] = sums[s];
        }
        at += __popc(found);
      }
      __syncwarp();  // before the table is emptied for the next community
      inner = warp_sum(inner);
      if (lane == 0) {
        job.new_offsets[c] = at - begin;
        job.new_loops[c] += inner;
      }
    }
  }
}

// Visits the arcs low..high of members first..last - 1 with all warps of the block.
template <class W, class A, class F>
__device__ __forceinline__ void visit_with_block(const Job<W, A>& job, u32 first, u32 last,
                                                 i64 low, i64 high, F add) {
  const i64 arcs = high - low, begin = low + arcs * warp_index() / WARPS;
  const i64 end = low + arcs * (warp_index() + 1) / WARPS;
  if (begin < end) visit_arcs(job, find_row(job.before, first, last, begin), begin, end, add);
}

// Adds up communities of middle size, a block each; lists those with too many neighbours.
template <class W, class A>
__device__ void add_up_middle(const Job<W, A>& job, Shared<A>& shared) {
  State* state = job.state;
  const u32 middles = *(volatile u32*)&state->middles;
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) {
      shared.claimed = atomicAdd(&state->claimed_middle, 1u);
      shared.used[0] = shared.full = shared.written = 0;
    }
    __syncthreads();
    if (shared.claimed >= middles) break;
    const i64 c = job.middles[shared.claimed];
    const u32 first = job.starts[c], last = job.starts[c + 1];
    const i64 low = job.before[first], high = job.before[last];
    const u32 slots = min(table_for(high - low, job.k), Table<A>::slots), limit = slots / 4 * 3;
    for (u32 s = threadIdx.x; s < slots; s += THREADS) {
      shared.keys[s] = EMPTY;
      shared.sums[s] = 0;
    }
    __syncthreads();
    A inner = 0;
    visit_with_block(job, first, last, low, high, [&](u32 community, A weight) {
      if (community == c)
        inner += weight;
      else if (!try_add_weight(shared.keys, shared.sums, slots, shared.used, limit, community,
                               weight))
        atomicOr(&shared.full, 1u);  // others look at it meanwhile
      return *(volatile u32*)&shared.full == 0;
    });
    inner = block_sum(inner);
    if (shared.full) {
      if (threadIdx.x == 0) job.giants[atomicAdd(&state->giants, 1u)] = c;
      continue;
    }
    const i64 at = job.rooms[c] - job.rooms[job.first];
    for (u32 t = threadIdx.x; t - lane_index() < slots; t += THREADS) {
      const u32 s = scatter(t, slots);
      u32 key = shared.keys[s], found = __ballot_sync(FULL, key != EMPTY), base = 0;
      if (lane_index() == 0 && found) base = atomicAdd(&shared.written, __popc(found));
      base = __shfl_sync(FULL, base, 0);
      if (key != EMPTY) {
        i64 mine = at + base + __popc(found & lanes_below());
        job.room_targets[mine] = key;
        job.room_weights[mine] = shared.sums[s];
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      job.new_offsets[c] = shared.written;
      job.new_loops[c] += inner;
    }
  }
}

// Returns the last of entries 0..count - 1 that is at most x; the first is.
template <class T>
__device__ __forceinline__ u32 last_at_most(const T* entries, u32 count, T x) {
  u32 low = 0, high = count;
  while (high - low > 1) {
    u32 middle = (low + high) / 2;
    if (entries[middle] <= x)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Adds up giants with the whole grid, as many at a time as there is room for tables: blocks
// take units of arcs, first into a table of their own, whose sums then go to the giant's, so
// that arcs to the same few giants do not queue for one address. Ends with a barrier.
template <class W, class A>
__device__ void add_up_giants(const Job<W, A>& job, Shared<A>& shared) {
  Barrier* barrier = &job.state->barrier;
  const u32 giants = *(volatile u32*)&job.state->giants;
  for (u32 done = 0, taken; done < giants; done += taken) {
    // Every block makes the same plan.
    const u32 t = threadIdx.x;
    u64 slots = 0, all_slots;
    u32 units = 0, all_units;
    if (done + t < giants) {
      u32 c = job.giants[done + t];
      i64 arcs = job.before[job.starts[c + 1]] - job.before[job.starts[c]];
      slots = table_for(arcs, job.k);
      units = (arcs + UNIT_ARCS - 1) / UNIT_ARCS;
    }
    u64 slots_before = block_scan(slots, all_slots);
    bool fits = slots && slots_before + slots <= job.capacity;
    u32 units_before = block_scan(fits ? units : 0u, all_units);
    taken = block_sum(fits ? 1u : 0u);
    if (t == 0) shared.table_at[0] = 0;
    if (fits) shared.table_at[t + 1] = slots_before + slots;
    shared.unit_at[t] = units_before;
    __syncthreads();
    all_slots = shared.table_at[taken];
    for (u64 s = grid_thread(); s < all_slots; s += grid_threads()) {
      job.keys[s] = EMPTY;
      job.sums[s] = 0;
    }
    grid_sync(barrier);
    for (u32 unit = blockIdx.x; unit < all_units; unit += gridDim.x) {
      const u32 g = last_at_most(shared.unit_at, taken, unit);
      const i64 c = job.giants[done + g];
      u32* keys = job.keys + shared.table_at[g];
      A* sums = job.sums + shared.table_at[g];
      const u32 slots = shared.table_at[g + 1] - shared.table_at[g];
      const u32 first = job.starts[c], last = job.starts[c + 1];
      const i64 low = job.before[first] + (i64)(unit - shared.unit_at[g]) * UNIT_ARCS;
      const i64 high = min(low + UNIT_ARCS, job.before[last]);
      for (u32 s = threadIdx.x; s < Table<A>::slots; s += THREADS) {
        shared.keys[s] = EMPTY;
        shared.sums[s] = 0;
      }
      if (threadIdx.x == 0) shared.used[0] = 0;
      __syncthreads();
      A inner = 0;
      visit_with_block(job, first, last, low, high, [&](u32 community, A weight) {
        if (community == c)
          inner += weight;
        else if (!try_add_weight(shared.keys, shared.sums, Table<A>::slots, shared.used,
                                 Table<A>::slots / 4 * 3, community, weight))
          add_weight(keys, sums, slots, community, weight);
        return true;
      });
      __syncthreads();
      for (u32 s = threadIdx.x; s < Table<A>::slots; s += THREADS)
        if (shared.keys[s] != EMPTY) add_weight(keys, sums, slots, shared.keys[s], shared.sums[s]);
      inner = block_sum(inner);
      if (threadIdx.x == 0 && inner) atomicAdd(job.new_loops + c, inner);
    }
    grid_sync(barrier);
    // Tables are multiples of a warp's width: a warp's slots belong to one giant.
    for (u64 t = grid_thread(); t < all_slots; t += grid_threads()) {
      const u32 g = last_at_most(shared.table_at, taken, t);
      const u64 table = shared.table_at[g], groups = (shared.table_at[g + 1] - table) / WARP;
      const u64 s = table + scatter((t - table) / WARP, groups) * WARP + lane_index();
      u32 key = job.keys[s], found = __ballot_sync(FULL, key != EMPTY);
      if (!found) continue;
      const i64 c = job.giants[done + g];
      u64 base = 0;
      if (lane_index() == 0) base = atomicAdd((u64*)job.new_offsets + c, (u64)__popc(found));
      base = __shfl_sync(FULL, base, 0);
      if (key != EMPTY) {
        i64 mine = job.rooms[c] - job.rooms[job.first] + base + __popc(found & lanes_below());
        job.room_targets[mine] = key;
        job.room_weights[mine] = job.sums[s];
      }
    }
    grid_sync(barrier);
  }
}

// Adds up the arcs of communities first..last - 1 in their rooms, and sets loops and offsets.
template <class W, class A>
__device__ void add_up(const Job<W, A>& job) {
  __shared__ Shared<A> shared;
  Barrier* barrier = &job.state->barrier;
  add_up_small(job, shared);
  grid_sync(barrier);
  add_up_middle(job, shared);
  grid_sync(barrier);
  add_up_giants(job, shared);
  const i64 count = job.last - job.first;
  u64 inside = 0, widest = 0;
  i64* offsets = job.new_offsets + job.first;
  for (i64 c = grid_thread(); c < count; c += grid_threads()) {
    A twice = job.new_loops[job.first + c];
    inside += twice;
    job.new_loops[job.first + c] = twice / 2;
    widest = max(widest, (u64)offsets[c]);
  }
  inside = block_sum(inside);
  if (threadIdx.x == 0 && inside) atomicAdd(&job.state->inside, inside);
  widest = warp_max(widest);
  if (lane_index() == 0 && widest) atomicMax(&job.state->widest, widest);
  grid_scan<i64>(count, [=](i64 c) { return offsets[c]; }, offsets, (i64*)job.partials, barrier,
                 job.base);
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) job.state->arcs = offsets[count];
}

// Moves the rows of communities first..last - 1 together.
template <class W, class A>
__device__ void close_gaps(const Job<W, A>& job) {
  const i64 begin = job.new_offsets[job.first], end = job.new_offsets[job.last];
  const i64 room = job.rooms[job.first], stretch = stretch_of(end - begin, MOVE_ARCS);
  for (i64 low = begin + grid_thread() / WARP * stretch; low < end;
       low += grid_threads() / WARP * stretch) {
    auto source = [&](i64 c) { return job.rooms[c] - room; };
    i64 first = find_row(job.new_offsets, job.first, job.last, low);
    walk_rows(job.new_offsets, first, job.last, low, min(low + stretch, end), source,
              [&](const i64* at, const u32*, i64 position) {
                u32 target[DEPTH];
                A weight[DEPTH];
#pragma unroll
                for (int d = 0; d < DEPTH; ++d) {
                  if (at[d] < 0) continue;
                  target[d] = job.room_targets[at[d]];
                  weight[d] = job.room_weights[at[d]];
                }
                i64 out = position - job.base;
#pragma unroll
                for (int d = 0; d < DEPTH; ++d) {
                  if (at[d] < 0) continue;
                  job.new_targets[out + d * WARP] = target[d];
                  job.new_weights[out + d * WARP] = weight[d];
                }
                return true;
              });
  }
}

// Renumbers `numbers` and groups members; state->vertices becomes k. Cooperative.
template <class W, class A>
__global__ void BOUNDS group_members(Job<W, A> job) {
  group(job);
}

// Sets new_degrees, new_loops (doubled, without inner arcs), rooms and chunks. Cooperative.
template <class W, class A>
__global__ void BOUNDS sum_members(Job<W, A> job) {
  add_up_members(job);
  cut_chunks(job);
}

// Sets new_offsets, new_loops and the rooms' rows of a chunk. Cooperative.
template <class W, class A>
__global__ void BOUNDS sum_arcs(Job<W, A> job) {
  add_up(job);
}

// Moves a chunk's rows to where they stay.
template <class W, class A>
__global__ void BOUNDS move_arcs(Job<W, A> job) {
  close_gaps(job);
}

// All of the above for a small level, whose arrays are as long as they could have to be.
// Cooperative.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 2) aggregate_small(Job<W, A> job) {
  job.last = job.k = group(job);
  add_up_members(job);
  add_up(job);
  grid_sync(&job.state->barrier);
  close_gaps(job);
}

// Sets inside, squares and widest of a level in which every vertex is alone.
template <class W, class A>
__global__ void BOUNDS sum_level(Job<W, A> job) {
  Squares squares;
  u64 inside = 0, widest = 0;
  for (i64 v = grid_thread(); v < job.n; v += grid_threads()) {
    squares.add(job.degrees[v]);
    if (job.loops) inside += 2 * (u64)job.loops[v];
    widest = max(widest, (u64)(job.offsets[v + 1] - job.offsets[v]));
  }
  squares.publish(job.state->squares);
  inside = block_sum(inside);
  if (threadIdx.x == 0 && inside) atomicAdd(&job.state->inside, inside);
  widest = warp_max(widest);
  if (lane_index() == 0 && widest) atomicMax(&job.state->widest, widest);
}
