// Moving vertices between communities: all sweeps of one level in one cooperative launch.
//
// A sweep: the active vertices are queued by sub-round and by degree; then, sub-round by
// sub-round, `decide` reads the frozen labels and totals and notes where each queued vertex
// goes, `apply` carries the moves out with integer atomics, `activate` wakes the neighbours
// left behind. Between steps the grid waits for itself; the host is not asked. No result
// depends on the order of a queue, of atomics, or of blocks.
//
// Who owns what: labels, totals and sizes change in `apply` only; goals[i] belongs to whoever
// decides for queue[i]; a byte of `next` is only ever set to 1 during a sweep.

#include "decide.cuh"
#include "giants.cuh"

// The rule of moving: every neighbouring community counts, the best one must beat staying.
template <class W, class A>
struct Mover {
  using Accumulator = A;
  static constexpr bool unweighted = same<W, Unweighted>, wants_tie = false;
  const i64* offsets;
  const u32* targets;
  const W* weights;
  const A* degrees;
  u32* labels;
  A* totals;
  u32* sizes;
  u32* queue;
  u32* goals;
  double rate;
  double total;
  u32 seed;

  struct Vertex {
    u32 own;
    A degree;
    double pull;
    static constexpr bool idle = false;
  };

  __device__ __forceinline__ Vertex vertex(u32 v) const {
    A degree = degrees[v];
    return {labels[v], degree, __dmul_rn(rate, __ull2double_rn(degree))};
  }

  __device__ __forceinline__ u32 label(const Vertex&, u32 u) const { return labels[u]; }

  __device__ __forceinline__ Choice choice(const Vertex& x, u32 label, A weight) const {
    return {score_of(weight, x.pull, totals[label]), label};
  }

  // Notes where the vertex goes, unless that is one half of two lone vertices swapping places.
  __device__ __forceinline__ void settle(u32 i, const Vertex& x, Choice best, A home, A,
                                         Tally& tally) const {
    u32 goal = EMPTY;
    double stay = score_of(home, x.pull, totals[x.own] - x.degree);
    if (best.community != EMPTY && best.score > stay &&
        !(best.community > x.own && sizes[x.own] == 1 && sizes[best.community] == 1)) {
      goal = best.community;
      double gain = __ddiv_rn(__dsub_rn(best.score, stay), total);
      tally.gain += __double2ll_rn(__dmul_rn(gain, 1125899906842624.0));
      ++tally.moves;
    }
    goals[i] = goal;
  }
};

// Wakes u, unless it is queued in this sweep for a sub-round still to come.
__device__ __forceinline__ void wake(u32 u, u32 sub_round, u32 sub_rounds, u32 salt,
                                     const u8* awake, u8* next) {
  if (next[u] || (awake[u] && bucket(u, salt, sub_rounds) > sub_round)) return;
  next[u] = 1;
}

// Wakes the neighbours of the moved vertices in queue[begin:end) that are outside the mover's
// new community: a group of G threads a vertex, `groups` of them in the grid.
template <u32 G, class S>
__device__ void activate(const S& s, u32 begin, u32 end, u32 sub_round, u32 sub_rounds,
                         u32 salt, const u8* awake, u8* next) {
  const u32 groups = gridDim.x * (THREADS / G), rank = threadIdx.x % G;
  for (u32 i = begin + blockIdx.x * (THREADS / G) + threadIdx.x / G; i < end; i += groups) {
    u32 goal = s.goals[i];
    if (goal == EMPTY) continue;
    u32 v = s.queue[i];
    i64 high = s.offsets[v + 1];
    for (i64 j = s.offsets[v] + rank; j < high; j += G) {
      u32 u = __ldcs(s.targets + j);
      if (s.labels[u] != goal) wake(u, sub_round, sub_rounds, salt, awake, next);
    }
  }
}

