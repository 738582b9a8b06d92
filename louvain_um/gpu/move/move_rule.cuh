// The rule of moving, and the steps around deciding: start a level, apply moves, activate
// neighbours.
#pragma once
#include "deal_rows.cuh"
#include "decide.cuh"
#include "enqueue.cuh"

// Adds to byte `at` of an array, modulo 256; the other bytes of its word stay, once all threads have
// added. A sum carries into the bytes above, which is taken back, and what that borrows from those
// above is given back. Exchanging words instead would fail whenever others changed a word meanwhile:
// with some thousand threads that add to few communities, nearly always.
__device__ __forceinline__ void add_byte(u32* words, u32 at, u32 change) {
  const bool down = change & 0x80;  // a small number taken away borrows more rarely
  u32 *word = words + at / 4, amount = ((down ? 0 - change : change) & 0xFF) << 8 * (at % 4);
  for (bool less = down; amount; less = !less) {
    const u32 before = atomicAdd(word, less ? 0 - amount : amount);
    const u32 after = less ? before - amount : before + amount;
    amount = (before ^ amount ^ after) & 0x01010100;  // what went into the next bytes
  }
}

// Flags of a rule. Sizes may take a byte if the rule is `compact`.
// Blocks collect what they add to sizes or totals in host memory, where atomics to one line wait for
// each other across the bus, a microsecond each.
enum Flag : u32 { BYTE_SIZES = 1, COLLECT_SIZES = 2, COLLECT_TOTALS = 4 };

// Returns the arcs of a member of a community into which v has an arc: of the vertex that it is named
// after, if that is one. Called rarely, and not inlined: it would take registers from all that decides.
template <class W>
__device__ __noinline__ u64 member_arcs(const u32* labels, const i64* offsets, const u32* targets,
                                        const W* weights, u32 community, u32 v) {
  u32 u = community;
  for (i64 j = row_of(weights, offsets, v).low; labels[u] != community; ++j)
    u = target_at(targets, weights, j);
  return row_of(weights, offsets, u).arcs();
}

// Every neighbouring community is eligible, and the best one must beat staying (the local moving of
// Blondel et al. 2008, §2, from a frozen state).
template <class W, class A>
struct MoveRule {
  using Accumulator = A;
  static constexpr bool unweighted = ::unweighted<W>;
  static constexpr bool wants_best_weight = false, extended = false, bounded = true;
  // Whether an input's sizes may take a byte.
  static constexpr bool compact = unweighted && !same<W, Unweighted>;
  const i64* offsets;
  const u32* targets;
  const W* weights;
  const A* degrees;
  u32* labels;  // community per vertex
  A* totals;    // sum of degrees per community
  u32* sizes;   // vertices per community; modulo 256, in bytes, with BYTE_SIZES
  u32* queue;
  u32* proposed;  // per entry of the queue: community to move to, EMPTY to stay
  double rate;    // resolution / 2m
  double total;   // 2m
  u32 seed;
  u32 flags;

  struct Vertex {
    u32 own;
    A rest;  // total of its community without it
    double pull;
    static constexpr bool idle = false;
  };

  __device__ __forceinline__ A degree(i64 v) const {
    return degree_of(weights, degrees, offsets, v);
  }

  __device__ __forceinline__ Vertex vertex(u32 v) const {
    const A total = degree(v);
    const u32 own = labels[v];
    return {own, totals[own] - total, __dmul_rn(rate, __ull2double_rn(total))};
  }

  __device__ __forceinline__ u32 label(const Vertex&, u32 u) const { return labels[u]; }

  __device__ __forceinline__ Choice choice(const Vertex& x, u32 label, A weight) const {
    return {score_of(weight, x.pull, totals[label]), label};
  }

  // The score of staying.
  __device__ __forceinline__ double floor(const Vertex& x, A own_weight) const {
    return score_of(own_weight, x.pull, x.rest);
  }

  // The vertices of a community: modulo 256, with BYTE_SIZES.
  __device__ __forceinline__ u32 size_of(u32 community) const {
    if constexpr (compact)
      if (flags & BYTE_SIZES) return ((const u8*)sizes)[community];
    return sizes[community];
  }

