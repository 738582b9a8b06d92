// Aggregation: communities become the vertices of the next level, exactly. The aggregation phase of
// the Louvain method (Blondel et al. 2008) and of Leiden (Traag et al. 2019, on refined
// communities); which community a thread owns is in group_members.cuh and sum_arcs.cuh.
//
// Members are listed community by community, so that a community's arcs are a range of one long
// list, which is cut without regard to rows. They are summed by neighbour in hash tables. A row is
// first written to chunk_targets and chunk_weights, where it would begin if no arcs merged, for one
// chunk of communities at a time, then moved to its final place. The order of a row's neighbours is
// free: no label depends on it.
#include "sample_rows.cuh"
#include "sum_arcs.cuh"

// Five blocks on each multiprocessor measured faster than three, four or six.
#define BOUNDS __launch_bounds__(THREADS, 5)

// Ranks the labels in use; sets state->vertices. Cooperative.
template <class W, class A>
__global__ void BOUNDS number_labels(Arguments<W, A> args) {
  rank_labels(args);
}

// Lists the members of communities; numbers become ranks, if there are ranks. Cooperative.
template <class W, class A>
__global__ void BOUNDS group_members(Arguments<W, A> args) {
  list_members(args, args.k);
}

// Sets new_degrees and new_loops (doubled, without inner arcs). Cooperative.
template <class W, class A>
__global__ void BOUNDS sum_members(Arguments<W, A> args) {
  sum_degrees(args, args.k);
}

// Sets room, kept and max_arcs: what the host estimates the arcs of the next level by.
template <class W, class A>
__global__ void BOUNDS sample_rows(Arguments<W, A> args) {
  if (args.state->nonempty) args.neighbour_bound = args.state->nonempty;
  add_shares(args);
  bound_rows(args);
}

// Sets rooms and chunks. Communities without arcs are no neighbours. Cooperative.
template <class W, class A>
__global__ void BOUNDS lay_out(Arguments<W, A> args) {
  if (args.state->nonempty) args.neighbour_bound = args.state->nonempty;
  lay_out_rooms(args, args.k);
}

// Writes the rows of all chunks from `begin` on, one after the other, and sets new_offsets and
// new_loops. Stops where the rows of a chunk do not fit the new arrays, with that chunk in
// state->next_chunk: the host enlarges them and resumes. The first launch of a level (base 0)
// empties the table of heavy arcs. Cooperative.
template <class W, class A>
__global__ void BOUNDS sum_arcs(Arguments<W, A> args) {
  State* state = args.state;
  Barrier* barrier = &state->barrier;
  if (args.weight_bytes && !args.resume && !args.base) {
    HeavyWeight* table = heavy_table(args.new_weights, args.heavy_slots);
    for (u64 s = grid_thread(); s < args.heavy_slots; s += grid_threads()) table[s].arc = ~0ull;
    if (grid_thread() == 0) ((u64*)args.new_weights)[-1] = args.heavy_slots;
  }
  clear_tables(args);
  if (grid_thread() == 0) {
    state->written = state->arcs = args.base;
    state->next_chunk = BOUND_COUNT;
  }
  for (u32 q = args.begin; q < BOUND_COUNT - 1; ++q) {
    const Chunk chunk = {max((i64)state->bounds[q], (i64)state->first),
                         min((i64)state->bounds[q + 1], (i64)state->last)};
    if (chunk.first >= chunk.last) continue;
    if (!args.resume || q > args.begin) sum_chunk(args, chunk);
    grid_sync(barrier);
    const i64 end = args.new_offsets[chunk.last];
    const bool fits = end <= args.new_capacity;
    if (grid_thread() == 0) {
      state->claimed_by_warps = state->claimed_by_blocks = state->hub_count = 0;
      state->block_count = state->blocks_listed = 0;
      state->arcs = end;
      if (fits) state->written = end;
      state->next_chunk = fits ? BOUND_COUNT : q;
    }
    if (!fits) return;
    if (args.targets24)
      close_gaps<true>(args, chunk);
    else
      close_gaps<false>(args, chunk);
    grid_sync(barrier);
  }
}

// All of the above in one launch, for a small level, whose arrays have their largest possible
// length. Cooperative.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 2) aggregate_small(Arguments<W, A> args) {
  clear_tables(args);
  const i64 k = args.neighbour_bound = rank_labels(args);
  list_members(args, k);
  sum_degrees(args, k);
  lay_out_rooms(args, k);
  const Chunk all = {0, k};
  grid_sync(&args.state->barrier);
  sum_chunk(args, all);
  grid_sync(&args.state->barrier);
  if (grid_thread() == 0) args.state->arcs = args.new_offsets[k];
  close_gaps<false>(args, all);
}

// Sets inside, squares and max_degree of a level in which every vertex is a community.
template <class W, class A>
__global__ void BOUNDS sum_level(Arguments<W, A> args) {
  Squares squares;
  u64 inside = 0, max_degree = 0;
  for (i64 v = grid_thread(); v < args.n; v += grid_threads()) {
    squares.add(degree_of(args.weights, args.degrees, args.offsets, v));
    if (args.loops) inside += 2 * (u64)args.loops[v];
    max_degree = max(max_degree, (u64)row_of(args.weights, args.offsets, v).arcs());
  }
  squares.publish(args.state->squares);
  inside = block_sum(inside);
  if (threadIdx.x == 0 && inside) atomicAdd(&args.state->inside, inside);
  max_degree = warp_max(max_degree);
  if (lane_index() == 0 && max_degree) atomicMax(&args.state->max_degree, max_degree);
}
