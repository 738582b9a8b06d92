// Leiden's refinement of one level in one cooperative launch.
//
// Source: Traag, Waltman and van Eck 2019, §3, with the best candidate in place of a random one, in
// sub-rounds of frozen state. louvain_um/cpu/refine.py is the counterpart.
//
// Inside each community every vertex starts alone. Only a vertex still alone may join a
// sub-community of its community, and a sub-community of one vertex may be joined only in a
// sub-round in which that vertex cannot move. So no sub-community loses a vertex, and each stays
// connected.
//
// Write ownership: refined, parts and sub_sizes change between decisions
// only; proposed[i] and weight_to_target[i] belong to the group that decides for queue[i]. A vertex
// of degree 0 is never queued and stays alone. `queued` sub-rounds are queued at a time: all of
// them, or one where memory is scarce. No result depends on the order of a queue, of
// atomics, or of blocks.

#include "extended_refine.cuh"

// Writes refined, parts and sub_sizes of n vertices. X: Plain or Extended.
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
  using S = typename RefiningRule<W, A, X>::Type;
  // Totals of single vertices are on the device: for an input in fewer bytes, how many arcs they have.
  if constexpr (S::compact) grid_sync(barrier);
  const i64* offsets = s.offsets;
  const W* weights = s.weights;
  const Part<A>* parts = s.parts;
  const auto arcs_alone = [=](i64 v) -> i64 {
    if constexpr (S::compact) return parts[v].total;
    return row_of(weights, offsets, v).arcs();
  };
  Tally tally = {0, 0};
  // All vertices are weighed, then all decide: one loop, since code that is there twice takes
  // registers from all of the kernel.
  for (u32 step = 0; step < 2 * sub_rounds; ++step) {
    const u32 r = step % sub_rounds;
    const bool weighs = step < sub_rounds, queues = r % queued == 0;
    const u32* from = starts + r % queued * BINS;
    if (queues) {
      if (step) grid_sync(barrier);  // `enqueue` needs a barrier between two calls
      // Vertices next to each other are weighed together, as the first of the sub-rounds: what an
      // access to their rows brings is used whole.
      const u8* sub_sizes = s.sub_sizes;
      enqueue(
          weighs ? r * n / sub_rounds : 0, weighs ? (r + queued) * n / sub_rounds : n, arcs_alone,
          queued, 0,
          [=](i64 v, bool) {
            const u32 own = weighs ? 0 : bucket(v, salt, sub_rounds) - r;
            if (own >= queued) return EMPTY;
            // Who is not alone any more does not decide.
            return weighs || r == 0 || sub_sizes[v] == 1 ? own : EMPTY;
          },
          s.queue, control, shared);
    }
    if (weighs) {
      weigh_bins(s, from, shared);
      if (r + 1 < sub_rounds) continue;
      grid_sync(barrier);
      if (sums) sum_communities<A>(n, s.parts, loops, s.totals, sums);
      continue;
    }
    if (queues) {
      // Idle vertices are not proposed for, so their proposals must say already that they stay.
      for (i64 i = thread; i < starts[queued * BINS]; i += threads) s.proposed[i] = EMPTY;
      grid_sync(barrier);
    }
    if (from[0] == from[BINS]) continue;
    s.sub_round = r;
    decide(s, from, hubs, control->work + r % queued * BINS, control, shared, tally);
    grid_sync(barrier);
    apply_joins(s, from[0], from[BINS], thread, threads, hubs.capacity ? &shared : nullptr);
    grid_sync(barrier);
  }
}
