// Leiden's refinement of one level in one cooperative launch: see louvain_um/cpu/refine.py.
//
// Inside each community every vertex starts alone; a vertex still alone may join a part of its
// community. Who may be joined in a sub-round cannot move in it, so no part falls apart.

#include "refine_rule.cuh"

// The kernel. `labels` and `totals` are the communities and their degrees; parts, part_totals,
// part_sizes and cuts are written for every vertex.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    refine(i64 n, const i64* offsets, const u32* targets, const W* weights, const A* degrees,
           const u32* labels, const A* totals, u32* parts, A* part_totals, u32* part_sizes,
           A* cuts, u32* queue, u32* goals, A* ties, Giants<A> giants,
           Control* control, double rate, u32 seed, u32 salt,
           u32 sub_rounds) {
  __shared__ Shared<A> shared;
  Barrier* barrier = &control->barrier;
  Refiner<W, A> s = {offsets,    targets, weights, degrees, labels, totals,
                     parts,      part_totals, part_sizes, cuts, queue, goals,
                     ties,       rate,    seed,    salt,    sub_rounds, 0};
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  const u32* starts = shared.starts;

  clear_table(shared);
  begin_parts(s, n, thread, threads);
  enqueue(
      0, n, offsets, weights, sub_rounds, 0,
      [=](i64 v, bool) { return bucket(v, salt, sub_rounds); }, queue, control, shared);
  for (u32 r = 0; r < sub_rounds; ++r) {
    const u32* from = starts + r * BINS;
    cut_all(s, from);
  }
  grid_sync(barrier);

  Tally tally = {0, 0};
  for (u32 r = 0; r < sub_rounds; ++r) {
    const u32* from = starts + r * BINS;
    if (from[0] == from[BINS]) continue;
    s.sub_round = r;
    // An idle vertex is not settled: what it left in goals must say that it stays.
    for (i64 i = from[0] + thread; i < from[BINS]; i += threads) goals[i] = EMPTY;
    grid_sync(barrier);
    decide(s, from, giants, control->work + r * BINS, control, shared, tally);
    grid_sync(barrier);
    join_parts(s, from[0], from[BINS], thread, threads);
    grid_sync(barrier);
  }
}
