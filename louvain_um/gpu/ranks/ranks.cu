// Moving and refinement of a level whose vertices are dealt over several devices.
//
// Each device decides for its local vertices and reads, over the links between devices, what the
// others propose; all apply all moves. Labels, totals and sizes are therefore the same on every
// device between sub-rounds. The host lets a device wait for the others between two kernels: no
// kernel waits for another device, and none writes another's memory.
//
// A sweep: `queue_local`; then for each sub-round `move_round` and, once all devices have decided,
// `apply_round`; `move_round` once more to activate the neighbours of the last moves; and, once all
// devices are there, `merge_active`. A sub-round's part of the queue is the same for all kernels of
// a sweep.

#include "move_rule.cuh"
#include "refine_rule.cuh"

// What a device has of its own: the vertices first..last - 1, whose rows it decides for. `starts`
// says where each sub-round and degree bin begins in its queue. Refinement has neither active nor
// next_active.
struct Local {
  i64 n;
  i64 first, last;
  u32* active;
  u32* next_active;
  u32* starts;
  Control* control;
  u32 salt;
  u32 sub_rounds;
};
static_assert(sizeof(Local) == 64, "mirrored by LOCAL in ranks/steps.py");

// What a device shows the others; `activated` is its next_active. weight_to_target is null while
// vertices move.
template <class A>
struct Shown {
  const u32* queue;
  const u32* proposed;
  const u32* starts;
  const u32* activated;
  const A* weight_to_target;
};

// Queues a device's local vertices by sub-round and bin, and tells the others where these begin.
template <class W, class A, class R>
__device__ void queue_rounds(const Local& local, const i64* offsets, const W* weights, u32* queue,
                             Shared<A>& shared, R round_of) {
  enqueue(local.first, local.last, arcs_by(offsets, weights), local.sub_rounds, 0, round_of, queue,
          local.control, shared);
  if (blockIdx.x == 0)
    for (u32 k = threadIdx.x; k <= local.sub_rounds * BINS; k += THREADS)
      local.starts[k] = shared.starts[k];
}

// Copies where a sub-round's bins begin, and the end of the last, to shared memory.
template <class A>
__device__ void load_starts(const Local& local, u32 round, Shared<A>& shared) {
  __syncthreads();
  if (threadIdx.x <= BINS) shared.starts[threadIdx.x] = local.starts[round * BINS + threadIdx.x];
  __syncthreads();
}

// Starts a level, as `move` does.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    begin_shared(MoveRule<W, A> s, Local local, const u32* start) {
  __shared__ Shared<A> shared;
  clear_table(shared);
  begin_level(s, local.n, start, local.active, local.next_active, grid_thread(), grid_threads(),
              &local.control->barrier, shared);
}

// Begins a sweep. No vertex is active for the next one yet.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5) queue_local(MoveRule<W, A> s, Local local) {
  __shared__ Shared<A> shared;
  const u32 salt = local.salt, sub_rounds = local.sub_rounds;
  const u32* active = local.active;
  if (grid_thread() == 0) local.control->gain[0] = 0, local.control->moves[0] = 0;
  for (i64 v = grid_thread(); v < local.n; v += grid_threads()) clear_flags(local.next_active, v);
  queue_rounds(local, s.offsets, s.weights, s.queue, shared, [=](i64 v, bool) {
    return is_flagged(active, v) ? bucket(v, salt, sub_rounds) : EMPTY;
  });
}

