// Moving and refining on a level whose arcs are not all on the device: a block of vertices at a
// time, for each sub-round. The host launches; it brings a block's arcs before it does.
//
// The steps and their results are those of move.cu and refine.cu. The queue grows block by
// block; spans[(round * blocks + block) * (BINS + 1)] says where a block's sub of a sub-round
// begins, class by class, so that its moved vertices can wake their neighbours when the block
// is at hand again.

#include "move_rule.cuh"
#include "refine_rule.cuh"

// Returns the block that holds vertex v: the last of `count` that begins at or before it.
__device__ __forceinline__ u32 block_of(const u32* begins, u32 count, u32 v) {
  u32 low = 0, high = count;
  while (high - low > 1) {
    u32 middle = (low + high) / 2;
    if (begins[middle] <= v)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// What the paged kernels of a level share. active and next_active change places between sweeps.
template <class A>
struct Sweep {
  i64 n;
  u64 blocks;
  const u32* begins;
  u8* active;
  u8* next_active;
  u32* spans;
  u8* present;
  Control* control;
  u32 salt;
  u32 sub_rounds;
};

// Notes where classes of the sub of the queue just filled begin, and where the queue ends.
template <class A>
__device__ void note_span(const Sweep<A>& sweep, u32 round, u32 block, const u32* starts) {
  if (blockIdx.x != 0) return;
  u32* span = sweep.spans + (round * sweep.blocks + block) * (BINS + 1);
  for (u32 k = threadIdx.x; k <= BINS; k += THREADS) span[k] = starts[k];
  if (threadIdx.x == 0) sweep.control->tail = starts[BINS];
}

template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    begin_moving(Mover<W, A> s, Sweep<A> sweep, const u32* start) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  begin_level(s, sweep.n, start, sweep.active, sweep.next_active, thread, threads,
              &sweep.control->barrier);
}

// Begins a sweep: present[block * sub_rounds + round] becomes 1 where somebody active is.
template <class W, class A>
__global__ void begin_sweep(Mover<W, A> s, Sweep<A> sweep) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  if (thread == 0) {
    Control* control = sweep.control;
    control->round_begin = control->tail = 0;
    control->gain[0] = 0;
    control->moves[0] = 0;
  }
  for (i64 v = thread; v < sweep.n; v += threads) {
    sweep.next_active[v] = 0;
    if (!sweep.active[v] || s.offsets[v] == s.offsets[v + 1]) continue;
    u32 round = bucket(v, sweep.salt, sweep.sub_rounds);
    sweep.present[block_of(sweep.begins, sweep.blocks, v) * sweep.sub_rounds + round] = 1;
  }
}

template <class W, class A>
__device__ void wake_from(const Mover<W, A>& s, const Sweep<A>& sweep, u32 round, u32 block) {
  const u32* was = sweep.spans + (round * sweep.blocks + block) * (BINS + 1);
  const u32 rounds = sweep.sub_rounds, salt = sweep.salt;
  activate<THREADS>(s, was[HUB], was[WARPED], round, rounds, salt, sweep.active, sweep.next_active);
  activate<WARP>(s, was[WARPED], was[TILE16], round, rounds, salt, sweep.active, sweep.next_active);
  activate<8>(s, was[TILE16], was[BINS], round, rounds, salt, sweep.active, sweep.next_active);
}

