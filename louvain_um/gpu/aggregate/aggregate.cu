// From communities to the next level's graph, exactly: communities become vertices.
//
// Members are listed community by community, so that a community's arcs are a stretch of one
// long list of arcs, which is cut without regard to rows. A community's arcs to others are
// added up in a hash table: a warp's in shared memory, a block's, or, for giants, one in global
// memory that all blocks fill. Which one is first tried goes by its arcs; a table that turns
// out too small passes its community on. Rows are written where they would begin if no arcs
// merged (in `room`, for a chunk of communities at a time), then moved to where they stay. The
// order of a row's neighbours is free: no label depends on it.
#include "sum_arcs.cuh"

// Five blocks on each multiprocessor measured faster than three, four or six.
#define BOUNDS __launch_bounds__(THREADS, 5)

// Ranks the labels in use; state->vertices becomes k. Cooperative.
template <class W, class A>
__global__ void BOUNDS number_labels(Job<W, A> job) {
  rank_labels(job);
}

// Renumbers `numbers`, if there are ranks, and lists members. Cooperative.
template <class W, class A>
__global__ void BOUNDS group_members(Job<W, A> job) {
  list_members(job, job.k);
}

// Sets new_degrees and new_loops (doubled, without inner arcs). Cooperative.
template <class W, class A>
__global__ void BOUNDS sum_members(Job<W, A> job) {
  add_up_members(job, job.k);
}

// Sets rooms and chunks. Communities without arcs are nobody's neighbours. Cooperative.
template <class W, class A>
__global__ void BOUNDS lay_out(Job<W, A> job) {
  if (job.state->filled) job.distinct = job.state->filled;
  lay_out_rooms(job, job.k);
}

// Writes the rows of all chunks from `begin` on, one after the other, and sets new_offsets and
// new_loops; the first one's rows are in their rooms already if `resume`. Ends early, with
// state->next the chunk, where rows of a chunk find no room in the new arrays. Rows with no
// arcs before them begin a level: its table of heavy arcs is emptied. Cooperative.
template <class W, class A>
__global__ void BOUNDS sum_arcs(Job<W, A> job) {
  State* state = job.state;
  Barrier* barrier = &state->barrier;
  if (job.narrow && !job.resume && !job.base) {
    WideWeight* table = wide_table((Narrow*)job.new_weights, job.wide);
    for (u64 s = grid_thread(); s < job.wide; s += grid_threads()) table[s].arc = ~0ull;
    if (grid_thread() == 0) ((u64*)job.new_weights)[-1] = job.wide;
  }
  if (grid_thread() == 0) state->written = job.base;
  for (u32 q = job.begin; q < BOUND_COUNT - 1; ++q) {
    const Chunk chunk = {(i64)state->bounds[q], (i64)state->bounds[q + 1]};
    if (chunk.first == chunk.last) continue;
    if (!job.resume || q > job.begin) add_up(job, chunk);
    grid_sync(barrier);
    const i64 end = job.new_offsets[chunk.last];
    const bool fits = end <= job.reserve;
    if (grid_thread() == 0) {
      state->claimed_small = state->middles = state->claimed_middle = state->giants = 0;
      state->arcs = end;
      if (fits) state->written = end;
      state->next = fits ? BOUND_COUNT : q;
    }
    if (!fits) return;
    close_gaps(job, chunk);
    grid_sync(barrier);
  }
}

// All of the above for a small level, whose arrays are as long as they could have to be.
// Cooperative.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 2) aggregate_small(Job<W, A> job) {
  const i64 k = job.distinct = rank_labels(job);
  list_members(job, k);
  add_up_members(job, k);
  lay_out_rooms(job, k);
  const Chunk all = {0, k};
  grid_sync(&job.state->barrier);
  add_up(job, all);
  grid_sync(&job.state->barrier);
  if (grid_thread() == 0) job.state->arcs = job.new_offsets[k];
  close_gaps(job, all);
}

// Sets inside, squares and widest of a level in which every vertex is alone.
template <class W, class A>
__global__ void BOUNDS sum_level(Job<W, A> job) {
  Squares squares;
  u64 inside = 0, widest = 0;
  for (i64 v = grid_thread(); v < job.n; v += grid_threads()) {
    squares.add(degree_of(job.weights, job.degrees, job.offsets, v));
    if (job.loops) inside += 2 * (u64)job.loops[v];
    widest = max(widest, (u64)row_of(job.weights, job.offsets, v).arcs());
  }
  squares.publish(job.state->squares);
  inside = block_sum(inside);
  if (threadIdx.x == 0 && inside) atomicAdd(&job.state->inside, inside);
  widest = warp_max(widest);
  if (lane_index() == 0 && widest) atomicMax(&job.state->widest, widest);
}
