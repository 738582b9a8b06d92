// Leiden's refinement of one level in one cooperative launch.
//
// Source: Traag, Waltman and van Eck 2019, §3, with the best candidate in place of a random one, in
// sub-rounds of frozen state. louvain_um/cpu/refine.py is the twin.
//
// Inside each community every vertex starts alone. Only a vertex still alone may join a
// sub-community of its community, and a sub-community of one vertex may be joined only in a
// sub-round in which that vertex cannot move. So no sub-community loses a vertex, and each stays
// connected.
//
// Write ownership: refined, sub_totals, sub_sizes and external_weight change between decisions
// only; proposed[i] and weight_to_target[i] belong to the group that decides for queue[i]. A vertex
// of degree 0 is never queued and stays alone. `queued` sub-rounds are queued at a time: all of
// them, or one where memory is scarce. No result depends on the order of a queue, of
// atomics, or of blocks.

#include "extended_refine.cuh"

// Writes refined, sub_totals, sub_sizes and external_weight of n vertices. X: Plain or Extended.
// Also adds to `sums`, unless it is null, what is inside the communities, and the squares of their
// totals; `loops` may be null. Cooperative.
template <class W, class A, class X = Plain>
__global__ void __launch_bounds__(THREADS, 5)
    refine(const typename RefiningRule<W, A, X>::Type rule, const HubTables<A> hubs, i64 n, u32 queued,
           Control* control, const A* loops, RelabelResult* sums) {
  __shared__ Shared<A> shared;
  Barrier* barrier = &control->barrier;
  typename RefiningRule<W, A, X>::Type s = rule;
  const u32 salt = s.salt, sub_rounds = s.sub_rounds;
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  const u32* starts = shared.starts;

  clear_table(shared);
  begin_refinement(s, n, thread, threads);
  auto queue_from = [&](u32 first) {
    enqueue(
        0, n, s.offsets, s.weights, queued, 0,
        [=](i64 v, bool) {
          const u32 r = bucket(v, salt, sub_rounds) - first;
          return r < queued ? r : EMPTY;
        },
        s.queue, control, shared);
  };
  for (u32 first = 0; first < sub_rounds; first += queued) {
    queue_from(first);
    for (u32 r = 0; r < queued; ++r) weigh_bins(s, starts + r * BINS, shared);
    grid_sync(barrier);
  }
  if (sums) sum_communities<A>(n, s.external_weight, loops, s.totals, sums);

  Tally tally = {0, 0};
  for (u32 first = 0; first < sub_rounds; first += queued) {
    if (queued < sub_rounds) queue_from(first);
    for (u32 r = 0; r < queued; ++r) {
      const u32* from = starts + r * BINS;
      if (from[0] == from[BINS]) continue;
      s.sub_round = first + r;
      // Idle vertices are not settled, so their proposals must say already that they stay.
      for (i64 i = from[0] + thread; i < from[BINS]; i += threads) s.proposed[i] = EMPTY;
      grid_sync(barrier);
      decide(s, from, hubs, control->work + r * BINS, control, shared, tally);
      grid_sync(barrier);
      apply_joins(s, from[0], from[BINS], thread, threads, hubs.capacity ? &shared : nullptr);
      grid_sync(barrier);
    }
    if (queued < sub_rounds) grid_sync(barrier);  // between two calls of `enqueue`
  }
}
