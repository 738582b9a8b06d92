// Moving vertices between communities: all sweeps of one level in one cooperative launch.
//
// A sweep: the active vertices are queued by sub-round and by degree; then, sub-round by
// sub-round, `decide` reads the frozen labels and totals and notes where each queued vertex
// goes, `apply` carries the moves out with integer atomics, `activate` wakes the neighbours
// left behind. Between steps the grid waits for itself; the host is not asked. No result
// depends on the order of a queue, of atomics, or of blocks.
//
// Who owns what: labels, totals and sizes change in `apply` only; proposed[i] belongs to whoever
// decides for queue[i]; a byte of `next_active` is only ever set to 1 during a sweep.

#include "move_rule.cuh"

// The kernel. `start` is null when every vertex begins alone; all stay active for the first
// `restless` sweeps. A vertex of degree 0 is never queued; it stays where it starts.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    move(i64 n, const i64* offsets, const u32* targets, const W* weights, const A* degrees,
         const u32* start, u32* labels, A* totals, u32* sizes, u32* queue, u32* proposed, u8* active,
         u8* next_active, HubTables<A> hubs, Control* control, double rate, double total, u32 seed,
         u32 seed_salt, u32 cycle, u32 sub_rounds, u32 max_iterations, u32 restless,
         u32 patience, i64 tolerance) {
  __shared__ Shared<A> shared;
  Barrier* barrier = &control->barrier;
  const Mover<W, A> s = {offsets, targets, weights, degrees, labels, totals,
                         sizes,   queue,   proposed,   rate,    total,  seed};
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  const u32* starts = shared.starts;

  clear_table(shared);
  begin_level(s, n, start, active, next_active, thread, threads, barrier);

  i64 before = 0;  // what the last sweep gained
  for (u32 iteration = 0; iteration < max_iterations; ++iteration) {
    const u32 salt = mix32((cycle << 16) + iteration + seed_salt);
    const u32 slot = iteration & 1;
    const bool wakes = iteration >= restless;
    if (thread == 0) control->gain[slot] = 0, control->moves[slot] = 0;
    enqueue(
        0, n, offsets, weights, sub_rounds, 0,
        [=](i64 v, bool first) {
          if (first && iteration > restless) next_active[v] = 0;
          return active[v] ? bucket(v, salt, sub_rounds) : EMPTY;
        },
        queue, control, shared);

    Tally tally = {0, 0};
    u32 moved = sub_rounds;
    for (u32 r = 0; r <= sub_rounds; ++r) {
      const u32* from = starts + r * BINS;
      if (r < sub_rounds && from[0] == from[BINS]) continue;
      // Waking after the last sub-round may overlap with deciding in this one: it writes
      // nothing that deciding reads.
      if (wakes && moved < sub_rounds) {
        const u32* was = starts + moved * BINS;
        activate<THREADS>(s, was[HUB], was[WARPED], moved, sub_rounds, salt, active, next_active);
        activate<WARP>(s, was[WARPED], was[TILE16], moved, sub_rounds, salt, active, next_active);
        activate<8>(s, was[TILE16], was[BINS], moved, sub_rounds, salt, active, next_active);
      }
      if (r == sub_rounds) break;
      decide(s, from, hubs, control->work + r * BINS, control, shared, tally);
      grid_sync(barrier);
      apply_moves(s, from[0], from[BINS], thread, threads);
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
      control->total_gain += gain;
      control->ended[iteration] = nanoseconds();
      control->moved[iteration] = all_moves;
    }
    if (all_moves == 0 || gain < tolerance || (iteration >= patience && gain >= before)) break;
    before = gain;
    if (!wakes) continue;
    u8* swap = active;
    active = next_active;
    next_active = swap;
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
