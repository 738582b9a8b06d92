// From communities to the next level's graph, exactly: communities become vertices.
//
// Members are listed community by community, so that a community's arcs are a stretch of one
// long list of arcs, which is cut without regard to rows. A community's arcs to others are
// added up in a hash table: a warp's in shared memory, a block's, or, for hubs, one in global
// memory that all blocks fill. Which one is first tried goes by its arcs; a table that turns
// out too small passes its community on. Rows are written where they would begin if no arcs
// merged (in `room`, for a chunk of communities at a time), then moved to where they stay. The
// order of a row's neighbours is free: no label depends on it.
#include "sum_arcs.cuh"

// Five blocks on each multiprocessor measured faster than three, four or six.
#define BOUNDS __launch_bounds__(THREADS, 5)

// Ranks the labels in use; state->vertices becomes k. Cooperative.
template <class W, class A>
__global__ void BOUNDS number_labels(Arguments<W, A> args) {
  rank_labels(args);
}

// Renumbers `numbers`, if there are ranks, and lists members. Cooperative.
template <class W, class A>
__global__ void BOUNDS group_members(Arguments<W, A> args) {
  list_members(args, args.k);
}

// Sets new_degrees and new_loops (doubled, without inner arcs). Cooperative.
template <class W, class A>
__global__ void BOUNDS sum_members(Arguments<W, A> args) {
  sum_degrees(args, args.k);
}

// Sets rooms and chunks. Communities without arcs are nobody's neighbours. Cooperative.
template <class W, class A>
__global__ void BOUNDS lay_out(Arguments<W, A> args) {
  if (args.state->filled) args.distinct = args.state->filled;
  lay_out_rooms(args, args.k);
}

// Writes the rows of all chunks from `begin` on, one after the other, and sets new_offsets and
// new_loops; the first one's rows are in their rooms already if `resume`. Ends early, with
// state->next the chunk, where rows of a chunk find no room in the new arrays. Rows with no
// arcs before them begin a level: its table of heavy arcs is emptied. Cooperative.
template <class W, class A>
__global__ void BOUNDS sum_arcs(Arguments<W, A> args) {
  State* state = args.state;
  Barrier* barrier = &state->barrier;
  if (args.narrow && !args.resume && !args.base) {
    HeavyWeight* table = heavy_table((Weights8*)args.new_weights, args.wide);
    for (u64 s = grid_thread(); s < args.wide; s += grid_threads()) table[s].arc = ~0ull;
    if (grid_thread() == 0) ((u64*)args.new_weights)[-1] = args.wide;
  }
  if (grid_thread() == 0) state->written = args.base;
  for (u32 q = args.begin; q < BOUND_COUNT - 1; ++q) {
    const Chunk chunk = {(i64)state->bounds[q], (i64)state->bounds[q + 1]};
    if (chunk.first == chunk.last) continue;
    if (!args.resume || q > args.begin) sum_chunk(args, chunk);
    grid_sync(barrier);
    const i64 end = args.new_offsets[chunk.last];
    const bool fits = end <= args.reserve;
    if (grid_thread() == 0) {
      state->claimed_by_warps = state->block_count = state->claimed_by_blocks = state->hub_count = 0;
      state->arcs = end;
      if (fits) state->written = end;
      state->next = fits ? BOUND_COUNT : q;
    }
    if (!fits) return;
    close_gaps(args, chunk);
    grid_sync(barrier);
  }
}

// All of the above for a small level, whose arrays are as long as they could have to be.
// Cooperative.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 2) aggregate_small(Arguments<W, A> args) {
  const i64 k = args.distinct = rank_labels(args);
  list_members(args, k);
  sum_degrees(args, k);
  lay_out_rooms(args, k);
  const Chunk all = {0, k};
  grid_sync(&args.state->barrier);
  sum_chunk(args, all);
  grid_sync(&args.state->barrier);
  if (grid_thread() == 0) args.state->arcs = args.new_offsets[k];
  close_gaps(args, all);
}

// Sets inside, squares and widest of a level in which every vertex is alone.
template <class W, class A>
__global__ void BOUNDS sum_level(Arguments<W, A> args) {
  Squares squares;
  u64 inside = 0, widest = 0;
  for (i64 v = grid_thread(); v < args.n; v += grid_threads()) {
    squares.add(degree_of(args.weights, args.degrees, args.offsets, v));
    if (args.loops) inside += 2 * (u64)args.loops[v];
    widest = max(widest, (u64)row_of(args.weights, args.offsets, v).arcs());
  }
  squares.publish(args.state->squares);
  inside = block_sum(inside);
  if (threadIdx.x == 0 && inside) atomicAdd(&args.state->inside, inside);
  widest = warp_max(widest);
  if (lane_index() == 0 && widest) atomicMax(&args.state->widest, widest);
}