  // Whether a community into which v has an arc has one vertex. All vertices of larger ones have
  // arcs: where a size is 1 modulo 256, there are 257 arcs or more, not all of one of them.
  __device__ __forceinline__ bool is_single(u32 community, u32 v) const {
    if (size_of(community) != 1) return false;
    if constexpr (compact)
      if (flags & BYTE_SIZES && totals[community] > (A)255)
        return member_arcs(labels, offsets, targets, weights, community, v) == totals[community];
    return true;
  }

  __device__ __forceinline__ void set_size(u32 community, u32 size) const {
    if constexpr (compact)
      if (flags & BYTE_SIZES) {
        ((u8*)sizes)[community] = size;
        return;
      }
    sizes[community] = size;
  }

  __device__ __forceinline__ void add_total(u32 community, A degrees) const {
    reduce_add(totals + community, degrees);
  }

  __device__ __forceinline__ void add_size(u32 community, u32 vertices) const {
    if constexpr (compact)
      if (flags & BYTE_SIZES) return add_byte(sizes, community, vertices);
    reduce_add(sizes + community, vertices);
  }

  // Proposes the best community, unless staying is as good, or two vertices that are each alone
  // would swap places. Who has others' arcs in its community is not alone: no size is read then.
  __device__ __forceinline__ void propose(u32 i, const Vertex& x, Choice best, A own_weight, A,
                                         Tally& tally) const {
    u32 target = EMPTY;
    double stay = floor(x, own_weight);
    if (best.community != EMPTY && best.score > stay &&
        !(best.community > x.own && x.rest == 0 && size_of(x.own) == 1 &&
          is_single(best.community, queue[i]))) {
      target = best.community;
      double gain = __ddiv_rn(__dsub_rn(best.score, stay), total);
      tally.gain += __double2ll_rn(__dmul_rn(gain, GAIN_UNIT));
      ++tally.moves;
    }
    proposed[i] = target;
  }
};
static_assert(sizeof(MoveRule<u32, u32>) == 96, "mirrored by MOVE_RULE in gpu/move/arguments.py");

// Flags of vertices, a bit each: v's is bit v % 32 of word v / 32.
__device__ __forceinline__ bool is_flagged(const u32* flags, u32 v) {
  return flags[v / 32] >> v % 32 & 1;
}
__device__ __forceinline__ void flag(u32* flags, u32 v) { reduce_or(flags + v / 32, 1u << v % 32); }
// Clears the flags of v's word, where v is the first of these.
__device__ __forceinline__ void clear_flags(u32* flags, i64 v) {
  if (v % 32 == 0) flags[v / 32] = 0;
}

// Whether u is to be marked for the next sweep: unless it is, or is queued in this one for a
// sub-round still to come. Both words are read at once: what takes time is to wait.
__device__ __forceinline__ bool is_missed(u32 u, u32 sub_round, u32 sub_rounds, u32 salt,
                                          const u32* active, const u32* next_active) {
  const bool marked = is_flagged(next_active, u), waits = is_flagged(active, u);
  return !marked && !(waits && bucket(u, salt, sub_rounds) > sub_round);
}

// Marks the targets of arcs low..high - 1, outside the new community of their source, by the threads
// of a group of G. Flags are only set, so the order does not matter.
template <u32 G, class S>
__device__ __forceinline__ void activate_row(const S& s, i64 low, i64 high, u32 rank, u32 target,
                                             u32 sub_round, u32 sub_rounds, u32 salt,
                                             const u32* active, u32* next_active) {
  for (i64 j = low + rank; j < high; j += G) {
    u32 u = target_at(s.targets, s.weights, j);
    if (s.labels[u] != target && is_missed(u, sub_round, sub_rounds, salt, active, next_active))
      flag(next_active, u);
  }
}

// Does so for the moved vertices in queue[begin:end): a group of G threads per vertex. Returns the
// arcs that this thread's groups read, to the first thread of each.
template <u32 G, class S>
__device__ u64 activate(const S& s, u32 begin, u32 end, u32 sub_round, u32 sub_rounds, u32 salt,
                         const u32* active, u32* next_active) {
  const u32 groups = gridDim.x * (THREADS / G), rank = threadIdx.x % G;
  u64 arcs = 0;
  for (u32 i = begin + blockIdx.x * (THREADS / G) + threadIdx.x / G; i < end; i += groups) {
    u32 target = s.proposed[i];
    if (target == EMPTY) continue;
    u32 v = s.queue[i];
    const auto [low, high] = row_of(s.weights, s.offsets, v);
    if (rank == 0) arcs += high - low;
    activate_row<G>(s, low, high, rank, target, sub_round, sub_rounds, salt, active, next_active);
  }
  return arcs;
}

