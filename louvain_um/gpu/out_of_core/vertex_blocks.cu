// Moving and refinement where a level's arcs are not all on the device: one block of vertices at a
// time, for each sub-round.
//
// Source: move.cu and refine.cu, with the same steps and results. The host copies a block's arcs to
// the device before it launches a step; kernels that read no arcs run once per sub-round.
//
// The queue grows block by block. A span, spans[(round * blocks + block) * (BINS + 1)], says where
// the bins of one block and sub-round begin, so that the neighbours of its moved vertices can be
// activated when the block is on the device again. Write ownership and independence of order are
// as in move.cu and refine.cu; vertices of degree 0 are never queued.

#include "move_rule.cuh"
#include "refine_rule.cuh"
#include "search.cuh"

// What the kernels of a level in vertex blocks share. active and next_active are swapped between
// sweeps; refinement has neither, nor `present`.
struct VertexBlocks {
  i64 n;
  u64 count;
  const u32* begins;  // first vertex of each block, and n
  u32* active;
  u32* next_active;
  u32* spans;
  u8* present;  // per block and sub-round: whether an active vertex is there
  Control* control;
  u32 salt;
  u32 sub_rounds;
};
static_assert(sizeof(VertexBlocks) == 72, "mirrored by VERTEX_BLOCKS in vertex_blocks.py");

// Writes the span of a block and sub-round, just queued, and where the queue ends.
__device__ __forceinline__ void write_span(const VertexBlocks& blocks, u32 round, u32 block,
                                           const u32* starts) {
  if (blockIdx.x != 0) return;
  u32* span = blocks.spans + (round * blocks.count + block) * (BINS + 1);
  for (u32 k = threadIdx.x; k <= BINS; k += THREADS) span[k] = starts[k];
  if (threadIdx.x == 0) blocks.control->tail = starts[BINS];
}

// Starts a level, as `move` does.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    begin_moving(MoveRule<W, A> s, VertexBlocks blocks, const u32* start) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  __shared__ Shared<A> shared;
  clear_table(shared);
  begin_level(s, blocks.n, start, blocks.active, blocks.next_active, thread, threads,
              &blocks.control->barrier, shared);
}

// Begins a sweep: present[block * sub_rounds + round] becomes 1 where there is an active vertex.
template <class W, class A>
__global__ void begin_sweep(MoveRule<W, A> s, VertexBlocks blocks) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  if (thread == 0) {
    Control* control = blocks.control;
    control->round_begin = control->tail = 0;
    control->gain[0] = 0;
    control->moves[0] = 0;
  }
  for (i64 v = thread; v < blocks.n; v += threads) {
    clear_flags(blocks.next_active, v);
    if (!is_flagged(blocks.active, v) || s.offsets[v] == s.offsets[v + 1]) continue;
    u32 round = bucket(v, blocks.salt, blocks.sub_rounds);
    blocks.present[last_at_most(blocks.begins, (u32)blocks.count, (u32)v) * blocks.sub_rounds +
                   round] = 1;
  }
}

// Activates the neighbours of the vertices of a block that moved in a sub-round.
template <class W, class A>
__device__ void activate_span(const MoveRule<W, A>& s, const VertexBlocks& blocks, u32 round,
                              u32 block, Shared<A>& shared) {
  const u32* from = blocks.spans + (round * blocks.count + block) * (BINS + 1);
  activate_bins(s, from, round, blocks.sub_rounds, blocks.salt, blocks.active, blocks.next_active,
                &blocks.control->read_again, shared);
}

