// Moving vertices between communities: all sweeps of one level in one cooperative launch.
//
// Source: the local moving phase of Louvain (Blondel et al. 2008, §2), made parallel by sub-rounds
// that decide from a frozen state, and pruned to active vertices. louvain_um/cpu/move.py is the
// counterpart.
//
// A sweep: the active vertices are queued by sub-round and degree bin, of all sub-rounds at once or
// of one at a time. Then, for each sub-round: decide, barrier, apply, barrier. `decide` reads the
// frozen labels and totals and writes proposals; `apply` updates labels, totals and sizes by
// integer atomics; `activate` marks the neighbours of moved vertices for the next sweep, together
// with the next `decide`, since it writes nothing that deciding reads. The grid synchronizes
// itself; the host reads back once per level.
//
// Write ownership: labels, totals and sizes change in `apply` only; proposed[i] belongs to the
// group that decides for queue[i]; flags of next_active are only ever set while a sweep runs.
//
// A vertex of degree 0 is never queued and stays where it starts. No result depends on the order of
// a queue, of atomics, or of blocks.

#include "extended_rule.cuh"
#include "spans.cuh"

// The level to move on, and the schedule of its sweeps. `start` is null if every vertex starts
// alone, `awake` if all are active at first. `tolerance` is in units of 2^-GAIN_BITS.
struct Sweeps {
  i64 n;
  const u32* start;
  const u8* awake;
  u32* active;
  u32* next_active;
  Control* control;
  i64 tolerance;
  u32 seed_salt;
  u32 cycle;
  u32 sub_rounds;
  u32 max_iterations;
  u32 full_sweeps;  // first sweeps, with all vertices active
  u32 min_sweeps;   // sweeps before a gain that does not fall ends the level
  u32 queued;       // sub-rounds queued at a time: all, or one where memory is scarce
  u32 summed;       // whether totals and sizes are those of `start` already
};
static_assert(sizeof(Sweeps) == 88, "mirrored by SWEEPS in gpu/move/arguments.py");

// Moves until a sweep gains less than the tolerance. Writes labels, totals and sizes, and
// iterations, moves, gains and times of sweeps to `control`. X: Plain or Extended. Cooperative.
template <class W, class A, class X = Plain>
__global__ void __launch_bounds__(THREADS, 5)
    move(const typename MovingRule<W, A, X>::Type s, const HubTables<A> hubs, const Sweeps sweeps) {
  __shared__ Shared<A> shared;
  const i64 n = sweeps.n;
  const u32 sub_rounds = sweeps.sub_rounds, full_sweeps = sweeps.full_sweeps;
  const u32 queued = sweeps.queued;
  Control* control = sweeps.control;
  Barrier* barrier = &control->barrier;
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  const u32* starts = shared.starts;

  clear_table(shared);
  begin_level(s, n, sweeps.start, sweeps.active, sweeps.next_active, thread, threads, barrier,
              shared, sweeps.awake, sweeps.summed);
  if constexpr (same<X, Extended>) begin_extended(s, n, thread, threads, barrier);

  for (u32 iteration = 0; iteration < sweeps.max_iterations; ++iteration) {
    const u32 salt = mix32((sweeps.cycle << 16) + iteration + sweeps.seed_salt);
    const u32 slot = iteration & 1;
    const bool prunes = iteration >= full_sweeps;
    // Derived from `iteration`, the two arrays take no registers from what a sweep calls.
    const bool swapped = prunes && (iteration - full_sweeps) % 2;
    u32* active = swapped ? sweeps.next_active : sweeps.active;
    u32* next_active = swapped ? sweeps.active : sweeps.next_active;
    if (thread == 0) control->gain[slot] = 0, control->moves[slot] = 0;
    Tally tally = {0, 0};
    u32 moved = EMPTY;  // the sub-round whose moves were applied last
    for (u32 r = 0; r <= sub_rounds; ++r) {
      const bool queues = r % queued == 0;
      const u32* from = starts + r % queued * BINS;
      if (r < sub_rounds && !queues && from[0] == from[BINS]) continue;
      if (prunes && moved != EMPTY)
        activate_bins(s, starts + moved % queued * BINS, moved, sub_rounds, salt, active,
                      next_active, &control->read_again, shared);
      moved = EMPTY;
      if (r == sub_rounds) break;
      if (queues) {
        if (r) grid_sync(barrier);  // `enqueue` needs a barrier between two calls
        enqueue(
            0, n, arcs_by(s.offsets, s.weights), queued, 0,
            [=](i64 v, bool counting) {
              if (counting && r == 0 && iteration > full_sweeps) clear_flags(next_active, v);
              if (!is_flagged(active, v)) return EMPTY;
              const u32 own = bucket(v, salt, sub_rounds) - r;
              return own < queued ? own : EMPTY;
            },
            s.queue, control, shared);
        if (from[0] == from[BINS]) continue;
      }
      decide(s, from, hubs, control->work + r % queued * BINS, control, shared, tally);
      grid_sync(barrier);
      if constexpr (same<X, Extended>) {
        if (s.gains)
          admit(s, from[0], from[BINS], prunes, next_active, thread, threads, barrier, tally);
        apply_extended(s, from[0], from[BINS], thread, threads, barrier);
      }
      apply_moves(s, from[0], from[BINS], thread, threads, shared);
      grid_sync(barrier);
      moved = r;
    }

    i64 gain = block_sum(tally.gain);
    u32 moves = block_sum(tally.moves);
    if constexpr (same<X, Extended>) {
      // A block may refuse more moves than it proposed.
      if (threadIdx.x == 0 && (moves || gain)) {
        atomicAdd((u64*)&control->gain[slot], (u64)gain);
        atomicAdd(&control->moves[slot], (u64)(i64)(int)moves);
      }
    } else if (threadIdx.x == 0 && moves) {
      atomicAdd((u64*)&control->gain[slot], (u64)gain);
      atomicAdd(&control->moves[slot], (u64)moves);
    }
    const i64 before = *(volatile i64*)&control->gain[slot ^ 1];  // 0 in the first sweep
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
    if (all_moves == 0 || gain < sweeps.tolerance ||
        (iteration >= sweeps.min_sweeps && gain >= before))
      break;
  }
}

// Writes the degree of each vertex: the weights of its arcs and twice its loop. `loops` may be
// null. One thread per vertex.
template <class W, class A>
__global__ void add_degrees(i64 n, const i64* offsets, const W* weights, const A* loops,
                            A* degrees) {
  for (i64 v = blockIdx.x * (i64)blockDim.x + threadIdx.x; v < n;
       v += gridDim.x * (i64)blockDim.x) {
    A degree = loops ? 2 * loops[v] : 0;
    const Row row = row_of(weights, offsets, v);
    for (i64 j = row.low; j < row.high; ++j) degree += weight_at(weights, j);
    degrees[v] = degree;
  }
}