// The same for vertices of at most T arcs, by T / 4 lanes each, which read rows as `decide_tile` does.
// Labels are read last: more of the flags are in cache.
template <u32 T, class S>
__device__ u64 activate_short_rows(const S& s, u32 begin, u32 end, u32 sub_round, u32 sub_rounds,
                                   u32 salt, const u32* active, u32* next_active) {
  constexpr u32 G = T / ARCS_A_LANE, step = WARP / G;
  const u32 lane = threadIdx.x % WARP;
  u64 arcs = 0;
  for (u32 first = begin + grid_thread() / WARP * step; first < end;
       first += grid_threads() / WARP * step) {
    const u32 i = first + lane / G, community = i < end ? s.proposed[i] : EMPTY;
    if (!__any_sync(FULL, community != EMPTY)) continue;
    const u32 v = community != EMPTY ? s.queue[i] : 0;
    const Row row = community != EMPTY ? row_of(s.weights, s.offsets, v) : Row{0, 0};
    u32 target[ARCS_A_LANE];
    read_target_rows<T>(s, row, target);
    exchange<G>(target);
    if (lane % G == 0) arcs += row.arcs();
    bool missed[ARCS_A_LANE];
#pragma unroll
    for (u32 q = 0; q < ARCS_A_LANE; ++q) {
      const u32 u = target[q] == EMPTY ? v : target[q];
      missed[q] = is_missed(u, sub_round, sub_rounds, salt, active, next_active) &&
                  target[q] != EMPTY;
    }
#pragma unroll
    for (u32 q = 0; q < ARCS_A_LANE; ++q)
      if (missed[q] && s.labels[target[q]] != community) flag(next_active, target[q]);
  }
  return arcs;
}

// The same for a sub-round's queue, whose bins begin at from[0], from[1], …; adds the arcs read to
// `read_again`. All threads of the block call it.
template <class S, class A>
__device__ void activate_bins(const S& s, const u32* from, u32 sub_round, u32 sub_rounds, u32 salt,
                              const u32* active, u32* next_active, u64* read_again,
                              Shared<A>& shared) {
  u64 arcs = 0;
  deal_rows(
      s, from[HUB], from[BLOCK], shared, [&](u32 i) { return s.proposed[i] != EMPTY; },
      [&](u32 i, i64 low, i64 high) {
        if (threadIdx.x == 0) arcs += high - low;
        activate_row<THREADS>(s, low, high, threadIdx.x, s.proposed[i], sub_round, sub_rounds, salt,
                              active, next_active);
      });
  arcs += activate<THREADS>(s, from[BLOCK], from[PER_WARP], sub_round, sub_rounds, salt, active,
                            next_active);
  arcs += activate<WARP>(s, from[PER_WARP], from[TILE16], sub_round, sub_rounds, salt, active,
                         next_active);
  arcs += activate_short_rows<16>(s, from[TILE16], from[TILE8], sub_round, sub_rounds, salt, active,
                                  next_active);
  arcs += activate_short_rows<8>(s, from[TILE8], from[TILE4], sub_round, sub_rounds, salt, active,
                                 next_active);
  arcs += activate_short_rows<4>(s, from[TILE4], from[BINS], sub_round, sub_rounds, salt, active,
                                 next_active);
  arcs = block_sum(arcs);
  if (threadIdx.x == 0 && arcs) atomicAdd(read_again, arcs);
}

// Adds to community `index` in one half of the block's table, unless the places for it are taken. Not
// inlined: it would take registers from all that decides.
template <class A>
__device__ __noinline__ bool collect(Shared<A>& shared, u32 half, u32 index, A value) {
  constexpr u32 slots = Table<A>::slots / 2, places = 4;
  for (u32 k = 0; k < places; ++k) {
    const u32 slot = half * slots + ((mix32(index) + k) & (slots - 1));
    u32 key = *(volatile u32*)&shared.keys[slot];
    if (key == EMPTY) key = atomicCAS(&shared.keys[slot], EMPTY, index);
    if (key != EMPTY && key != index) continue;
    atomicAdd(&shared.sums[slot], value);
    return true;
  }
  return false;
}