// One block of a sub-round: activates the neighbours of its vertices that moved in sub-round
// `moved` (EMPTY: none did), then decides for its active vertices of sub-round `round` (EMPTY:
// none).
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    move_block(MoveRule<W, A> s, VertexBlocks blocks, HubTables<A> hubs, u32 block, u32 round,
               u32 moved) {
  __shared__ Shared<A> shared;
  Control* control = blocks.control;
  clear_table(shared);
  if (moved != EMPTY) activate_span(s, blocks, moved, block, shared);
  if (round == EMPTY) return;
  const u32 tail = *(volatile u32*)&control->tail, salt = blocks.salt;
  const u32 sub_rounds = blocks.sub_rounds;
  const u32* active = blocks.active;
  enqueue(
      blocks.begins[block], blocks.begins[block + 1], arcs_by(s.offsets, s.weights), 1, tail,
      [=](i64 v, bool) {
        return is_flagged(active, v) && bucket(v, salt, sub_rounds) == round ? 0 : EMPTY;
      },
      s.queue, control, shared);
  write_span(blocks, round, block, shared.starts);
  Tally tally = {0, 0};
  decide(s, shared.starts, hubs, control->work, control, shared, tally);
  i64 gain = block_sum(tally.gain);
  u32 moves = block_sum(tally.moves);
  if (threadIdx.x == 0 && moves) {
    atomicAdd((u64*)&control->gain[0], (u64)gain);
    atomicAdd(&control->moves[0], (u64)moves);
  }
}

// Applies the moves of the sub-round that has been decided in all its blocks.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    end_move_round(MoveRule<W, A> s, VertexBlocks blocks) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  Control* control = blocks.control;
  const u32 begin = *(volatile u32*)&control->round_begin, end = *(volatile u32*)&control->tail;
  __shared__ Shared<A> shared;
  clear_table(shared);
  __syncthreads();
  apply_moves(s, begin, end, thread, threads, shared);
  grid_sync(&control->barrier);
  if (thread == 0) control->round_begin = end;
}

// Makes every vertex a sub-community of its own.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    begin_refining(RefineRule<W, A> s, VertexBlocks blocks) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  begin_refinement(s, blocks.n, thread, threads);
}

// Sets the external weight of one block's vertices.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    weigh_block(RefineRule<W, A> s, VertexBlocks blocks, u32 block) {
  __shared__ Shared<A> shared;
  enqueue(
      blocks.begins[block], blocks.begins[block + 1], arcs_by(s.offsets, s.weights), 1, 0,
      [](i64, bool) { return 0u; }, s.queue, blocks.control, shared);
  weigh_bins(s, shared.starts, shared);
}

// One block of a sub-round of refinement.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    refine_block(RefineRule<W, A> s, VertexBlocks blocks, HubTables<A> hubs, u32 block, u32 round) {
  __shared__ Shared<A> shared;
  Control* control = blocks.control;
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  const u32 tail = *(volatile u32*)&control->tail, salt = s.salt, sub_rounds = s.sub_rounds;
  clear_table(shared);
  enqueue(
      blocks.begins[block], blocks.begins[block + 1], arcs_by(s.offsets, s.weights), 1, tail,
      [=](i64 v, bool) { return bucket(v, salt, sub_rounds) == round ? 0 : EMPTY; }, s.queue,
      control, shared);
  write_span(blocks, round, block, shared.starts);
  s.sub_round = round;
  for (i64 i = shared.starts[0] + thread; i < shared.starts[BINS]; i += threads)
    s.proposed[i] = EMPTY;
  grid_sync(&control->barrier);
  Tally tally = {0, 0};
  decide(s, shared.starts, hubs, control->work, control, shared, tally);
}

// Applies the proposals of the sub-round that has been decided in all blocks.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    end_refine_round(RefineRule<W, A> s, VertexBlocks blocks) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  Control* control = blocks.control;
  const u32 begin = *(volatile u32*)&control->round_begin, end = *(volatile u32*)&control->tail;
  apply_joins(s, begin, end, thread, threads);
  grid_sync(&control->barrier);
  if (thread == 0) control->round_begin = end;
}

// Touches bytes first..last - 1 page by page, as demand paging does without prefetching: each warp
// asks for `pages` pages at once.
__global__ void touch_pages(const u8* bytes, i64 first, i64 last, u32 page, u32 pages, u32* sink) {
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