// The kernel. `start` is null when every vertex begins alone. A vertex of degree 0 is never queued; it stays where it starts.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    move(i64 n, const i64* offsets, const u32* targets, const W* weights, const A* degrees,
         const u32* start, u32* labels, A* totals, u32* sizes, u32* queue, u32* goals, u8* awake,
         u8* next, Giants<A> giants, Control* control, double rate, double total, u32 seed, u32 seed_salt, u32 cycle,
         u32 sub_rounds, u32 max_iterations, i64 tolerance) {
  __shared__ Shared<A> shared;
  Barrier* barrier = &control->barrier;
  const Mover<W, A> s = {offsets, targets, weights, degrees, labels, totals,
                         sizes,   queue,   goals,   rate,    total,  seed};
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  const u32* starts = shared.starts;

  clear_table(shared);
  for (i64 v = thread; v < n; v += threads) {
    labels[v] = start ? start[v] : v;
    totals[v] = start ? 0 : degrees[v];
    sizes[v] = start ? 0 : 1;
    awake[v] = 1;
    next[v] = 0;
  }
  grid_sync(barrier);
  if (start) {
    for (i64 v = thread; v < whole_warps(n); v += threads) {
      u32 label = v < n ? start[v] : EMPTY;
      add_together(totals, label, v < n ? degrees[v] : (A)0);
      add_together(sizes, label, 1u);
    }
    grid_sync(barrier);
  }

  for (u32 iteration = 0; iteration < max_iterations; ++iteration) {
    const u32 salt = mix32((cycle << 16) + iteration + seed_salt);
    const u32 slot = iteration & 1;
    if (thread == 0) control->gain[slot] = 0, control->moves[slot] = 0;
    enqueue(n, offsets, awake, iteration ? next : nullptr, salt, sub_rounds, queue, control,
            shared);

    Tally tally = {0, 0};
    u32 moved = sub_rounds;
    for (u32 r = 0; r <= sub_rounds; ++r) {
      const u32* from = starts + r * BINS;
      if (r < sub_rounds && from[0] == from[BINS]) continue;
      // Waking after the last sub-round may overlap with deciding in this one: it writes
      // nothing that deciding reads.
      if (moved < sub_rounds) {
        const u32* was = starts + moved * BINS;
        activate<THREADS>(s, was[GIANT], was[WARPED], moved, sub_rounds, salt, awake, next);
        activate<WARP>(s, was[WARPED], was[TILE16], moved, sub_rounds, salt, awake, next);
        activate<8>(s, was[TILE16], was[BINS], moved, sub_rounds, salt, awake, next);
      }
      if (r == sub_rounds) break;
      decide(s, from, giants, control->work + r * BINS, control, shared, tally);
      grid_sync(barrier);
      for (i64 k = thread; k < whole_warps(from[BINS] - from[0]); k += threads) {
        i64 i = from[0] + k;
        u32 goal = i < from[BINS] ? goals[i] : EMPTY, own = EMPTY;
        if (!__any_sync(FULL, goal != EMPTY)) continue;
        A degree = 0;
        if (goal != EMPTY) {
          u32 v = queue[i];
          own = labels[v];
          degree = degrees[v];
          labels[v] = goal;
        }
        add_together(totals, own, (A)0 - degree);
        add_together(totals, goal, degree);
        add_together(sizes, own, ~0u);
        add_together(sizes, goal, 1u);
      }
      grid_sync(barrier);
      moved = r;
    }

    i64 gain = block_sum(tally.gain);
    u32 moves = block_sum(tally.moves);
    if (threadIdx.x == 0 && moves) {
      atomicAdd((u64*)&control->gain[slot], (u64)gain);
      atomicAdd(&control->moves[slot], (u64)moves);
    }
    grid_sync(barrier);
    gain = *(volatile i64*)&control->gain[slot];
    u64 all_moves = *(volatile u64*)&control->moves[slot];
    if (thread == 0) {
      control->iterations = iteration + 1;
      control->total_moves += all_moves;
    }
    u8* swap = awake;
    awake = next;
    next = swap;
    if (all_moves == 0 || gain < tolerance) break;
  }
}

// Writes the degree of each vertex: its arcs' weights and twice its loop. `loops` may be null.
template <class W, class A>
__global__ void add_degrees(i64 n, const i64* offsets, const W* weights, const A* loops,
                            A* degrees) {
  for (i64 v = blockIdx.x * (i64)blockDim.x + threadIdx.x; v < n;
       v += gridDim.x * (i64)blockDim.x) {
    A degree = loops ? 2 * loops[v] : 0;
    for (i64 j = offsets[v]; j < offsets[v + 1]; ++j) degree += weight_at(weights, j);
    degrees[v] = degree;
  }
}