// One block's sub of a sub-round: wakes the neighbours of those who moved in sub-round `moved`
// (EMPTY: none did here), then decides for the block's vertices of sub-round `round` (EMPTY: none).
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    move_block(Mover<W, A> s, Sweep<A> sweep, HubTables<A> hubs, u32 block, u32 round, u32 moved) {
  __shared__ Shared<A> shared;
  Control* control = sweep.control;
  clear_table(shared);
  if (moved != EMPTY) wake_from(s, sweep, moved, block);
  if (round == EMPTY) return;
  const u32 tail = *(volatile u32*)&control->tail, salt = sweep.salt;
  const u32 sub_rounds = sweep.sub_rounds;
  const u8* active = sweep.active;
  enqueue(
      sweep.begins[block], sweep.begins[block + 1], s.offsets, s.weights, 1, tail,
      [=](i64 v, bool) {
        return active[v] && bucket(v, salt, sub_rounds) == round ? 0 : EMPTY;
      },
      s.queue, control, shared);
  note_span(sweep, round, block, shared.starts);
  Tally tally = {0, 0};
  decide(s, shared.starts, hubs, control->work, control, shared, tally);
  i64 gain = block_sum(tally.gain);
  u32 moves = block_sum(tally.moves);
  if (threadIdx.x == 0 && moves) {
    atomicAdd((u64*)&control->gain[0], (u64)gain);
    atomicAdd(&control->moves[0], (u64)moves);
  }
}

// Carries out the moves of the sub-round that has been decided in all its blocks.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5) end_move_round(Mover<W, A> s, Sweep<A> sweep) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  Control* control = sweep.control;
  const u32 begin = *(volatile u32*)&control->round_begin, end = *(volatile u32*)&control->tail;
  apply_moves(s, begin, end, thread, threads);
  grid_sync(&control->barrier);
  if (thread == 0) control->round_begin = end;
}

// Makes every vertex a sub of its own and, block by block, sums its arcs inside its community.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5) begin_refining(Refiner<W, A> s, Sweep<A> sweep) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  begin_alone(s, sweep.n, thread, threads);
}

template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    weigh_block(Refiner<W, A> s, Sweep<A> sweep, u32 block) {
  __shared__ Shared<A> shared;
  enqueue(
      sweep.begins[block], sweep.begins[block + 1], s.offsets, s.weights, 1, 0,
      [](i64, bool) { return 0u; }, s.queue, sweep.control, shared);
  sum_external(s, shared.starts);
}

// One block's sub of a sub-round of refinement.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    refine_block(Refiner<W, A> s, Sweep<A> sweep, HubTables<A> hubs, u32 block, u32 round) {
  __shared__ Shared<A> shared;
  Control* control = sweep.control;
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  const u32 tail = *(volatile u32*)&control->tail, salt = s.salt, sub_rounds = s.sub_rounds;
  clear_table(shared);
  enqueue(
      sweep.begins[block], sweep.begins[block + 1], s.offsets, s.weights, 1, tail,
      [=](i64 v, bool) { return bucket(v, salt, sub_rounds) == round ? 0 : EMPTY; }, s.queue,
      control, shared);
  note_span(sweep, round, block, shared.starts);
  s.sub_round = round;
  for (i64 i = shared.starts[0] + thread; i < shared.starts[BINS]; i += threads)
    s.proposed[i] = EMPTY;
  grid_sync(&control->barrier);
  Tally tally = {0, 0};
  decide(s, shared.starts, hubs, control->work, control, shared, tally);
}

template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5) end_refine_round(Refiner<W, A> s, Sweep<A> sweep) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  Control* control = sweep.control;
  const u32 begin = *(volatile u32*)&control->round_begin, end = *(volatile u32*)&control->tail;
  apply_joins(s, begin, end, thread, threads);
  grid_sync(&control->barrier);
  if (thread == 0) control->round_begin = end;
}

// Touches a stretch of memory page by page, as a program that knows nothing of placement would:
// each warp asks for `pages` pages that are far apart, one after the other without waiting.
__global__ void touch_pages(const u8* bytes, i64 first, i64 last, u32 page, u32 pages,
                                       u32* sink) {
  const u32 lane = threadIdx.x % WARP;
  const i64 warp = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / WARP;
  const i64 stride = gridDim.x * (i64)blockDim.x / WARP, count = (last - first + page - 1) / page;
  u32 seen = 0;
  for (i64 base = warp * pages; base < count; base += stride * pages) {
    i64 p = base + lane;
    if (lane < pages && p < count) seen += *(const volatile u8*)(bytes + first + p * page);
  }
  if (seen == EMPTY) *sink = seen;
}