// Adds so many vertices, which have so many arcs together, to a community.
template <class S, class A>
__device__ __forceinline__ void add(const S& s, Shared<A>& shared, u32 community, A degrees,
                                    u32 vertices) {
  if (!(s.flags & COLLECT_TOTALS && collect(shared, 0, community, degrees)))
    s.add_total(community, degrees);
  if (!(s.flags & COLLECT_SIZES && collect(shared, 1, community, (A)vertices)))
    s.add_size(community, vertices);
}

// Adds what a block has collected, and leaves its table empty. All threads of the block call.
template <class S, class A>
__device__ void add_collected(const S& s, Shared<A>& shared) {
  if (!(s.flags & (COLLECT_TOTALS | COLLECT_SIZES))) return;
  __syncthreads();
  for (u32 k = threadIdx.x; k < Table<A>::slots; k += THREADS) {
    const u32 community = shared.keys[k];
    if (community == EMPTY) continue;
    const A sum = shared.sums[k];
    if (sum && k < Table<A>::slots / 2) s.add_total(community, sum);
    if (sum && k >= Table<A>::slots / 2) s.add_size(community, (u32)sum);
    shared.keys[k] = EMPTY;
    shared.sums[k] = 0;
  }
  __syncthreads();
}

// Applies the moves of queue[begin:end), for the threads of the grid, in whole warps.
template <class S>
__device__ void apply_moves(const S& s, u32 begin, u32 end, i64 thread, i64 threads,
                            Shared<typename S::Accumulator>& shared) {
  using A = typename S::Accumulator;
  for (i64 k = thread; k < whole_warps(end - begin); k += threads) {
    i64 i = begin + k;
    u32 target = i < end ? s.proposed[i] : EMPTY, own = EMPTY;
    if (!__any_sync(FULL, target != EMPTY)) continue;
    A degree = 0;
    if (target != EMPTY) {
      u32 v = s.queue[i];
      own = s.labels[v];
      degree = s.degree(v);
      s.labels[v] = target;
    }
    put_together(own, degree,
                 [&](u32 c, A sum, u32 vertices) { add(s, shared, c, 0 - sum, 0 - vertices); });
    put_together(target, degree,
                 [&](u32 c, A sum, u32 vertices) { add(s, shared, c, sum, vertices); });
  }
  add_collected(s, shared);
}

// Puts every vertex into its start community, alone where `start` is null, and makes it active, or
// only where `awake` says so. `summed`: totals and sizes are those of `start` already.
// Ends with a barrier of the grid.
template <class S>
__device__ void begin_level(const S& s, i64 n, const u32* start, u32* active, u32* next_active,
                            i64 thread, i64 threads, Barrier* barrier,
                            Shared<typename S::Accumulator>& shared, const u8* awake = nullptr,
                            bool summed = false) {
  using A = typename S::Accumulator;
  for (i64 v = thread; v < n; v += threads) {
    s.labels[v] = start ? start[v] : v;
    if (!summed) {
      s.totals[v] = start ? 0 : s.degree(v);
      s.set_size(v, start ? 0 : 1);
    }
  }
  for (i64 w = thread; w < (n + 31) / 32; w += threads) {
    u32 flags = awake ? 0 : FULL;
    if (awake)
      for (i64 v = w * 32; v < min(w * 32 + 32, n); ++v) flags |= (u32)(awake[v] != 0) << v % 32;
    active[w] = flags;
    next_active[w] = 0;
  }
  grid_sync(barrier);
  if (!start || summed) return;
  for (i64 v = thread; v < whole_warps(n); v += threads) {
    u32 label = v < n ? start[v] : EMPTY;
    put_together(label, v < n ? s.degree(v) : (A)0,
                 [&](u32 c, A sum, u32 vertices) { add(s, shared, c, sum, vertices); });
  }
  add_collected(s, shared);
  grid_sync(barrier);
}
