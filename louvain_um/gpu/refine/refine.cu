// Leiden's refinement of one level in one cooperative launch: see louvain_um/cpu/refine.py.
//
// Inside each community every vertex starts alone; a vertex still alone may join a sub of its
// community. Who may be joined in a sub-round cannot move in it, so no sub falls apart.

#include "refine_rule.cuh"

// The kernel. `labels` and `totals` are the communities and their degrees; refined, sub_totals,
// sub_sizes and external_weight are written for every vertex.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5)
    refine(i64 n, const i64* offsets, const u32* targets, const W* weights, const A* degrees,
           const u32* labels, const A* totals, u32* refined, A* sub_totals, u32* sub_sizes,
           A* external_weight, u32* queue, u32* proposed, A* weight_to_target, HubTables<A> hubs,
           Control* control, double rate, u32 seed, u32 salt,
           u32 sub_rounds) {
  __shared__ Shared<A> shared;
  Barrier* barrier = &control->barrier;
  Refiner<W, A> s = {offsets,    targets, weights, degrees, labels, totals,
                     refined,      sub_totals, sub_sizes, external_weight, queue, proposed,
                     weight_to_target,       rate,    seed,    salt,    sub_rounds, 0};
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  const u32* starts = shared.starts;

  clear_table(shared);
  begin_alone(s, n, thread, threads);
  enqueue(
      0, n, offsets, weights, sub_rounds, 0,
      [=](i64 v, bool) { return bucket(v, salt, sub_rounds); }, queue, control, shared);
  for (u32 r = 0; r < sub_rounds; ++r) {
    const u32* from = starts + r * BINS;
    sum_external(s, from);
  }
  grid_sync(barrier);

  Tally tally = {0, 0};
  for (u32 r = 0; r < sub_rounds; ++r) {
    const u32* from = starts + r * BINS;
    if (from[0] == from[BINS]) continue;
    s.sub_round = r;
    // An idle vertex is not settled: what it left in proposed must say that it stays.
    for (i64 i = from[0] + thread; i < from[BINS]; i += threads) proposed[i] = EMPTY;
    grid_sync(barrier);
    decide(s, from, hubs, control->work + r * BINS, control, shared, tally);
    grid_sync(barrier);
    apply_joins(s, from[0], from[BINS], thread, threads);
    grid_sync(barrier);
  }
}