// Activates the neighbours of local vertices that moved in sub-round `moved` (EMPTY: none did), then
// decides for local vertices of sub-round `round` (EMPTY: none).
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    move_round(MoveRule<W, A> s, Local local, HubTables<A> hubs, u32 round, u32 moved) {
  __shared__ Shared<A> shared;
  Control* control = local.control;
  if (moved != EMPTY)
    activate_bins(s, local.starts + moved * BINS, moved, local.sub_rounds, local.salt, local.active,
                  local.next_active, &control->read_again, shared);
  if (round == EMPTY) return;
  load_starts(local, round, shared);
  if (shared.starts[0] == shared.starts[BINS]) return;
  clear_table(shared);
  __syncthreads();
  Tally tally = {0, 0};
  decide(s, shared.starts, hubs, control->work + round * BINS, control, shared, tally);
  i64 gain = block_sum(tally.gain);
  u32 moves = block_sum(tally.moves);
  if (threadIdx.x == 0 && moves) {
    atomicAdd((u64*)&control->gain[0], (u64)gain);
    atomicAdd(&control->moves[0], (u64)moves);
  }
}

// Applies what all devices propose in a sub-round. Blocks begin with different devices, so that
// links and local memory are busy at the same time.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    apply_round(MoveRule<W, A> s, const Shown<A>* shown, u32 devices, u32 round) {
  __shared__ Shared<A> shared;
  clear_table(shared);
  __syncthreads();
  for (u32 k = 0; k < devices; ++k) {
    const u32 d = (blockIdx.x + k) % devices;
    s.queue = (u32*)shown[d].queue;
    s.proposed = (u32*)shown[d].proposed;
    const u32* from = shown[d].starts + round * BINS;
    apply_moves(s, from[0], from[BINS], grid_thread(), grid_threads(), shared);
  }
}

// Makes active what any device has activated.
template <class W, class A>
__global__ void merge_active(i64 n, u32* active, const Shown<A>* shown, u32 devices) {
  for (i64 i = grid_thread(); i < (n + 31) / 32; i += grid_threads()) {
    u32 flags = 0;
    for (u32 d = 0; d < devices; ++d) flags |= shown[d].activated[i];
    active[i] = flags;
  }
}

// Begins refinement: every vertex is alone; sets the external weight of local vertices.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5) weigh_local(RefineRule<W, A> s, Local local) {
  __shared__ Shared<A> shared;
  const u32 salt = local.salt, sub_rounds = local.sub_rounds;
  begin_refinement(s, local.n, grid_thread(), grid_threads());
  queue_rounds(local, s.offsets, s.weights, s.queue, shared,
               [=](i64 v, bool) { return bucket(v, salt, sub_rounds); });
  for (u32 r = 0; r < sub_rounds; ++r) weigh_bins(s, shared.starts + r * BINS, shared);
}

// Decides for local vertices of a sub-round of refinement.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    refine_round(RefineRule<W, A> s, Local local, HubTables<A> hubs, u32 round) {
  __shared__ Shared<A> shared;
  Control* control = local.control;
  load_starts(local, round, shared);
  if (shared.starts[0] == shared.starts[BINS]) return;
  clear_table(shared);
  s.sub_round = round;
  // Idle vertices are not proposed for, so their proposals must say already that they stay.
  for (i64 i = shared.starts[0] + grid_thread(); i < shared.starts[BINS]; i += grid_threads())
    s.proposed[i] = EMPTY;
  grid_sync(&control->barrier);
  Tally tally = {0, 0};
  decide(s, shared.starts, hubs, control->work + round * BINS, control, shared, tally);
}

// Applies what all devices propose in a sub-round of refinement.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    join_round(RefineRule<W, A> s, const Shown<A>* shown, u32 devices, u32 round) {
  __shared__ Shared<A> shared;
  clear_table(shared);
  __syncthreads();
  for (u32 k = 0; k < devices; ++k) {
    const u32 d = (blockIdx.x + k) % devices;
    s.queue = (u32*)shown[d].queue;
    s.proposed = (u32*)shown[d].proposed;
    s.weight_to_target = (A*)shown[d].weight_to_target;
    const u32* from = shown[d].starts + round * BINS;
    apply_joins(s, from[0], from[BINS], grid_thread(), grid_threads());
  }
}

// Adds `base` to the first `count` offsets.
__global__ void shift_offsets(i64 count, i64* offsets, i64 base) {
  for (i64 i = grid_thread(); i < count; i += grid_threads()) offsets[i] += base;
}
